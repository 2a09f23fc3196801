//! Training in a browser: the runs of the program, for JavaScript.
//!
//! A run is the JSON that the module `runner_plan` makes of an experiment file. `web/package/index.js` has the classes and
//! their documentation. Data is read from files in memory.

#[cfg(feature = "webgpu")]
mod gpu;
mod record;
mod session;
#[cfg(feature = "threads")]
mod threads;

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance)]
    fn now() -> f64;
}

/// Seconds since the page was opened.
fn seconds() -> f64 {
    now() / 1000.0
}

/// How many threads compute.
fn num_threads() -> usize {
    #[cfg(feature = "threads")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "threads"))]
    1
}
