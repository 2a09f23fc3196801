//! The queue in front of the network. One thread computes: all requests that wait when it becomes free are one batch,
//! up to a maximum size. A single request is thus computed immediately, and batches grow under load.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use runner_core::diagnostic::Diagnostic;
use runner_core::predict::Prediction;
use tokio::sync::oneshot;

use super::{Gauges, Options};
use crate::model::Model;

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
    waiting: Mutex<Waiting>,
    /// Notified of each new request, and of the end.
    changed: Condvar,
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
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            changed: Condvar::new(),
        });
        let theirs = shared.clone();
        let max_batch = options.max_batch.max(1);
        let thread = std::thread::Builder::new().name("predict".into());
        thread.spawn(move || {
            while let Some(jobs) = theirs.next_batch(max_batch) {
                compute(&model, jobs, &gauges);
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
        let (reply, answer) = oneshot::channel();
        {
            let mut waiting = self.shared.lock();
            if waiting.num_items + rows.len() > self.max_waiting {
                return Outcome::Full;
            }
            waiting.num_items += rows.len();
            waiting.jobs.push_back(Job { rows, reply });
        }
        self.shared.changed.notify_one();
        answer.await.unwrap_or(Outcome::Failed)
    }

    /// The number of waiting items.
    pub fn num_waiting(&self) -> usize {
        self.shared.lock().num_items
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests of the next batch: at least one, even if it is larger than a batch. `None` at the end.
    fn next_batch(&self, max_batch: usize) -> Option<Vec<Job>> {
        let mut waiting = self.lock();
        loop {
            // Clients that are gone need no answer.
            while waiting
                .jobs
                .front()
                .is_some_and(|job| job.reply.is_closed())
            {
                let gone = waiting.jobs.pop_front();
                waiting.num_items -= gone.map_or(0, |job| job.rows.len());
            }
            if !waiting.jobs.is_empty() {
                break;
            }
            if waiting.is_closed {
                return None;
            }
            let woken = self.changed.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
        let mut jobs: Vec<Job> = Vec::new();
        let mut num_items = 0;
        while let Some(next) = waiting.jobs.front() {
            if !jobs.is_empty() && num_items + next.rows.len() > max_batch {
                break;
            }
            num_items += next.rows.len();
            jobs.extend(waiting.jobs.pop_front());
        }
        waiting.num_items -= num_items;
        Some(jobs)
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
