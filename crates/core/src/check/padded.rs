//! Layers that mix padding with real positions, in a network that has a mask of them.

use super::Point;
use super::network::einsum::Equation;
use super::network::masks::is_mask;
use super::network::{Input, Layer, Network, axes};
use crate::diagnostic::Diagnostic;
use crate::spec::data::{DataSource, Scale};
use crate::spec::kind::Padding;
use crate::spec::model::activation::Activation;
use crate::spec::model::layer::{LayerKind, Norm, Reduction, Steps};
use crate::spec::model::layer_spec::MaskKey;
use crate::spec::section::Choice;

/// Where padding is in the output of a layer.
#[derive(Clone, Copy)]
struct Padded {
    axis: usize,
    /// Whether it is 0 there.
    is_zero: bool,
}

const USE_MASK: &str = "set `mask`, as other layers do";
const USE_MEMORY_MASK: &str = "set `memory_mask` to the mask of the second input";
const USE_MEAN: &str = "use `mean` with `mask`";
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
                // The usual padding of series is 0, that of tokens has an embedding.
                is_zero: input.shape.vocabulary.is_none(),
            }),
            Some(from) => known[from],
            None => None,
        };
        let values = layer.values();
        let of_each: Vec<Option<Padded>> = values.iter().map(of).collect();
        if is_mask(network, Some(at)) || of_each.iter().all(Option::is_none) {
            known.push(None);
            continue;
        }
        // What a preset does was decided there.
        let is_own = written.place.preset.is_none();
        let first = of_each.first().copied().flatten();
        let mixed = first.and_then(|padded| mixes(layer, padded));
        let mixed = mixed.or_else(|| attends(layer, &of_each));
        let mixed = mixed.or_else(|| sums_over(network, layer, &of_each));
        if let Some((wrong, help)) = mixed.filter(|_| is_own) {
            let message = format!("`{}` {wrong}, although the network has a mask", layer.name);
            let diagnostic = Diagnostic::warning("contradiction", message);
            return Some(written.point(diagnostic, "type").help(help));
        }
        known.push(after(network, layer, &of_each));
    }
    None
}

/// A mask of numbers that are scaled: padding is 0 in the data, and another number in the network.
pub fn masks_find_padding(point: &Point<'_>) -> Option<Diagnostic> {
    let (network, data) = (point.network?, point.data?);
    let DataSource::Files(files) = &point.spec.data.source else {
        return None;
    };
    let keeps_zero = files
        .roles
        .columns
        .iter()
        .any(|column| column.scale == Some(Scale::None));
    if !matches!(data.scale, Scale::Standardize | Scale::MinMax) || keeps_zero {
        return None;
    }
    let mut layers = network.layers.iter().zip(&point.spec.model.layers);
    let (_, written) = layers.find(|(layer, _)| {
        let is_of_items = layer.inputs.first().is_some_and(|input| {
            input.layer.is_none() && input.shape.vocabulary.is_none()
        });
        let is_of_zero = matches!(&layer.kind, LayerKind::PaddingMask { padding } if padding.unwrap_or(0.0) == 0.0);
        is_of_items && is_of_zero
    })?;
    let message = format!(
        "`{}` masks 0, but items are scaled by \"{}\", after which padding is another number",
        written.name,
        data.scale.name()
    );
    let diagnostic = Diagnostic::warning("contradiction", message);
    Some(written.point(diagnostic, "type").help(
        "set `scale = \"none\"` under `[data]`, and scale the numbers in the file if they need it",
    ))
}

/// Whether a layer attends to padding of the sequences that it gets.
fn attends(layer: &Layer, of_each: &[Option<Padded>]) -> Option<(&'static str, &'static str)> {
    const WRONG: &str = "attends to padding";
    let is_padded = |at: usize| {
        let padded = of_each.get(at).copied().flatten();
        padded.is_some_and(|padded| padded.axis == 0)
    };
    let [has_mask, has_memory_mask] =
        [MaskKey::Mask, MaskKey::MemoryMask].map(|key| layer.mask(key).is_some());
    // Real positions come first, and attend to none that comes later.
    let own = |causal: bool| !has_mask && !causal && is_padded(0);
    let (wrong, help) = match &layer.kind {
        LayerKind::MultiHeadAttention { .. } | LayerKind::GroupedAttention(_)
            if of_each.len() > 1 =>
        {
            (
                !has_mask && is_padded(1),
                "set `mask` to the mask of the second input",
            )
        }
        LayerKind::MultiHeadAttention { causal, .. } => (own(*causal), USE_MASK),
        LayerKind::GroupedAttention(attention) => (own(attention.causal), USE_MASK),
        LayerKind::TransformerEncoder(stack) => (own(stack.causal), USE_MASK),
        LayerKind::TransformerDecoder(stack) if own(stack.causal) => (true, USE_MASK),
        LayerKind::TransformerDecoder(_) => (!has_memory_mask && is_padded(1), USE_MEMORY_MASK),
        _ => return None,
    };
    wrong.then_some((WRONG, help))
}

/// Whether a product of two inputs sums over padding. It adds nothing where one of the factors is 0.
fn sums_over(
    network: &Network,
    layer: &Layer,
    of_each: &[Option<Padded>],
) -> Option<(&'static str, &'static str)> {
    let is_summed = |at: usize, axis: usize| match &layer.kind {
        // The rows of the second matrix belong to the columns of the first one.
        LayerKind::Matmul => axis + at + 1 == layer.inputs[at].shape.dims.len(),
        LayerKind::Einsum { equation } => Equation::parse(equation).is_ok_and(|equation| {
            let letter = equation
                .operands
                .get(at)
                .and_then(|letters| letters.get(axis));
            letter.is_some_and(|letter| !equation.output.contains(letter))
        }),
        _ => false,
    };
    let summed = of_each.iter().enumerate();
    let summed = summed.filter_map(|(at, padded)| padded.filter(|it| is_summed(at, it.axis)));
    let summed: Vec<Padded> = summed.collect();
    // A mask over the same axis makes it 0.
    let mut inputs = layer.inputs.iter().enumerate();
    let is_masked = inputs.any(|(at, input)| {
        let mut axes = 0..input.shape.dims.len();
        is_mask(network, input.layer) && axes.any(|axis| is_summed(at, axis))
    });
    let is_cleared = is_masked || summed.iter().any(|padded| padded.is_zero);
    let is_mixed = !summed.is_empty() && !is_cleared;
    is_mixed.then_some(("sums over padding", CLEAR))
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
        LayerKind::Norm(Norm::Layer { .. } | Norm::Rms { .. }) if padded.axis + 1 == rank => {
            Some((
                "normalizes real positions with padding",
                "put it before `permute`, where it normalizes the features of each position",
            ))
        }
        LayerKind::Pool(pool)
            if padded.axis > 0
                && !padded.is_zero
                && pool
                    .kernel_size
                    .get(padded.axis - 1)
                    .is_some_and(|size| *size > 1) =>
        {
            Some(("pools real positions with padding", CLEAR))
        }
        LayerKind::Roll { axis, .. }
            if axes::resolve(*axis, rank, "axis").is_ok_and(|axis| axis == padded.axis) =>
        {
            Some((
                "moves padding before real positions",
                "remove padding from the data, or do not shift positions",
            ))
        }
        LayerKind::Activation(Activation::Softmax | Activation::LogSoftmax)
            if padded.axis + 1 == rank =>
        {
            Some((
                "gives padding a share of the sum",
                "use `mean` or attention with `mask`, which give it none",
            ))
        }
        LayerKind::LinearScan { reverse: true } if padded.axis == 0 && !padded.is_zero => {
            Some(("begins its states in padding", CLEAR))
        }
        LayerKind::Fourier(fourier)
            if fourier.axes.iter().any(|axis| {
                axes::resolve(*axis, rank, "axes").is_ok_and(|axis| axis == padded.axis)
            }) =>
        {
            // Also of zeros: frequencies depend on the length.
            Some((
                "transforms padding with real positions",
                "remove padding from the data, or transform features alone with `axes`",
            ))
        }
        // Also of zeros: they count.
        LayerKind::AdaptiveAvgPool { .. } if padded.axis > 0 => {
            Some(("averages padding with real positions", USE_MEAN))
        }
        _ => None,
    }
}

/// Where padding is after a layer; none where it is no axis of its own any more, or not known.
fn after(network: &Network, layer: &Layer, of_each: &[Option<Padded>]) -> Option<Padded> {
    let first = of_each.iter().position(Option::is_some)?;
    let padded = of_each[first]?;
    let rank = layer.inputs[first].shape.dims.len();
    let is_last = padded.axis + 1 == rank;
    let unknown = Padded {
        is_zero: false,
        ..padded
    };
    let is_zero = of_each
        .iter()
        .all(|each| each.is_some_and(|each| each.is_zero));
    match &layer.kind {
        LayerKind::Embedding { .. } => Some(unknown),
        LayerKind::Linear { .. }
        | LayerKind::Swiglu { .. }
        | LayerKind::PositionEmbedding { .. }
        | LayerKind::PositionalEncoding { .. }
        | LayerKind::RotaryEncoding { .. } => (!is_last).then_some(unknown),
        LayerKind::MultiHeadAttention { .. }
        | LayerKind::GroupedAttention(_)
        | LayerKind::TransformerEncoder(_)
        | LayerKind::TransformerDecoder(_) => (first == 0 && padded.axis == 0).then_some(unknown),
        LayerKind::Recurrent(recurrent) => {
            let is_zero = layer.mask(MaskKey::Mask).is_some();
            (recurrent.output == Steps::Sequence).then_some(Padded { is_zero, ..padded })
        }
        LayerKind::Activation(_)
        | LayerKind::Prelu { .. }
        | LayerKind::LinearScan { .. }
        | LayerKind::Norm(_) => Some(unknown),
        LayerKind::Identity
        | LayerKind::Dropout { .. }
        | LayerKind::ChannelDropout { .. }
        | LayerKind::StochasticDepth { .. } => Some(padded),
        LayerKind::Multiply => {
            let mut inputs = layer.inputs.iter();
            let is_cleared = inputs.any(|input| is_mask(network, input.layer));
            Some(Padded {
                is_zero: is_cleared || of_each.iter().flatten().any(|each| each.is_zero),
                ..padded
            })
        }
        LayerKind::Add => Some(Padded { is_zero, ..padded }),
        LayerKind::Pairwise { .. } => Some(unknown),
        LayerKind::Concat { axis } => {
            let axis = axes::resolve(*axis, rank, "axis").ok()?;
            (axis != padded.axis).then_some(Padded { is_zero, ..padded })
        }
        LayerKind::Permute { axes } => {
            let axis = axes.iter().position(|axis| {
                axes::resolve(*axis, rank, "axes").is_ok_and(|axis| axis == padded.axis)
            });
            axis.map(|axis| Padded { axis, ..padded })
        }
        LayerKind::Unsqueeze { axis } => {
            let axis = axes::resolve(*axis, rank + 1, "axis").ok()?;
            let axis = padded.axis + usize::from(axis <= padded.axis);
            Some(Padded { axis, ..padded })
        }
        LayerKind::Squeeze { axis } => {
            let axis = axes::resolve(*axis, rank, "axis").ok()?;
            let axis = padded.axis.checked_sub(usize::from(axis < padded.axis))?;
            Some(Padded { axis, ..padded })
        }
        LayerKind::Conv(_) | LayerKind::Pool(_) => (padded.axis > 0).then_some(unknown),
        _ => None,
    }
}
