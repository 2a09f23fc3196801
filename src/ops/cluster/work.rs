//! A job: trains some runs of a submission one after the other, and records them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use super::anchor::{self, Anchor, Opened};
use super::hold::beat_until;
use super::states::is_done;
use super::{cancel, slurm};
use crate::dispatch::{Cancel, Reason, Urgency};
use crate::error::{Error, unreadable};
use crate::ops::run::{Leasehold, parse_fault, train_leased};
use crate::ops::{Experiment, Program, Progress, Run, Sink, Stopped};
use runner_core::diagnostic::Diagnostic;
use runner_core::plan::RunPlan;
use runner_core::record::{
    Alive, ExperimentFolder, Holder, Lease, Leased, RunFolder, RunRecord, Status, Submission,
    Tenant, resume_point, status,
};
use runner_core::spec::launch::{System, SystemKind};

/// A job of a submission.
#[derive(Clone)]
pub struct Work {
    /// The folder of the experiment.
    pub folder: PathBuf,
    /// The key of the submission.
    pub key: String,
    /// The number of the job in it.
    pub element: usize,
    /// The job's id, as the cluster names it.
    pub job: String,
    /// The arguments of workers.
    pub arguments: Vec<String>,
    /// Stops the job: its run saves a checkpoint.
    pub cancel: Cancel,
    /// Whether its time ends: it is to be queued again.
    pub is_short_of_time: Arc<AtomicBool>,
}

impl Work {
    /// A job of a submission, without an id.
    pub fn new(folder: impl Into<PathBuf>, key: impl Into<String>, element: usize) -> Self {
        Self {
            folder: folder.into(),
            key: key.into(),
            element,
            job: String::new(),
            arguments: Vec::new(),
            cancel: Cancel::default(),
            is_short_of_time: Arc::default(),
        }
    }
}

/// Trains the runs of a job that are not completed; returns whether all of them are.
///
/// # Errors
///
/// [`Error::Refused`] if the submission cannot be read, and if a run cannot be recorded.
///
/// ```
/// use burn_runner::ops::{self, Work};
///
/// // The script of a job has these arguments.
/// let job = Work::new("results/nothing", "18fd7a01-2f", 0);
/// let error = ops::work(&job, &ops::quiet).unwrap_err();
/// assert_eq!(error.exit_code(), 2);
/// ```
pub fn work(options: &Work, sink: &Sink<'_>) -> Result<bool, Error> {
    let folder = ExperimentFolder(options.folder.clone());
    let submission = folder
        .read_submission(&options.key)
        .map_err(|e| Error::refused(unreadable(&e)))?;
    let Some(runs) = submission.elements.get(options.element) else {
        let message = format!(
            "the submission has {} jobs, and none with number {}",
            submission.elements.len(),
            options.element
        );
        return Err(Error::refused(Diagnostic::error("usage", message)));
    };
    let site = Site {
        options,
        folder: &folder,
        submission: &submission,
        began: Instant::now(),
    };
    let mut are_done = true;
    for run in runs {
        if let Some(reason) = site.why_not() {
            sink(Progress::Step(&format!("no further run starts: {reason}")));
            are_done = false;
            break;
        }
        are_done &= site.run(run, sink)?;
    }
    let is_short = options.is_short_of_time.load(Ordering::Acquire);
    if !are_done && is_short && submission.launch.kind() == SystemKind::Slurm {
        match slurm::requeue(&options.job) {
            Ok(()) => sink(Progress::Step(&format!(
                "job {} is queued again, to resume from its checkpoint",
                options.job
            ))),
            Err(refusal) => sink(Progress::Note(&format!(
                "the job could not be queued again: {refusal}; run `runner run` to resume"
            ))),
        }
    }
    Ok(are_done)
}

/// A job at work.
struct Site<'a> {
    options: &'a Work,
    folder: &'a ExperimentFolder,
    submission: &'a Submission,
    began: Instant,
}

impl Site<'_> {
    /// Why no further run starts, if so.
    fn why_not(&self) -> Option<String> {
        if self.options.cancel.urgency() != Urgency::None {
            return Some("the job was told to stop".into());
        }
        self.folder.why_cancelled(&self.options.key)
    }

    /// Trains a run, unless that is done; returns whether it is.
    fn run(&self, run: &str, sink: &Sink<'_>) -> Result<bool, Error> {
        let there = self.folder.run(run);
        let skip = |reason: &str| {
            sink(Progress::Note(&format!("`{run}` is not trained: {reason}")));
            Ok(false)
        };
        let pause = self.submission.pauses.get(run).map(String::as_str);
        if is_done(&there, pause).map_err(|e| Error::refused(unreadable(&e)))? {
            return Ok(true);
        }
        let unwritable = |e: std::io::Error| Error::unwritable(&there.0, &e);
        let lease = self.lease(run).map_err(unwritable)?;
        let lease = match lease {
            Leased::Taken(lease) => lease,
            Leased::Busy(Some(tenant)) => {
                return skip(&format!(
                    "process {} on host `{}` has it (job {})",
                    tenant.pid, tenant.host, tenant.job
                ));
            }
            Leased::Busy(None) => return skip("another process has taken it"),
        };
        let opened = anchor::open(self.folder, self.submission, (run, &lease));
        let (plan, anchor) = match opened.map_err(|e| Error::refused(unreadable(&e)))? {
            Opened::Run(plan, anchor) => (*plan, anchor),
            Opened::Not(reason) => {
                if lease.is_current().map_err(unwritable)? {
                    lease.release().map_err(unwritable)?;
                }
                return skip(&reason);
            }
        };
        // Its last holder may have completed it in the meantime.
        match status(&plan, &anchor.folder).map_err(|e| Error::refused(unreadable(&e)))? {
            Status::Completed => {
                lease.release().map_err(unwritable)?;
                return Ok(true);
            }
            Status::Damaged { reason } | Status::Unreadable { reason, .. } => {
                lease.release().map_err(unwritable)?;
                return skip(&reason);
            }
            _ => {}
        }
        let is_lost = Arc::new(AtomicBool::new(false));
        let trained = std::thread::scope(|scope| {
            // Dropped at the end, also by a panic.
            let (_active, ends) = mpsc::channel();
            let (lease, is_lost) = (&lease, &is_lost);
            scope.spawn(move || self.show_life(lease, &ends, is_lost));
            self.train(plan, &there, &anchor, sink)
        });
        if is_lost.load(Ordering::Acquire) {
            return skip(
                "another process took it, since this one seemed dead; nothing of it was kept",
            );
        }
        let stopped = trained?;
        lease.release().map_err(unwritable)?;
        if let Some(Stopped::Failure { run, class }) = &stopped {
            self.stop_all(run, *class, sink);
        }
        is_done(&there, pause).map_err(|e| Error::refused(unreadable(&e)))
    }

    fn lease(&self, run: &str) -> std::io::Result<Leased> {
        let here = Holder::here();
        let options = self.options;
        let tenant = Tenant {
            submission: options.key.clone(),
            element: options.element,
            job: options.job.clone(),
            host: here.host,
            pid: here.pid,
        };
        let alive = Alive {
            // The same job, before it was queued again: the cluster has ended it.
            has_ended: &|it| it.submission == options.key && it.element == options.element,
            pause: &|time| {
                std::thread::sleep(time);
                self.why_not().is_none()
            },
        };
        self.folder.lease(run, &tenant, &alive)
    }

    /// Shows that this process is alive, and stops the run if another process has it, or if it was cancelled.
    fn show_life(&self, lease: &Lease, ends: &Receiver<()>, is_lost: &AtomicBool) {
        let cancel = &self.options.cancel;
        let is_current = beat_until(lease, ends, || {
            if self.folder.why_cancelled(&self.options.key).is_some()
                && cancel.urgency() == Urgency::None
            {
                cancel.cancel(Urgency::Graceful, Reason::User);
            }
        });
        if !is_current {
            is_lost.store(true, Ordering::Release);
            cancel.cancel(Urgency::AtOnce, Reason::User);
        }
    }

    fn train(
        &self,
        plan: RunPlan,
        there: &RunFolder,
        anchor: &Anchor,
        sink: &Sink<'_>,
    ) -> Result<Option<Stopped>, Error> {
        let submission = self.submission;
        let mut experiment = Experiment::new(&submission.spec);
        experiment.program = Program {
            path: Some(submission.program.clone()),
            arguments: self.options.arguments.clone(),
        };
        let options = Run {
            cancel: self.options.cancel.clone(),
            ..Run::new(experiment)
        };
        let record = RunRecord::read_for(&anchor.folder, &plan).unwrap_or_default();
        let resumes_at = resume_point(&plan, &anchor.folder, &record).step;
        let cpus = match &submission.launch.system {
            System::Slurm(slurm) => slurm.cpus,
            _ => None,
        };
        let leasehold = Leasehold {
            shown: there.0.clone(),
            threads: cpus,
        };
        let fault = parse_fault(submission.fault.as_deref())?;
        let pause = submission.pauses.get(&plan.id);
        let pause = pause.and_then(|pause| pause.parse().ok());
        train_leased(
            (&options, self.folder, &submission.plan),
            (plan, anchor.folder.clone(), resumes_at, pause),
            (leasehold, fault, self.began),
            sink,
        )
    }

    /// A failure that stops the experiment stops its other jobs.
    fn stop_all(&self, run: &str, class: runner_core::event::FailureClass, sink: &Sink<'_>) {
        use runner_core::spec::section::Choice;
        let reason = format!(
            "`{run}` failed, and `on_failure.{}.then` is \"stop\"",
            class.name()
        );
        let _ = self.folder.cancel_submission(&self.options.key, &reason);
        // Running jobs see the reason, and save a checkpoint; queued ones would end at once.
        if let Err(refusal) = cancel::tell(self.submission, |_| true) {
            sink(Progress::Note(&format!("queued jobs remain: {refusal}")));
        }
    }
}
