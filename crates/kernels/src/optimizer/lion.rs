//! Lion.

use super::{Each, mean};

/// A step of Lion (Chen et al., 2023), which keeps the running mean of gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lion {
    /// The weight of a gradient in the mean whose sign is the update: 1 - beta_1.
    pub share_1: f32,
    /// The weight of a gradient in the mean that is kept: 1 - beta_2.
    pub share_2: f32,
    /// The learning rate.
    pub rate: f32,
    /// What the decay leaves of a weight; 1 without one.
    pub kept: f32,
}

impl Each<1> for Lion {
    #[inline(always)]
    fn next(&self, weight: f32, [earlier]: [f32; 1], gradient: f32) -> (f32, [f32; 1]) {
        let ahead = earlier + (gradient - earlier) * self.share_1;
        let sign = if ahead == 0.0 { ahead } else { ahead.signum() };
        let next = weight * self.kept - sign * self.rate;
        (next, [mean(earlier, gradient, self.share_2)])
    }
}
