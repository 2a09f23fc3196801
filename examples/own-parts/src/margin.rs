//! A metric of classes: how far the right class is ahead.

use burn::tensor::Tensor;
use burn::tensor::activation::softmax;
use burn_runner::parts::{LossTargets, MetricPart, TaskKind};

/// The probability of the right class minus that of the most probable other one, averaged over the items.
pub struct Margin;

impl MetricPart for Margin {
    const NAME: &'static str = "margin";
    const DOC: &'static str =
        "Mean difference of the probability of the class and the highest one of another class.";
    const TASKS: &'static [TaskKind] = &[TaskKind::Classification];
    const HIGHER_IS_BETTER: bool = true;
    const NUM_SUMS: usize = 1;

    fn of_rows(outputs: Tensor<2>, targets: LossTargets) -> Tensor<2> {
        let LossTargets::Classes(classes) = targets else {
            unreachable!("`TASKS` has only classes");
        };
        let probabilities = softmax(outputs, 1);
        let classes = classes.unsqueeze_dim(1);
        let right = probabilities.clone().gather(1, classes.clone());
        let [num_rows, num_classes] = probabilities.dims();
        let each = Tensor::arange(0..num_classes as i64, &probabilities.device());
        let is_right = each
            .unsqueeze()
            .equal(classes.expand([num_rows, num_classes]));
        right - probabilities.mask_fill(is_right, 0.0).max_dim(1)
    }

    fn value(sums: &[f64], num_rows: f64) -> f64 {
        sums[0] / num_rows
    }
}
