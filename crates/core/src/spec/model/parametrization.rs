//! Weights that are computed from other parameters, as PyTorch's `torch.nn.utils.parametrizations` have them.

use serde::{Deserialize, Serialize};

use super::layer::LayerKind;
use crate::spec::section::{Section, choices};

choices! {
    /// How the weight of a layer is computed.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Parametrization {
        #[default]
        None "none" "The weight is a parameter.",
        WeightNorm "weight_norm" "A direction for each output, and a learned length (Salimans and Kingma, 2016).",
        SpectralNorm "spectral_norm" "The weight divided by its largest singular value, which a step of power iteration in each training step estimates (Miyato et al., 2018).",
    }
}

/// The weight as a matrix whose rows are the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// A matrix \[inputs, outputs\], which is transposed.
    Second,
    /// \[outputs, ..\] with all other axes merged, as PyTorch has them too.
    First,
    /// \[inputs, outputs, ..\], of which the first two axes are exchanged.
    Exchanged,
}

impl Parametrization {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let doc = "How the weight is computed from what is learned.";
        s.choice("parametrization", doc, Self::None)
    }

    /// Whether the weight is a parameter.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// The paths below the weight of what it is computed from beside itself. The vectors of a spectral norm are not
    /// trained.
    pub fn state(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::WeightNorm => &["weight_norm.scale"],
            Self::SpectralNorm => &["spectral_norm.u", "spectral_norm.v"],
        }
    }

    /// Where the rows are in the weight of a layer, as Burn stores it. PyTorch's weight norm has a length for each entry
    /// of the first axis, also where a transposed convolution has its inputs there.
    pub fn rows(self, kind: &LayerKind) -> Rows {
        match kind {
            LayerKind::Linear { .. } => Rows::Second,
            LayerKind::ConvTranspose(_) if self == Self::SpectralNorm => Rows::Exchanged,
            _ => Rows::First,
        }
    }
}

impl Rows {
    /// The number of rows and columns for the sizes of a weight.
    pub fn sizes(self, weight: &[usize]) -> [usize; 2] {
        let rows = match self {
            Self::First => weight[0],
            Self::Second | Self::Exchanged => weight[1],
        };
        let num = weight.iter().product::<usize>();
        [rows, num / rows.max(1)]
    }
}
