//! What a cluster says about jobs, kept in the results tree for those who only read it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::{Refusal, commands, slurm};
use crate::ops::{Progress, Sink};
use crate::train::Pause;
use runner_core::event::Outcome;
use runner_core::record::{
    ExperimentFolder, JobState, JobStates, RunFolder, RunRecord, Submission, unix_millis,
};
use runner_core::spec::launch::System;

/// What was learned less than this ago is not asked for again.
const FRESH_MS: u64 = 2000;

/// The runs of an experiment that are queued or running as jobs, according to what the cluster last said. A completed
/// run is not one of them, though its job may still be there, or be queued again after the failure of a machine.
pub(crate) fn busy_runs(folder: &ExperimentFolder) -> BTreeSet<String> {
    let mut busy = of_jobs(folder);
    let begun = folder.leased_runs();
    busy.retain(|run, pause| {
        let is_done = || is_done(&folder.run(run), pause.as_deref()).unwrap_or(false);
        !begun.contains(run) || !is_done()
    });
    busy.into_keys().collect()
}

/// Whether nothing is left to do for a run that a search ends at `pause`, if it does.
pub(super) fn is_done(run: &RunFolder, pause: Option<&str>) -> io::Result<bool> {
    let Some(plan) = run.read_plan()? else {
        return Ok(false);
    };
    let pause: Option<Pause> = pause.and_then(|pause| pause.parse().ok());
    Ok(match RunRecord::read_for(run, &plan)?.outcome {
        Some(Outcome::Completed | Outcome::Skipped { .. }) => true,
        Some(Outcome::Pruned { epoch, .. }) => pause.is_some_and(|pause| pause.epoch <= epoch),
        _ => false,
    })
}

/// The runs of jobs that have not ended, and where the search ends them.
fn of_jobs(folder: &ExperimentFolder) -> BTreeMap<String, Option<String>> {
    let mut busy = BTreeMap::new();
    for submission in folder.open_submissions() {
        let states = folder.read_job_states(&submission.key);
        for (element, runs) in submission.elements.iter().enumerate() {
            let state = states.as_ref().and_then(|it| it.elements.get(&element));
            if !matches!(state, Some(JobState::Ended { .. })) {
                let pause = |run: &String| submission.pauses.get(run).cloned();
                busy.extend(runs.iter().map(|run| (run.clone(), pause(run))));
            }
        }
    }
    busy
}

/// Asks the clusters for the state of an experiment's jobs, and keeps it for readers of the folder. A cluster that does
/// not answer is reported; what it said before stays.
///
/// ```
/// use burn_runner::ops;
/// use burn_runner::record::ExperimentFolder;
///
/// let folder = tempfile::tempdir().unwrap();
/// // Nothing was submitted.
/// ops::refresh_jobs(&ExperimentFolder(folder.path().to_owned()), &ops::quiet);
/// ```
pub fn refresh_jobs(folder: &ExperimentFolder, sink: &Sink<'_>) {
    for submission in folder.open_submissions() {
        let known = folder.read_job_states(&submission.key);
        let age = known.as_ref().map(|it| unix_millis().abs_diff(it.time_ms));
        if age.is_some_and(|age| age < FRESH_MS) {
            continue;
        }
        if let Err(refusal) = refresh(folder, &submission, known.unwrap_or_default()) {
            sink(Progress::Note(&format!(
                "the state of jobs is not known: {refusal}"
            )));
        }
    }
}

/// Asks for the state of a submission's jobs, and keeps it.
pub(super) fn refresh(
    folder: &ExperimentFolder,
    submission: &Submission,
    before: JobStates,
) -> Result<JobStates, Refusal> {
    if is_being_submitted(folder, submission) {
        return Ok(before);
    }
    let queue = match &submission.launch.system {
        System::Local(_) => return Ok(before),
        System::Slurm(_) => {
            let (queue, ids) = slurm::queue(submission)?;
            adopt(folder, submission, &ids);
            queue
        }
        System::Command(commands) => {
            let has_ended =
                |at: usize| matches!(before.elements.get(&at), Some(JobState::Ended { .. }));
            match commands::queue(submission, commands, |at| !has_ended(at))? {
                Some(queue) => queue,
                None => from_leases(folder, submission),
            }
        }
    };
    // A job that was cancelled ends at once when it starts, if it ever does.
    let is_cancelled = folder.why_cancelled(&submission.key).is_some();
    let is_there = |state: &&JobState| !(is_cancelled && matches!(state, JobState::Queued { .. }));
    let elements = 0..submission.elements.len();
    let elements = elements.map(|at| {
        let there = queue.get(&at).filter(is_there);
        let state = there.cloned().unwrap_or_else(|| {
            // How it ended may be known.
            let known = before.elements.get(&at);
            let known = known.filter(|state| matches!(state, JobState::Ended { .. }));
            known
                .cloned()
                .unwrap_or(JobState::Ended { how: String::new() })
        });
        (at, state)
    });
    let states = JobStates {
        time_ms: unix_millis(),
        elements: elements.collect(),
    };
    if let Err(e) = folder.write_job_states(&submission.key, &states) {
        tracing::info!("the state of jobs is not kept: {e}");
    }
    Ok(states)
}

/// Whether its jobs are being handed to the cluster, which does not know all of them yet.
fn is_being_submitted(folder: &ExperimentFolder, submission: &Submission) -> bool {
    let has_no_ids = submission.jobs.iter().any(|job| job.id.is_empty());
    let submitter = || folder.submitter().ok().flatten();
    has_no_ids
        && submitter().is_some_and(|held| {
            let tenant = held.tenant.as_ref();
            !held.is_released && tenant.is_some_and(|tenant| submission.is_of(tenant))
        })
}

/// Records the ids of arrays whose submission was killed before it could.
fn adopt(folder: &ExperimentFolder, submission: &Submission, ids: &BTreeMap<usize, String>) {
    let is_new = |job: &runner_core::record::Job| job.id.is_empty() && ids.contains_key(&job.first);
    if !submission.jobs.iter().any(is_new) {
        return;
    }
    let mut submission = submission.clone();
    for job in submission.jobs.iter_mut().filter(|job| job.id.is_empty()) {
        if let Some(id) = ids.get(&job.first) {
            job.id.clone_from(id);
        }
    }
    if let Err(e) = folder.write_submission(&submission) {
        tracing::info!("the ids of jobs are not kept: {e}");
    }
}

/// Without a command that says so, a job has ended when all of its runs have; one that has not begun waits.
fn from_leases(folder: &ExperimentFolder, submission: &Submission) -> BTreeMap<usize, JobState> {
    let mut states = BTreeMap::new();
    for (element, runs) in submission.elements.iter().enumerate() {
        let released = runs.iter().map(|run| {
            let held = folder.held(run).ok().flatten()?;
            let is_its = held
                .tenant
                .as_ref()
                .is_some_and(|it| it.submission == submission.key && it.element == element);
            is_its.then_some(held.is_released)
        });
        let released: Vec<Option<bool>> = released.collect();
        if released.iter().all(|it| *it == Some(true)) {
            continue;
        }
        let has_begun = released.iter().any(Option::is_some);
        let state = if has_begun {
            JobState::Running
        } else {
            JobState::Queued {
                reason: String::new(),
            }
        };
        states.insert(element, state);
    }
    states
}
