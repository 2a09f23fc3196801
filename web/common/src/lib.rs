//! What every module of the page exports, and how they show a run. Each module has a memory of its own.

pub mod shown;

use std::cell::Cell;
use std::panic;
use std::path::Path;

use runner_core::disk::memory;
use runner_core::spec::plain_file;
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(text: &str);
}

/// The name of the device `flex`.
pub const PROCESSOR: &str = "WebAssembly, pure-Rust kernels";

thread_local! {
    static CHANGES: Cell<u64> = const { Cell::new(0) };
}

/// How often a file was added or removed.
pub fn changes() -> u64 {
    CHANGES.get()
}

/// Prints panics to the console, since they end the module without a message otherwise.
#[wasm_bindgen(start)]
pub fn start() {
    panic::set_hook(Box::new(|info| error(&info.to_string())));
}

/// Adds a file that experiment files can name, or replaces it. Relative paths begin at the root.
#[wasm_bindgen]
pub fn put_file(path: &str, bytes: Vec<u8>) {
    CHANGES.set(changes() + 1);
    memory::put(Path::new(path), bytes);
}

/// Removes a file, or all files of a folder.
#[wasm_bindgen]
pub fn remove_file(path: &str) {
    CHANGES.set(changes() + 1);
    memory::remove(Path::new(path));
}

/// The paths of all files that were added.
#[wasm_bindgen]
pub fn file_paths() -> Vec<String> {
    let files = memory::list().into_iter();
    let paths = files.map(|(path, _)| path.to_string_lossy().into_owned());
    paths.collect()
}

/// The content of a file that was added.
///
/// # Errors
/// If it was removed since.
#[wasm_bindgen]
pub fn read_file(path: &str) -> Result<Vec<u8>, String> {
    plain_file::read_whole(Path::new(path)).map_err(|e| format!("`{path}` cannot be read: {e}"))
}
