//! Which layers have the same bits on every processor with portable arithmetic.
//!
//! Runner's kernels do. So do those of Burn's that only move, compare, add and multiply numbers one by one. Burn's sums
//! along an axis do not, since their order depends on the vector registers; nor do its matrix products, which are fused
//! if the processor supports it, and its elementary functions, which are those of the system's library.

use super::kernels::has_kernel;
use crate::spec::model::activation::Activation;
use crate::spec::model::initializer::Distribution;
use crate::spec::model::layer::LayerKind;

/// A part of a layer that is not available with portable arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The layer.
    Layer,
    /// The layer, which a program has added.
    Own,
    /// Its initializer.
    Initializer,
}

/// The part of a layer with its settings that is not available, if any.
pub fn missing(kind: &LayerKind) -> Option<Missing> {
    if matches!(kind, LayerKind::Own(_)) {
        return Some(Missing::Own);
    }
    let distribution = kind.initializer().map(|it| &it.distribution);
    if matches!(distribution, Some(Distribution::Orthogonal { .. })) {
        return Some(Missing::Initializer);
    }
    (!has_kernel(kind) && !is_exact(kind)).then_some(Missing::Layer)
}

/// Whether a layer without kernel is computed portably.
fn is_exact(kind: &LayerKind) -> bool {
    match kind {
        LayerKind::Dropout { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::GaussianSample
        | LayerKind::Noise { .. }
        | LayerKind::MultiHeadAttention { .. }
        | LayerKind::GroupedAttention(_)
        | LayerKind::Dlinoss(_)
        | LayerKind::PositionalEncoding { .. }
        | LayerKind::Prelu { .. }
        | LayerKind::Identity
        | LayerKind::Flatten { .. }
        | LayerKind::Reshape { .. }
        | LayerKind::Permute { .. }
        | LayerKind::Unsqueeze { .. }
        | LayerKind::Squeeze { .. }
        | LayerKind::Slice { .. }
        | LayerKind::Reduce { .. }
        | LayerKind::PaddingMask { .. }
        | LayerKind::PixelShuffle { .. }
        | LayerKind::PixelUnshuffle { .. }
        | LayerKind::Fourier(_)
        | LayerKind::Roll { .. }
        | LayerKind::TopK { .. }
        | LayerKind::AffineGrid(_)
        | LayerKind::Pad { .. }
        | LayerKind::Parameter { .. }
        | LayerKind::PositionEmbedding { .. }
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::Pairwise { .. }
        | LayerKind::Matmul => true,
        LayerKind::Pool(pool) => pool.max,
        LayerKind::Activation(activation) => match activation {
            Activation::Rrelu { .. }
            | Activation::Abs
            | Activation::Scale { .. }
            | Activation::Sparsemax
            | Activation::Glu => true,
            Activation::Power { exponent } => *exponent == 2.0,
            _ => false,
        },
        _ => false,
    }
}
