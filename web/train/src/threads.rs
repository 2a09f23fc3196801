//! Threads, where memory can be shared: workers of JavaScript that run those of rayon. The standard library cannot start
//! threads in a browser.

use std::sync::{Condvar, Mutex, PoisonError};

use rayon::{ThreadBuilder, ThreadPoolBuilder};
use wasm_bindgen::prelude::*;

/// The memory of this module, for a worker that shares it.
#[wasm_bindgen]
pub fn shared_memory() -> JsValue {
    wasm_bindgen::memory()
}

/// This module, compiled, for the same worker.
#[wasm_bindgen]
pub fn shared_module() -> JsValue {
    wasm_bindgen::module()
}

/// Threads of the pool that no worker has taken yet.
static WAITING: Mutex<Vec<ThreadBuilder>> = Mutex::new(Vec::new());
static ADDED: Condvar = Condvar::new();

/// Makes the pool that computes: of this thread and of `others`, each a worker that has called or will call `thread`.
/// Returns when all of them have started, and never if there are fewer. At most once, before the first training.
///
/// # Errors
/// If there is a pool already.
#[wasm_bindgen]
pub fn open_threads(others: usize) -> Result<(), String> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(others + 1)
        // It computes too, as the main thread of the program does.
        .use_current_thread()
        .spawn_handler(|thread| {
            let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push(thread);
            ADDED.notify_one();
            Ok(())
        });
    pool.build_global().map_err(|e| e.to_string())
}

/// Is one of the pool's threads. Waits for the pool, and does not return.
#[wasm_bindgen]
pub fn thread() {
    let waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut waiting = ADDED
        .wait_while(waiting, |waiting| waiting.is_empty())
        .unwrap_or_else(PoisonError::into_inner);
    let thread = waiting.pop();
    // The others wait for the lock.
    drop(waiting);
    if let Some(thread) = thread {
        thread.run();
    }
}
