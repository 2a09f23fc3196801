//! Adan (Xie et al., 2022).

use burn::optim::{Adan as BurnAdan, AdanState, AdaptiveNesterovMomentumState, Optimizer};
use burn::tensor::{Device, Tensor};

use super::{correction, decayed, mean, mean_square};
#[cfg(feature = "flex")]
use crate::fast::optimizer::{is_ours, step};

/// Adan.
#[derive(Clone, Debug)]
pub struct Adan {
    /// The decay of the mean of gradients.
    pub beta_1: f64,
    /// The decay of the mean of differences of gradients.
    pub beta_2: f64,
    /// The decay of the mean of squares.
    pub beta_3: f64,
    /// Added to the root of the mean of squares.
    pub epsilon: f64,
    /// Whether weights decay as in AdamW, instead of by the proximal form of the paper.
    pub no_prox: bool,
    /// The weight decay.
    pub weight_decay: f64,
    /// Whether runner's kernels may be used.
    pub is_fast: bool,
}

impl Adan {
    /// The step of runner's kernel.
    #[cfg(feature = "flex")]
    fn rule(&self, rate: f64, time: usize) -> runner_kernels::optimizer::adan::Adan {
        let decay = rate * self.weight_decay;
        let (kept, proximal) = if self.no_prox {
            (1.0 - decay, 1.0)
        } else {
            (1.0, 1.0 + decay)
        };
        runner_kernels::optimizer::adan::Adan {
            share_1: (1.0 - self.beta_1) as f32,
            beta_2: self.beta_2 as f32,
            share_2: (1.0 - self.beta_2) as f32,
            beta_3: self.beta_3 as f32,
            share_3: (1.0 - self.beta_3) as f32,
            correction: correction(self.beta_1, time) as f32,
            ahead: (self.beta_2 / correction(self.beta_2, time)) as f32,
            root: correction(self.beta_3, time).sqrt() as f32,
            epsilon: self.epsilon as f32,
            rate: rate as f32,
            kept: kept as f32,
            proximal: proximal as f32,
        }
    }
}

impl Optimizer for Adan {
    type State<const D: usize> = AdanState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdanState<D>>,
    ) -> (Tensor<D>, Option<AdanState<D>>) {
        let zeros = || weights.zeros_like();
        let mut state = state.map_or_else(
            // There is no difference in the first step.
            || {
                let earlier = gradient.clone().neg();
                AdaptiveNesterovMomentumState::new(0, zeros(), zeros(), zeros(), earlier)
            },
            |state| state.momentum,
        );
        state.time += 1;
        #[cfg(feature = "flex")]
        if self.is_fast && is_ours(&weights, &gradient) {
            let means = [state.exp_avg, state.exp_avg_diff, state.exp_avg_sq];
            let [of_gradients, of_differences, squares] = means;
            let kept = [of_gradients, of_differences, squares, state.neg_pre_grad];
            let rule = self.rule(rate, state.time);
            let (weights, [of_gradients, of_differences, squares, earlier]) =
                step(&rule, weights, kept, gradient);
            let time = state.time;
            let state = AdaptiveNesterovMomentumState::new(
                time,
                of_gradients,
                squares,
                of_differences,
                earlier,
            );
            return (weights, Some(AdanState::new(state)));
        }
        let difference = state.neg_pre_grad.add(gradient.clone());
        let ahead = difference
            .clone()
            .mul_scalar(self.beta_2)
            .add(gradient.clone());
        state.exp_avg = mean(state.exp_avg, gradient.clone(), self.beta_1);
        state.exp_avg_diff = mean(state.exp_avg_diff, difference, self.beta_2);
        state.exp_avg_sq = mean_square(state.exp_avg_sq, ahead, self.beta_3);
        state.neg_pre_grad = gradient.neg();

        let root = correction(self.beta_3, state.time).sqrt();
        let squares = state.exp_avg_sq.clone();
        let denominator = squares.sqrt().div_scalar(root).add_scalar(self.epsilon);
        let of_mean = state.exp_avg.clone();
        let of_mean = of_mean.div_scalar(correction(self.beta_1, state.time));
        let of_difference = state.exp_avg_diff.clone();
        let of_difference =
            of_difference.mul_scalar(self.beta_2 / correction(self.beta_2, state.time));
        let update = of_mean.add(of_difference).div(denominator).mul_scalar(rate);

        let decay = rate * self.weight_decay;
        let weights = if self.no_prox {
            decayed(weights, decay) - update
        } else if decay == 0.0 {
            weights - update
        } else {
            (weights - update).div_scalar(1.0 + decay)
        };
        (weights, Some(AdanState::new(state)))
    }

    fn to_device<const D: usize>(state: AdanState<D>, device: &Device) -> AdanState<D> {
        BurnAdan::to_device(state, device)
    }
}
