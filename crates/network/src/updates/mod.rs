//! The update rules of optimizers.
//!
//! Burn's own rules keep their settings and corrections of bias in 32 bits, which is 1e-5 off in the first steps of
//! Adam, and in `f64` limits every rule to 32 bits. Here numbers are computed in 64 bits and rounded once, to the
//! precision of the weights. States have the names of Burn's.

pub mod adagrad;
pub mod adam;
pub mod adan;
pub mod lamb;
pub mod lion;
pub mod muon;
pub mod rms;
pub mod sgd;
#[cfg(all(test, feature = "flex"))]
mod tests;

use burn::optim::RecordState;
use burn::tensor::Tensor;
use runner_core::spec::backend::power;

/// A running sum of gradients.
#[derive(RecordState, Clone, Debug)]
pub struct Velocity<const D: usize> {
    velocity: Tensor<D>,
}

/// How gradients are summed over steps (Sutskever et al., 2013).
#[derive(Clone, Copy, Debug)]
pub struct Momentum {
    /// The fraction of the sum that is kept.
    pub momentum: f64,
    /// The fraction of a gradient that is left out, except of the first.
    pub dampening: f64,
    /// Whether to look a step ahead.
    pub nesterov: bool,
}

impl Momentum {
    fn step<const D: usize>(
        &self,
        gradient: Tensor<D>,
        state: Option<Velocity<D>>,
    ) -> (Tensor<D>, Velocity<D>) {
        let velocity = match state {
            Some(state) => gradient
                .clone()
                .mul_scalar(1.0 - self.dampening)
                .add(state.velocity.mul_scalar(self.momentum)),
            None => gradient.clone(),
        };
        let update = if self.nesterov {
            velocity.clone().mul_scalar(self.momentum).add(gradient)
        } else {
            velocity.clone()
        };
        (update, Velocity { velocity })
    }
}

/// The gradient of a loss with an L2 penalty.
fn penalized<const D: usize>(gradient: Tensor<D>, weights: &Tensor<D>, penalty: f64) -> Tensor<D> {
    if penalty > 0.0 {
        weights.clone().mul_scalar(penalty).add(gradient)
    } else {
        gradient
    }
}

/// Weights after a decay that is decoupled from the gradient.
fn decayed<const D: usize>(weights: Tensor<D>, decay: f64) -> Tensor<D> {
    if decay == 0.0 {
        weights
    } else {
        weights.mul_scalar(1.0 - decay)
    }
}

/// A running mean with one more value.
fn mean<const D: usize>(mean: Tensor<D>, value: Tensor<D>, beta: f64) -> Tensor<D> {
    let difference = value.sub(mean.clone());
    mean.add(difference.mul_scalar(1.0 - beta))
}

/// A running mean of squares with one more.
fn mean_square<const D: usize>(mean: Tensor<D>, value: Tensor<D>, beta: f64) -> Tensor<D> {
    let square = value.square().mul_scalar(1.0 - beta);
    mean.mul_scalar(beta).add(square)
}

/// What a running mean that started at 0 is divided by after `time` steps.
fn correction(beta: f64, time: usize) -> f64 {
    1.0 - power(beta, time)
}
