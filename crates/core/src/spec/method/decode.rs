//! The keys of each optimizer, with their ranges, defaults and meanings.

use super::super::kind::Kind;
use super::super::optimizer::patterns;
use super::super::own::{OwnOptimizer, Part, Used};
use super::super::section::Section;
use super::{AdamSpec, AdjustLearningRate, AnyMethod, Method, MethodKind, MuonAdamw};

impl Method {
    pub(in crate::spec) fn decode(s: &mut Section<'_>) -> Self {
        s.variant("The optimizer.", None, |s, method| match method {
            AnyMethod::BuiltIn(kind) => Self::of_kind(s, kind),
            AnyMethod::Own(part) => Self::own(s, part),
        })
    }

    fn own(s: &mut Section<'_>, part: &OwnOptimizer) -> Self {
        let used = Used::decode(s, part);
        let (weight_decay, num_states) = part.reported(s, |_| {
            let settings = &used.settings;
            ((part.weight_decay)(settings), (part.num_states)(settings))
        });
        Method::Own {
            weight_decay,
            num_states,
            used,
        }
    }

    fn of_kind(s: &mut Section<'_>, kind: MethodKind) -> Self {
        match kind {
            MethodKind::Sgd => Method::Sgd {
                momentum: momentum(s, 0.0),
                dampening: share(
                    s,
                    "dampening",
                    "Dampening of the momentum: the fraction of the gradient left out of it.",
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
                        "Learning rate decay: the rate is divided by 1 plus this times the number of earlier updates.",
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
                    "Whether gradients are centered, and so divided by their standard deviation (Graves, 2013).",
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
                        "Second moments decay by 1 minus the update's number to the power of this.",
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
                beta_1: share(s, "beta_1", OF_GRADIENTS, 0.98),
                beta_2: share(s, "beta_2", "Decay of the running mean of gradient differences.", 0.92),
                beta_3: share(s, "beta_3", OF_SQUARES, 0.99),
                epsilon: epsilon(s, 1e-8),
                no_prox: flag(
                    s,
                    "no_prox",
                    "Whether weight decay is decoupled as in AdamW, instead of the proximal form of the paper.",
                    false,
                ),
                weight_decay: weight_decay(s, DECOUPLED, 0.0),
            },
            MethodKind::Lamb => Method::Lamb {
                beta_1: share(s, "beta_1", OF_GRADIENTS, 0.9),
                beta_2: share(s, "beta_2", OF_SQUARES, 0.999),
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
                    "Weight of the running mean in an update.",
                    0.9,
                ),
                beta_2: share(s, "beta_2", OF_GRADIENTS, 0.99),
                weight_decay: weight_decay(s, DECOUPLED, 0.0),
            },
            MethodKind::Muon => Method::Muon {
                momentum: momentum(s, 0.95),
                nesterov: nesterov(s, true),
                ns_steps: s
                    .field(
                        "ns_steps",
                        Kind::Int(1, 99),
                        "Newton-Schulz iterations that orthogonalize an update.",
                    )
                    .or(5),
                epsilon: positive(s, "epsilon", "Lower bound on the norm that an update is divided by.", 1e-7),
                adjust_learning_rate: s.choice(
                    "adjust_learning_rate",
                    "How the learning rate is adjusted to the shape of a matrix.",
                    AdjustLearningRate::Original,
                ),
                weight_decay: weight_decay(s, DECOUPLED, 0.0),
                adamw: s.table(
                    "adamw",
                    "AdamW, for the parameters that are not matrices: biases, norms, convolutions.",
                    false,
                    |s| MuonAdamw {
                        parameters: s
                            .field(
                                "parameters",
                                patterns(),
                                "Matrices to optimize with AdamW too, by path, such as the output layer.",
                            )
                            .optional()
                            .unwrap_or_default(),
                        learning_rate: positive(
                            s,
                            "learning_rate",
                            "Learning rate, before the scheduler.",
                            3e-4,
                        ),
                        adam: AdamSpec::decode(s, true, 0.95, DECOUPLED, 0.0),
                    },
                ),
            },
        }
    }
}

const OF_GRADIENTS: &str = "Decay of the running mean of gradients.";
const OF_SQUARES: &str = "Decay of the running mean of squared gradients.";
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
            beta_1: share(s, "beta_1", OF_GRADIENTS, 0.9),
            beta_2: share(s, "beta_2", OF_SQUARES, beta_2),
            epsilon: epsilon(s, 1e-8),
            amsgrad: flag(
                s,
                "amsgrad",
                "Whether to use the largest mean of squared gradients so far (Reddi et al., 2018).",
                false,
            ),
            weight_decay: weight_decay(s, doc, default),
            cautious_weight_decay: is_adamw
                && flag(
                    s,
                    "cautious_weight_decay",
                    "Whether weights decay only where the update also shrinks them (Chen et al., 2025).",
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

fn momentum(s: &mut Section<'_>, default: f64) -> f64 {
    let doc = "Momentum: the fraction of the last update that is kept; 0 for none.";
    share(s, "momentum", doc, default)
}

fn nesterov(s: &mut Section<'_>, default: bool) -> bool {
    flag(s, "nesterov", "Whether to use Nesterov momentum.", default)
}

fn epsilon(s: &mut Section<'_>, default: f64) -> f64 {
    positive(s, "epsilon", "Added to the denominator.", default)
}

fn weight_decay(s: &mut Section<'_>, doc: &'static str, default: f64) -> f64 {
    s.field("weight_decay", Kind::non_negative(), doc)
        .or(default)
}
