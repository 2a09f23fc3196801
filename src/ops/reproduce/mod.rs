//! Reproduces a run from its folder, compares it step by step, and grades the result.

mod again;
mod lineage;
mod original;
mod parts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Program, Progress, Sink};
use crate::dispatch::Cancel;
use crate::error::Error;
use crate::model::has_parts;
use crate::train::weight_distances;
use again::{here, train};
pub(super) use original::side;
use original::{Original, free, originals};
use parts::Parts;
use runner_core::data::{self, DataPlan, Dataset, Trust};
use runner_core::diagnostic::Diagnostic;
use runner_core::event::{Change, Outcome};
use runner_core::plan::{Relief, RunPlan};
use runner_core::record::{RunFolder, write_json};
use runner_core::reproduce::{
    AtLeast, Comparison, Grade, Side, WeightDistance, environment_differences,
};
use runner_core::spec::backend::{Arithmetic, DeviceName};
use runner_core::spec::failure::OnFailure;
use runner_core::spec::section::Choice;

/// What is reproduced, and how.
#[derive(Clone)]
pub struct Reproduce {
    /// The folder of a run, of an experiment for all of its completed runs, or a capsule.
    pub path: PathBuf,
    /// The program that trains.
    pub program: Program,
    /// The folder with the data's files, if they have moved.
    pub data: Option<PathBuf>,
    /// The tolerance that the grade is based on.
    pub at_least: AtLeast,
    /// A different device than the original's.
    pub device: Option<DeviceName>,
    /// Only so many of the first updates.
    pub steps: Option<usize>,
    /// The folder of the new run; by default below `reproduced/` of the experiment, or for a capsule in the current
    /// folder.
    pub out: Option<PathBuf>,
    /// The maximum unpacked size of a capsule in bytes; 200 times its packed size by default.
    pub max_unpacked: Option<u64>,
    /// Cancels the training, from [`Progress::MayCancel`] on.
    pub cancel: Cancel,
}

impl Reproduce {
    /// Reproduces everything in a path, to the bit.
    pub fn new(path: impl Into<PathBuf>, program: Program) -> Self {
        Self {
            path: path.into(),
            program,
            data: None,
            at_least: AtLeast::Bitwise,
            device: None,
            steps: None,
            out: None,
            max_unpacked: None,
            cancel: Cancel::default(),
        }
    }
}

/// A reproduced run: `reproduction.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduction {
    /// The run's id.
    pub run: String,
    /// The folder of the original.
    pub original: PathBuf,
    /// The objective.
    pub metric: String,
    /// Differences between the original environment and the current one: name, then, now.
    pub environment: Vec<[String; 3]>,
    /// The comparison.
    pub comparison: Comparison,
    /// How well it was reproduced.
    #[serde(flatten)]
    pub grade: Grade,
}

/// The reproduced runs.
#[derive(Clone, Debug)]
pub struct Reproduced {
    /// Each with its id; none if it did not finish.
    pub runs: Vec<(String, Option<Reproduction>)>,
}

impl Reproduced {
    /// How many reach the requested grade.
    pub fn num_good(&self, at_least: AtLeast) -> usize {
        let made = self.runs.iter().flat_map(|(_, made)| made);
        made.filter(|made| made.grade.is(at_least)).count()
    }
}

/// Reproduces the run of a folder or a capsule, or all completed runs of an experiment, and compares them with the
/// recorded numbers. The sink receives each as [`Progress::Reproduced`].
///
/// # Errors
///
/// [`Error::Refused`] if the run does not exist, its data is missing or different, or a file cannot be written;
/// [`Error::Interrupted`] if it was cancelled. A run that differs is not an error.
///
/// ```no_run
/// use burn_runner::ops::{self, Program, Reproduce};
/// use burn_runner::reproduce::AtLeast;
///
/// let program = Program::at("target/release/runner");
/// let options = Reproduce::new("results/iris_csv/runs/hidden=4-s1", program);
/// let reproduced = ops::reproduce(&options, &ops::quiet)?;
/// assert_eq!(reproduced.num_good(AtLeast::Bitwise), 1);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn reproduce(options: &Reproduce, sink: &Sink<'_>) -> Result<Reproduced, Error> {
    let originals = originals(options, sink)?;
    let several = originals.len() > 1;
    let mut runs = Vec::new();
    for original in &originals {
        let place = match &options.out {
            Some(out) if several => out.join(&original.plan.id),
            Some(out) => out.clone(),
            None => original.place.clone(),
        };
        let made = one(original, &place, options, sink)?;
        runs.push((original.plan.id.clone(), made));
    }
    Ok(Reproduced { runs })
}

/// Reproduces one run; none if it did not finish.
fn one(
    original: &Original,
    wanted: &Path,
    options: &Reproduce,
    sink: &Sink<'_>,
) -> Result<Option<Reproduction>, Error> {
    let (before, plan) = lineage::planned(original, options);
    has_parts(plan.unusable_part().or(plan.missing_in_training())).map_err(Error::Refused)?;
    let parts = Parts::of(original, options.steps.is_some());
    let step = |text: &str| sink(Progress::Step(text));
    step(&format!("reproducing {}", original.folder.0.display()));
    tell_differences(original, &plan, &parts, options, sink);
    verify_data(original, &plan)?;
    let then = original
        .side()
        .map_err(|e| Error::unwritable(&original.folder.0, &e))?;
    refuse_steps(options, &then)?;
    let place = free(wanted).map_err(|e| Error::unwritable(wanted, &e))?;
    let folder = RunFolder(place.clone());
    let unwritable = |e: std::io::Error| Error::unwritable(&place, &e);
    folder.write_plan(&plan).map_err(unwritable)?;
    let all: Vec<&RunPlan> = before.iter().collect();
    folder.write_lineage(&all).map_err(unwritable)?;
    step(&format!("the new run is in {}", place.display()));
    let trained = match lineage::begin(original, &before, (&plan, &folder), options, sink)? {
        Some(reason) => Err(reason),
        None => {
            let steps = options.steps.map(|steps| steps.to_string());
            let end: Vec<String> = steps
                .into_iter()
                .flat_map(|steps| ["--last-step".to_owned(), steps])
                .collect();
            let record = train((&plan, &folder), &end, original, options, sink)?;
            match &record.outcome {
                Some(Outcome::Completed) => Ok(record),
                other => Err(reason_of(other.as_ref())),
            }
        }
    };
    let record = match trained {
        Ok(record) => record,
        Err(reason) => {
            step(&format!("not reproduced: {reason}"));
            return Ok(None);
        }
    };
    let now = side(&folder, &plan, &record).map_err(unwritable)?;
    let reproduction = compared(original, &folder, &plan, (&then, &now), parts, options);
    let path = place.join("reproduction.json");
    write_json(&path, &reproduction).map_err(|e| Error::unwritable(&path, &e))?;
    sink(Progress::Reproduced(&reproduction));
    Ok(Some(reproduction))
}

/// Why a run was not completed.
fn reason_of(outcome: Option<&Outcome>) -> String {
    match outcome {
        Some(Outcome::Failed { class, message, .. }) => {
            format!("{}: {message}", class.name())
        }
        _ => "it was stopped".into(),
    }
}

/// The plan of the new run.
fn planned_now(original: &RunPlan, options: &Reproduce) -> RunPlan {
    let mut plan = original.clone();
    // Failures must be visible, and not retried until they disappear.
    plan.on_failure = OnFailure::default();
    plan.on_exceed = Relief::default();
    plan.skip = None;
    plan.time_limit_secs = None;
    plan.memory_limit_bytes = None;
    if let Some(device) = options.device {
        plan.device = device;
        plan = plan.with_fingerprint();
    }
    plan = plan.with_forecast();
    if let Some(data) = &options.data {
        plan.data = moved(&plan, data);
    }
    plan
}

/// Reports differences in the environment before the run is trained.
fn tell_differences(
    original: &Original,
    plan: &RunPlan,
    parts: &Parts,
    options: &Reproduce,
    sink: &Sink<'_>,
) {
    for what in &parts.edited {
        sink(Progress::Note(&format!("the record was edited: {what}")));
    }
    match &original.environment {
        None => sink(Progress::Note(
            "the environment of the original run is unknown, so that differences cannot be listed",
        )),
        Some(then) => {
            let differences =
                environment_differences(then, &here(plan, &options.program), plan.arithmetic);
            if differences.is_empty() {
                sink(Progress::Step(match plan.arithmetic {
                    Arithmetic::Fast => "same build, processor and system as the original",
                    Arithmetic::Portable => {
                        "same build as the original; the processor changes no bit of portable arithmetic"
                    }
                }));
            }
            for [name, then, now] in differences {
                sink(Progress::Step(&format!(
                    "differs: {name} was {then}, is {now}"
                )));
            }
        }
    }
    let moved = original.record.attempts.adjustments.iter().find_map(|a| {
        let is_later = options.device.is_none() && a.from_step > 0;
        match a.change {
            Change::Device(device) if is_later => Some((device, a.from_step)),
            _ => None,
        }
    });
    if let Some((device, step)) = moved {
        sink(Progress::Note(&format!(
            "the original run resumed on `{device}` at step {step}, and is reproduced there from the start: its losses cannot be equal to the bit"
        )));
    }
}

fn refuse_steps(options: &Reproduce, then: &Side) -> Result<(), Error> {
    let num_traced = then.trace.losses.len();
    match options.steps.filter(|steps| *steps > num_traced) {
        None => Ok(()),
        Some(steps) => {
            let message =
                format!("`--steps {steps}` exceeds the {num_traced} steps in the trace of the run");
            let diagnostic = Diagnostic::error("usage", message);
            Err(Error::refused(diagnostic.help("use a smaller number")))
        }
    }
}

/// The comparison of two runs, graded.
fn compared(
    original: &Original,
    folder: &RunFolder,
    plan: &RunPlan,
    (then, now): (&Side, &Side),
    parts: Parts,
    options: &Reproduce,
) -> Reproduction {
    let Parts {
        edited,
        mut missing,
    } = parts;
    let weights = match options.steps {
        Some(_) => None,
        None => distances(original, folder, plan, &mut missing),
    };
    let mut comparison = Comparison::of(then, now, options.steps, weights.as_deref());
    comparison.not_compared.extend(missing);
    comparison.edited = edited;
    let grade = Grade::of(&comparison, original.spread(), options.at_least);
    let environment = folder.read_environment().ok().flatten();
    let differences = match (&original.environment, &environment) {
        (Some(then), Some(now)) => environment_differences(then, now, plan.arithmetic),
        _ => Vec::new(),
    };
    Reproduction {
        run: original.plan.id.clone(),
        metric: plan.objective.name(),
        original: original.folder.0.clone(),
        environment: differences,
        comparison,
        grade,
    }
}

/// The saved weights of a run: initial, final, best by the objective, and averages.
const WEIGHTS: [&str; 5] = ["initial", "final", "best", "ema", "swa"];

/// The distances of both runs' weights. Unreadable weights of the original are noted as missing.
fn distances(
    original: &Original,
    folder: &RunFolder,
    plan: &RunPlan,
    missing: &mut Vec<String>,
) -> Option<Vec<WeightDistance>> {
    let mut all = Vec::new();
    let mut has_final = false;
    for name in WEIGHTS {
        let [then, now] = [&original.folder, folder].map(|folder| folder.model(name));
        if !then.is_file() || !now.is_file() {
            let file = format!("`model/{name}.bpk`");
            // The record about it was checked before; earlier versions have none.
            if now.exists() && !missing.iter().any(|what| what.contains(&file)) {
                missing.push(format!("the weights of {file}, which is missing"));
            }
            continue;
        }
        match weight_distances((&then, plan), (&now, plan)) {
            Ok(distances) => {
                has_final |= name == "final";
                let named = |mut distance: WeightDistance| {
                    if name != "final" {
                        distance.parameter =
                            format!("{} of `model/{name}.bpk`", distance.parameter);
                    }
                    distance
                };
                all.extend(distances.into_iter().map(named));
            }
            Err(reason) => missing.push(format!("the weights of `model/{name}.bpk`: {reason}")),
        }
    }
    has_final.then_some(all)
}

/// The plan's data, each file or folder under its own name in `folder`.
fn moved(plan: &RunPlan, folder: &Path) -> DataPlan {
    let roots = plan.data.roots();
    let place = |key: &str, number: usize| {
        let root = roots
            .iter()
            .find(|root| root.key == key && root.number == number)?;
        match key {
            // The MNIST files have fixed names.
            "folder" => Some(folder.to_owned()),
            _ => Some(folder.join(root.path.file_name()?)),
        }
    };
    let cache = match &plan.data.dataset {
        Dataset::Files { cache, .. } | Dataset::Mnist { cache, .. } => cache.clone(),
        _ => PathBuf::new(),
    };
    plan.data.clone().relocated(&place, &cache)
}

/// The same items must be there: other data is not a reproduction. The content of files is read, not looked up.
fn verify_data(original: &Original, plan: &RunPlan) -> Result<(), Error> {
    let loaded = data::load_by(&plan.data, Trust::Bytes, &|_, _| {}).map_err(|error| {
        let mut diagnostic = error.to_diagnostic();
        diagnostic.helps = vec![format!(
            "restore the original data, or set its folder with `--data DIR`; {}",
            "`runner bundle` packs it with a run"
        )];
        Error::refused(diagnostic)
    })?;
    let then = original.record.started.as_ref().map(|s| &s.data_digests);
    let other = |(split, digest): &(&String, &String)| {
        let then: Option<&BTreeMap<String, String>> = then;
        then.and_then(|then| then.get(*split))
            .is_some_and(|then| then != *digest)
    };
    match loaded.digests.iter().find(other) {
        None => Ok(()),
        Some((split, _)) => {
            let message = format!("the {split} split has different items than in the original run");
            let diagnostic = Diagnostic::error("data", message);
            Err(Error::refused(diagnostic.help(
                "restore the original data; `runner bundle` packs it with a run",
            )))
        }
    }
}
