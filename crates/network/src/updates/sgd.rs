//! Stochastic gradient descent.

use burn::optim::{Optimizer, RecordState};
use burn::tensor::{Device, Tensor};

use super::{Momentum, Velocity, penalized};
#[cfg(feature = "flex")]
use crate::fast::optimizer::{is_ours, step};

/// Stochastic gradient descent.
#[derive(Clone, Debug)]
pub struct Sgd {
    /// How gradients are summed, if they are.
    pub momentum: Option<Momentum>,
    /// The L2 penalty.
    pub weight_decay: f64,
    /// Whether runner's kernels may be used.
    pub is_fast: bool,
}

impl Sgd {
    /// A step of runner's kernel.
    #[cfg(feature = "flex")]
    fn by_kernel<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        velocity: Option<Velocity<D>>,
    ) -> (Tensor<D>, Option<Velocity<D>>) {
        let sgd = runner_kernels::optimizer::sgd::Sgd {
            rate: rate as f32,
            penalty: self.weight_decay as f32,
        };
        let Some(settings) = &self.momentum else {
            let (weights, []) = step(&sgd, weights, [], gradient);
            return (weights, None);
        };
        // The first gradient counts as a whole.
        let (velocity, share) = match velocity {
            Some(of) => (of.velocity, 1.0 - settings.dampening),
            None => (weights.zeros_like(), 1.0),
        };
        let rule = runner_kernels::optimizer::sgd::Momentum {
            sgd,
            momentum: settings.momentum as f32,
            share: share as f32,
            nesterov: settings.nesterov,
        };
        let (weights, [velocity]) = step(&rule, weights, [velocity], gradient);
        (weights, Some(Velocity { velocity }))
    }
}

/// The sum of gradients, if there is one.
#[derive(RecordState, Clone, Debug)]
pub struct SgdState<const D: usize> {
    momentum: Option<Velocity<D>>,
}

impl Optimizer for Sgd {
    type State<const D: usize> = SgdState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<SgdState<D>>,
    ) -> (Tensor<D>, Option<SgdState<D>>) {
        #[cfg(feature = "flex")]
        if self.is_fast && is_ours(&weights, &gradient) {
            let velocity = state.and_then(|state| state.momentum);
            let (weights, momentum) = self.by_kernel(rate, weights, gradient, velocity);
            return (weights, Some(SgdState { momentum }));
        }
        let gradient = penalized(gradient, &weights, self.weight_decay);
        let (update, momentum) = match &self.momentum {
            Some(momentum) => {
                let (update, velocity) =
                    momentum.step(gradient, state.and_then(|state| state.momentum));
                (update, Some(velocity))
            }
            None => (gradient, None),
        };
        (
            weights - update.mul_scalar(rate),
            Some(SgdState { momentum }),
        )
    }

    fn to_device<const D: usize>(mut state: SgdState<D>, device: &Device) -> SgdState<D> {
        state.momentum = state.momentum.map(|state| Velocity {
            velocity: state.velocity.to_device(device),
        });
        state
    }
}
