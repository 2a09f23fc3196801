//! Jobs that have ended without recording why: their runs get a typed failure.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::anchor::{self, Opened, plan_of};
use super::slurm;
use super::states::{is_done, refresh};
use crate::error::Error;
use crate::ops::{Progress, Sink};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::event::{Event, FailureClass, Outcome};
use runner_core::record::{
    Alive, Collector, Environment, ExperimentFolder, Holder, Job, JobState, JobStates, Leased,
    RunRecord, Submission, Tenant,
};
use runner_core::spec::launch::{System, SystemKind};
use runner_core::spec::plain_file;

/// The end of a job's output that is searched for the reason of its end.
const TAIL: u64 = 1 << 14;

/// Asks the clusters for the state of an experiment's jobs, and records how runs ended whose jobs could not.
pub(in crate::ops) fn settle(folder: &ExperimentFolder, sink: &Sink<'_>) -> Result<(), Error> {
    for read in folder.submissions() {
        let submission = match read {
            Ok(submission) => submission,
            Err(e) => {
                sink(Progress::Note(&format!("jobs are not known: {e}")));
                continue;
            }
        };
        if submission.is_over {
            continue;
        }
        let known = folder.read_job_states(&submission.key).unwrap_or_default();
        let states = match refresh(folder, &submission, known) {
            Ok(states) => states,
            // A controller that is down says nothing about its jobs.
            Err(refusal) => {
                sink(Progress::Note(&format!(
                    "the state of jobs is not known: {refusal}"
                )));
                continue;
            }
        };
        settle_one(folder, submission, states, sink)
            .map_err(|e| Error::unwritable(&folder.launch(), &e))?;
    }
    Ok(())
}

fn settle_one(
    folder: &ExperimentFolder,
    submission: Submission,
    mut states: JobStates,
    sink: &Sink<'_>,
) -> std::io::Result<()> {
    // Its ids may just have been found.
    let mut submission = folder
        .read_submission(&submission.key)
        .unwrap_or(submission);
    let is_untold = |state: &JobState| matches!(state, JobState::Ended { how } if how.is_empty());
    if submission.launch.kind() == SystemKind::Slurm && states.elements.values().any(is_untold) {
        for (element, how) in slurm::endings(&submission) {
            if let Some(state) = states.elements.get_mut(&element)
                && matches!(state, JobState::Ended { .. })
            {
                *state = JobState::Ended { how };
            }
        }
        folder.write_job_states(&submission.key, &states)?;
    }
    let mut are_over = true;
    // Jobs with runs that they have not begun.
    let mut idle = Vec::new();
    for (element, runs) in submission.elements.iter().enumerate() {
        let Some(JobState::Ended { how }) = states.elements.get(&element) else {
            are_over = false;
            continue;
        };
        let mut num_idle = 0;
        for run in runs {
            num_idle += usize::from(!settle_run(folder, &submission, (element, how), run, sink)?);
        }
        if num_idle > 0 {
            idle.push((element, num_idle, how));
        }
    }
    if are_over {
        submission.is_over = true;
        folder.write_submission(&submission)?;
        folder.forget_submitted(&submission.key);
        if folder.why_cancelled(&submission.key).is_none() {
            say_idle(folder, &submission, &idle, sink);
        }
    }
    Ok(())
}

/// Jobs that ended before they could train, such as by a command of `launch.setup`, leave nothing in their runs.
fn say_idle(
    folder: &ExperimentFolder,
    submission: &Submission,
    idle: &[(usize, usize, &String)],
    sink: &Sink<'_>,
) {
    let [(element, num, how), others @ ..] = idle else {
        return;
    };
    let job = submission.job_of(*element).unwrap_or_default();
    let how = match how.as_str() {
        "" => String::new(),
        how => format!(" as {how}"),
    };
    let log = log_of(folder, submission, *element);
    let output = tail_of(&log).unwrap_or_default();
    let last = output.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.map_or("it printed nothing".to_owned(), |last| {
        format!("its output ends with `{}`", last.trim())
    });
    let others = match others.len() {
        0 => String::new(),
        num => format!("; the same applies to {}", counted(num, "other job")),
    };
    sink(Progress::Note(&format!(
        "job {job} ended{how} and did not begin {}; {last} ({}){others}",
        counted(*num, "run"),
        log.display()
    )));
}

/// Records how a run ended, if its job had it and did not. Returns whether the run was begun, or needs no job any more.
fn settle_run(
    folder: &ExperimentFolder,
    submission: &Submission,
    (element, how): (usize, &str),
    run: &str,
    sink: &Sink<'_>,
) -> std::io::Result<bool> {
    let Some(held) = folder.held(run)? else {
        return Ok(false);
    };
    let is_its = |it: &Tenant| it.submission == submission.key && it.element == element;
    if !held.tenant.as_ref().is_some_and(is_its) {
        let pause = submission.pauses.get(run).map(String::as_str);
        return Ok(!held.is_released || is_done(&folder.run(run), pause)?);
    }
    let submitted = || folder.read_submitted(submission, run);
    let Ok(Ok(plan)) = plan_of(&folder.run(run), submitted) else {
        return Ok(true);
    };
    let Ok(record) = RunRecord::read_for(&folder.run(run), &plan) else {
        return Ok(true);
    };
    let job = submission.job_of(element).unwrap_or_default();
    let Some(outcome) = outcome(
        folder,
        submission,
        &record,
        (element, &job, how),
        held.is_released,
    ) else {
        return Ok(true);
    };
    if let Outcome::Failed { class, .. } = &outcome {
        use runner_core::spec::section::Choice;
        sink(Progress::Step(&format!(
            "{run} failed ({}): job {job} ended as {}",
            class.name(),
            if how.is_empty() { "unknown" } else { how }
        )));
    }
    record_end(folder, submission, run, outcome)?;
    Ok(true)
}

/// How a run ended whose job has ended; `None` if that is recorded.
fn outcome(
    folder: &ExperimentFolder,
    submission: &Submission,
    record: &RunRecord,
    (element, job, how): (usize, &str, &str),
    is_released: bool,
) -> Option<Outcome> {
    let is_ours = folder.why_cancelled(&submission.key).is_some();
    match &record.outcome {
        Some(
            Outcome::Completed
            | Outcome::Failed { .. }
            | Outcome::Pruned { .. }
            | Outcome::Skipped { .. },
        ) => return None,
        // It had time to save a checkpoint.
        Some(Outcome::Interrupted) if is_ours || !how.starts_with("CANCELLED") => return None,
        Some(Outcome::Interrupted) => {}
        // Its worker has not started.
        None if is_released => return None,
        None if is_ours => return Some(Outcome::Interrupted),
        None => {}
    }
    let again = "run the command again to resume from its newest checkpoint";
    let class = class_of(how, || {
        says_out_of_memory(&log_of(folder, submission, element))
    });
    let message = match class {
        FailureClass::OutOfMemory => format!(
            "job {job} was killed because its memory ran out: raise `launch.memory`, or set `memory.limit`; then {again}"
        ),
        FailureClass::Timeout => format!(
            "job {job} reached its time limit before a checkpoint was saved: raise `launch.time` or `launch.grace`; then {again}"
        ),
        FailureClass::NodeFailure => format!("the machine of job {job} failed; {again}"),
        FailureClass::Cancelled => {
            let by = how.strip_prefix("CANCELLED ").unwrap_or("by someone else");
            format!("job {job} was cancelled {by}; {again}")
        }
        _ => {
            let log = log_of(folder, submission, element);
            let how = if how.is_empty() { "ended" } else { how };
            format!(
                "job {job} ended before its run did ({how}); see {}; {again}",
                log.display()
            )
        }
    };
    Some(Outcome::failed(class, message))
}

fn class_of(how: &str, is_out_of_memory: impl Fn() -> bool) -> FailureClass {
    match how.split_whitespace().next().unwrap_or_default() {
        "OUT_OF_MEMORY" => FailureClass::OutOfMemory,
        "TIMEOUT" | "DEADLINE" => FailureClass::Timeout,
        "NODE_FAIL" | "BOOT_FAIL" => FailureClass::NodeFailure,
        "CANCELLED" | "REVOKED" => FailureClass::Cancelled,
        _ if is_out_of_memory() => FailureClass::OutOfMemory,
        _ => FailureClass::Killed,
    }
}

/// SLURM does not always say `OUT_OF_MEMORY`, but tells the job.
fn says_out_of_memory(log: &Path) -> bool {
    let words = [
        "exceeded memory limit",
        "oom_kill",
        "oom-kill",
        "out of memory",
    ];
    tail_of(log).is_ok_and(|tail| {
        let tail = tail.to_lowercase();
        words.iter().any(|words| tail.contains(words))
    })
}

/// The file of a job's output.
fn log_of(folder: &ExperimentFolder, submission: &Submission, element: usize) -> PathBuf {
    let has = |job: &&Job| (job.first..job.first + job.count).contains(&element);
    let name = match &submission.launch.system {
        System::Command(_) => submission
            .jobs
            .iter()
            .find(has)
            .map(|job| job.first.to_string()),
        _ => submission.job_of(element),
    };
    let logs = folder.submission_logs(&submission.key);
    logs.join(format!("{}.log", name.unwrap_or_default()))
}

/// The end of a file.
fn tail_of(log: &Path) -> std::io::Result<String> {
    let mut file = plain_file::open(log)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    Ok(String::from_utf8_lossy(&tail).into_owned())
}

/// Appends the end of a run, under a lease of this process: its job may be alive after all.
fn record_end(
    folder: &ExperimentFolder,
    submission: &Submission,
    run: &str,
    outcome: Outcome,
) -> std::io::Result<()> {
    let here = Holder::here();
    let tenant = Tenant {
        host: here.host,
        pid: here.pid,
        ..Tenant::default()
    };
    let alive = Alive {
        has_ended: &|it| it.submission == submission.key,
        pause: &|_| false,
    };
    let Leased::Taken(lease) = folder.lease(run, &tenant, &alive)? else {
        return Ok(());
    };
    let Opened::Run(plan, anchor) = anchor::open(folder, submission, (run, &lease))? else {
        return Ok(());
    };
    let environment = Environment::here(Path::new("."), None);
    let mut collector = Collector::new(vec![(*plan, anchor.folder.clone())], environment)?;
    let event = Event::RunFinished {
        outcome,
        wall_secs: 0.0,
        weights_digest: String::new(),
    };
    collector.take(0, &event)?;
    lease.release()
}

/// The error for runs that jobs have.
pub(in crate::ops) fn busy(folder: &ExperimentFolder, num: usize) -> Error {
    let message = format!(
        "{} of `{}` {} queued or running as jobs of a cluster",
        counted(num, "run"),
        folder.0.display(),
        if num == 1 { "is" } else { "are" }
    );
    Error::refused(
        Diagnostic::error("results", message)
            .note("one run never has two writers")
            .help(format!(
                "wait for them, or cancel them first: runner cancel {}",
                runner_core::plan::quoted(&folder.0.display().to_string())
            )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_jobs_are_classes_of_failures() {
        let class = |how| class_of(how, || false);
        assert_eq!(class("NODE_FAIL"), FailureClass::NodeFailure);
        assert_eq!(class("CANCELLED by 1000"), FailureClass::Cancelled);
        assert_eq!(class("TIMEOUT"), FailureClass::Timeout);
        assert_eq!(class("OUT_OF_MEMORY"), FailureClass::OutOfMemory);
        assert_eq!(class("FAILED"), FailureClass::Killed);
        assert_eq!(class(""), FailureClass::Killed);
        assert_eq!(class_of("FAILED", || true), FailureClass::OutOfMemory);
    }
}
