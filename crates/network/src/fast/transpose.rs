//! Transposed convolutions: what a convolution computes for the gradient of its input, and the other way about.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::nn::conv::{ConvTranspose1d, ConvTranspose2d};
use burn::tensor::{Shape, Tensor};
use runner_kernels::{Geometry, add_bias, backward_input, backward_weight, forward};

use super::operation::{
    Back, Operation, apply_2, apply_3, contiguous, is_ours, numbers, sizes, tensor,
};

/// Operands are the input, the weights \[inputs, outputs / groups, kernel\] and, if there are three, the bias. The
/// geometry is that of the convolution, whose input is the output here.
#[derive(Clone, Debug)]
struct Transposed(Geometry);

impl Transposed {
    fn forward<const N: usize>(&self, operands: [FlexTensor; N]) -> FlexTensor {
        let operands = operands.map(contiguous);
        let mut output = backward_input(&self.0, numbers(&operands[0]), numbers(&operands[1]));
        if let Some(bias) = operands.get(2) {
            add_bias(&mut output, numbers(bias), self.0.area_in());
        }
        let mut shape = sizes(&operands[0]);
        let num = shape.len() - 2;
        shape[1] = self.0.inputs;
        shape[2..].copy_from_slice(&self.0.input[2 - num..]);
        tensor(output, Shape::from(shape))
    }

    fn backward<const N: usize>(&self, mut back: Back<(), N>) -> [Option<FlexTensor>; N] {
        let (x, weight) = (back.operand(0), back.operand(1));
        let gradient = numbers(&back.gradient);
        std::array::from_fn(|at| {
            back.wants[at].then(|| match at {
                0 => {
                    let values = forward(&self.0, gradient, numbers(&weight), None);
                    tensor(values, x.shape())
                }
                1 => {
                    let values = backward_weight(&self.0, gradient, numbers(&x));
                    tensor(values, weight.shape())
                }
                _ => {
                    let values =
                        runner_kernels::channel_sums(gradient, self.0.inputs, self.0.area_in());
                    tensor(values, Shape::from([self.0.inputs]))
                }
            })
        })
    }
}

impl Operation<2> for Transposed {
    type Kept = ();

    fn asks_for(&self) -> [bool; 2] {
        [true; 2]
    }

    fn forward(&self, operands: [FlexTensor; 2], is_kept: bool) -> (FlexTensor, Option<()>) {
        (Self::forward(self, operands), is_kept.then_some(()))
    }

    fn backward(&self, back: Back<(), 2>) -> [Option<FlexTensor>; 2] {
        Self::backward(self, back)
    }
}

impl Operation<3> for Transposed {
    type Kept = ();

    fn asks_for(&self) -> [bool; 3] {
        [true, true, false]
    }

    fn forward(&self, operands: [FlexTensor; 3], is_kept: bool) -> (FlexTensor, Option<()>) {
        (Self::forward(self, operands), is_kept.then_some(()))
    }

    fn backward(&self, back: Back<(), 3>) -> [Option<FlexTensor>; 3] {
        Self::backward(self, back)
    }
}

/// A transposed convolution of \[items, inputs, width\], if it can be computed here.
pub fn of_rows(conv: &ConvTranspose1d, x: &Tensor<3>) -> Option<Tensor<3>> {
    let layout = Layout {
        stride: &[conv.stride],
        padding: &[conv.padding],
        padding_out: &[conv.padding_out],
        dilation: &[conv.dilation],
        groups: conv.groups,
    };
    let bias = conv.bias.as_ref().map(|bias| bias.val());
    convolve(x, &conv.weight.val(), bias.as_ref(), layout)
}

/// A transposed convolution of \[items, inputs, height, width\], if it can be computed here.
pub fn of_planes(conv: &ConvTranspose2d, x: &Tensor<4>) -> Option<Tensor<4>> {
    let layout = Layout {
        stride: &conv.stride,
        padding: &conv.padding,
        padding_out: &conv.padding_out,
        dilation: &conv.dilation,
        groups: conv.groups,
    };
    let bias = conv.bias.as_ref().map(|bias| bias.val());
    convolve(x, &conv.weight.val(), bias.as_ref(), layout)
}

/// How a transposed convolution lies, along each axis.
#[derive(Clone, Copy, Debug)]
struct Layout<'a> {
    /// Steps of the output for one of the input.
    stride: &'a [usize],
    /// What is cut off before and after the output.
    padding: &'a [usize],
    /// What is added after the output.
    padding_out: &'a [usize],
    /// Distance of taps.
    dilation: &'a [usize],
    /// Number of channel groups.
    groups: usize,
}

fn convolve<const D: usize>(
    x: &Tensor<D>,
    weight: &Tensor<D>,
    bias: Option<&Tensor<1>>,
    layout: Layout,
) -> Option<Tensor<D>> {
    let (dims, kernel) = (x.dims(), weight.dims());
    if !(3..=4).contains(&D) || !is_ours(x) || !is_ours(weight) || x.shape().num_elements() == 0 {
        return None;
    }
    // A convolution of one dimension has a height of 1.
    let plane = |of: &dyn Fn(usize) -> usize, one: usize| match D {
        3 => [one, of(0)],
        _ => [of(0), of(1)],
    };
    let size = |axis: usize| {
        let extent = layout.dilation[axis] * (kernel[2 + axis] - 1) + 1;
        let size = (dims[2 + axis] - 1) * layout.stride[axis] + extent + layout.padding_out[axis];
        size.saturating_sub(2 * layout.padding[axis])
    };
    let geometry = Geometry {
        items: dims[0],
        inputs: kernel[1] * layout.groups,
        outputs: dims[1],
        groups: layout.groups,
        input: plane(&size, 1),
        kernel: plane(&|axis| kernel[2 + axis], 1),
        stride: plane(&|axis| layout.stride[axis], 1),
        padding: plane(&|axis| layout.padding[axis], 0).map(|padding| (padding, padding)),
        dilation: plane(&|axis| layout.dilation[axis], 1),
    };
    let fits = geometry.is_sound()
        && kernel[0] == dims[1]
        && geometry.output() == plane(&|axis| dims[2 + axis], 1)
        && bias.is_none_or(|bias| bias.dims() == [geometry.inputs]);
    if !fits {
        return None;
    }
    let (x, weight) = (x.clone(), weight.clone());
    Some(match bias {
        None => apply_2((x, weight), Transposed(geometry)),
        Some(bias) => apply_3((x, weight, bias.clone()), Transposed(geometry)),
    })
}
