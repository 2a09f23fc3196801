//! `[loss]`, `[optimizer]` and `[scheduler]`: what is minimized and how.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::section::{Choice, Section};

/// The `[loss]` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LossSpec {
    /// Cross-entropy of the softmax of the outputs with the label.
    CrossEntropy,
    /// Mean squared error of the outputs against the one-hot label.
    Mse,
}

impl Choice for LossSpec {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            LossSpec::CrossEntropy,
            "cross_entropy",
            "Cross-entropy of the softmax of the outputs with the label.",
        ),
        (
            LossSpec::Mse,
            "mse",
            "Mean squared error of the outputs against the one-hot label.",
        ),
    ];
}

impl LossSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        s.variant(
            "What is minimized.",
            Some(LossSpec::CrossEntropy),
            |_, kind| kind,
        )
    }
}

/// The `[optimizer]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OptimizerSpec {
    /// Stochastic gradient descent.
    Sgd {
        /// Before the scheduler.
        learning_rate: f64,
        /// 0 for none.
        momentum: f64,
        /// Whether the momentum looks ahead.
        nesterov: bool,
        /// L2 penalty added to the gradient.
        weight_decay: f64,
    },
    /// Adam (Kingma and Ba, 2015).
    Adam(AdamSpec),
    /// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
    Adamw(AdamSpec),
}

/// The keys of `adam` and `adamw`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamSpec {
    /// Before the scheduler.
    pub learning_rate: f64,
    /// Decay of the mean of gradients.
    pub beta_1: f64,
    /// Decay of the mean of squared gradients.
    pub beta_2: f64,
    /// Added to the denominator.
    pub epsilon: f64,
    /// L2 penalty for `adam`, decoupled for `adamw`.
    pub weight_decay: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptimizerKind {
    Sgd,
    Adam,
    Adamw,
}

impl Choice for OptimizerKind {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            OptimizerKind::Sgd,
            "sgd",
            "Stochastic gradient descent, with momentum if set.",
        ),
        (
            OptimizerKind::Adam,
            "adam",
            "Adam; weight decay is an L2 penalty.",
        ),
        (
            OptimizerKind::Adamw,
            "adamw",
            "Adam with decoupled weight decay.",
        ),
    ];
}

impl OptimizerSpec {
    /// The learning rate before the scheduler.
    pub fn learning_rate(&self) -> f64 {
        match self {
            OptimizerSpec::Sgd { learning_rate, .. } => *learning_rate,
            OptimizerSpec::Adam(adam) | OptimizerSpec::Adamw(adam) => adam.learning_rate,
        }
    }

    /// How many tensors of a parameter's size the optimizer keeps for each parameter.
    pub fn num_states(&self) -> u64 {
        match self {
            OptimizerSpec::Sgd { momentum, .. } => (*momentum > 0.0) as u64,
            OptimizerSpec::Adam(_) | OptimizerSpec::Adamw(_) => 2,
        }
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        s.variant("The optimizer.", None, |s, kind| {
            let learning_rate = s
                .field(
                    "learning_rate",
                    Kind::positive(),
                    "Step size, before the scheduler.",
                )
                .required();
            match kind {
                OptimizerKind::Sgd => OptimizerSpec::Sgd {
                    learning_rate,
                    momentum: s
                        .field(
                            "momentum",
                            Kind::fraction(),
                            "Share of the last update that is kept; 0 for none.",
                        )
                        .or(0.0),
                    nesterov: s
                        .field("nesterov", Kind::Bool, "Whether the momentum looks ahead.")
                        .or(false),
                    weight_decay: s
                        .field(
                            "weight_decay",
                            Kind::non_negative(),
                            "L2 penalty added to the gradient.",
                        )
                        .or(0.0),
                },
                OptimizerKind::Adam => OptimizerSpec::Adam(AdamSpec::decode(s, learning_rate, 0.0)),
                OptimizerKind::Adamw => {
                    OptimizerSpec::Adamw(AdamSpec::decode(s, learning_rate, 0.01))
                }
            }
        })
    }
}

impl AdamSpec {
    fn decode(s: &mut Section<'_>, learning_rate: f64, weight_decay: f64) -> Self {
        Self {
            learning_rate,
            beta_1: s
                .field(
                    "beta_1",
                    Kind::fraction(),
                    "Decay of the running mean of gradients.",
                )
                .or(0.9),
            beta_2: s
                .field(
                    "beta_2",
                    Kind::fraction(),
                    "Decay of the running mean of squared gradients.",
                )
                .or(0.999),
            epsilon: s
                .field("epsilon", Kind::positive(), "Added to the denominator.")
                .or(1e-8),
            weight_decay: s
                .field(
                    "weight_decay",
                    Kind::non_negative(),
                    "Weight decay: an L2 penalty for adam, decoupled for adamw.",
                )
                .or(weight_decay),
        }
    }
}

/// The `[scheduler]` table: the learning rate at each step as a multiple of the optimizer's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedulerSpec {
    /// Steps over which the rate rises linearly from zero.
    pub warmup_steps: usize,
    /// What it does after that.
    #[serde(flatten)]
    pub decay: Decay,
}

/// What the learning rate does after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Decay {
    /// It stays.
    Constant,
    /// It falls on a line.
    Linear {
        /// What is left at the last step, as a fraction.
        final_fraction: f64,
    },
    /// It falls on half a cosine (Loshchilov and Hutter, 2017, without restarts).
    Cosine {
        /// What is left at the last step, as a fraction.
        final_fraction: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecayKind {
    Constant,
    Linear,
    Cosine,
}

impl Choice for DecayKind {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (DecayKind::Constant, "constant", "The learning rate stays."),
        (
            DecayKind::Linear,
            "linear",
            "It falls on a line over the whole training.",
        ),
        (
            DecayKind::Cosine,
            "cosine",
            "It falls on half a cosine over the whole training.",
        ),
    ];
}

impl SchedulerSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let warmup_steps = s
            .field(
                "warmup_steps",
                Kind::at_least(0),
                "Steps over which the learning rate rises linearly from zero.",
            )
            .or(0);
        let final_fraction = |s: &mut Section<'_>| {
            let kind = Kind::Float {
                min: 0.0,
                open_min: false,
                max: 1.0,
                open_max: false,
            };
            s.field(
                "final_fraction",
                kind,
                "What is left of the learning rate at the last step.",
            )
            .or(0.0)
        };
        let decay = s.variant(
            "What the learning rate does after the warm-up.",
            Some(DecayKind::Constant),
            |s, kind| match kind {
                DecayKind::Constant => Decay::Constant,
                DecayKind::Linear => Decay::Linear {
                    final_fraction: final_fraction(s),
                },
                DecayKind::Cosine => Decay::Cosine {
                    final_fraction: final_fraction(s),
                },
            },
        );
        Self {
            warmup_steps,
            decay,
        }
    }
}
