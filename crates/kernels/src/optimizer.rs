//! In-place updates of parameters, in one pass over each.
//!
//! Every product and sum is rounded separately and in the order of Burn's optimizers, so that results are bitwise equal
//! to theirs.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::vectors::vectorized;

/// Numbers per task.
const PIECE: usize = 1 << 15;

/// A step of Adam (Kingma and Ba, 2015), or with decoupled decay of AdamW (Loshchilov and Hutter, 2019).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// The decay of the mean of gradients.
    pub beta_1: f32,
    /// The decay of the mean of squares.
    pub beta_2: f32,
    /// Added to the root of the mean of squares.
    pub epsilon: f32,
    /// The learning rate.
    pub rate: f32,
    /// The number of the step, from 1.
    pub time: i32,
    /// The weight decay.
    pub decay: Decay,
}

/// The kind of weight decay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decay {
    /// A gradient proportional to the weight; Adam.
    Penalty(f32),
    /// A factor, decoupled from the gradient; AdamW.
    Factor(f32),
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
        beta_1,
        beta_2,
        epsilon,
        rate,
        time,
        ..
    } = *step;
    let len = weights.len();
    let (first, second) = (&mut first[..len], &mut second[..len]);
    let gradient = &gradient[..len];
    let (share_1, share_2) = (1.0 - beta_1, 1.0 - beta_2);
    let (rest_1, rest_2) = (1.0 - beta_1.powi(time), 1.0 - beta_2.powi(time));
    match step.decay {
        Decay::Penalty(penalty) => {
            let root = rest_2.sqrt();
            let (factor, epsilon) = (root / rest_1, epsilon * root);
            for at in 0..len {
                let gradient = if penalty > 0.0 {
                    weights[at] * penalty + gradient[at]
                } else {
                    gradient[at]
                };
                first[at] = first[at] * beta_1 + gradient * share_1;
                second[at] = second[at] * beta_2 + (gradient * gradient) * share_2;
                let update = (first[at] * factor) / (second[at].sqrt() + epsilon);
                weights[at] -= update * rate;
            }
        }
        Decay::Factor(kept) => {
            for at in 0..len {
                let gradient = gradient[at];
                first[at] = first[at] * beta_1 + gradient * share_1;
                second[at] = second[at] * beta_2 + (gradient * gradient) * share_2;
                let update = (first[at] / rest_1) / ((second[at] / rest_2).sqrt() + epsilon);
                weights[at] = weights[at] * kept - update * rate;
            }
        }
    }
}
