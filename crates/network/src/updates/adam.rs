//! Adam (Kingma and Ba, 2015), AdamW (Loshchilov and Hutter, 2019) and AMSGrad (Reddi et al., 2018).

use burn::optim::{Adam as BurnAdam, AdamState, AdaptiveMomentumState, Optimizer};
use burn::tensor::{Device, Tensor};

use super::{correction, decayed, mean, mean_square, penalized};
#[cfg(feature = "flex")]
use crate::fast::optimizer::{is_ours, step};

/// Adam or AdamW.
#[derive(Clone, Debug)]
pub struct Adam {
    /// The decay of the mean of gradients.
    pub beta_1: f64,
    /// The decay of the mean of squares.
    pub beta_2: f64,
    /// Added to the root of the mean of squares.
    pub epsilon: f64,
    /// Whether to use the largest mean of squares so far.
    pub amsgrad: bool,
    /// The weight decay.
    pub decay: Decay,
    /// Whether runner's kernels may be used.
    pub is_fast: bool,
}

/// The kind of weight decay.
#[derive(Clone, Copy, Debug)]
pub enum Decay {
    /// A gradient proportional to the weight; Adam.
    Penalty(f64),
    /// A factor, decoupled from the gradient; AdamW.
    Decoupled(f64),
    /// The same where the mean of gradients has the sign of the weight (Chen et al., 2025).
    Cautious(f64),
}

impl Adam {
    fn penalty(&self) -> f64 {
        match self.decay {
            Decay::Penalty(penalty) => penalty,
            Decay::Decoupled(_) | Decay::Cautious(_) => 0.0,
        }
    }

    /// The step of runner's kernel.
    #[cfg(feature = "flex")]
    fn rule(&self, rate: f64, time: usize) -> runner_kernels::optimizer::adam::Adam {
        let (kept, cautious) = match self.decay {
            Decay::Penalty(_) => (1.0, 0.0),
            Decay::Decoupled(decay) => (1.0 - rate * decay, 0.0),
            Decay::Cautious(decay) => (1.0, rate * decay),
        };
        runner_kernels::optimizer::adam::Adam {
            share_1: (1.0 - self.beta_1) as f32,
            beta_2: self.beta_2 as f32,
            share_2: (1.0 - self.beta_2) as f32,
            root: correction(self.beta_2, time).sqrt() as f32,
            epsilon: self.epsilon as f32,
            rate: (rate / correction(self.beta_1, time)) as f32,
            penalty: self.penalty() as f32,
            kept: kept as f32,
            cautious: cautious as f32,
        }
    }
}

impl Optimizer for Adam {
    type State<const D: usize> = AdamState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdamState<D>>,
    ) -> (Tensor<D>, Option<AdamState<D>>) {
        let mut state = state.map_or_else(
            || AdaptiveMomentumState::new(0, weights.zeros_like(), weights.zeros_like()),
            |state| state.momentum,
        );
        state.time += 1;
        #[cfg(feature = "flex")]
        if self.is_fast && is_ours(&weights, &gradient) {
            let rule = self.rule(rate, state.time);
            let (first, second) = (state.moment_1, state.moment_2);
            let weights = if self.amsgrad {
                let largest = state.max_moment_2.unwrap_or_else(|| second.zeros_like());
                let (weights, [first, second, largest]) =
                    step(&rule, weights, [first, second, largest], gradient);
                (state.moment_1, state.moment_2) = (first, second);
                state.max_moment_2 = Some(largest);
                weights
            } else {
                let (weights, kept) = step(&rule, weights, [first, second], gradient);
                [state.moment_1, state.moment_2] = kept;
                weights
            };
            return (weights, Some(AdamState::new(state)));
        }
        let gradient = penalized(gradient, &weights, self.penalty());
        state.moment_1 = mean(state.moment_1, gradient.clone(), self.beta_1);
        state.moment_2 = mean_square(state.moment_2, gradient, self.beta_2);
        let squares = if self.amsgrad {
            let now = state.moment_2.clone();
            let largest = state
                .max_moment_2
                .map_or(now.clone(), |all| all.max_pair(now));
            state.max_moment_2 = Some(largest.clone());
            largest
        } else {
            state.moment_2.clone()
        };
        let root = correction(self.beta_2, state.time).sqrt();
        let denominator = squares.sqrt().div_scalar(root).add_scalar(self.epsilon);
        let update = state.moment_1.clone().div(denominator);
        let update = update.mul_scalar(rate / correction(self.beta_1, state.time));
        let weights = match self.decay {
            Decay::Penalty(_) => weights,
            Decay::Decoupled(decay) => decayed(weights, rate * decay),
            Decay::Cautious(decay) => {
                let is_positive = weights.clone().greater_equal_scalar(0.0);
                let differ =
                    is_positive.not_equal(state.moment_1.clone().greater_equal_scalar(0.0));
                let decay = weights.clone().mul_scalar(rate * decay);
                weights - decay.mask_fill(differ, 0.0)
            }
        };
        (weights - update, Some(AdamState::new(state)))
    }

    fn to_device<const D: usize>(state: AdamState<D>, device: &Device) -> AdamState<D> {
        BurnAdam::to_device(state, device)
    }
}
