//! The queue in front of the network. One batch is computed at a time: all requests that wait when the previous batch
//! ends, up to a maximum size. A single request is thus computed immediately, and batches grow under load.
//!
//! Slow networks are computed in a separate thread. If batches take less than [`QUICK`], they are computed in the thread
//! that reads the requests: waking another thread would take as long, and much longer on a busy machine.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::predict::Prediction;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::{Gauges, Options};
use crate::model::Model;

/// A batch that takes less than this does not keep the other requests of its thread waiting.
const QUICK: Duration = Duration::from_micros(500);

/// The result of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A prediction for each row.
    Done(Vec<Prediction>),
    /// The rows are wrong.
    Refused(String),
    /// The queue is full.
    Full,
    /// More rows than the capacity of the queue.
    TooMany(usize),
    /// A bug: the computation panicked.
    Failed,
}

/// Waiting requests.
pub(super) struct Queue {
    shared: Arc<Shared>,
    max_waiting: usize,
}

struct Shared {
    model: Model,
    gauges: Arc<Gauges>,
    max_batch: usize,
    /// Whether a request is computed by itself: an item is made of several of its rows.
    is_alone: bool,
    waiting: Mutex<Waiting>,
    /// Notified of requests for the thread, and of the end.
    changed: Condvar,
    /// Held by whoever computes.
    computing: Mutex<()>,
    /// Nanoseconds of the last batch.
    last: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    num_items: usize,
    is_closed: bool,
}

struct Job {
    rows: Vec<String>,
    reply: oneshot::Sender<Outcome>,
}

impl Queue {
    /// Starts the thread that computes.
    pub fn start(model: Model, options: &Options, gauges: Arc<Gauges>) -> std::io::Result<Self> {
        let is_alone = model.transforms().input.window().is_some();
        let shared = Arc::new(Shared {
            model,
            is_alone,
            gauges,
            max_batch: options.max_batch.max(1),
            waiting: Mutex::default(),
            changed: Condvar::new(),
            computing: Mutex::default(),
            last: AtomicU64::new(u64::MAX),
        });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("predict".into());
        thread.spawn(move || {
            while theirs.wait() {
                theirs.compute_next(lock(&theirs.computing));
            }
        })?;
        Ok(Self {
            shared,
            max_waiting: options.max_waiting.max(1),
        })
    }

    /// Waits for the predictions of rows, each a JSON object.
    pub async fn ask(&self, rows: Vec<String>) -> Outcome {
        if rows.is_empty() {
            return Outcome::Done(Vec::new());
        }
        if rows.len() > self.max_waiting {
            return Outcome::TooMany(self.max_waiting);
        }
        let (reply, mut answer) = oneshot::channel();
        {
            let mut waiting = lock(&self.shared.waiting);
            if waiting.num_items + rows.len() > self.max_waiting {
                return Outcome::Full;
            }
            waiting.num_items += rows.len();
            waiting.jobs.push_back(Job { rows, reply });
        }
        if self.shared.is_quick() {
            // Requests that were read at the same time become one batch.
            tokio::task::yield_now().await;
            match answer.try_recv() {
                Ok(outcome) => return outcome,
                Err(TryRecvError::Closed) => return Outcome::Failed,
                Err(TryRecvError::Empty) => self.shared.help(),
            }
        } else {
            self.shared.changed.notify_one();
        }
        answer.await.unwrap_or(Outcome::Failed)
    }

    /// The number of waiting items.
    pub fn num_waiting(&self) -> usize {
        lock(&self.shared.waiting).num_items
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        lock(&self.shared.waiting).is_closed = true;
        self.shared.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn is_quick(&self) -> bool {
        u128::from(self.last.load(Ordering::Relaxed)) < QUICK.as_nanos()
    }

    /// Computes a batch here, unless another one is being computed: whoever does that wakes the thread for the rest.
    fn help(&self) {
        match self.computing.try_lock() {
            Ok(free) => self.compute_next(free),
            Err(TryLockError::Poisoned(free)) => self.compute_next(free.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Computes what waits, up to a batch, and leaves the rest to the thread.
    fn compute_next(&self, free: MutexGuard<'_, ()>) {
        let jobs = self.next_batch();
        if !jobs.is_empty() {
            let started = Instant::now();
            compute(&self.model, jobs, &self.gauges);
            let nanos = started.elapsed().as_nanos().try_into();
            self.last
                .store(nanos.unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        // Whoever finds this locked has put its request into the queue before.
        drop(free);
        if !lock(&self.waiting).jobs.is_empty() {
            self.changed.notify_one();
        }
    }

    /// Waits for a request; false at the end.
    fn wait(&self) -> bool {
        let mut waiting = lock(&self.waiting);
        while waiting.jobs.is_empty() && !waiting.is_closed {
            let woken = self.changed.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
        !waiting.jobs.is_empty()
    }

    /// The requests of the next batch: at least one, even if it is larger than a batch, if any waits.
    fn next_batch(&self) -> Vec<Job> {
        let mut waiting = lock(&self.waiting);
        let mut jobs: Vec<Job> = Vec::new();
        let mut num_items = 0;
        while let Some(next) = waiting.jobs.front() {
            let is_gone = next.reply.is_closed();
            let is_full = self.is_alone || num_items + next.rows.len() > self.max_batch;
            if !is_gone && !jobs.is_empty() && is_full {
                break;
            }
            let Some(job) = waiting.jobs.pop_front() else {
                break;
            };
            waiting.num_items -= job.rows.len();
            // Clients that are gone need no answer.
            if !is_gone {
                num_items += job.rows.len();
                jobs.push(job);
            }
        }
        jobs
    }
}

/// Computes several requests at once, or each separately if one of them is invalid: a message then names its own rows.
fn compute(model: &Model, jobs: Vec<Job>, gauges: &Gauges) {
    let all: Vec<&str> = jobs
        .iter()
        .flat_map(|job| job.rows.iter().map(String::as_str))
        .collect();
    let outcome = predict(model, &all, gauges);
    if let (Outcome::Refused(_), true) = (&outcome, jobs.len() > 1) {
        for job in jobs {
            let rows: Vec<&str> = job.rows.iter().map(String::as_str).collect();
            // Nobody waits for the answer if the client is gone.
            let _ = job.reply.send(predict(model, &rows, gauges));
        }
        return;
    }
    match outcome {
        Outcome::Done(mut predictions) => {
            for job in jobs {
                let rest = predictions.split_off(job.rows.len().min(predictions.len()));
                let theirs = std::mem::replace(&mut predictions, rest);
                let _ = job.reply.send(Outcome::Done(theirs));
            }
        }
        Outcome::Refused(reason) => {
            for job in jobs {
                let _ = job.reply.send(Outcome::Refused(reason.clone()));
            }
        }
        _ => drop(jobs),
    }
}

fn predict(model: &Model, rows: &[&str], gauges: &Gauges) -> Outcome {
    let computed = std::panic::catch_unwind(AssertUnwindSafe(|| model.predict_objects(rows)));
    match computed {
        Ok(Ok(predictions)) if predictions.is_empty() => Outcome::Refused(format!(
            "the request has {}, which are too few for an item: it is a window of consecutive rows",
            counted(rows.len(), "row")
        )),
        Ok(Ok(predictions)) => {
            gauges.computed(rows.len());
            Outcome::Done(predictions)
        }
        Ok(Err(diagnostic)) => Outcome::Refused(words(&diagnostic)),
        Err(_) => {
            tracing::error!("a prediction panicked; the request is answered with 500");
            Outcome::Failed
        }
    }
}

/// A message in one line.
fn words(diagnostic: &Diagnostic) -> String {
    let mut words = diagnostic.message.clone();
    for more in diagnostic.notes.iter().chain(&diagnostic.helps) {
        words += "; ";
        words += more;
    }
    words
}
