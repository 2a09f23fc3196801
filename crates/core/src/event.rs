//! The only language between what runs and what observes it: facts, in the past tense.
//!
//! A worker process writes events to its standard output, one JSON object a line; the collector appends
//! them to the run's `events.jsonl` and shows them. [`Event::Progressed`] is for watchers alone and is
//! not recorded.

mod attempts;
mod build;
mod kernels;
mod memory;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::spec::adjustment::{Adjustment, Change, learning_rate_factor};
pub use crate::spec::failure::FailureClass;
pub use attempts::Attempts;
pub use build::Build;
pub use kernels::Kernels;
pub use memory::{MemoryGrowth, MemoryPeak, PoolUsage};

/// Numbers by name, such as `valid/loss`.
pub type Metrics = BTreeMap<String, f64>;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The worker is up: data loaded, network made or restored.
    RunStarted(Started),
    /// A watcher may show where the run is.
    Progressed(Progress),
    /// An epoch was trained and validated.
    EpochFinished(Epoch),
    /// A complete checkpoint is on disk.
    CheckpointSaved {
        /// Optimizer updates before it.
        step: usize,
        /// The epoch that it ends, or that it stands in.
        epoch: usize,
    },
    /// A checkpoint is of no use: the first loss after it is no number, whatever the learning rate is.
    CheckpointDropped {
        /// Optimizer updates before it.
        step: usize,
        /// Those before the newest one that is left; 0 for none.
        newest: usize,
    },
    /// What runs like this one were measured to hold, as it is known before this attempt.
    MemoryCalibrated {
        /// The most that is expected, in bytes.
        forecast_bytes: u64,
    },
    /// Memory grows from epoch to epoch.
    MemoryGrew(MemoryGrowth),
    /// The most that this attempt held, when it ended.
    MemoryMeasured(MemoryPeak),
    /// Training ended before its last epoch, as the plan asks for.
    StoppedEarly {
        /// The last epoch that was trained.
        epoch: usize,
        /// Why.
        reason: String,
    },
    /// A backend chose kernels by their times; said when all is computed.
    KernelsChosen(Kernels),
    /// Losses of updates before the start are not in the trace any more, or not as they were written.
    TraceLost {
        /// Updates whose losses are lost.
        steps: usize,
        /// Whether the digests of parameters are lost, too.
        digests: bool,
    },
    /// Everything is computed and on disk; with the sha256 of the files that go with the numbers, by their paths in the
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
    /// A run that had come to its end is to be made longer.
    RunExtended {
        /// Epochs that it had been made for.
        from_epochs: usize,
        /// Epochs that it is to have.
        to_epochs: usize,
        /// The fingerprint that it has from now on.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        fingerprint: String,
    },
    /// The run is changed so that it fits into memory, before it starts or after it did not.
    RunAdjusted {
        /// What is changed for it and for all that follows.
        adjustment: Adjustment,
        /// Why.
        reason: String,
    },
    /// After a failure the run is tried again, from its newest checkpoint.
    RunRetried {
        /// Which retry after failures of this class it is, from 1.
        attempt: u32,
        /// The class of the failure.
        class: FailureClass,
        /// Seconds that are waited before.
        after_secs: f64,
        /// What is changed for it and for all that follows.
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

/// What a worker found when it was up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The device, as the experiment file calls it.
    #[serde(default)]
    pub device: String,
    /// The device's own name.
    pub device_name: String,
    /// sha256 of each split's items.
    pub data_digests: BTreeMap<String, String>,
    /// Threads that the worker may use.
    pub threads: usize,
    /// Optimizer updates that a checkpoint had already made; 0 for a fresh start.
    pub resumed_step: usize,
    /// Seconds that the run had taken up to that checkpoint.
    pub resumed_secs: f64,
    /// The epochs that a checkpoint had already finished.
    pub history: Vec<Epoch>,
    /// Checkpoints that were passed over, and why.
    pub rejected_checkpoints: Vec<String>,
    /// Seconds from the worker's start to this event.
    pub startup_secs: f64,
    /// Bytes of each split that is kept on the device; a thread gathers batches of the others ahead.
    #[serde(default)]
    pub kept_on_device: BTreeMap<String, u64>,
    /// Whose kernels compute its convolutions of one and two dimensions, `runner` or `burn`; none without such layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conv: Option<String>,
    /// The build that computes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The epoch in progress, from 1.
    pub epoch: usize,
    /// Optimizer updates so far.
    pub step: usize,
    /// Optimizer updates of the whole training.
    pub num_steps: usize,
    /// Optimizer updates a second over the last moments of training.
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
    /// The pool of the device or, on the host, of the process at its end, where it is known.
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
    /// It was not started.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It went wrong.
    Failed {
        /// What kind of failure.
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

    /// One word for tables.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Interrupted => "interrupted",
            Outcome::Skipped { .. } => "skipped",
            Outcome::Failed { .. } => "failed",
        }
    }
}
