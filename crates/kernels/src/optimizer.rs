//! In-place updates of parameters, in one pass over each.
//!
//! Every product and sum is rounded separately and in the order of the same updates by tensors, so that results are
//! bitwise equal to theirs.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::vectors::vectorized;

/// Numbers per task.
const PIECE: usize = 1 << 15;

/// A step of Adam (Kingma and Ba, 2015), or with decoupled decay of AdamW (Loshchilov and Hutter, 2019). Numbers that
/// depend on the settings and on the step are computed in 64 bits and then rounded.
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
}

impl Adam {
    /// Updates weights and their two means, given their gradients.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn step(&self, weights: &mut [f32], means: [&mut [f32]; 2], gradient: &[f32]) {
        let [first, second] = means;
        let lens = [first.len(), second.len(), gradient.len()];
        assert_eq!(lens, [weights.len(); 3]);
        let pieces = weights
            .par_chunks_mut(PIECE)
            .zip(first.par_chunks_mut(PIECE))
            .zip(second.par_chunks_mut(PIECE))
            .zip(gradient.par_chunks(PIECE));
        pieces.for_each(|(((weights, first), second), gradient)| {
            adam(self, weights, first, second, gradient);
        });
    }
}

vectorized! {
    fn adam = adam_now(step: &Adam, weights: &mut [f32], first: &mut [f32], second: &mut [f32], gradient: &[f32]);
}

#[inline(always)]
fn adam_now(
    step: &Adam,
    weights: &mut [f32],
    first: &mut [f32],
    second: &mut [f32],
    gradient: &[f32],
) {
    let Adam {
        share_1,
        beta_2,
        share_2,
        root,
        epsilon,
        rate,
        penalty,
        kept,
    } = *step;
    let len = weights.len();
    let (first, second) = (&mut first[..len], &mut second[..len]);
    let gradient = &gradient[..len];
    for at in 0..len {
        let gradient = if penalty > 0.0 {
            weights[at] * penalty + gradient[at]
        } else {
            gradient[at]
        };
        first[at] += (gradient - first[at]) * share_1;
        second[at] = second[at] * beta_2 + (gradient * gradient) * share_2;
        let update = first[at] / (second[at].sqrt() / root + epsilon);
        weights[at] = weights[at] * kept - update * rate;
    }
}
