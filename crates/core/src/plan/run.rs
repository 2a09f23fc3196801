//! Plans as they are kept: of an experiment, and of one training.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::fmt;

use super::{Forecast, Relief};
use crate::check::forecast::Demand;
use crate::check::network::Network;
use crate::data::DataPlan;
use crate::spec::CheckpointSpec;
use crate::spec::backend::{ConvKernels, DeviceName, Precision};
use crate::spec::failure::OnFailure;
use crate::spec::loss::LossSpec;
use crate::spec::metric::Objective;
use crate::spec::optimizer::OptimizerSpec;
use crate::spec::scheduler::SchedulerSpec;
use crate::spec::task::TaskSpec;
use crate::spec::train::TrainSpec;
use crate::spec::verdict::VerdictSpec;

/// The version of `plan.json` and `run.toml`. Since 3, the files of a run are sealed and its events are chained.
pub const FORMAT: u32 = 3;

/// The oldest version that is still read. Runs of it are shown in reports, and are other work when they are planned again.
pub const OLDEST_FORMAT: u32 = 2;

/// What an experiment comes down to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of this format.
    pub format: u32,
    /// The folder's name under `results/`.
    pub experiment: String,
    /// What the experiment is to answer; empty when it does not say.
    pub question: String,
    /// The file, as the user named it.
    pub source: String,
    /// The edits of `--set`, in order.
    pub overrides: Vec<String>,
    /// The metric that trials are ranked by.
    pub objective: Objective,
    /// The trial that others are compared with, if the file names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Which differences matter, and what noise is expected.
    #[serde(default, skip_serializing_if = "VerdictSpec::is_default")]
    pub verdict: VerdictSpec,
    /// The seconds after which the experiment stops, if there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_secs: Option<f64>,
    /// What the user must be told about the data.
    pub notices: Vec<String>,
    /// The varied keys, in file order.
    pub axes: Vec<String>,
    /// Trials in file order, the seeds of a trial side by side.
    pub runs: Vec<RunPlan>,
}

/// One training, with nothing left to decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The version of this format.
    pub format: u32,
    /// The experiment's name.
    pub experiment: String,
    /// The run's name and folder: the trial's with the seed.
    pub id: String,
    /// The trial's name.
    pub trial: String,
    /// Decides the first weights, the order of items and every other random draw.
    pub seed: u64,
    /// Hash of everything that can change the numbers.
    pub fingerprint: String,
    /// The metric that epochs are compared by.
    pub objective: Objective,
    /// Where it is computed.
    pub device: DeviceName,
    /// In what precision.
    pub precision: Precision,
    /// Which kernels convolutions are computed by.
    #[serde(default, skip_serializing_if = "ConvKernels::is_auto")]
    pub conv: ConvKernels,
    /// The most bytes that it may hold, if there is a limit: its process on the host, else the device's pool.
    pub memory_limit_bytes: Option<u64>,
    /// Bytes of the device that stay free for others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_reserve_bytes: u64,
    /// What is done about it when it does not fit.
    #[serde(default, skip_serializing_if = "Relief::is_empty")]
    pub on_exceed: Relief,
    /// The seconds that it may take, if there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_secs: Option<f64>,
    /// Why it is not started on this machine, if it is not: its device is not there, or does not compute in its
    /// precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// Optimizer updates in an epoch.
    pub steps_per_epoch: usize,
    /// The values of the varied keys.
    pub axes: Map<String, Json>,
    /// What it will hold at its peak, as counted before anything was measured.
    #[serde(default)]
    pub forecast: Forecast,
    /// How long is trained.
    pub train: TrainSpec,
    /// When checkpoints are written and kept.
    pub checkpoint: CheckpointSpec,
    /// What is done when it fails.
    #[serde(default, skip_serializing_if = "OnFailure::is_empty")]
    pub on_failure: OnFailure,
    /// What is trained on.
    pub data: DataPlan,
    /// What is learned, and what is measured.
    pub task: TaskSpec,
    /// What is minimized.
    pub loss: LossSpec,
    /// How it is minimized.
    pub optimizer: OptimizerSpec,
    /// The learning rate over the steps.
    pub scheduler: SchedulerSpec,
    /// The network laid out.
    pub network: Network,
}

impl RunPlan {
    /// Optimizer updates of the whole training.
    pub fn num_steps(&self) -> usize {
        self.steps_per_epoch * self.train.epochs
    }

    /// The same run in another precision and with so many items computed at a time, with the forecast of that.
    /// A step stays in as many pieces as it is in.
    pub fn in_batches(&self, items: usize, precision: Precision) -> Self {
        let train = &self.train;
        let pieces = train.batch_size.div_ceil(train.micro_batch_size);
        let mut run = self.clone();
        run.precision = precision;
        run.train.micro_batch_size = items;
        run.train.batch_size = items * pieces;
        run.steps_per_epoch = run.data.num_train.div_ceil(run.train.batch_size);
        run.with_forecast()
    }

    /// The same with the forecast of what it says now.
    pub fn with_forecast(mut self) -> Self {
        self.forecast = Forecast::of(&self.demand());
        self.forecast.kept = self.kept_on_device().values().sum();
        self
    }

    /// What decides how much memory it takes.
    pub fn demand(&self) -> Demand<'_> {
        Demand {
            device: self.device,
            precision: self.precision,
            conv: self.conv,
            network: &self.network,
            optimizer: &self.optimizer,
            train: &self.train,
            data: &self.data,
        }
    }

    /// The metric that early stopping watches, if there is early stopping.
    pub fn watched(&self) -> Option<Objective> {
        let spec = self.train.early_stopping.as_ref()?;
        Some(spec.metric.unwrap_or(self.objective))
    }

    /// Whether a checkpoint of `step` updates, written for a plan of this fingerprint and so many epochs, is one
    /// of this plan too: when the plans differ in nothing but their length, and the learning rates do
    /// not see it.
    ///
    /// # Errors
    ///
    /// What else differs.
    pub fn goes_on_from(
        &self,
        fingerprint: &str,
        epochs: usize,
        step: usize,
    ) -> Result<(), OtherWork> {
        let mut shorter = self.clone();
        shorter.train.epochs = epochs;
        let shorter = shorter.with_fingerprint();
        if shorter.fingerprint != fingerprint {
            return Err(OtherWork::Settings);
        }
        let other = |at: &usize| self.learning_rate(*at) != shorter.learning_rate(*at);
        match (0..step).find(other) {
            None => Ok(()),
            Some(at) => Err(OtherWork::Schedule {
                step: at + 1,
                then: shorter.learning_rate(at),
                now: self.learning_rate(at),
            }),
        }
    }
}

/// Why a checkpoint of one plan is none of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OtherWork {
    /// More differs than the number of epochs.
    Settings,
    /// The learning rates on the way to the checkpoint are others.
    Schedule {
        /// The first update that has another, from 1.
        step: usize,
        /// The rate of then.
        then: f64,
        /// The rate of now.
        now: f64,
    },
}

impl fmt::Display for OtherWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings => f.write_str("more than its number of epochs is other"),
            Self::Schedule { step, then, now } => write!(
                f,
                "the schedule depends on the number of epochs: the learning rate of step {step} was {then:.4e}, is {now:.4e}"
            ),
        }
    }
}

impl std::error::Error for OtherWork {}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}
