//! Leases that are held while something is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::dispatch::{Cancel, Reason, Urgency};
use crate::error::Error;
use crate::ops::{Progress, Sink};
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{
    Alive, BEAT, ExperimentFolder, Holder, LEASE_PATIENCE, Lease, Leased, Tenant, process_exists,
};

/// Shows that the holder of a lease is alive, until the sender is dropped; returns whether no other process has taken
/// it. `look` is called each time.
pub(super) fn beat_until(lease: &Lease, ends: &Receiver<()>, mut look: impl FnMut()) -> bool {
    let mut count = 0;
    loop {
        count += 1;
        // What cannot be written or read now is tried again.
        let _ = lease.beat(count);
        if let Ok(false) = lease.is_current() {
            return false;
        }
        look();
        if let Err(RecvTimeoutError::Disconnected) = ends.recv_timeout(BEAT) {
            return true;
        }
    }
}

/// The right to plan and submit runs, until it is dropped.
pub(in crate::ops) struct Submitter {
    active: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    is_lost: Arc<AtomicBool>,
    folder: ExperimentFolder,
}

impl Submitter {
    /// Takes it, if no other command has it; with `waits`, as soon as none does. `is_locked` is whether this process has
    /// the lock of the folder, which other processes of this machine then do not have.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if another command has it, [`Error::Interrupted`] if the user stopped waiting.
    pub(in crate::ops) fn take(
        folder: &ExperimentFolder,
        (is_locked, waits): (bool, bool),
        cancel: &Cancel,
        sink: &Sink<'_>,
    ) -> Result<Self, Error> {
        let here = Holder::here();
        let tenant = Tenant {
            host: here.host.clone(),
            pid: here.pid,
            ..Tenant::default()
        };
        let is_told = AtomicBool::new(false);
        let alive = Alive {
            has_ended: &|it| is_locked && it.host == here.host && !process_exists(it.pid),
            pause: &|time| {
                if !is_told.swap(true, Ordering::AcqRel) {
                    sink(Progress::Waiting(&format!(
                        "another `runner run` of `{}` has not ended properly, or is active on another machine: this takes up to {} s to find out",
                        folder.0.display(),
                        LEASE_PATIENCE.as_secs()
                    )));
                }
                std::thread::sleep(time);
                cancel.urgency() == Urgency::None
            },
        };
        loop {
            let leased = folder.lease_submitting(&tenant, &alive);
            match leased.map_err(|e| Error::unwritable_results(&folder.launch(), &e))? {
                Leased::Taken(lease) => return Ok(Self::hold(folder.clone(), lease, cancel)),
                Leased::Busy(_) if cancel.urgency() != Urgency::None => {
                    let message = "stopped while waiting: no run was started";
                    return Err(Error::Interrupted(message.into()));
                }
                Leased::Busy(_) if waits => std::thread::sleep(Duration::from_secs(1)),
                Leased::Busy(holder) => return Err(busy(folder, holder)),
            }
        }
    }

    fn hold(folder: ExperimentFolder, lease: Lease, cancel: &Cancel) -> Self {
        let (active, ends) = mpsc::channel();
        let is_lost = Arc::new(AtomicBool::new(false));
        let (lost, cancel) = (is_lost.clone(), cancel.clone());
        let thread = std::thread::spawn(move || {
            if beat_until(&lease, &ends, || ()) {
                // Otherwise the next command takes some time to see that this one has ended.
                let _ = lease.release();
            } else {
                lost.store(true, Ordering::Release);
                cancel.cancel(Urgency::Graceful, Reason::User);
            }
        });
        Self {
            active: Some(active),
            thread: Some(thread),
            is_lost,
            folder,
        }
    }

    /// Refuses to go on if another command has taken it.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] in this case.
    pub(in crate::ops) fn check(&self) -> Result<(), Error> {
        if !self.is_lost.load(Ordering::Acquire) {
            return Ok(());
        }
        let message = format!(
            "another `runner run` has taken over `{}`, since this one did not respond for {} s",
            self.folder.0.display(),
            LEASE_PATIENCE.as_secs()
        );
        Err(Error::failed(Diagnostic::error("results", message).help(
            "nothing is lost: the other command continues, and jobs are not affected",
        )))
    }
}

impl Drop for Submitter {
    fn drop(&mut self) {
        drop(self.active.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn busy(folder: &ExperimentFolder, holder: Option<Tenant>) -> Error {
    let message = format!(
        "another `runner run` is writing to `{}`",
        folder.0.display()
    );
    let mut diagnostic = Diagnostic::error("results", message);
    if let Some(holder) = holder {
        let who = format!("it is process {} on host `{}`", holder.pid, holder.host);
        diagnostic = diagnostic.note(who);
    }
    Error::refused(
        diagnostic
            .help("wait for it: add `--wait`")
            .help("or choose another folder with `--results DIR`"),
    )
}
