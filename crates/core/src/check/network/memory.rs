//! What a training step keeps of a network's values, for one item.
//!
//! Burn's autodiff keeps what a backward step asks for. As of burn-autodiff 0.22.1, a trained linear layer and
//! convolution keep their input, an activation its input, a max pooling its input and the positions of the maxima, a
//! product both factors, a sum neither. So the output of a layer is kept if a layer that uses it asks for its input, or
//! if the layer itself needs it, and [`super::cost::activations`] counts it with what else a layer keeps. Runner's
//! poolings keep at most positions, and some of its activations only their output; neither does a norm keep what it
//! passes to its activation; its recurrent layers and attention keep less than Burn's. Layers before the first trained
//! layer have no backward pass, and keep nothing.
//!
//! With gradient checkpointing, memory-bound operations keep a way to recompute their output from values that are kept
//! anyway; where these are not, nothing is saved. Random operations, matrix products, convolutions, poolings and
//! reductions are kept in both cases.

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
        // Whether each layer's output is there for the backward pass in any case, and what is recomputed from that.
        let is_asked_for = |(at, layer): (usize, &Layer)| {
            let mut readers = self.readers(at).peekable();
            let is_last = readers.peek().is_none();
            let asks =
                |reader| kernels::keeps_input(&self.layers[reader], has_own, is_trained(reader));
            is_last || (has_own && kernels::needs_output(&layer.kind)) || readers.any(asks)
        };
        let is_asked_for: Vec<bool> = self.layers.iter().enumerate().map(is_asked_for).collect();
        // Blocks are computed layer by layer.
        let joins = |norm: usize| {
            let has_both = has_own && recomputed != Recomputed::Blocks;
            has_both && self.activation_of_norm(norm).is_some()
        };
        let mut is_anew: Vec<bool> = Vec::new();
        for (at, layer) in self.layers.iter().enumerate() {
            let is_joined = at.checked_sub(1).is_some_and(joins);
            let mut inputs = layer.inputs.iter().filter_map(|input| input.layer);
            let from = |input: usize| is_anew[input] || is_asked_for[input];
            let is_cheap = is_checkpointing && !is_joined && is_computed_anew(&layer.kind, has_own);
            is_anew.push(is_cheap && inputs.all(from));
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
                    let is_own = has_own && kernels::is_pooled_by_own(pool);
                    output.saturating_mul(PLACE_BYTES[is_own as usize])
                }
                // The masks of attentions.
                _ if !has_own => {
                    let scores = layer.stored_scores(has_own);
                    let masks = scores.each.saturating_mul(scores.dropped);
                    masks.saturating_mul(float)
                }
                _ => 0,
            };
            let per_item = if has_own {
                kernels::kept(layer)
            } else {
                layer.activations_per_item
            };
            let values = if is_anew[at] {
                0
            } else if joins(at) || !is_asked_for[at] {
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

    /// The layers that use a layer's output.
    pub(super) fn readers(&self, at: usize) -> impl Iterator<Item = usize> {
        let reads = move |layer: &Layer| layer.inputs.iter().any(|input| input.layer == Some(at));
        let layers = self.layers.iter().enumerate();
        layers.filter_map(move |(reader, layer)| reads(layer).then_some(reader))
    }

    /// The largest number of values of one item that the backward pass holds temporarily, in addition to what is kept:
    /// the gradients of a layer's output and inputs, and the copies that Burn's convolutions on `flex` make of input and
    /// gradient, with channels last and with padding.
    pub fn moment_per_item(&self, is_flex: bool, has_own: bool) -> u64 {
        let moment = |layer: &Layer| {
            let inputs = layer.inputs.iter().map(|input| values(&input.shape.dims));
            let output = match &layer.kind {
                // Every step has a gradient, also where only the last one is passed on.
                LayerKind::Recurrent(recurrent) => {
                    let directions = 1 + u64::from(recurrent.bidirectional);
                    let steps = layer.inputs[0].shape.dims[0] as u64;
                    values(&[recurrent.hidden_size])
                        .saturating_mul(directions.saturating_mul(steps))
                }
                _ => values(&layer.shape),
            };
            let gradients = inputs.fold(output, u64::saturating_add);
            match &layer.kind {
                LayerKind::Conv(conv) if is_flex && !has_own => {
                    gradients.saturating_mul(if conv.dims == 3 { 4 } else { 3 })
                }
                LayerKind::ConvTranspose(_) if is_flex && !has_own => gradients.saturating_mul(3),
                LayerKind::Message(_) => gradients.saturating_add(self.messages_per_item(layer)),
                // The gradients of weights and of scores.
                _ => gradients.saturating_add(layer.stored_scores(has_own).each.saturating_mul(2)),
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
        let scores = self.stored_scores(has_own);
        let masks = scores.each.saturating_mul(MASKS * scores.attentions);
        let numbers = (self.shape[0] as u64).saturating_mul(NUMBER);
        masks.saturating_add(numbers)
    }

    /// The scores of an item that a layer's attentions store; none if runner's kernels compute them.
    fn stored_scores(&self, has_own: bool) -> StoredScores {
        let [length, memory] = [0, self.values().len().saturating_sub(1)]
            .map(|at| self.inputs[at].shape.dims.first().copied().unwrap_or(1));
        let (heads, keys, attentions, dropout) = match &self.kind {
            LayerKind::MultiHeadAttention {
                num_heads, dropout, ..
            } => (*num_heads, memory, 1, *dropout),
            LayerKind::GroupedAttention(grouped) => (grouped.num_heads, memory, 1, grouped.dropout),
            LayerKind::TransformerEncoder(stack) => {
                (stack.num_heads, length, stack.num_layers, stack.dropout)
            }
            LayerKind::TransformerDecoder(stack) => {
                let keys = length.max(memory);
                (stack.num_heads, keys, 2 * stack.num_layers, stack.dropout)
            }
            _ => return StoredScores::default(),
        };
        let is_own = match &self.kind {
            LayerKind::GroupedAttention(_) => self.is_grouped_by_own(),
            _ => dropout == 0.0,
        };
        if has_own && is_own {
            return StoredScores::default();
        }
        StoredScores {
            each: values(&[heads, length, keys]),
            attentions: attentions as u64,
            dropped: if dropout > 0.0 { attentions as u64 } else { 0 },
        }
    }
}

/// The scores of an item that attentions of a layer store.
#[derive(Clone, Copy, Debug, Default)]
struct StoredScores {
    /// Those of one attention.
    each: u64,
    /// The number of attentions.
    attentions: u64,
    /// The number of those that drop some in training.
    dropped: u64,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::network::examples::network;

    /// Numbers that are kept of an item with four, by rows of eight.
    fn kept(layers: &str, has_own: bool, recomputed: Recomputed) -> u64 {
        let network = network(&[4], layers);
        let trained: Vec<u64> = network
            .layers
            .iter()
            .map(|layer| layer.num_parameters)
            .collect();
        let kept = network.kept_bytes_per_item(1, recomputed, has_own, &trained);
        assert!(kept.is_multiple_of(8));
        kept / 8
    }

    #[test]
    fn outputs_are_kept_that_a_backward_pass_asks_for() {
        let linear = "{ type = 'linear', out_features = 8 }";
        let between = |layer: &str| format!("{linear}, {{ type = '{layer}' }}, {linear}");
        let residual = format!(
            "{{ type = 'linear', out_features = 8, name = 'a' }}, {{ type = 'linear', out_features = 8, name = 'b' }}, {{ type = 'add', inputs = ['a', 'b'] }}, {linear}"
        );
        // By runner's kernels, with checkpointing, and by Burn's; the last output is always kept.
        for (layers, expected) in [
            (format!("{linear}, {linear}"), [2, 2, 2]),
            (between("gelu"), [3, 2, 3]),
            (between("tanh"), [2, 2, 3]),
            (between("hardtanh"), [2, 2, 3]),
            // Burn keeps the mask.
            (between("dropout"), [2, 2, 3]),
            // What the sum is computed from is not kept, so it is.
            (residual, [3, 3, 3]),
        ] {
            let found = [
                kept(&layers, true, Recomputed::Nothing),
                kept(&layers, true, Recomputed::Operations),
                kept(&layers, false, Recomputed::Nothing),
            ];
            assert_eq!(found, expected, "{layers}");
        }
    }
}
