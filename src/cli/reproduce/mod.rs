//! `runner reproduce`: a run made again from its folder, compared step by step, and graded.

mod original;
mod parts;
mod show;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use serde::Serialize;

use super::experiment::refuse;
use super::follow::{follow, look};
use super::output::Output;
use super::prepare::disk;
use super::{FAILED, INTERRUPTED, Logging, OK, ReproduceArgs};
use crate::dispatch::{self, Cancel, Hardware, Observed, Settings, Task, Urgency};
use crate::ops::devices_of;
use crate::train::weight_distances;
pub use original::side;
use original::{Original, free, originals};
use parts::Parts;
use runner_core::data::{self, DataPlan, Dataset, Trust};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::event::{Attempts, Change, Outcome};
use runner_core::plan::{Relief, RunPlan};
use runner_core::record::{
    Collector, Environment, ExperimentFolder, RunFolder, RunRecord, write_json,
};
use runner_core::reproduce::{Comparison, Grade, WeightDistance, environment_differences};
use runner_core::spec::failure::OnFailure;
use runner_core::spec::section::Choice;
use runner_report::console::{Board, Console, Mode};
use show::show;

/// `reproduction.json`.
#[derive(Serialize)]
struct Reproduction {
    run: String,
    original: PathBuf,
    metric: String,
    environment: Vec<[String; 3]>,
    comparison: Comparison,
    #[serde(flatten)]
    grade: Grade,
}

/// Makes the run of a folder again, or all completed runs of an experiment.
pub fn reproduce(args: &ReproduceArgs, logging: &Logging, output: &mut Output) -> u8 {
    match try_reproduce(args, logging, output) {
        Ok(code) | Err(code) => code,
    }
}

fn try_reproduce(args: &ReproduceArgs, logging: &Logging, output: &mut Output) -> Result<u8, u8> {
    let originals = originals(args, output)?;
    let several = originals.len() > 1;
    let mut verdicts = Vec::new();
    for original in &originals {
        let place = match &args.out {
            Some(out) if several => out.join(&original.plan.id),
            Some(out) => out.clone(),
            None => original.place.clone(),
        };
        let grade = one(original, &place, args, logging, output)?;
        verdicts.push((original.plan.id.clone(), grade));
    }
    let is_good = |grade: &Option<Grade>| grade.as_ref().is_some_and(|g| g.is(args.at_least));
    if several && !args.json {
        let good = verdicts.iter().filter(|(_, grade)| is_good(grade)).count();
        for (id, grade) in &verdicts {
            let grade = grade
                .as_ref()
                .map_or("not completed".into(), Grade::to_string);
            output.print(&format!("{id}: {grade}"));
        }
        output.say(&format!(
            "{good} of {} reproduced as asked for",
            counted(verdicts.len(), "run")
        ));
    }
    Ok(if verdicts.iter().all(|(_, grade)| is_good(grade)) {
        OK
    } else {
        FAILED
    })
}

/// Makes one run again; none when it did not come to its end.
fn one(
    original: &Original,
    wanted: &Path,
    args: &ReproduceArgs,
    logging: &Logging,
    output: &mut Output,
) -> Result<Option<Grade>, u8> {
    let mut plan = original.plan.clone();
    // What fails now is to be seen, and not to be tried until it does not.
    plan.on_failure = OnFailure::default();
    plan.on_exceed = Relief::default();
    plan.skip = None;
    plan.time_limit_secs = None;
    plan.memory_limit_bytes = None;
    if let Some(device) = args.device {
        plan.device = device;
        plan = plan.with_fingerprint();
    }
    plan = plan.with_forecast();
    if let Some(data) = &args.data {
        plan.data = moved(&plan, data);
    }
    let parts = Parts::of(original, args.steps.is_some());
    output.say(&format!("{} is made again", original.folder.0.display()));
    for what in &parts.edited {
        output.say(&format!("note: the record was edited: {what}"));
    }
    say_differences(original, &here(&plan), output);
    let moved = original.record.attempts.adjustments.iter().find_map(|a| {
        let is_later = args.device.is_none() && a.from_step > 0;
        match a.change {
            Change::Device(device) if is_later => Some((device, a.from_step)),
            _ => None,
        }
    });
    if let Some((device, step)) = moved {
        output.say(&format!(
            "note: the run went on on `{device}` from step {step} on, and is made there from the start now: its losses cannot be the same to the bit"
        ));
    }
    verify_data(original, &plan, output)?;
    let then = original
        .side()
        .map_err(|e| disk(&original.folder.0, &e, output))?;
    if let Some(steps) = args.steps.filter(|steps| *steps > then.trace.losses.len()) {
        let message = format!(
            "`--steps {steps}` is more than the {} that the run left a trace of",
            then.trace.losses.len()
        );
        return Err(refuse(
            Diagnostic::error("usage", message).help("ask for fewer"),
            output,
        ));
    }
    let place = &free(wanted).map_err(|e| disk(wanted, &e, output))?;
    let folder = RunFolder(place.to_owned());
    folder
        .write_plan(&plan)
        .map_err(|e| disk(place, &e, output))?;
    output.say(&format!("the new run is in {}", place.display()));
    let record = train(&plan, &folder, original, args, logging, output)?;
    match &record.outcome {
        Some(Outcome::Completed) => {}
        other => {
            let reason = match other {
                Some(Outcome::Failed { class, message, .. }) => {
                    format!("{}: {message}", class.name())
                }
                _ => "it was stopped".into(),
            };
            output.say(&format!("not reproduced: {reason}"));
            return Ok(None);
        }
    }
    let now = side(&folder, &plan, &record).map_err(|e| disk(place, &e, output))?;
    let Parts {
        edited,
        mut missing,
    } = parts;
    let weights = match args.steps {
        Some(_) => None,
        None => distances(original, &folder, &plan, &mut missing),
    };
    let mut comparison = Comparison::of(&then, &now, args.steps, weights.as_deref());
    comparison.not_compared.extend(missing);
    comparison.edited = edited;
    let grade = Grade::of(&comparison, original.spread(), args.at_least);
    let environment = folder.read_environment().ok().flatten();
    let differences = match (&original.environment, &environment) {
        (Some(then), Some(now)) => environment_differences(then, now),
        _ => Vec::new(),
    };
    let reproduction = Reproduction {
        run: plan.id.clone(),
        metric: plan.objective.name(),
        original: original.folder.0.clone(),
        environment: differences,
        comparison,
        grade,
    };
    let path = place.join("reproduction.json");
    write_json(&path, &reproduction).map_err(|e| disk(&path, &e, output))?;
    if args.json {
        output.print(&serde_json::to_string(&reproduction).unwrap_or_default())
    } else {
        show(&reproduction, args.steps, output)
    }
    Ok(Some(reproduction.grade))
}

/// The weights that a run leaves: as it began, as it ended, and with the best objective.
const WEIGHTS: [&str; 4] = ["initial", "final", "best", "ema"];

/// How far the weights of both runs are apart. What cannot be read of the original is noted as missing.
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
            // What the record says of it was looked at before; of earlier versions it says nothing.
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

/// Where the run is made now. A driver is asked for only when one is needed.
fn here(plan: &RunPlan) -> Environment {
    let here = Environment::here(Path::new("."), None);
    if plan.device.backend.is_host() {
        here
    } else {
        let mut here = here.with_drivers(&devices_of(plan.device.backend));
        let name = plan.device.to_string();
        here.drivers.retain(|device, _| *device == name);
        here
    }
}

/// Copies all files of a folder, those of folders in it included.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_files(&entry.path(), &place)?;
        } else if kind.is_file() {
            // What is a link or a device has no place among kernels.
            std::fs::copy(entry.path(), &place)?;
        }
    }
    Ok(())
}

fn say_differences(original: &Original, here: &Environment, output: &mut Output) {
    let Some(then) = &original.environment else {
        output.say("note: where the run was made is not known, nor what differs here");
        return;
    };
    let differences = environment_differences(then, here);
    if differences.is_empty() {
        output.say("the same build, processor and system as then");
    }
    for [name, then, now] in differences {
        output.say(&format!("differs: {name} was {then}, is {now}"));
    }
}

/// The plan's data, each file or folder under its own name in `folder`.
fn moved(plan: &RunPlan, folder: &Path) -> DataPlan {
    let roots = plan.data.roots();
    let place = |key: &str, number: usize| {
        let root = roots
            .iter()
            .find(|root| root.key == key && root.number == number)?;
        match key {
            // The files of MNIST have names of their own.
            "folder" => Some(folder.to_owned()),
            _ => Some(folder.join(root.path.file_name()?)),
        }
    };
    let cache = match &plan.data.dataset {
        Dataset::Files { cache, .. } => cache.clone(),
        _ => PathBuf::new(),
    };
    plan.data.clone().relocated(&place, &cache)
}

/// The same items must be there: other data is no reproduction. What files hold is read, not remembered.
fn verify_data(original: &Original, plan: &RunPlan, output: &mut Output) -> Result<(), u8> {
    let loaded = data::load_by(&plan.data, Trust::Bytes, &|_, _| {}).map_err(|error| {
        let mut diagnostic = error.to_diagnostic();
        diagnostic.helps = vec![format!(
            "bring back the data of then, or say with `--data DIR` where it is; {}",
            "`runner bundle` keeps it with a run"
        )];
        refuse(diagnostic, output)
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
            let message = format!("the {split} split holds other items than the run was made with");
            let diagnostic = Diagnostic::error("data", message);
            Err(refuse(
                diagnostic.help("bring back the data of then; `runner bundle` keeps it with a run"),
                output,
            ))
        }
    }
}

/// Trains the run in a worker, changed on the way as the original was.
fn train(
    plan: &RunPlan,
    folder: &RunFolder,
    original: &Original,
    args: &ReproduceArgs,
    logging: &Logging,
    output: &mut Output,
) -> Result<RunRecord, u8> {
    let internal =
        |reason: String, output: &mut Output| refuse(Diagnostic::error("internal", reason), output);
    let program = std::env::current_exe()
        .map_err(|e| internal(format!("cannot find the runner program: {e}"), output))?;
    let settings = Settings {
        program,
        jobs: 1,
        threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
        hardware: Hardware::unknown(),
        time_limit: None,
    };
    let mut arguments = super::run::worker_arguments(logging, None);
    arguments.extend(super::run::build_argument());
    let initial = original.folder.model("initial");
    if args.device.is_some() && initial.is_file() {
        // Another device draws other numbers from the same seed: what is to be seen is how it computes.
        let initial = std::path::absolute(&initial).unwrap_or(initial);
        arguments.extend(["--initial".to_owned(), initial.display().to_string()]);
    }
    // The kernels that the experiment of the original has chosen are a part of how it was computed.
    let experiment = original.folder.0.parent().and_then(Path::parent);
    let experiment = experiment.map(|path| ExperimentFolder(path.to_owned()));
    let is_host = plan.device.backend.is_host();
    if let Some(experiment) = experiment.filter(|e| !is_host && e.kernels().is_dir()) {
        // A copy: what is chosen besides is no part of the original.
        let copy = ExperimentFolder(folder.0.clone());
        copy_files(&experiment.kernels(), &copy.kernels())
            .map_err(|e| disk(&copy.kernels(), &e, output))?;
        arguments.extend(super::run::kernels_argument(&copy));
    }
    if let Some(steps) = args.steps {
        arguments.extend(["--last-step".to_owned(), steps.to_string()]);
    }
    let mut adjustments = original.record.attempts.adjustments.clone();
    if args.device.is_some() {
        adjustments.retain(|adjustment| !matches!(adjustment.change, Change::Device(_)));
    }
    let task = Task {
        plan: plan.clone(),
        folder: folder.0.clone(),
        log: folder.run_log(),
        arguments,
        attempts: Attempts::adjusted(&adjustments),
    };
    let mode = if args.json { Mode::Quiet } else { Mode::Normal };
    let board = Board::new(&plan.experiment, std::slice::from_ref(plan), Some(1));
    let mut console = Console::new(vec![board], look(mode, false, true));
    let environment = here(plan);
    let mut collector = Collector::new(vec![(plan.clone(), folder.clone())], environment)
        .map_err(|e| disk(&folder.0, &e, output))?;
    let cancel = Cancel::default();
    super::run::listen_for_signals(cancel.clone());
    let (sender, receiver) = mpsc::channel::<Observed>();
    let (dispatched, collected) = std::thread::scope(|scope| {
        let collecting = scope.spawn(|| {
            let mut collected = Ok(());
            follow(receiver, &mut console, &cancel, |console, observed| {
                let Observed { run, event } = observed;
                let taken = collector.take(run, &event);
                if collected.is_ok() {
                    collected = taken;
                }
                console.observe((0, run), plan, &event, &collector.runs[run].record);
            });
            collected
        });
        let dispatched = dispatch::dispatch(&[task], &settings, &cancel, sender);
        (dispatched, collecting.join())
    });
    dispatched.map_err(|reason| internal(reason, output))?;
    match collected {
        Ok(Ok(())) => {}
        Ok(Err(e)) => return Err(disk(&folder.0, &e, output)),
        Err(_) => return Err(internal("the collector panicked".into(), output)),
    }
    let record = RunRecord::read(folder).map_err(|e| disk(&folder.0, &e, output))?;
    let was_stopped = cancel.reason().is_some() && record.outcome == Some(Outcome::Interrupted);
    if cancel.urgency() != Urgency::None || was_stopped {
        return Err(INTERRUPTED);
    }
    Ok(record)
}
