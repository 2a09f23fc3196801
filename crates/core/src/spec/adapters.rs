//! `[[adapters]]`: small trained matrices beside frozen weights.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::optimizer::patterns;
use super::section::{Section, by_name, choices};
use crate::int8;

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
    /// How frozen matrices are held, if this table says it.
    pub base: Option<Base>,
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

choices! {
    /// How the frozen matrices of a network with adapters are held.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Base {
        #[default]
        Full "full" "In the precision of the run.",
        Bf16 "bf16" "Rounded to 16 bits with the exponents of `f32`, as many language models are published.",
        F16 "f16" "Rounded to 16 bits with a longer mantissa, and no number above 65,504.",
        Int8 "int8" "Rounded to 8 bits times a scale for each output and up to 64 inputs.",
    }
}

impl Base {
    /// Whether they are held as everything else.
    pub fn is_full(&self) -> bool {
        *self == Self::Full
    }

    /// The bytes of a matrix of so many inputs and outputs; `float` are those of a number in the precision of the run.
    pub fn num_bytes(self, sizes: [usize; 2], float: u64) -> u64 {
        let [inputs, outputs] = sizes.map(|size| size as u64);
        let num = inputs.saturating_mul(outputs);
        match self {
            Self::Full => num.saturating_mul(float),
            Self::Bf16 | Self::F16 => num.saturating_mul(2),
            Self::Int8 => num.saturating_add(int8::num_scales(sizes) as u64 * 4),
        }
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
            base: {
                let doc = "How the frozen matrices of the network are held, adapted or not: those of linear layers, attention, transformer stacks and `swiglu`.";
                let name = s.field::<String>("base", Kind::of_choice::<Base>(), doc);
                name.optional().as_deref().and_then(by_name)
            },
        }
    }
}
