//! Convolutions, pooling and resizing.

use super::call::{Call, sizes, truth, tuple};
use super::helpers::Helper;
use super::{Names, Piece};
use crate::windows::Axis;
use runner_core::check::network::Layer;
use runner_core::check::network::windows::padding;
use runner_core::spec::model::layer::{
    Conv, ConvTranspose, DeformConv, Interpolation, LayerKind, PadMode, Pool, Unfold,
};

/// A convolution; asymmetric padding is applied by a separate function.
pub fn conv(conv: &Conv, layer: &Layer, names: &Names<'_>) -> Piece {
    let dims = &layer.inputs[0].shape.dims;
    let pads: Vec<(usize, usize)> = (0..conv.dims)
        .map(|at| {
            let extent = conv.dilation[at] * (conv.kernel_size[at] - 1) + 1;
            padding(&conv.padding, at, dims[1 + at], extent, conv.stride[at])
        })
        .collect();
    let is_even = pads.iter().all(|(before, behind)| before == behind);
    let both: Vec<usize> = pads.iter().map(|(before, _)| *before).collect();
    let call = Call::new(format!("nn.Conv{}d", conv.dims))
        .arg(dims[0])
        .arg(layer.shape[0])
        .named("kernel_size", sizes(&conv.kernel_size))
        .each("stride", &conv.stride, 1);
    let call = if is_even {
        call.each("padding", &both, 0)
    } else {
        call
    };
    let module = call
        .each("dilation", &conv.dilation, 1)
        .unless("groups", conv.groups, 1)
        .flag("bias", conv.bias, true)
        .end();
    if is_even {
        return Piece::module(names, module);
    }
    let padded = padded(names.input(), &pads, None);
    let call = format!("self.{}({padded})", names.module);
    Piece {
        module: Some(module),
        ..Piece::expression(names, call)
    }
}

/// A transposed convolution.
pub fn conv_transpose(conv: &ConvTranspose, layer: &Layer, names: &Names<'_>) -> Piece {
    let module = Call::new(format!("nn.ConvTranspose{}d", conv.dims))
        .arg(layer.inputs[0].shape.dims[0])
        .arg(layer.shape[0])
        .named("kernel_size", sizes(&conv.kernel_size))
        .each("stride", &conv.stride, 1)
        .each("padding", &conv.padding, 0)
        .each("output_padding", &conv.output_padding, 0)
        .unless("groups", conv.groups, 1)
        .flag("bias", conv.bias, true)
        .each("dilation", &conv.dilation, 1)
        .end();
    Piece::module(names, module)
}

/// A call with the keys of windows over images.
pub fn window(window: &Unfold, call: Call) -> Call {
    call.named("kernel_size", sizes(&window.kernel_size))
        .each("stride", &window.stride, 1)
        .each("padding", &window.padding, 0)
        .each("dilation", &window.dilation, 1)
}

/// A deformable convolution, without torchvision.
pub fn deform_conv(conv: &DeformConv, layer: &Layer, names: &Names<'_>) -> Piece {
    let call = Call::new("DeformConv2d")
        .arg(layer.inputs[0].shape.dims[0])
        .arg(layer.shape[0])
        .arg(tuple(conv.window.kernel_size.iter()))
        .arg(tuple(conv.window.stride.iter()))
        .arg(tuple(conv.window.padding.iter()))
        .arg(tuple(conv.window.dilation.iter()))
        .unless("groups", conv.groups, 1)
        .flag("bias", conv.bias, true);
    let call_it = Call::new(format!("self.{}", names.module)).arg(names.inputs.join(", "));
    Piece {
        module: Some(call.end()),
        ..Piece::expression(names, call_it.end())
    }
    .with(Helper::DeformConv2d)
}

/// `x` with its last axes padded by zeros, or by a different value.
fn padded(x: &str, pads: &[(usize, usize)], value: Option<&str>) -> String {
    // The last axis comes first.
    let all = pads
        .iter()
        .rev()
        .flat_map(|(before, behind)| [before, behind]);
    let call = Call::new("F.pad").arg(x).arg(tuple(all));
    match value {
        Some(value) => call.named("value", value).end(),
        None => call.end(),
    }
}

/// Padding of the last axes. The error is why PyTorch does not support it.
pub fn pad(
    padding: &[[usize; 2]],
    mode: PadMode,
    value: f64,
    layer: &Layer,
    names: &Names<'_>,
) -> Result<String, String> {
    let rank = layer.inputs[0].shape.dims.len();
    let mut pads: Vec<(usize, usize)> = padding.iter().map(|[a, b]| (*a, *b)).collect();
    let mode = match mode {
        PadMode::Constant => {
            return Ok(padded(names.input(), &pads, Some(&format!("{value:?}"))));
        }
        PadMode::Reflect => "reflect",
        PadMode::Replicate => "replicate",
    };
    // These modes pad all axes after the channels, or those of a single image.
    while pads.len() + 1 < rank {
        pads.insert(0, (0, 0));
    }
    if pads.len() > 3 {
        return Err(format!("pads four axes by `{mode}`"));
    }
    let call = padded(names.input(), &pads, None);
    let call = call.trim_end_matches(')');
    Ok(format!("{call}), mode=\"{mode}\")"))
}

/// The maximum or the mean of each window, with PyTorch's padding if its meaning is the same.
pub fn pool(pool: &Pool, layer: &Layer, names: &Names<'_>) -> Piece {
    let axes = Axis::of(pool, layer);
    let is_same = axes.iter().all(|axis| {
        let (before, behind) = axis.padding;
        // PyTorch refuses to average windows in 3d that are larger than what is not padded.
        let is_refused = !pool.max && pool.dims == 3 && axis.kernel > axis.size;
        before == behind && before <= axis.kernel / 2 && !is_refused
    });
    let what = if pool.max { "max" } else { "avg" };
    let name = format!("F.{what}_pool{}d", pool.dims);
    let window = |input: &str| {
        let call = Call::new(&name).arg(input).arg(sizes(&pool.kernel_size));
        if pool.stride == pool.kernel_size {
            call
        } else {
            call.named("stride", sizes(&pool.stride))
        }
    };
    let dilated = |call: Call| {
        if pool.max {
            call.each("dilation", &pool.dilation, 1)
        } else {
            call
        }
    };
    if is_same {
        let before: Vec<usize> = axes.iter().map(|axis| axis.padding.0).collect();
        let call = window(names.input()).each("padding", &before, 0);
        let call = dilated(call).flag("ceil_mode", pool.ceil_mode, false);
        let counts = pool.max || pool.count_include_pad || before.iter().all(|pad| *pad == 0);
        return Piece::expression(names, call.flag("count_include_pad", counts, true).end());
    }
    let pads: Vec<(usize, usize)> = axes.iter().map(Axis::exact_padding).collect();
    let value = pool.max.then_some("float(\"-inf\")");
    let call = dilated(window(&padded(names.input(), &pads, value)));
    let mut piece = Piece::expression(names, call.end());
    if !pool.max {
        for (at, axis) in axes.iter().enumerate() {
            piece.lines.extend(correction(axis, at, pool, names));
        }
    }
    piece
}

/// Windows at the ends average fewer values.
fn correction(axis: &Axis, at: usize, pool: &Pool, names: &Names<'_>) -> Option<String> {
    let factors = axis.corrections(pool.count_include_pad);
    if factors.iter().all(|factor| *factor == 1.0) {
        return None;
    }
    let factors: Vec<String> = factors.iter().map(|factor| format!("{factor:?}")).collect();
    let x = &names.output;
    let column = match pool.dims - 1 - at {
        0 => "",
        1 => ".unsqueeze(1)",
        _ => ".reshape(-1, 1, 1)",
    };
    Some(format!(
        "{x} = {x} * {x}.new_tensor([{}]){column}",
        factors.join(", ")
    ))
}

/// Resized images or sequences.
pub fn interpolate(layer: &Layer, names: &Names<'_>) -> Piece {
    let LayerKind::Interpolate {
        dims,
        mode,
        align_corners,
        ..
    } = &layer.kind
    else {
        return Piece::expression(names, names.input());
    };
    let mode = match (mode, dims) {
        (Interpolation::Nearest, _) => "nearest",
        (Interpolation::Linear, 1) => "linear",
        (Interpolation::Linear, _) => "bilinear",
        (Interpolation::Cubic, _) => "bicubic",
    };
    let size = match &layer.shape[1..] {
        [one] => one.to_string(),
        several => tuple(several.iter()),
    };
    let call = Call::new("F.interpolate")
        .arg(names.input())
        .named("size", size)
        .named("mode", format!("\"{mode}\""));
    let call = if mode == "nearest" {
        call
    } else {
        call.named("align_corners", truth(*align_corners))
    };
    Piece::expression(names, call.end())
}
