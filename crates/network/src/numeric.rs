//! Sums, products and elementary functions of tensors by the arithmetic of a run: Burn's, or portable ones, which have
//! the same bits on every processor. Element-wise sums, products, quotients and roots are correctly rounded anyway.

use burn::nn::Linear;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{DType, Tensor, activation, module};
use runner_core::spec::backend::Arithmetic;

#[cfg(feature = "flex")]
use crate::fast::{activation::each, convolution::convolution, operation::is_ours, portable};
#[cfg(feature = "flex")]
use runner_kernels::activation::Activation;

/// What is portable, if that is asked for and there are numbers of 32 bits in the host's memory; otherwise Burn's.
macro_rules! by {
    ($arithmetic:expr, $x:ident, $portable:expr, $burns:expr) => {{
        #[cfg(feature = "flex")]
        if $arithmetic.is_portable() && is_ours(&$x) && $x.shape().num_elements() > 0 {
            return $portable;
        }
        let _ = $arithmetic;
        $burns
    }};
}

/// The sum along an axis, which keeps a size of 1.
pub fn sum_axis<const D: usize>(arithmetic: Arithmetic, x: Tensor<D>, axis: usize) -> Tensor<D> {
    by!(arithmetic, x, portable::sum(x, axis), x.sum_dim(axis))
}

/// The mean along an axis, which keeps a size of 1.
pub fn mean_axis<const D: usize>(arithmetic: Arithmetic, x: Tensor<D>, axis: usize) -> Tensor<D> {
    by!(
        arithmetic,
        x,
        {
            let num = x.dims()[axis] as f64;
            portable::sum(x, axis) / num
        },
        x.mean_dim(axis)
    )
}

/// The sum of all numbers.
pub fn total<const D: usize>(arithmetic: Arithmetic, x: Tensor<D>) -> Tensor<1> {
    by!(
        arithmetic,
        x,
        {
            let num = x.shape().num_elements();
            portable::sum(x.reshape([num]), 0)
        },
        x.sum()
    )
}

/// Broadcasts sizes of 1 to those of a shape of the same rank.
pub fn expand<const D: usize>(
    arithmetic: Arithmetic,
    x: Tensor<D>,
    shape: [usize; D],
) -> Tensor<D> {
    by!(arithmetic, x, portable::expand(x, &shape), x.expand(shape))
}

/// The product of matrices along the last two axes, with equal sizes along all others.
pub fn matmul<const D: usize>(arithmetic: Arithmetic, a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
    by!(arithmetic, a, portable::matmul(a, b), a.matmul(b))
}

/// e to the power of each number.
pub fn exp<const D: usize>(arithmetic: Arithmetic, x: Tensor<D>) -> Tensor<D> {
    by!(arithmetic, x, each(x, Activation::Exp), x.exp())
}

/// The natural logarithm of each number.
pub fn log<const D: usize>(arithmetic: Arithmetic, x: Tensor<D>) -> Tensor<D> {
    by!(arithmetic, x, each(x, Activation::Log), x.log())
}

/// ln(1 + exp(x)) of each number.
pub fn softplus<const D: usize>(arithmetic: Arithmetic, x: Tensor<D>) -> Tensor<D> {
    by!(
        arithmetic,
        x,
        each(
            x,
            Activation::Softplus {
                beta: 1.0,
                threshold: f32::INFINITY
            }
        ),
        activation::softplus(x, 1.0)
    )
}

/// The logarithm of the logistic function of each number.
pub fn log_sigmoid<const D: usize>(arithmetic: Arithmetic, x: Tensor<D>) -> Tensor<D> {
    by!(
        arithmetic,
        x,
        each(x, Activation::LogSigmoid),
        activation::log_sigmoid(x)
    )
}

/// The logistic function of each number.
pub fn sigmoid<const D: usize>(arithmetic: Arithmetic, x: Tensor<D>) -> Tensor<D> {
    by!(
        arithmetic,
        x,
        each(x, Activation::Sigmoid),
        activation::sigmoid(x)
    )
}

/// The softmax along the last axis.
pub fn softmax<const D: usize>(arithmetic: Arithmetic, x: Tensor<D>) -> Tensor<D> {
    by!(
        arithmetic,
        x,
        crate::fast::activation::softmax(x),
        activation::softmax(x, D - 1)
    )
}

/// A convolution of planes, without bias.
pub fn conv2d(
    arithmetic: Arithmetic,
    x: Tensor<4>,
    weight: &Tensor<4>,
    options: &ConvOptions<2>,
) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if arithmetic.is_portable()
        && let Some(output) = convolution(&x, weight, None, options, arithmetic)
    {
        return output;
    }
    let _ = arithmetic;
    module::conv2d(x, weight.clone(), None, options.clone())
}

/// A tensor divided by a number. Burn's gradient of that has a reciprocal of 32 bits, whatever the precision.
pub fn divided<const D: usize>(x: Tensor<D>, by: f64) -> Tensor<D> {
    if x.dtype() == DType::F64 {
        x.mul_scalar(1.0 / by)
    } else {
        x.div_scalar(by)
    }
}

/// The output of a linear layer.
pub fn linear<const D: usize>(arithmetic: Arithmetic, layer: &Linear, x: Tensor<D>) -> Tensor<D> {
    by!(
        arithmetic,
        x,
        crate::fast::linear::linear(layer, x, arithmetic),
        crate::lora::forward(layer, x)
    )
}

/// The logarithm of the softmax along the last axis.
pub fn log_softmax<const D: usize>(arithmetic: Arithmetic, x: Tensor<D>) -> Tensor<D> {
    by!(
        arithmetic,
        x,
        crate::fast::activation::log_softmax(x),
        activation::log_softmax(x, D - 1)
    )
}
