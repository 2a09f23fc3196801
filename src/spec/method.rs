//! The optimizers with their settings. Defaults are those of the papers or of PyTorch.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::optimizer::patterns;
use super::section::{Choice, Section};

/// How weights follow from gradients.
///
/// Burn's L-BFGS is left out: it evaluates the loss several times for one update, and so is no
/// optimizer in the sense of Burn's learner and its checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each key's meaning stands at its `field`")]
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
    /// Muon (Jordan et al., 2024), which knows only matrices; AdamW for all other parameters.
    Muon {
        momentum: f64,
        nesterov: bool,
        ns_steps: usize,
        epsilon: f64,
        adjust_learning_rate: AdjustLearningRate,
        weight_decay: f64,
        adamw: MuonAdamw,
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
    /// Whether the largest mean of squared gradients so far is used (Reddi et al., 2018).
    pub amsgrad: bool,
    /// L2 penalty for `adam`, decoupled for `adamw`.
    pub weight_decay: f64,
    /// Whether weights decay only where the update makes them smaller too; `adamw` alone.
    pub cautious_weight_decay: bool,
}

/// The `[optimizer.adamw]` table of `muon`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MuonAdamw {
    /// Matrices that are left to AdamW too.
    pub parameters: Vec<String>,
    /// Before the scheduler.
    pub learning_rate: f64,
    /// Its settings.
    #[serde(flatten)]
    pub adam: AdamSpec,
}

/// How `muon` fits the learning rate to the shape of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdjustLearningRate {
    /// Times sqrt(max(1, rows / columns)).
    Original,
    /// Times 0.2 sqrt(max(rows, columns)).
    MatchRmsAdamw,
}

impl Choice for AdjustLearningRate {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            AdjustLearningRate::Original,
            "original",
            "Times sqrt(max(1, rows / columns)).",
        ),
        (
            AdjustLearningRate::MatchRmsAdamw,
            "match_rms_adamw",
            "Times 0.2 sqrt(max(rows, columns)), which suits learning rates of AdamW (Liu et al., 2025).",
        ),
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MethodKind {
    Sgd,
    Adam,
    Adamw,
    Adagrad,
    Rmsprop,
    Adafactor,
    Adan,
    Lamb,
    Lion,
    Muon,
}

impl Choice for MethodKind {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            MethodKind::Sgd,
            "sgd",
            "Stochastic gradient descent, with momentum if set.",
        ),
        (
            MethodKind::Adam,
            "adam",
            "Adam (Kingma and Ba, 2015); weight decay is an L2 penalty.",
        ),
        (
            MethodKind::Adamw,
            "adamw",
            "Adam with decoupled weight decay (Loshchilov and Hutter, 2019).",
        ),
        (
            MethodKind::Adagrad,
            "adagrad",
            "AdaGrad (Duchi et al., 2011).",
        ),
        (MethodKind::Rmsprop, "rmsprop", "RMSProp (Hinton, 2012)."),
        (
            MethodKind::Adafactor,
            "adafactor",
            "Adafactor (Shazeer and Stern, 2018): second moments of rows and columns alone.",
        ),
        (MethodKind::Adan, "adan", "Adan (Xie et al., 2022)."),
        (
            MethodKind::Lamb,
            "lamb",
            "LAMB (You et al., 2020), for large batches.",
        ),
        (MethodKind::Lion, "lion", "Lion (Chen et al., 2023)."),
        (
            MethodKind::Muon,
            "muon",
            "Muon (Jordan et al., 2024) for matrices, and AdamW for all other parameters.",
        ),
    ];
}

/// What a 32-bit number is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A share of a running mean: it must stay below 1.
    Share,
    /// A factor or a bound: it must stay finite, and above 0 unless it is 0.
    Scale,
    /// Added to a denominator in the backend's precision: it must not vanish there.
    Divisor,
}

impl Method {
    /// The settings that Burn takes as 32-bit numbers, by their keys.
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
            // Computed in 32 bits also where weights are in 16.
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

    /// The weight decay of parameters that are in no group.
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
        }
    }

    /// How many tensors of a parameter's size the optimizer keeps at least for each parameter.
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
        }
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        s.variant("The optimizer.", None, |s, kind| match kind {
            MethodKind::Sgd => Method::Sgd {
                momentum: momentum(s, 0.0),
                dampening: share(
                    s,
                    "dampening",
                    "Share of the gradient that the momentum leaves out.",
                    0.0,
                ),
                nesterov: nesterov(s, false),
                weight_decay: weight_decay(s, L2, 0.0),
            },
            MethodKind::Adam => Method::Adam(AdamSpec::decode(s, false, 0.999, L2, 0.0)),
            MethodKind::Adamw => Method::Adamw(AdamSpec::decode(s, true, 0.999, DECOUPLED, 0.01)),
            MethodKind::Adagrad => Method::Adagrad {
                lr_decay: s
                    .field(
                        "lr_decay",
                        Kind::non_negative(),
                        "The learning rate is divided by 1 plus this times the updates before.",
                    )
                    .or(0.0),
                epsilon: epsilon(s, 1e-10),
                weight_decay: weight_decay(s, L2, 0.0),
            },
            MethodKind::Rmsprop => Method::Rmsprop {
                alpha: share(
                    s,
                    "alpha",
                    "Decay of the running mean of squared gradients.",
                    0.99,
                ),
                momentum: momentum(s, 0.0),
                epsilon: epsilon(s, 1e-8),
                centered: flag(
                    s,
                    "centered",
                    "Whether gradients are divided by their standard deviation (Graves, 2013).",
                    false,
                ),
                weight_decay: weight_decay(s, L2, 0.0),
            },
            MethodKind::Adafactor => Method::Adafactor {
                epsilon_1: positive(s, "epsilon_1", "Added to squared gradients.", 1e-30),
                epsilon_2: positive(
                    s,
                    "epsilon_2",
                    "The smallest scale of a parameter.",
                    1e-3,
                ),
                clip_threshold: positive(
                    s,
                    "clip_threshold",
                    "The largest root mean square of an update.",
                    1.0,
                ),
                decay_rate: s
                    .field(
                        "decay_rate",
                        Kind::Float {
                            min: -10.0,
                            open_min: false,
                            max: 0.0,
                            open_max: true,
                        },
                        "Second moments decay by 1 less the update's number to the power of this.",
                    )
                    .or(-0.8),
                relative_step: flag(
                    s,
                    "relative_step",
                    "Whether the learning rate is at most 1 / sqrt(the update's number).",
                    true,
                ),
                scale_parameter: flag(
                    s,
                    "scale_parameter",
                    "Whether the learning rate is multiplied by the root mean square of the parameter.",
                    true,
                ),
                weight_decay: weight_decay(s, DECOUPLED, 0.0),
            },
            MethodKind::Adan => Method::Adan {
                beta_1: beta(s, "beta_1", "gradients", 0.98),
                beta_2: beta(s, "beta_2", "differences of gradients", 0.92),
                beta_3: beta(s, "beta_3", "squared gradients", 0.99),
                epsilon: epsilon(s, 1e-8),
                no_prox: flag(
                    s,
                    "no_prox",
                    "Whether weight decay is AdamW's instead of the paper's proximal one.",
                    false,
                ),
                weight_decay: weight_decay(s, DECOUPLED, 0.0),
            },
            MethodKind::Lamb => Method::Lamb {
                beta_1: beta(s, "beta_1", "gradients", 0.9),
                beta_2: beta(s, "beta_2", "squared gradients", 0.999),
                epsilon: epsilon(s, 1e-6),
                use_trust_ratio: flag(
                    s,
                    "use_trust_ratio",
                    "Whether updates are scaled to the norm of their parameter.",
                    true,
                ),
                weight_decay: weight_decay(s, "Weight decay, added to the update before it is scaled.", 0.0),
            },
            MethodKind::Lion => Method::Lion {
                beta_1: share(
                    s,
                    "beta_1",
                    "Share of the running mean in an update.",
                    0.9,
                ),
                beta_2: beta(s, "beta_2", "gradients", 0.99),
                weight_decay: weight_decay(s, DECOUPLED, 0.0),
            },
            MethodKind::Muon => Method::Muon {
                momentum: momentum(s, 0.95),
                nesterov: nesterov(s, true),
                ns_steps: s
                    .field(
                        "ns_steps",
                        Kind::Int(1, 99),
                        "Newton-Schulz steps that make an update orthogonal.",
                    )
                    .or(5),
                epsilon: positive(s, "epsilon", "The smallest norm that an update is divided by.", 1e-7),
                adjust_learning_rate: s.choice(
                    "adjust_learning_rate",
                    "How the learning rate is fitted to the shape of a matrix.",
                    AdjustLearningRate::Original,
                ),
                weight_decay: weight_decay(s, DECOUPLED, 0.0),
                adamw: s.table(
                    "adamw",
                    "AdamW, for the parameters that are no matrices: biases, norms, convolutions.",
                    false,
                    |s| MuonAdamw {
                        parameters: s
                            .field(
                                "parameters",
                                patterns(),
                                "Matrices that are left to AdamW too, by path, such as the output layer.",
                            )
                            .optional()
                            .unwrap_or_default(),
                        learning_rate: positive(
                            s,
                            "learning_rate",
                            "Step size, before the scheduler.",
                            3e-4,
                        ),
                        adam: AdamSpec::decode(s, true, 0.95, DECOUPLED, 0.0),
                    },
                ),
            },
        })
    }
}

const L2: &str = "L2 penalty added to the gradient.";
const DECOUPLED: &str =
    "Decoupled weight decay: weights shrink by this times the learning rate at each update.";

impl AdamSpec {
    fn decode(
        s: &mut Section<'_>,
        is_adamw: bool,
        beta_2: f64,
        doc: &'static str,
        default: f64,
    ) -> Self {
        Self {
            beta_1: beta(s, "beta_1", "gradients", 0.9),
            beta_2: beta(s, "beta_2", "squared gradients", beta_2),
            epsilon: epsilon(s, 1e-8),
            amsgrad: flag(
                s,
                "amsgrad",
                "Whether the largest mean of squared gradients so far is used (Reddi et al., 2018).",
                false,
            ),
            weight_decay: weight_decay(s, doc, default),
            cautious_weight_decay: is_adamw
                && flag(
                    s,
                    "cautious_weight_decay",
                    "Whether weights decay only where the update makes them smaller too (Chen et al., 2025).",
                    false,
                ),
        }
    }
}

fn share(s: &mut Section<'_>, key: &'static str, doc: &'static str, default: f64) -> f64 {
    s.field(key, Kind::fraction(), doc).or(default)
}

fn positive(s: &mut Section<'_>, key: &'static str, doc: &'static str, default: f64) -> f64 {
    s.field(key, Kind::positive(), doc).or(default)
}

fn flag(s: &mut Section<'_>, key: &'static str, doc: &'static str, default: bool) -> bool {
    s.field(key, Kind::Bool, doc).or(default)
}

fn beta(s: &mut Section<'_>, key: &'static str, of: &str, default: f64) -> f64 {
    let doc = match of {
        "gradients" => "Decay of the running mean of gradients.",
        "squared gradients" => "Decay of the running mean of squared gradients.",
        _ => "Decay of the running mean of differences of gradients.",
    };
    share(s, key, doc, default)
}

fn momentum(s: &mut Section<'_>, default: f64) -> f64 {
    let doc = "Share of the last update that is kept; 0 for none.";
    share(s, "momentum", doc, default)
}

fn nesterov(s: &mut Section<'_>, default: bool) -> bool {
    flag(s, "nesterov", "Whether the momentum looks ahead.", default)
}

fn epsilon(s: &mut Section<'_>, default: f64) -> f64 {
    positive(s, "epsilon", "Added to the denominator.", default)
}

fn weight_decay(s: &mut Section<'_>, doc: &'static str, default: f64) -> f64 {
    s.field("weight_decay", Kind::non_negative(), doc)
        .or(default)
}
