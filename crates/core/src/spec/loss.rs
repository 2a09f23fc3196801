//! `[loss]`: the loss to minimize.

mod keys;

use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::own::{OrOwn, OwnLoss, Used};
use super::section::{Choice, choices};
use super::task::TaskKind;

/// The `[loss]` table: the loss of one item. A step minimizes the mean over its items.
///
/// Burn's other losses fit none of the tasks: `ctc` and `rnnt` need targets of varying length, and `cosine_embedding`,
/// `margin_ranking`, `triplet_margin` and `hinge_embedding` need pairs or triplets of items; `kl_div` needs targets
/// that are distributions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossSpec {
    /// How the elements of an item (positions, pixels, labels or values) are reduced to one number.
    pub reduction: Reduction,
    /// The layer that outputs which positions of an item count, if not all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
    /// The loss of an element.
    #[serde(flatten)]
    pub function: LossFunction,
}

/// The loss of one element of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LossFunction {
    /// Negative log-likelihood of the class under the softmax of the outputs.
    CrossEntropy {
        /// Fraction of the target spread over all classes.
        label_smoothing: f64,
        /// Weight of each class in the loss; empty for 1.
        class_weights: Vec<f64>,
        /// Whether they are still to be determined from the train split; never in a plan.
        #[serde(skip)]
        is_balanced: bool,
        /// Exponent of the focal loss; 0 for none.
        #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
        focal_gamma: f64,
    },
    /// Hinge of the margins between the class and each other class, divided by the number of classes.
    MultiMargin {
        /// The margin.
        margin: f64,
        /// The exponent, 1 or 2.
        p: usize,
    },
    /// Overlap of the probabilities of each class with its pixels (Milletari et al., 2016).
    Dice {
        /// Added to the numerator and the denominator.
        smoothing: f64,
        /// Weight of the cross-entropy that is added.
        cross_entropy_weight: f64,
    },
    /// Negative log-likelihood of each label under the sigmoid of its output.
    BinaryCrossEntropy {
        /// Fraction of the target spread over the labels.
        label_smoothing: f64,
        /// Weight of each label in the loss; empty for 1.
        label_weights: Vec<f64>,
        /// Exponent of the focal loss; 0 for none.
        #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
        focal_gamma: f64,
    },
    /// `ln(1 + exp(-y x))` with labels y of 1 and -1.
    SoftMargin,
    /// Squared error.
    Mse,
    /// Absolute error.
    Mae,
    /// Absolute error to a power.
    Lp {
        /// The power.
        p: f64,
    },
    /// Half the squared error up to `delta`, linear beyond.
    Huber {
        /// Where it becomes linear.
        delta: f64,
    },
    /// Huber loss divided by `beta`.
    SmoothL1 {
        /// Where it becomes linear.
        beta: f64,
    },
    /// Absolute error, with different weights above and below the prediction.
    Quantile {
        /// The fraction of targets below the prediction.
        quantile: f64,
    },
    /// Negative log-likelihood of counts under a Poisson distribution.
    PoissonNll {
        /// Whether the network outputs the logarithm of the rate.
        log_input: bool,
        /// Whether to add Stirling's approximation of the factorial of the count.
        full: bool,
    },
    /// Negative log-likelihood under a normal distribution: the network outputs a mean for each value and, through
    /// softplus, a variance.
    GaussianNll,
    /// Divergence of normal distributions from the standard normal distribution; a penalty.
    KlNormal,
    /// Absolute value; a penalty.
    L1,
    /// Square; a penalty.
    L2,
    /// The losses of a generator and a discriminator (Goodfellow et al., 2014).
    Gan,
    /// The same with squared errors (Mao et al., 2017).
    Lsgan,
    /// The same with margins (Lim and Ye, 2017).
    HingeGan,
    /// The difference of a critic's mean scores (Arjovsky et al., 2017).
    Wgan {
        /// What weights of the critic are clipped to after each of its updates.
        clip: f64,
    },
    /// The same with a penalty of the critic's gradients (Gulrajani et al., 2017).
    WganGp {
        /// The weight of the penalty.
        gradient_penalty: f64,
    },
    /// A loss of the program's own.
    Own {
        /// The tasks that it supports.
        tasks: Vec<TaskKind>,
        /// Whether outputs are logits: of classes under a softmax, of labels under a sigmoid.
        of_logits: bool,
        /// The loss.
        #[serde(flatten)]
        used: Used,
    },
}

choices! {
    /// How the elements of an item are reduced to one number. Items are always averaged.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reduction {
        Mean "mean" "The mean.",
        Sum "sum" "The sum.",
    }
}

choices! {
    /// The `type` of `[loss]` and `[[losses]]`.
    pub enum LossKind {
        CrossEntropy "cross_entropy" "Negative log-likelihood of the class under the softmax of the outputs.",
        MultiMargin "multi_margin" "Hinge of the margins between the class and each other class, divided by the number of classes.",
        Dice "dice" "1 - the Dice coefficient of the probabilities of each class and its pixels, averaged over the classes, including background.",
        BinaryCrossEntropy "binary_cross_entropy" "Negative log-likelihood of each label under the sigmoid of its output.",
        SoftMargin "soft_margin" "ln(1 + exp(-y x)) for each label y of 1 or -1 and its output x.",
        Mse "mse" "Squared error; for classes, against the one-hot class.",
        Mae "mae" "Absolute error.",
        Lp "lp" "Absolute error to the power `p`.",
        Huber "huber" "Half the squared error up to `delta`, linear beyond.",
        SmoothL1 "smooth_l1" "Huber loss divided by `beta`.",
        Quantile "quantile" "Absolute error, weighted by `quantile` above the prediction and by 1 - `quantile` below it, so that the prediction is this quantile of the targets.",
        PoissonNll "poisson_nll" "Negative log-likelihood of counts under a Poisson distribution.",
        GaussianNll "gaussian_nll" "Negative log-likelihood under a normal distribution: the network outputs two values per target, a mean and (through softplus) a variance.",
        Gan "gan" "Generated items against those of the data: ln(1 + exp(-s)) for the discriminator's score s of an item of the data and ln(1 + exp(s)) for that of a generated one; ln(1 + exp(-s)) for the generator, which does not saturate (Goodfellow et al., 2014).",
        Lsgan "lsgan" "The same with least squares: (s - 1)^2 / 2 for an item of the data and s^2 / 2 for a generated one; (s - 1)^2 / 2 for the generator (Mao et al., 2017).",
        HingeGan "hinge_gan" "The same with margins: max(0, 1 - s) for an item of the data and max(0, 1 + s) for a generated one; -s for the generator (Lim and Ye, 2017).",
        Wgan "wgan" "The same with -s for an item of the data and s for a generated one, and -s for the generator; after each update of the discriminator, its weights are clipped (Arjovsky et al., 2017).",
        WganGp "wgan_gp" "`wgan` with a penalty of the discriminator's gradients instead of clipped weights: gradient_penalty (|g| - 1)^2 for the gradient g of the score at a random point between an item of the data and a generated one (Gulrajani et al., 2017).",
        KlNormal "kl_normal" "Kullback-Leibler divergence of normal distributions from the standard normal distribution; along its last axis, the output has the means and then the logarithms of the variances (Kingma and Welling, 2014).",
        L1 "l1" "Absolute value of each number of the output.",
        L2 "l2" "Square of each number of the output.",
    }
}

impl LossKind {
    /// The tasks that it supports.
    pub fn tasks(self) -> &'static [TaskKind] {
        use TaskKind::*;
        match self {
            LossKind::CrossEntropy | LossKind::MultiMargin => {
                &[Classification, NextToken, MaskedToken, Segmentation]
            }
            LossKind::Dice => &[Segmentation],
            LossKind::BinaryCrossEntropy | LossKind::SoftMargin => &[MultiLabel],
            LossKind::Mse => &[Regression, Autoencoding, Classification],
            LossKind::Mae | LossKind::Lp | LossKind::Huber | LossKind::SmoothL1 => {
                &[Regression, Autoencoding]
            }
            LossKind::Quantile | LossKind::PoissonNll | LossKind::GaussianNll => &[Regression],
            LossKind::Gan
            | LossKind::Lsgan
            | LossKind::HingeGan
            | LossKind::Wgan
            | LossKind::WganGp => &[Generation],
            LossKind::KlNormal | LossKind::L1 | LossKind::L2 => &[],
        }
    }

    /// Whether it is about an output alone, without a target.
    pub fn is_penalty(self) -> bool {
        self.tasks().is_empty()
    }
}

impl LossFunction {
    /// Whether it turns outputs into probabilities of classes or labels.
    pub fn gives_probabilities(&self) -> bool {
        self.is_of_softmax()
            || matches!(
                self,
                LossFunction::BinaryCrossEntropy { .. } | LossFunction::SoftMargin
            )
    }

    /// Whether outputs are estimates of the targets, if it is used for values.
    pub fn gives_values(&self) -> bool {
        !matches!(
            self,
            LossFunction::GaussianNll | LossFunction::PoissonNll { .. }
        )
    }

    /// Whether outputs become probabilities of classes through a softmax, if it is used for classes.
    pub fn is_of_softmax(&self) -> bool {
        matches!(
            self,
            LossFunction::CrossEntropy { .. }
                | LossFunction::Dice { .. }
                | LossFunction::Own {
                    of_logits: true,
                    ..
                }
        )
    }

    /// Whether class weights are still to be determined from the train split.
    pub fn is_balanced(&self) -> bool {
        matches!(
            self,
            LossFunction::CrossEntropy {
                is_balanced: true,
                ..
            }
        )
    }

    /// The same with class weights, if they are still to be determined.
    pub fn with_class_weights(mut self, weights: Vec<f64>) -> Self {
        if let LossFunction::CrossEntropy {
            class_weights,
            is_balanced: is_balanced @ true,
            ..
        } = &mut self
        {
            (*class_weights, *is_balanced) = (weights, false);
        }
        self
    }

    /// Its `type`.
    pub fn name(&self) -> &str {
        match (self, self.kind()) {
            (LossFunction::Own { used, .. }, _) => &used.part,
            (_, kind) => kind.map_or("", |kind| kind.name()),
        }
    }

    /// The tasks that it supports.
    pub fn tasks(&self) -> &[TaskKind] {
        match (self, self.kind()) {
            (LossFunction::Own { tasks, .. }, _) => tasks,
            (_, kind) => kind.map_or(&[], LossKind::tasks),
        }
    }

    /// Whether it is about an output alone, without a target.
    pub fn is_penalty(&self) -> bool {
        self.tasks().is_empty()
    }

    /// Its `type`, if it is built in.
    pub fn kind(&self) -> Option<LossKind> {
        Some(match self {
            LossFunction::CrossEntropy { .. } => LossKind::CrossEntropy,
            LossFunction::MultiMargin { .. } => LossKind::MultiMargin,
            LossFunction::Dice { .. } => LossKind::Dice,
            LossFunction::BinaryCrossEntropy { .. } => LossKind::BinaryCrossEntropy,
            LossFunction::SoftMargin => LossKind::SoftMargin,
            LossFunction::Mse => LossKind::Mse,
            LossFunction::Mae => LossKind::Mae,
            LossFunction::Lp { .. } => LossKind::Lp,
            LossFunction::Huber { .. } => LossKind::Huber,
            LossFunction::SmoothL1 { .. } => LossKind::SmoothL1,
            LossFunction::Quantile { .. } => LossKind::Quantile,
            LossFunction::PoissonNll { .. } => LossKind::PoissonNll,
            LossFunction::GaussianNll => LossKind::GaussianNll,
            LossFunction::KlNormal => LossKind::KlNormal,
            LossFunction::L1 => LossKind::L1,
            LossFunction::L2 => LossKind::L2,
            LossFunction::Gan => LossKind::Gan,
            LossFunction::Lsgan => LossKind::Lsgan,
            LossFunction::HingeGan => LossKind::HingeGan,
            LossFunction::Wgan { .. } => LossKind::Wgan,
            LossFunction::WganGp { .. } => LossKind::WganGp,
            LossFunction::Own { .. } => return None,
        })
    }
}

/// The `type` of `[[losses]]`.
pub type LossType = OrOwn<LossKind, OwnLoss>;

impl LossSpec {
    /// The default loss.
    pub fn default_for(task: TaskKind) -> Self {
        let function = match task {
            TaskKind::Classification
            | TaskKind::NextToken
            | TaskKind::MaskedToken
            | TaskKind::Segmentation => LossFunction::CrossEntropy {
                label_smoothing: 0.0,
                class_weights: Vec::new(),
                is_balanced: false,
                focal_gamma: 0.0,
            },
            TaskKind::MultiLabel => LossFunction::BinaryCrossEntropy {
                label_smoothing: 0.0,
                label_weights: Vec::new(),
                focal_gamma: 0.0,
            },
            TaskKind::Regression | TaskKind::Autoencoding => LossFunction::Mse,
            TaskKind::Generation => LossFunction::Gan,
        };
        Self {
            reduction: Reduction::Mean,
            mask: None,
            function,
        }
    }

    /// The default metrics beside this loss.
    pub fn default_metrics(&self, task: TaskKind) -> &'static [Metric] {
        // The usual ones of regression are computed from all positions.
        let has_mask = self.mask.is_some() && task == TaskKind::Regression;
        let task = if has_mask {
            TaskKind::Autoencoding
        } else {
            task
        };
        task.default_metrics()
    }
}

/// The name of weights that follow from the classes of the train split.
pub const BALANCED: &str = "balanced";
