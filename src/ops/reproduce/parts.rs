//! Whether an original is complete and unchanged. Missing parts cannot be compared, and a changed record is not a valid
//! reference.

use serde_json::Value as Json;

use super::original::Original;
use runner_core::data::sha256_of;
use runner_core::event::Outcome;
use runner_core::plan::FORMAT;
use runner_core::record::{CHECKPOINT_PARTS, SealState, is_damaged};
use runner_core::spec::plain_file;

/// The maximum size of a file that is read whole, in bytes.
const MAX_READ: u64 = 1 << 30;

/// Problems of an original.
#[derive(Debug, Default)]
pub struct Parts {
    /// What was changed after it was written, and the evidence.
    pub edited: Vec<String>,
    /// The missing parts of the run.
    pub missing: Vec<String>,
}

impl Parts {
    /// Checks all files of an original. For first steps (`is_partial`), only the trace is compared, whose gaps the
    /// comparison finds.
    pub fn of(original: &Original, is_partial: bool) -> Self {
        let mut parts = Self::default();
        parts.check_plan(original);
        parts.check_files(original, is_partial);
        parts.check_derived(original);
        // A capsule is complete without what is derived, and without checkpoints.
        if !original.is_capsule && !is_partial {
            parts.check_complete(original);
            parts.check_checkpoint(original);
        }
        parts
    }

    fn check_plan(&mut self, original: &Original) {
        let plan = &original.plan;
        if original.seal == SealState::Edited {
            self.edited
                .push("`run.toml` (its seal does not match its content)".into());
        } else if !plan.is_as_fingerprinted() {
            self.edited
                .push("`run.toml` (its fingerprint does not match its settings)".into());
        }
    }

    /// The files whose digests are in the last events.
    fn check_files(&mut self, original: &Original, is_partial: bool) {
        let (folder, record) = (&original.folder, &original.record);
        for name in record.files.keys() {
            if folder.check_file(record, name).is_ok() {
                continue;
            }
            let is_there = folder.0.join(name).exists();
            if is_there {
                self.edited.push(format!(
                    "`{name}` (its sha256 does not match the recorded one)"
                ));
            } else if name.starts_with("model/") && !is_partial {
                self.missing
                    .push(format!("the weights of `{name}`, which is missing"));
            } else if !name.starts_with("trace/") && !is_partial {
                self.missing.push(format!("`{name}`, which is missing"));
            }
        }
        // Earlier versions recorded no digests, but saved final weights.
        if record.files.is_empty() && !is_partial && !folder.model("final").exists() {
            self.missing
                .push("the weights of `model/final.bpk`, which is missing".into());
        }
    }

    /// The files that repeat the events in another form.
    fn check_derived(&mut self, original: &Original) {
        let (folder, record, plan) = (&original.folder, &original.record, &original.plan);
        let mut tell = |name: &str, how: &str| self.edited.push(format!("`{name}` ({how})"));
        let seal = "its seal does not match its content";
        let is_broken = |error: std::io::Error| is_damaged(&error);
        if folder.read_environment().is_err_and(is_broken) {
            tell("environment.json", seal);
        }
        if plan.format < FORMAT || record.outcome != Some(Outcome::Completed) {
            return;
        }
        let events = "it does not match `events.jsonl`";
        match folder.read_summary() {
            Err(error) if is_damaged(&error) => tell("summary.json", seal),
            Ok(Some(there)) => {
                let is_same = record.summary(plan).is_some_and(|summary| {
                    summary.metrics == there.metrics
                        && summary.best_epoch == there.best_epoch
                        && summary.weights_digest == there.weights_digest
                });
                if !is_same {
                    tell("summary.json", events);
                }
            }
            _ => {}
        }
        let metrics = plain_file::read(&folder.metrics_csv(), MAX_READ);
        if metrics.is_ok_and(|there| there.unwrap_or_default() != record.metrics_csv().as_bytes()) {
            tell("metrics.csv", events);
        }
    }

    /// The files without a digest in the events, which a completed run always has.
    fn check_complete(&mut self, original: &Original) {
        let (folder, record) = (&original.folder, &original.record);
        if original.plan.format < FORMAT || record.outcome != Some(Outcome::Completed) {
            return;
        }
        for name in ["environment.json", "summary.json", "metrics.csv"] {
            if !folder.0.join(name).exists() {
                self.missing.push(format!("`{name}`, which is missing"));
            }
        }
    }

    /// The checkpoint of the last update, which a completed run always keeps.
    fn check_checkpoint(&mut self, original: &Original) {
        let Some(step) = original.record.epochs.last().map(|epoch| epoch.step) else {
            return;
        };
        let folder = &original.folder;
        let path = folder.checkpoint_json(step);
        let sidecar: Option<Json> = plain_file::read(&path, MAX_READ)
            .ok()
            .flatten()
            .and_then(|text| serde_json::from_slice(&text).ok());
        let Some(sidecar) = sidecar else {
            let how = if path.exists() { "damaged" } else { "missing" };
            self.missing.push(format!(
                "the last checkpoint, whose `checkpoint-{step}.json` is {how}"
            ));
            return;
        };
        for part in CHECKPOINT_PARTS {
            let name = format!("checkpoints/{part}-{step}.bpk");
            let sum = plain_file::open(&folder.checkpoint_part(part, step)).and_then(sha256_of);
            match sum {
                Ok(sum) if sidecar["sha256"][part] == sum.as_str() => {}
                Ok(_) => self
                    .edited
                    .push(format!("`{name}` (its sha256 does not match its sidecar)")),
                Err(_) => self
                    .missing
                    .push(format!("the last checkpoint, whose `{name}` is missing")),
            }
        }
    }
}
