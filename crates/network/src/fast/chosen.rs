//! The class with the largest score.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use runner_kernels::argmax::argmax;

use super::operation::{Back, Operation, apply_1, contiguous, is_ours, numbers, sizes, tensor};

/// From here on, not every class is a 32-bit float.
const TOO_MANY: usize = 1 << 24;

/// As numbers, because an operation returns some. It has no gradient.
#[derive(Clone, Debug)]
struct Chosen;

impl Operation<1> for Chosen {
    type Kept = ();

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [scores]: [FlexTensor; 1], _: bool) -> (FlexTensor, Option<()>) {
        let scores = contiguous(scores);
        let chosen = argmax(numbers(&scores), sizes(&scores)[1]);
        let shape = Shape::from([chosen.len()]);
        let chosen = chosen.into_iter().map(|class| class as f32);
        (tensor(chosen.collect(), shape), None)
    }

    fn backward(&self, _: Back<(), 1>) -> [Option<FlexTensor>; 1] {
        [None]
    }
}

/// The class with the largest score in each row of \[rows, classes\], if it is supported here.
pub fn classes(scores: &Tensor<2>) -> Option<Vec<usize>> {
    let [rows, columns] = scores.dims();
    if !is_ours(scores) || rows == 0 || columns == 0 || columns > TOO_MANY {
        return None;
    }
    let chosen: Tensor<1> = apply_1(scores.clone().without_autodiff(), Chosen);
    let chosen = chosen.into_data();
    Some(chosen.iter::<f32>().map(|class| class as usize).collect())
}
