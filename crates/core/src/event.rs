//! The interface between runs and their observers: facts, in the past tense.
//!
//! A worker process writes events to its standard output, one JSON object per line; the collector appends them to the
//! run's `events.jsonl` and displays them. [`Event::Progressed`] is only for live display and is not recorded.

mod attempts;
mod build;
mod kernels;
mod memory;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::spec::adjustment::{Adjustment, Change, learning_rate_factor};
pub use crate::spec::failure::FailureClass;
use crate::spec::search::PruneRule;
use crate::spec::section::Choice;
pub use attempts::Attempts;
pub use build::Build;
pub use kernels::Kernels;
pub use memory::{MemoryGrowth, MemoryPeak, PoolUsage};

/// Numbers by name, such as `valid/loss`.
pub type Metrics = BTreeMap<String, f64>;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(
    clippy::large_enum_variant,
    reason = "events are few, and each is written and dropped at once"
)]
pub enum Event {
    /// The worker has started: data loaded, network created or restored.
    RunStarted(Started),
    /// Progress for live display.
    Progressed(Progress),
    /// An epoch was trained and validated.
    EpochFinished(Epoch),
    /// A complete checkpoint is on disk.
    CheckpointSaved {
        /// Optimizer updates before it.
        step: usize,
        /// The epoch that it ends, or that it is part of.
        epoch: usize,
    },
    /// A checkpoint is useless: the first loss after it is NaN, whatever the learning rate.
    CheckpointDropped {
        /// Optimizer updates before it.
        step: usize,
        /// Updates of the newest remaining checkpoint; 0 for none.
        newest: usize,
    },
    /// The measured memory of similar runs, as known before this attempt.
    MemoryCalibrated {
        /// The highest expected memory, in bytes.
        forecast_bytes: u64,
    },
    /// Memory grows from epoch to epoch.
    MemoryGrew(MemoryGrowth),
    /// The peak memory of this attempt, when it ended.
    MemoryMeasured(MemoryPeak),
    /// Training ended before its last epoch, as planned.
    StoppedEarly {
        /// The last epoch that was trained.
        epoch: usize,
        /// Why.
        reason: String,
    },
    /// A backend selected kernels by timing; reported when everything is computed.
    KernelsChosen(Kernels),
    /// The losses of updates before the start are missing from the trace, or differ from those written.
    TraceLost {
        /// Updates whose losses are lost.
        steps: usize,
        /// Whether the digests of parameters are lost too.
        digests: bool,
    },
    /// Everything is computed and on disk; with the sha256 of the files that belong to the numbers, by path in the
    /// run's folder.
    FilesRecorded {
        /// The digests by path.
        files: BTreeMap<String, String>,
    },
    /// A split was evaluated once, after the training.
    SplitEvaluated {
        /// The split.
        split: String,
        /// The epoch whose weights were evaluated.
        epoch: usize,
        /// Numbers by name.
        metrics: Metrics,
    },
    /// A completed run is extended.
    RunExtended {
        /// Epochs before the extension.
        from_epochs: usize,
        /// Epochs after it.
        to_epochs: usize,
        /// The new fingerprint.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        fingerprint: String,
    },
    /// The run is changed to fit into memory, before it starts or after it ran out.
    RunAdjusted {
        /// The change, which applies from here on.
        adjustment: Adjustment,
        /// Why.
        reason: String,
    },
    /// The run is retried after a failure, from its newest checkpoint.
    RunRetried {
        /// The number of the retry after failures of this class, from 1.
        attempt: u32,
        /// The class of the failure.
        class: FailureClass,
        /// Delay in seconds.
        after_secs: f64,
        /// The change, which applies from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        adjustment: Option<Adjustment>,
    },
    /// The run ended.
    RunFinished {
        /// How.
        outcome: Outcome,
        /// Seconds since the worker started.
        wall_secs: f64,
        /// sha256 of the final weights by path; empty when there are none.
        weights_digest: String,
    },
}

/// What a worker reports when it has started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The device, as named in the experiment file.
    #[serde(default)]
    pub device: String,
    /// The device's own name.
    pub device_name: String,
    /// sha256 of each split's items.
    pub data_digests: BTreeMap<String, String>,
    /// Threads that the worker may use.
    pub threads: usize,
    /// Optimizer updates up to the checkpoint; 0 for a fresh start.
    pub resumed_step: usize,
    /// Seconds of the run up to that checkpoint.
    pub resumed_secs: f64,
    /// The epochs finished before that checkpoint.
    pub history: Vec<Epoch>,
    /// Checkpoints that were skipped, and why.
    pub rejected_checkpoints: Vec<String>,
    /// Seconds from the worker's start to this event.
    pub startup_secs: f64,
    /// Bytes of each split that is kept on the device; a thread prefetches batches of the others.
    #[serde(default)]
    pub kept_on_device: BTreeMap<String, u64>,
    /// The vector instructions of runner's kernels: `baseline`, `avx2` or `avx512`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Whose kernels compute each layer, `runner` or `burn`, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layers: BTreeMap<String, String>,
    /// The build of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
}

/// The progress of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The epoch in progress, from 1.
    pub epoch: usize,
    /// Optimizer updates so far.
    pub step: usize,
    /// Optimizer updates of the whole training.
    pub num_steps: usize,
    /// Recent optimizer updates per second.
    pub steps_per_sec: f64,
}

/// One epoch's numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// The epoch, from 1.
    pub epoch: usize,
    /// Optimizer updates up to its end.
    pub step: usize,
    /// Numbers by name.
    pub metrics: Metrics,
    /// Seconds of training.
    pub train_secs: f64,
    /// Seconds of validation.
    pub valid_secs: f64,
    /// Memory of the process at its end.
    pub memory_bytes: u64,
    /// The pool of the device or, on the host, of the process at its end, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolUsage>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// All epochs were trained.
    Completed,
    /// It was stopped from outside, and can be resumed.
    Interrupted,
    /// It was ended by the search that it is part of, and can be resumed.
    Pruned {
        /// The last epoch that was trained.
        epoch: usize,
        /// The rule.
        rule: PruneRule,
    },
    /// It was not started.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It failed.
    Failed {
        /// The class of failure.
        class: FailureClass,
        /// What happened, and what to do about it.
        message: String,
        /// The signal that killed the process, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<i32>,
    },
}

impl Outcome {
    /// A failure.
    pub fn failed(class: FailureClass, message: impl Into<String>) -> Self {
        Outcome::Failed {
            class,
            message: message.into(),
            signal: None,
        }
    }

    /// By what, and when, it was pruned, as text.
    pub fn pruned_by(&self) -> Option<String> {
        match self {
            Outcome::Pruned { epoch, rule } => {
                Some(format!("by `{}` after epoch {epoch}", rule.name()))
            }
            _ => None,
        }
    }

    /// One word for tables.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Interrupted => "interrupted",
            Outcome::Pruned { .. } => "pruned",
            Outcome::Skipped { .. } => "skipped",
            Outcome::Failed { .. } => "failed",
        }
    }
}
