//! The optimizers with their settings. Defaults are those of the papers or of PyTorch.

mod decode;

use serde::{Deserialize, Serialize};

use super::own::{OrOwn, OwnOptimizer, Used, names_of};
use super::section::{Choice, choices};

/// The update rules.
///
/// Burn's L-BFGS is excluded: it evaluates the loss several times per update, which does not fit Burn's learner and its
/// checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each key is documented at its `field`")]
pub enum Method {
    /// Stochastic gradient descent; momentum as in Sutskever et al. (2013).
    Sgd {
        momentum: f64,
        dampening: f64,
        nesterov: bool,
        weight_decay: f64,
    },
    /// Adam (Kingma and Ba, 2015).
    Adam(AdamSpec),
    /// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
    Adamw(AdamSpec),
    /// AdaGrad (Duchi et al., 2011).
    Adagrad {
        lr_decay: f64,
        epsilon: f64,
        weight_decay: f64,
    },
    /// RMSProp (Hinton, 2012; centered: Graves, 2013).
    Rmsprop {
        alpha: f64,
        momentum: f64,
        epsilon: f64,
        centered: bool,
        weight_decay: f64,
    },
    /// Adafactor (Shazeer and Stern, 2018).
    Adafactor {
        epsilon_1: f64,
        epsilon_2: f64,
        clip_threshold: f64,
        decay_rate: f64,
        relative_step: bool,
        scale_parameter: bool,
        weight_decay: f64,
    },
    /// Adan (Xie et al., 2022).
    Adan {
        beta_1: f64,
        beta_2: f64,
        beta_3: f64,
        epsilon: f64,
        no_prox: bool,
        weight_decay: f64,
    },
    /// LAMB (You et al., 2020).
    Lamb {
        beta_1: f64,
        beta_2: f64,
        epsilon: f64,
        use_trust_ratio: bool,
        weight_decay: f64,
    },
    /// Lion (Chen et al., 2023).
    Lion {
        beta_1: f64,
        beta_2: f64,
        weight_decay: f64,
    },
    /// Muon (Jordan et al., 2024), only for matrices; AdamW for all other parameters.
    Muon {
        momentum: f64,
        nesterov: bool,
        ns_steps: usize,
        epsilon: f64,
        adjust_learning_rate: AdjustLearningRate,
        weight_decay: f64,
        adamw: MuonAdamw,
    },
    /// An optimizer of the program's own.
    Own {
        /// The weight decay of parameters without a group; none if it has no weight decay.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight_decay: Option<f64>,
        /// The number of tensors of a parameter's size that it keeps.
        num_states: u64,
        #[serde(flatten)]
        used: Used,
    },
}

/// The keys of `adam` and `adamw`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdamSpec {
    /// Decay of the mean of gradients.
    pub beta_1: f64,
    /// Decay of the mean of squared gradients.
    pub beta_2: f64,
    /// Added to the denominator.
    pub epsilon: f64,
    /// Whether to use the largest mean of squared gradients so far (Reddi et al., 2018).
    pub amsgrad: bool,
    /// L2 penalty for `adam`, decoupled for `adamw`.
    pub weight_decay: f64,
    /// Whether weights decay only where the update also shrinks them; only for `adamw`.
    pub cautious_weight_decay: bool,
}

/// The `[optimizer.adamw]` table of `muon`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MuonAdamw {
    /// Matrices that AdamW also optimizes.
    pub parameters: Vec<String>,
    /// Before the scheduler.
    pub learning_rate: f64,
    /// Its settings.
    #[serde(flatten)]
    pub adam: AdamSpec,
}

/// How `muon` adjusts the learning rate to the shape of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdjustLearningRate {
    /// Times sqrt(max(1, outputs / inputs)).
    Original,
    /// Times 0.2 sqrt(max(outputs, inputs)).
    MatchRmsAdamw,
}

impl Choice for AdjustLearningRate {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            AdjustLearningRate::Original,
            "original",
            "Times sqrt(max(1, outputs / inputs)).",
        ),
        (
            AdjustLearningRate::MatchRmsAdamw,
            "match_rms_adamw",
            "Times 0.2 sqrt(max(outputs, inputs)), which suits learning rates tuned for AdamW (Liu et al., 2025).",
        ),
    ];
}

/// The names of the built-in types.
pub(super) fn built_in_types() -> impl Iterator<Item = &'static str> {
    names_of::<MethodKind>()
}

/// An optimizer, built in or of the program.
type AnyMethod = OrOwn<MethodKind, OwnOptimizer>;

choices! {

    enum MethodKind {
        Sgd "sgd" "Stochastic gradient descent, with momentum if set.",
        Adam "adam" "Adam (Kingma and Ba, 2015); weight decay is an L2 penalty.",
        Adamw "adamw" "Adam with decoupled weight decay (Loshchilov and Hutter, 2019).",
        Adagrad "adagrad" "AdaGrad (Duchi et al., 2011).",
        Rmsprop "rmsprop" "RMSProp (Hinton, 2012).",
        Adafactor "adafactor" "Adafactor (Shazeer and Stern, 2018): second moments of rows and columns only.",
        Adan "adan" "Adan (Xie et al., 2022).",
        Lamb "lamb" "LAMB (You et al., 2020), for large batches.",
        Lion "lion" "Lion (Chen et al., 2023).",
        Muon "muon" "Muon (Jordan et al., 2024) for matrices, and AdamW for all other parameters.",
    }
}

/// The role of a 32-bit number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A fraction of a running mean: it must stay below 1.
    Share,
    /// A factor or a bound: it must stay finite, and above 0 unless it is 0.
    Scale,
    /// Added to a denominator in the backend's precision: it must not vanish there.
    Divisor,
}

impl Method {
    /// The settings that must be representable in 32 bits, by their keys.
    pub fn settings(&self) -> Vec<(&'static str, f64, Role)> {
        use Role::{Divisor, Scale, Share};
        let adam = |adam: &AdamSpec| [adam.beta_1, adam.beta_2, adam.epsilon, adam.weight_decay];
        let mut settings = match self {
            Method::Sgd { momentum, .. } => vec![("momentum", *momentum, Share)],
            Method::Adam(spec) | Method::Adamw(spec) => {
                let [beta_1, beta_2, epsilon, _] = adam(spec);
                vec![
                    ("beta_1", beta_1, Share),
                    ("beta_2", beta_2, Share),
                    ("epsilon", epsilon, Divisor),
                ]
            }
            Method::Adagrad { epsilon, .. } => vec![("epsilon", *epsilon, Divisor)],
            Method::Rmsprop {
                alpha,
                momentum,
                epsilon,
                ..
            } => vec![
                ("alpha", *alpha, Share),
                ("momentum", *momentum, Share),
                ("epsilon", *epsilon, Divisor),
            ],
            // Computed in 32 bits even if weights have 16.
            Method::Adafactor {
                epsilon_1,
                epsilon_2,
                clip_threshold,
                ..
            } => vec![
                ("epsilon_1", *epsilon_1, Scale),
                ("epsilon_2", *epsilon_2, Scale),
                ("clip_threshold", *clip_threshold, Scale),
            ],
            Method::Adan {
                beta_1,
                beta_2,
                beta_3,
                epsilon,
                ..
            } => vec![
                ("beta_1", *beta_1, Share),
                ("beta_2", *beta_2, Share),
                ("beta_3", *beta_3, Share),
                ("epsilon", *epsilon, Divisor),
            ],
            Method::Lamb {
                beta_1,
                beta_2,
                epsilon,
                ..
            } => vec![
                ("beta_1", *beta_1, Share),
                ("beta_2", *beta_2, Share),
                ("epsilon", *epsilon, Divisor),
            ],
            Method::Lion { beta_1, beta_2, .. } => {
                vec![("beta_1", *beta_1, Share), ("beta_2", *beta_2, Share)]
            }
            Method::Own { weight_decay, .. } => {
                let decay = weight_decay.map(|decay| ("weight_decay", decay, Scale));
                return decay.into_iter().collect();
            }
            Method::Muon {
                momentum,
                epsilon,
                adamw,
                ..
            } => {
                let [beta_1, beta_2, adamw_epsilon, decay] = adam(&adamw.adam);
                vec![
                    ("momentum", *momentum, Share),
                    ("epsilon", *epsilon, Divisor),
                    ("adamw.learning_rate", adamw.learning_rate, Scale),
                    ("adamw.beta_1", beta_1, Share),
                    ("adamw.beta_2", beta_2, Share),
                    ("adamw.epsilon", adamw_epsilon, Divisor),
                    ("adamw.weight_decay", decay, Scale),
                ]
            }
        };
        settings.push(("weight_decay", self.weight_decay(), Scale));
        settings
    }

    /// The weight decay of parameters without a group.
    pub fn weight_decay(&self) -> f64 {
        match self {
            Method::Adam(adam) | Method::Adamw(adam) => adam.weight_decay,
            Method::Sgd { weight_decay, .. }
            | Method::Adagrad { weight_decay, .. }
            | Method::Rmsprop { weight_decay, .. }
            | Method::Adafactor { weight_decay, .. }
            | Method::Adan { weight_decay, .. }
            | Method::Lamb { weight_decay, .. }
            | Method::Lion { weight_decay, .. }
            | Method::Muon { weight_decay, .. } => *weight_decay,
            Method::Own { weight_decay, .. } => weight_decay.unwrap_or(0.0),
        }
    }

    /// The minimum number of tensors of a parameter's size that the optimizer keeps for it.
    pub fn num_states(&self) -> u64 {
        match self {
            Method::Sgd { momentum, .. } => (*momentum > 0.0) as u64,
            Method::Adam(adam) | Method::Adamw(adam) => 2 + adam.amsgrad as u64,
            Method::Adagrad { .. } | Method::Lion { .. } => 1,
            Method::Rmsprop {
                centered, momentum, ..
            } => 1 + 2 * *centered as u64 + (*momentum > 0.0) as u64,
            // A row and a column for each matrix.
            Method::Adafactor { .. } => 0,
            Method::Adan { .. } => 4,
            Method::Lamb { .. } => 2,
            // AdamW's parameters have 2, and are few.
            Method::Muon { .. } => 1,
            Method::Own { num_states, .. } => *num_states,
        }
    }
}
