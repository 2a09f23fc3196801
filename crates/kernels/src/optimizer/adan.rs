//! Adan.

use super::{Each, mean, mean_square, settled};

/// A step of Adan (Xie et al., 2022), which keeps the running means of gradients, of their differences and of squares,
/// and the last gradient, negated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adan {
    /// The weight of a gradient in their mean: 1 - beta_1.
    pub share_1: f32,
    /// The decay of the mean of differences.
    pub beta_2: f32,
    /// The weight of a difference in their mean: 1 - beta_2.
    pub share_2: f32,
    /// The decay of the mean of squares.
    pub beta_3: f32,
    /// The weight of a square in their mean: 1 - beta_3.
    pub share_3: f32,
    /// The correction of the mean of gradients, 1 - beta_1^step.
    pub correction: f32,
    /// The weight of the mean of differences in an update: beta_2 over its correction, 1 - beta_2^step.
    pub ahead: f32,
    /// The root of the correction of the mean of squares, 1 - beta_3^step.
    pub root: f32,
    /// Added to the root of the corrected mean of squares.
    pub epsilon: f32,
    /// The learning rate.
    pub rate: f32,
    /// What a decay before the update leaves of a weight; 1 without one.
    pub kept: f32,
    /// What a weight is divided by after the update, the proximal decay of the paper; 1 without one.
    pub proximal: f32,
}

impl Each<4> for Adan {
    #[inline(always)]
    fn next(
        &self,
        weight: f32,
        [of_gradients, of_differences, squares, earlier]: [f32; 4],
        gradient: f32,
    ) -> (f32, [f32; 4]) {
        let difference = earlier + gradient;
        let ahead = difference * self.beta_2 + gradient;
        let of_gradients = mean(of_gradients, gradient, self.share_1);
        let of_differences = mean(of_differences, difference, self.share_2);
        let squares = settled(mean_square(squares, ahead, self.beta_3, self.share_3));
        let denominator = squares.sqrt() / self.root + self.epsilon;
        let numerator = of_gradients / self.correction + of_differences * self.ahead;
        let update = numerator / denominator * self.rate;
        let weight = (weight * self.kept - update) / self.proximal;
        (weight, [of_gradients, of_differences, squares, -gradient])
    }
}
