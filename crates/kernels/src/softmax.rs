//! Softmax and its logarithm over rows, and cross-entropy, forward and backward.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::functions::{exp, ln};
use super::reduce::{dot, largest, sum};
use super::scratch::{Shared, copied, written};
use super::vectors::vectorized;

/// Numbers per task, about.
const PIECE: usize = 1 << 14;

/// Rows of fewer numbers leave vector registers empty.
const SHORT: usize = 64;

/// Whether to compute the logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// exp(x) divided by the sum over the row.
    Softmax,
    /// Its logarithm.
    LogSoftmax,
}

/// Rows per task.
pub(super) fn rows_at_once(columns: usize) -> usize {
    (PIECE / columns.max(1)).max(1)
}

/// Replaces each row of `columns` numbers.
///
/// # Panics
/// If the numbers are not complete rows.
pub fn apply(form: Form, values: &mut [f32], columns: usize) {
    assert!(columns > 0 && values.len().is_multiple_of(columns));
    let pieces = values.par_chunks_mut(rows_at_once(columns) * columns);
    pieces.for_each(|rows| apply_to_rows(form, rows, columns));
}

/// Replaces the gradient of rows by that of the inputs; `output` is the result of [`apply`].
///
/// # Panics
/// If the lengths differ, or rows are incomplete.
pub fn backward(form: Form, output: &[f32], gradient: &mut [f32], columns: usize) {
    assert!(columns > 0 && output.len().is_multiple_of(columns));
    assert_eq!(output.len(), gradient.len());
    let len = rows_at_once(columns) * columns;
    let pieces = gradient.par_chunks_mut(len).zip(output.par_chunks(len));
    pieces.for_each(|(gradient, output)| backward_of_rows(form, output, gradient, columns));
}

vectorized! {
    fn apply_to_rows = apply_now(form: Form, rows: &mut [f32], columns: usize);
}

#[inline(always)]
fn apply_now(form: Form, rows: &mut [f32], columns: usize) {
    match form {
        Form::Softmax => {
            exponentials_of_rows(rows, columns, |_, row| finite_or_zero(largest(row)));
            for row in rows.chunks_exact_mut(columns) {
                let inverse = 1.0 / sum(row);
                row.iter_mut().for_each(|x| *x *= inverse);
            }
        }
        Form::LogSoftmax => {
            for row in rows.chunks_exact_mut(columns) {
                let most = finite_or_zero(largest(row));
                let from = most + ln(sum_of_exponentials(row, most));
                row.iter_mut().for_each(|x| *x -= from);
            }
        }
    }
}

/// The number to subtract before taking exponentials: the maximum of a row, unless all are -infinity, which gives NaN
/// as 0 / 0.
#[inline(always)]
pub fn finite_or_zero(largest: f32) -> f32 {
    if largest == f32::NEG_INFINITY {
        0.0
    } else {
        largest
    }
}

/// exp(x - most) of each.
#[inline(always)]
pub fn exponentials(row: &mut [f32], most: f32) {
    for x in row {
        *x = exp(*x - most);
    }
}

/// exp(x - from) of each, where `from` depends on the row and its number. Those of short rows are computed together, since
/// none of them fills vector registers.
#[inline(always)]
fn exponentials_of_rows(rows: &mut [f32], columns: usize, from: impl Fn(usize, &[f32]) -> f32) {
    let is_short = columns < SHORT;
    for (at, row) in rows.chunks_exact_mut(columns).enumerate() {
        let from = from(at, row);
        if is_short {
            row.iter_mut().for_each(|x| *x -= from);
        } else {
            exponentials(row, from);
        }
    }
    if is_short {
        rows.iter_mut().for_each(|x| *x = exp(*x));
    }
}

/// The sum of exp(x - most), without changing the row.
#[inline(always)]
pub fn sum_of_exponentials(row: &[f32], most: f32) -> f32 {
    const LEN: usize = 256;
    let mut total = 0.0;
    let mut block = [0.0; LEN];
    for part in row.chunks(LEN) {
        let block = &mut block[..part.len()];
        block.copy_from_slice(part);
        exponentials(block, most);
        total += sum(block);
    }
    total
}

vectorized! {
    fn backward_of_rows = backward_now(form: Form, output: &[f32], gradient: &mut [f32], columns: usize);
}

#[inline(always)]
fn backward_now(form: Form, output: &[f32], gradient: &mut [f32], columns: usize) {
    let rows = gradient
        .chunks_exact_mut(columns)
        .zip(output.chunks_exact(columns));
    for (gradient, output) in rows {
        match form {
            Form::Softmax => {
                let along = dot(gradient, output);
                for (gradient, y) in gradient.iter_mut().zip(output) {
                    *gradient = y * (*gradient - along);
                }
            }
            Form::LogSoftmax => {
                let all = sum(gradient);
                for (gradient, y) in gradient.iter_mut().zip(output) {
                    *gradient -= exp(*y) * all;
                }
            }
        }
    }
}

/// The cross-entropy of each row of scores with a class: `(1 - smoothing)` times the negative log-likelihood of the
/// class, plus `smoothing` times the mean over all classes. Also the logarithm of each row's sum of exponentials, for
/// the backward pass.
///
/// # Panics
/// If the number of rows does not match the classes, or a class is out of range.
pub fn cross_entropy(
    scores: &[f32],
    classes: &[usize],
    columns: usize,
    smoothing: f32,
) -> (Vec<f32>, Vec<f32>) {
    check_classes(scores, classes, columns);
    let mut sums = Vec::new();
    let write = |losses: Shared| {
        let write = |sums: Shared| {
            let rows = rows_at_once(columns);
            let pieces = scores
                .par_chunks(rows * columns)
                .zip(classes.par_chunks(rows));
            pieces.enumerate().for_each(|(piece, (scores, classes))| {
                // SAFETY: only this task writes these rows.
                let [losses, sums] =
                    unsafe { [losses, sums].map(|to| to.filled(piece * rows, classes.len(), 0.0)) };
                entropies(scores, classes, smoothing, losses, sums);
            });
        };
        // SAFETY: the pieces cover all rows.
        sums = unsafe { written(classes.len(), write) };
    };
    // SAFETY: as above.
    let losses = unsafe { written(classes.len(), write) };
    (losses, sums)
}

/// The gradient of the scores, for that of each row's loss.
///
/// # Panics
/// As [`cross_entropy`], or if the numbers of sums or gradients do not match.
pub fn cross_entropy_backward(
    scores: &[f32],
    classes: &[usize],
    columns: usize,
    smoothing: f32,
    sums: &[f32],
    gradient: &[f32],
) -> Vec<f32> {
    check_classes(scores, classes, columns);
    assert!(sums.len() == classes.len() && gradient.len() == classes.len());
    let write = |to: Shared| {
        let rows = rows_at_once(columns);
        let pieces = scores.par_chunks(rows * columns).enumerate();
        pieces.for_each(|(piece, scores)| {
            let first = piece * rows;
            let rows = first..first + scores.len() / columns;
            // SAFETY: only this task writes these rows.
            let to = copied(unsafe { to.part(first * columns, scores.len()) }, scores);
            entropies_backward(
                to,
                &classes[rows.clone()],
                smoothing,
                &sums[rows.clone()],
                &gradient[rows],
            );
        });
    };
    // SAFETY: the pieces cover all rows.
    unsafe { written(scores.len(), write) }
}

fn check_classes(scores: &[f32], classes: &[usize], columns: usize) {
    assert!(columns > 0 && scores.len() == classes.len() * columns);
    assert!(classes.iter().all(|class| *class < columns));
}

vectorized! {
    fn entropies = entropies_now(scores: &[f32], classes: &[usize], smoothing: f32, losses: &mut [f32], sums: &mut [f32]);
}

#[inline(always)]
fn entropies_now(
    scores: &[f32],
    classes: &[usize],
    smoothing: f32,
    losses: &mut [f32],
    sums: &mut [f32],
) {
    let columns = scores.len() / classes.len();
    for (row, most) in scores.chunks_exact(columns).zip(&mut *sums) {
        *most = finite_or_zero(largest(row));
    }
    sums_of_exponentials(scores, columns, sums, losses);
    losses.iter_mut().for_each(|sum| *sum = ln(*sum));
    for (at, class) in classes.iter().enumerate() {
        let row = &scores[at * columns..][..columns];
        let (most, all) = (sums[at], losses[at]);
        // The score is first subtracted from the largest, so that small differences are not lost.
        let mut loss = (most - row[*class]) + all;
        if smoothing > 0.0 {
            let even = (most - sum(row) / columns as f32) + all;
            loss = (1.0 - smoothing) * loss + smoothing * even;
        }
        losses[at] = loss;
        sums[at] = most + all;
    }
}

/// The sum of exp(x - most) over each row.
#[inline(always)]
fn sums_of_exponentials(rows: &[f32], columns: usize, most: &[f32], sums: &mut [f32]) {
    const LEN: usize = 1024;
    if columns >= SHORT {
        for (at, row) in rows.chunks_exact(columns).enumerate() {
            sums[at] = sum_of_exponentials(row, most[at]);
        }
        return;
    }
    let mut block = [0.0; LEN];
    let num = LEN / columns;
    let parts = rows.chunks(num * columns).zip(most.chunks(num));
    for ((rows, most), sums) in parts.zip(sums.chunks_mut(num)) {
        let block = &mut block[..rows.len()];
        block.copy_from_slice(rows);
        exponentials_of_rows(block, columns, |at, _| most[at]);
        for (row, to) in block.chunks_exact(columns).zip(sums) {
            *to = sum(row);
        }
    }
}

vectorized! {
    fn entropies_backward = entropies_backward_now(scores: &mut [f32], classes: &[usize], smoothing: f32, sums: &[f32], gradient: &[f32]);
}

#[inline(always)]
fn entropies_backward_now(
    scores: &mut [f32],
    classes: &[usize],
    smoothing: f32,
    sums: &[f32],
    gradient: &[f32],
) {
    let columns = scores.len() / classes.len();
    let even = smoothing / columns as f32;
    exponentials_of_rows(scores, columns, |at, _| sums[at]);
    for (at, class) in classes.iter().enumerate() {
        let row = &mut scores[at * columns..][..columns];
        row[*class] -= 1.0 - smoothing;
        for x in row {
            *x = (*x - even) * gradient[at];
        }
    }
}
