//! The keys of a loss.

use serde_json::{Value as Json, json};

use super::{BALANCED, LossFunction, LossKind, LossSpec, LossType, Reduction};
use crate::spec::document::Value;
use crate::spec::kind::{Kind, Scalar};
use crate::spec::own::{OrOwn, OwnLoss, Used};
use crate::spec::section::{Choice, Section, Types};
use crate::spec::task::TaskKind;

/// The `type` of `[loss]`: all but penalties, which are only added to it.
#[derive(Clone, Copy, PartialEq)]
struct WithTarget(LossKind);

impl Types for WithTarget {
    fn all() -> Vec<(Self, &'static str, &'static str)> {
        let kinds = LossKind::ALL.iter().filter(|(kind, ..)| !kind.is_penalty());
        let kinds = kinds.map(|(kind, name, doc)| (Self(*kind), *name, *doc));
        kinds.collect()
    }
}

/// The tasks that a loss is for; none for a penalty.
fn tasks_of(loss: LossType) -> &'static [TaskKind] {
    match loss {
        LossType::BuiltIn(kind) => kind.tasks(),
        LossType::Own(part) => part.tasks,
    }
}

/// Whether a loss can leave out positions of series: it is 0 where output and target are equal.
fn leaves_out_positions(loss: LossType) -> bool {
    let is_likelihood = matches!(
        loss,
        LossType::BuiltIn(LossKind::PoissonNll | LossKind::GaussianNll)
    );
    let tasks = tasks_of(loss);
    let is_of_numbers = [TaskKind::Autoencoding, TaskKind::Regression];
    !is_likelihood && is_of_numbers.iter().any(|task| tasks.contains(task))
}

impl LossSpec {
    pub(in crate::spec) fn decode(s: &mut Section<'_>) -> Self {
        s.variant(
            "The loss to minimize.",
            None,
            |s, loss: OrOwn<WithTarget, OwnLoss>| {
                let loss = match loss {
                    OrOwn::BuiltIn(WithTarget(kind)) => LossType::BuiltIn(kind),
                    OrOwn::Own(part) => LossType::Own(part),
                };
                let doc = "A `padding_mask` layer: the positions of series that it masks count neither in the loss nor in the metrics, of an autoencoder or of regression with a target for each position.";
                let is_of_numbers = leaves_out_positions(loss);
                Self::of_counted(s, loss, is_of_numbers, doc)
            },
        )
    }

    /// The keys of one of `[[losses]]` besides its `type`.
    pub(in crate::spec) fn of_term(s: &mut Section<'_>, loss: LossType) -> Self {
        let doc = "A `padding_mask` layer: the positions that it masks do not count. For penalties, these are rows of the output; otherwise, positions of series that the output is compared with.";
        let tasks = tasks_of(loss);
        let has_positions = tasks.is_empty() || leaves_out_positions(loss);
        Self::of_counted(s, loss, has_positions, doc)
    }

    /// The keys of a loss, with `mask` if it can leave out positions.
    fn of_counted(
        s: &mut Section<'_>,
        loss: LossType,
        has_positions: bool,
        doc: &'static str,
    ) -> Self {
        let mask = has_positions.then(|| s.field("mask", Kind::Text, doc).optional());
        Self {
            mask: mask.flatten(),
            ..Self::of_type(s, loss)
        }
    }

    /// The keys of a loss besides its `type`, and besides `mask`.
    fn of_type(s: &mut Section<'_>, loss: LossType) -> Self {
        let usual = match loss {
            // The divergence of independent distributions is the sum of theirs.
            LossType::BuiltIn(LossKind::KlNormal) => Reduction::Sum,
            _ => Reduction::Mean,
        };
        Self {
            reduction: s.choice(
                "reduction",
                "How the elements of an item (positions, pixels, labels or values) are reduced to one number; items are always averaged.",
                usual,
            ),
            mask: None,
            function: match loss {
                LossType::BuiltIn(kind) => LossFunction::decode(s, kind),
                LossType::Own(part) => LossFunction::Own {
                    tasks: part.tasks.to_vec(),
                    of_logits: part.of_logits,
                    used: Used::decode(s, part),
                },
            },
        }
    }
}

fn focal_gamma(s: &mut Section<'_>) -> f64 {
    let doc = "Exponent of the focal loss (Lin et al., 2017): a loss is multiplied by (1 - p)^focal_gamma, where p is the probability of the right class or label; 0 for none.";
    s.field("focal_gamma", Kind::between(0.0, 10.0), doc)
        .or(0.0)
}

/// `class_weights` as written.
enum ClassWeights {
    /// A weight for each class; empty for 1.
    Listed(Vec<f64>),
    /// From the classes of the train split.
    Balanced,
}

impl Scalar for ClassWeights {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Str(_) => Self::Balanced,
            listed => Self::Listed(Vec::from_value(listed)),
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Self::Listed(weights) => weights.to_json(),
            Self::Balanced => json!(BALANCED),
        }
    }

    fn stand_in() -> Self {
        Self::Listed(Vec::new())
    }
}

/// One for each class or label.
fn listed_weights() -> Kind {
    Kind::List {
        item: Box::new(Kind::between(1e-6, 1e6)),
        min_items: 0,
        unique: false,
    }
}

impl ClassWeights {
    fn decode(s: &mut Section<'_>) -> Self {
        let rule = vec![(
            BALANCED,
            "n / (k n_c) for class c, as in scikit-learn: n elements of the train split, k classes, n_c elements of the class.",
        )];
        let kind = Kind::Either(Box::new(Kind::OneOf(rule)), Box::new(listed_weights()));
        let doc = "Weight of each class in the loss: \"balanced\" for weights inversely proportional to how often each occurs in the train split, or a list; empty for 1. The loss is not divided by the sum of weights in the batch.";
        s.field("class_weights", kind, doc)
            .or(Self::Listed(Vec::new()))
    }
}

impl LossFunction {
    fn decode(s: &mut Section<'_>, kind: LossKind) -> Self {
        match kind {
            LossKind::CrossEntropy => {
                let label_smoothing = s
                    .field("label_smoothing", Kind::fraction(), "Fraction of the target spread evenly over all classes.")
                    .or(0.0);
                let (class_weights, is_balanced) = match ClassWeights::decode(s) {
                    ClassWeights::Listed(weights) => (weights, false),
                    ClassWeights::Balanced => (Vec::new(), true),
                };
                LossFunction::CrossEntropy {
                    label_smoothing,
                    class_weights,
                    is_balanced,
                    focal_gamma: focal_gamma(s),
                }
            }
            LossKind::MultiMargin => LossFunction::MultiMargin {
                margin: s
                    .field("margin", Kind::between(0.0, 1e6), "Margin by which the class must exceed each other class.")
                    .or(1.0),
                p: s.field("p", Kind::Int(1, 2), "Exponent of the hinge.").or(1),
            },
            LossKind::Dice => LossFunction::Dice {
                smoothing: s
                    .field("smoothing", Kind::between(1e-9, 1e3), "Added to the numerator and the denominator of each class, so that a class without pixels has a loss.")
                    .or(1e-5),
                cross_entropy_weight: s
                    .field("cross_entropy_weight", Kind::between(0.0, 1e3), "Weight of the mean cross-entropy of the pixels that is added to the loss; 0 for none.")
                    .or(0.0),
            },
            LossKind::BinaryCrossEntropy => LossFunction::BinaryCrossEntropy {
                label_smoothing: s
                    .field(
                        "label_smoothing",
                        Kind::fraction(),
                        "A label y becomes y (1 - label_smoothing) + label_smoothing / the number of labels, as Burn defines it.",
                    )
                    .or(0.0),
                label_weights: s
                    .field("label_weights", listed_weights(), "Weight of each label in the loss; empty for 1.")
                    .or(Vec::new()),
                focal_gamma: focal_gamma(s),
            },
            LossKind::SoftMargin => LossFunction::SoftMargin,
            LossKind::Mse => LossFunction::Mse,
            LossKind::Mae => LossFunction::Mae,
            LossKind::Lp => LossFunction::Lp {
                p: s.field("p", Kind::between(1.0, 10.0), "Exponent.").or(2.0),
            },
            LossKind::Huber => LossFunction::Huber {
                delta: s
                    .field("delta", Kind::between(1e-6, 1e6), "The error above which the loss is linear.")
                    .or(1.0),
            },
            LossKind::SmoothL1 => LossFunction::SmoothL1 {
                beta: s
                    .field("beta", Kind::between(1e-6, 1e6), "The error above which the loss is linear.")
                    .or(1.0),
            },
            LossKind::Quantile => LossFunction::Quantile {
                quantile: s
                    .field("quantile", Kind::between(1e-3, 0.999), "Fraction of targets that should be below the prediction; 0.5 for the median.")
                    .required(),
            },
            LossKind::PoissonNll => LossFunction::PoissonNll {
                log_input: s
                    .field("log_input", Kind::Bool, "Whether the network outputs the logarithm of the rate; otherwise the rate is softplus of the output.")
                    .or(true),
                full: s
                    .field("full", Kind::Bool, "Whether to add Stirling's approximation of the factorial of the count.")
                    .or(false),
            },
            LossKind::GaussianNll => LossFunction::GaussianNll,
            LossKind::KlNormal => LossFunction::KlNormal,
            LossKind::L1 => LossFunction::L1,
            LossKind::L2 => LossFunction::L2,
            LossKind::Gan => LossFunction::Gan,
            LossKind::Lsgan => LossFunction::Lsgan,
            LossKind::HingeGan => LossFunction::HingeGan,
            LossKind::Wgan => LossFunction::Wgan {
                clip: s
                    .field("clip", Kind::positive(), "Weights of the discriminator are clipped to the range from -`clip` to `clip` after each of its updates.")
                    .or(0.01),
            },
            LossKind::WganGp => LossFunction::WganGp {
                gradient_penalty: s
                    .field("gradient_penalty", Kind::positive(), "Weight of the penalty of gradients.")
                    .or(10.0),
            },
        }
    }
}
