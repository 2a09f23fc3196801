//! Many files at once: most of the time, a thread waits for the disk, or for a file server.

use rayon::prelude::*;

/// Threads that read or write files.
const NUM_THREADS: usize = 16;

/// This many files are read sooner than threads start.
const FEW: usize = 32;

/// The result of `work` for each item, in order.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let pool = (items.len() > FEW).then(|| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(NUM_THREADS);
        pool.build().ok()
    });
    match pool.flatten() {
        Some(pool) => pool.install(|| items.par_iter().map(&work).collect()),
        None => items.iter().map(work).collect(),
    }
}
