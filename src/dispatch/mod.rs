//! Runs as processes: a queue, so many at once, each with its share of threads. Prints and writes
//! nothing; everything it learns goes to the collector as events.

mod child;

use std::path::PathBuf;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::Event;
use crate::plan::RunPlan;

/// An event of one of the dispatched runs.
#[derive(Debug)]
pub struct Observed {
    /// The run, by its place among those dispatched.
    pub run: usize,
    /// What happened.
    pub event: Event,
}

/// A run to dispatch.
#[derive(Clone, Debug)]
pub struct Task {
    /// The run.
    pub plan: RunPlan,
    /// Its folder, with `run.toml` in it.
    pub folder: PathBuf,
    /// Where the worker's log goes.
    pub log: PathBuf,
    /// Arguments for this run's worker alone.
    pub arguments: Vec<String>,
}

/// How runs are dispatched.
#[derive(Clone, Debug)]
pub struct Settings {
    /// This program.
    pub program: PathBuf,
    /// Runs at once.
    pub jobs: usize,
    /// Threads of each run.
    pub threads: usize,
}

/// How urgently everything is to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Not at all.
    #[default]
    None,
    /// Runs save a checkpoint and stop; no run is started.
    Graceful,
    /// Runs are killed.
    AtOnce,
}

/// Ends runs from outside.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<Cancelled>>);

#[derive(Default)]
struct Cancelled {
    urgency: Urgency,
    running: Vec<Option<Running>>,
}

/// A worker's process. Its standard input is a leash: when it closes, the worker stops gracefully, also
/// when this program was killed.
struct Running {
    child: Child,
    leash: Option<ChildStdin>,
}

impl Cancel {
    /// Ends all runs, with at least this urgency.
    pub fn cancel(&self, urgency: Urgency) {
        let mut cancelled = self.lock();
        cancelled.urgency = cancelled.urgency.max(urgency);
        for running in cancelled.running.iter_mut().flatten() {
            running.leash = None;
            if urgency == Urgency::AtOnce {
                // It may have ended by itself; then there is nothing to kill.
                let _ = running.child.kill();
            }
        }
    }

    /// The urgency so far.
    pub fn urgency(&self) -> Urgency {
        self.lock().urgency
    }

    fn lock(&self) -> MutexGuard<'_, Cancelled> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs every task, `settings.jobs` at once, and returns when the last one has ended. The error is a
/// phrase.
pub fn dispatch(
    tasks: &[Task],
    settings: &Settings,
    cancel: &Cancel,
    observed: Sender<Observed>,
) -> Result<(), String> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.jobs)
        .thread_name(|slot| format!("slot-{slot}"))
        .build()
        .map_err(|e| format!("cannot start {} threads: {e}", settings.jobs))?;
    cancel.lock().running.resize_with(tasks.len(), || None);
    pool.in_place_scope_fifo(|scope| {
        for (run, task) in tasks.iter().enumerate() {
            let observed = observed.clone();
            scope.spawn_fifo(move |_| {
                if cancel.urgency() == Urgency::None {
                    let send = |event| {
                        // The collector outlives the scope; without it nobody wants the event.
                        let _ = observed.send(Observed { run, event });
                    };
                    child::run(run, task, settings, cancel, &send);
                }
            });
        }
    });
    Ok(())
}
