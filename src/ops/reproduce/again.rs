//! The training of the reproduction.

use std::path::Path;

use super::Reproduce;
use super::original::Original;
use crate::dispatch::{Hardware, Settings, Task, Urgency};
use crate::error::Error;
use crate::ops::program::{kernels_argument, num_cores};
use crate::ops::trained::train_all;
use crate::ops::{Program, Progress, Sink, Training, devices_of};
use crate::train::TEACHER;
use runner_core::event::{Attempts, Change, Outcome};
use runner_core::plan::RunPlan;
use runner_core::plan::teacher::TeacherPlan;
use runner_core::record::{Collector, Environment, ExperimentFolder, RunFolder, RunRecord};
use runner_exchange::{constant, init};

/// Trains a run in a worker, up to an end if its arguments name one. The original has its adjustments again; what it
/// begins as a copy of had none.
pub(super) fn train(
    (plan, folder): (&RunPlan, &RunFolder),
    end: &[String],
    original: &Original,
    options: &Reproduce,
    sink: &Sink<'_>,
) -> Result<RunRecord, Error> {
    let settings = Settings {
        program: options.program.find()?.to_owned(),
        jobs: 1,
        threads: num_cores(),
        hardware: Hardware::unknown(),
        time_limit: None,
    };
    let mut adjustments = original.record.attempts.adjustments.clone();
    if plan.id != original.plan.id {
        adjustments.clear();
    }
    if options.device.is_some() {
        adjustments.retain(|adjustment| !matches!(adjustment.change, Change::Device(_)));
    }
    let task = Task {
        shown: None,
        plan: plan.clone(),
        folder: folder.0.clone(),
        log: folder.run_log(),
        arguments: [
            worker_arguments(plan, folder, original, options)?,
            end.to_vec(),
        ]
        .concat(),
        attempts: Attempts::adjusted(&adjustments),
    };
    let runs = vec![(plan.clone(), folder.clone())];
    let mut collector = Collector::new(runs, here(plan, &options.program))
        .map_err(|e| Error::unwritable(&folder.0, &e))?;
    sink(Progress::Training(&Training {
        experiment: &plan.experiment,
        runs: std::slice::from_ref(plan),
        steps: &[plan.first_step()],
        jobs: 1,
        notify: &[],
    }));
    let cancel = &options.cancel;
    sink(Progress::MayCancel);
    train_all(&[task], &settings, cancel, &mut collector, sink).map_err(|lost| lost.error)?;
    let record = RunRecord::read(folder).map_err(|e| Error::unwritable(&folder.0, &e))?;
    let was_stopped = cancel.reason().is_some() && record.outcome == Some(Outcome::Interrupted);
    if cancel.urgency() != Urgency::None || was_stopped {
        return Err(Error::Interrupted(String::new()));
    }
    Ok(record)
}

/// What the worker takes from the original's folder: weights that may have changed since, and kernels.
fn worker_arguments(
    plan: &RunPlan,
    folder: &RunFolder,
    original: &Original,
    options: &Reproduce,
) -> Result<Vec<String>, Error> {
    let mut arguments = options.program.worker_arguments();
    let initial = original.folder.model("initial");
    // A file of initial weights may be gone or other work by now; the run has saved its initial weights.
    let mut init = plan.init.iter();
    let mut constants = plan.constants.iter();
    let mut is_gone = || {
        !init.all(|from| init::is_unchanged(from, &plan.network))
            || !constants.all(constant::is_unchanged)
    };
    if initial.is_file() && (options.device.is_some() || is_gone()) {
        // Another device generates different random numbers from the same seed: the purpose is to compare its
        // computations.
        let initial = std::path::absolute(&initial).unwrap_or(initial);
        arguments.extend(["--initial".to_owned(), initial.display().to_string()]);
    }
    // So is the teacher's run.
    let teacher = original.folder.model(TEACHER);
    let is_gone = |source: &TeacherPlan| {
        let TeacherPlan {
            weights, network, ..
        } = source;
        !weights.path.is_absolute() || !init::is_unchanged(weights, network)
    };
    if teacher.is_file() && plan.teacher.as_ref().is_some_and(is_gone) {
        let teacher = std::path::absolute(&teacher).unwrap_or(teacher);
        arguments.extend(["--teacher".to_owned(), teacher.display().to_string()]);
    }
    // The kernels that the original's experiment has selected are part of how it was computed.
    let experiment = original.folder.0.parent().and_then(Path::parent);
    let experiment = experiment.map(|path| ExperimentFolder(path.to_owned()));
    let is_host = plan.device.backend.is_host();
    if let Some(experiment) = experiment.filter(|e| !is_host && e.kernels().is_dir()) {
        // A copy: further selections are not part of the original.
        let copy = ExperimentFolder(folder.0.clone());
        copy_files(&experiment.kernels(), &copy.kernels())
            .map_err(|e| Error::unwritable(&copy.kernels(), &e))?;
        arguments.extend(kernels_argument(&copy));
    }
    Ok(arguments)
}

/// The environment of the reproduction. A driver is only queried if needed.
pub(super) fn here(plan: &RunPlan, program: &Program) -> Environment {
    let here = Environment::here(Path::new("."), None);
    if plan.device.backend.is_host() {
        here
    } else {
        let mut here = here.with_drivers(&devices_of(plan.device.backend, program));
        let name = plan.device.to_string();
        here.drivers.retain(|device, _| *device == name);
        here
    }
}

/// Copies all files of a folder, including subfolders.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_files(&entry.path(), &place)?;
        } else if kind.is_file() {
            // Links and devices do not belong among kernels.
            std::fs::copy(entry.path(), &place)?;
        }
    }
    Ok(())
}
