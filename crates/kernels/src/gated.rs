//! Gated linear units (Dauphin et al., 2017): the first half of each row times the logistic function of the second.

use rayon::prelude::*;

use super::functions::sigmoid;
use super::scratch::PIECE;
use super::vectors::vectorized;

/// Rows of `columns` numbers from rows of twice as many.
///
/// ```
/// use runner_kernels::gated;
///
/// assert_eq!(gated::forward(&[3.0, 5.0, 0.0, 100.0], 2), [1.5, 5.0]);
/// ```
pub fn forward(x: &[f32], columns: usize) -> Vec<f32> {
    let mut output = vec![0.0; x.len() / 2];
    let piece = piece(columns);
    let pieces = output.par_chunks_mut(piece).zip(x.par_chunks(2 * piece));
    pieces.for_each(|(output, x)| forward_of_rows(x, output, columns));
    output
}

/// The gradient of the input.
///
/// # Panics
/// If the gradient has not half as many numbers.
pub fn backward(x: &[f32], gradient: &[f32], columns: usize) -> Vec<f32> {
    assert_eq!(x.len(), 2 * gradient.len());
    let mut output = vec![0.0; x.len()];
    let piece = piece(columns);
    let pieces = output
        .par_chunks_mut(2 * piece)
        .zip(x.par_chunks(2 * piece));
    let pieces = pieces.zip(gradient.par_chunks(piece));
    pieces.for_each(|((output, x), gradient)| backward_of_rows(x, gradient, output, columns));
    output
}

/// Numbers of whole rows that a task computes.
fn piece(columns: usize) -> usize {
    let columns = columns.max(1);
    columns * (PIECE / columns).max(1)
}

vectorized! {
    fn forward_of_rows = forward_now(x: &[f32], output: &mut [f32], columns: usize);
}

#[inline(always)]
fn forward_now(x: &[f32], output: &mut [f32], columns: usize) {
    for (x, output) in x.chunks(2 * columns).zip(output.chunks_mut(columns)) {
        let (values, gates) = x.split_at(columns);
        for ((output, value), gate) in output.iter_mut().zip(values).zip(gates) {
            *output = value * sigmoid(*gate);
        }
    }
}

vectorized! {
    fn backward_of_rows =
        backward_now(x: &[f32], gradient: &[f32], output: &mut [f32], columns: usize);
}

#[inline(always)]
fn backward_now(x: &[f32], gradient: &[f32], output: &mut [f32], columns: usize) {
    let rows = x.chunks(2 * columns).zip(output.chunks_mut(2 * columns));
    for ((x, output), gradient) in rows.zip(gradient.chunks(columns)) {
        let (values, gates) = x.split_at(columns);
        let (of_values, of_gates) = output.split_at_mut(columns);
        let (of_gates, values) = (&mut of_gates[..columns], &values[..columns]);
        for at in 0..columns {
            let (share, gradient) = (sigmoid(gates[at]), gradient[at]);
            of_values[at] = gradient * share;
            of_gates[at] = gradient * values[at] * (share * (1.0 - share));
        }
    }
}
