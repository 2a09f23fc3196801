//! RMSProp (Hinton, 2012; centered: Graves, 2013).

use burn::optim::{Optimizer, RecordState};
use burn::tensor::{Device, Tensor};

use super::{mean, mean_square, penalized};
#[cfg(feature = "flex")]
use crate::fast::optimizer::{is_ours, step};

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
    /// Whether runner's kernels may be used.
    pub is_fast: bool,
}

#[cfg(feature = "flex")]
impl RmsProp {
    /// The rule of runner's kernel.
    fn rule<const CENTERED: bool>(
        &self,
        rate: f64,
    ) -> runner_kernels::optimizer::rms::RmsProp<CENTERED> {
        runner_kernels::optimizer::rms::RmsProp {
            alpha: self.alpha as f32,
            share: (1.0 - self.alpha) as f32,
            momentum: self.momentum as f32,
            epsilon: self.epsilon as f32,
            rate: rate as f32,
            penalty: self.weight_decay as f32,
        }
    }

    /// A step of runner's kernel.
    fn by_kernel<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        (squares, average, sum): Kept<D>,
    ) -> (Tensor<D>, Kept<D>) {
        match (average, sum) {
            (None, None) => {
                let (weights, [squares]) =
                    step(&self.rule::<false>(rate), weights, [squares], gradient);
                (weights, (squares, None, None))
            }
            (None, Some(sum)) => {
                let kept = [squares, sum];
                let (weights, [squares, sum]) =
                    step(&self.rule::<false>(rate), weights, kept, gradient);
                (weights, (squares, None, Some(sum)))
            }
            (Some(average), None) => {
                let kept = [squares, average];
                let (weights, [squares, average]) =
                    step(&self.rule::<true>(rate), weights, kept, gradient);
                (weights, (squares, Some(average), None))
            }
            (Some(average), Some(sum)) => {
                let kept = [squares, average, sum];
                let (weights, [squares, average, sum]) =
                    step(&self.rule::<true>(rate), weights, kept, gradient);
                (weights, (squares, Some(average), Some(sum)))
            }
        }
    }
}

/// The mean of squares, that of gradients and the sum of updates, where they are kept.
#[cfg(feature = "flex")]
type Kept<const D: usize> = (Tensor<D>, Option<Tensor<D>>, Option<Tensor<D>>);

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
        let zeros = || weights.zeros_like();
        let (squares, average, sum) = match state {
            Some(RmsPropState {
                square_avg,
                centered,
                momentum,
            }) => (square_avg.square_avg, centered.grad_avg, momentum),
            None => (zeros(), self.centered.then(zeros), None),
        };
        #[cfg(feature = "flex")]
        if self.is_fast && is_ours(&weights, &gradient) {
            let first = || (self.momentum > 0.0).then(zeros);
            let sum = sum.map(|sum| sum.buf).or_else(first);
            let kept = (squares, average, sum);
            let (weights, (square_avg, grad_avg, sum)) =
                self.by_kernel(rate, weights, gradient, kept);
            let state = RmsPropState {
                square_avg: Squares { square_avg },
                centered: Mean { grad_avg },
                momentum: sum.map(|buf| Sum { buf }),
            };
            return (weights, Some(state));
        }
        let gradient = penalized(gradient, &weights, self.weight_decay);
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
