//! Stochastic gradient descent.

use super::{Each, penalized, settled};

/// Stochastic gradient descent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// The learning rate.
    pub rate: f32,
    /// The L2 penalty.
    pub penalty: f32,
}

impl Each<0> for Sgd {
    #[inline(always)]
    fn next(&self, weight: f32, []: [f32; 0], gradient: f32) -> (f32, [f32; 0]) {
        let gradient = penalized(gradient, weight, self.penalty);
        (weight - gradient * self.rate, [])
    }
}

/// The same with momentum (Sutskever et al., 2013), which keeps a running sum of gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Momentum {
    /// The learning rate and the penalty.
    pub sgd: Sgd,
    /// The fraction of the sum that is kept.
    pub momentum: f32,
    /// The fraction of a gradient that is added to it.
    pub share: f32,
    /// Whether to look a step ahead.
    pub nesterov: bool,
}

impl Each<1> for Momentum {
    #[inline(always)]
    fn next(&self, weight: f32, [velocity]: [f32; 1], gradient: f32) -> (f32, [f32; 1]) {
        let gradient = penalized(gradient, weight, self.sgd.penalty);
        let velocity = settled(gradient * self.share + velocity * self.momentum);
        let update = if self.nesterov {
            velocity * self.momentum + gradient
        } else {
            velocity
        };
        (weight - update * self.sgd.rate, [velocity])
    }
}
