//! Adam, AdamW and AMSGrad.

use super::{Each, mean, mean_square, penalized, settled};

/// A step of Adam (Kingma and Ba, 2015), which keeps the running means of gradients and of their squares, or with
/// decoupled decay of AdamW (Loshchilov and Hutter, 2019); with three kept numbers, of AMSGrad (Reddi et al., 2018), whose
/// third is the largest mean of squares so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// The weight of a gradient in their mean: 1 - beta_1.
    pub share_1: f32,
    /// The decay of the mean of squares.
    pub beta_2: f32,
    /// The weight of a square in their mean: 1 - beta_2.
    pub share_2: f32,
    /// The root of the correction of the mean of squares, 1 - beta_2^step.
    pub root: f32,
    /// Added to the root of the corrected mean of squares.
    pub epsilon: f32,
    /// The learning rate over the correction of the mean of gradients, 1 - beta_1^step.
    pub rate: f32,
    /// The L2 penalty of Adam; 0 for AdamW.
    pub penalty: f32,
    /// What the decay of AdamW leaves of a weight; 1 for Adam.
    pub kept: f32,
    /// The fraction of a weight that a cautious decay takes away where the mean of gradients has its sign (Chen et al.,
    /// 2025); 0 without one.
    pub cautious: f32,
}

impl Adam {
    #[inline(always)]
    fn means(&self, weight: f32, first: f32, second: f32, gradient: f32) -> [f32; 2] {
        let gradient = penalized(gradient, weight, self.penalty);
        let second = mean_square(second, gradient, self.beta_2, self.share_2);
        [mean(first, gradient, self.share_1), settled(second)]
    }

    #[inline(always)]
    fn weight(&self, weight: f32, first: f32, squares: f32) -> f32 {
        let update = first / (squares.sqrt() / self.root + self.epsilon);
        let decay = if (weight >= 0.0) == (first >= 0.0) {
            weight * self.cautious
        } else {
            0.0
        };
        (weight * self.kept - decay) - update * self.rate
    }
}

impl Each<2> for Adam {
    #[inline(always)]
    fn next(&self, weight: f32, [first, second]: [f32; 2], gradient: f32) -> (f32, [f32; 2]) {
        let [first, second] = self.means(weight, first, second, gradient);
        (self.weight(weight, first, second), [first, second])
    }
}

impl Each<3> for Adam {
    #[inline(always)]
    fn next(
        &self,
        weight: f32,
        [first, second, largest]: [f32; 3],
        gradient: f32,
    ) -> (f32, [f32; 3]) {
        let [first, second] = self.means(weight, first, second, gradient);
        // What is no number stays.
        let largest = if second <= largest { largest } else { second };
        let next = self.weight(weight, first, largest);
        (next, [first, second, largest])
    }
}
