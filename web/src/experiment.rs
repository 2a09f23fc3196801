//! From the text of an experiment file to its plan.

use std::path::{Path, PathBuf};

use runner_core::data::{self, DataError, Folders, Located};
use runner_core::diagnostic::{Diagnostic, Diagnostics, Sources};
use runner_core::plan::init::InitRefusal;
use runner_core::plan::inventory::{DeviceKind, Found, HOST, Inventory, Listed, State};
use runner_core::plan::{self, Plan, RunPlan, default_name};
use runner_core::spec::backend::{Backend, FLEX, Precision};
use runner_core::spec::data::{DataSource, DataSpec, Fallback};
use runner_core::spec::document::Document;
use runner_core::spec::section::Choice;
use serde_json::{Value as Json, json};

/// A planned experiment.
pub struct Planned {
    /// Its runs.
    pub plan: Plan,
    /// The warnings, as JSON.
    warnings: Json,
}

/// The messages about a file.
pub fn check(text: &str, name: &str) -> Json {
    match plan(text, name) {
        Ok(planned) => planned.warnings,
        Err(wrong) => wrong,
    }
}

/// Plans a file; the error is all messages about it.
pub fn plan(text: &str, name: &str) -> Result<Planned, Json> {
    let wrong = |(sources, found): (Sources, Diagnostics)| found.to_json(&sources);
    let mut document = Document::parse(name, text).map_err(wrong)?;
    document.look_up(&|_| None);
    let mut locate = |spec: &DataSpec| locate(spec);
    let mut weights = |_: &_, _: &_| {
        let message = "the page cannot start from weights in a file";
        Err(InitRefusal {
            key: "init.from",
            diagnostic: Box::new(
                Diagnostic::error("weights", message)
                    .help("remove `[init]`, or train the file with `runner run`"),
            ),
        })
    };
    let default_name = default_name(Path::new(name));
    let planned = plan::plan(
        &document,
        &default_name,
        &mut locate,
        &mut weights,
        &devices,
    );
    let (plan, warnings) = planned.map_err(|found| found.to_json(&document.sources))?;
    Ok(Planned {
        plan,
        warnings: warnings.to_json(&document.sources),
    })
}

/// Data sets that need no files.
fn locate(spec: &DataSpec) -> Result<Located, DataError> {
    let nowhere = || PathBuf::from("/");
    let folders = Folders {
        base: nowhere(),
        cache: nowhere(),
    };
    let refused = |what: &str| {
        DataError::new(format!("{what} cannot be read here"))
            .note("the page has no access to files")
            .help("use embedded data (`iris`, `digits`) or generated data, or train the file with `runner run`")
    };
    match &spec.source {
        DataSource::Files(files) => {
            let shown: Vec<String> = files.path.iter().map(|path| format!("`{path}`")).collect();
            Err(refused(&shown.join(", ")))
        }
        DataSource::Mnist { fallback, .. } if *fallback != Fallback::Digits => {
            Err(refused("the files of MNIST")
                .help("or let `data.fallback = \"digits\"` use the embedded digits"))
        }
        _ => data::locate(spec, &folders, None, &|_, _| {}),
    }
}

/// The only device of the page, and why there are no others.
fn devices() -> Inventory {
    let here = Listed {
        device: FLEX,
        state: State::Found(Found {
            name: "WebAssembly, pure-Rust kernels".into(),
            driver: None,
            memory_bytes: None,
            precisions: vec![Precision::F32],
            kind: DeviceKind::Host,
            card: HOST.into(),
        }),
    };
    let others = Backend::ALL.iter().map(|(backend, _, _)| *backend);
    let others = others.filter(|backend| *backend != FLEX.backend);
    let missing = others.flat_map(|backend| {
        let reason = "the page computes on the processor";
        let remedy = "train the file with `runner run`";
        Inventory::missing(backend, reason.into(), remedy.into()).0
    });
    Inventory([here].into_iter().chain(missing).collect())
}

/// What the page shows of a plan.
pub fn shown(planned: &Planned) -> Json {
    let plan = &planned.plan;
    json!({
        "experiment": plan.experiment,
        "question": plan.question,
        "objective": plan.objective.name(),
        "axes": plan.axes,
        "notices": plan.notices,
        "warnings": planned.warnings,
        "runs": plan.runs.iter().map(run).collect::<Vec<_>>(),
    })
}

fn run(run: &RunPlan) -> Json {
    let network = &run.network;
    let layers = network.layers.iter().map(|layer| {
        let kind = serde_json::to_value(&layer.kind).unwrap_or_default();
        let inputs = layer.inputs.iter().map(|input| match input.layer {
            Some(at) => json!(network.layers[at].name),
            None => json!("input"),
        });
        json!({
            "name": layer.name,
            "type": kind.get("type").cloned().unwrap_or_default(),
            "inputs": inputs.collect::<Vec<_>>(),
            "shape": layer.shape,
            "parameters": layer.num_parameters,
        })
    });
    json!({
        "id": run.id,
        "trial": run.trial,
        "seed": run.seed,
        "fingerprint": run.fingerprint,
        "axes": run.axes,
        "task": run.task.kind,
        "objective": run.objective.name(),
        "epochs": run.train.epochs,
        "batch_size": run.train.batch_size,
        "steps_per_epoch": run.steps_per_epoch,
        "steps": run.num_steps(),
        "data": {
            "name": run.data.dataset.name(),
            "train": run.data.num_train,
            "valid": run.data.num_valid,
            "test": run.data.num_test,
            "shape": run.data.input.shape,
            "target": run.data.target.show(),
        },
        "network": {
            "shape": network.items.dims,
            "parameters": network.num_parameters,
            "multiply_adds": network.multiply_adds_per_item,
            "layers": layers.collect::<Vec<_>>(),
        },
    })
}
