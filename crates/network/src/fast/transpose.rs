//! Transposed convolutions: the forward pass is a convolution's gradient of its input, and vice versa.

use burn::nn::conv::{ConvTranspose1d, ConvTranspose2d};
use burn::tensor::Tensor;
use runner_core::spec::backend::Arithmetic;
use runner_kernels::{self as kernels, Geometry};

use super::weighted::{Weighted, apply};
use super::{plane, planes, rounding};

/// The geometry is that of the convolution, whose input is the output here. Weights are \[inputs, outputs / groups,
/// kernel\].
#[derive(Clone, Debug)]
struct Transposed(Geometry);

impl Weighted for Transposed {
    fn output_sizes(&self, input: &[usize]) -> Vec<usize> {
        planes(input, self.0.inputs, self.0.input)
    }

    fn output(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let mut output = kernels::backward_input(&self.0, x, weight);
        if let Some(bias) = bias {
            kernels::add_bias(&mut output, bias, self.0.area_in());
        }
        output
    }

    fn of_input(&self, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
        kernels::forward(&self.0, gradient, weight, None)
    }

    fn of_weight(&self, x: &[f32], gradient: &[f32]) -> Vec<f32> {
        kernels::backward_weight(&self.0, gradient, x)
    }

    fn of_bias(&self, gradient: &[f32]) -> Vec<f32> {
        kernels::channel_sums(gradient, self.0.inputs, self.0.area_in())
    }
}

/// A transposed convolution of \[items, inputs, width\], if it can be computed here.
pub fn of_rows(conv: &ConvTranspose1d, x: &Tensor<3>, arithmetic: Arithmetic) -> Option<Tensor<3>> {
    let layout = Layout {
        stride: &[conv.stride],
        padding: &[conv.padding],
        padding_out: &[conv.padding_out],
        dilation: &[conv.dilation],
        groups: conv.groups,
        arithmetic,
    };
    let bias = conv.bias.as_ref().map(|bias| bias.val());
    convolve(x, &conv.weight.val(), bias.as_ref(), layout)
}

/// A transposed convolution of \[items, inputs, height, width\], if it can be computed here.
pub fn of_planes(
    conv: &ConvTranspose2d,
    x: &Tensor<4>,
    arithmetic: Arithmetic,
) -> Option<Tensor<4>> {
    let layout = Layout {
        stride: &conv.stride,
        padding: &conv.padding,
        padding_out: &conv.padding_out,
        dilation: &conv.dilation,
        groups: conv.groups,
        arithmetic,
    };
    let bias = conv.bias.as_ref().map(|bias| bias.val());
    convolve(x, &conv.weight.val(), bias.as_ref(), layout)
}

/// The geometry of a transposed convolution along each axis.
#[derive(Clone, Copy, Debug)]
struct Layout<'a> {
    /// The stride in the output.
    stride: &'a [usize],
    /// The padding, which crops the output.
    padding: &'a [usize],
    /// The output padding.
    padding_out: &'a [usize],
    /// The dilation.
    dilation: &'a [usize],
    /// Number of channel groups.
    groups: usize,
    /// How products and sums are rounded.
    arithmetic: Arithmetic,
}

fn convolve<const D: usize>(
    x: &Tensor<D>,
    weight: &Tensor<D>,
    bias: Option<&Tensor<1>>,
    layout: Layout,
) -> Option<Tensor<D>> {
    let (dims, kernel) = (x.dims(), weight.dims());
    let size = |axis: usize| {
        let extent = layout.dilation[axis] * (kernel[2 + axis] - 1) + 1;
        let steps = dims[2 + axis].saturating_sub(1) * layout.stride[axis];
        (steps + extent + layout.padding_out[axis]).saturating_sub(2 * layout.padding[axis])
    };
    let size: Vec<usize> = (0..D - 2).map(size).collect();
    let geometry = Geometry {
        items: dims[0],
        inputs: kernel[1] * layout.groups,
        outputs: dims[1],
        groups: layout.groups,
        input: plane(&size, 1),
        kernel: plane(&kernel[2..], 1),
        stride: plane(layout.stride, 1),
        padding: plane(layout.padding, 0).map(|padding| (padding, padding)),
        dilation: plane(layout.dilation, 1),
        arithmetic: rounding(layout.arithmetic),
    };
    let fits = geometry.is_sound()
        && kernel[0] == dims[1]
        && geometry.output() == plane(&dims[2..], 1)
        && bias.is_none_or(|bias| bias.dims() == [geometry.inputs]);
    fits.then(|| apply(Transposed(geometry), x, weight.clone(), bias.cloned()))?
}
