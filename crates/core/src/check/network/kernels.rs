//! Which layers runner has kernels for.

use std::collections::BTreeMap;

use super::{Layer, Network, cost};
use crate::spec::backend::{Backend, Kernels, Precision};
use crate::spec::model::activation::Activation;
use crate::spec::model::layer::{Cell, FeedforwardActivation, LayerKind, Norm, Pairwise, Pool};

impl Network {
    /// Whether runner's or Burn's kernels compute each layer on a device, by its name. Layers that only reshape are
    /// omitted.
    pub fn computed_by(
        &self,
        kernels: Kernels,
        backend: Backend,
        precision: Precision,
    ) -> BTreeMap<String, String> {
        let are_own = kernels.are_own(backend, precision);
        let layers = self.layers.iter().filter(|layer| !is_view(&layer.kind));
        let whose = |is_own: bool| if is_own { "runner" } else { "burn" };
        layers
            .map(|layer| {
                let is_own = are_own && (has_kernel(&layer.kind) || layer.is_grouped_by_own());
                (layer.name.clone(), whose(is_own).to_owned())
            })
            .collect()
    }

    /// The activation that a norm's kernel applies in the same pass: that of the next layer, if no other layer uses the
    /// norm's output. Neither that output nor a copy of it is kept then, because the backward pass computes it again.
    pub fn activation_of_norm(&self, at: usize) -> Option<&Activation> {
        let (norm, next) = (&self.layers[at], self.layers.get(at + 1)?);
        let has_both = match &norm.kind {
            LayerKind::Norm(Norm::Group { .. } | Norm::Instance { .. }) => true,
            // Frozen, or below adapters, it is computed by Burn.
            LayerKind::Norm(Norm::Batch { .. }) => !norm.freeze && !self.has_adapters(),
            _ => false,
        };
        let LayerKind::Activation(activation) = &next.kind else {
            return None;
        };
        let is_of_numbers = !matches!(
            activation,
            Activation::Softmax | Activation::LogSoftmax | Activation::Glu
        );
        let is_joined = has_both && is_of_numbers && is_activated_by_own(activation);
        (is_joined && self.readers(at).eq([at + 1])).then_some(activation)
    }
}

fn is_view(kind: &LayerKind) -> bool {
    matches!(
        kind,
        LayerKind::Flatten { .. }
            | LayerKind::Reshape { .. }
            | LayerKind::Unsqueeze { .. }
            | LayerKind::Squeeze { .. }
            | LayerKind::Permute { .. }
            | LayerKind::Slice { .. }
            | LayerKind::Identity
    )
}

/// Whether runner has a kernel for a layer with its settings.
pub fn has_kernel(kind: &LayerKind) -> bool {
    match kind {
        LayerKind::Pool(pool) if pool.max => is_pooled_by_own(pool),
        LayerKind::Pool(pool) => !pool.ceil_mode,
        LayerKind::Activation(activation) => is_activated_by_own(activation),
        LayerKind::Linear { .. }
        | LayerKind::Conv(_)
        | LayerKind::ConvTranspose(_)
        | LayerKind::AdaptiveAvgPool { .. }
        | LayerKind::Interpolate { .. }
        | LayerKind::Norm(_)
        | LayerKind::Concat { .. }
        | LayerKind::Dropout { .. }
        | LayerKind::Embedding { .. }
        | LayerKind::Recurrent(_)
        | LayerKind::LinearScan { .. }
        | LayerKind::Prelu { .. }
        | LayerKind::Swiglu { .. }
        | LayerKind::TransformerEncoder(_)
        | LayerKind::TransformerDecoder(_) => true,
        // With dropout, the weights have to be stored.
        LayerKind::MultiHeadAttention { dropout, .. } => *dropout == 0.0,
        _ => false,
    }
}

/// Whether runner has a kernel for a max pooling.
pub(super) fn is_pooled_by_own(pool: &Pool) -> bool {
    let has_near_taps = pool.dilation.iter().all(|dilation| *dilation == 1);
    let num_taps = pool
        .kernel_size
        .iter()
        .fold(1, |n: usize, k| n.saturating_mul(*k));
    pool.max && !pool.ceil_mode && has_near_taps && num_taps <= 256
}

/// Whether a layer is an activation whose kernel needs its output in the backward pass, and not its input.
pub(super) fn keeps_output(kind: &LayerKind) -> bool {
    let LayerKind::Activation(activation) = kind else {
        return false;
    };
    match activation {
        Activation::Relu
        | Activation::Relu6
        | Activation::Tanh
        | Activation::Sigmoid
        | Activation::Exp
        | Activation::Softmax
        | Activation::LogSoftmax => true,
        Activation::Hardtanh { min, max } => min < max,
        _ => false,
    }
}

/// Whether a layer's kernel needs its output in the backward pass.
pub(super) fn needs_output(kind: &LayerKind) -> bool {
    let has_states = matches!(kind, LayerKind::Recurrent(_) | LayerKind::LinearScan { .. });
    keeps_output(kind) || has_states
}

/// Whether a layer's backward pass needs its input. `has_own` says whether runner's kernels compute it where there are
/// some, `is_trained` whether any of its weights is.
pub(super) fn keeps_input(layer: &Layer, has_own: bool, is_trained: bool) -> bool {
    match &layer.kind {
        // Sums, and products with what is not trained.
        LayerKind::Add
        | LayerKind::Pairwise {
            operation: Pairwise::Subtract,
        }
        | LayerKind::Concat { .. }
        | LayerKind::Dropout { .. }
        | LayerKind::ChannelDropout { .. }
        | LayerKind::StochasticDepth { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::Activation(Activation::Scale { .. }) => false,
        LayerKind::Linear { .. } | LayerKind::Conv(_) | LayerKind::ConvTranspose(_) => {
            is_trained || !layer.adapters.is_empty()
        }
        LayerKind::Pool(pool) if pool.max => !(has_own && is_pooled_by_own(pool)),
        kind @ (LayerKind::Pool(_)
        | LayerKind::AdaptiveAvgPool { .. }
        | LayerKind::Interpolate { .. }) => !(has_own && has_kernel(kind)),
        kind => !(has_own && keeps_output(kind)),
    }
}

/// Values of one item that a layer's kernels keep for the backward pass, including its output.
pub(super) fn kept(layer: &Layer) -> u64 {
    let input = &layer.inputs[0].shape.dims;
    let last = &layer.inputs[layer.values().len() - 1].shape.dims;
    let [length, memory] = [input, last].map(|dims| dims.first().copied().unwrap_or(1) as u64);
    let width = input.last().copied().unwrap_or(1) as u64;
    let times = |sizes: &[u64]| sizes.iter().fold(1, |n: u64, size| n.saturating_mul(*size));
    // Queries, attention outputs and projections; keys and values; a number for each row of scores.
    let attention = |memory: u64, heads: usize| {
        let rows = times(&[length, heads as u64]);
        let numbers = [times(&[3, length, width]), times(&[2, memory, width]), rows];
        numbers.into_iter().fold(0, u64::saturating_add)
    };
    match &layer.kind {
        // The states.
        LayerKind::LinearScan { .. } => cost::times(&layer.shape),
        LayerKind::Recurrent(recurrent) => {
            // Gates and states; and the output, in which both directions are joined.
            let gates = match recurrent.cell {
                Cell::Rnn => 2,
                Cell::Gru => 5,
                Cell::Lstm => 6,
            };
            let directions = 1 + u64::from(recurrent.bidirectional);
            let hidden = recurrent.hidden_size as u64;
            let both = u64::from(recurrent.bidirectional);
            times(&[length, directions, hidden, gates + both])
        }
        LayerKind::MultiHeadAttention {
            num_heads, dropout, ..
        } if *dropout == 0.0 => attention(memory, *num_heads),
        LayerKind::GroupedAttention(grouped) if layer.is_grouped_by_own() => {
            let head_dim = grouped.head_dim(width as usize) as u64;
            let [queries, shared] = [grouped.num_heads, grouped.num_kv_heads]
                .map(|heads| times(&[length, heads as u64, head_dim]));
            let before = 1 + u64::from(grouped.qk_norm) + 3 * u64::from(grouped.rotary.is_some());
            let projected = times(&[before, queries.saturating_add(shared)]);
            // Keys and values for each head of queries; the context; and a number for each row of scores.
            let numbers = [
                projected,
                shared,
                times(&[4, queries]),
                times(&[length, width]),
                times(&[length, grouped.num_heads as u64]),
            ];
            numbers.into_iter().fold(0, u64::saturating_add)
        }
        LayerKind::TransformerEncoder(stack) | LayerKind::TransformerDecoder(stack)
            if stack.dropout == 0.0 =>
        {
            let is_decoder = matches!(layer.kind, LayerKind::TransformerDecoder(_));
            let cross = if is_decoder {
                attention(memory, stack.num_heads).saturating_add(times(&[2, length, width]))
            } else {
                0
            };
            // Relu keeps only its output.
            let rows = match stack.activation {
                FeedforwardActivation::Relu => 1,
                _ => 2,
            };
            let feedforward = times(&[rows, length, stack.feedforward_size as u64]);
            let of_layer = [
                attention(length, stack.num_heads),
                cross,
                feedforward,
                times(&[3, length, width]),
            ];
            let of_layer = of_layer.into_iter().fold(0, u64::saturating_add);
            times(&[stack.num_layers as u64, of_layer])
        }
        // Both halves, that of silu before and after it, and their product.
        LayerKind::Swiglu { .. } => times(&[4, cost::times(&layer.shape)]),
        LayerKind::Activation(_) | LayerKind::Norm(_) | LayerKind::Prelu { .. }
            if has_kernel(&layer.kind) =>
        {
            cost::times(&layer.shape)
        }
        _ => layer.activations_per_item,
    }
}

impl Layer {
    /// Whether runner has a kernel for a layer in which heads of queries share keys: only for documents that are kept
    /// apart, which it does not score against each other.
    pub(super) fn is_grouped_by_own(&self) -> bool {
        match &self.kind {
            LayerKind::GroupedAttention(grouped) => {
                let is_plain = !grouped.alibi && grouped.window.is_none();
                self.documents.is_some() && is_plain && grouped.dropout == 0.0
            }
            _ => false,
        }
    }
}

fn is_activated_by_own(activation: &Activation) -> bool {
    match *activation {
        Activation::Rrelu { lower, upper } => lower == upper,
        Activation::HardShrink { lambda }
        | Activation::SoftShrink { lambda }
        | Activation::Shrink { lambda, .. } => lambda >= 0.0,
        Activation::Abs
        | Activation::Power { .. }
        | Activation::Scale { .. }
        | Activation::Sparsemax => false,
        _ => true,
    }
}
