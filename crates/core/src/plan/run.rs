//! Plans as they are kept: of an experiment, and of one training.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::fmt;

use super::constant::ConstantPlan;
use super::init::InitPlan;
use super::teacher::TeacherPlan;
use super::{Forecast, Relief};
use crate::check::forecast::Demand;
use crate::check::network::Network;
use crate::check::task::usual_task;
use crate::data::{DataPlan, Dataset};
use crate::spec::CheckpointSpec;
use crate::spec::backend::{Arithmetic, DeviceName, Kernels, Precision};
use crate::spec::constraint::Constraint;
use crate::spec::failure::OnFailure;
use crate::spec::launch::LaunchSpec;
use crate::spec::loss::{LossFunction, LossSpec};
use crate::spec::losses::LossTerm;
use crate::spec::method::Method;
use crate::spec::metric::{Metric, Objective};
use crate::spec::notify::NotifySpec;
use crate::spec::optimizer::OptimizerSpec;
use crate::spec::own::{OwnData, OwnLoss, OwnMetric, OwnOptimizer, OwnSchedule, OwnStrategy, Part};
use crate::spec::predictions::PredictionsSpec;
use crate::spec::scheduler::SchedulerSpec;
use crate::spec::search::{Budget, Prior, PruneSpec, SearchMethod, Suggestion};
use crate::spec::strategy::StrategySpec;
use crate::spec::task::{TaskKind, TaskSpec};
use crate::spec::traded::Traded;
use crate::spec::train::TrainSpec;
use crate::spec::verdict::VerdictSpec;

/// The version of `plan.json` and `run.toml`. Since 3, the files of a run are sealed and its events are chained.
pub const FORMAT: u32 = 3;

/// The oldest version that is still read. Its runs appear in reports, and count as different work when they are planned
/// again.
pub const OLDEST_FORMAT: u32 = 2;

/// The plan of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of this format.
    pub format: u32,
    /// The folder's name under `results/`.
    pub experiment: String,
    /// The question of the experiment; empty if not set.
    pub question: String,
    /// The file, as the user named it.
    pub source: String,
    /// The edits of `--set`, in order.
    pub overrides: Vec<String>,
    /// The metric that trials are ranked by.
    pub objective: Objective,
    /// The baseline trial, if the file sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Which differences matter, and the expected noise.
    #[serde(default, skip_serializing_if = "VerdictSpec::is_default")]
    pub verdict: VerdictSpec,
    /// The seconds after which the experiment stops, if there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_secs: Option<f64>,
    /// Notices about the data for the user.
    pub notices: Vec<String>,
    /// The varied keys, in file order.
    pub axes: Vec<String>,
    /// Further keys that differ between trials, since their expressions use varied ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depending: Vec<String>,
    /// The search, if the trials are those of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchPlan>,
    /// Where its runs are trained, according to the file.
    #[serde(skip)]
    pub launch: LaunchSpec,
    /// Who is told of what happens, according to the file.
    #[serde(skip)]
    pub notify: Vec<NotifySpec>,
    /// Trials in file order, the seeds of a trial side by side.
    pub runs: Vec<RunPlan>,
}

/// A search, with its suggestions so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchPlan {
    /// How points are suggested.
    #[serde(rename = "type")]
    pub method: SearchMethod,
    /// The number of trials, if it is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_trials: Option<usize>,
    /// What it may cost.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// How trials are ended early, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<PruneSpec>,
    /// How its best trials are confirmed, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<ConfirmPlan>,
    /// Its further objectives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<Traded>,
    /// Limits that its best trial has to meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// A digest of what must not change between its rounds.
    pub digest: String,
    /// The trials of earlier results that it learns from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prior: Vec<Prior>,
    /// The suggestions, in order.
    pub suggestions: Vec<Suggestion>,
}

/// How the best trials of a search are confirmed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfirmPlan {
    /// The number of trials.
    pub trials: usize,
    /// The seeds, none of which the search has.
    pub seeds: Vec<u64>,
}

impl SearchPlan {
    /// Whether runs with this seed confirm trials: the search is not shown them.
    pub fn confirms(&self, seed: u64) -> bool {
        let confirm = self.confirm.as_ref();
        confirm.is_some_and(|confirm| confirm.seeds.contains(&seed))
    }

    /// The trials that are trained with other seeds too, each with the epochs up to which, or `None` for all of them: those
    /// that are confirmed, and what they begin as copies of, up to there. So a confirmed copy has the hyperparameters of
    /// its lineage from the first epoch on.
    pub fn confirmed(&self) -> BTreeMap<&str, Option<usize>> {
        let mut ends: BTreeMap<&str, Option<usize>> = BTreeMap::new();
        // A copy comes after what it is a copy of.
        for known in self.suggestions.iter().rev() {
            if known.is_confirmed {
                ends.insert(&known.trial, None);
            }
            let fork = known.fork.filter(|_| ends.contains_key(&*known.trial));
            let source = fork.and_then(|fork| self.suggestions.get(fork.from));
            if let (Some(fork), Some(source)) = (fork, source) {
                let end = ends.entry(&source.trial).or_insert(Some(fork.epochs));
                *end = end.map(|end| end.max(fork.epochs));
            }
        }
        ends
    }

    /// The epochs that each trial took over from another one; empty without population-based training.
    pub fn copied_epochs(&self) -> BTreeMap<&str, usize> {
        let known = self.suggestions.iter();
        known
            .filter_map(|known| Some((known.trial.as_str(), known.fork?.epochs)))
            .collect()
    }

    /// The epochs up to which the runs of each trial are trained so far; empty if the search does not end trials early.
    pub fn epochs(&self) -> BTreeMap<&str, usize> {
        let mut epochs = BTreeMap::new();
        for known in &self.suggestions {
            let to: &mut usize = epochs.entry(known.trial.as_str()).or_default();
            *to = known.rung.map_or(*to, |rung| rung.epochs.max(*to));
        }
        epochs.retain(|_, to| *to > 0);
        epochs
    }
}

impl Plan {
    /// All of it but its runs.
    pub fn without_runs(&self) -> Self {
        Self {
            format: self.format,
            experiment: self.experiment.clone(),
            question: self.question.clone(),
            source: self.source.clone(),
            overrides: self.overrides.clone(),
            objective: self.objective,
            baseline: self.baseline.clone(),
            verdict: self.verdict,
            time_limit_secs: self.time_limit_secs,
            notices: self.notices.clone(),
            axes: self.axes.clone(),
            depending: self.depending.clone(),
            search: self.search.clone(),
            launch: self.launch.clone(),
            notify: self.notify.clone(),
            runs: Vec::new(),
        }
    }

    /// The runs that a run begins as copies of, the oldest first; none if it begins by itself.
    pub fn lineage(&self, run: &RunPlan) -> Vec<&RunPlan> {
        let mut lineage = Vec::new();
        // A run is a copy of an earlier one, so that this ends.
        let mut earlier = self.runs.as_slice();
        let mut fork = run.fork.as_ref();
        while let Some(from) = fork {
            let Some(at) = earlier.iter().position(|other| other.id == from.run) else {
                break;
            };
            lineage.push(&earlier[at]);
            fork = earlier[at].fork.as_ref();
            earlier = &earlier[..at];
        }
        lineage.reverse();
        lineage
    }

    /// Whether runs with this seed confirm trials of a search, rather than being part of it.
    pub fn confirms(&self, seed: u64) -> bool {
        let search = self.search.as_ref();
        search.is_some_and(|search| search.confirms(seed))
    }
}

/// One training, fully resolved.
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
    /// Seed of the initial weights, the order of items and every other random number.
    pub seed: u64,
    /// Hash of everything that can change the numbers.
    pub fingerprint: String,
    /// The metric that epochs are compared by.
    pub objective: Objective,
    /// The device.
    pub device: DeviceName,
    /// The precision.
    pub precision: Precision,
    /// Which kernels compute layers and losses.
    #[serde(default, alias = "conv", skip_serializing_if = "Kernels::is_fast")]
    pub kernels: Kernels,
    /// How products and sums are rounded.
    #[serde(default, skip_serializing_if = "Arithmetic::is_fast")]
    pub arithmetic: Arithmetic,
    /// The memory limit in bytes, if any: of its process on the host, otherwise of the device's pool.
    pub memory_limit_bytes: Option<u64>,
    /// Bytes of device memory left free for other programs.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub memory_reserve_bytes: u64,
    /// Remedies if it does not fit.
    #[serde(default, skip_serializing_if = "Relief::is_empty")]
    pub on_exceed: Relief,
    /// The time limit in seconds, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_secs: Option<f64>,
    /// Why it is skipped on this machine, if it is: its device is not available, or does not support its precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// Optimizer updates in an epoch.
    pub steps_per_epoch: usize,
    /// The values of the varied keys.
    pub axes: Map<String, Json>,
    /// The peak memory, as counted before any measurement.
    #[serde(default)]
    pub forecast: Forecast,
    /// Epochs and batches.
    pub train: TrainSpec,
    /// What happens to the weights besides the updates.
    #[serde(default, skip_serializing_if = "StrategySpec::is_standard")]
    pub strategy: StrategySpec,
    /// When checkpoints are saved and kept.
    pub checkpoint: CheckpointSpec,
    /// The predictions that are written when the training ends.
    #[serde(default, skip_serializing_if = "PredictionsSpec::is_empty")]
    pub predictions: PredictionsSpec,
    /// What happens if it fails.
    #[serde(default, skip_serializing_if = "OnFailure::is_empty")]
    pub on_failure: OnFailure,
    /// The data.
    pub data: DataPlan,
    /// The task and its metrics.
    pub task: TaskSpec,
    /// The loss.
    pub loss: LossSpec,
    /// Losses that are added to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<LossTerm>,
    /// The optimizer.
    pub optimizer: OptimizerSpec,
    /// The learning rate over the steps.
    pub scheduler: SchedulerSpec,
    /// The source of initial weights, if not all of them are random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<InitPlan>,
    /// The files of constants of the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<ConstantPlan>,
    /// The teacher, with `strategy.type = "distill"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher: Option<TeacherPlan>,
    /// The run that it begins as a copy of, in population-based training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<ForkPlan>,
    /// The planned network.
    pub network: Network,
}

/// What a run begins as: the state of another one after some epochs. Its own epochs follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForkPlan {
    /// The id of the other run.
    pub run: String,
    /// Its fingerprint, which contains what it begins as, and so the whole lineage.
    pub fingerprint: String,
    /// Its epochs that are taken over.
    pub epoch: usize,
}

impl fmt::Display for ForkPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a copy of `{}` after epoch {}", self.run, self.epoch)
    }
}

impl RunPlan {
    /// Optimizer updates that it takes over from the run that it begins as a copy of; 0 if it begins by itself.
    pub fn first_step(&self) -> usize {
        let fork = self.fork.as_ref();
        fork.map_or(0, |fork| self.steps_per_epoch * fork.epoch)
    }

    /// Optimizer updates of the whole training.
    pub fn num_steps(&self) -> usize {
        self.steps_per_epoch * self.train.epochs
    }

    /// The same run with another precision and micro-batch size, with its forecast. A step keeps its number of pieces.
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

    /// The same with an updated forecast.
    pub fn with_forecast(mut self) -> Self {
        self.forecast = Forecast::of(&self.demand());
        self.forecast.kept = self.kept_on_device().values().sum();
        self
    }

    /// What determines how much memory it needs.
    pub fn demand(&self) -> Demand<'_> {
        Demand {
            device: self.device,
            precision: self.precision,
            kernels: self.kernels,
            network: &self.network,
            optimizer: &self.optimizer,
            train: &self.train,
            strategy: &self.strategy,
            loss: Some(&self.loss),
            teacher: self.teacher.as_ref().map(|teacher| &teacher.network),
            data: &self.data,
        }
    }

    /// The tasks of the targets of `[[losses]]` that are other columns.
    pub fn more_tasks(&self) -> Vec<TaskKind> {
        let more = self.data.more_targets.iter();
        more.map(|target| usual_task(target, &self.data)).collect()
    }

    /// Why this program cannot compute the network and its losses, if it lacks a part that the plan was made with.
    pub fn unusable_part(&self) -> Option<String> {
        let terms = self.losses.iter().map(|term| &term.loss);
        let mut losses = terms.chain([&self.loss]);
        let loss = losses.find_map(|loss| match &loss.function {
            LossFunction::Own { used, .. } => OwnLoss::missing(&used.part),
            _ => None,
        });
        self.network.unusable_part().or(loss)
    }

    /// Why this program cannot measure the network, if it lacks a metric.
    pub fn missing_in_measuring(&self) -> Option<String> {
        let of_terms = self.losses.iter().flat_map(|term| &term.metrics);
        let mut metrics = self.task.metrics.iter().chain(of_terms);
        metrics.find_map(|metric| match metric {
            Metric::Own(own) => OwnMetric::missing(own.name()),
            _ => None,
        })
    }

    /// Why this program cannot train the network, if it lacks the data source, the optimizer, the schedule, the
    /// strategy or a metric.
    pub fn missing_in_training(&self) -> Option<String> {
        let optimizer = match &self.optimizer.method {
            Method::Own { used, .. } => OwnOptimizer::missing(&used.part),
            _ => None,
        };
        let strategy = match &self.strategy {
            StrategySpec::Own { used, .. } => OwnStrategy::missing(&used.part),
            _ => None,
        };
        let schedule = self.scheduler.own();
        let schedule = schedule.and_then(|used| OwnSchedule::missing(&used.part));
        let data = match &self.data.dataset {
            Dataset::Own { source, .. } => OwnData::missing(&source.part),
            _ => None,
        };
        let recipe = optimizer.or(schedule).or(strategy);
        data.or(recipe).or(self.missing_in_measuring())
    }

    /// The metric that early stopping watches, if any.
    pub fn watched(&self) -> Option<Objective> {
        let spec = self.train.early_stopping.as_ref()?;
        Some(spec.metric.unwrap_or(self.objective))
    }

    /// Whether a checkpoint of `step` updates, written for a plan with this fingerprint and number of epochs, is also
    /// valid for this plan: if the plans differ only in their length, and the learning rates are not affected.
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

/// Why a checkpoint of one plan is not valid for another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OtherWork {
    /// More differs than the number of epochs.
    Settings,
    /// The learning rates before the checkpoint differ.
    Schedule {
        /// The first update with a different rate, from 1.
        step: usize,
        /// The previous rate.
        then: f64,
        /// The current rate.
        now: f64,
    },
}

impl fmt::Display for OtherWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings => f.write_str("more than the number of epochs differs"),
            Self::Schedule { step, then, now } => write!(
                f,
                "the schedule depends on the number of epochs: the learning rate of step {step} was {then:.4e}, is {now:.4e}"
            ),
        }
    }
}

impl std::error::Error for OtherWork {}
