//! Convolutions along one to three axes.

use burn::tensor::Tensor;
use burn::tensor::ops::ConvOptions;
use runner_core::spec::backend::Arithmetic;
use runner_kernels::{self as kernels, Geometry};

use super::weighted::{Weighted, apply};
use super::{resized, rounding};

impl<const N: usize> Weighted for Geometry<N> {
    fn output_sizes(&self, input: &[usize]) -> Vec<usize> {
        resized(input, self.outputs, &self.output())
    }

    fn output(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        kernels::forward(self, x, weight, bias)
    }

    fn of_input(&self, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
        kernels::backward_input(self, gradient, weight)
    }

    fn of_weight(&self, x: &[f32], gradient: &[f32]) -> Vec<f32> {
        kernels::backward_weight(self, x, gradient)
    }

    fn of_bias(&self, gradient: &[f32]) -> Vec<f32> {
        kernels::backward_bias(self, gradient)
    }
}

/// A convolution of \[items, channels, ..\], if it is supported here.
pub fn convolution<const D: usize, const N: usize>(
    x: &Tensor<D>,
    weight: &Tensor<D>,
    bias: Option<&Tensor<1>>,
    options: &ConvOptions<N>,
    arithmetic: Arithmetic,
) -> Option<Tensor<D>> {
    let (sizes, kernel) = (x.dims(), weight.dims());
    let geometry = Geometry {
        items: sizes[0],
        inputs: sizes[1],
        outputs: kernel[0],
        groups: options.groups,
        input: std::array::from_fn(|axis| sizes[2 + axis]),
        kernel: std::array::from_fn(|axis| kernel[2 + axis]),
        stride: options.stride,
        padding: options.padding,
        dilation: options.dilation,
        arithmetic: rounding(arithmetic),
    };
    let fits = geometry.is_sound()
        && kernel[1] == geometry.group_inputs()
        && bias.is_none_or(|bias| bias.dims() == [geometry.outputs]);
    fits.then(|| apply(geometry, x, weight.clone(), bias.cloned()))?
}
