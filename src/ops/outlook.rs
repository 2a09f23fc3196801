//! The remaining work and the expected memory of the runs of an experiment.

use std::io;
use std::path::PathBuf;

use super::probe::calibrations;
use super::{Experiment, Planned, Sink, other_builds, plan_as_begun, search_so_far};
use crate::error::{Error, unreadable};
use runner_core::plan::{Basis, Expected, Plan, Room, RunPlan};
use runner_core::record::{self, ExperimentFolder, Index, RunRecord, Status, total_memory};
use runner_report::report::Prospect;

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
    /// Runs that are forecast to exceed their memory limit, grouped by consequence.
    pub excesses: Vec<Excess>,
    /// Notes about runs that another build trained, as sentences.
    pub other_builds: Vec<String>,
    /// What the seeds can show; `None` if there is nothing to compare.
    pub prospect: Option<Prospect>,
}

/// Runs that are forecast to exceed their memory limit, with the same consequence.
#[derive(Clone, Debug)]
pub struct Excess {
    /// The id of the first of them.
    pub run: String,
    /// The memory that it is forecast to need, in bytes.
    pub bytes: u64,
    /// Its limit.
    pub room: Room,
    /// The consequence.
    pub consequence: Consequence,
    /// The number of runs.
    pub num_runs: usize,
}

/// What happens to a run that is forecast to exceed its memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// It is changed according to `memory.on_exceed`.
    Adjusted,
    /// It is refused, since even the certain part of its forecast exceeds the limit.
    Refused,
    /// It is trained, and may not fit: its memory is counted, not measured.
    Uncertain,
    /// It is trained, and ended if it exceeds the limit: by measurements, it may just fit.
    Tried,
}

/// Compares an experiment with its results folder: which runs are still to be trained, and the memory they are expected
/// to need. Nothing is written.
///
/// # Errors
///
/// Like [`super::plan()`]; [`Error::Refused`] if the folder cannot be read.
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
    let planned = plan_as_begun(&options.experiment, &options.results, false, sink)?;
    let folder = ExperimentFolder(options.results.join(&planned.plan.experiment));
    let planned = search_so_far(&options.experiment, planned, &folder)?;
    let statuses =
        statuses(&planned.plan, &folder).map_err(|error| Error::refused(unreadable(&error)))?;
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
    let expected: Vec<_> = expected.collect();
    // A folder that cannot be read was refused above.
    let index = Index::read(&folder).ok().flatten();
    Ok(Outlook {
        excesses: excesses(&expected),
        prospect: Prospect::of(&planned.plan, index.as_ref()),
        expected,
        statuses,
        other_builds,
        planned,
    })
}

/// What will happen to runs that are forecast not to fit, as far as known: compared with their limits, and on the host
/// with its memory.
fn excesses(expected: &[(RunPlan, Expected)]) -> Vec<Excess> {
    let there = Some(total_memory()).filter(|bytes| *bytes > 0);
    let mut excesses: Vec<Excess> = Vec::new();
    for (run, expected) in expected {
        let room = run.room(there.filter(|_| run.device.backend.is_host()));
        let Some(room) = room.filter(|room| expected.bytes > room.bytes) else {
            continue;
        };
        let is_certain = expected.at_least().is_some_and(|least| least > room.bytes);
        let consequence = match (run.relief(), is_certain) {
            (Some(_), _) => Consequence::Adjusted,
            (None, true) => Consequence::Refused,
            (None, false) if expected.basis == Basis::Counted => Consequence::Uncertain,
            (None, false) => Consequence::Tried,
        };
        let mut known = excesses.iter_mut();
        match known.find(|known| known.consequence == consequence) {
            Some(known) => known.num_runs += 1,
            None => excesses.push(Excess {
                run: run.id.clone(),
                bytes: expected.bytes,
                room,
                consequence,
                num_runs: 1,
            }),
        }
    }
    excesses
}

/// The status of each run; `None` if the folder does not exist and nothing is skipped.
fn statuses(plan: &Plan, folder: &ExperimentFolder) -> io::Result<Option<Vec<Status>>> {
    let runs: Vec<&RunPlan> = plan.runs.iter().collect();
    if !folder.plan_json().exists() && runs.iter().all(|run| run.skip.is_none()) {
        return Ok(None);
    }
    let statuses = record::statuses(&runs, folder, &folder.begun());
    statuses.into_iter().collect::<io::Result<_>>().map(Some)
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
