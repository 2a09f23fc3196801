//! Gated linear units and PReLU, whose slopes are learned.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::nn::PRelu;
use burn::tensor::Tensor;
use runner_kernels::gated;
use runner_kernels::prelu::Prelu;

use super::operation::{
    Back, Operation, apply_1, apply_2, changed, contiguous, is_ours, numbers, sizes, tensor,
};

/// The first half of the last axis times the logistic function of the second.
#[derive(Clone, Debug)]
struct Glu;

impl Operation<1> for Glu {
    type Kept = ();

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [true]
    }

    fn is_cheap(&self) -> bool {
        true
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<()>) {
        let x = contiguous(x);
        let mut shape = x.shape();
        let last = shape.num_dims() - 1;
        shape[last] /= 2;
        let output = gated::forward(numbers(&x), shape[last]);
        (tensor(output, shape), is_kept.then_some(()))
    }

    fn backward(&self, mut back: Back<(), 1>) -> [Option<FlexTensor>; 1] {
        let x = back.operand(0);
        let columns = sizes(&back.gradient).last().copied().unwrap_or(1);
        let output = gated::backward(numbers(&x), numbers(&back.gradient), columns);
        [Some(tensor(output, x.shape()))]
    }
}

/// A gated linear unit of a tensor with numbers that is computed here.
pub fn glu<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    apply_1(x, Glu)
}

/// The operands are the input and the slopes, one or one for each channel, which are the second axis.
#[derive(Clone, Debug)]
struct Leaky(Prelu);

impl Operation<2> for Leaky {
    type Kept = ();

    fn asks_for(&self, _: [bool; 2]) -> [bool; 2] {
        [true; 2]
    }

    fn is_cheap(&self) -> bool {
        true
    }

    fn forward(&self, [x, slopes]: [FlexTensor; 2], is_kept: bool) -> (FlexTensor, Option<()>) {
        let (x, slopes) = (contiguous(x), contiguous(slopes));
        let output = changed(x.clone(), |output| {
            self.0.scale(numbers(&x), numbers(&slopes), output);
        });
        (output, is_kept.then_some(()))
    }

    fn backward(&self, mut back: Back<(), 2>) -> [Option<FlexTensor>; 2] {
        let (x, slopes) = (back.operand(0), back.operand(1));
        let of_slopes = back.wants[1].then(|| {
            let sums = self.0.backward_slopes(numbers(&x), numbers(&back.gradient));
            tensor(sums, slopes.shape())
        });
        let of_input = back.wants[0].then(|| {
            changed(back.gradient, |gradient| {
                self.0.scale(numbers(&x), numbers(&slopes), gradient);
            })
        });
        [of_input, of_slopes]
    }
}

/// PReLU, if it can be computed here.
pub fn prelu<const D: usize>(layer: &PRelu, x: &Tensor<D>) -> Option<Tensor<D>> {
    let slopes = layer.alpha.val();
    let [channels] = slopes.dims();
    if !is_ours(x) || x.shape().num_elements() == 0 || (channels > 1 && D == 1) {
        return None;
    }
    let area = x.dims().iter().skip(2).product();
    let operation = Leaky(Prelu { channels, area });
    Some(apply_2((x.clone(), slopes), operation))
}
