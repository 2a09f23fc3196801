//! Waits for jobs, and submits runs again as `[on_failure]` says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::settle;
use super::states::busy_runs;
use crate::dispatch::{Cancel, Urgency};
use crate::error::Error;
use crate::ops::{Progress, Sink};
use runner_core::diagnostic::counted;
use runner_core::event::Outcome;
use runner_core::plan::RunPlan;
use runner_core::record::{ExperimentFolder, JobState, RunRecord, resume_point};

/// Longest interval between questions to the cluster; the first ones come sooner.
const INTERVAL: Duration = Duration::from_secs(5);

/// Interval between looks at whether the user stops it.
const TICK: Duration = Duration::from_millis(100);

/// Why waiting has ended.
pub(in crate::ops) enum Following {
    /// No job is left; these runs are to be submitted again.
    Again(Vec<String>),
    /// The user stopped it; the jobs continue.
    Stopped,
}

/// Waits until none of some runs is queued or running. `steps` has the checkpoints from which interrupted runs were
/// submitted: one that has not advanced since is not submitted again.
pub(in crate::ops) fn follow(
    folder: &ExperimentFolder,
    runs: &[RunPlan],
    steps: &mut BTreeMap<String, usize>,
    cancel: &Cancel,
    sink: &Sink<'_>,
) -> Result<Following, Error> {
    let mut shown = usize::MAX;
    let mut told = BTreeSet::new();
    let mut interval = TICK;
    loop {
        settle(folder, sink)?;
        let busy = busy_runs(folder);
        let num = runs.iter().filter(|run| busy.contains(&run.id)).count();
        if num == 0 {
            return Ok(Following::Again(to_repeat(folder, runs, steps)));
        }
        if num != shown {
            shown = num;
            let runs = counted(num, "run");
            sink(Progress::Step(&format!(
                "waiting for {runs} on the cluster"
            )));
        }
        for (job, reason) in held_jobs(folder) {
            if told.insert(job.clone()) {
                sink(Progress::Note(&format!(
                    "job {job} is held by the cluster ({reason}): `scontrol release {job}` lets it start"
                )));
            }
        }
        interval = (interval * 2).min(INTERVAL);
        for _ in 0..interval.as_millis() / TICK.as_millis() {
            if cancel.urgency() != Urgency::None {
                return Ok(Following::Stopped);
            }
            std::thread::sleep(TICK);
        }
    }
}

/// Queued jobs that SLURM does not start until someone releases them, such as after several failures to start them.
fn held_jobs(folder: &ExperimentFolder) -> Vec<(String, String)> {
    let mut held = Vec::new();
    for submission in folder.open_submissions() {
        let states = folder.read_job_states(&submission.key).unwrap_or_default();
        for (element, state) in states.elements {
            if let JobState::Queued { reason } = state
                && reason.to_lowercase().contains("held")
                && let Some(job) = submission.job_of(element)
            {
                held.push((job, reason));
            }
        }
    }
    held
}

/// Runs that have retries left, and interrupted ones that have advanced.
fn to_repeat(
    folder: &ExperimentFolder,
    runs: &[RunPlan],
    steps: &mut BTreeMap<String, usize>,
) -> Vec<String> {
    // The newest submission of a run counts.
    let mut cancelled = BTreeSet::new();
    for submission in folder.submissions().into_iter().flatten() {
        let is_cancelled = folder.why_cancelled(&submission.key).is_some();
        for run in submission.elements.into_iter().flatten() {
            if is_cancelled {
                cancelled.insert(run);
            } else {
                cancelled.remove(&run);
            }
        }
    }
    let mut again = Vec::new();
    for run in runs.iter().filter(|run| !cancelled.contains(&run.id)) {
        let there = folder.run(&run.id);
        let Ok(record) = RunRecord::read_for(&there, run) else {
            continue;
        };
        let is_due = match &record.outcome {
            Some(Outcome::Failed { class, .. }) => {
                let policy = run.on_failure.get(class);
                policy.is_some_and(|it| record.attempts.num_retries(*class) < it.retries)
            }
            Some(Outcome::Interrupted) => {
                let step = resume_point(run, &there, &record).step;
                steps
                    .insert(run.id.clone(), step)
                    .is_none_or(|before| step > before)
            }
            _ => false,
        };
        if is_due {
            again.push(run.id.clone());
        }
    }
    again
}
