//! The beginning of runs that continue copies of others, in population-based training.
//!
//! All of them begin before any run of their round is trained, since what they are copied from is only kept until then.
//! Where it is missing, because results were lost or belong to other settings, the other run is trained up to there
//! first.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use runner_core::plan::{Plan, RunPlan};
use runner_core::record::{
    BadCheckpoint, ExperimentFolder, NotForked, RunRecord, Status, fork, resume_point,
};

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

/// Restarts runs that confirm trials, of which others begin as copies of a state that was not kept: when they were
/// trained, nobody knew that these would be confirmed too. Returns them, each with the reason.
pub(super) fn restart(
    folder: &ExperimentFolder,
    plan: &Plan,
    statuses: &mut [(&RunPlan, Status)],
    chosen: &BTreeSet<&str>,
) -> io::Result<Vec<(String, Vec<String>)>> {
    let mut restarted = Vec::new();
    // What is restarted may begin as a copy as well.
    while let Some((at, reason)) = past_a_copy(folder, plan, statuses, chosen) {
        let source = &statuses[at].0.id;
        drop(folder.replace(source)?);
        restarted.push((source.clone(), vec![reason]));
        statuses[at].1 = Status::New;
    }
    Ok(restarted)
}

/// The first run that was trained further than a copy that has not begun, and did not keep that state.
fn past_a_copy(
    folder: &ExperimentFolder,
    plan: &Plan,
    statuses: &[(&RunPlan, Status)],
    chosen: &BTreeSet<&str>,
) -> Option<(usize, String)> {
    let copies = statuses.iter().filter(|(run, status)| {
        let is_open = matches!(
            status,
            Status::New | Status::Begun { .. } | Status::Pruned { .. } | Status::Failed { .. }
        );
        is_open && plan.confirms(run.seed) && chosen.contains(run.id.as_str())
    });
    let mut sources = copies.filter_map(|(run, _)| {
        let from = run.fork.as_ref()?;
        let at = statuses
            .iter()
            .position(|(other, _)| other.id == from.run)?;
        let (source, status) = &statuses[at];
        let is_past =
            *status == Status::Completed || resumed_step(folder, source) >= run.first_step();
        if !is_past || !chosen.contains(source.id.as_str()) || resumed_step(folder, run) > 0 {
            return None;
        }
        let ends = (folder.run(&source.id), folder.run(&run.id));
        match fork((&ends.0, source), (&ends.1, run)) {
            // It would be the same again.
            Ok(()) | Err(NotForked::Bad(BadCheckpoint::OtherPast)) => None,
            Err(_) => Some((
                at,
                format!(
                    "its state after epoch {}, of which `{}` begins as a copy, was not kept",
                    from.epoch, run.id
                ),
            )),
        }
    });
    sources.next()
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
