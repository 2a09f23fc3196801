//! Convolutions, pooling and resizing.

use super::super::{Attribute, Graph, OnnxError};
use super::Scope;
use crate::windows::Axis;
use runner_core::check::network::windows::padding;
use runner_core::spec::model::layer::{Conv, ConvTranspose, Interpolation, LayerKind, Pool};

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
