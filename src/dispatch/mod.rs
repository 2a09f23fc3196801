//! Runs as processes: a queue with limited concurrency, where each run has its share of threads, its time limit and its
//! retries. Prints and writes nothing; everything goes to the collector as events.

mod admission;
mod cancel;
mod child;
mod hardware;
mod retry;

use admission::Admission;
pub use cancel::{Cancel, GRACE, Reason, Urgency};
pub use child::{HOLDER, ended_by, environment, lines, signal_in_words};
pub use hardware::Hardware;

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use runner_core::event::{Attempts, Event};
use runner_core::plan::RunPlan;

/// An event of one of the dispatched runs.
#[derive(Debug)]
pub struct Observed {
    /// The run, by its index among those dispatched.
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
    /// The folder as users know it, if `folder` is another path of it.
    pub shown: Option<PathBuf>,
    /// The file of the worker's log.
    pub log: PathBuf,
    /// Additional arguments for this run's worker.
    pub arguments: Vec<String>,
    /// The state of its earlier attempts.
    pub attempts: Attempts,
}

/// Settings of the dispatch.
#[derive(Clone)]
pub struct Settings {
    /// This program.
    pub program: PathBuf,
    /// Concurrent runs.
    pub jobs: usize,
    /// Threads of each run.
    pub threads: usize,
    /// The hardware of the runs.
    pub hardware: Hardware,
    /// The time at which everything stops.
    pub time_limit: Option<Duration>,
}

/// The system gives no threads to wait for workers with.
#[derive(Debug)]
pub struct NoSlots {
    num: usize,
    error: rayon::ThreadPoolBuildError,
}

impl fmt::Display for NoSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start {} threads: {}", self.num, self.error)
    }
}

impl std::error::Error for NoSlots {}

/// Runs every task, `settings.jobs` at once, and returns when the last one has ended.
///
/// # Errors
///
/// When the system gives no threads.
pub fn dispatch(
    tasks: &[Task],
    settings: &Settings,
    cancel: &Cancel,
    observed: Sender<Observed>,
) -> Result<(), NoSlots> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(settings.jobs)
        .thread_name(|slot| format!("slot-{slot}"))
        .build()
        .map_err(|error| NoSlots {
            num: settings.jobs,
            error,
        })?;
    cancel.expect(tasks.len());
    let deadline = settings.time_limit.map(|limit| Instant::now() + limit);
    let claims = tasks.iter().map(|task| {
        let plan = task.plan.adjusted(&task.attempts.adjustments);
        settings.hardware.claim(&plan)
    });
    let admission = &Admission::new(claims.collect(), settings.hardware.capacities.clone());
    std::thread::scope(|watching| {
        watching.spawn(|| cancel.watch(deadline));
        let _watched = cancel.while_watched();
        pool.in_place_scope(|scope| {
            for _ in 0..settings.jobs {
                let observed = observed.clone();
                scope.spawn(move |_| {
                    while let Some(run) = admission.next() {
                        let send = |event| {
                            // The collector outlives the scope; without it nobody needs the event.
                            let _ = observed.send(Observed { run, event });
                        };
                        if cancel.may_start() {
                            retry::run(run, &tasks[run], settings, (cancel, admission), &send);
                        }
                        if cancel.urgency() != Urgency::None {
                            admission.close();
                        } else if !cancel.may_start() {
                            admission.start_no_more();
                        }
                        admission.end(run);
                    }
                });
            }
        });
    });
    Ok(())
}
