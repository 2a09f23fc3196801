//! Normalization of rows (layer, RMS), of groups of channels (group, instance), of channels over a batch and by
//! neighboring channels, forward and backward, in as few passes as the sums allow.
//!
//! Means and variances are computed in two passes, the variance from the centered values, as in PyTorch; the order of
//! sums depends only on sizes. Numbers that are far from zero and close to each other take a third pass, since the
//! inverse of their deviation multiplies the rounding of their mean.

mod batch;
mod group;
mod local;
mod planes;
#[cfg(test)]
mod tests;

use std::mem::MaybeUninit;

use rayon::prelude::*;

pub use batch::{batch_backward, batch_evaluate, batch_forward, deviations};
pub use group::{group_backward, group_forward};
pub use local::LocalResponse;
pub use planes::{Affine, Planes};

use super::reduce::{add_rows, dot, dot_from, squares_from, sum, sum_from};
use super::scratch::{Shared, written};
use super::softmax::rows_at_once;
use super::vectors::vectorized;

/// The statistics that rows are normalized by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowNorm {
    /// Mean and deviation (Ba, Kiros and Hinton, 2016).
    Layer {
        /// Added to the variance.
        epsilon: f32,
    },
    /// The root of the mean square (Zhang and Sennrich, 2019).
    Rms {
        /// Added to the mean square.
        epsilon: f32,
    },
}

/// Each row's mean (0 if not subtracted), and the inverse of its deviation.
pub type Statistics = Vec<[f32; 2]>;

/// The mean in deviations up to which its rounding is small beside the normalized numbers: 8 ulps of it.
const NEAR: f32 = 8.0;

/// Whether a mean, with the inverse of the deviation, is near enough to zero for two passes.
#[inline(always)]
fn is_near(mean: f32, inverse: f32) -> bool {
    (mean * inverse).abs() <= NEAR
}

/// The mean of some numbers, and the inverse of their deviation.
#[inline(always)]
fn statistics_of(x: &[f32], epsilon: f32) -> [f32; 2] {
    let num = x.len() as f32;
    let mean = sum(x) / num;
    let inverse = inverse_of(x, mean, epsilon);
    if is_near(mean, inverse) {
        return [mean, inverse];
    }
    let mean = mean + sum_from(x, mean) / num;
    [mean, inverse_of(x, mean, epsilon)]
}

/// The inverse of the deviation of some numbers from their mean.
#[inline(always)]
fn inverse_of(x: &[f32], mean: f32, epsilon: f32) -> f32 {
    1.0 / (squares_from(x, mean) / x.len() as f32 + epsilon).sqrt()
}

/// The sum of gradients' products with centered numbers. `all` is the sum of the gradients.
#[inline(always)]
fn centered(gradient: &[f32], x: &[f32], [mean, inverse]: [f32; 2], all: f32) -> f32 {
    if is_near(mean, inverse) {
        dot(gradient, x) - mean * all
    } else {
        dot_from(gradient, x, mean)
    }
}

/// Normalized rows, times `gamma`, plus `beta` if there is one.
///
/// # Panics
/// If the numbers are not complete rows of the length of `gamma`.
pub fn rows_forward(
    norm: RowNorm,
    x: &[f32],
    gamma: &[f32],
    beta: Option<&[f32]>,
) -> (Vec<f32>, Statistics) {
    let columns = gamma.len();
    assert!(columns > 0 && x.len().is_multiple_of(columns));
    assert!(beta.is_none_or(|beta| beta.len() == columns));
    let zeros = vec![0.0; if beta.is_none() { columns } else { 0 }];
    let beta = beta.unwrap_or(&zeros);
    let mut statistics = vec![[0.0; 2]; x.len() / columns];
    let write = |to: Shared| {
        let rows = rows_at_once(columns);
        let pieces = x
            .par_chunks(rows * columns)
            .zip(statistics.par_chunks_mut(rows));
        pieces.enumerate().for_each(|(piece, (x, statistics))| {
            // SAFETY: only this task writes these rows.
            let to = unsafe { to.part(piece * rows * columns, x.len()) };
            normalize(norm, x, gamma, beta, statistics, to);
        });
    };
    // SAFETY: the pieces cover all rows.
    let output = unsafe { written(x.len(), write) };
    (output, statistics)
}

vectorized! {
    fn normalize = normalize_now(norm: RowNorm, x: &[f32], gamma: &[f32], beta: &[f32], statistics: &mut [[f32; 2]], to: &mut [MaybeUninit<f32>]);
}

#[inline(always)]
fn normalize_now(
    norm: RowNorm,
    x: &[f32],
    gamma: &[f32],
    beta: &[f32],
    statistics: &mut [[f32; 2]],
    to: &mut [MaybeUninit<f32>],
) {
    let columns = gamma.len();
    let beta = &beta[..columns];
    for (row, statistics) in statistics.iter_mut().enumerate() {
        let x = &x[row * columns..][..columns];
        let to = &mut to[row * columns..][..columns];
        let [mean, inverse] = match norm {
            RowNorm::Layer { epsilon } => statistics_of(x, epsilon),
            RowNorm::Rms { epsilon } => [0.0, inverse_of(x, 0.0, epsilon)],
        };
        for at in 0..columns {
            to[at].write((x[at] - mean) * inverse * gamma[at] + beta[at]);
        }
        *statistics = [mean, inverse];
    }
}

/// The gradients of the input, of `gamma` and of `beta`.
///
/// # Panics
/// As [`rows_forward`], or if the number of gradients does not match.
pub fn rows_backward(
    norm: RowNorm,
    x: &[f32],
    gamma: &[f32],
    statistics: &[[f32; 2]],
    gradient: &[f32],
) -> [Vec<f32>; 3] {
    let columns = gamma.len();
    assert!(columns > 0 && x.len() == statistics.len() * columns && gradient.len() == x.len());
    let rows = rows_at_once(columns);
    let num_pieces = statistics.len().div_ceil(rows);
    let mut parts = vec![0.0; num_pieces * 2 * columns];
    let write = |to: Shared| {
        let pieces = parts.par_chunks_mut(2 * columns).enumerate();
        pieces.for_each(|(piece, part)| {
            let range = piece * rows..((piece + 1) * rows).min(statistics.len());
            let numbers = range.start * columns..range.end * columns;
            // SAFETY: only this task writes these rows.
            let to = unsafe { to.filled(numbers.start, numbers.len(), 0.0) };
            let (of_gamma, of_beta) = part.split_at_mut(columns);
            let has_mean = matches!(norm, RowNorm::Layer { .. });
            back(
                has_mean,
                &x[numbers.clone()],
                gamma,
                &statistics[range],
                &gradient[numbers],
                of_gamma,
                of_beta,
                to,
            );
        });
    };
    // SAFETY: the pieces cover all rows.
    let of_x = unsafe { written(x.len(), write) };
    let mut sums = vec![0.0; 2 * columns];
    add_rows(&parts, &mut sums);
    let of_beta = sums.split_off(columns);
    [of_x, sums, of_beta]
}

vectorized! {
    fn back = back_now(has_mean: bool, x: &[f32], gamma: &[f32], statistics: &[[f32; 2]], gradient: &[f32], of_gamma: &mut [f32], of_beta: &mut [f32], to: &mut [f32]);
}

#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "slices of one row each")]
fn back_now(
    has_mean: bool,
    x: &[f32],
    gamma: &[f32],
    statistics: &[[f32; 2]],
    gradient: &[f32],
    of_gamma: &mut [f32],
    of_beta: &mut [f32],
    to: &mut [f32],
) {
    let columns = gamma.len();
    let (of_gamma, of_beta) = (&mut of_gamma[..columns], &mut of_beta[..columns]);
    for (row, [mean, inverse]) in statistics.iter().enumerate() {
        let x = &x[row * columns..][..columns];
        let gradient = &gradient[row * columns..][..columns];
        let to = &mut to[row * columns..][..columns];
        // First the gradient of the normalized row.
        for at in 0..columns {
            let normalized = (x[at] - mean) * inverse;
            of_gamma[at] += gradient[at] * normalized;
            of_beta[at] += gradient[at];
            to[at] = gradient[at] * gamma[at];
        }
        let all = sum(to);
        let even = if has_mean { all / columns as f32 } else { 0.0 };
        // The sum of products with the normalized row, whose mean is subtracted below.
        let along = centered(to, x, [*mean, *inverse], all) * inverse / columns as f32;
        for at in 0..columns {
            let normalized = (x[at] - mean) * inverse;
            to[at] = (to[at] - even - normalized * along) * inverse;
        }
    }
}
