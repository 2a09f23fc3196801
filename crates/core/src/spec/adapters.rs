//! `[[adapters]]`: small trained matrices beside frozen weights.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::optimizer::patterns;
use super::section::{Section, choices};

/// A table of `[[adapters]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterSpec {
    /// Patterns over the paths of the weights that are adapted.
    pub parameters: Vec<String>,
    /// The inner size of the two matrices.
    pub rank: usize,
    /// The numerator of the scale.
    pub alpha: f64,
    /// The probability with which inputs of the adapter are dropped in training.
    pub dropout: f64,
    /// How the scale follows from `alpha` and the rank.
    pub scaling: Scaling,
    /// Patterns over the paths of other parameters that stay trained.
    pub train: Vec<String>,
}

choices! {

    enum AdapterKind {
        Lora "lora" "LoRA (Hu et al., 2021): the product of two small matrices is added to a frozen one, W + scale * A B.",
    }
}

choices! {
    /// How the scale of an adapter follows from `alpha` and the rank.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Scaling {
        Standard "standard" "`alpha` divided by `rank`.",
        Rslora "rslora" "`alpha` divided by the square root of `rank` (Kalajdzievski, 2023), so that a larger rank learns as fast.",
    }
}

impl AdapterSpec {
    /// The factor of the product of the matrices.
    pub fn scale(&self) -> f64 {
        let rank = self.rank as f64;
        match self.scaling {
            Scaling::Standard => self.alpha / rank,
            Scaling::Rslora => self.alpha / rank.sqrt(),
        }
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        s.variant(
            "What is added to the weights.",
            None,
            |s, kind| match kind {
                AdapterKind::Lora => Self::lora(s),
            },
        )
    }

    fn lora(s: &mut Section<'_>) -> Self {
        Self {
            parameters: s
                .field(
                    "parameters",
                    patterns(),
                    "The weights that are adapted, by path, such as \"*.query.weight\": matrices of linear layers, attention, transformer stacks and `swiglu`; `*` matches any text, `?` one character.",
                )
                .required(),
            rank: s
                .field(
                    "rank",
                    Kind::Int(1, 1 << 20),
                    "The inner size of the two matrices.",
                )
                .or(8),
            alpha: s
                .field(
                    "alpha",
                    Kind::positive(),
                    "The numerator of the factor of the product.",
                )
                .or(8.0),
            dropout: s
                .field(
                    "dropout",
                    Kind::fraction(),
                    "Probability with which each input of the adapter is dropped in training.",
                )
                .or(0.0),
            scaling: s.choice(
                "scaling",
                "How the factor of the product follows from `alpha` and `rank`.",
                Scaling::Standard,
            ),
            train: s
                .field(
                    "train",
                    patterns(),
                    "Other parameters that are trained, by path, such as \"head.*\"; everything else is frozen.",
                )
                .or(Vec::new()),
        }
    }
}
