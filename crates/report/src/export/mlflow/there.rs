//! The content of a run on the server, and sending the missing parts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value as Json, json};

use super::values::{name, number, pairs, params, text};
use super::{Server, ServerError, Unfinished};
use crate::export::{Exported, Point};
use runner_core::event::Outcome;
use runner_core::hash::{sha256_hex, sha256_of};
use runner_core::show::plain_io_error;
use runner_core::spec::plain_file;

/// The server's limits per request.
const MAX_METRICS: usize = 1000;
const MAX_PARAMS: usize = 100;

/// The files of a run that are sent on request.
const ARTIFACTS: [&str; 9] = [
    "run.toml",
    "environment.json",
    "transforms.json",
    "metrics.csv",
    "summary.json",
    "evaluation.json",
    "weights.json",
    "run.log",
    "model/best.bpk",
];

/// The tag with the digest of the files that were sent.
const SENT_FILES: &str = "runner.artifacts";

/// A run on the server.
#[derive(Clone, Debug, Default)]
pub struct There {
    id: String,
    status: String,
    /// The address of its artifacts.
    artifact_uri: String,
    end_time: Option<u64>,
    params: BTreeSet<String>,
    /// Values by key.
    pub tags: BTreeMap<String, String>,
    /// The newest step of each metric.
    newest: BTreeMap<String, usize>,
}

impl There {
    /// Parses a run in an answer.
    pub fn read(run: &Json) -> Self {
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
            artifact_uri: text(&info["artifact_uri"]),
            end_time: text(&info["end_time"]).parse().ok(),
            params: each("params").map(|(key, _)| key).collect(),
            tags: each("tags")
                .map(|(key, e)| (key, text(&e["value"])))
                .collect(),
            newest: newest.collect(),
        }
    }

    /// Missing parameters, and changed tags.
    pub fn send_settings(
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

    /// The points after the newest one of each metric, in step order; returns their number.
    pub fn send_metrics(
        &mut self,
        server: &Server,
        points: &[Point],
    ) -> Result<usize, ServerError> {
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

    /// The files of a run that has ended, if they are not those that were sent before; returns whether they were sent.
    pub fn send_artifacts(&mut self, server: &Server, run: &Exported) -> Result<bool, ServerError> {
        if run.record.outcome.is_none() {
            return Ok(false);
        }
        let unreadable = |path: &Path, e: &std::io::Error| ServerError::Unreadable {
            reason: format!("cannot read `{}`: {}", path.display(), plain_io_error(e)),
        };
        let mut files = Vec::new();
        let mut digests = String::new();
        for name in ARTIFACTS {
            let path = run.folder.0.join(name);
            match plain_file::open(&path).and_then(sha256_of) {
                Ok(digest) => digests.push_str(&format!("{name} {digest}\n")),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(unreadable(&path, &e)),
            }
            files.push((name, path));
        }
        let digest = sha256_hex(digests.as_bytes());
        if self.tags.get(SENT_FILES) == Some(&digest) {
            return Ok(false);
        }
        let there = self.artifact_uri.strip_prefix("mlflow-artifacts:");
        // With a server before it, as in `mlflow-artifacts://host:port/7/…`.
        let there = there.map(|path| match path.strip_prefix("//") {
            Some(rest) => rest.split_once('/').map_or("", |(_, path)| path),
            None => path.trim_start_matches('/'),
        });
        let Some(there) = there.filter(|path| !path.is_empty()) else {
            let uri = self.artifact_uri.clone();
            return Err(ServerError::NoArtifacts { uri });
        };
        for (name, path) in files {
            let file = plain_file::open(&path).map_err(|e| unreadable(&path, &e))?;
            server.put(&format!("{there}/{name}"), file)?;
        }
        let tags = BTreeMap::from([(SENT_FILES.to_owned(), digest)]);
        let body = json!({ "run_id": self.id, "params": [], "tags": pairs(&tags) });
        server.post("runs/log-batch", &body)?;
        self.tags.extend(tags);
        Ok(true)
    }

    /// The outcome of the run, or that it is running.
    pub fn send_status(
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
        // An end on the server that is no longer in the record stays until there is a new one.
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
