//! Layers without weights, as functions of tensors.

mod windows;

use burn::nn::activation::RReluConfig;
use burn::nn::*;
use burn::tensor::ops::PadMode as BurnPadMode;
use burn::tensor::{Distribution, Shape, Tensor, activation};

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
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{LayerKind, Norm, PadMode, Pairwise};
use windows::{adaptively_pooled, interpolated, pooled};

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
