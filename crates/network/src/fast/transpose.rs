//! Transposed convolutions: the forward pass is a convolution's gradient of its input, and vice versa.

use burn::nn::conv::{ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
use burn::tensor::Tensor;
use runner_core::spec::backend::Arithmetic;
use runner_kernels::{self as kernels, Geometry};

use super::weighted::{Weighted, apply};
use super::{resized, rounding};

/// The geometry is that of the convolution, whose input is the output here. Weights are \[inputs, outputs / groups,
/// kernel\].
#[derive(Clone, Debug)]
struct Transposed<const N: usize>(Geometry<N>);

impl<const N: usize> Weighted for Transposed<N> {
    fn output_sizes(&self, input: &[usize]) -> Vec<usize> {
        resized(input, self.0.inputs, &self.0.input)
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

/// A number for each axis, where Burn has a plain one if there is only one.
trait Sizes<const N: usize> {
    fn sizes(self) -> [usize; N];
}

impl Sizes<1> for usize {
    fn sizes(self) -> [usize; 1] {
        [self]
    }
}

impl<const N: usize> Sizes<N> for [usize; N] {
    fn sizes(self) -> [usize; N] {
        self
    }
}

macro_rules! transposed {
    ($(#[$doc:meta] $name:ident, $conv:ident, $rank:literal;)+) => {$(
        #[$doc]
        pub fn $name(
            conv: &$conv,
            x: &Tensor<$rank>,
            arithmetic: Arithmetic,
        ) -> Option<Tensor<$rank>> {
            let bias = conv.bias.as_ref().map(|bias| bias.val());
            let layout = Layout {
                stride: conv.stride.sizes(),
                padding: conv.padding.sizes(),
                padding_out: conv.padding_out.sizes(),
                dilation: conv.dilation.sizes(),
            };
            convolve(x, &conv.weight.val(), bias.as_ref(), layout, conv.groups, arithmetic)
        }
    )+};
}

transposed! {
    /// A transposed convolution of \[items, inputs, width\], if it can be computed here.
    of_rows, ConvTranspose1d, 3;
    /// A transposed convolution of \[items, inputs, height, width\], if it can be computed here.
    of_planes, ConvTranspose2d, 4;
    /// A transposed convolution of \[items, inputs, depth, height, width\], if it can be computed here.
    of_volumes, ConvTranspose3d, 5;
}

/// The geometry of a transposed convolution along each axis.
#[derive(Clone, Copy, Debug)]
struct Layout<const N: usize> {
    /// The stride in the output.
    stride: [usize; N],
    /// The padding, which crops the output.
    padding: [usize; N],
    /// The output padding.
    padding_out: [usize; N],
    /// The dilation.
    dilation: [usize; N],
}

fn convolve<const D: usize, const N: usize>(
    x: &Tensor<D>,
    weight: &Tensor<D>,
    bias: Option<&Tensor<1>>,
    layout: Layout<N>,
    groups: usize,
    arithmetic: Arithmetic,
) -> Option<Tensor<D>> {
    let (dims, kernel) = (x.dims(), weight.dims());
    let size = |axis: usize| {
        let extent = layout.dilation[axis] * (kernel[2 + axis] - 1) + 1;
        let steps = dims[2 + axis].saturating_sub(1) * layout.stride[axis];
        (steps + extent + layout.padding_out[axis]).saturating_sub(2 * layout.padding[axis])
    };
    let geometry = Geometry {
        items: dims[0],
        inputs: kernel[1] * groups,
        outputs: dims[1],
        groups,
        input: std::array::from_fn(size),
        kernel: std::array::from_fn(|axis| kernel[2 + axis]),
        stride: layout.stride,
        padding: layout.padding.map(|padding| (padding, padding)),
        dilation: layout.dilation,
        arithmetic: rounding(arithmetic),
    };
    let fits = geometry.is_sound()
        && kernel[0] == dims[1]
        && geometry.output()[..] == dims[2..]
        && bias.is_none_or(|bias| bias.dims() == [geometry.inputs]);
    fits.then(|| apply(Transposed(geometry), x, weight.clone(), bias.cloned()))?
}
