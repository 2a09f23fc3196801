//! In-place updates of parameters, in one pass over each.
//!
//! Every product and sum is rounded separately and in the order of the same updates by tensors, so that results are
//! bitwise equal to theirs, except that running means count as 0 once they are subnormal. Otherwise those of inputs that
//! are 0 would stay there for ever, for 0.9 times the smallest numbers is rounded back to them, and a root or a quotient
//! of a subnormal number takes tens of cycles.

pub mod adagrad;
pub mod adam;
pub mod adan;
pub mod lamb;
pub mod lion;
pub mod rms;
pub mod sgd;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::vectors::vectorized;

/// Numbers per task, at most: all have about the same.
const PIECE: usize = 1 << 14;

/// Numbers for which more than one task is worth it.
const FEW: usize = 1 << 15;

/// How weights are updated, with `N` numbers that are kept for each. Settings that depend on the step are computed in 64
/// bits and then rounded.
///
/// ```
/// use runner_kernels::optimizer::{Rule, sgd::Sgd};
///
/// let mut weights = [1.0, 2.0];
/// Sgd { rate: 0.5, penalty: 0.0 }.step(&mut weights, [], &[1.0, -1.0]);
/// assert_eq!(weights, [0.5, 2.5]);
/// ```
pub trait Rule<const N: usize> {
    /// Updates weights and the numbers that are kept for each, given their gradients.
    ///
    /// # Panics
    /// If the lengths differ.
    fn step(&self, weights: &mut [f32], kept: [&mut [f32]; N], gradient: &[f32]);
}

/// The same for a single weight.
trait Each<const N: usize>: Sync {
    /// The next weight, and the next numbers that are kept. It must be `#[inline(always)]`.
    fn next(&self, weight: f32, kept: [f32; N], gradient: f32) -> (f32, [f32; N]);
}

/// Compiled here, where loops are optimized whatever the level of the crate that calls them.
macro_rules! rules {
    ($($rule:ty: $num:literal),* $(,)?) => {
        $(
            impl Rule<$num> for $rule {
                fn step(&self, weights: &mut [f32], kept: [&mut [f32]; $num], gradient: &[f32]) {
                    step(self, weights, kept, gradient);
                }
            }
        )*
    };
}
rules! {
    adagrad::AdaGrad: 1,
    adam::Adam: 2,
    adam::Adam: 3,
    adan::Adan: 4,
    lamb::Lamb: 2,
    lion::Lion: 1,
    rms::RmsProp<false>: 1,
    rms::RmsProp<false>: 2,
    rms::RmsProp<true>: 2,
    rms::RmsProp<true>: 3,
    sgd::Momentum: 1,
    sgd::Sgd: 0,
}

fn step<const N: usize>(
    rule: &impl Each<N>,
    weights: &mut [f32],
    kept: [&mut [f32]; N],
    gradient: &[f32],
) {
    assert_eq!(gradient.len(), weights.len());
    assert!(kept.iter().all(|kept| kept.len() == weights.len()));
    if weights.len() <= FEW {
        return update(rule, weights, kept, gradient);
    }
    let size = weights.len().div_ceil(weights.len().div_ceil(PIECE));
    let mut kept = kept.map(|kept| kept.chunks_mut(size));
    let pieces = weights.chunks_mut(size).zip(gradient.chunks(size));
    let pieces = pieces.map(|(weights, gradient)| {
        // All have the same number of pieces.
        let kept = kept.each_mut().map(|kept| kept.next().unwrap_or_default());
        (weights, kept, gradient)
    });
    let pieces: Vec<_> = pieces.collect();
    pieces
        .into_par_iter()
        .for_each(|(weights, kept, gradient)| update(rule, weights, kept, gradient));
}

vectorized! {
    fn update[const N: usize, R: Each<N>] = update_now(
        rule: &R, weights: &mut [f32], kept: [&mut [f32]; N], gradient: &[f32],
    );
}

#[inline(always)]
fn update_now<const N: usize, R: Each<N>>(
    rule: &R,
    weights: &mut [f32],
    mut kept: [&mut [f32]; N],
    gradient: &[f32],
) {
    let len = weights.len();
    let gradient = &gradient[..len];
    for kept in &kept {
        assert_eq!(kept.len(), len);
    }
    for at in 0..len {
        let mut now = [0.0; N];
        for (now, kept) in now.iter_mut().zip(&kept) {
            *now = kept[at];
        }
        let (weight, next) = rule.next(weights[at], now, gradient[at]);
        weights[at] = weight;
        for (kept, next) in kept.iter_mut().zip(next) {
            kept[at] = next;
        }
    }
}

/// The gradient of a loss with an L2 penalty.
#[inline(always)]
fn penalized(gradient: f32, weight: f32, penalty: f32) -> f32 {
    if penalty > 0.0 {
        weight * penalty + gradient
    } else {
        gradient
    }
}

/// A running mean with one more value, whose weight is `share`.
#[inline(always)]
fn mean(mean: f32, value: f32, share: f32) -> f32 {
    settled(mean + (value - mean) * share)
}

/// A running mean of squares with that of one more value.
#[inline(always)]
fn mean_square(mean: f32, value: f32, beta: f32, share: f32) -> f32 {
    mean * beta + (value * value) * share
}

/// A number, or 0 for a subnormal one.
#[inline(always)]
fn settled(number: f32) -> f32 {
    let exponent = number.to_bits() & f32::INFINITY.to_bits();
    if exponent == 0 { 0.0 } else { number }
}
