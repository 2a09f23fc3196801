//! Waits for other processes: a `runner run` in the same folder, and workers that a killed one has left behind.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::dispatch::{Cancel, Urgency};
use crate::error::Error;
use crate::ops::{Progress, Sink};
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{ExperimentFolder, Holder, Lock, Locked, RunFolder, has_no_locks};

/// How long to wait silently: a worker that saves its checkpoint is usually done by then.
const MOMENT: Duration = Duration::from_secs(1);

/// The interval between checks.
const TICK: Duration = Duration::from_millis(50);

/// Takes the lock of the experiment's folder; with `wait`, as soon as it is free. `None` if the file system has no locks:
/// for jobs of a cluster, leases do without.
pub(super) fn lock(
    folder: &ExperimentFolder,
    (wait, trains_here): (bool, bool),
    sink: &Sink<'_>,
) -> Result<Option<Lock>, Error> {
    let locked = match folder.lock() {
        Err(e) if has_no_locks(&e) && !trains_here => {
            tracing::info!("no lock: {e}");
            return Ok(None);
        }
        Err(e) if has_no_locks(&e) => return Err(without_locks(folder)),
        other => other.map_err(|e| Error::unwritable_results(&folder.0, &e))?,
    };
    let holder = match locked {
        Locked::Taken(lock) => return Ok(Some(lock)),
        Locked::Busy(holder) => holder,
    };
    let message = format!(
        "another `runner run` is writing to `{}`",
        folder.0.display()
    );
    if wait {
        let who = holder.as_ref().map_or(String::new(), |holder| {
            format!(" ({}, since {})", process(holder), holder.since)
        });
        sink(Progress::Waiting(&format!("{message}{who}")));
        return folder
            .wait_for_lock()
            .map(Some)
            .map_err(|e| Error::unwritable_results(&folder.0, &e));
    }
    let mut diagnostic = Diagnostic::error("results", message);
    if let Some(holder) = holder {
        diagnostic = diagnostic.note(format!(
            "it is {}, since {}: {}",
            process(&holder),
            holder.since,
            holder.command
        ));
    }
    Err(Error::refused(
        diagnostic
            .help("wait for it: add `--wait`")
            .help("or choose another folder with `--results DIR`"),
    ))
}

fn without_locks(folder: &ExperimentFolder) -> Error {
    let message = format!("the file system of `{}` has no locks", folder.0.display());
    Error::refused(
        Diagnostic::error("results", message)
            .note("without them, two commands could train the same run at the same time")
            .help("use a folder on a disk of this machine with `--results DIR`")
            .help("jobs of a cluster need no locks: see `runner explain launch`"),
    )
}

fn process(holder: &Holder) -> String {
    format!("process {} on host `{}`", holder.pid, holder.host)
}

/// Waits until no worker of an earlier command is training any of these runs; returns whether the user did not cancel.
pub(super) fn wait_for_workers(mut held: Vec<RunFolder>, cancel: &Cancel, sink: &Sink<'_>) -> bool {
    let started = Instant::now();
    let mut named = BTreeSet::new();
    loop {
        // Nothing else takes the others in the meantime: this process has locked the experiment.
        held.retain(RunFolder::is_in_use);
        if held.is_empty() {
            return true;
        }
        if cancel.urgency() != Urgency::None {
            return false;
        }
        if started.elapsed() >= MOMENT {
            for folder in &held {
                if named.insert(folder.0.clone())
                    && let Ok(Locked::Busy(holder)) = folder.try_lock()
                {
                    sink(Progress::Waiting(&words(folder, holder.as_ref())));
                }
            }
        }
        std::thread::sleep(TICK);
    }
}

fn words(folder: &RunFolder, holder: Option<&Holder>) -> String {
    let run = folder.0.file_name().unwrap_or_default().to_string_lossy();
    let resumes = "the run then resumes from its newest checkpoint";
    let (who, end) = match holder {
        Some(holder) => (
            format!(
                "process {} on host `{}`, since {}: {}",
                holder.pid, holder.host, holder.since, holder.command
            ),
            format!("`kill -9 {}`", holder.pid),
        ),
        None => (
            "its process is unknown".to_owned(),
            format!("`fuser -k -KILL {}`", folder.0.join(".lock").display()),
        ),
    };
    format!(
        "a worker of an earlier command is still training run `{run}` ({who})\n  it saves a checkpoint and ends, or terminates itself after 10 s if it hangs; to end it now: {end} ({resumes}); to stop waiting: Ctrl-C"
    )
}
