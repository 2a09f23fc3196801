//! Experiment files in a browser: the checks, messages and plans of the program, for JavaScript.
//!
//! A function takes and returns texts, JSON and bytes. `web/package/index.js` has the classes and their documentation.
//! Files are in memory: experiment files name those that were added.

mod experiment;

use runner_core::plan::inventory::Missing;
use wasm_bindgen::prelude::*;

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

/// Says that the browser has a GPU, which is the device `wgpu`.
#[wasm_bindgen]
pub fn found_gpu(name: String, is_software: bool) {
    experiment::set_gpu(Ok((name, is_software)));
}

/// Says why the device `wgpu` is not available.
#[wasm_bindgen]
pub fn missing_gpu(reason: String, remedy: String) {
    experiment::set_gpu(Err(Missing { reason, remedy }));
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

/// The plan of an experiment file as JSON.
///
/// # Errors
/// The messages that `check` returns.
#[wasm_bindgen]
pub fn plan(text: &str, name: &str) -> Result<String, String> {
    let planned = experiment::plan(text, name).map_err(|wrong| wrong.to_string())?;
    Ok(experiment::shown(&planned).to_string())
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

/// A run of an experiment file by its id, resolved, as JSON: what the other modules train and record.
///
/// # Errors
/// The messages that `check` returns, or that the run does not exist.
#[wasm_bindgen]
pub fn run_json(text: &str, name: &str, id: &str) -> Result<String, String> {
    let planned = experiment::plan(text, name).map_err(|wrong| wrong.to_string())?;
    let run = planned.plan.runs.iter().find(|run| run.id == id);
    let run = run.ok_or_else(|| format!("there is no run `{id}`"))?;
    serde_json::to_string(run).map_err(|e| e.to_string())
}
