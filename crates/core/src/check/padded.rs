//! Layers that mix padding with real positions, in a network that has a mask of them.

use super::Point;
use super::network::masks::is_mask;
use super::network::{Input, Layer, Network, axes};
use crate::diagnostic::Diagnostic;
use crate::spec::kind::Padding;
use crate::spec::model::layer::{LayerKind, Norm, Reduction, Steps};
use crate::spec::model::layer_spec::MaskKey;

/// Where padding is in the output of a layer.
#[derive(Clone, Copy)]
struct Padded {
    axis: usize,
    /// Whether it is 0 there.
    is_zero: bool,
}

const USE_MASK: &str = "set `mask`, as other layers do";
const CLEAR: &str =
    "multiply its input by the mask, so that padding is 0, or remove padding from the data";

/// The first layer that computes real positions from padding, although the network has a mask of them.
pub fn padding_is_left_out(point: &Point<'_>) -> Option<Diagnostic> {
    let network = point.network?;
    let masked = masked_sources(network);
    if masked.is_empty() {
        return None;
    }
    let mut known: Vec<Option<Padded>> = Vec::with_capacity(network.layers.len());
    for (at, (layer, written)) in network
        .layers
        .iter()
        .zip(&point.spec.model.layers)
        .enumerate()
    {
        let of = |input: &Input| match input.layer {
            _ if masked.contains(&(input.layer, input.part)) => Some(Padded {
                axis: 0,
                is_zero: false,
            }),
            Some(from) => known[from],
            None => None,
        };
        let values = layer.values();
        let padded = values.first().and_then(of);
        if is_mask(network, Some(at)) || padded.is_none() {
            known.push(None);
            continue;
        }
        let padded = padded?;
        // What a preset does was decided there.
        if written.place.preset.is_none()
            && let Some((wrong, help)) = mixes(layer, padded)
        {
            let message = format!("`{}` {wrong}, although the network has a mask", layer.name);
            let diagnostic = Diagnostic::warning("contradiction", message);
            return Some(written.point(diagnostic, "type").help(help));
        }
        known.push(after(network, layer, padded));
    }
    None
}

/// Where the masks that layers use come from: a layer, or an input.
fn masked_sources(network: &Network) -> Vec<(Option<usize>, Option<usize>)> {
    let masks = network
        .layers
        .iter()
        .filter(|layer| matches!(layer.kind, LayerKind::PaddingMask { .. }));
    let sources = masks.filter_map(|mask| mask.inputs.first());
    sources.map(|input| (input.layer, input.part)).collect()
}

/// How a layer mixes padding with real positions, and what to do, if it does.
fn mixes(layer: &Layer, padded: Padded) -> Option<(&'static str, &'static str)> {
    let has_mask = layer.mask(MaskKey::Mask).is_some();
    let rank = layer.inputs[0].shape.dims.len();
    match &layer.kind {
        LayerKind::MultiHeadAttention { .. }
        | LayerKind::GroupedAttention(_)
        | LayerKind::TransformerEncoder(_)
            if !has_mask && padded.axis == 0 && layer.values().len() == 1 =>
        {
            Some(("attends to padding", USE_MASK))
        }
        LayerKind::Recurrent(recurrent) if !has_mask && padded.axis == 0 => {
            let is_one_way = recurrent.output == Steps::Sequence && !recurrent.bidirectional;
            // Real positions come first.
            (!is_one_way).then_some(("continues its state in padding", USE_MASK))
        }
        LayerKind::Reduce { axis, operation }
            if !(has_mask || padded.is_zero && *operation == Reduction::Sum) =>
        {
            let axis = axes::resolve(*axis, rank, "axis").ok()?;
            (axis == padded.axis).then_some(("reduces padding with real positions", USE_MASK))
        }
        LayerKind::Norm(Norm::Batch { .. } | Norm::Instance { .. } | Norm::Group { .. })
            if padded.axis > 0 =>
        {
            Some((
                "computes its statistics with padding",
                "use `layer_norm` or `rms_norm`, which normalize each position on its own",
            ))
        }
        LayerKind::Conv(conv)
            if padded.axis > 0
                && !padded.is_zero
                && conv.padding != Padding::Causal
                && conv
                    .kernel_size
                    .get(padded.axis - 1)
                    .is_some_and(|size| *size > 1) =>
        {
            Some(("slides over the end of real positions into padding", CLEAR))
        }
        LayerKind::LinearScan { reverse: true } if padded.axis == 0 && !padded.is_zero => {
            Some(("begins its states in padding", CLEAR))
        }
        LayerKind::Fourier(fourier)
            if !padded.is_zero
                && fourier.axes.iter().any(|axis| {
                    axes::resolve(*axis, rank, "axes").is_ok_and(|axis| axis == padded.axis)
                }) =>
        {
            Some(("transforms padding with real positions", CLEAR))
        }
        LayerKind::AdaptiveAvgPool { .. } if padded.axis > 0 && !padded.is_zero => Some((
            "averages padding with real positions",
            "use `mean` with `mask`",
        )),
        _ => None,
    }
}

/// Where padding is after a layer; none where it is no axis of its own any more, or not known.
fn after(network: &Network, layer: &Layer, padded: Padded) -> Option<Padded> {
    let rank = layer.inputs[0].shape.dims.len();
    let is_last = padded.axis + 1 == rank;
    let unknown = Padded {
        is_zero: false,
        ..padded
    };
    match &layer.kind {
        LayerKind::Embedding { .. } => Some(unknown),
        LayerKind::Linear { .. }
        | LayerKind::Swiglu { .. }
        | LayerKind::PositionEmbedding { .. }
        | LayerKind::PositionalEncoding { .. }
        | LayerKind::RotaryEncoding { .. }
        | LayerKind::Norm(Norm::Layer { .. } | Norm::Rms { .. }) => (!is_last).then_some(unknown),
        LayerKind::MultiHeadAttention { .. }
        | LayerKind::GroupedAttention(_)
        | LayerKind::TransformerEncoder(_)
        | LayerKind::TransformerDecoder(_) => (padded.axis == 0).then_some(unknown),
        LayerKind::Recurrent(recurrent) => {
            let is_zero = layer.mask(MaskKey::Mask).is_some();
            (recurrent.output == Steps::Sequence).then_some(Padded { is_zero, ..padded })
        }
        LayerKind::Activation(_) | LayerKind::Prelu { .. } | LayerKind::LinearScan { .. } => {
            Some(unknown)
        }
        LayerKind::Identity | LayerKind::Dropout { .. } | LayerKind::StochasticDepth { .. } => {
            Some(padded)
        }
        LayerKind::Multiply => {
            let mut inputs = layer.inputs.iter();
            let is_cleared = inputs.any(|input| is_mask(network, input.layer));
            Some(Padded {
                is_zero: padded.is_zero || is_cleared,
                ..padded
            })
        }
        LayerKind::Add => Some(unknown),
        LayerKind::Permute { axes } => {
            let axis = axes.iter().position(|axis| {
                axes::resolve(*axis, rank, "axes").is_ok_and(|axis| axis == padded.axis)
            });
            axis.map(|axis| Padded { axis, ..padded })
        }
        LayerKind::Conv(conv) if padded.axis > 0 => {
            let is_kept = conv.stride.iter().all(|stride| *stride == 1);
            is_kept.then_some(unknown)
        }
        LayerKind::Norm(_) => Some(unknown),
        _ => None,
    }
}
