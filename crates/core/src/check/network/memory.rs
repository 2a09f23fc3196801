//! What a training step keeps of a network's values, for one item.
//!
//! Burn's autodiff keeps what a backward step asks for. As of burn-autodiff 0.22.1, a linear layer and a convolution
//! keep their input, an activation its input, a max pooling its input and the positions of the maxima, a product both
//! factors, a sum neither. So the output of a layer is kept by the layers that use it, and [`super::cost::activations`]
//! counts what is alive at the end of the forward pass. Runner's max pooling keeps only the positions, so a value that
//! only it reads is not kept. Layers before the first trained layer have no backward pass, and keep nothing.
//!
//! With gradient checkpointing, memory-bound operations keep a way to recompute their output, and the nearest preceding
//! outputs that are kept anyway replace it. Random operations, matrix products, convolutions, poolings and reductions
//! are kept in both cases.

use super::{Layer, Network};
use crate::spec::model::activation::Activation;
use crate::spec::model::layer::LayerKind;

/// Bytes per position that a max pooling keeps for each output value: Burn's position in the plane, and runner's
/// position in the window.
const PLACE_BYTES: [u64; 2] = [4, 1];

impl Network {
    /// Bytes that one item's forward pass keeps for the backward pass, with numbers of `float` bytes. `has_own` says
    /// whether runner's kernels compute convolutions and max pooling, `trained` how many numbers of each layer are
    /// trained.
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
                // A trained layer keeps its input, which needs no memory if it is a view.
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

    /// Whether a layer's output is read only by runner's max pooling.
    fn is_only_pooled(&self, at: usize) -> bool {
        let mut readers = self.readers(at).peekable();
        readers.peek().is_some()
            && readers.all(|reader| is_pooled_by_own(&self.layers[reader].kind))
    }

    /// The layers that use a layer's output.
    fn readers(&self, at: usize) -> impl Iterator<Item = usize> {
        let reads = move |layer: &Layer| layer.inputs.iter().any(|input| input.layer == Some(at));
        let layers = self.layers.iter().enumerate();
        layers.filter_map(move |(reader, layer)| reads(layer).then_some(reader))
    }

    /// The largest number of values of one item that the backward pass holds temporarily, in addition to what is kept:
    /// the gradients of a layer's output and inputs, and the copies with channels last that Burn's convolutions on
    /// `flex` make of input and gradient.
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

/// Whether runner has a kernel for a layer's max pooling.
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

/// Whether a layer consists only of operations that autodiff calls memory-bound.
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
