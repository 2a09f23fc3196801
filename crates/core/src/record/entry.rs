//! A summary of a run: what lists, reports and comparisons need of its plan and its record, except for its curves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::seal::FIRST_SEALED;
use super::{
    Environment, Generation, Label, RunFolder, RunRecord, Settings, TRACE_FILES, is_other_format,
    remedy,
};
use crate::event::{FailureClass, MemoryPeak, Metrics, Outcome};
use crate::plan::{HeldOut, RunPlan};
use crate::show::plain_io_error;
use crate::spec::adjustment::lasting;
use crate::spec::section::Choice;

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// All epochs were trained.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped from outside, and can be resumed.
    Interrupted,
    /// It was ended by the search that it is part of, and can be resumed.
    Pruned,
    /// It is skipped on this machine.
    Skipped,
    /// A worker is training it.
    Running,
    /// It waits in the queue of a cluster.
    Queued,
    /// It was interrupted, and waits in the queue of a cluster to be resumed.
    Requeued,
    /// It was started and has not ended, but no runner is active.
    Incomplete,
    /// Nothing happened yet.
    NotStarted,
    /// Its folder is damaged.
    Unreadable,
    /// Another version of this program wrote it.
    OtherFormat,
}

impl State {
    /// Whether nothing is known about the run.
    pub fn is_unreadable(self) -> bool {
        matches!(self, State::Unreadable | State::OtherFormat)
    }

    /// For tables.
    pub fn word(self) -> &'static str {
        match self {
            State::Completed => "completed",
            State::Failed => "failed",
            State::Interrupted => "interrupted",
            State::Pruned => "pruned",
            State::Skipped => "skipped",
            State::Running => "running",
            State::Queued => "queued",
            State::Requeued => "requeued",
            State::Incomplete => "incomplete",
            State::NotStarted => "not started",
            State::Unreadable | State::OtherFormat => "unreadable",
        }
    }
}

/// The remedy for a plan of another version.
pub const OTHER_FORMAT_REMEDY: &str =
    "use the version that wrote it, or run the experiment again into another folder";

/// The remedy for a damaged plan.
pub const PLAN_REMEDY: &str = "restore the file, or let `runner run` on the experiment's file rewrite it; this keeps the runs";

/// A summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// The run's id.
    pub id: String,
    /// Its trial.
    pub trial: String,
    /// Its seed.
    pub seed: u64,
    /// The values of the varied keys.
    pub axes: Map<String, Json>,
    /// Its settings by key of the experiment file, except for those that all runs share.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// The device that it is planned for.
    pub device: String,
    /// The precision.
    pub precision: String,
    /// Hash of everything that can change the numbers.
    pub fingerprint: String,
    /// The number of parameters of its network.
    pub num_parameters: u64,
    /// Planned epochs.
    pub num_epochs: usize,
    /// Its state.
    pub state: State,
    /// The class of the failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureClass>,
    /// Why it is not completed, if there is more to say than its state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Metrics of the best epoch by the objective, of the evaluations, and with `last/` of the last epoch. Non-finite
    /// ones are omitted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: Metrics,
    /// The names of the non-finite metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_finite: Vec<String>,
    /// The best epoch by the objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_epoch: Option<usize>,
    /// Finished epochs.
    pub epochs: usize,
    /// Seconds that it took; up to its last event if it has not ended.
    pub wall_secs: f64,
    /// Seconds of training per epoch: the median over its epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_secs: Option<f64>,
    /// Its memory, once measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryUse>,
    /// Where part of it was computed, if that differs from the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// Whether it differs from the plan, after a failure or to fit into memory.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_adjusted: bool,
    /// Other events that a reader should know, as text that names the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// sha256 of the final weights by path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub weights_digest: String,
    /// The index of its data set.
    pub data: usize,
    /// The index of its environment, if it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<usize>,
    /// When its last event arrived, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_ms: Option<u64>,
    /// Its tags and its note, which are not cached.
    #[serde(skip)]
    pub label: Label,
    /// Its generation, if it is a run of earlier settings or is listed with such.
    #[serde(skip)]
    pub generation: Generation,
}

/// Memory of a run compared with its forecast, or the maximum over several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// As counted before any measurement, in bytes.
    pub forecast_bytes: u64,
    /// From measurements of such runs on this machine, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated_bytes: Option<u64>,
    /// Peak memory.
    pub measured: MemoryPeak,
}

impl MemoryUse {
    /// For one run, once measured.
    pub fn of(run: &RunPlan, record: &RunRecord) -> Option<Self> {
        let adjusted = run.adjusted(&record.attempts.adjustments);
        Some(Self {
            forecast_bytes: adjusted.forecast.total(),
            calibrated_bytes: record.calibrated_bytes,
            measured: record.peak?,
        })
    }

    /// The maximum of each number of two runs.
    pub fn max(self, other: Self) -> Self {
        Self {
            forecast_bytes: self.forecast_bytes.max(other.forecast_bytes),
            calibrated_bytes: self.calibrated_bytes.max(other.calibrated_bytes),
            measured: self.measured.max(other.measured),
        }
    }

    /// The error of the best forecast, relative to the measurement.
    pub fn error(&self) -> f64 {
        let forecast = self.calibrated_bytes.unwrap_or(self.forecast_bytes) as f64;
        forecast / self.measured.bytes().max(1) as f64 - 1.0
    }
}

/// A data set as used by some runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataUsed {
    /// The data set with its split, as text.
    pub what: String,
    /// sha256 of each split's items; empty while no run has started.
    pub digests: BTreeMap<String, String>,
    /// Items of the train split; 0 where that is not known.
    #[serde(default)]
    pub num_train: usize,
    /// Items of the valid split; 0 if unknown.
    #[serde(default)]
    pub num_valid: usize,
    /// The origin of the valid split.
    #[serde(default)]
    pub held_out: HeldOut,
}

/// The content of a run's folder, before data and environments are numbered.
pub(super) struct Read {
    pub entry: RunEntry,
    pub data: DataUsed,
    pub environment: Option<Environment>,
    /// Whether all files could be read and, with `mend`, written.
    pub is_sure: bool,
    /// Findings while derived files were rewritten.
    pub mended: Vec<String>,
}

impl Read {
    /// Of a run that has not begun.
    pub fn planned(run: &RunPlan) -> Self {
        Self {
            entry: RunEntry::planned(run),
            data: DataUsed {
                what: run.data.in_words(),
                digests: BTreeMap::new(),
                num_train: run.data.num_train,
                num_valid: run.data.num_valid,
                held_out: run.held_out(),
            },
            environment: None,
            is_sure: true,
            mended: Vec::new(),
        }
    }

    /// Reads a run's folder. With `mend`, missing derived files are rewritten.
    pub fn of(run: &RunPlan, folder: &RunFolder, mend: bool) -> Self {
        let mut read = Self::planned(run);
        let record = match RunRecord::read_for(folder, run) {
            Ok(record) => {
                if mend {
                    read.mend(run, folder, &record);
                }
                read.entry.take(run, &record);
                if read.entry.state == State::Incomplete && folder.is_trained() {
                    read.entry.state = State::Running;
                }
                record
            }
            Err(e) => {
                read.is_sure = false;
                (read.entry.state, read.entry.message) = if is_other_format(&e) {
                    (State::OtherFormat, plain_io_error(&e))
                } else {
                    (
                        State::Unreadable,
                        format!("{}; {}", plain_io_error(&e), remedy(&e)),
                    )
                };
                return read;
            }
        };
        read.check_trace(run, folder, &record);
        match folder.read_environment() {
            Ok(environment) => {
                read.environment = environment;
                read.check_environment(run, &record);
            }
            Err(e) => {
                read.is_sure = false;
                read.entry.remarks.push(format!(
                    "`{}` is not listed under Environment: {}",
                    run.id,
                    plain_io_error(&e)
                ));
            }
        }
        if let Some(started) = &record.started {
            read.data.digests = started.data_digests.clone();
        }
        if let Some(environment) = &mut read.environment {
            environment.forget_occasion();
            environment
                .earlier
                .iter_mut()
                .for_each(Environment::forget_occasion);
        }
        read
    }

    fn mend(&mut self, run: &RunPlan, folder: &RunFolder, record: &RunRecord) {
        folder.remove_unfinished();
        match record.write_derived(folder, run) {
            Ok(differed) => self.mended.extend(differed.iter().map(|file| {
                format!(
                    "`{file}` of `{}` did not match its events: it was changed or damaged, and is rewritten from `events.jsonl`",
                    run.id
                )
            })),
            Err(e) => {
                self.entry.remarks.push(format!("of `{}`: {e}", run.id));
                self.is_sure = false;
            }
        }
    }

    /// No number of a report comes from the trace, but the guarantee that the run can be reproduced step by step does.
    fn check_trace(&mut self, run: &RunPlan, folder: &RunFolder, record: &RunRecord) {
        for name in TRACE_FILES {
            if let Err(e) = folder.check_file(record, name) {
                self.entry.remarks.push(format!(
                    "`{}` can no longer be compared step by step: {}",
                    run.id,
                    plain_io_error(&e)
                ));
            }
        }
    }

    /// The environment repeats what the worker reported in the events.
    fn check_environment(&mut self, run: &RunPlan, record: &RunRecord) {
        let worker = self.environment.as_ref().and_then(|e| e.worker.as_ref());
        // A kill may come between the start and the file; sums of earlier versions prove nothing.
        if record.outcome.is_none() || run.format < FIRST_SEALED {
            return;
        }
        let reason = match (&record.started, worker) {
            (None, _) => return,
            (Some(_), None) => "is missing",
            (Some(started), Some(worker)) => {
                let is_its = worker.device_name == started.device_name
                    && worker.threads == started.threads
                    && worker.data_digests == started.data_digests
                    && worker.layers == started.layers;
                if is_its {
                    return;
                }
                "does not match its events: it belongs to another run or start"
            }
        };
        self.environment = None;
        self.entry.remarks.push(format!(
            "`{}` is not listed under Environment: its `environment.json` {reason}",
            run.id
        ));
    }
}

impl RunEntry {
    /// Reads a run's folder, without what an index adds: numbers of data sets and environments, and labels.
    pub fn read(run: &RunPlan, folder: &RunFolder) -> Self {
        Read::of(run, folder, false).entry
    }

    fn planned(run: &RunPlan) -> Self {
        Self {
            id: run.id.clone(),
            trial: run.trial.clone(),
            seed: run.seed,
            axes: run.axes.clone(),
            settings: Settings::new(),
            device: run.device.to_string(),
            precision: run.precision.name().to_owned(),
            fingerprint: run.fingerprint.clone(),
            num_parameters: run.network.num_parameters,
            num_epochs: run.train.epochs,
            state: State::NotStarted,
            failure: None,
            message: String::new(),
            metrics: Metrics::new(),
            not_finite: Vec::new(),
            best_epoch: None,
            epochs: 0,
            wall_secs: 0.0,
            epoch_secs: None,
            memory: None,
            moved_to: None,
            is_adjusted: false,
            remarks: Vec::new(),
            weights_digest: String::new(),
            data: 0,
            environment: None,
            last_event_ms: None,
            label: Label::default(),
            generation: Generation::default(),
        }
    }

    fn take(&mut self, run: &RunPlan, record: &RunRecord) {
        self.state = match (&record.outcome, &record.started) {
            (Some(Outcome::Completed), _) => State::Completed,
            (Some(Outcome::Failed { .. }), _) => State::Failed,
            (Some(Outcome::Interrupted), _) => State::Interrupted,
            (Some(Outcome::Pruned { .. }), _) => State::Pruned,
            (Some(Outcome::Skipped { .. }), _) => State::Skipped,
            (None, Some(_)) => State::Incomplete,
            (None, None) => State::NotStarted,
        };
        self.failure = match &record.outcome {
            Some(Outcome::Failed { class, .. }) => Some(*class),
            _ => None,
        };
        self.message = why_not_completed(run, record);
        self.epochs = record.epochs.len();
        self.wall_secs = record.wall_secs + record.unfinished_secs();
        self.epoch_secs = median(record.epochs.iter().map(|epoch| epoch.train_secs));
        self.memory = MemoryUse::of(run, record);
        let device = run.adjusted(&record.attempts.adjustments).device;
        self.moved_to = (device != run.device).then(|| device.to_string());
        self.is_adjusted = !record.attempts.adjustments.is_empty();
        self.last_event_ms = record.last_event_ms;
        self.remarks.extend(remarks(run, record));
        let (finite, not_finite): (Metrics, Metrics) = record
            .metrics(run)
            .into_iter()
            .partition(|(_, value)| value.is_finite());
        self.metrics = finite;
        self.not_finite = not_finite.into_keys().collect();
        self.best_epoch = record.best_epoch(run).map(|epoch| epoch.epoch);
        self.weights_digest = record.weights_digest.clone();
    }
}

fn why_not_completed(run: &RunPlan, record: &RunRecord) -> String {
    let epochs = record.epochs.len();
    match &record.outcome {
        Some(Outcome::Completed) => String::new(),
        Some(Outcome::Failed { class, message, .. }) => format!("{}: {message}", class.name()),
        Some(Outcome::Skipped { reason }) => reason.clone(),
        Some(pruned @ Outcome::Pruned { .. }) => pruned.pruned_by().unwrap_or_default(),
        Some(Outcome::Interrupted) => {
            format!("stopped after {epochs} of {} epochs", run.train.epochs)
        }
        None if record.started.is_some() => {
            format!("started, {epochs} of {} epochs recorded", run.train.epochs)
        }
        None => String::new(),
    }
}

fn remarks(run: &RunPlan, record: &RunRecord) -> Vec<String> {
    let mut remarks = Vec::new();
    let rejected = record.started.iter().flat_map(|s| &s.rejected_checkpoints);
    remarks.extend(rejected.map(|what| format!("`{}` skipped {what}", run.id)));
    let adjustments = lasting(&record.attempts.adjustments);
    remarks.extend(adjustments.map(|adjustment| {
        let (adjusted, reason) = (adjustment.in_words(), adjustment.reason());
        format!(
            "`{}` did not run as planned, but with {adjusted}, {reason}",
            run.id
        )
    }));
    if let Some(growth) = &record.growth {
        let growth = growth.in_words(&run.device.to_string(), run.train.batch_size);
        remarks.push(format!("`{}`: {growth}", run.id));
    }
    if let Some((steps, digests)) = record.trace_lost {
        let and = if digests {
            " and the digests of its weights"
        } else {
            ""
        };
        remarks.push(format!(
            "`{}` was resumed without its trace, which was deleted or changed: the losses of its first {steps} updates{and} are lost, so it cannot be compared step by step. Its metrics are not affected",
            run.id
        ));
    }
    if let Some((epoch, reason)) = &record.stopped_early {
        let epochs = run.train.epochs;
        remarks.push(format!(
            "`{}` was stopped early after epoch {epoch} of {epochs}: {reason}",
            run.id
        ));
    }
    remarks
}

/// The median of some values, the mean of both middle ones for an even number; none of none.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some((values[(values.len() - 1) / 2] + upper) / 2.0)
}

fn is_false(is: &bool) -> bool {
    !is
}
