//! A run in brief: what lists, reports and comparisons need of its plan and its record, but for its curves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::seal::FIRST_SEALED;
use super::{Environment, RunFolder, RunRecord, Settings, TRACE_FILES, is_other_format, remedy};
use crate::event::{FailureClass, MemoryPeak, Metrics, Outcome};
use crate::plan::{HeldOut, RunPlan};
use crate::spec::adjustment::lasting;
use crate::spec::document::plain_io_error;
use crate::spec::section::Choice;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// All epochs were trained.
    Completed,
    /// It went wrong.
    Failed,
    /// It was stopped from outside, and can be resumed.
    Interrupted,
    /// It is not started on this machine.
    Skipped,
    /// A worker trains it.
    Running,
    /// It was begun, has not come to an end, and nobody trains it.
    Incomplete,
    /// Nothing happened yet.
    NotStarted,
    /// Its folder is damaged.
    Unreadable,
    /// Another version of this program wrote it.
    OtherFormat,
}

impl State {
    /// Whether nothing can be said of the run.
    pub fn is_unreadable(self) -> bool {
        matches!(self, State::Unreadable | State::OtherFormat)
    }

    /// For tables.
    pub fn word(self) -> &'static str {
        match self {
            State::Completed => "completed",
            State::Failed => "failed",
            State::Interrupted => "interrupted",
            State::Skipped => "skipped",
            State::Running => "running",
            State::Incomplete => "incomplete",
            State::NotStarted => "not started",
            State::Unreadable | State::OtherFormat => "unreadable",
        }
    }
}

/// What to do about a plan of another version.
pub const OTHER_FORMAT_REMEDY: &str =
    "the version that wrote it can read it; or run the experiment again, into another folder";

/// What to do about a damaged plan.
pub const PLAN_REMEDY: &str = "put the file back, or let `runner run` on the experiment's file write it anew: it keeps the runs";

/// A run in brief.
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
    /// Its settings by the keys of the experiment file, but for those that all runs share.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// The device that it is planned for.
    pub device: String,
    /// The precision.
    pub precision: String,
    /// Hash of everything that can change the numbers.
    pub fingerprint: String,
    /// Epochs that it is planned to have.
    pub num_epochs: usize,
    /// How far it is.
    pub state: State,
    /// The kind of failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureClass>,
    /// Why it is not completed, where there is more to say than how far it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Numbers of the best epoch by the objective, of the evaluations, and with `last/` of the last epoch. Those
    /// that are not finite are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: Metrics,
    /// The names of the numbers that are not finite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_finite: Vec<String>,
    /// The best epoch by the objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_epoch: Option<usize>,
    /// Epochs that were finished.
    pub epochs: usize,
    /// Seconds that it took; until its last event, while it has not come to an end.
    pub wall_secs: f64,
    /// Seconds that an epoch's training takes: the median of its epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_secs: Option<f64>,
    /// What it held of memory, once something was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryUse>,
    /// Where it was computed for a part at least, if that is not where it was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// Whether it is not what was planned, after a failure or so that it fits into memory.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_adjusted: bool,
    /// What else happened that a reader should know, in words that name the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// sha256 of the final weights by path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub weights_digest: String,
    /// Which of the index' data sets it uses.
    pub data: usize,
    /// Which of the index' environments it was computed in, if it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<usize>,
    /// When its last event arrived, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_ms: Option<u64>,
}

/// What a run held of memory beside what was forecast, or the most of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// As counted before anything was measured, in bytes.
    pub forecast_bytes: u64,
    /// By measurements of such runs on this machine, if there were any before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated_bytes: Option<u64>,
    /// The most that was held.
    pub measured: MemoryPeak,
}

impl MemoryUse {
    /// Of one run, once something was measured.
    pub fn of(run: &RunPlan, record: &RunRecord) -> Option<Self> {
        let adjusted = run.adjusted(&record.attempts.adjustments);
        Some(Self {
            forecast_bytes: adjusted.forecast.total(),
            calibrated_bytes: record.calibrated_bytes,
            measured: record.peak?,
        })
    }

    /// The larger of each number, of two runs.
    pub fn max(self, other: Self) -> Self {
        Self {
            forecast_bytes: self.forecast_bytes.max(other.forecast_bytes),
            calibrated_bytes: self.calibrated_bytes.max(other.calibrated_bytes),
            measured: self.measured.max(other.measured),
        }
    }

    /// How far the best forecast is off what was measured, as a share of that.
    pub fn error(&self) -> f64 {
        let forecast = self.calibrated_bytes.unwrap_or(self.forecast_bytes) as f64;
        forecast / self.measured.bytes().max(1) as f64 - 1.0
    }
}

/// A data set as some runs used it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataUsed {
    /// The data set with its split, in words.
    pub what: String,
    /// sha256 of each split's items; empty while no run has started.
    pub digests: BTreeMap<String, String>,
    /// Items of the train split; 0 where that is not known.
    #[serde(default)]
    pub num_train: usize,
    /// Items of the valid split; 0 where that is not known.
    #[serde(default)]
    pub num_valid: usize,
    /// Where the valid split comes from.
    #[serde(default)]
    pub held_out: HeldOut,
}

/// What a run's folder says, before data and environments are numbered.
pub(super) struct Read {
    pub entry: RunEntry,
    pub data: DataUsed,
    pub environment: Option<Environment>,
    /// Whether all files could be read and, with `mend`, written.
    pub is_sure: bool,
    /// What was found out when derived files were written again.
    pub mended: Vec<String>,
}

impl Read {
    /// Reads a run's folder. With `mend`, what is derived and missing there is written again.
    pub fn of(run: &RunPlan, folder: &RunFolder, mend: bool) -> Self {
        let mut read = Self {
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
        };
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
                    "`{}` is left out of Environment: {}",
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
        match record.write_derived(folder, run) {
            Ok(differed) => self.mended.extend(differed.iter().map(|file| {
                format!(
                    "`{file}` of `{}` was not what its events give: it was changed or damaged, and is written again from `events.jsonl`",
                    run.id
                )
            })),
            Err(e) => {
                self.entry.remarks.push(format!("of `{}`: {e}", run.id));
                self.is_sure = false;
            }
        }
    }

    /// No number of a report is from the trace, but the guarantee that the run can be reproduced step by step is.
    fn check_trace(&mut self, run: &RunPlan, folder: &RunFolder, record: &RunRecord) {
        for name in TRACE_FILES {
            if let Err(e) = folder.check_file(record, name) {
                self.entry.remarks.push(format!(
                    "`{}` cannot be compared step by step any more: {}",
                    run.id,
                    plain_io_error(&e)
                ));
            }
        }
    }

    /// The environment is written beside the events, which say what the worker found.
    fn check_environment(&mut self, run: &RunPlan, record: &RunRecord) {
        let worker = self.environment.as_ref().and_then(|e| e.worker.as_ref());
        // A kill may come between the start and the file; sums of earlier versions say nothing.
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
                    && worker.conv == started.conv;
                if is_its {
                    return;
                }
                "is not what its events say: it is that of another run or start"
            }
        };
        self.environment = None;
        self.entry.remarks.push(format!(
            "`{}` is left out of Environment: its `environment.json` {reason}",
            run.id
        ));
    }
}

impl RunEntry {
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
        }
    }

    fn take(&mut self, run: &RunPlan, record: &RunRecord) {
        self.state = match (&record.outcome, &record.started) {
            (Some(Outcome::Completed), _) => State::Completed,
            (Some(Outcome::Failed { .. }), _) => State::Failed,
            (Some(Outcome::Interrupted), _) => State::Interrupted,
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
        Some(Outcome::Interrupted) => {
            format!("stopped after {epochs} of {} epochs", run.train.epochs)
        }
        None if record.started.is_some() => {
            format!("begun, {epochs} of {} epochs recorded", run.train.epochs)
        }
        None => String::new(),
    }
}

fn remarks(run: &RunPlan, record: &RunRecord) -> Vec<String> {
    let mut remarks = Vec::new();
    let rejected = record.started.iter().flat_map(|s| &s.rejected_checkpoints);
    remarks.extend(rejected.map(|what| format!("`{}` passed over {what}", run.id)));
    let adjustments = lasting(&record.attempts.adjustments);
    remarks.extend(adjustments.map(|adjustment| {
        let (adjusted, reason) = (adjustment.in_words(), adjustment.reason());
        format!(
            "`{}` was not made as planned, but with {adjusted}, {reason}",
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
            "`{}` was resumed without its trace, which was deleted or changed: the losses of its first {steps} updates{and} are lost, and it cannot be compared step by step. Its metrics are not affected",
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

/// The middle one of some values, of an even number the mean of both; none of none.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some((values[(values.len() - 1) / 2] + upper) / 2.0)
}

fn is_false(is: &bool) -> bool {
    !is
}
