//! Runs to an MLflow tracking server.
//!
//! What the server holds is asked for first, and only what it lacks is sent: so an export that was cut off is completed by the
//! next, and one of a tree that did not change writes nothing. A run is known by its id and its fingerprint, which are tags.
//! Settings are parameters, which MLflow never changes once they are there.

mod client;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

pub use client::{Credentials, Server, ServerError};

use super::{Exported, Point, points};
use crate::event::Outcome;
use crate::record::{Environment, settings};
use crate::report::value_text;

/// How many of each the server takes in one request.
const MAX_METRICS: usize = 1000;
const MAX_PARAMS: usize = 100;
/// Characters of a parameter's or a tag's value.
const MAX_VALUE: usize = 6000;
/// Characters of a key.
const MAX_KEY: usize = 250;
/// Runs that are asked for at a time.
const PAGE: usize = 1000;

const RUN: &str = "runner.run";
const FINGERPRINT: &str = "runner.fingerprint";

/// An experiment on a server, with what it holds of our runs.
pub struct Experiment<'a> {
    server: &'a Server,
    id: String,
    runs: BTreeMap<(String, String), There>,
}

/// A run on the server.
#[derive(Clone, Debug, Default)]
struct There {
    id: String,
    status: String,
    end_time: Option<u64>,
    params: BTreeSet<String>,
    tags: BTreeMap<String, String>,
    /// The newest step of each metric.
    newest: BTreeMap<String, usize>,
}

/// What an export came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sent {
    /// Runs that were made.
    pub created: usize,
    /// Runs that were there and got something new.
    pub updated: usize,
    /// Numbers of metrics.
    pub metrics: usize,
}

/// How far a run is, where its record has no outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unfinished {
    /// It may still go on.
    Running,
    /// Nobody is there any more who would.
    Abandoned,
}

impl<'a> Experiment<'a> {
    /// Finds or makes an experiment, and asks for its runs.
    pub fn open(server: &'a Server, name: &str, question: &str) -> Result<Self, ServerError> {
        let id = match server.get("experiments/get-by-name", "experiment_name", name) {
            Ok(found) => {
                let found = &found["experiment"];
                if found["lifecycle_stage"] == "deleted" {
                    return Err(ServerError::Refused {
                        request: "experiments/get-by-name".into(),
                        status: 200,
                        code: String::new(),
                        message: format!(
                            "its experiment `{name}` was deleted; `mlflow experiments restore` brings it back"
                        ),
                    });
                }
                text(&found["experiment_id"])
            }
            Err(ServerError::Refused { code, .. }) if code == "RESOURCE_DOES_NOT_EXIST" => {
                let mut body = json!({ "name": name });
                if !question.is_empty() {
                    let note = cut(question.to_owned());
                    body["tags"] = json!([{ "key": "mlflow.note.content", "value": note }]);
                }
                text(&server.post("experiments/create", &body)?["experiment_id"])
            }
            Err(other) => return Err(other),
        };
        let mut experiment = Self {
            server,
            id,
            runs: BTreeMap::new(),
        };
        experiment.read_runs()?;
        Ok(experiment)
    }

    fn read_runs(&mut self) -> Result<(), ServerError> {
        let mut page = String::new();
        loop {
            let mut body = json!({ "experiment_ids": [self.id], "max_results": PAGE });
            if !page.is_empty() {
                body["page_token"] = json!(page);
            }
            let answer = self.server.post("runs/search", &body)?;
            for run in answer["runs"].as_array().into_iter().flatten() {
                let there = There::read(run);
                let tag = |key: &str| there.tags.get(key).cloned();
                if let Some(key) = tag(RUN).zip(tag(FINGERPRINT)) {
                    // The oldest of several is at the end: runs come newest first.
                    self.runs.insert(key, there);
                }
            }
            page = text(&answer["next_page_token"]);
            if page.is_empty() {
                return Ok(());
            }
        }
    }

    /// Sends what the server lacks of a run that has begun.
    pub fn export(
        &mut self,
        run: &Exported,
        unfinished: Unfinished,
        sent: &mut Sent,
    ) -> Result<(), ServerError> {
        let environment = run.folder.read_environment().ok().flatten();
        let tags = tags(run, environment.as_ref());
        let key = (run.plan.id.clone(), run.plan.fingerprint.clone());
        let is_new = !self.runs.contains_key(&key);
        if is_new {
            let there = self.create(run, &tags)?;
            self.runs.insert(key.clone(), there);
            sent.created += 1;
        }
        let Some(there) = self.runs.get_mut(&key) else {
            return Ok(());
        };
        let mut is_changed = there.send_settings(self.server, run, tags)?;
        let metrics = there.send_metrics(self.server, &points(run))?;
        sent.metrics += metrics;
        is_changed |= metrics > 0;
        is_changed |= there.send_status(self.server, run, unfinished)?;
        sent.updated += usize::from(is_changed && !is_new);
        Ok(())
    }

    fn create(
        &self,
        run: &Exported,
        tags: &BTreeMap<String, String>,
    ) -> Result<There, ServerError> {
        let body = json!({
            "experiment_id": self.id,
            "run_name": run.plan.id,
            "start_time": run.times.started,
            "tags": pairs(tags),
        });
        let answer = self.server.post("runs/create", &body)?;
        Ok(There {
            tags: tags.clone(),
            ..There::read(&answer["run"])
        })
    }
}

impl There {
    fn read(run: &Json) -> Self {
        let (info, data) = (&run["info"], &run["data"]);
        let each = |name: &str| {
            let list = data[name].as_array().cloned().unwrap_or_default();
            list.into_iter().map(|entry| (text(&entry["key"]), entry))
        };
        let newest = each("metrics").map(|(key, entry)| {
            let step = text(&entry["step"]).parse().unwrap_or(0);
            (key, step)
        });
        Self {
            id: text(&info["run_id"]),
            status: text(&info["status"]),
            end_time: text(&info["end_time"]).parse().ok(),
            params: each("params").map(|(key, _)| key).collect(),
            tags: each("tags")
                .map(|(key, e)| (key, text(&e["value"])))
                .collect(),
            newest: newest.collect(),
        }
    }

    /// Parameters that are not there, and tags that are other.
    fn send_settings(
        &mut self,
        server: &Server,
        run: &Exported,
        mut tags: BTreeMap<String, String>,
    ) -> Result<bool, ServerError> {
        let mut params = params(run);
        params.retain(|key, _| !self.params.contains(key));
        tags.retain(|key, value| self.tags.get(key) != Some(value));
        let params: Vec<_> = params.into_iter().collect();
        let is_any = !params.is_empty() || !tags.is_empty();
        let mut batches: Vec<&[_]> = params.chunks(MAX_PARAMS).collect();
        if batches.is_empty() && is_any {
            batches.push(&[]);
        }
        for batch in batches {
            let of_batch = batch
                .iter()
                .map(|(key, value)| json!({ "key": key, "value": value }));
            let body = json!({
                "run_id": self.id,
                "params": of_batch.collect::<Vec<_>>(),
                "tags": pairs(&tags),
            });
            server.post("runs/log-batch", &body)?;
            self.params.extend(batch.iter().map(|(key, _)| key.clone()));
            self.tags.append(&mut tags);
        }
        Ok(is_any)
    }

    /// The numbers behind the newest one of each metric, in the order of their steps; returns how many.
    fn send_metrics(&mut self, server: &Server, points: &[Point]) -> Result<usize, ServerError> {
        let is_missing = |point: &&Point| {
            let newest = self.newest.get(&name(&point.key));
            newest.is_none_or(|newest| *newest < point.step)
        };
        let missing: Vec<&Point> = points.iter().filter(is_missing).collect();
        for batch in missing.chunks(MAX_METRICS) {
            let metrics = batch.iter().map(|point| {
                json!({
                    "key": name(&point.key),
                    "value": number(point.value),
                    "timestamp": point.time_ms,
                    "step": point.step,
                })
            });
            let body = json!({ "run_id": self.id, "metrics": metrics.collect::<Vec<_>>() });
            server.post("runs/log-batch", &body)?;
            let newest = batch.iter().map(|point| (name(&point.key), point.step));
            self.newest.extend(newest);
        }
        Ok(missing.len())
    }

    fn send_status(
        &mut self,
        server: &Server,
        run: &Exported,
        unfinished: Unfinished,
    ) -> Result<bool, ServerError> {
        let status = match (&run.record.outcome, unfinished) {
            (Some(Outcome::Completed), _) => "FINISHED",
            (Some(Outcome::Failed { .. }), _) => "FAILED",
            (Some(_), _) | (None, Unfinished::Abandoned) => "KILLED",
            (None, Unfinished::Running) => "RUNNING",
        };
        let end_time = run.times.ended.filter(|_| run.record.outcome.is_some());
        // An end that the server has and the record has not any more stays until there is a new one.
        if self.status == status && (end_time.is_none() || self.end_time == end_time) {
            return Ok(false);
        }
        let mut body = json!({ "run_id": self.id, "status": status });
        if let Some(end_time) = end_time {
            body["end_time"] = json!(end_time);
        }
        server.post("runs/update", &body)?;
        self.status = status.to_owned();
        self.end_time = end_time.or(self.end_time);
        Ok(true)
    }
}

fn tags(run: &Exported, environment: Option<&Environment>) -> BTreeMap<String, String> {
    let plan = &run.plan;
    let mut tags = BTreeMap::from([
        (RUN.to_owned(), plan.id.clone()),
        (FINGERPRINT.to_owned(), plan.fingerprint.clone()),
        ("runner.trial".to_owned(), plan.trial.clone()),
        ("runner.outcome".to_owned(), run.outcome().to_owned()),
    ]);
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            tags.insert(key.to_owned(), cut(value));
        }
    };
    if let Some(Outcome::Failed { class, message, .. }) = &run.record.outcome {
        let class = crate::spec::section::Choice::name(*class);
        add("runner.failure", Some(format!("{class}: {message}")));
    }
    let adjustments = run.record.attempts.adjustments.iter();
    let adjustments: Vec<_> = adjustments.map(ToString::to_string).collect();
    add("runner.adjustments", Some(adjustments.join(", ")));
    let worker = environment.and_then(|e| e.worker.as_ref());
    add("runner.device_name", worker.map(|w| w.device_name.clone()));
    add("runner.host", environment.map(|e| e.host.clone()));
    let commit = environment.and_then(|e| e.git_commit.clone());
    add("mlflow.source.git.commit", commit);
    tags
}

/// The settings, and those axes that are laid out in the network.
fn params(run: &Exported) -> BTreeMap<String, String> {
    let mut settings = settings(&run.plan);
    for (key, value) in &run.plan.axes {
        settings.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let known = settings.into_iter().filter(|(_, value)| !value.is_null());
    known
        .map(|(key, value)| (name(&key), cut(value_text(&value))))
        .collect()
}

/// A key of letters that MLflow takes.
fn name(key: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || "_-. /".contains(c);
    let plain = key.chars().map(|c| if keep(c) { c } else { '_' });
    plain.take(MAX_KEY).collect()
}

fn cut(value: String) -> String {
    match value.char_indices().nth(MAX_VALUE - 1) {
        Some((at, _)) if value[at..].chars().count() > 1 => format!("{}…", &value[..at]),
        _ => value,
    }
}

/// Numbers that JSON does not have are texts, as in Protocol Buffers' JSON.
fn number(value: f64) -> Json {
    match value {
        _ if value.is_finite() => json!(value),
        _ if value.is_nan() => json!("NaN"),
        _ if value > 0.0 => json!("Infinity"),
        _ => json!("-Infinity"),
    }
}

fn pairs(tags: &BTreeMap<String, String>) -> Json {
    let pairs = tags.iter();
    pairs
        .map(|(key, value)| json!({ "key": key, "value": value }))
        .collect()
}

/// A text; a number as text, since servers write those of 64 bits either way.
fn text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        other => value_text(other),
    }
}
