//! `[train]`: epochs, batches, and related settings.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::document::Value;
use super::kind::{Kind, Scalar};
use super::metric::{Objective, min_delta};
use super::section::{Section, choices};

/// The `[train]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainSpec {
    /// Passes over the train split.
    pub epochs: usize,
    /// Items per optimizer update.
    pub batch_size: usize,
    /// Items computed at a time; `batch_size` if not set.
    pub micro_batch_size: usize,
    /// Which items of the train split an epoch consists of, and in which order.
    #[serde(default, skip_serializing_if = "Sampler::is_random")]
    pub sampler: Sampler,
    /// What the backward pass recomputes instead of keeping it.
    #[serde(default, skip_serializing_if = "Recomputed::is_nothing")]
    pub gradient_checkpointing: Recomputed,
    /// The gradient norms to record as metrics.
    pub log_gradient_norms: GradientNorms,
    /// Updates between reads of metrics from the device; it does not affect results.
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
    /// The metric to watch; the objective if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Objective>,
    /// Epochs without improvement after which training ends.
    pub patience: usize,
    /// Minimum improvement.
    pub min_delta: f64,
}

/// The `[train.ema]` table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmaSpec {
    /// Fraction of the average kept at each step.
    pub decay: f64,
    /// Updates up to which the average is equal to the weights.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub start_step: usize,
}

choices! {
    /// Which items of the train split an epoch consists of, and in which order.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Sampler {
        #[default]
        Random "random" "Each item once, shuffled.",
        Balanced "balanced" "As many items as the train split has, drawn with replacement: each class is equally likely, and each item of it.",
    }
}

impl Sampler {
    /// Whether each item occurs once.
    pub fn is_random(&self) -> bool {
        *self == Self::Random
    }
}

choices! {
    /// The gradient norms to record as metrics.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GradientNorms {
        None "none" "None.",
        Global "global" "The norm over all gradients.",
        Parameters "parameters" "The norm over all gradients and the norm of each parameter's gradient.",
    }
}

/// What the backward pass recomputes instead of keeping it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Json", into = "Json")]
pub enum Recomputed {
    /// Nothing.
    #[default]
    Nothing,
    /// Outputs of cheap operations.
    Operations,
    /// Everything in a block of layers except its output.
    Blocks,
}

impl Recomputed {
    const BLOCKS: &str = "blocks";

    /// Whether everything is kept.
    pub fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }

    fn kind() -> Kind {
        let doc = "All outputs in a block except the last, which is kept.";
        let blocks = Kind::OneOf(vec![(Self::BLOCKS, doc)]);
        Kind::Either(Box::new(Kind::Bool), Box::new(blocks))
    }
}

impl From<bool> for Recomputed {
    fn from(are_operations: bool) -> Self {
        if are_operations {
            Self::Operations
        } else {
            Self::Nothing
        }
    }
}

impl From<Json> for Recomputed {
    fn from(written: Json) -> Self {
        match written {
            Json::String(_) => Self::Blocks,
            other => Self::from(other == Json::Bool(true)),
        }
    }
}

impl From<Recomputed> for Json {
    fn from(recomputed: Recomputed) -> Self {
        match recomputed {
            Recomputed::Nothing => Json::Bool(false),
            Recomputed::Operations => Json::Bool(true),
            Recomputed::Blocks => Json::from(Recomputed::BLOCKS),
        }
    }
}

impl Scalar for Recomputed {
    fn from_value(value: &Value) -> Self {
        value.to_json().into()
    }

    fn to_json(&self) -> Json {
        (*self).into()
    }

    fn stand_in() -> Self {
        Self::Nothing
    }
}

/// A read costs a GPU about as much as a small step: it takes at most a twentieth of the time, and a diverged training
/// continues for at most 20 steps.
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
            .field("batch_size", sizes.clone(), "Items per optimizer update.")
            .or(64);
        Self {
            epochs,
            batch_size,
            micro_batch_size: s
                .field(
                    "micro_batch_size",
                    sizes,
                    "Items computed at a time, to save memory; gradients are accumulated over the batch. The whole batch when not set.",
                )
                .optional()
                .unwrap_or(batch_size),
            sampler: s.choice(
                "sampler",
                "Which items of the train split an epoch consists of. Metrics of the train split are those of these items.",
                Sampler::Random,
            ),
            gradient_checkpointing: s
                .field(
                    "gradient_checkpointing",
                    Recomputed::kind(),
                    "What the backward pass recomputes instead of keeping it: `true` for cheap outputs (activations, sums, products, views), with slightly more time, \"blocks\" for all of a block, with about the time of another forward pass. Numbers are identical.",
                )
                .or(Recomputed::Nothing),
            log_gradient_norms: s.choice(
                "log_gradient_norms",
                "Which gradient norms, before clipping, are recorded as metrics of each epoch (means over its steps).",
                GradientNorms::None,
            ),
            log_every: s
                .field(
                    "log_every",
                    Kind::Int(1, 1 << 16),
                    "The number of updates between two reads of metrics from the device. It does not affect the results: with a higher value, a GPU waits less often; with a lower one, a NaN loss is detected sooner.",
                )
                .or(log_every()),
            early_stopping: s.optional_table(
                "early_stopping",
                "Ends the training when a metric has stopped improving.",
                EarlyStoppingSpec::decode,
            ),
            ema: s.optional_table(
                "ema",
                "An exponential moving average of the weights, evaluated in addition to them as `valid_ema` and `test_ema`.",
                EmaSpec::decode,
            ),
        }
    }
}

impl EarlyStoppingSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        Self {
            metric: Objective::watched(s),
            patience: s
                .field(
                    "patience",
                    Kind::at_least(1),
                    "Epochs without improvement after which training ends.",
                )
                .required(),
            min_delta: min_delta(s),
        }
    }

    /// Whether training ends after these values of the metric, one per epoch. `nan` is never better.
    pub fn is_over(&self, metric: Objective, values: impl Iterator<Item = f64>) -> bool {
        let improvements = metric.improvements(self.min_delta, values);
        let waited = improvements.fold(0, |waited, is_one| if is_one { 0 } else { waited + 1 });
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
                .field(
                    "decay",
                    kind,
                    "Fraction of the average that is kept at each step, such as 0.999.",
                )
                .or(0.999),
            start_step: s
                .field(
                    "start_step",
                    Kind::at_least(0),
                    "Updates after which the average starts; until then it is equal to the weights.",
                )
                .or(0),
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
