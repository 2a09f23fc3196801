//! Lion (Chen et al., 2023).

use burn::optim::{Lion as BurnLion, LionState, Optimizer};
use burn::tensor::{Device, Tensor};

use super::{decayed, mean};
#[cfg(feature = "flex")]
use crate::fast::optimizer::{is_ours, step};

/// Lion.
#[derive(Clone, Debug)]
pub struct Lion {
    /// The weight of the running mean in an update.
    pub beta_1: f64,
    /// The decay of the mean of gradients.
    pub beta_2: f64,
    /// The weight decay, decoupled.
    pub weight_decay: f64,
    /// Whether runner's kernels may be used.
    pub is_fast: bool,
}

impl Optimizer for Lion {
    type State<const D: usize> = LionState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<LionState<D>>,
    ) -> (Tensor<D>, Option<LionState<D>>) {
        let earlier = state.map_or_else(|| weights.zeros_like(), |state| state.momentum);
        #[cfg(feature = "flex")]
        if self.is_fast && is_ours(&weights, &gradient) {
            let rule = runner_kernels::optimizer::lion::Lion {
                share_1: (1.0 - self.beta_1) as f32,
                share_2: (1.0 - self.beta_2) as f32,
                rate: rate as f32,
                kept: (1.0 - rate * self.weight_decay) as f32,
            };
            let (weights, [momentum]) = step(&rule, weights, [earlier], gradient);
            return (weights, Some(LionState::new(momentum)));
        }
        let update = mean(earlier.clone(), gradient.clone(), self.beta_1).sign();
        let momentum = mean(earlier, gradient, self.beta_2);
        let weights = decayed(weights, rate * self.weight_decay);
        let weights = weights - update.mul_scalar(rate);
        (weights, Some(LionState::new(momentum)))
    }

    fn to_device<const D: usize>(state: LionState<D>, device: &Device) -> LionState<D> {
        BurnLion::to_device(state, device)
    }
}
