//! `[strategy]`: how the weights of a run follow from the optimizer's updates.

use serde::{Deserialize, Serialize};

use super::adversarial::AdversarialSpec;
use super::distill::DistillSpec;
use super::hybrid::HybridSpec;
use super::kind::Kind;
use super::own::{OrOwn, OwnStrategy, Part, Used, names_of};
use super::section::{Section, choices};

/// The `[strategy]` table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StrategySpec {
    /// Each update changes the weights, and that is all.
    #[default]
    Standard,
    /// Lookahead (Zhang et al., 2019).
    Lookahead {
        /// Updates between two synchronizations.
        sync_steps: usize,
        /// How far the slow weights move toward the fast ones.
        alpha: f64,
    },
    /// Stochastic weight averaging (Izmailov et al., 2018).
    Swa {
        /// The first epoch in which weights are averaged.
        start_epoch: usize,
        /// Updates between two averaged weights; an epoch if not set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every_steps: Option<usize>,
    },
    /// Some updates are predicted instead of computed.
    Hybrid(HybridSpec),
    /// The outputs of a teacher are imitated.
    Distill(DistillSpec),
    /// Two networks train against each other.
    Adversarial(AdversarialSpec),
    /// A strategy of the program's own.
    Own {
        /// How many tensors of each parameter's size it keeps.
        num_kept: u64,
        /// The strategy.
        #[serde(flatten)]
        used: Used,
    },
}

/// The `type` of `[strategy]`.
type AnyStrategy = OrOwn<StrategyKind, OwnStrategy>;

/// The names of the strategies of `runner`.
pub(super) fn built_in_types() -> impl Iterator<Item = &'static str> {
    names_of::<StrategyKind>()
}

choices! {
    /// The strategies of `runner`.
    enum StrategyKind {
        Standard "standard" "Each update changes the weights, and that is all.",
        Lookahead "lookahead" "Lookahead (Zhang et al., 2019): every `sync_steps` updates, slow weights move toward the trained ones by `alpha`, and the training continues from them. The slow weights are validated, tested and saved.",
        Swa "swa" "Stochastic weight averaging (Izmailov et al., 2018): the mean of the weights at regular intervals, from `start_epoch` on, evaluated in addition to the weights as `valid_swa` and `test_swa`.",
        Hybrid "hybrid" "Some updates are predicted from earlier weights instead of computed by a backward pass. A prediction is kept if the loss on a probe allows it, and rolled back otherwise.",
        Adversarial "adversarial" "Two networks train in turn (Goodfellow et al., 2014): a `generator` makes items from noise, and a `discriminator` scores items, those of the data against generated ones.",
        Distill "distill" "Knowledge distillation (Hinton et al., 2015): the network also learns to imitate the outputs of a `teacher`, the network of another run.",
    }
}

impl StrategySpec {
    /// Whether it changes nothing.
    pub fn is_standard(&self) -> bool {
        *self == Self::Standard
    }

    /// How many copies of the weights it keeps.
    pub fn num_copies(&self) -> u64 {
        match self {
            Self::Standard | Self::Distill(_) | Self::Adversarial(_) => 0,
            Self::Lookahead { .. } | Self::Swa { .. } => 1,
            Self::Own { num_kept, .. } => *num_kept,
            Self::Hybrid(hybrid) => hybrid.num_copies(),
        }
    }

    /// The settings of a training that predicts updates.
    pub fn hybrid(&self) -> Option<&HybridSpec> {
        match self {
            Self::Hybrid(hybrid) => Some(hybrid),
            _ => None,
        }
    }

    /// The settings of a training with a teacher.
    pub fn distill(&self) -> Option<&DistillSpec> {
        match self {
            Self::Distill(distill) => Some(distill),
            _ => None,
        }
    }

    /// The settings of a training of two networks in turn.
    pub fn adversarial(&self) -> Option<&AdversarialSpec> {
        match self {
            Self::Adversarial(adversarial) => Some(adversarial),
            _ => None,
        }
    }

    /// The same for a plan, in which outputs are probabilities or values.
    pub fn planned(&self, has_probabilities: bool) -> Self {
        match self {
            Self::Distill(distill) => Self::Distill(distill.planned(has_probabilities)),
            other => other.clone(),
        }
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let doc = "What happens to the weights besides the optimizer's updates.";
        let usual = AnyStrategy::BuiltIn(StrategyKind::Standard);
        s.variant(doc, Some(usual), |s, kind| match kind {
            AnyStrategy::BuiltIn(kind) => Self::built_in(s, kind),
            AnyStrategy::Own(part) => Self::own(s, part),
        })
    }

    /// An own strategy.
    fn own(s: &mut Section<'_>, part: &OwnStrategy) -> Self {
        let used = Used::decode(s, part);
        let num_kept = part.reported(s, |_| (part.num_kept)(&used.settings));
        Self::Own { num_kept, used }
    }

    fn built_in(s: &mut Section<'_>, kind: StrategyKind) -> Self {
        match kind {
            StrategyKind::Standard => Self::Standard,
            StrategyKind::Lookahead => Self::Lookahead {
                sync_steps: s
                    .field(
                        "sync_steps",
                        Kind::at_least(1),
                        "Updates between two synchronizations of the slow weights with the trained ones.",
                    )
                    .or(5),
                alpha: s
                    .field(
                        "alpha",
                        Kind::Float {
                            min: 0.0,
                            open_min: true,
                            max: 1.0,
                            open_max: false,
                        },
                        "Fraction of the way from the slow weights to the trained ones.",
                    )
                    .or(0.5),
            },
            StrategyKind::Swa => Self::Swa {
                start_epoch: s
                    .field(
                        "start_epoch",
                        Kind::at_least(1),
                        "The first epoch in which weights are averaged, counted from 1; earlier ones are not.",
                    )
                    .required(),
                every_steps: s
                    .field(
                        "every_steps",
                        Kind::at_least(1),
                        "Updates between two averaged weights, counted from the start of `start_epoch`; the end of each epoch when not set.",
                    )
                    .optional(),
            },
            StrategyKind::Hybrid => Self::Hybrid(HybridSpec::decode(s)),
            StrategyKind::Adversarial => Self::Adversarial(AdversarialSpec::decode(s)),
            StrategyKind::Distill => Self::Distill(DistillSpec::decode(s)),
        }
    }
}
