//! RMSProp.

use super::{Each, mean, mean_square, penalized, settled};

/// A step of RMSProp (Hinton, 2012), which keeps the running mean of squares; then, if it is `CENTERED`, that of
/// gradients (Graves, 2013); then, with one more kept number, the running sum of updates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsProp<const CENTERED: bool> {
    /// The decay of the means.
    pub alpha: f32,
    /// The weight of a gradient in them: 1 - alpha.
    pub share: f32,
    /// The fraction of the sum of updates that is kept.
    pub momentum: f32,
    /// Added to the root of the mean of squares.
    pub epsilon: f32,
    /// The learning rate.
    pub rate: f32,
    /// The L2 penalty.
    pub penalty: f32,
}

impl<const CENTERED: bool, const N: usize> Each<N> for RmsProp<CENTERED> {
    #[inline(always)]
    fn next(&self, weight: f32, mut kept: [f32; N], gradient: f32) -> (f32, [f32; N]) {
        let gradient = penalized(gradient, weight, self.penalty);
        kept[0] = mean_square(kept[0], gradient, self.alpha, self.share);
        let variance = if CENTERED {
            kept[1] = mean(kept[1], gradient, self.share);
            // Not settled: the square of the mean would be larger.
            kept[0] - kept[1] * kept[1]
        } else {
            kept[0] = settled(kept[0]);
            kept[0]
        };
        let mut update = gradient / (variance.sqrt() + self.epsilon);
        if N > 1 + usize::from(CENTERED) {
            update = settled(kept[N - 1] * self.momentum + update);
            kept[N - 1] = update;
        }
        (weight - update * self.rate, kept)
    }
}
