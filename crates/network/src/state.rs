//! The state of a training, except for its tensors.

use serde::{Deserialize, Serialize};

use crate::hybrid::Machine;
use crate::sums::Sums;
use runner_core::event::{Adjustment, Epoch};
use runner_core::plan::RunPlan;
use runner_core::record::TraceSums;
use runner_core::spec::metric::Objective;

/// The state of a run, except for its weights, optimizer and schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Epochs that were trained and validated.
    pub epochs_done: usize,
    /// Optimizer updates in the epoch after them.
    pub steps_in_epoch: usize,
    /// The learning rate of the newest update.
    pub learning_rate: f64,
    /// Sums of those updates' batches.
    pub train_sums: Sums,
    /// Seconds of the run up to here, over all attempts that led here.
    pub wall_secs: f64,
    /// The finished epochs.
    pub history: Vec<Epoch>,
    /// The best epoch by the objective.
    pub best: Option<Best>,
    /// The adjustments up to here, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjustments: Vec<Adjustment>,
    /// The trace up to here; none if it was at another step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSums>,
    /// What decides about predictions, in a training that predicts updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

/// The best epoch by the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// The epoch.
    pub epoch: usize,
    /// Optimizer updates up to its end: the name of its checkpoint.
    pub step: usize,
    /// The objective's value.
    pub value: f64,
}

impl State {
    /// The metrics of the best epoch.
    pub fn best_epoch(&self) -> Option<&Epoch> {
        let best = self.best?;
        let mut newest_first = self.history.iter().rev();
        newest_first.find(|epoch| epoch.epoch == best.epoch)
    }

    /// Whether the plan's early stopping ends the training here, judged only by the history.
    pub fn is_stopped_early(&self, plan: &RunPlan) -> bool {
        let (Some(spec), Some(metric)) = (&plan.train.early_stopping, plan.watched()) else {
            return false;
        };
        self.epochs_done < plan.train.epochs && spec.is_over(metric, self.values(metric))
    }

    /// How often a metric that stopped improving has lowered the learning rate, judged only by the history.
    pub fn num_reductions(&self, plan: &RunPlan) -> usize {
        let metric = plan.scheduler.metric().unwrap_or(plan.objective);
        let curve = &plan.scheduler.curve;
        curve.num_reductions(metric, self.values(metric))
    }

    /// The values of a metric, one per epoch; `nan` where it was not measured.
    fn values(&self, metric: Objective) -> impl Iterator<Item = f64> {
        let name = metric.name();
        self.history.iter().map(move |epoch| {
            let value = epoch.metrics.get(&name);
            value.copied().unwrap_or(f64::NAN)
        })
    }

    /// Total optimizer updates.
    pub fn step(&self, plan: &RunPlan) -> usize {
        self.epochs_done * plan.steps_per_epoch + self.steps_in_epoch
    }

    /// Adds a finished epoch; returns whether it is the best so far.
    pub fn finish_epoch(&mut self, epoch: Epoch, plan: &RunPlan) -> bool {
        self.epochs_done += 1;
        self.steps_in_epoch = 0;
        let metrics = &epoch.metrics;
        let value = metrics.get(&plan.objective.name());
        let improved = self
            .best_epoch()
            .is_none_or(|best| plan.prefers_later(metrics, &best.metrics));
        if improved {
            self.best = Some(Best {
                epoch: self.epochs_done,
                step: self.step(plan),
                value: value.copied().unwrap_or(f64::NAN),
            });
        }
        self.history.push(epoch);
        improved
    }
}
