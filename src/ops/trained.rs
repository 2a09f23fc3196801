//! Runs that are dispatched to workers, whose events are recorded as they arrive.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};

use super::{Progress, Sink};
use crate::dispatch::{self, Cancel, Observed, Reason, Settings, Task, Urgency};
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::Collector;
use runner_report::console::TICK;

/// Why runs were not trained to their end, or not recorded.
pub(super) struct NotTrained {
    pub(super) error: Error,
    /// Whether the sink has already been told, since it happened during training.
    pub(super) is_told: bool,
}

impl From<Error> for NotTrained {
    fn from(error: Error) -> Self {
        Self {
            error,
            is_told: false,
        }
    }
}

/// Trains runs, each of which has the same index in the collector, and returns when all have ended. Runs that cannot be
/// recorded must not be trained: all are stopped then.
pub(super) fn train_all(
    tasks: &[Task],
    settings: &Settings,
    cancel: &Cancel,
    collector: &mut Collector,
    sink: &Sink<'_>,
) -> Result<(), NotTrained> {
    let (sender, receiver) = mpsc::channel::<Observed>();
    let (dispatched, collected) = std::thread::scope(|scope| {
        let collecting = scope.spawn(move || collect(&receiver, cancel, collector, sink));
        let dispatched = dispatch::dispatch(tasks, settings, cancel, sender);
        (dispatched, collecting.join())
    });
    let internal = |reason: String| Error::refused(Diagnostic::error("internal", reason));
    match collected {
        Ok(None) => {}
        Ok(Some(error)) => {
            return Err(NotTrained {
                error,
                is_told: true,
            });
        }
        Err(_) => return Err(internal("the collector panicked".into()).into()),
    }
    dispatched.map_err(|reason| internal(reason.to_string()))?;
    Ok(())
}

/// Receives events until the last run has ended. Returns why they could not be recorded, if so.
fn collect(
    receiver: &Receiver<Observed>,
    cancel: &Cancel,
    collector: &mut Collector,
    sink: &Sink<'_>,
) -> Option<Error> {
    let mut failed: Option<Error> = None;
    loop {
        let is_over = match receiver.recv_timeout(TICK) {
            Ok(Observed { run, event }) => {
                let taken = collector.take(run, &event);
                let recorded = &collector.runs[run];
                // Readers of the stream can rely on an event being in the record.
                sink(Progress::Recorded(&recorded.plan, &event));
                if let (Err(e), None) = (taken, &failed) {
                    cancel.cancel(Urgency::Graceful, Reason::NotRecorded);
                    let error = Error::unwritable(&recorded.folder.0, &e);
                    sink(Progress::Failed(&error));
                    failed = Some(error);
                }
                sink(Progress::Event {
                    run,
                    plan: &recorded.plan,
                    event: &event,
                    record: &recorded.record,
                });
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        sink(Progress::Tick);
        if is_over {
            sink(Progress::Trained);
            return failed;
        }
    }
}
