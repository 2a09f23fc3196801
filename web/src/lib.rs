//! Runner in a browser: the checks, plans, trainings and exports of the program, for JavaScript.
//!
//! A function takes and returns texts, JSON and bytes. `web/package/index.js` has the classes and their documentation.
//! Files are in memory: experiment files name those that were added.

mod experiment;
mod record;
mod session;
mod shown;

use std::panic;

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(text: &str);
    #[wasm_bindgen(js_namespace = performance)]
    fn now() -> f64;
}

/// Seconds since the page was opened.
fn seconds() -> f64 {
    now() / 1000.0
}

/// Prints panics to the console, since they end the module without a message otherwise.
#[wasm_bindgen(start)]
pub fn start() {
    panic::set_hook(Box::new(|info| error(&info.to_string())));
}

/// The version of runner.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

/// The JSON schema of experiment files.
#[wasm_bindgen]
pub fn schema() -> String {
    runner_core::spec::schema::experiment_schema()
}

/// Adds a file that experiment files can name, or replaces it. Relative paths begin at the root.
#[wasm_bindgen]
pub fn put_file(path: &str, bytes: Vec<u8>) {
    experiment::put_file(path, bytes);
}

/// Removes a file, or all files of a folder.
#[wasm_bindgen]
pub fn remove_file(path: &str) {
    experiment::remove_file(path);
}

/// The text of a first experiment file for a file or folder of data.
///
/// # Errors
/// Why the data cannot be read.
#[wasm_bindgen]
pub fn starter(path: &str) -> Result<String, String> {
    experiment::starter(path).map_err(|error| error.to_string())
}

/// A list of messages about an experiment file, as JSON; empty if nothing is wrong. `name` is the name of the file.
#[wasm_bindgen]
pub fn check(text: &str, name: &str) -> String {
    experiment::check(text, name).to_string()
}

/// The whole plan of an experiment file as JSON, as `plan.json` of its results has it.
///
/// # Errors
/// The messages that `check` returns.
#[wasm_bindgen]
pub fn plan_json(text: &str, name: &str) -> Result<String, String> {
    let planned = experiment::plan(text, name).map_err(|wrong| wrong.to_string())?;
    serde_json::to_string(&planned.plan).map_err(|e| e.to_string())
}

/// The plan of an experiment file as JSON.
///
/// # Errors
/// The messages that `check` returns.
#[wasm_bindgen]
pub fn plan(text: &str, name: &str) -> Result<String, String> {
    let planned = experiment::plan(text, name).map_err(|wrong| wrong.to_string())?;
    Ok(experiment::shown(&planned).to_string())
}
