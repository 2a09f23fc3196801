//! Cancels the jobs of an experiment.

use std::path::PathBuf;

use super::states::refresh;
use super::{Refusal, commands, settle, slurm};
use crate::error::Error;
use crate::ops::Sink;
use crate::ops::tree::experiments;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{ExperimentFolder, JobState, Submission};
use runner_core::spec::launch::System;

/// Whose jobs to cancel.
#[derive(Clone, Debug)]
pub struct CancelJobs {
    /// The folder of an experiment, or a results folder for all of its experiments.
    pub folder: PathBuf,
}

/// What was cancelled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CancelledJobs {
    /// Jobs that were queued.
    pub num_queued: usize,
    /// Jobs that were running: their runs save a checkpoint and stop.
    pub num_running: usize,
    /// Submissions that the cluster was not told about, since the experiment file has no command for it: their jobs end
    /// as soon as they start.
    pub num_untold: usize,
}

/// Cancels what is queued and what runs. Runs keep their checkpoints, and `runner run` resumes them.
///
/// # Errors
///
/// [`Error::Refused`] if the folder has no experiment, [`Error::Failed`] if the cluster refuses.
///
/// ```
/// use burn_runner::ops::{self, CancelJobs};
///
/// let folder = "results/nothing".into();
/// let error = ops::cancel_jobs(&CancelJobs { folder }, &ops::quiet).unwrap_err();
/// assert_eq!(error.exit_code(), 2);
/// ```
pub fn cancel_jobs(options: &CancelJobs, sink: &Sink<'_>) -> Result<CancelledJobs, Error> {
    let mut cancelled = CancelledJobs::default();
    for folder in experiments(&options.folder)? {
        for submission in folder.open_submissions() {
            cancel(&folder, &submission, &mut cancelled)?;
        }
        settle(&folder, sink)?;
    }
    Ok(cancelled)
}

fn cancel(
    folder: &ExperimentFolder,
    submission: &Submission,
    cancelled: &mut CancelledJobs,
) -> Result<(), Error> {
    let known = folder.read_job_states(&submission.key).unwrap_or_default();
    let states = refresh(folder, submission, known);
    // Also if the cluster cannot be told: a job that starts from now on ends at once.
    folder
        .cancel_submission(&submission.key, "cancelled by `runner cancel`")
        .map_err(|e| Error::unwritable(&folder.launch(), &e))?;
    let states = states.map_err(|refusal| failed(&refusal))?;
    for state in states.elements.values() {
        match state {
            JobState::Queued { .. } => cancelled.num_queued += 1,
            JobState::Running => cancelled.num_running += 1,
            JobState::Ended { .. } => {}
        }
    }
    let is_told = tell(submission, |element| {
        !matches!(states.elements.get(&element), Some(JobState::Ended { .. }))
    });
    cancelled.num_untold += usize::from(!is_told.map_err(|refusal| failed(&refusal))?);
    Ok(())
}

/// Tells the cluster to cancel the jobs of a submission; whether there is a way to tell it.
pub(super) fn tell(
    submission: &Submission,
    is_there: impl Fn(usize) -> bool,
) -> Result<bool, Refusal> {
    match &submission.launch.system {
        System::Local(_) => Ok(true),
        System::Slurm(_) => slurm::cancel(submission).map(|()| true),
        System::Command(commands) => commands::cancel(submission, commands, is_there),
    }
}

fn failed(refusal: &Refusal) -> Error {
    let message = format!("the cluster did not cancel the jobs: {refusal}");
    Error::failed(Diagnostic::error("launch", message).help(
        "run the command again; until then, jobs that start end at once, and active runs save a checkpoint and stop",
    ))
}
