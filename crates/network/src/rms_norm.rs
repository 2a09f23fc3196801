//! RMS norm in the precision of its input: Burn's divides by a root of 32 bits, whatever the precision.

use burn::nn::RmsNorm;
use burn::tensor::{DType, Tensor};

/// The last axis divided by its root mean square, times the weights.
pub fn forward<const D: usize>(norm: &RmsNorm, x: Tensor<D>) -> Tensor<D> {
    if x.dtype() != DType::F64 {
        return norm.forward(x);
    }
    let squares = x.clone().square().mean_dim(D - 1);
    let root = squares.add_scalar(norm.epsilon).sqrt();
    x.div(root).mul(norm.gamma.val().unsqueeze())
}
