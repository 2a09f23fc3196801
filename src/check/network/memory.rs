//! What a training step keeps of a network's values, for one item.
//!
//! Burn's autodiff keeps what a backward step asks for. Read in burn-autodiff 0.22.1: a linear layer and a
//! convolution ask for their input, an activation for its input, a max pooling for its input and the
//! places of the largest values, a product for both factors, a sum for neither. So the output of each
//! layer is kept by what comes behind it, and what [`super::cost::activations`] counts is what is alive
//! when the forward pass is over.
//!
//! With gradient checkpointing, operations marked as bound by memory keep a way to compute their output
//! anew, and its place is taken by the nearest outputs before it that are kept anyway. Operations that
//! draw at random, products of matrices, convolutions, poolings and reductions are kept in both cases.

use super::{Layer, Network};
use crate::spec::model::activation::Activation;
use crate::spec::model::layer::LayerKind;

/// Bytes of a place in a window, as a max pooling keeps it for each output value: 32 bits by default.
const PLACE_BYTES: u64 = 4;

impl Network {
    /// Bytes that one item's forward pass leaves for the backward pass, in numbers of `float` bytes.
    pub fn kept_bytes_per_item(&self, float: u64, is_checkpointing: bool) -> u64 {
        let kept = self.layers.iter().map(|layer| {
            let output = values(&layer.shape);
            let beside = match &layer.kind {
                // The mask, as numbers.
                LayerKind::Dropout { probability } if *probability > 0.0 => {
                    output.saturating_mul(float)
                }
                LayerKind::Pool(pool) if pool.max => output.saturating_mul(PLACE_BYTES),
                _ => 0,
            };
            let values = match is_checkpointing && is_computed_anew(&layer.kind) {
                true => 0,
                false => layer.activations_per_item,
            };
            values.saturating_mul(float).saturating_add(beside)
        });
        kept.fold(0, u64::saturating_add)
    }

    /// Values of one item that the backward pass holds for a moment besides what is kept, where that is most:
    /// the gradients of a layer's output and inputs, and with `is_reordered` the copies with channels
    /// last that convolutions of the pure-Rust kernels make of input and gradient.
    pub fn moment_per_item(&self, is_reordered: bool) -> u64 {
        let moment = |layer: &Layer| {
            let inputs = layer.inputs.iter().map(|input| values(&input.shape.dims));
            let gradients = inputs.fold(values(&layer.shape), u64::saturating_add);
            let is_convolution =
                matches!(layer.kind, LayerKind::Conv(_) | LayerKind::ConvTranspose(_));
            match is_reordered && is_convolution {
                true => gradients.saturating_mul(2),
                false => gradients,
            }
        };
        self.layers.iter().map(moment).max().unwrap_or(0)
    }
}

/// Whether all of a layer is operations that autodiff calls bound by memory.
fn is_computed_anew(kind: &LayerKind) -> bool {
    match kind {
        LayerKind::Add | LayerKind::Multiply | LayerKind::Permute { .. } => true,
        LayerKind::Slice { .. } => true,
        LayerKind::Activation(activation) => matches!(
            activation,
            Activation::Relu
                | Activation::Gelu
                | Activation::Silu
                | Activation::Tanh
                | Activation::Sigmoid
                | Activation::LogSigmoid
        ),
        _ => false,
    }
}

fn values(shape: &[usize]) -> u64 {
    let sizes = shape.iter().map(|size| *size as u64);
    sizes.fold(1, u64::saturating_mul)
}
