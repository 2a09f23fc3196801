//! LAMB.

use super::{Each, mean, mean_square, settled};

/// The update of LAMB (You et al., 2020) before it is scaled to the norm of its parameter; it takes the place of the
/// weight. The running means of gradients and of their squares are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lamb {
    /// The weight of a gradient in their mean: 1 - beta_1.
    pub share_1: f32,
    /// The decay of the mean of squares.
    pub beta_2: f32,
    /// The weight of a square in their mean: 1 - beta_2.
    pub share_2: f32,
    /// The correction of the mean of gradients, 1 - beta_1^step.
    pub correction: f32,
    /// The root of the correction of the mean of squares, 1 - beta_2^step.
    pub root: f32,
    /// Added to the root of the corrected mean of squares.
    pub epsilon: f32,
    /// The fraction of the weight that is added to its update.
    pub weight_decay: f32,
}

impl Each<2> for Lamb {
    #[inline(always)]
    fn next(&self, weight: f32, [first, second]: [f32; 2], gradient: f32) -> (f32, [f32; 2]) {
        let first = mean(first, gradient, self.share_1);
        let second = settled(mean_square(second, gradient, self.beta_2, self.share_2));
        let denominator = second.sqrt() / self.root + self.epsilon;
        let update = first / self.correction / denominator;
        let update = if self.weight_decay != 0.0 {
            update + weight * self.weight_decay
        } else {
            update
        };
        (update, [first, second])
    }
}
