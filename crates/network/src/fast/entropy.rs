//! Cross-entropy of classes.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::{Int, Shape, Tensor};
use runner_kernels::softmax::{cross_entropy, cross_entropy_backward};

use super::operation::{Back, Operation, apply_1, contiguous, is_ours, numbers, sizes, tensor};

#[derive(Clone, Debug)]
struct CrossEntropy {
    classes: Arc<Vec<usize>>,
    smoothing: f32,
}

impl Operation<1> for CrossEntropy {
    /// The logarithm of each row's sum of exponentials.
    type Kept = Arc<Vec<f32>>;

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [true]
    }

    fn forward(
        &self,
        [scores]: [FlexTensor; 1],
        is_kept: bool,
    ) -> (FlexTensor, Option<Self::Kept>) {
        let scores = contiguous(scores);
        let columns = sizes(&scores)[1];
        let (losses, sums) =
            cross_entropy(numbers(&scores), &self.classes, columns, self.smoothing);
        let shape = Shape::from([losses.len()]);
        (tensor(losses, shape), is_kept.then(|| Arc::new(sums)))
    }

    fn backward(&self, mut back: Back<Self::Kept, 1>) -> [Option<FlexTensor>; 1] {
        let scores = back.operand(0);
        let gradient = cross_entropy_backward(
            numbers(&scores),
            &self.classes,
            sizes(&scores)[1],
            self.smoothing,
            &back.kept,
            numbers(&back.gradient),
        );
        [Some(tensor(gradient, scores.shape()))]
    }
}

/// The cross-entropy of each row of scores \[rows, classes\] with the class of the row, if it is supported here.
pub fn losses(scores: &Tensor<2>, classes: &Tensor<1, Int>, smoothing: f64) -> Option<Tensor<1>> {
    let [rows, columns] = scores.dims();
    if !is_ours(scores) || rows == 0 || columns == 0 {
        return None;
    }
    let classes: Option<Vec<usize>> = classes
        .to_data()
        .iter::<i64>()
        .map(|class| usize::try_from(class).ok().filter(|class| *class < columns))
        .collect();
    let operation = CrossEntropy {
        classes: Arc::new(classes?),
        smoothing: smoothing as f32,
    };
    Some(apply_1(scores.clone(), operation))
}
