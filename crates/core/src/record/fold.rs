//! The state derived from a run's events: its record, `metrics.csv` and `summary.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::damage::damaged;
use super::log::{Log, RunHead};
use super::seal::FIRST_SEALED;
use super::{RunFolder, unwritable, write::json_text, write_json_synced, write_whole};
use crate::event::{
    Adjustment, Attempts, Epoch, Event, MemoryGrowth, MemoryPeak, Metrics, Outcome, Started,
};
use crate::plan::RunPlan;
use crate::spec::plain_file;
use crate::spec::section::Choice;

/// What happened in a run, folded from its events in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRecord {
    /// The newest start, if the worker started.
    pub started: Option<Started>,
    /// The epochs that count: those of the newest attempt, with the ones before its checkpoint.
    pub epochs: Vec<Epoch>,
    /// The epoch after which training was stopped early, with the reason.
    pub stopped_early: Option<(usize, String)>,
    /// Evaluations after the training, by split.
    pub evaluations: BTreeMap<String, Metrics>,
    /// How the newest attempt ended; `None` if it has not.
    pub outcome: Option<Outcome>,
    /// Seconds that the run took: up to the checkpoint that it resumed from, and since.
    pub wall_secs: f64,
    /// sha256 of the final weights.
    pub weights_digest: String,
    /// sha256 of the files that belong to the numbers, by path, for an attempt that finished.
    pub files: BTreeMap<String, String>,
    /// Updates whose losses were lost from the trace, and whether digests of parameters were.
    pub trace_lost: Option<(usize, bool)>,
    /// Its retries and adjustments.
    pub attempts: Attempts,
    /// Peak memory, over the attempts that count.
    pub peak: Option<MemoryPeak>,
    /// The expected memory, from measurements of similar runs.
    pub calibrated_bytes: Option<u64>,
    /// How memory grew in the newest attempt, if it did.
    pub growth: Option<MemoryGrowth>,
    /// When the newest start arrived, in milliseconds since 1970, for a record read from disk.
    pub started_ms: Option<u64>,
    /// When the last event arrived, in milliseconds since 1970, for a record read from disk.
    pub last_event_ms: Option<u64>,
}

impl RunRecord {
    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        self.attempts.apply(event);
        match event {
            Event::RunStarted(started) => {
                self.epochs = started.history.clone();
                self.stopped_early = None;
                self.evaluations.clear();
                self.outcome = None;
                self.wall_secs = started.resumed_secs;
                self.growth = None;
                self.files.clear();
                if started.resumed_step == 0 {
                    self.peak = None;
                    self.trace_lost = None;
                }
                self.started = Some(started.clone());
            }
            Event::Progressed(_)
            | Event::CheckpointSaved { .. }
            | Event::CheckpointDropped { .. }
            | Event::KernelsChosen(_) => {}
            Event::TraceLost { steps, digests } => {
                let (before, had_digests) = self.trace_lost.unwrap_or_default();
                self.trace_lost = Some((before.max(*steps), had_digests || *digests));
            }
            Event::FilesRecorded { files } => self.files = files.clone(),
            Event::MemoryCalibrated { forecast_bytes } => {
                self.calibrated_bytes = Some(*forecast_bytes);
            }
            Event::MemoryGrew(growth) => self.growth = Some(*growth),
            Event::MemoryMeasured(peak) => {
                self.peak = Some(self.peak.map_or(*peak, |before| before.max(*peak)));
            }
            Event::RunAdjusted { .. } => {
                self.outcome = None;
                // Earlier measurements and predictions do not apply to the run as it is now.
                self.calibrated_bytes = None;
                self.peak = None;
            }
            // The preceding failure is not how the run ended.
            Event::RunRetried { .. } | Event::RunExtended { .. } => {
                self.outcome = None;
            }
            Event::EpochFinished(epoch) => self.epochs.push(epoch.clone()),
            Event::StoppedEarly { epoch, reason } => {
                self.stopped_early = Some((*epoch, reason.clone()));
            }
            Event::SplitEvaluated { split, metrics, .. } => {
                self.evaluations.insert(split.clone(), metrics.clone());
            }
            Event::RunFinished {
                outcome,
                wall_secs,
                weights_digest,
            } => {
                self.outcome = Some(outcome.clone());
                self.wall_secs += wall_secs;
                self.weights_digest = weights_digest.clone();
            }
        }
    }

    /// Reads a run's events, checked against a plan: those of another plan are refused. A completed run must have all
    /// of its epochs, and a summary of a completed run requires events with an end.
    pub fn read_for(folder: &RunFolder, plan: &RunPlan) -> io::Result<Self> {
        if !folder.holds(plan)? {
            return Ok(Self::default());
        }
        let mut record = Self::read_as(folder, plan)?;
        if record.outcome.is_none() && is_said_to_be_completed(folder, plan) {
            // It may have completed just now: the summary is written after the last event.
            record = Self::read_as(folder, plan)?;
            if record.outcome.is_none() {
                let reason =
                    "its end is missing: according to `summary.json`, the run was completed";
                return Err(damaged(&folder.events_jsonl(), reason));
            }
        }
        if record.outcome == Some(Outcome::Completed)
            && let Some(missing) = record.missing_epoch(plan)
        {
            let reason = format!("the run is completed, but epoch {missing} is missing");
            return Err(damaged(&folder.events_jsonl(), reason));
        }
        Ok(record)
    }

    fn read_as(folder: &RunFolder, plan: &RunPlan) -> io::Result<Self> {
        let log = Log::read(folder)?;
        log.check_is_of(folder, &RunHead::of(plan))?;
        Ok(Self::of(&log.events))
    }

    /// Reads a run's events, checked against the run in the folder.
    pub fn read(folder: &RunFolder) -> io::Result<Self> {
        Ok(Self::of(&folder.read_events()?))
    }

    /// The state derived from these events.
    pub fn of(events: &[(u64, Event)]) -> Self {
        let mut record = Self::default();
        for (time_ms, event) in events {
            record.apply(event);
            if matches!(event, Event::RunStarted(_)) {
                record.started_ms = Some(*time_ms);
            }
            record.last_event_ms = Some(*time_ms);
        }
        record
    }

    /// The first epoch of a completed run without metrics.
    fn missing_epoch(&self, plan: &RunPlan) -> Option<usize> {
        let last = match &self.stopped_early {
            Some((epoch, _)) => *epoch,
            None => plan.train.epochs,
        };
        let has = |epoch: &usize| {
            self.epochs
                .get(epoch - 1)
                .is_some_and(|e| e.epoch == *epoch)
        };
        (1..=last).find(|epoch| !has(epoch))
    }

    /// Seconds from the newest start to the last event, for an attempt that has not ended.
    pub fn unfinished_secs(&self) -> f64 {
        match (self.started_ms, self.last_event_ms, &self.outcome) {
            (Some(from), Some(to), None) => to.saturating_sub(from) as f64 / 1e3,
            _ => 0.0,
        }
    }

    /// The best epoch by the objective; ties are broken as [`RunPlan::prefers_later`] does.
    pub fn best_epoch(&self, plan: &RunPlan) -> Option<&Epoch> {
        self.epochs.iter().reduce(|best, epoch| {
            if plan.prefers_later(&epoch.metrics, &best.metrics) {
                epoch
            } else {
                best
            }
        })
    }

    /// The objective of the best epoch up to each one, as [`RunRecord::best_epoch`] has it for all; NaN where the
    /// objective is not measured yet.
    pub fn best_so_far(&self, plan: &RunPlan) -> Vec<f64> {
        let name = plan.objective.name();
        let best = self.best_epochs_so_far(plan).into_iter();
        best.map(|best| best.metrics.get(&name).copied().unwrap_or(f64::NAN))
            .collect()
    }

    /// The objective of each epoch; NaN where it is not measured.
    pub fn objective_by_epoch(&self, plan: &RunPlan) -> Vec<f64> {
        let name = plan.objective.name();
        let epochs = self.epochs.iter();
        epochs
            .map(|epoch| epoch.metrics.get(&name).copied().unwrap_or(f64::NAN))
            .collect()
    }

    /// The best epoch up to each one.
    pub(super) fn best_epochs_so_far(&self, plan: &RunPlan) -> Vec<&Epoch> {
        let mut best: Option<&Epoch> = None;
        let epochs = self.epochs.iter().map(|epoch| {
            let found = match best {
                Some(best) if !plan.prefers_later(&epoch.metrics, &best.metrics) => best,
                _ => epoch,
            };
            best = Some(found);
            found
        });
        epochs.collect()
    }

    /// One line per epoch, without clocks: equal runs have equal bytes.
    pub fn metrics_csv(&self) -> String {
        let names: BTreeSet<&str> = self
            .epochs
            .iter()
            .flat_map(|epoch| epoch.metrics.keys().map(String::as_str))
            .collect();
        let mut text = String::from("epoch,step");
        for name in &names {
            text.push(',');
            text.push_str(name);
        }
        text.push('\n');
        for epoch in &self.epochs {
            text.push_str(&format!("{},{}", epoch.epoch, epoch.step));
            for name in &names {
                text.push(',');
                if let Some(value) = epoch.metrics.get(*name) {
                    text.push_str(&number(*value));
                }
            }
            text.push('\n');
        }
        text
    }

    /// Rewrites derived files that do not match the events, and returns the names of those that existed and differed. A
    /// kill may come between an event and its derived files, so a missing file is expected.
    pub fn write_derived(
        &self,
        folder: &RunFolder,
        plan: &RunPlan,
    ) -> io::Result<Vec<&'static str>> {
        let mut differed = Vec::new();
        let Some(summary) = self.summary(plan) else {
            return Ok(differed);
        };
        folder.check_links()?;
        let metrics = self.metrics_csv();
        let files = [
            ("summary.json", folder.summary_json(), json_text(&summary)?),
            ("metrics.csv", folder.metrics_csv(), metrics),
        ];
        for (name, path, text) in files {
            match plain_file::read_whole(&path) {
                Ok(there) if there == text.as_bytes() => continue,
                // Another process has restarted it, and writes them.
                _ if folder.is_trained() => return Ok(differed),
                // Earlier versions wrote other bytes for the same events.
                Ok(_) if plan.format >= FIRST_SEALED => differed.push(name),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(_) => differed.push(name),
            }
            write_whole(&path, text.as_bytes()).map_err(|e| unwritable(&path, e))?;
        }
        Ok(differed)
    }

    /// Writes `metrics.csv`.
    pub fn write_metrics(&self, folder: &RunFolder) -> io::Result<()> {
        let path = folder.metrics_csv();
        write_whole(&path, self.metrics_csv().as_bytes()).map_err(|e| unwritable(&path, e))
    }

    /// Writes `summary.json`, once the run has an outcome.
    pub fn write_summary(&self, folder: &RunFolder, plan: &RunPlan) -> io::Result<()> {
        match self.summary(plan) {
            Some(summary) => {
                let path = folder.summary_json();
                write_json_synced(&path, &summary).map_err(|e| unwritable(&path, e))
            }
            None => Ok(()),
        }
    }

    /// Metrics of the best epoch by the objective, of the evaluations, and with `last/` of the last epoch.
    pub fn metrics(&self, plan: &RunPlan) -> Metrics {
        let mut metrics = match self.best_epoch(plan) {
            Some(best) => best.metrics.clone(),
            None => Metrics::new(),
        };
        for (split, evaluated) in &self.evaluations {
            let named = evaluated.iter();
            metrics.extend(named.map(|(name, value)| (format!("{split}/{name}"), *value)));
        }
        if let Some(last) = self.epochs.last() {
            let named = last.metrics.iter();
            metrics.extend(named.map(|(name, value)| (format!("last/{name}"), *value)));
        }
        metrics
    }

    /// The summary, once the run has an outcome.
    pub fn summary(&self, plan: &RunPlan) -> Option<Summary> {
        let outcome = self.outcome.as_ref()?;
        let best = self.best_epoch(plan);
        let failure = match outcome {
            Outcome::Failed {
                class,
                message,
                signal,
            } => Some(Failure {
                class: class.name().to_owned(),
                message: message.clone(),
                signal: *signal,
            }),
            _ => None,
        };
        let reason = match outcome {
            Outcome::Skipped { reason } => Some(reason.clone()),
            outcome => outcome.pruned_by(),
        };
        Some(Summary {
            format: plan.format,
            run: plan.id.clone(),
            outcome: outcome.word().to_owned(),
            failure,
            reason,
            metrics: self.metrics(plan),
            best_epoch: best.map(|epoch| epoch.epoch),
            stopped_early: self.stopped_early.as_ref().map(|(epoch, _)| *epoch),
            epochs: self.epochs.len(),
            steps: self.epochs.last().map_or(0, |epoch| epoch.step),
            wall_secs: self.wall_secs,
            memory: self.peak,
            memory_growth: self.growth,
            device: plan.adjusted(&self.attempts.adjustments).device.to_string(),
            precision: plan.precision.name().to_owned(),
            seed: plan.seed,
            axes: plan.axes.clone(),
            rejected_checkpoints: self
                .started
                .as_ref()
                .map(|s| s.rejected_checkpoints.clone())
                .unwrap_or_default(),
            adjustments: self.attempts.adjustments.clone(),
            fingerprint: plan.fingerprint.clone(),
            weights_digest: self.weights_digest.clone(),
        })
    }
}

/// Whether the summary next to a run's events is that of the completed run. Without a seal its origin is unknown.
fn is_said_to_be_completed(folder: &RunFolder, plan: &RunPlan) -> bool {
    plan.format >= FIRST_SEALED
        && folder.read_summary().is_ok_and(|summary| {
            summary.is_some_and(|summary| {
                summary.outcome == Outcome::Completed.word()
                    && summary.fingerprint == plan.fingerprint
                    && summary.run == plan.id
            })
        })
}

/// `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of this format.
    pub format: u32,
    /// The run's id.
    pub run: String,
    /// `completed`, `failed`, `interrupted`, `pruned` or `skipped`.
    pub outcome: String,
    /// The failure, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Why it was skipped, or when and by which rule it was pruned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Metrics of the best epoch by the objective, of the evaluations, and with `last/` of the last epoch.
    pub metrics: Metrics,
    /// The best epoch by the objective.
    pub best_epoch: Option<usize>,
    /// The epoch after which training was stopped early, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_early: Option<usize>,
    /// Finished epochs.
    pub epochs: usize,
    /// Optimizer updates up to the end of the last finished epoch.
    pub steps: usize,
    /// Seconds that the run took: up to the checkpoint that it resumed from, and since.
    pub wall_secs: f64,
    /// Its peak memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryPeak>,
    /// How memory grew from epoch to epoch, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_growth: Option<MemoryGrowth>,
    /// The device.
    pub device: String,
    /// The precision.
    pub precision: String,
    /// The seed.
    pub seed: u64,
    /// The values of the varied keys.
    pub axes: Map<String, Json>,
    /// Checkpoints that were skipped, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_checkpoints: Vec<String>,
    /// The changes after failures, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjustments: Vec<Adjustment>,
    /// Hash of everything that can change the numbers.
    pub fingerprint: String,
    /// sha256 of the final weights by path.
    pub weights_digest: String,
}

/// The failure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// The class of the failure.
    pub class: String,
    /// What happened, and what to do about it.
    pub message: String,
    /// The signal that killed the process, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// The shortest digits that parse to the same number; very small and very large numbers with an exponent.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if !(1e-5..1e16).contains(&size) => format!("{value:e}"),
        _ => value.to_string(),
    }
}
