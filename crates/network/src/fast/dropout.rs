//! Dropout, whose gradient needs nothing but its seed.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use runner_kernels::dropout::Dropout;

use super::operation::{Back, Operation, apply_1, changed, contiguous, numbers, tensor};

/// A dropout of a tensor's numbers.
#[derive(Clone, Debug)]
struct Each(Dropout);

impl Operation<1> for Each {
    type Kept = ();

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn is_cheap(&self) -> bool {
        true
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<()>) {
        let x = contiguous(x);
        let output = if x.is_unique() {
            changed(x, |values| self.0.apply(values))
        } else {
            tensor(self.0.forward(numbers(&x)), TensorMetadata::shape(&x))
        };
        (output, is_kept.then_some(()))
    }

    fn backward(&self, back: Back<(), 1>) -> [Option<FlexTensor>; 1] {
        [Some(changed(back.gradient, |gradient| {
            self.0.apply(gradient)
        }))]
    }
}

/// Numbers dropped with a probability; the tensor must be one that is computed here.
pub fn dropped<const D: usize>(x: Tensor<D>, seed: u64, probability: f64) -> Tensor<D> {
    apply_1(x, Each(Dropout::new(seed, probability)))
}
