//! RMSProp (Hinton, 2012; centered: Graves, 2013) and AdaGrad (Duchi et al., 2011).

use burn::optim::{Optimizer, RecordState};
use burn::tensor::{Device, Tensor};

use super::{mean, mean_square, penalized};

/// RMSProp.
#[derive(Clone, Debug)]
pub struct RmsProp {
    /// The decay of the mean of squares.
    pub alpha: f64,
    /// The fraction of the last update that is kept.
    pub momentum: f64,
    /// Added to the root of the mean of squares.
    pub epsilon: f64,
    /// Whether gradients are divided by their standard deviation.
    pub centered: bool,
    /// The L2 penalty.
    pub weight_decay: f64,
}

/// The means of RMSProp, with the names that Burn's have in checkpoints.
#[derive(RecordState, Clone, Debug)]
pub struct RmsPropState<const D: usize> {
    square_avg: Squares<D>,
    centered: Mean<D>,
    momentum: Option<Sum<D>>,
}

#[derive(RecordState, Clone, Debug)]
struct Squares<const D: usize> {
    square_avg: Tensor<D>,
}

#[derive(RecordState, Clone, Debug)]
struct Mean<const D: usize> {
    grad_avg: Option<Tensor<D>>,
}

#[derive(RecordState, Clone, Debug)]
struct Sum<const D: usize> {
    buf: Tensor<D>,
}

impl Optimizer for RmsProp {
    type State<const D: usize> = RmsPropState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<RmsPropState<D>>,
    ) -> (Tensor<D>, Option<RmsPropState<D>>) {
        let gradient = penalized(gradient, &weights, self.weight_decay);
        let zeros = || weights.zeros_like();
        let (squares, average, sum) = match state {
            Some(RmsPropState {
                square_avg,
                centered,
                momentum,
            }) => (square_avg.square_avg, centered.grad_avg, momentum),
            None => (zeros(), self.centered.then(zeros), None),
        };
        let square_avg = mean_square(squares, gradient.clone(), self.alpha);
        let grad_avg = average.map(|average| mean(average, gradient.clone(), self.alpha));
        let variance = match &grad_avg {
            Some(mean) => square_avg.clone().sub(mean.clone().square()),
            None => square_avg.clone(),
        };
        let mut update = gradient.div(variance.sqrt().add_scalar(self.epsilon));
        if let Some(sum) = sum {
            update = sum.buf.mul_scalar(self.momentum).add(update);
        }
        let state = RmsPropState {
            square_avg: Squares { square_avg },
            centered: Mean { grad_avg },
            momentum: (self.momentum > 0.0).then(|| Sum {
                buf: update.clone(),
            }),
        };
        (weights - update.mul_scalar(rate), Some(state))
    }

    fn to_device<const D: usize>(state: RmsPropState<D>, device: &Device) -> RmsPropState<D> {
        let moved = |tensor: Tensor<D>| tensor.to_device(device);
        RmsPropState {
            square_avg: Squares {
                square_avg: moved(state.square_avg.square_avg),
            },
            centered: Mean {
                grad_avg: state.centered.grad_avg.map(moved),
            },
            momentum: state.momentum.map(|sum| Sum {
                buf: moved(sum.buf),
            }),
        }
    }
}

/// AdaGrad.
#[derive(Clone, Debug)]
pub struct AdaGrad {
    /// The rate is divided by 1 plus this times the number of earlier updates.
    pub lr_decay: f64,
    /// Added to the root of the sum of squares.
    pub epsilon: f64,
    /// The L2 penalty.
    pub weight_decay: f64,
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
        let gradient = penalized(gradient, &weights, self.weight_decay);
        let (earlier, sum) = match state {
            Some(AdaGradState { lr_decay }) => {
                let sum = lr_decay.sum.add(gradient.clone().square());
                (lr_decay.time, sum)
            }
            None => (0, gradient.clone().square()),
        };
        let rate = rate / (1.0 + earlier as f64 * self.lr_decay);
        let update = gradient.div(sum.clone().sqrt().add_scalar(self.epsilon));
        let time = earlier + 1;
        let lr_decay = SumOfSquares { time, sum };
        let state = AdaGradState { lr_decay };
        (weights - update.mul_scalar(rate), Some(state))
    }

    fn to_device<const D: usize>(mut state: AdaGradState<D>, device: &Device) -> AdaGradState<D> {
        state.lr_decay.sum = state.lr_decay.sum.to_device(device);
        state
    }
}
