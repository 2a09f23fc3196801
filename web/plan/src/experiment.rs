//! From the text of an experiment file to its plan.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use runner_core::check::network::Network;
use runner_core::data::{self, DataError, Folders, Located};
use runner_core::diagnostic::{Diagnostic, Diagnostics, Sources};
use runner_core::disk::{self, memory};
use runner_core::init;
use runner_core::plan::init::InitRefusal;
use runner_core::plan::inventory::{DeviceKind, Found, HOST, Inventory, Listed, Missing, State};
use runner_core::plan::{self, Plan, default_name};
use runner_core::spec::backend::{Backend, FLEX, Precision, WGPU};
use runner_core::spec::data::{DataSource, DataSpec, Fallback};
use runner_core::spec::document::Document;
use runner_core::spec::init::InitSpec;
use runner_core::spec::section::Choice;
use runner_web_common::{PROCESSOR, changes, shown};
use serde_json::{Value as Json, json};

/// A planned experiment.
pub struct Planned {
    /// Its runs.
    pub plan: Plan,
    /// The warnings, as JSON.
    warnings: Json,
}

/// The last file that was planned, by text, name and the files at that time.
type Last = ((String, String, u64), Rc<Planned>);

thread_local! {
    // The runs of a sweep are asked for one by one.
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    static GPU: RefCell<State> = RefCell::new(State::Missing(Missing {
        reason: "there is no WebGPU here".into(),
        remedy: "use `flex`".into(),
    }));
}

/// The messages about a file.
pub fn check(text: &str, name: &str) -> Json {
    match plan(text, name) {
        Ok(planned) => planned.warnings.clone(),
        Err(wrong) => wrong,
    }
}

/// Plans a file; the error is all messages about it.
pub fn plan(text: &str, name: &str) -> Result<Rc<Planned>, Json> {
    let key = (text.to_owned(), name.to_owned(), changes());
    let last = LAST.with_borrow(|last| {
        let last = last.as_ref().filter(|(of, _)| *of == key);
        last.map(|(_, planned)| Rc::clone(planned))
    });
    if let Some(planned) = last {
        return Ok(planned);
    }
    let planned = Rc::new(plan_now(text, name)?);
    LAST.replace(Some((key, Rc::clone(&planned))));
    Ok(planned)
}

fn plan_now(text: &str, name: &str) -> Result<Planned, Json> {
    let wrong = |(sources, found): (Sources, Diagnostics)| found.to_json(&sources);
    let mut document = Document::parse(name, text).map_err(wrong)?;
    document.look_up(&|_| None);
    let mut locate = |spec: &DataSpec| locate(spec);
    let mut weights = |_: &InitSpec, _: &Network| {
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

/// The results of locating data, while no file changes.
#[derive(Default)]
struct Known {
    changes: u64,
    results: Vec<(DataSpec, Result<Located, DataError>)>,
}

thread_local! {
    // A file is checked at each key that is pressed, and reading its data takes a while.
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// Results that are kept.
const MOST_KNOWN: usize = 64;

/// The text of a first experiment file for a file or folder that was added.
pub fn starter(path: &str) -> Result<String, DataError> {
    let wishes = init::Wishes {
        file: "FILE".into(),
        ..init::Wishes::default()
    };
    init::look(Path::new(path), Path::new("/"))?.starter(&wishes)
}

/// As the program, in the files that were added.
fn locate(spec: &DataSpec) -> Result<Located, DataError> {
    let changes = changes();
    let found = KNOWN.with_borrow_mut(|known| {
        if known.changes != changes {
            *known = Known {
                changes,
                results: Vec::new(),
            };
        }
        let found = known.results.iter().find(|(of, _)| of == spec);
        found.map(|(_, found)| found.clone())
    });
    if let Some(found) = found {
        return found;
    }
    let found = locate_now(spec);
    KNOWN.with_borrow_mut(|Known { results, .. }| {
        results.truncate(MOST_KNOWN - 1);
        results.insert(0, (spec.clone(), found.clone()));
    });
    found
}

fn locate_now(spec: &DataSpec) -> Result<Located, DataError> {
    let root = PathBuf::from("/");
    let folders = Folders {
        base: root.clone(),
        cache: root.join(".cache"),
    };
    let refused = |what: &str| {
        DataError::new(format!("{what} cannot be read here"))
            .note("the page only reads files that were added to it")
            .help("add the file or folder to the page, or use embedded (`iris`, `digits`) or generated data")
    };
    match &spec.source {
        DataSource::Files(files) if memory::list().is_empty() => {
            let shown: Vec<String> = files.path.iter().map(|path| format!("`{path}`")).collect();
            Err(refused(&shown.join(", ")).key("data.path"))
        }
        DataSource::Mnist {
            root: at, fallback, ..
        } if *fallback != Fallback::Digits
            && !at.as_ref().is_some_and(|at| disk::is_dir(&root.join(at))) =>
        {
            Err(refused("the files of MNIST")
                .help("or let `data.fallback = \"digits\"` use the embedded digits"))
        }
        _ => data::locate(spec, &folders, None, &|_, _| {}),
    }
}

/// The browser's GPU, as its JavaScript found it.
pub fn set_gpu(found: Result<(String, bool), Missing>) {
    GPU.replace(match found {
        Ok((name, is_software)) => State::Found(Found {
            name,
            driver: Some("WebGPU".into()),
            memory_bytes: None,
            precisions: vec![Precision::F32],
            kind: if is_software {
                DeviceKind::Software
            } else {
                DeviceKind::Gpu
            },
            card: WGPU.to_string(),
        }),
        Err(missing) => State::Missing(missing),
    });
    LAST.take();
}

/// The devices of the page, and why there are no others.
fn devices() -> Inventory {
    let processor = Listed {
        device: FLEX,
        state: State::Found(Found {
            name: PROCESSOR.into(),
            driver: None,
            memory_bytes: None,
            precisions: vec![Precision::F32],
            kind: DeviceKind::Host,
            card: HOST.into(),
        }),
    };
    let gpu = Listed {
        device: WGPU,
        state: GPU.with_borrow(Clone::clone),
    };
    let here = [processor, gpu];
    let others = Backend::ALL.iter().map(|(backend, _, _)| *backend);
    let others = others.filter(|backend| here.iter().all(|at| at.device.backend != *backend));
    let missing = others.flat_map(|backend| {
        let reason = "the page computes on the processor and on WebGPU";
        let remedy = "train the file with `runner run`, or use `wgpu`, which is WebGPU here";
        Inventory::missing(backend, reason.into(), remedy.into()).0
    });
    let missing: Vec<_> = missing.collect();
    Inventory(here.into_iter().chain(missing).collect())
}

/// What the page shows of a plan.
pub fn shown(planned: &Planned) -> Json {
    let plan = &planned.plan;
    json!({
        "experiment": plan.experiment,
        "question": plan.question,
        "objective": plan.objective.name(),
        "higher_is_better": plan.objective.metric.higher_is_better(),
        "is_search": plan.search.is_some(),
        "axes": plan.axes,
        "notices": plan.notices,
        "warnings": planned.warnings,
        "runs": plan.runs.iter().map(shown::run).collect::<Vec<_>>(),
    })
}
