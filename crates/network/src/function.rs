//! Layers without weights, as functions of tensors.

use burn::nn::activation::RReluConfig;
use burn::nn::interpolate::{Interpolate1dConfig, Interpolate2dConfig, InterpolateMode};
use burn::nn::pool::*;
use burn::nn::*;
use burn::tensor::ops::{MaxPoolOptions, PadMode as BurnPadMode};
use burn::tensor::{Distribution, Shape, Tensor, activation};

use crate::convolution::{pooled1d, pooled2d};
use crate::deform;
use crate::dropout::dropped;
use crate::einsum;
use crate::fourier;
use crate::grid;
use crate::initial::normals;
use crate::masks::{self, Masks};
use crate::numeric;
use crate::scan;
use crate::sparse;
use crate::tensor::{DynTensor, map_rank};
use runner_core::check::network::Layer as LayerPlan;
use runner_core::check::network::axes::{axis_of, range};
use runner_core::check::network::windows::padding;
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::kind::Padding;
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{Interpolation, LayerKind, Norm, PadMode, Pairwise, Pool};

/// The output of a layer without weights. Axes of the plan do not count the batch, which is axis 0 here.
pub fn apply(plan: &LayerPlan, mut inputs: Vec<DynTensor>, masks: &Masks) -> DynTensor {
    let kind = &plan.kind;
    match kind {
        LayerKind::Add => return fold(inputs, |a, b| a.combine(b, Combine::Add, plan.arithmetic)),
        LayerKind::Multiply => {
            return fold(inputs, |a, b| {
                a.combine(b, Combine::Multiply, plan.arithmetic)
            });
        }
        LayerKind::Pairwise { operation } => {
            let operation = match operation {
                Pairwise::Subtract => Combine::Subtract,
                Pairwise::Divide => Combine::Divide,
                Pairwise::Maximum => Combine::Maximum,
                Pairwise::Minimum => Combine::Minimum,
            };
            let other = inputs.remove(1);
            return inputs.remove(0).combine(other, operation, plan.arithmetic);
        }
        LayerKind::Matmul => {
            let other = inputs.remove(1);
            return inputs.remove(0).matmul(other, plan.arithmetic);
        }
        LayerKind::LinearScan { reverse } => {
            let updates = inputs.remove(1);
            return scan::states(inputs.remove(0), updates, *reverse, plan.kernels);
        }
        LayerKind::GridSample(settings) => {
            let places = inputs.remove(1).r4();
            return DynTensor::R4(grid::sampled(settings, inputs.remove(0).r4(), places));
        }
        LayerKind::Einsum { equation } => return einsum::summed(equation, inputs, plan.arithmetic),
        LayerKind::Concat { axis } => {
            let axis = 1 + axis_of(*axis, inputs[0].rank() - 1);
            return DynTensor::cat(inputs, axis, plan.kernels);
        }
        _ => {}
    }
    let input = inputs.remove(0);
    let dims = input.dims();
    let item = &dims[1..];
    let shaped = |tensor: DynTensor| {
        let shape = [&dims[..1], &plan.shape].concat();
        if tensor.dims() == shape {
            tensor
        } else {
            tensor.reshape(&shape)
        }
    };
    match kind {
        LayerKind::Dropout { probability } => {
            map_rank!(input, t => dropped(t, *probability, plan.kernels.is_fast()))
        }
        LayerKind::ChannelDropout { probability } => {
            map_rank!(input, t => parts_dropped(t, *probability, 2))
        }
        LayerKind::StochasticDepth { probability } => {
            map_rank!(input, t => parts_dropped(t, *probability, 1))
        }
        LayerKind::Cumsum { axis } => {
            let axis = 1 + axis_of(*axis, item.len());
            map_rank!(input, t => t.cumsum(axis))
        }
        LayerKind::Fourier(fourier) => fourier::spectrum(fourier, input, plan.arithmetic),
        LayerKind::Roll { axis, shift } => {
            let axis = 1 + axis_of(*axis, item.len());
            map_rank!(input, t => rolled(t, axis, *shift))
        }
        LayerKind::TopK { k, fill } => map_rank!(input, t => sparse::largest(t, *k, *fill)),
        LayerKind::AffineGrid(settings) => {
            DynTensor::R4(grid::affine(settings, input.flatten(), plan.arithmetic))
        }
        LayerKind::GaussianNoise { std } => {
            let noise = GaussianNoiseConfig::new(*std).init();
            map_rank!(input, t => noisy(noise.clone(), t, plan.arithmetic))
        }
        LayerKind::Noise { size } => noise(&input, *size),
        LayerKind::GaussianSample => map_rank!(input, t => sampled(t, plan.arithmetic)),
        LayerKind::Norm(Norm::LocalResponse {
            size,
            alpha,
            beta,
            k,
        }) => {
            let norm = LocalResponseNormConfig::new(*size)
                .with_alpha(*alpha)
                .with_beta(*beta)
                .with_k(*k);
            map_rank!(input, t => dampened(&norm, plan.kernels, t))
        }
        LayerKind::Pool(pool) => pooled(pool, plan.kernels, input),
        LayerKind::AdaptiveAvgPool { output_size, .. } => {
            adaptively_pooled(output_size, plan.kernels, input)
        }
        LayerKind::Activation(activation) => {
            map_rank!(input, t => activate_by(plan.kernels, activation, t, plan.arithmetic))
        }
        LayerKind::Flatten { .. }
        | LayerKind::Reshape { .. }
        | LayerKind::Unsqueeze { .. }
        | LayerKind::Squeeze { .. } => shaped(input),
        LayerKind::Permute { axes } => {
            let axes = axes
                .iter()
                .map(|axis| 1 + axis_of(*axis, item.len()) as isize);
            let axes: Vec<isize> = [0].into_iter().chain(axes).collect();
            input.permute(&axes)
        }
        LayerKind::Slice { axis, start, end } => {
            let axis = axis_of(*axis, item.len());
            let (first, past) = range(*start, *end, item[axis]);
            map_rank!(input, t => t.narrow(1 + axis, first as usize, (past - first) as usize))
        }
        LayerKind::Reduce { operation, axis } => {
            let axis = 1 + axis_of(*axis, item.len());
            shaped(map_rank!(input, t => match &masks.own {
                Some(mask) => masks::reduced(*operation, t, axis, mask, plan.arithmetic),
                None => masks::reduced_whole(*operation, t, axis, plan.arithmetic),
            }))
        }
        LayerKind::PaddingMask { padding } => DynTensor::R2(masks::of_items(input, *padding)),
        LayerKind::Interpolate {
            dims,
            mode,
            align_corners,
            ..
        } => {
            let sizes = &plan.shape[1..];
            interpolated(sizes, *dims, *mode, *align_corners, plan.kernels, input)
        }
        LayerKind::PixelShuffle { factor } => {
            DynTensor::R4(PixelShuffleConfig::new(*factor).init().forward(input.r4()))
        }
        LayerKind::PixelUnshuffle { factor } => DynTensor::R4(
            PixelUnshuffleConfig::new(*factor)
                .init()
                .forward(input.r4()),
        ),
        LayerKind::Pad {
            padding,
            mode,
            value,
        } => padded(padding, *mode, *value, input),
        LayerKind::Unfold(window) => DynTensor::R3(deform::unfolded(window, input.r4())),
        LayerKind::Identity => input,
        other => unreachable!("{} has weights", other.type_name()),
    }
}

fn fold(inputs: Vec<DynTensor>, combine: impl Fn(DynTensor, DynTensor) -> DynTensor) -> DynTensor {
    inputs
        .into_iter()
        .reduce(combine)
        .expect("a join has at least two inputs")
}

/// Element-wise joins of two tensors, with broadcasting of sizes of 1.
#[derive(Clone, Copy, Debug)]
pub enum Combine {
    /// Their sum.
    Add,
    /// Their product.
    Multiply,
    /// The first minus the second.
    Subtract,
    /// The first divided by the second.
    Divide,
    /// The larger.
    Maximum,
    /// The smaller.
    Minimum,
}

/// In training, a tensor with random parts zeroed and the others scaled up: each place in the first axes is a part.
fn parts_dropped<const D: usize>(
    tensor: Tensor<D>,
    probability: f64,
    num_axes: usize,
) -> Tensor<D> {
    // As in Burn's dropout.
    if !tensor.device().is_autodiff() || probability == 0.0 {
        return tensor;
    }
    let part = (num_axes..D).fold(tensor.clone(), |part, axis| part.narrow(axis, 0, 1));
    let kept = part.random_like(Distribution::Bernoulli(1.0 - probability));
    tensor * kept.div_scalar(1.0 - probability)
}

/// The values of an axis moved in a circle, toward its end.
fn rolled<const D: usize>(tensor: Tensor<D>, axis: usize, shift: i64) -> Tensor<D> {
    let size = tensor.dims()[axis];
    let moved = shift.rem_euclid(size as i64) as usize;
    if moved == 0 {
        return tensor;
    }
    let last = tensor.clone().narrow(axis, size - moved, moved);
    Tensor::cat(vec![last, tensor.narrow(axis, 0, size - moved)], axis)
}

/// Padding of the last axes.
fn padded(padding: &[[usize; 2]], mode: PadMode, value: f64, input: DynTensor) -> DynTensor {
    let mode = match mode {
        PadMode::Constant => BurnPadMode::Constant(value as f32),
        PadMode::Reflect => BurnPadMode::Reflect,
        PadMode::Replicate => BurnPadMode::Edge,
    };
    let rank = input.rank();
    let pairs = (0..rank).map(|at| {
        let place = (at + padding.len()).checked_sub(rank);
        place.map_or((0, 0), |place| (padding[place][0], padding[place][1]))
    });
    let pairs: Vec<(usize, usize)> = pairs.collect();
    map_rank!(input, t => around(t, &pairs, mode))
}

fn around<const D: usize>(
    tensor: Tensor<D>,
    pairs: &[(usize, usize)],
    mode: BurnPadMode,
) -> Tensor<D> {
    let pairs: [(usize, usize); D] = std::array::from_fn(|at| pairs[at]);
    tensor.pad(pairs, mode)
}

/// Windows over three axes: over the last two, and then over the first. The maximum of maxima is the maximum, and all
/// windows along an axis count as many values, so the mean of means is the mean.
fn pooled3d(pool: &Pool, kernels: Kernels, input: DynTensor) -> DynTensor {
    // Along all axes except the last, and along an axis of size 1 if they are merged.
    let along = |first: usize, past: usize| {
        let sizes = |all: &[usize], rest: usize| {
            let mut sizes = all[first..past].to_vec();
            sizes.resize(2, rest);
            sizes
        };
        let padding = match &pool.padding {
            Padding::Zeros(zeros) => {
                let zeros = [zeros.as_slice(), &[zeros[0]; 2]].concat();
                Padding::Zeros(sizes(&zeros[..3], 0))
            }
            other => other.clone(),
        };
        Pool {
            dims: 2,
            kernel_size: sizes(&pool.kernel_size, 1),
            stride: sizes(&pool.stride, 1),
            dilation: sizes(&pool.dilation, 1),
            padding,
            ..pool.clone()
        }
    };
    let [batch, channels, depth, rows, columns] = input.dims()[..] else {
        unreachable!("volumes were planned")
    };
    let planes = input.reshape(&[batch, channels * depth, rows, columns]);
    let planes = pooled(&along(1, 3), kernels, planes);
    let [rows, columns] = [planes.dims()[2], planes.dims()[3]];
    let stack = planes.reshape(&[batch, channels, depth, rows * columns]);
    let stack = pooled(&along(0, 1), kernels, stack);
    let depth = stack.dims()[2];
    stack.reshape(&[batch, channels, depth, rows, columns])
}

fn pooled(pool: &Pool, kernels: Kernels, input: DynTensor) -> DynTensor {
    let dims = input.dims();
    let pads = |at: usize| {
        let extent = pool.dilation[at] * (pool.kernel_size[at] - 1) + 1;
        padding(&pool.padding, at, dims[2 + at], extent, pool.stride[at])
    };
    let pair = |sizes: &[usize]| [sizes[0], sizes[1]];
    match (pool.max, pool.dims) {
        (_, 3) => pooled3d(pool, kernels, input),
        (true, 1) => {
            let options = MaxPoolOptions::new([pool.kernel_size[0]])
                .with_stride([pool.stride[0]])
                .with_padding_pairs([pads(0)])
                .with_dilation([pool.dilation[0]])
                .with_ceil_mode(pool.ceil_mode);
            DynTensor::R3(pooled1d(input.r3(), options, kernels))
        }
        (true, _) => {
            let options = MaxPoolOptions::new(pair(&pool.kernel_size))
                .with_stride(pair(&pool.stride))
                .with_padding_pairs([pads(0), pads(1)])
                .with_dilation(pair(&pool.dilation))
                .with_ceil_mode(pool.ceil_mode);
            DynTensor::R4(pooled2d(input.r4(), options, kernels))
        }
        (false, 1) => DynTensor::R3(averaged(input.r3(), pool, &[pads(0)], kernels, |x| {
            let config = AvgPool1dConfig::new(pool.kernel_size[0])
                .with_stride(pool.stride[0])
                .with_padding(PaddingConfig1d::Explicit(pads(0).0, pads(0).1))
                .with_count_include_pad(pool.count_include_pad)
                .with_ceil_mode(pool.ceil_mode);
            config.init().forward(x)
        })),
        (false, _) => {
            let (rows, columns) = (pads(0), pads(1));
            let of_burn = |x| {
                let padding = PaddingConfig2d::Explicit(rows.0, columns.0, rows.1, columns.1);
                let config = AvgPool2dConfig::new(pair(&pool.kernel_size))
                    .with_strides(pair(&pool.stride))
                    .with_padding(padding)
                    .with_count_include_pad(pool.count_include_pad)
                    .with_ceil_mode(pool.ceil_mode);
                config.init().forward(x)
            };
            DynTensor::R4(averaged(
                input.r4(),
                pool,
                &[rows, columns],
                kernels,
                of_burn,
            ))
        }
    }
}

/// The mean of each window, by runner's kernel if there is one.
fn averaged<const D: usize>(
    x: Tensor<D>,
    pool: &Pool,
    padding: &[(usize, usize)],
    kernels: Kernels,
    of_burn: impl FnOnce(Tensor<D>) -> Tensor<D>,
) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if kernels.is_fast() && !pool.ceil_mode {
        let layout = crate::fast::pool::Layout {
            kernel: &pool.kernel_size[..D - 2],
            stride: &pool.stride[..D - 2],
            padding,
            counts_padding: pool.count_include_pad,
        };
        if let Some(means) = crate::fast::pool::average(&x, layout) {
            return means;
        }
    }
    let _ = (pool, padding, kernels);
    of_burn(x)
}

/// Values divided by those of neighboring channels.
fn dampened<const D: usize>(
    norm: &LocalResponseNormConfig,
    kernels: Kernels,
    x: Tensor<D>,
) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if kernels.is_fast() {
        let own = runner_kernels::norm::LocalResponse {
            size: norm.size,
            alpha: norm.alpha as f32,
            beta: norm.beta as f32,
            k: norm.k as f32,
        };
        if let Some(output) = crate::fast::norm::local_response(own, &x) {
            return output;
        }
    }
    let _ = kernels;
    norm.init().forward(x)
}

/// Values between positions, for other sizes.
fn interpolated(
    sizes: &[usize],
    dims: usize,
    mode: Interpolation,
    aligns_corners: bool,
    kernels: Kernels,
    input: DynTensor,
) -> DynTensor {
    #[cfg(feature = "flex")]
    if kernels.is_fast() {
        use crate::fast::resample::interpolated;
        let output = match &input {
            DynTensor::R3(x) => interpolated(x, sizes, mode, aligns_corners).map(DynTensor::R3),
            DynTensor::R4(x) => interpolated(x, sizes, mode, aligns_corners).map(DynTensor::R4),
            _ => None,
        };
        if let Some(output) = output {
            return output;
        }
    }
    let _ = kernels;
    let mode = match mode {
        Interpolation::Nearest => InterpolateMode::Nearest,
        Interpolation::Linear => InterpolateMode::Linear,
        Interpolation::Cubic => InterpolateMode::Cubic,
    };
    match dims {
        1 => {
            let config = Interpolate1dConfig::new().with_output_size(Some(sizes[0]));
            let config = config.with_mode(mode).with_align_corners(aligns_corners);
            DynTensor::R3(config.init().forward(input.r3()))
        }
        _ => {
            let config = Interpolate2dConfig::new().with_output_size(Some([sizes[0], sizes[1]]));
            let config = config.with_mode(mode).with_align_corners(aligns_corners);
            DynTensor::R4(config.init().forward(input.r4()))
        }
    }
}

/// The means of a given number of parts.
fn adaptively_pooled(output: &[usize], kernels: Kernels, input: DynTensor) -> DynTensor {
    #[cfg(feature = "flex")]
    if kernels.is_fast() {
        let means = match &input {
            DynTensor::R3(x) => crate::fast::pool::adaptive(x, output).map(DynTensor::R3),
            DynTensor::R4(x) => crate::fast::pool::adaptive(x, output).map(DynTensor::R4),
            DynTensor::R5(x) => adaptively_pooled3d(output, x).map(DynTensor::R5),
            _ => None,
        };
        if let Some(means) = means {
            return means;
        }
    }
    let _ = kernels;
    match *output {
        [width] => {
            let pool = AdaptiveAvgPool1dConfig::new(width).init();
            DynTensor::R3(pool.forward(input.r3()))
        }
        [height, width] => {
            let pool = AdaptiveAvgPool2dConfig::new([height, width]).init();
            DynTensor::R4(pool.forward(input.r4()))
        }
        [depth, height, width] => {
            let pool = AdaptiveAvgPool3dConfig::new([depth, height, width]).init();
            DynTensor::R5(pool.forward(input.r5()))
        }
        _ => unreachable!("poolings have one to three dimensions"),
    }
}

/// An activation function by runner's kernel if there is one.
fn activate_by<const D: usize>(
    kernels: Kernels,
    function: &Activation,
    tensor: Tensor<D>,
    arithmetic: Arithmetic,
) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if kernels.is_fast() {
        return crate::fast::activation::activate(tensor, function)
            .unwrap_or_else(|tensor| activate(function, tensor, arithmetic));
    }
    let _ = kernels;
    activate(function, tensor, arithmetic)
}

/// Adds noise in training.
fn noisy<const D: usize>(noise: GaussianNoise, x: Tensor<D>, arithmetic: Arithmetic) -> Tensor<D> {
    if arithmetic.is_fast() || !x.device().is_autodiff() {
        return noise.forward(x);
    }
    let drawn = normals(&x.shape(), 0.0, noise.std, &x.device());
    x.clone() + Tensor::from_data(drawn, &x.device())
}

/// A sample of normal distributions in training, and their means otherwise. The last axis has the means and then the
/// logarithms of the variances.
fn sampled<const D: usize>(x: Tensor<D>, arithmetic: Arithmetic) -> Tensor<D> {
    let half = x.dims()[D - 1] / 2;
    let means = x.clone().narrow(D - 1, 0, half);
    if !x.device().is_autodiff() {
        return means;
    }
    let logs = x.narrow(D - 1, half, half);
    let drawn: Tensor<D> = if arithmetic.is_fast() {
        Tensor::random(
            means.shape(),
            Distribution::Normal(0.0, 1.0),
            &means.device(),
        )
    } else {
        Tensor::from_data(
            normals(&means.shape(), 0.0, 1.0, &means.device()),
            &means.device(),
        )
    };
    means + numeric::exp(arithmetic, logs * 0.5) * drawn
}

/// Numbers of the standard normal distribution for each item of an input.
fn noise(input: &DynTensor, size: usize) -> DynTensor {
    let (shape, device) = (Shape::from([input.dims()[0], size]), input.device());
    DynTensor::R2(Tensor::from_data(
        normals(&shape, 0.0, 1.0, &device),
        &device,
    ))
}

/// The first half along the last axis times the logistic function of the second.
fn gated<const D: usize>(x: Tensor<D>, arithmetic: Arithmetic) -> Tensor<D> {
    let half = x.dims()[D - 1] / 2;
    let gate = x.clone().narrow(D - 1, half, half);
    x.narrow(D - 1, 0, half) * numeric::sigmoid(arithmetic, gate)
}

/// Constants of Klambauer et al., 2017.
const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

/// `alpha x + beta` between 0 and 1.
fn hard_sigmoid<const D: usize>(tensor: Tensor<D>, alpha: f64, beta: f64) -> Tensor<D> {
    tensor.mul_scalar(alpha).add_scalar(beta).clamp(0.0, 1.0)
}

/// x above zero, `alpha (exp(x / width) - 1)` below. Burn's version also computes the exponential of large values and
/// drops it, which gives gradients of infinity times zero.
fn exponential<const D: usize>(tensor: Tensor<D>, alpha: f64, width: f64) -> Tensor<D> {
    let below = (tensor.clone().clamp_max(0.0) / width).exp() - 1.0;
    activation::relu(tensor) + below * alpha
}

/// Small powers without logarithms, which are undefined for negative numbers.
fn powered<const D: usize>(tensor: Tensor<D>, exponent: f64) -> Tensor<D> {
    match exponent {
        2.0 => tensor.clone() * tensor,
        0.5 => tensor.sqrt(),
        -1.0 => tensor.recip(),
        exponent => tensor.powf_scalar(exponent),
    }
}

fn activate<const D: usize>(
    function: &Activation,
    tensor: Tensor<D>,
    arithmetic: Arithmetic,
) -> Tensor<D> {
    match *function {
        Activation::Relu => activation::relu(tensor),
        Activation::Relu6 => activation::relu6(tensor),
        Activation::LeakyRelu { negative_slope } => activation::leaky_relu(tensor, negative_slope),
        Activation::Rrelu { lower, upper } if lower == upper => {
            activation::leaky_relu(tensor, lower)
        }
        Activation::Rrelu { lower, upper } => RReluConfig::new()
            .with_lower(lower)
            .with_upper(upper)
            .init()
            .forward(tensor),
        Activation::ThresholdedRelu { alpha } => activation::thresholded_relu(tensor, alpha),
        Activation::Gelu => activation::gelu(tensor),
        Activation::GeluTanh => activation::gelu_approximate(tensor),
        Activation::Silu => activation::silu(tensor),
        Activation::Mish => activation::mish(tensor),
        Activation::Elu { alpha } => exponential(tensor, alpha, 1.0),
        Activation::Celu { alpha } => exponential(tensor, alpha, alpha),
        Activation::Selu => exponential(tensor, SELU_ALPHA, 1.0) * SELU_SCALE,
        Activation::Tanh => activation::tanh(tensor),
        Activation::Sigmoid => activation::sigmoid(tensor),
        Activation::LogSigmoid => activation::log_sigmoid(tensor),
        Activation::Softplus { beta, threshold } => {
            activation::softplus_with_threshold(tensor, beta, threshold)
        }
        Activation::Softsign => activation::softsign(tensor),
        Activation::Tanhshrink => activation::tanhshrink(tensor),
        // Burn's compute in 32 bits.
        Activation::HardSigmoid { alpha, beta } => hard_sigmoid(tensor, alpha, beta),
        Activation::HardSwish => tensor.clone() * hard_sigmoid(tensor, 1.0 / 6.0, 0.5),
        Activation::Hardtanh { min, max } => activation::hardtanh(tensor, min, max),
        Activation::HardShrink { lambda } => activation::hard_shrink(tensor, lambda),
        Activation::SoftShrink { lambda } => activation::soft_shrink(tensor, lambda),
        Activation::Shrink { lambda, bias } => activation::shrink(tensor, lambda, bias),
        Activation::Threshold { threshold, value } => {
            activation::threshold(tensor, threshold, value)
        }
        Activation::Exp => tensor.exp(),
        Activation::Abs => tensor.abs(),
        Activation::Erf => tensor.erf(),
        Activation::Power { exponent } => powered(tensor, exponent),
        Activation::Scale { factor, offset } => tensor * factor + offset,
        Activation::Softmax => activation::softmax(tensor, D - 1),
        Activation::LogSoftmax => activation::log_softmax(tensor, D - 1),
        Activation::Sparsemax => sparse::sparsemax(tensor, arithmetic),
        Activation::Glu if arithmetic.is_portable() => gated(tensor, arithmetic),
        Activation::Glu => activation::glu(tensor, D - 1),
    }
}

#[cfg(test)]
mod tests;

/// The same along three axes by runner's kernels: along the last two, and then along the first. All planes of a part have
/// as many values, so the mean of means is the mean.
#[cfg(feature = "flex")]
fn adaptively_pooled3d(output: &[usize], x: &Tensor<5>) -> Option<Tensor<5>> {
    let [items, channels, depth, height, width] = x.dims();
    let x = x.clone().reshape([items, channels * depth, height, width]);
    let planes = crate::fast::pool::adaptive(&x, &output[1..])?;
    let area = output[1] * output[2];
    let stack = planes.reshape([items, channels, depth, area]);
    let means = crate::fast::pool::adaptive(&stack, &[output[0], area])?;
    Some(means.reshape([items, channels, output[0], output[1], output[2]]))
}
