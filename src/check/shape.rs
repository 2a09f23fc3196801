//! The shape that each layer gives for the shapes that reach it, or why it cannot.
//!
//! Sizes are those of Burn's modules; the tests of `train` hold every kind of layer to that.

use super::network::Input;
use crate::spec::expand::LayerSpec;
use crate::spec::kind::Padding;
use crate::spec::layer::{LayerKind, Norm, Pool, Recurrent, Steps, Transformer};

/// More dimensions than this, the batch not counted, have no tensor.
pub const MAX_RANK: usize = 4;

/// Why a layer does not fit what reaches it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// The key of the layer to point at.
    pub key: &'static str,
    /// What is wrong, to stand behind the layer's name.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

fn wrong<T>(
    key: &'static str,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Result<T, Mismatch> {
    Err(Mismatch {
        key,
        message: message.into(),
        help: help.into(),
    })
}

type Dims = Vec<usize>;

/// The shape of a layer's output. `wanted` is what the task asks of the network, for sizes that are not
/// written.
pub fn output(spec: &LayerSpec, inputs: &[Input], wanted: &[usize]) -> Result<Dims, Mismatch> {
    check_inputs(&spec.kind, inputs)?;
    let input = inputs[0].shape.dims.as_slice();
    let shape = match &spec.kind {
        LayerKind::Embedding { embedding_dim, .. } => vec![input[0], *embedding_dim],
        LayerKind::Linear { out_features, .. } => {
            rank(input, 1..=MAX_RANK, "[…, features]")?;
            let asked = wanted.last().copied();
            with_last(input, or_asked(*out_features, asked, "out_features")?)
        }
        LayerKind::Swiglu { out_features, .. } => with_last(input, *out_features),
        LayerKind::Conv(conv) => {
            let channels = images(input, conv.dims)?;
            let asked = wanted
                .first()
                .copied()
                .filter(|_| wanted.len() == conv.dims + 1);
            let out_channels = or_asked(conv.out_channels, asked, "out_channels")?;
            grouped("in", channels, conv.groups)?;
            grouped("out", out_channels, conv.groups)?;
            let mut shape = vec![out_channels];
            for at in 0..conv.dims {
                let extent = conv.dilation[at] * (conv.kernel_size[at] - 1) + 1;
                let pads = padding(&conv.padding, at, input[1 + at], extent, conv.stride[at]);
                if conv.dims == 3 && pads.0 != pads.1 {
                    let side = conv.kernel_size[at];
                    return wrong(
                        "kernel_size",
                        format!(
                            "would need one zero more on one side than on the other for \"same\" padding of a kernel of {side}, which 3d convolutions do not have"
                        ),
                        format!("write an odd kernel size, such as {}", side + 1),
                    );
                }
                shape.push(window(input, at, extent, conv.stride[at], pads, false)?);
            }
            shape
        }
        LayerKind::ConvTranspose(conv) => {
            let channels = images(input, conv.dims)?;
            let asked = wanted
                .first()
                .copied()
                .filter(|_| wanted.len() == conv.dims + 1);
            let out_channels = or_asked(conv.out_channels, asked, "out_channels")?;
            grouped("in", channels, conv.groups)?;
            grouped("out", out_channels, conv.groups)?;
            let mut shape = vec![out_channels];
            for at in 0..conv.dims {
                let (extra, stride, dilation) =
                    (conv.output_padding[at], conv.stride[at], conv.dilation[at]);
                if extra >= stride && extra >= dilation && extra > 0 {
                    return wrong(
                        "output_padding",
                        format!(
                            "has an output padding of {extra}, and it must be below the stride of {stride} or the dilation of {dilation}"
                        ),
                        format!("write at most {}", stride.max(dilation) - 1),
                    );
                }
                let full = (input[1 + at] - 1) * stride
                    + dilation * (conv.kernel_size[at] - 1)
                    + 1
                    + extra;
                let cut = 2 * conv.padding[at];
                if cut >= full {
                    return wrong(
                        "padding",
                        format!("cuts {cut} off an output of {full}, which leaves nothing"),
                        format!("write a padding of at most {}", (full - 1) / 2),
                    );
                }
                shape.push(full - cut);
            }
            shape
        }
        LayerKind::Norm(norm) => {
            check_norm(norm, input)?;
            input.to_vec()
        }
        LayerKind::Pool(pool) => pooled(pool, input)?,
        LayerKind::AdaptiveAvgPool { dims, output_size } => {
            let channels = images(input, *dims)?;
            [&[channels], output_size.as_slice()].concat()
        }
        LayerKind::Recurrent(recurrent) => recurrent_shape(recurrent, input)?,
        LayerKind::MultiHeadAttention { num_heads, .. } => {
            sequence(input)?;
            heads(input[1], *num_heads)?;
            same_width(inputs)?;
            input.to_vec()
        }
        LayerKind::TransformerEncoder(stack) => stacked(stack, input)?,
        LayerKind::TransformerDecoder(stack) => {
            same_width(inputs)?;
            stacked(stack, input)?
        }
        LayerKind::PositionalEncoding { .. } | LayerKind::RotaryEncoding { .. } => {
            sequence(input)?;
            let width = input[1];
            if !width.is_multiple_of(2) {
                return wrong(
                    "type",
                    format!("needs an even number of features, and {width} reach it"),
                    format!("make the layer before give {} or {}", width - 1, width + 1),
                );
            }
            input.to_vec()
        }
        LayerKind::Activation(crate::spec::activation::Activation::Glu) => {
            let width = input.last().copied().unwrap_or(1);
            if !width.is_multiple_of(2) {
                return wrong(
                    "type",
                    format!("halves the last axis, and {width} values reach it"),
                    "make the layer before give an even number",
                );
            }
            with_last(input, width / 2)
        }
        LayerKind::Add | LayerKind::Multiply => broadcast(inputs)?,
        LayerKind::Concat { axis } => concatenated(inputs, *axis)?,
        LayerKind::Interpolate {
            dims,
            output_size,
            scale,
            mode,
            ..
        } => {
            let channels = images(input, *dims)?;
            if *dims == 1 && *mode == crate::spec::layer::Interpolation::Cubic {
                return wrong(
                    "mode",
                    "interpolates with cubics, which is for images",
                    "write `mode = \"linear\"`",
                );
            }
            let sizes: Vec<usize> = match (output_size, scale) {
                (Some(sizes), None) => sizes.clone(),
                (None, Some(scale)) => {
                    let scaled = input[1..].iter().zip(scale);
                    scaled
                        .map(|(size, scale)| (*size as f64 * scale).floor() as usize)
                        .collect()
                }
                (Some(_), Some(_)) => {
                    return wrong(
                        "scale",
                        "has both `output_size` and `scale`",
                        "remove one of them",
                    );
                }
                (None, None) => {
                    return wrong(
                        "type",
                        "has neither `output_size` nor `scale`",
                        "add `scale = 2`, or the size",
                    );
                }
            };
            if sizes.contains(&0) {
                return wrong(
                    "scale",
                    format!("would make {sizes:?} of {:?}", &input[1..]),
                    "write a larger scale",
                );
            }
            [&[channels], sizes.as_slice()].concat()
        }
        LayerKind::PixelShuffle { factor } => {
            let channels = images(input, 2)?;
            let square = factor * factor;
            if !channels.is_multiple_of(square) {
                return wrong(
                    "factor",
                    format!("needs a multiple of {square} channels, and {channels} reach it"),
                    format!(
                        "make the layer before give {} channels",
                        channels.next_multiple_of(square)
                    ),
                );
            }
            vec![channels / square, input[1] * factor, input[2] * factor]
        }
        LayerKind::PixelUnshuffle { factor } => {
            let channels = images(input, 2)?;
            if !input[1].is_multiple_of(*factor) || !input[2].is_multiple_of(*factor) {
                return wrong(
                    "factor",
                    format!(
                        "cannot cut {}x{} into squares of {factor}",
                        input[1], input[2]
                    ),
                    "write a factor that divides both sides",
                );
            }
            vec![
                channels * factor * factor,
                input[1] / factor,
                input[2] / factor,
            ]
        }
        LayerKind::Flatten {
            start_axis,
            end_axis,
        } => {
            let start = resolve(*start_axis, input.len(), "start_axis")?;
            let end = resolve(*end_axis, input.len(), "end_axis")?;
            if start > end {
                return wrong(
                    "start_axis",
                    format!("starts at axis {start} and ends at axis {end}"),
                    "write a `start_axis` that is not behind `end_axis`",
                );
            }
            let merged = input[start..=end].iter().product();
            [&input[..start], &[merged], &input[end + 1..]].concat()
        }
        LayerKind::Reshape { shape } => reshaped(shape, input)?,
        LayerKind::Permute { axes } => permuted(axes, input)?,
        LayerKind::Unsqueeze { axis } => {
            let at = resolve(*axis, input.len() + 1, "axis")?;
            let mut shape = input.to_vec();
            shape.insert(at, 1);
            shape
        }
        LayerKind::Squeeze { axis } => {
            let at = resolve(*axis, input.len(), "axis")?;
            if input[at] != 1 {
                let ones: Vec<_> = (0..input.len())
                    .filter(|at| input[*at] == 1)
                    .map(|at| at.to_string())
                    .collect();
                return wrong(
                    "axis",
                    format!("takes away axis {at}, which has {} values", input[at]),
                    match ones.is_empty() {
                        true => "no axis has size 1: remove the layer, or use `flatten` or `mean`"
                            .to_owned(),
                        false => format!("axes of size 1 here: {}", ones.join(", ")),
                    },
                );
            }
            without(input, at)
        }
        LayerKind::Slice { axis, start, end } => {
            let at = resolve(*axis, input.len(), "axis")?;
            let (first, past) = range(*start, *end, input[at]);
            if first >= past || past > input[at] as i64 || first < 0 {
                return wrong(
                    "start",
                    format!("takes {first} up to {past} of an axis of {}", input[at]),
                    format!("write a range inside 0 to {}", input[at]),
                );
            }
            let mut shape = input.to_vec();
            shape[at] = (past - first) as usize;
            shape
        }
        LayerKind::Reduce { axis, .. } => {
            let at = resolve(*axis, input.len(), "axis")?;
            match without(input, at) {
                single if single.is_empty() => vec![1],
                shape => shape,
            }
        }
        LayerKind::Dropout { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::Activation(_)
        | LayerKind::Prelu { .. }
        | LayerKind::Identity => input.to_vec(),
    };
    if shape.len() > MAX_RANK {
        return wrong(
            "type",
            format!("would give {shape:?}, which has more than {MAX_RANK} dimensions"),
            "flatten some of them before",
        );
    }
    const MAX_VALUES: u128 = 1 << 40;
    if shape.iter().map(|size| *size as u128).product::<u128>() > MAX_VALUES {
        return wrong(
            "type",
            format!("would give {shape:?} for each item, which no machine holds"),
            "use smaller sizes",
        );
    }
    Ok(shape)
}

/// Why the last layer does not give what the task asks for.
pub fn wrong_output(kind: &LayerKind, shape: &[usize], wanted: &[usize]) -> Mismatch {
    let help = match kind {
        LayerKind::Linear { .. } if shape.len() == wanted.len() && shape[..shape.len() - 1] == wanted[..wanted.len() - 1] => {
            format!("write `out_features = {}`, or leave it out", wanted[wanted.len() - 1])
        }
        LayerKind::Conv(_) | LayerKind::ConvTranspose(_) if shape.len() == wanted.len() && shape[1..] == wanted[1..] => {
            format!("write `out_channels = {}`, or leave it out", wanted[0])
        }
        _ if wanted.len() == 1 && shape.len() > 1 => "add `{ type = \"flatten\" }` and `{ type = \"linear\" }` at the end; a linear layer without `out_features` gives what the task asks for".into(),
        _ if wanted.len() == 1 => "add `{ type = \"linear\" }` at the end; without `out_features` it gives what the task asks for".into(),
        _ if shape.iter().product::<usize>() == wanted.iter().product::<usize>() => format!("add `{{ type = \"reshape\", shape = {wanted:?} }}` at the end"),
        _ => format!("end with a layer that gives {wanted:?}"),
    };
    Mismatch {
        key: if matches!(kind, LayerKind::Linear { .. }) {
            "out_features"
        } else {
            "type"
        },
        message: format!("is the last layer and gives {shape:?}, and the task asks for {wanted:?}"),
        help,
    }
}

fn check_inputs(kind: &LayerKind, inputs: &[Input]) -> Result<(), Mismatch> {
    let num = inputs.len();
    let (least, most) = match kind {
        kind if kind.is_join() => (2, usize::MAX),
        LayerKind::TransformerDecoder(_) => (2, 2),
        LayerKind::MultiHeadAttention { .. } => (1, 2),
        _ => (1, 1),
    };
    if num < least || num > most {
        let wanted = match (least, most) {
            (1, 1) => "one input".to_owned(),
            (1, 2) => "one or two inputs".to_owned(),
            (2, 2) => "two inputs, the sequence and what it attends to".to_owned(),
            _ => "at least two inputs".to_owned(),
        };
        let help = match least {
            1 => "join them before, with `add` or `concat`".to_owned(),
            _ => "name them: `inputs = [\"previous\", \"other\"]`".to_owned(),
        };
        return wrong(
            if num > 1 { "inputs" } else { "type" },
            format!("takes {wanted}, found {num}"),
            help,
        );
    }
    let takes_tokens = matches!(kind, LayerKind::Embedding { .. });
    let tokens = inputs.iter().find(|input| input.shape.vocabulary.is_some());
    match (takes_tokens, tokens) {
        (false, Some(_)) => wrong(
            "type",
            "takes numbers, and tokens reach it",
            "put `{ type = \"embedding\", embedding_dim = 64 }` before it (presets: `input = \"tokens\"`)",
        ),
        (true, None) => wrong(
            "type",
            "takes tokens, and numbers reach it",
            "use a `linear` layer (presets: `input = \"features\"`), or data of tokens",
        ),
        _ => Ok(()),
    }
}

fn rank(
    input: &[usize],
    ranks: std::ops::RangeInclusive<usize>,
    pattern: &str,
) -> Result<(), Mismatch> {
    match ranks.contains(&input.len()) {
        true => Ok(()),
        false => wrong(
            "type",
            format!("takes {pattern}, and {input:?} reaches it"),
            match input.len() < *ranks.start() {
                true => format!(
                    "bring it into that shape before, for example with {}",
                    reshape_hint(input, *ranks.start())
                ),
                false => "put a `flatten`, `mean`, `squeeze` or `slice` before it".to_owned(),
            },
        ),
    }
}

fn reshape_hint(input: &[usize], rank: usize) -> String {
    match rank == input.len() + 1 {
        true => "`{ type = \"unsqueeze\" }`, which adds an axis of size 1 in front".into(),
        false => "`{ type = \"reshape\", shape = […] }`".into(),
    }
}

/// The channels of what a layer of images, sequences or volumes takes.
fn images(input: &[usize], dims: usize) -> Result<usize, Mismatch> {
    let pattern = [
        "[channels, length]",
        "[channels, height, width]",
        "[channels, depth, height, width]",
    ][dims - 1];
    match input.len() == dims + 1 {
        true => Ok(input[0]),
        false if input.len() == 1 => wrong(
            "type",
            format!("takes {pattern}, and {input:?} reaches it"),
            "use layers that take one axis, such as `linear` (preset `mlp`), or bring it into that shape with `reshape` before",
        ),
        false => rank(input, dims + 1..=dims + 1, pattern).map(|()| 0),
    }
}

fn sequence(input: &[usize]) -> Result<(), Mismatch> {
    rank(input, 2..=2, "[length, features]")
}

fn or_asked(written: Option<usize>, asked: Option<usize>, key: &str) -> Result<usize, Mismatch> {
    match written.or(asked) {
        Some(size) => Ok(size),
        None => wrong(
            "type",
            format!("has no `{key}`, and it does not follow from the task"),
            format!("add `{key} = 64`"),
        ),
    }
}

fn grouped(side: &str, channels: usize, groups: usize) -> Result<(), Mismatch> {
    match channels.is_multiple_of(groups) {
        true => Ok(()),
        false => {
            let dividing: Vec<_> = (1..=channels)
                .filter(|groups| channels.is_multiple_of(*groups))
                .map(|groups| groups.to_string())
                .collect();
            wrong(
                "groups",
                format!("cannot split {channels} {side} channels into {groups} groups"),
                format!("write one of {}", dividing.join(", ")),
            )
        }
    }
}

/// Zeros before and behind a dimension: for `same`, as many as keep its size over the stride.
pub fn padding(
    padding: &Padding,
    at: usize,
    size: usize,
    extent: usize,
    stride: usize,
) -> (usize, usize) {
    match padding {
        Padding::Valid => (0, 0),
        Padding::Zeros(sizes) => {
            let zeros = sizes[if sizes.len() == 1 { 0 } else { at }];
            (zeros, zeros)
        }
        Padding::Same => {
            let total = ((size.div_ceil(stride) - 1) * stride + extent).saturating_sub(size);
            (total / 2, total - total / 2)
        }
    }
}

/// How many windows fit a dimension.
fn window(
    input: &[usize],
    at: usize,
    extent: usize,
    stride: usize,
    pads: (usize, usize),
    ceil: bool,
) -> Result<usize, Mismatch> {
    let size = input[1 + at];
    let padded = size + pads.0 + pads.1;
    if extent > padded {
        let sides: Vec<_> = input[1..].iter().map(usize::to_string).collect();
        return wrong(
            "kernel_size",
            format!(
                "has a window of {extent}, which does not fit the {} that reaches it",
                sides.join("x")
            ),
            format!(
                "write a smaller kernel (at most {padded}), add padding, or shrink the input less before"
            ),
        );
    }
    if !ceil {
        return Ok((padded - extent) / stride + 1);
    }
    let windows = (padded - extent).div_ceil(stride) + 1;
    // A last window that would start behind the input is dropped.
    Ok(windows - ((windows - 1) * stride >= size + pads.0) as usize)
}

fn pooled(pool: &Pool, input: &[usize]) -> Result<Dims, Mismatch> {
    let mut shape = vec![images(input, pool.dims)?];
    for at in 0..pool.dims {
        let extent = pool.dilation[at] * (pool.kernel_size[at] - 1) + 1;
        let pads = padding(&pool.padding, at, input[1 + at], extent, pool.stride[at]);
        if 2 * pads.0 > pool.kernel_size[at] && matches!(pool.padding, Padding::Zeros(_)) {
            return wrong(
                "padding",
                format!(
                    "pads by {}, and windows of {} could lie in the padding alone",
                    pads.0, pool.kernel_size[at]
                ),
                format!(
                    "write at most {}, half the window",
                    pool.kernel_size[at] / 2
                ),
            );
        }
        shape.push(window(
            input,
            at,
            extent,
            pool.stride[at],
            pads,
            pool.ceil_mode,
        )?);
    }
    Ok(shape)
}

fn check_norm(norm: &Norm, input: &[usize]) -> Result<(), Mismatch> {
    match norm {
        Norm::Group { num_groups, .. } => {
            rank(input, 2..=MAX_RANK, "[channels, …]")?;
            match input[0].is_multiple_of(*num_groups) {
                true => Ok(()),
                false => wrong(
                    "num_groups",
                    format!(
                        "cannot split {} channels into {num_groups} groups",
                        input[0]
                    ),
                    "write a number that divides the channels",
                ),
            }
        }
        Norm::Instance { .. } => rank(input, 2..=MAX_RANK, "[channels, …]"),
        Norm::LocalResponse { .. } => rank(input, 2..=MAX_RANK, "[channels, …]"),
        Norm::Batch { .. } | Norm::Layer { .. } | Norm::Rms { .. } => Ok(()),
    }
}

fn recurrent_shape(recurrent: &Recurrent, input: &[usize]) -> Result<Dims, Mismatch> {
    sequence(input)?;
    let width = recurrent.hidden_size * (1 + recurrent.bidirectional as usize);
    Ok(match recurrent.output {
        Steps::Sequence => vec![input[0], width],
        Steps::Last => vec![width],
    })
}

fn heads(width: usize, num_heads: usize) -> Result<(), Mismatch> {
    match width.is_multiple_of(num_heads) {
        true => Ok(()),
        false => {
            let dividing: Vec<_> = (1..=width.min(64))
                .filter(|heads| width.is_multiple_of(*heads))
                .map(|heads| heads.to_string())
                .collect();
            wrong(
                "num_heads",
                format!("cannot share {width} features evenly between {num_heads} heads"),
                format!("write one of {}", dividing.join(", ")),
            )
        }
    }
}

fn same_width(inputs: &[Input]) -> Result<(), Mismatch> {
    let first = &inputs[0].shape.dims;
    for other in inputs.iter().map(|input| &input.shape.dims) {
        sequence(other)?;
        if other[1] != first[1] {
            return wrong(
                "inputs",
                format!("takes sequences of the same width, found {first:?} and {other:?}"),
                format!(
                    "put `{{ type = \"linear\", out_features = {} }}` before the second",
                    first[1]
                ),
            );
        }
    }
    Ok(())
}

fn stacked(stack: &Transformer, input: &[usize]) -> Result<Dims, Mismatch> {
    sequence(input)?;
    heads(input[1], stack.num_heads)?;
    Ok(input.to_vec())
}

/// Inputs of equal shapes, or with sizes of 1 that are stretched.
fn broadcast(inputs: &[Input]) -> Result<Dims, Mismatch> {
    let mut shape = inputs[0].shape.dims.clone();
    for other in inputs[1..].iter().map(|input| &input.shape.dims) {
        let fits = other.len() == shape.len()
            && shape
                .iter()
                .zip(other)
                .all(|(a, b)| a == b || *a == 1 || *b == 1);
        if !fits {
            return wrong(
                "inputs",
                format!("takes inputs of one shape, found {}", shapes(inputs)),
                equal_help(&shape, other),
            );
        }
        for (size, other) in shape.iter_mut().zip(other) {
            *size = (*size).max(*other);
        }
    }
    Ok(shape)
}

/// What would make the second shape the first.
fn equal_help(first: &[usize], second: &[usize]) -> String {
    if first.len() == second.len() && first[1..] == second[1..] && first.len() == 3 {
        return format!(
            "put `{{ type = \"conv2d\", out_channels = {}, kernel_size = 1 }}` on the way of the second",
            first[0]
        );
    }
    if first.len() == second.len() && first[..first.len() - 1] == second[..second.len() - 1] {
        let width = first[first.len() - 1];
        return format!(
            "put `{{ type = \"linear\", out_features = {width} }}` on the way of the second"
        );
    }
    format!("make both {first:?}")
}

fn shapes(inputs: &[Input]) -> String {
    let shapes: Vec<_> = inputs.iter().map(|input| input.shape.show()).collect();
    shapes.join(" and ")
}

fn concatenated(inputs: &[Input], axis: i64) -> Result<Dims, Mismatch> {
    let mut shape = inputs[0].shape.dims.clone();
    let at = resolve(axis, shape.len(), "axis")?;
    for other in inputs[1..].iter().map(|input| &input.shape.dims) {
        let others = |dims: &[usize]| without(dims, at);
        if other.len() != shape.len() || others(other) != others(&shape) {
            return wrong(
                "inputs",
                format!(
                    "joins along axis {at} and needs the other axes equal, found {}",
                    shapes(inputs)
                ),
                "bring them to equal sizes before, or join along another `axis`",
            );
        }
        shape[at] += other[at];
    }
    Ok(shape)
}

fn with_last(input: &[usize], size: usize) -> Dims {
    let mut shape = input.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = size;
    }
    shape
}

fn without(input: &[usize], at: usize) -> Dims {
    [&input[..at], &input[at + 1..]].concat()
}

/// An axis counted from the front.
fn resolve(axis: i64, rank: usize, key: &'static str) -> Result<usize, Mismatch> {
    let at = if axis < 0 { axis + rank as i64 } else { axis };
    match usize::try_from(at).ok().filter(|at| *at < rank) {
        Some(at) => Ok(at),
        None => wrong(
            key,
            format!("has the axis {axis}, and there are {rank}"),
            format!(
                "write an axis from 0 to {}, or from -{rank} to -1; the batch is not counted",
                rank.max(1) - 1
            ),
        ),
    }
}

/// Where an axis is the given one from the front, for axes that the planner has accepted.
pub fn axis_of(axis: i64, rank: usize) -> usize {
    resolve(axis, rank, "axis").unwrap_or_default()
}

/// The first index of a slice and one past its last.
pub fn range(start: i64, end: Option<i64>, size: usize) -> (i64, i64) {
    let from_front = |at: i64| if at < 0 { at + size as i64 } else { at };
    (from_front(start), end.map_or(size as i64, from_front))
}

fn reshaped(shape: &[i64], input: &[usize]) -> Result<Dims, Mismatch> {
    let total: usize = input.iter().product();
    let open = shape.iter().filter(|size| **size < 0).count();
    if open > 1 {
        return wrong(
            "shape",
            "has -1 more than once",
            "leave one size open at most",
        );
    }
    if shape.contains(&0) {
        return wrong("shape", "has a size of 0", "write sizes of at least 1");
    }
    let known: usize = shape
        .iter()
        .filter(|size| **size > 0)
        .map(|size| *size as usize)
        .product();
    let fits = if open == 1 {
        total.is_multiple_of(known)
    } else {
        total == known
    };
    if !fits {
        return wrong(
            "shape",
            format!("cannot make {shape:?} of {input:?}: {total} values against {known}"),
            "write sizes whose product is the same; one of them may be -1",
        );
    }
    let size = |size: &i64| {
        if *size < 0 {
            total / known
        } else {
            *size as usize
        }
    };
    Ok(shape.iter().map(size).collect())
}

fn permuted(axes: &[i64], input: &[usize]) -> Result<Dims, Mismatch> {
    let mut seen = vec![false; input.len()];
    let mut shape = Vec::new();
    for axis in axes {
        let at = resolve(*axis, input.len(), "axes")?;
        seen[at] = true;
        shape.push(input[at]);
    }
    match shape.len() == input.len() && seen.iter().all(|seen| *seen) {
        true => Ok(shape),
        false => wrong(
            "axes",
            format!(
                "must name each of the {} axes once, found {axes:?}",
                input.len()
            ),
            format!(
                "for example: `axes = {:?}`",
                (0..input.len()).rev().collect::<Vec<_>>()
            ),
        ),
    }
}
