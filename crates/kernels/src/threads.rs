//! Threads that stay awake between the operations of a step.
//!
//! A thread of rayon sleeps after a few microseconds without work. Waking it takes some 10 microseconds, more on a virtual
//! machine, and a step of a small network has several operations that are as short: its threads would sleep and wake up
//! in each of them. OpenMP's threads, which PyTorch uses, look for work for some time before they sleep; here they do,
//! too, for as long as the next operation may take to come.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long a thread looks for work in vain.
const PATIENCE: Duration = Duration::from_micros(200);
/// How long a thread looks for work in all: if it was asked to while it waits for a part of its own work, then it must go
/// on with that work although others still have some.
const TURN: Duration = Duration::from_millis(10);

/// The threads that look for work, of all pools: a process that computes has one.
static LOOKING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// Lets the other threads of the calling thread's pool look for work for 200 microseconds after their last work, instead
/// of sleeping. They let other threads of the machine go first. To be called at the start of each step, outside of
/// parallel work; on a thread of no pool, nothing happens.
///
/// ```
/// use rayon::prelude::*;
/// use runner_kernels::stay_awake;
///
/// let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
/// let sum: u32 = pool.install(|| {
///     stay_awake();
///     (0..100_u32).into_par_iter().sum()
/// });
/// assert_eq!(sum, 4950);
/// ```
pub fn stay_awake() {
    let Some(own) = rayon::current_thread_index() else {
        return;
    };
    if LOOKING.load(Ordering::Relaxed) + 1 >= rayon::current_num_threads() {
        return;
    }
    rayon::spawn_broadcast(move |context| {
        if context.index() != own && !IS_LOOKING.replace(true) {
            LOOKING.fetch_add(1, Ordering::Relaxed);
            look();
            LOOKING.fetch_sub(1, Ordering::Relaxed);
            IS_LOOKING.set(false);
        }
    });
}

/// Does the work of others until there is none for some time.
fn look() {
    let started = Instant::now();
    let mut worked = started;
    while !is_over(started, worked, Instant::now()) {
        match rayon::yield_now() {
            Some(rayon::Yield::Executed) => worked = Instant::now(),
            _ => thread::yield_now(),
        }
    }
}

/// Whether a thread that began to look at `started` and last had work at `worked` stops.
fn is_over(started: Instant, worked: Instant, now: Instant) -> bool {
    now - worked > PATIENCE || now - started > TURN
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    #[test]
    fn a_thread_stops_after_a_time_without_work_and_after_its_turn() {
        let started = Instant::now();
        let at = |micros| started + Duration::from_micros(micros);
        let is_over = |worked, now| is_over(started, at(worked), at(now));
        assert!(!is_over(0, 199));
        assert!(is_over(0, 201));
        assert!(!is_over(9_900, 9_999));
        assert!(is_over(10_000, 10_001));
    }

    /// Also while a part of a task waits for its own parts, and when the calling thread is asked itself.
    #[test]
    fn work_ends_and_then_no_thread_looks() {
        let sum = |num: u64| (0..num).into_par_iter().sum::<u64>();
        for num_threads in 1..4 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads);
            let pool = pool.build().expect("a pool");
            pool.install(|| {
                for num in 0..40 {
                    stay_awake();
                    let parts = (0..num).into_par_iter().map(|part| {
                        stay_awake();
                        sum(part)
                    });
                    let parts: Vec<u64> = parts.collect();
                    let expected = (0..num).map(|part| part * part.saturating_sub(1) / 2);
                    assert!(expected.eq(parts));
                }
            });
        }
        while LOOKING.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
    }
}
