//! Linear layers.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::nn;
use burn::tensor::{Shape, Tensor};
use runner_kernels::linear::Linear;

use super::operation::{
    Back, Operation, apply_2, apply_3, contiguous, is_ours, numbers, sizes, tensor,
};

/// Operands are the input, the weights \[inputs, outputs\] and, if there are three, the bias.
#[derive(Clone, Debug)]
struct Affine;

impl Affine {
    fn forward<const N: usize>(operands: [FlexTensor; N]) -> FlexTensor {
        let operands = operands.map(contiguous);
        let layer = layer(&operands[0], &operands[1]);
        let bias = operands.get(2).map(numbers);
        let output = layer.forward(numbers(&operands[0]), numbers(&operands[1]), bias);
        let mut shape = sizes(&operands[0]);
        shape.pop();
        shape.push(layer.outputs);
        tensor(output, Shape::from(shape))
    }

    fn backward<const N: usize>(mut back: Back<(), N>) -> [Option<FlexTensor>; N] {
        let (x, weight) = (back.operand(0), back.operand(1));
        let layer = layer(&x, &weight);
        let gradient = numbers(&back.gradient);
        std::array::from_fn(|at| {
            back.wants[at].then(|| match at {
                0 => tensor(layer.backward_input(gradient, numbers(&weight)), x.shape()),
                1 => tensor(layer.backward_weight(numbers(&x), gradient), weight.shape()),
                _ => tensor(layer.backward_bias(gradient), Shape::from([layer.outputs])),
            })
        })
    }
}

/// The sizes of a layer, for its input and weights.
fn layer(x: &FlexTensor, weight: &FlexTensor) -> Linear {
    let (inputs, outputs) = (weight.shape()[0], weight.shape()[1]);
    let rows = sizes(x).iter().rev().skip(1).product();
    Linear {
        rows,
        inputs,
        outputs,
    }
}

impl Operation<2> for Affine {
    type Kept = ();

    fn asks_for(&self) -> [bool; 2] {
        [true; 2]
    }

    fn forward(&self, operands: [FlexTensor; 2], is_kept: bool) -> (FlexTensor, Option<()>) {
        (Self::forward(operands), is_kept.then_some(()))
    }

    fn backward(&self, back: Back<(), 2>) -> [Option<FlexTensor>; 2] {
        Self::backward(back)
    }
}

impl Operation<3> for Affine {
    type Kept = ();

    fn asks_for(&self) -> [bool; 3] {
        [true, true, false]
    }

    fn forward(&self, operands: [FlexTensor; 3], is_kept: bool) -> (FlexTensor, Option<()>) {
        (Self::forward(operands), is_kept.then_some(()))
    }

    fn backward(&self, back: Back<(), 3>) -> [Option<FlexTensor>; 3] {
        Self::backward(back)
    }
}

/// The output of a linear layer, \[.., inputs\] to \[.., outputs\], by Burn's where it cannot be computed here.
pub fn linear<const D: usize>(linear: &nn::Linear, x: Tensor<D>) -> Tensor<D> {
    let weight = linear.weight.val();
    let is_linear = D > 1 && x.dims()[D - 1] == weight.dims()[0];
    if !is_linear || !is_ours(&x) || !is_ours(&weight) || x.shape().num_elements() == 0 {
        return linear.forward(x);
    }
    match &linear.bias {
        Some(bias) => apply_3((x, weight, bias.val()), Affine),
        None => apply_2((x, weight), Affine),
    }
}
