//! Stochastic gradient descent.

use burn::optim::{Optimizer, RecordState};
use burn::tensor::{Device, Tensor};

use super::{Momentum, Velocity, penalized};

/// Stochastic gradient descent.
#[derive(Clone, Debug)]
pub struct Sgd {
    /// How gradients are summed, if they are.
    pub momentum: Option<Momentum>,
    /// The L2 penalty.
    pub weight_decay: f64,
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
