//! Shapes after layers with windows: convolutions, poolings, and layers that resize images.

use super::Input;
use super::shape::{Dims, Mismatch, or_asked, rank, wrong};
use crate::spec::kind::Padding;
use crate::spec::model::layer::{
    Conv, ConvTranspose, DeformConv, Interpolation, LayerKind, PadMode, Pool, Unfold,
};

/// The channels after a convolution with this many dimensions and groups: as set, or as the task needs.
fn out_channels(
    written: Option<usize>,
    (dims, groups): (usize, usize),
    input: &[usize],
    wanted: &[usize],
) -> Result<usize, Mismatch> {
    let channels = images(input, dims)?;
    let asked = wanted.first().copied().filter(|_| wanted.len() == dims + 1);
    let out_channels = or_asked(written, asked, "out_channels")?;
    grouped("in", channels, groups)?;
    grouped("out", out_channels, groups)?;
    Ok(out_channels)
}

/// The shape after a convolution.
pub fn convolved(conv: &Conv, input: &[usize], wanted: &[usize]) -> Result<Dims, Mismatch> {
    let out_channels = out_channels(conv.out_channels, (conv.dims, conv.groups), input, wanted)?;
    let mut shape = vec![out_channels];
    for at in 0..conv.dims {
        let extent = conv.dilation[at] * (conv.kernel_size[at] - 1) + 1;
        let pads = padding(&conv.padding, at, input[1 + at], extent, conv.stride[at]);
        if conv.dims == 3 && pads.0 != pads.1 {
            return wrong(
                "kernel_size",
                format!(
                    "would need one more zero on one side than on the other for \"same\" padding of a kernel of {}, which 3d convolutions do not support",
                    conv.kernel_size[at]
                ),
                match even_kernel(conv, input) {
                    Some(sizes) => format!("use `kernel_size = {sizes:?}`"),
                    None => format!("set the number of zeros, such as `padding = {}`", pads.1),
                },
            );
        }
        shape.push(window(input, at, extent, conv.stride[at], pads, false)?);
    }
    Ok(shape)
}

/// The nearest sizes of a convolution's kernel that need as many zeros on both sides of each axis.
fn even_kernel(conv: &Conv, input: &[usize]) -> Option<Vec<usize>> {
    let near = |at: usize| {
        let side = conv.kernel_size[at];
        let mut sides = [side, side + 1, side - 1]
            .into_iter()
            .filter(|side| *side > 0);
        sides.find(|side| {
            let extent = conv.dilation[at] * (side - 1) + 1;
            let pads = padding(&conv.padding, at, input[1 + at], extent, conv.stride[at]);
            pads.0 == pads.1
        })
    };
    (0..conv.dims).map(near).collect()
}

/// The number of windows over an image along both axes.
pub fn unfolded(window: &Unfold, input: &[usize]) -> Result<[usize; 2], Mismatch> {
    images(input, 2)?;
    let mut sides = [0; 2];
    for (at, side) in sides.iter_mut().enumerate() {
        let extent = window.dilation[at] * (window.kernel_size[at] - 1) + 1;
        let pads = (window.padding[at], window.padding[at]);
        *side = self::window(input, at, extent, window.stride[at], pads, false)?;
    }
    Ok(sides)
}

/// The shape after a deformable convolution.
pub fn deformed(conv: &DeformConv, inputs: &[Input], wanted: &[usize]) -> Result<Dims, Mismatch> {
    let input = &inputs[0].shape.dims;
    let out_channels = out_channels(conv.out_channels, (2, conv.groups), input, wanted)?;
    let [rows, columns] = unfolded(&conv.window, input)?;
    let num_taps = conv.window.num_taps();
    let offsets = &inputs[1].shape.dims;
    let pair = num_taps.saturating_mul(2);
    let groups = offsets.first().map_or(0, |channels| channels / pair);
    let fits = |dims: &[usize], each: usize| {
        dims.len() == 3 && dims[0] == groups.saturating_mul(each) && dims[1..] == [rows, columns]
    };
    if groups == 0 || !fits(offsets, pair) || !input[0].is_multiple_of(groups) {
        return wrong(
            "inputs",
            format!(
                "expects offsets [{pair}, {rows}, {columns}] (two for each of {num_taps} samples), or a multiple of {pair} channels that divides the {} channels of the image into groups, got {offsets:?}",
                input[0]
            ),
            format!("compute them by a `conv2d` with `out_channels = {pair}` and the same window"),
        );
    }
    if let Some(weights) = inputs.get(2).map(|input| &input.shape.dims)
        && !fits(weights, num_taps)
    {
        return wrong(
            "inputs",
            format!(
                "expects weights of samples [{}, {rows}, {columns}], got {weights:?}",
                groups * num_taps
            ),
            format!(
                "compute them by a `conv2d` with `out_channels = {}` and the same window, and a `sigmoid`",
                groups * num_taps
            ),
        );
    }
    Ok(vec![out_channels, rows, columns])
}

/// The shape after a transposed convolution.
pub fn transposed(
    conv: &ConvTranspose,
    input: &[usize],
    wanted: &[usize],
) -> Result<Dims, Mismatch> {
    let out_channels = out_channels(conv.out_channels, (conv.dims, conv.groups), input, wanted)?;
    let mut shape = vec![out_channels];
    for at in 0..conv.dims {
        let (extra, stride, dilation) =
            (conv.output_padding[at], conv.stride[at], conv.dilation[at]);
        if extra >= stride && extra >= dilation && extra > 0 {
            return wrong(
                "output_padding",
                format!(
                    "has an output padding of {extra}, which must be below the stride of {stride} or the dilation of {dilation}"
                ),
                format!("use at most {}", stride.max(dilation) - 1),
            );
        }
        let full = (input[1 + at] - 1).saturating_mul(stride)
            + dilation * (conv.kernel_size[at] - 1)
            + 1
            + extra;
        let cut = 2 * conv.padding[at];
        if cut >= full {
            return wrong(
                "padding",
                format!("crops {cut} from an output of {full}, which leaves nothing"),
                format!("use a padding of at most {}", (full - 1) / 2),
            );
        }
        shape.push(full - cut);
    }
    Ok(shape)
}

/// The shape after pixel shuffle.
pub fn shuffled(factor: usize, input: &[usize]) -> Result<Dims, Mismatch> {
    let channels = images(input, 2)?;
    let square = factor * factor;
    if !channels.is_multiple_of(square) {
        return wrong(
            "factor",
            format!("needs a multiple of {square} channels, got {channels}"),
            format!(
                "make the preceding layer output {} channels",
                channels.next_multiple_of(square)
            ),
        );
    }
    Ok(vec![
        channels / square,
        input[1] * factor,
        input[2] * factor,
    ])
}

/// The shape after pixel unshuffle.
pub fn unshuffled(factor: usize, input: &[usize]) -> Result<Dims, Mismatch> {
    let channels = images(input, 2)?;
    if !input[1].is_multiple_of(factor) || !input[2].is_multiple_of(factor) {
        return wrong(
            "factor",
            format!(
                "cannot divide {}x{} into squares of {factor}",
                input[1], input[2]
            ),
            "use a factor that divides both sides",
        );
    }
    Ok(vec![
        channels * factor * factor,
        input[1] / factor,
        input[2] / factor,
    ])
}

/// The shape after resizing.
pub fn interpolated(kind: &LayerKind, input: &[usize]) -> Result<Dims, Mismatch> {
    let LayerKind::Interpolate {
        dims,
        output_size,
        scale,
        mode,
        ..
    } = kind
    else {
        return Ok(input.to_vec());
    };
    let channels = images(input, *dims)?;
    if *dims == 1 && *mode == Interpolation::Cubic {
        return wrong(
            "mode",
            "uses cubic interpolation, which needs images",
            "set `mode = \"linear\"`",
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
                "sets both `output_size` and `scale`",
                "remove one of them",
            );
        }
        (None, None) => {
            return wrong(
                "type",
                "sets neither `output_size` nor `scale`",
                "add `scale = 2.0`, or `output_size`",
            );
        }
    };
    if sizes.contains(&0) {
        return wrong(
            "scale",
            format!("would resize {:?} to {sizes:?}", &input[1..]),
            "use a larger scale",
        );
    }
    Ok([&[channels], sizes.as_slice()].concat())
}

/// The channels of the input of a layer for images, sequences or volumes.
pub fn images(input: &[usize], dims: usize) -> Result<usize, Mismatch> {
    let pattern = [
        "[channels, length]",
        "[channels, height, width]",
        "[channels, depth, height, width]",
    ][dims - 1];
    match input.len() == dims + 1 {
        true => Ok(input[0]),
        false if input.len() == 1 => wrong(
            "type",
            format!("expects input {pattern}, got {input:?}"),
            "use layers that work on one axis, such as `linear` (preset `mlp`), or convert the input to that shape with `reshape` first",
        ),
        false => rank(input, dims + 1..=dims + 1, pattern).map(|()| 0),
    }
}

fn grouped(side: &str, channels: usize, groups: usize) -> Result<(), Mismatch> {
    if channels.is_multiple_of(groups) {
        Ok(())
    } else {
        let dividing: Vec<_> = (1..=channels)
            .filter(|groups| channels.is_multiple_of(*groups))
            .map(|groups| groups.to_string())
            .collect();
        wrong(
            "groups",
            format!("cannot divide {channels} {side} channels into {groups} groups"),
            format!("use one of {}", dividing.join(", ")),
        )
    }
}

/// Padding before and after a dimension: for `same`, as much as needed to keep its size divided by the stride.
pub fn padding(
    padding: &Padding,
    at: usize,
    size: usize,
    extent: usize,
    stride: usize,
) -> (usize, usize) {
    match padding {
        Padding::Valid => (0, 0),
        Padding::Causal => (extent - 1, 0),
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
                "has a window of {extent}, which is larger than its input of {}",
                sides.join("x")
            ),
            format!(
                "use a smaller kernel (at most {padded}), add padding, or shrink the input less before this layer"
            ),
        );
    }
    if !ceil {
        return Ok((padded - extent) / stride + 1);
    }
    let windows = (padded - extent).div_ceil(stride) + 1;
    // A last window that would start after the input is dropped.
    Ok(windows - ((windows - 1) * stride >= size + pads.0) as usize)
}

/// The shape with values added around the last axes.
pub fn padded(padding: &[[usize; 2]], mode: PadMode, input: &[usize]) -> Result<Dims, Mismatch> {
    let Some(first) = input.len().checked_sub(padding.len()) else {
        return wrong(
            "padding",
            format!("pads {} axes of an input of {input:?}", padding.len()),
            format!("list at most {} pairs", input.len()),
        );
    };
    let mut shape = input.to_vec();
    for (size, [before, after]) in shape[first..].iter_mut().zip(padding) {
        if mode == PadMode::Reflect && (*before).max(*after) >= *size {
            return wrong(
                "padding",
                format!(
                    "cannot mirror {} values of an axis of size {size}",
                    (*before).max(*after)
                ),
                format!(
                    "pad by at most {}, or use `mode = \"replicate\"`",
                    *size - 1
                ),
            );
        }
        *size += before + after;
    }
    Ok(shape)
}

/// The shape after a pooling.
pub fn pooled(pool: &Pool, input: &[usize]) -> Result<Dims, Mismatch> {
    let mut shape = vec![images(input, pool.dims)?];
    for at in 0..pool.dims {
        let extent = pool.dilation[at] * (pool.kernel_size[at] - 1) + 1;
        let pads = padding(&pool.padding, at, input[1 + at], extent, pool.stride[at]);
        let windows = window(input, at, extent, pool.stride[at], pads, pool.ceil_mode)?;
        // A window that covers only padding has no maximum, and no mean.
        let sees = |window: usize| {
            // The first place of the window that is not in the padding before the input.
            let start = window * pool.stride[at];
            let step = pads.0.saturating_sub(start).div_ceil(pool.dilation[at]);
            let place = start + step * pool.dilation[at];
            step < pool.kernel_size[at] && place < pads.0 + input[1 + at]
        };
        if !(0..windows).all(sees) {
            return wrong(
                "padding",
                "has windows that contain only padding",
                "use a smaller padding, or a smaller dilation",
            );
        }
        shape.push(windows);
    }
    Ok(shape)
}
