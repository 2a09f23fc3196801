//! Export of runs to an MLflow tracking server.
//!
//! The content of the server is requested first, and only missing parts are sent: so an interrupted export is completed
//! by the next one, and an export of an unchanged tree sends nothing. A run is identified by its id and its
//! fingerprint, which are tags. Settings are parameters, which MLflow never changes once they exist.

mod client;
mod there;
mod values;

use std::collections::BTreeMap;

use serde_json::json;

pub use client::{Credentials, Server, ServerError};
use there::There;
use values::{FINGERPRINT, RUN, cut, pairs, tags, text};

use super::Exported;

/// Runs per request.
const PAGE: usize = 1000;

/// An experiment on a server, with its existing runs.
pub struct Experiment<'a> {
    server: &'a Server,
    id: String,
    with_artifacts: bool,
    runs: BTreeMap<(String, String), There>,
}

/// The result of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sent {
    /// Created runs.
    pub created: usize,
    /// Existing runs that were updated.
    pub updated: usize,
    /// Numbers of metrics.
    pub metrics: usize,
}

/// The state of a run whose record has no outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unfinished {
    /// It may still continue.
    Running,
    /// No runner is active.
    Abandoned,
}

impl<'a> Experiment<'a> {
    /// Finds or creates an experiment, and requests its runs.
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
                            "its experiment `{name}` was deleted; `mlflow experiments restore` restores it"
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
            with_artifacts: false,
            runs: BTreeMap::new(),
        };
        experiment.read_runs()?;
        Ok(experiment)
    }

    /// Whether the files of runs that have ended are sent too.
    pub fn send_artifacts(&mut self, with_artifacts: bool) {
        self.with_artifacts = with_artifacts;
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
                    // Of several, the oldest is last: runs come newest first.
                    self.runs.insert(key, there);
                }
            }
            page = text(&answer["next_page_token"]);
            if page.is_empty() {
                return Ok(());
            }
        }
    }

    /// Sends the missing parts of a started run.
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
        let metrics = there.send_metrics(self.server, &super::points(run))?;
        sent.metrics += metrics;
        is_changed |= metrics > 0;
        if self.with_artifacts {
            is_changed |= there.send_artifacts(self.server, run)?;
        }
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
        let mut there = There::read(&answer["run"]);
        there.tags = tags.clone();
        Ok(there)
    }
}
