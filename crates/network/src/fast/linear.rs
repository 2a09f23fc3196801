//! Linear layers.

use burn::nn;
use burn::tensor::Tensor;
use runner_core::spec::backend::Arithmetic;
use runner_kernels::linear::Linear;

use super::rounding;
use super::weighted::{Weighted, apply};
use crate::lora;

impl Weighted for Linear {
    fn output_sizes(&self, input: &[usize]) -> Vec<usize> {
        let mut sizes = input.to_vec();
        sizes[input.len() - 1] = self.outputs;
        sizes
    }

    fn output(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        self.forward(x, weight, bias)
    }

    fn of_input(&self, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
        self.backward_input(gradient, weight)
    }

    fn of_weight(&self, x: &[f32], gradient: &[f32]) -> Vec<f32> {
        self.backward_weight(x, gradient)
    }

    fn of_bias(&self, gradient: &[f32]) -> Vec<f32> {
        self.backward_bias(gradient)
    }
}

/// The output of a linear layer, \[.., inputs\] to \[.., outputs\], by Burn's where it cannot be computed here.
pub fn linear<const D: usize>(
    layer: &nn::Linear,
    x: Tensor<D>,
    arithmetic: Arithmetic,
) -> Tensor<D> {
    lora::linear(layer, x, |layer, x| plain(layer, x, arithmetic))
}

/// The same without an adapter.
fn plain<const D: usize>(linear: &nn::Linear, x: Tensor<D>, arithmetic: Arithmetic) -> Tensor<D> {
    let weight = linear.weight.val();
    let [inputs, outputs] = weight.dims();
    let dims = x.dims();
    if D == 1 || dims[D - 1] != inputs {
        return linear.forward(x);
    }
    let layer = Linear {
        rows: dims[..D - 1].iter().product(),
        inputs,
        outputs,
        arithmetic: rounding(arithmetic),
    };
    let bias = linear.bias.as_ref().map(|bias| bias.val());
    apply(layer, &x, weight, bias).unwrap_or_else(|| linear.forward(x))
}
