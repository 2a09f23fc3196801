//! AdaGrad (Duchi et al., 2011).

use burn::optim::{Optimizer, RecordState};
use burn::tensor::{Device, Tensor};

use super::penalized;
#[cfg(feature = "flex")]
use crate::fast::optimizer::{is_ours, step};

/// AdaGrad.
#[derive(Clone, Debug)]
pub struct AdaGrad {
    /// The rate is divided by 1 plus this times the number of earlier updates.
    pub lr_decay: f64,
    /// Added to the root of the sum of squares.
    pub epsilon: f64,
    /// The L2 penalty.
    pub weight_decay: f64,
    /// Whether runner's kernels may be used.
    pub is_fast: bool,
}

/// The sum of squares of AdaGrad, with the names that Burn's has in checkpoints.
#[derive(RecordState, Clone, Debug)]
pub struct AdaGradState<const D: usize> {
    lr_decay: SumOfSquares<D>,
}

#[derive(RecordState, Clone, Debug)]
struct SumOfSquares<const D: usize> {
    time: usize,
    sum: Tensor<D>,
}

impl Optimizer for AdaGrad {
    type State<const D: usize> = AdaGradState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdaGradState<D>>,
    ) -> (Tensor<D>, Option<AdaGradState<D>>) {
        let (earlier, sum) = match state {
            Some(AdaGradState { lr_decay }) => (lr_decay.time, lr_decay.sum),
            None => (0, weights.zeros_like()),
        };
        let rate = rate / (1.0 + earlier as f64 * self.lr_decay);
        let time = earlier + 1;
        #[cfg(feature = "flex")]
        if self.is_fast && is_ours(&weights, &gradient) {
            let rule = runner_kernels::optimizer::adagrad::AdaGrad {
                rate: rate as f32,
                epsilon: self.epsilon as f32,
                penalty: self.weight_decay as f32,
            };
            let (weights, [sum]) = step(&rule, weights, [sum], gradient);
            let lr_decay = SumOfSquares { time, sum };
            return (weights, Some(AdaGradState { lr_decay }));
        }
        let gradient = penalized(gradient, &weights, self.weight_decay);
        let sum = sum.add(gradient.clone().square());
        let update = gradient.div(sum.clone().sqrt().add_scalar(self.epsilon));
        let lr_decay = SumOfSquares { time, sum };
        let state = AdaGradState { lr_decay };
        (weights - update.mul_scalar(rate), Some(state))
    }

    fn to_device<const D: usize>(mut state: AdaGradState<D>, device: &Device) -> AdaGradState<D> {
        state.lr_decay.sum = state.lr_decay.sum.to_device(device);
        state
    }
}
