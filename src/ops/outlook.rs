//! The remaining work and the expected memory of the runs of an experiment.

use std::io;
use std::path::PathBuf;

use super::probe::calibrations;
use super::{Experiment, Planned, Sink, other_builds, plan};
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::plan::{Expected, Plan, RunPlan};
use runner_core::record::{
    ExperimentFolder, OTHER_FORMAT_REMEDY, RunRecord, Status, is_other_format, remedy, status,
};
use runner_core::show::plain_io_error;

/// An experiment and a results folder.
#[derive(Clone, Debug)]
pub struct OutlookOptions {
    /// The experiment file.
    pub experiment: Experiment,
    /// The parent folder of the experiments' folders.
    pub results: PathBuf,
}

impl OutlookOptions {
    /// This experiment, with its results in the folder `results`.
    pub fn new(experiment: Experiment) -> Self {
        Self {
            experiment,
            results: "results".into(),
        }
    }
}

/// The remaining work of an experiment.
#[derive(Debug)]
pub struct Outlook {
    /// The experiment.
    pub planned: Planned,
    /// The status of each run; `None` if no run has started and none is to be skipped.
    pub statuses: Option<Vec<Status>>,
    /// Each run, with its adjustments if it will be resumed, and its memory forecast.
    pub expected: Vec<(RunPlan, Expected)>,
    /// Notes about runs that another build trained, as sentences.
    pub other_builds: Vec<String>,
}

/// Compares an experiment with its results folder: which runs are still to be trained, and the memory they are expected
/// to need. Nothing is written.
///
/// # Errors
///
/// Like [`plan()`]; [`Error::Refused`] if the folder cannot be read.
///
/// ```
/// use burn_runner::ops::{self, Experiment, OutlookOptions};
///
/// let mut options = OutlookOptions::new(Experiment::new("experiments/iris_csv.toml"));
/// options.results = "results/nothing".into();
/// let outlook = ops::outlook(&options, &ops::quiet)?;
/// assert_eq!(outlook.expected.len(), 9);
/// assert!(outlook.statuses.is_none());
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn outlook(options: &OutlookOptions, sink: &Sink<'_>) -> Result<Outlook, Error> {
    let planned = plan(&options.experiment, sink)?;
    let folder = ExperimentFolder(options.results.join(&planned.plan.experiment));
    let statuses = statuses(&planned.plan, &folder).map_err(|error| {
        let diagnostic = Diagnostic::error("results", plain_io_error(&error));
        Error::refused(diagnostic.help(if is_other_format(&error) {
            OTHER_FORMAT_REMEDY
        } else {
            remedy(&error)
        }))
    })?;
    let runs = planned.plan.runs.iter();
    let other_builds = match &statuses {
        Some(statuses) => other_builds(&folder, runs.clone().zip(statuses)),
        None => Vec::new(),
    };
    let calibrations = calibrations(&options.experiment.program);
    let expected = runs.map(|run| {
        let run = adjusted(run, &folder);
        let expected = calibrations.expected(&run, None);
        (run, expected)
    });
    Ok(Outlook {
        expected: expected.collect(),
        statuses,
        other_builds,
        planned,
    })
}

/// The status of each run; `None` if the folder does not exist and nothing is skipped.
fn statuses(plan: &Plan, folder: &ExperimentFolder) -> io::Result<Option<Vec<Status>>> {
    let mut runs = plan.runs.iter();
    if !folder.plan_json().exists() && runs.clone().all(|run| run.skip.is_none()) {
        return Ok(None);
    }
    let statuses = runs.by_ref().map(|run| status(run, &folder.run(&run.id)));
    statuses.collect::<io::Result<_>>().map(Some)
}

/// A run with its adjustments, if it will be resumed.
fn adjusted(run: &RunPlan, folder: &ExperimentFolder) -> RunPlan {
    let folder = folder.run(&run.id);
    if !folder.events_jsonl().exists() {
        return run.clone();
    }
    // Unreadable runs are reported with their status.
    let record = RunRecord::read_for(&folder, run).unwrap_or_default();
    run.adjusted(&record.attempts.adjustments)
}
