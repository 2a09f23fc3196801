//! `[train]`: how long is trained, in what batches, and what is done besides.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::metric::Objective;
use super::section::{Section, choices};

/// The `[train]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainSpec {
    /// Passes over the train split.
    pub epochs: usize,
    /// Items of a step.
    pub batch_size: usize,
    /// Items that are computed at a time; `batch_size` when not written.
    pub micro_batch_size: usize,
    /// Whether the backward pass computes cheap outputs anew instead of keeping them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gradient_checkpointing: bool,
    /// Which norms of gradients are metrics.
    pub log_gradient_norms: GradientNorms,
    /// Updates after which what was measured on the device is read; no number depends on it.
    #[serde(default = "log_every")]
    pub log_every: usize,
    /// When training ends before its last epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_stopping: Option<EarlyStoppingSpec>,
    /// The moving average of the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ema: Option<EmaSpec>,
}

/// The `[train.early_stopping]` table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlyStoppingSpec {
    /// The metric to watch; the objective when not written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Objective>,
    /// Epochs without a better value after which training ends.
    pub patience: usize,
    /// How much better a better value must be.
    pub min_delta: f64,
}

/// The `[train.ema]` table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmaSpec {
    /// What is kept of the average at each step.
    pub decay: f64,
}

choices! {
    /// Which norms of gradients are metrics.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GradientNorms {
        None "none" "None.",
        Global "global" "The norm over all gradients.",
        Parameters "parameters" "That, and the norm of each parameter's gradient.",
    }
}

/// A read costs a GPU about as much as a small step does: so it is a twentieth of the time at most, and a training that
/// went wrong goes on for 20 steps at most.
fn log_every() -> usize {
    20
}

impl TrainSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let sizes = Kind::Int(1, 1 << 24);
        let epochs = s.field(
            "epochs",
            Kind::Int(1, 1_000_000),
            "Passes over the train split.",
        );
        let epochs = epochs.required();
        let batch_size = s
            .field("batch_size", sizes.clone(), "Items of a step.")
            .or(64);
        Self {
            epochs,
            batch_size,
            micro_batch_size: s
                .field(
                    "micro_batch_size",
                    sizes,
                    "Items that are computed at a time, to save memory: the gradients of a step's pieces are averaged. The whole batch when not written.",
                )
                .optional()
                .unwrap_or(batch_size),
            gradient_checkpointing: s
                .field(
                    "gradient_checkpointing",
                    Kind::Bool,
                    "Whether the backward pass computes cheap outputs (activations, sums, products, views) anew instead of keeping them: less memory, a little more time, the same numbers.",
                )
                .or(false),
            log_gradient_norms: s.choice(
                "log_gradient_norms",
                "Which norms of gradients, before clipping, are metrics of each epoch (means over its steps).",
                GradientNorms::None,
            ),
            log_every: s
                .field(
                    "log_every",
                    Kind::Int(1, 1 << 16),
                    "Updates after which what was measured on the device is read. No number depends on it: a higher one lets a GPU wait less often, a lower one finds a loss that is no number sooner.",
                )
                .or(log_every()),
            early_stopping: s.optional_table(
                "early_stopping",
                "Ends the training when a metric has not become better for a while.",
                EarlyStoppingSpec::decode,
            ),
            ema: s.optional_table(
                "ema",
                "An exponential moving average of the weights, evaluated beside them as `valid_ema` and `test_ema`.",
                EmaSpec::decode,
            ),
        }
    }
}

impl EarlyStoppingSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        Self {
            metric: s
                .field(
                    "metric",
                    Kind::Objective,
                    "The metric to watch; the objective when not written.",
                )
                .optional(),
            patience: s
                .field(
                    "patience",
                    Kind::at_least(1),
                    "Epochs without a better value after which training ends.",
                )
                .required(),
            min_delta: s
                .field(
                    "min_delta",
                    Kind::non_negative(),
                    "How much better than the best so far a value must be to count.",
                )
                .or(0.0),
        }
    }

    /// Whether training ends after these values of the metric, one for each epoch. `nan` is never
    /// better.
    pub fn is_over(&self, metric: Objective, values: impl Iterator<Item = f64>) -> bool {
        let higher_is_better = metric.is_better(1.0, 0.0);
        let mut best = f64::NAN;
        let mut waited = 0;
        for value in values {
            let wanted = if higher_is_better {
                best + self.min_delta
            } else {
                best - self.min_delta
            };
            if metric.is_better(value, wanted) {
                (best, waited) = (value, 0);
            } else {
                waited += 1;
            }
        }
        waited >= self.patience
    }
}

impl EmaSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        let kind = Kind::Float {
            min: 0.0,
            open_min: true,
            max: 1.0,
            open_max: true,
        };
        Self {
            decay: s
                .field("decay", kind, "What is kept of the average at each step.")
                .or(0.999),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::metric::Metric;

    #[test]
    fn early_stopping_waits_for_as_long_as_it_says() {
        let spec = EarlyStoppingSpec {
            metric: None,
            patience: 2,
            min_delta: 0.1,
        };
        let is_over = |metric, values: &[f64]| spec.is_over(metric, values.iter().copied());
        let loss = Objective::valid(Metric::Loss);
        assert!(!is_over(loss, &[]));
        assert!(!is_over(loss, &[1.0, 0.95]));
        assert!(is_over(loss, &[1.0, 0.95, 0.91]), "too little to count");
        assert!(!is_over(loss, &[1.0, 0.95, 0.89]), "enough in all");
        assert!(is_over(loss, &[f64::NAN, f64::NAN]));
        let accuracy = Objective::valid(Metric::Accuracy);
        assert!(!is_over(accuracy, &[0.1, 0.3, 0.5, 0.7]));
        assert!(is_over(accuracy, &[0.5, 0.4, 0.3]));
    }
}
