//! The files of a run where there is no disk, such as in a browser.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use super::log::{LogHead, RunHead, text_of};
use super::run_folder::run_toml;
use super::{Environment, RunRecord, seal, write::json_text};
use crate::event::Event;
use crate::hash::sha256_hex;
use crate::plan::RunPlan;

/// A file with a value as sealed JSON, as the run's folder has it.
///
/// # Errors
/// If the value cannot be written as JSON.
pub fn sealed(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_string(value).map_err(io::Error::other)?;
    text.push('\n');
    Ok(seal::json(text).into_bytes())
}

/// All files of a run by path in its folder, and its record: those given, such as `model/final.bpk`, and those that
/// follow from its plan and its events. The digests of the given files become an event before the last one.
///
/// # Errors
/// If the plan cannot be written as TOML.
pub fn files_of(
    plan: &RunPlan,
    environment: &Environment,
    mut events: Vec<(u64, Event)>,
    mut files: BTreeMap<String, Vec<u8>>,
) -> io::Result<(RunRecord, BTreeMap<String, Vec<u8>>)> {
    let digests = files.iter();
    let digests = digests.map(|(path, bytes)| (path.clone(), sha256_hex(bytes)));
    let recorded = Event::FilesRecorded {
        files: digests.collect(),
    };
    let last = events.len().saturating_sub(1);
    let time = events.get(last).map_or(0, |(time, _)| *time);
    events.insert(last, (time, recorded));
    let record = RunRecord::of(&events);
    let log = text_of(&LogHead::of(RunHead::of(plan)), &events)?;
    let mut add = |path: &str, text: String| files.insert(path.to_owned(), text.into_bytes());
    add("run.toml", run_toml(plan)?);
    add("environment.json", json_text(environment)?);
    add("events.jsonl", log);
    add("metrics.csv", record.metrics_csv());
    if let Some(summary) = record.summary(plan) {
        add("summary.json", json_text(&summary)?);
    }
    Ok((record, files))
}
