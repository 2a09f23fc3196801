//! What a training step keeps of a network's values, for one item.
//!
//! Burn's autodiff keeps what a backward step asks for. As of burn-autodiff 0.22.1, a linear layer and a convolution
//! keep their input, an activation its input, a max pooling its input and the positions of the maxima, a product both
//! factors, a sum neither. So the output of a layer is kept by the layers that use it, and [`super::cost::activations`]
//! counts what is alive at the end of the forward pass. Runner's max pooling keeps only the positions, and some of its
//! activations only their output, so a value that only they read is not kept, and neither is one that a norm passes to
//! its activation; its recurrent layers and attention keep less than Burn's. Layers before the first trained layer have
//! no backward pass, and keep nothing.
//!
//! With gradient checkpointing, memory-bound operations keep a way to recompute their output, and the nearest preceding
//! outputs that are kept anyway replace it. Random operations, matrix products, convolutions, poolings and reductions
//! are kept in both cases.

use std::ops::Range;

use super::{Layer, Network, kernels};
use crate::spec::model::activation::Activation;
use crate::spec::model::layer::LayerKind;
use crate::spec::model::layer_spec::Weights;
use crate::spec::train::Recomputed;

/// Bytes per position that a max pooling keeps for each output value: Burn's position in the plane, and runner's
/// position in the window.
const PLACE_BYTES: [u64; 2] = [4, 1];

impl Network {
    /// Bytes that one item's forward pass keeps for the backward pass, with numbers of `float` bytes. `has_own` says
    /// whether runner's kernels compute convolutions and max pooling, `trained` how many numbers of each layer are
    /// trained. Blocks that are recomputed keep what later blocks use, and one of them everything else.
    pub fn kept_bytes_per_item(
        &self,
        float: u64,
        recomputed: Recomputed,
        has_own: bool,
        trained: &[u64],
    ) -> u64 {
        let kept = self.kept_bytes_of_layers(float, recomputed, has_own, trained);
        if recomputed != Recomputed::Blocks {
            return kept.into_iter().fold(0, u64::saturating_add);
        }
        let segments = self.segments();
        let of_step = |at: usize| {
            let step = segments.steps[at];
            kept[step.layer] / step.num_parts as u64
        };
        let of_segment = |range: &Range<usize>| range.clone().map(of_step).sum::<u64>();
        let most = segments.ranges.iter().map(of_segment).max().unwrap_or(0);
        let crossing = segments.crossing_values(self).saturating_mul(float);
        most.saturating_add(crossing)
    }

    /// The same for each layer, without blocks.
    fn kept_bytes_of_layers(
        &self,
        float: u64,
        recomputed: Recomputed,
        has_own: bool,
        trained: &[u64],
    ) -> Vec<u64> {
        let is_checkpointing = recomputed == Recomputed::Operations;
        let is_trained = |at: usize| {
            let owner = self.layers[at].weights.map(Weights::owner);
            trained[at] > 0 || owner.is_some_and(|owner| trained[owner] > 0)
        };
        let mut is_tracked: Vec<bool> = Vec::new();
        for (at, layer) in self.layers.iter().enumerate() {
            let mut inputs = layer.inputs.iter().filter_map(|input| input.layer);
            let is_behind = inputs.any(|input| is_tracked[input]);
            is_tracked.push(is_trained(at) || is_behind);
        }
        let kept = self.layers.iter().enumerate().map(|(at, layer)| {
            let output = values(&layer.shape);
            if !is_tracked[at] {
                // A trained layer keeps its input, which needs no memory if it is a view.
                let values = if self.readers(at).any(is_trained) {
                    output.min(layer.activations_per_item)
                } else {
                    0
                };
                return values.saturating_mul(float);
            }
            let beside = match &layer.kind {
                // The mask, as numbers, which the kernel draws again.
                LayerKind::Dropout { probability } if *probability > 0.0 && !has_own => {
                    output.saturating_mul(float)
                }
                LayerKind::Pool(pool) if pool.max => {
                    let is_own = has_own && is_pooled_by_own(&layer.kind);
                    output.saturating_mul(PLACE_BYTES[is_own as usize])
                }
                _ => 0,
            };
            let per_item = if has_own {
                kernels::kept(layer)
            } else {
                layer.activations_per_item
            };
            // Blocks are computed layer by layer.
            let joins = |norm: usize| {
                let has_both = has_own && recomputed != Recomputed::Blocks;
                has_both && self.activation_of_norm(norm).is_some()
            };
            let is_joined = at.checked_sub(1).is_some_and(joins);
            let is_anew = || is_computed_anew(&layer.kind, has_own);
            let values = if is_checkpointing && !is_joined && is_anew() {
                0
            } else if joins(at) || has_own && self.is_only_passed(at) {
                per_item.saturating_sub(output)
            } else {
                per_item
            };
            let documents = layer.kept_of_documents(has_own);
            let adapters = layer.kept_by_adapters().saturating_mul(float);
            values
                .saturating_mul(float)
                .saturating_add(beside)
                .saturating_add(documents)
                .saturating_add(adapters)
        });
        kept.collect()
    }

    /// Numbers of weights that a training step computes from others: each weight, and the factors of its backward pass.
    pub fn computed_weights(&self) -> u64 {
        const KEPT: u64 = 3;
        let layers = self.layers.iter();
        let parametrized = layers.filter(|layer| !layer.kind.parametrization().is_none());
        let numbers = parametrized.map(|layer| layer.num_parameters.saturating_mul(KEPT));
        numbers.fold(0, u64::saturating_add)
    }

    /// Whether a layer's output is read only by runner's kernels that do not keep their input: max pooling, and
    /// activations that keep their output.
    fn is_only_passed(&self, at: usize) -> bool {
        let mut readers = self.readers(at).peekable();
        readers.peek().is_some()
            && readers.all(|reader| {
                let kind = &self.layers[reader].kind;
                is_pooled_by_own(kind) || kernels::keeps_output(kind)
            })
    }

    /// The layers that use a layer's output.
    pub(super) fn readers(&self, at: usize) -> impl Iterator<Item = usize> {
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
                LayerKind::Message(_) => gradients.saturating_add(self.messages_per_item(layer)),
                _ => gradients,
            }
        };
        self.layers.iter().map(moment).max().unwrap_or(0)
    }
}

impl Layer {
    /// Bytes that a layer keeps to tell the documents of an item apart: their numbers, and where scores are stored two
    /// masks of them for each head.
    fn kept_of_documents(&self, has_own: bool) -> u64 {
        const NUMBER: u64 = 8;
        const MASKS: u64 = 2;
        if self.documents.is_none() {
            return 0;
        }
        let length = self.shape[0] as u64;
        let stored = |heads: usize, layers: usize| {
            let scores = length.saturating_mul(length).saturating_mul(heads as u64);
            scores.saturating_mul(MASKS * layers as u64)
        };
        let masks = match &self.kind {
            LayerKind::MultiHeadAttention {
                num_heads, dropout, ..
            } if !(has_own && *dropout == 0.0) => stored(*num_heads, 1),
            LayerKind::GroupedAttention(grouped) if !(has_own && self.is_grouped_by_own()) => {
                stored(grouped.num_heads, 1)
            }
            LayerKind::TransformerEncoder(stack) if !(has_own && stack.dropout == 0.0) => {
                stored(stack.num_heads, stack.num_layers)
            }
            _ => 0,
        };
        masks.saturating_add(length.saturating_mul(NUMBER))
    }
}

/// Whether runner has a kernel for a layer's max pooling.
fn is_pooled_by_own(kind: &LayerKind) -> bool {
    matches!(kind, LayerKind::Pool(pool) if kernels::is_pooled_by_own(pool))
}

/// Whether a layer consists only of operations that autodiff calls memory-bound.
fn is_computed_anew(kind: &LayerKind, has_own: bool) -> bool {
    match kind {
        LayerKind::Activation(_) if has_own && kernels::has_kernel(kind) => {
            !kernels::keeps_output(kind)
        }
        LayerKind::Dropout { .. } => has_own,
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

pub(super) fn values(shape: &[usize]) -> u64 {
    let sizes = shape.iter().map(|size| *size as u64);
    sizes.fold(1, u64::saturating_mul)
}
