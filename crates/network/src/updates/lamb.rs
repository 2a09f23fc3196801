//! LAMB (You et al., 2020).

use burn::optim::{Lamb as BurnLamb, LambState, Optimizer};
use burn::tensor::{Device, FloatDType, Tensor};

use super::{correction, mean, mean_square};
#[cfg(feature = "flex")]
use crate::fast::optimizer::{is_ours, step};
use crate::numeric::total;
use runner_core::spec::backend::Arithmetic;

/// LAMB.
#[derive(Clone, Debug)]
pub struct Lamb {
    /// The decay of the mean of gradients.
    pub beta_1: f64,
    /// The decay of the mean of squares.
    pub beta_2: f64,
    /// Added to the root of the mean of squares.
    pub epsilon: f64,
    /// Whether updates are scaled to the norm of their parameter.
    pub use_trust_ratio: bool,
    /// The weight decay, added to the update before it is scaled.
    pub weight_decay: f64,
    /// How norms are summed.
    pub arithmetic: Arithmetic,
    /// Whether runner's kernels may be used.
    pub is_fast: bool,
}

impl Lamb {
    /// The update before it is scaled, and the next state.
    fn update<const D: usize>(
        &self,
        weights: &Tensor<D>,
        gradient: Tensor<D>,
        state: LambState<D>,
    ) -> (Tensor<D>, LambState<D>) {
        let time = state.time + 1;
        let root = correction(self.beta_2, time).sqrt();
        #[cfg(feature = "flex")]
        if self.is_fast && is_ours(weights, &gradient) {
            let rule = runner_kernels::optimizer::lamb::Lamb {
                share_1: (1.0 - self.beta_1) as f32,
                beta_2: self.beta_2 as f32,
                share_2: (1.0 - self.beta_2) as f32,
                correction: correction(self.beta_1, time) as f32,
                root: root as f32,
                epsilon: self.epsilon as f32,
                weight_decay: self.weight_decay as f32,
            };
            let kept = [state.moment_1, state.moment_2];
            let (update, [moment_1, moment_2]) = step(&rule, weights.clone(), kept, gradient);
            let state = LambState {
                time,
                moment_1,
                moment_2,
            };
            return (update, state);
        }
        let state = LambState {
            time,
            moment_1: mean(state.moment_1, gradient.clone(), self.beta_1),
            moment_2: mean_square(state.moment_2, gradient, self.beta_2),
        };
        let denominator = state.moment_2.clone().sqrt().div_scalar(root);
        let numerator = state.moment_1.clone();
        let numerator = numerator.div_scalar(correction(self.beta_1, time));
        let mut update = numerator.div(denominator.add_scalar(self.epsilon));
        if self.weight_decay != 0.0 {
            update = update.add(weights.clone().mul_scalar(self.weight_decay));
        }
        (update, state)
    }
}

impl Optimizer for Lamb {
    type State<const D: usize> = LambState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<LambState<D>>,
    ) -> (Tensor<D>, Option<LambState<D>>) {
        let state = state.unwrap_or_else(|| LambState {
            time: 0,
            moment_1: weights.zeros_like(),
            moment_2: weights.zeros_like(),
        });
        let (mut update, state) = self.update(&weights, gradient, state);
        if self.use_trust_ratio {
            update = update
                .clone()
                .mul(trust_ratio(self.arithmetic, &weights, update).unsqueeze());
        }
        (weights - update.mul_scalar(rate), Some(state))
    }

    fn to_device<const D: usize>(state: LambState<D>, device: &Device) -> LambState<D> {
        BurnLamb::to_device(state, device)
    }
}

/// The norm of the weights over that of the update; 1 if one of them is 0.
fn trust_ratio<const D: usize>(
    arithmetic: Arithmetic,
    weights: &Tensor<D>,
    update: Tensor<D>,
) -> Tensor<1> {
    let dtype = update.dtype();
    let norm = |of: Tensor<D>| total(arithmetic, of.square()).sqrt();
    let (of_weights, of_update) = (norm(weights.clone()), norm(update));
    let is_there = |norm: &Tensor<1>| norm.clone().greater_scalar(0.0);
    let are_there = is_there(&of_weights).bool_and(is_there(&of_update));
    let smallest = dtype
        .finfo()
        .unwrap_or(FloatDType::F32.finfo())
        .min_positive;
    let ratio = of_weights.div(of_update.clamp_min(smallest));
    ratio.ones_like().mask_where(are_there, ratio)
}
