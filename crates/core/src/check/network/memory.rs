//! What a training step keeps of a network's values, for one item.
//!
//! Burn's autodiff keeps what a backward step asks for. Read in burn-autodiff 0.22.1: a linear layer and a
//! convolution ask for their input, an activation for its input, a max pooling for its input and the
//! places of the largest values, a product for both factors, a sum for neither. So the output of each
//! layer is kept by what comes behind it, and what [`super::cost::activations`] counts is what is alive
//! when the forward pass is over. Runner's own max pooling asks for the places alone, so that what only
//! it reads is not kept. What lies before the first layer that is trained has no way back, and keeps nothing.
//!
//! With gradient checkpointing, operations marked as bound by memory keep a way to compute their output
//! anew, and its place is taken by the nearest outputs before it that are kept anyway. Operations that
//! draw at random, products of matrices, convolutions, poolings and reductions are kept in both cases.

use super::{Layer, Network};
use crate::spec::model::activation::Activation;
use crate::spec::model::layer::LayerKind;

/// Bytes of a place, as a max pooling keeps it for each output value: of Burn's, in the plane, and of our own, in the window.
const PLACE_BYTES: [u64; 2] = [4, 1];

impl Network {
    /// Bytes that one item's forward pass leaves for the backward pass, in numbers of `float` bytes. `has_own` says
    /// whether convolutions and max pooling are computed by kernels of our own, `trained` how many numbers of each layer are trained.
    pub fn kept_bytes_per_item(
        &self,
        float: u64,
        is_checkpointing: bool,
        has_own: bool,
        trained: &[u64],
    ) -> u64 {
        let mut is_tracked: Vec<bool> = Vec::new();
        for (layer, num_trained) in self.layers.iter().zip(trained) {
            let mut inputs = layer.inputs.iter().filter_map(|input| input.layer);
            let is_behind = inputs.any(|input| is_tracked[input]);
            is_tracked.push(*num_trained > 0 || is_behind);
        }
        let kept = self.layers.iter().enumerate().map(|(at, layer)| {
            let output = values(&layer.shape);
            if !is_tracked[at] {
                // A trained layer asks for its input, which is no memory of its own where it is a view.
                let values = if self.readers(at).any(|reader| trained[reader] > 0) {
                    output.min(layer.activations_per_item)
                } else {
                    0
                };
                return values.saturating_mul(float);
            }
            let beside = match &layer.kind {
                // The mask, as numbers.
                LayerKind::Dropout { probability } if *probability > 0.0 => {
                    output.saturating_mul(float)
                }
                LayerKind::Pool(pool) if pool.max => {
                    let is_own = has_own && is_pooled_by_own(&layer.kind);
                    output.saturating_mul(PLACE_BYTES[is_own as usize])
                }
                _ => 0,
            };
            let values = match is_checkpointing && is_computed_anew(&layer.kind) {
                true => 0,
                false if has_own && self.is_only_pooled(at) => {
                    layer.activations_per_item.saturating_sub(output)
                }
                false => layer.activations_per_item,
            };
            values.saturating_mul(float).saturating_add(beside)
        });
        kept.fold(0, u64::saturating_add)
    }

    /// Whether a layer's output is read by our own max pooling alone.
    fn is_only_pooled(&self, at: usize) -> bool {
        let mut readers = self.readers(at).peekable();
        readers.peek().is_some()
            && readers.all(|reader| is_pooled_by_own(&self.layers[reader].kind))
    }

    /// The layers that a layer's output reaches.
    fn readers(&self, at: usize) -> impl Iterator<Item = usize> {
        let reads = move |layer: &Layer| layer.inputs.iter().any(|input| input.layer == Some(at));
        let layers = self.layers.iter().enumerate();
        layers.filter_map(move |(reader, layer)| reads(layer).then_some(reader))
    }

    /// Values of one item that the backward pass holds for a moment besides what is kept, where that is most:
    /// the gradients of a layer's output and inputs, and the copies with channels last that Burn's convolutions
    /// on `flex` make of input and gradient.
    pub fn moment_per_item(&self, is_flex: bool, has_own: bool) -> u64 {
        let moment = |layer: &Layer| {
            let inputs = layer.inputs.iter().map(|input| values(&input.shape.dims));
            let gradients = inputs.fold(values(&layer.shape), u64::saturating_add);
            match layer.kind {
                LayerKind::Conv(ref conv) if is_flex && !(has_own && conv.dims < 3) => {
                    gradients.saturating_mul(2)
                }
                LayerKind::ConvTranspose(_) if is_flex => gradients.saturating_mul(2),
                _ => gradients,
            }
        };
        self.layers.iter().map(moment).max().unwrap_or(0)
    }
}

/// Whether a layer is a max pooling that there is a kernel of our own for.
fn is_pooled_by_own(kind: &LayerKind) -> bool {
    let LayerKind::Pool(pool) = kind else {
        return false;
    };
    let has_near_taps = pool.dilation.iter().all(|dilation| *dilation == 1);
    let num_taps = pool
        .kernel_size
        .iter()
        .fold(1, |n: usize, k| n.saturating_mul(*k));
    pool.max && !pool.ceil_mode && has_near_taps && num_taps <= 256
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
