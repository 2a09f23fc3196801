//! Convolutions, pooling and resizing.

use super::super::{Attribute, Graph, OnnxError};
use super::Scope;
use crate::windows::Axis;
use runner_core::check::network::windows::padding;
use runner_core::spec::model::layer::{
    Conv, ConvTranspose, DeformConv, Interpolation, LayerKind, Pool, Unfold,
};

fn ints(name: &str, sizes: impl Iterator<Item = usize>) -> Attribute<'_> {
    Attribute::Ints(name, sizes.map(|size| size as i64).collect())
}

/// All sizes before, then all after.
fn pads(each: &[(usize, usize)]) -> Attribute<'static> {
    let before = each.iter().map(|(before, _)| *before);
    ints("pads", before.chain(each.iter().map(|(_, behind)| *behind)))
}

/// A convolution.
pub fn conv(scope: &mut Scope<'_>, conv: &Conv, x: &str) -> Result<String, OnnxError> {
    let dims = scope.dims().to_vec();
    let around = (0..conv.dims).map(|at| {
        let extent = conv.dilation[at] * (conv.kernel_size[at] - 1) + 1;
        padding(&conv.padding, at, dims[1 + at], extent, conv.stride[at])
    });
    let settings = [
        ints("kernel_shape", conv.kernel_size.iter().copied()),
        ints("strides", conv.stride.iter().copied()),
        ints("dilations", conv.dilation.iter().copied()),
        pads(&around.collect::<Vec<_>>()),
        Attribute::Int("group", conv.groups as i64),
    ];
    convolved(scope, "Conv", conv.bias, &settings, x)
}

/// A deformable convolution: an operator since opset 19.
pub fn deform_conv(
    scope: &mut Scope<'_>,
    conv: &DeformConv,
    inputs: &[String],
) -> Result<String, OnnxError> {
    let window = &conv.window;
    let around: Vec<(usize, usize)> = window.padding.iter().map(|pad| (*pad, *pad)).collect();
    let offsets = scope.layer.inputs[1].shape.dims[0];
    let settings = [
        ints("kernel_shape", window.kernel_size.iter().copied()),
        ints("strides", window.stride.iter().copied()),
        ints("dilations", window.dilation.iter().copied()),
        pads(&around),
        Attribute::Int("group", conv.groups as i64),
        Attribute::Int("offset_group", (offsets / (2 * window.num_taps())) as i64),
    ];
    let weight = scope.weight("weight")?;
    let bias = if conv.bias {
        scope.weight("bias")?
    } else {
        // The weights of samples come after it.
        let zeros = vec![0.0; scope.layer.shape[0]];
        scope.graph.numbers(&[zeros.len()], &zeros)
    };
    let mut operands = vec![inputs[0].as_str(), &weight, &inputs[1], &bias];
    operands.extend(inputs.get(2).map(String::as_str));
    Ok(scope.graph.node("DeformConv", &operands, &settings))
}

/// Windows of images as columns: rows and columns of each place of a window.
pub fn unfold(scope: &mut Scope<'_>, window: &Unfold, x: &str) -> String {
    let dims = scope.dims().to_vec();
    let sides: Vec<usize> = (0..2)
        .map(|at| {
            let extent = window.dilation[at] * (window.kernel_size[at] - 1) + 1;
            (dims[1 + at] + 2 * window.padding[at] - extent) / window.stride[at] + 1
        })
        .collect();
    let graph = &mut *scope.graph;
    let pads = [0, 0, window.padding[0], window.padding[1]].map(|pad| pad as i64);
    let mut x = x.to_owned();
    if pads.iter().any(|pad| *pad > 0) {
        let pads = graph.integers(&[pads, pads].concat());
        x = graph.node("Pad", &[&x, &pads], &[]);
    }
    for (axis, windows) in sides.iter().copied().enumerate() {
        let (stride, dilation) = (window.stride[axis], window.dilation[axis]);
        let places = (0..window.kernel_size[axis])
            .flat_map(|tap| (0..windows).map(move |at| (at * stride + tap * dilation) as i64));
        let places = graph.integers(&places.collect::<Vec<_>>());
        let along = [Attribute::Int("axis", 2 + axis as i64)];
        x = graph.node("Gather", &[&x, &places], &along);
    }
    let [rows, columns] = [window.kernel_size[0], window.kernel_size[1]];
    let x = graph.reshape(&x, &[dims[0], rows, sides[0], columns, sides[1]]);
    let x = graph.transpose(&x, &[0, 1, 2, 4, 3, 5]);
    graph.reshape(&x, &[dims[0] * rows * columns, sides[0] * sides[1]])
}

/// A transposed convolution.
pub fn conv_transpose(
    scope: &mut Scope<'_>,
    conv: &ConvTranspose,
    x: &str,
) -> Result<String, OnnxError> {
    let around: Vec<(usize, usize)> = conv.padding.iter().map(|pad| (*pad, *pad)).collect();
    let settings = [
        ints("kernel_shape", conv.kernel_size.iter().copied()),
        ints("strides", conv.stride.iter().copied()),
        ints("dilations", conv.dilation.iter().copied()),
        pads(&around),
        ints("output_padding", conv.output_padding.iter().copied()),
        Attribute::Int("group", conv.groups as i64),
    ];
    convolved(scope, "ConvTranspose", conv.bias, &settings, x)
}

fn convolved(
    scope: &mut Scope<'_>,
    operator: &str,
    has_bias: bool,
    settings: &[Attribute<'_>],
    x: &str,
) -> Result<String, OnnxError> {
    let weight = scope.weight("weight")?;
    if !has_bias {
        return Ok(scope.graph.node(operator, &[x, &weight], settings));
    }
    let bias = scope.weight("bias")?;
    Ok(scope.graph.node(operator, &[x, &weight, &bias], settings))
}

/// The maximum or the mean of each window. Padding is chosen so that the number of windows needs no rounding up, which
/// runtimes interpret in different ways.
pub fn pool(scope: &mut Scope<'_>, pool: &Pool, x: &str) -> String {
    let axes = Axis::of(pool, scope.layer);
    let around: Vec<(usize, usize)> = axes.iter().map(Axis::exact_padding).collect();
    let window = vec![
        ints("kernel_shape", pool.kernel_size.iter().copied()),
        ints("strides", pool.stride.iter().copied()),
    ];
    let graph = &mut *scope.graph;
    if pool.max {
        return largest(graph, pool, &around, window, x);
    }
    let mut window = window;
    window.push(pads(&around));
    let counts = i64::from(pool.count_include_pad);
    window.push(Attribute::Int("count_include_pad", counts));
    let mut means = graph.node("AveragePool", &[x], &window);
    if !pool.count_include_pad {
        return means;
    }
    for (at, axis) in axes.iter().enumerate() {
        let factors = axis.corrections(true);
        if factors.iter().any(|factor| *factor != 1.0) {
            let behind = vec![1; axes.len() - 1 - at];
            let factors = graph.numbers(&[&[factors.len()], behind.as_slice()].concat(), &factors);
            means = graph.node("Mul", &[&means, &factors], &[]);
        }
    }
    means
}

fn largest(
    graph: &mut Graph,
    pool: &Pool,
    around: &[(usize, usize)],
    mut window: Vec<Attribute<'static>>,
    x: &str,
) -> String {
    window.push(ints("dilations", pool.dilation.iter().copied()));
    let mut kernels = around.iter().zip(&pool.kernel_size);
    // Operators only support padding that is smaller than the kernel.
    if kernels.all(|((before, behind), kernel)| before < kernel && behind < kernel) {
        window.push(pads(around));
        return graph.node("MaxPool", &[x], &window);
    }
    let before = around.iter().map(|(before, _)| *before as i64);
    let behind = around.iter().map(|(_, behind)| *behind as i64);
    let none = [0, 0];
    let sizes: Vec<i64> = none
        .into_iter()
        .chain(before)
        .chain(none)
        .chain(behind)
        .collect();
    let sizes = graph.integers(&sizes);
    let least = graph.number(f64::NEG_INFINITY);
    let padded = graph.node("Pad", &[x, &sizes, &least], &[]);
    graph.node("MaxPool", &[&padded], &window)
}

/// The means of the requested number of windows.
pub fn adaptive(scope: &mut Scope<'_>, output: &[usize], x: &str) -> String {
    let dims = scope.dims().to_vec();
    let graph = &mut *scope.graph;
    if output.iter().all(|size| *size == 1) {
        return graph.node("GlobalAveragePool", &[x], &[]);
    }
    let mut sides = dims[1..].iter().zip(output);
    if sides.all(|(size, windows)| size.is_multiple_of(*windows)) {
        let sides = || dims[1..].iter().zip(output);
        let kernel = || sides().map(|(size, windows)| size / windows);
        let window = [ints("kernel_shape", kernel()), ints("strides", kernel())];
        return graph.node("AveragePool", &[x], &window);
    }
    // Each axis by a matrix of means.
    let mut shape = dims;
    let mut means = x.to_owned();
    for (at, windows) in output.iter().enumerate() {
        let size = shape[1 + at];
        let behind: usize = shape[2 + at..].iter().product();
        let before: usize = shape[..1 + at].iter().product();
        let matrix = graph.numbers(&[*windows, size], &matrix_of_means(size, *windows));
        let rows = graph.reshape(&means, &[before, size, behind]);
        let product = graph.node("MatMul", &[&matrix, &rows], &[]);
        shape[1 + at] = *windows;
        means = graph.reshape(&product, &shape);
    }
    means
}

/// A row for each window, \[windows, size\]: equal weights for the values it covers.
fn matrix_of_means(size: usize, windows: usize) -> Vec<f32> {
    let row = |window: usize| {
        let start = window * size / windows;
        let end = ((window + 1) * size).div_ceil(windows);
        let share = 1.0 / (end - start) as f32;
        (0..size).map(move |at| {
            if (start..end).contains(&at) {
                share
            } else {
                0.0
            }
        })
    };
    (0..windows).flat_map(row).collect()
}

/// Resized images or sequences.
pub fn interpolate(scope: &mut Scope<'_>, x: &str) -> String {
    let LayerKind::Interpolate {
        mode,
        align_corners,
        ..
    } = &scope.layer.kind
    else {
        return x.to_owned();
    };
    let corners = if *align_corners {
        "align_corners"
    } else {
        "half_pixel"
    };
    let mut settings = match mode {
        Interpolation::Nearest => vec![
            Attribute::Text("mode", "nearest"),
            Attribute::Text("coordinate_transformation_mode", "asymmetric"),
            Attribute::Text("nearest_mode", "floor"),
        ],
        Interpolation::Linear => vec![
            Attribute::Text("mode", "linear"),
            Attribute::Text("coordinate_transformation_mode", corners),
        ],
        Interpolation::Cubic => vec![
            Attribute::Text("mode", "cubic"),
            Attribute::Text("coordinate_transformation_mode", corners),
            Attribute::Float("cubic_coeff_a", -0.75),
        ],
    };
    let sizes = scope.layer.shape[1..].iter().map(|size| *size as i64);
    let sizes: Vec<i64> = sizes.collect();
    settings.push(Attribute::Ints(
        "axes",
        (2..2 + sizes.len() as i64).collect(),
    ));
    let sizes = scope.graph.integers(&sizes);
    scope.graph.node("Resize", &[x, "", "", &sizes], &settings)
}
