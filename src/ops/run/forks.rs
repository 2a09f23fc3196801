//! The beginning of runs that continue copies of others, in population-based training.
//!
//! All of them begin before any run of their round is trained, since what they are copied from is only kept until then.
//! Where it is missing, because results were lost or belong to other settings, the other run is trained up to there
//! first.

use std::collections::{BTreeMap, BTreeSet};

use runner_core::plan::{Plan, RunPlan};
use runner_core::record::{ExperimentFolder, RunRecord, Status, fork, resume_point};

/// Runs that cannot begin before others are trained further.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Waiting {
    /// Their ids.
    pub(super) forks: BTreeSet<String>,
    /// The runs that they are copies of, with the first epoch after which a copy is needed.
    pub(super) sources: BTreeMap<String, usize>,
}

/// A run that cannot begin any more, with the reason and a remedy.
type Lost = (String, String, &'static str);

/// The remedy for a run that cannot begin any more.
const REMEDY: &str = "delete the folder of that run too, and run the command again: it is trained again, first up to there";

/// Lets all runs begin that are copies, of those that are to be trained or do not exist yet. Returns those that have to
/// wait, and those that cannot begin any more.
pub(super) fn begin(
    folder: &ExperimentFolder,
    plan: &Plan,
    statuses: &[(&RunPlan, Status)],
    chosen: &BTreeSet<&str>,
) -> (Waiting, Vec<Lost>) {
    let (mut waiting, mut lost) = (Waiting::default(), Vec::new());
    for (run, status) in statuses {
        let Some(from) = &run.fork else {
            continue;
        };
        let is_kept = match status {
            Status::Completed | Status::Unreadable { .. } => true,
            Status::Shorter { .. } | Status::Different { .. } | Status::Damaged { .. } => {
                !chosen.contains(run.id.as_str())
            }
            Status::New | Status::Begun { .. } | Status::Pruned { .. } | Status::Failed { .. } => {
                false
            }
        };
        if is_kept || resumed_step(folder, run) > 0 {
            continue;
        }
        let Some(source) = plan.runs.iter().find(|other| other.id == from.run) else {
            continue;
        };
        let there = folder.run(&source.id);
        let Err(reason) = fork((&there, source), (&folder.run(&run.id), run)) else {
            continue;
        };
        let is_chosen = chosen.contains(source.id.as_str());
        let is_before = resumed_step(folder, source) < run.first_step()
            && !matches!(status_of(statuses, source), Some(Status::Completed) | None);
        if is_chosen && is_before {
            waiting.forks.insert(run.id.clone());
            let epoch = waiting
                .sources
                .entry(source.id.clone())
                .or_insert(from.epoch);
            *epoch = from.epoch.min(*epoch);
        } else if chosen.contains(run.id.as_str()) {
            let reason = format!("it begins as {from}, whose state then is gone: {reason}");
            lost.push((run.id.clone(), reason, REMEDY));
        }
    }
    (waiting, lost)
}

/// Optimizer updates up to the newest state of a run.
fn resumed_step(folder: &ExperimentFolder, run: &RunPlan) -> usize {
    let there = folder.run(&run.id);
    // Unreadable runs were reported with their state.
    let record = RunRecord::read_for(&there, run).unwrap_or_default();
    resume_point(run, &there, &record).step
}

fn status_of<'a>(statuses: &'a [(&RunPlan, Status)], run: &RunPlan) -> Option<&'a Status> {
    let mut statuses = statuses.iter();
    let found = statuses.find(|(other, _)| other.id == run.id);
    found.map(|(_, status)| status)
}
