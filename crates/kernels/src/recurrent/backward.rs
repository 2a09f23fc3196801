//! Backpropagation through time.

use rayon::prelude::*;

use super::super::dense::turn;
use super::super::product::{Matrix, product};
use super::super::reduce::column_sums;
use super::super::scratch::{self, Shared, written};
use super::{Kept, Sequence, Weights};

/// Gradients of the operands of a sequence.
#[derive(Clone, Debug)]
pub struct Gradients {
    /// Of the input, if requested.
    pub x: Option<Vec<f32>>,
    /// Of the input's weights.
    pub input: Vec<f32>,
    /// Of the recurrent weights.
    pub hidden: Vec<f32>,
    /// Of the bias.
    pub bias: Vec<f32>,
}

/// Columns of a weight gradient per task.
const COLUMNS: usize = 128;

/// The gradients, given that of all hidden states, which are `output`.
///
/// # Panics
/// If lengths do not match the sizes.
pub fn backward(
    sequence: &Sequence,
    x: &[f32],
    weights: Weights,
    output: &[f32],
    kept: &Kept,
    gradient: &[f32],
    wants_input: bool,
) -> Gradients {
    sequence.check(x, &weights);
    assert_eq!(output.len(), sequence.num_outputs());
    assert_eq!(gradient.len(), sequence.num_outputs());
    let Sequence {
        cell,
        items,
        steps,
        inputs,
        hidden,
        ..
    } = *sequence;
    let columns = sequence.columns();
    let input_turned = turned(weights.input, inputs, cell.input_gates() * hidden);
    let hidden_turned = turned(weights.hidden, hidden, cell.hidden_gates() * hidden);
    // Gradients of sums are ordered by step, so that those of a step align with the states of the step before.
    let mut dx = Vec::new();
    let write = |sums: Shared| {
        let write = |to: Shared| {
            sequence.parts().for_each(|(first, num)| {
                let part = Part {
                    sequence,
                    kept,
                    output,
                    gradient,
                    first,
                    num,
                };
                // SAFETY: only this task accesses these items.
                unsafe {
                    part.backward(
                        &input_turned,
                        &hidden_turned,
                        sums,
                        wants_input.then_some(to),
                    )
                };
            });
        };
        let num = if wants_input { x.len() } else { 0 };
        // SAFETY: the parts cover all items, and each writes all steps.
        dx = unsafe { written(num, write) };
    };
    // SAFETY: as above.
    let sums = unsafe { written(items * steps * columns, write) };
    let by_steps = |values: &[f32], wide: usize| by_steps(sequence, values, wide);
    let x_by_steps = by_steps(x, inputs);
    let output_by_steps = by_steps(output, hidden);
    let wide = cell.input_gates() * hidden;
    let input = outer(
        &x_by_steps,
        inputs,
        &sums,
        columns,
        [(0, 0, wide)].to_vec(),
        wide,
    );
    // The state before the first step is zeros.
    let (before, after) = (items * hidden, items * columns);
    let num = output_by_steps.len().saturating_sub(before);
    let wide = cell.hidden_gates() * hidden;
    let blocks = cell.hidden_blocks(hidden);
    let sums_after = sums.get(after..).unwrap_or_default();
    let recurrent = outer(
        &output_by_steps[..num],
        hidden,
        sums_after,
        columns,
        blocks,
        wide,
    );
    Gradients {
        x: wants_input.then_some(dx),
        input,
        hidden: recurrent,
        bias: column_sums(&sums, columns),
    }
}

/// Transposes rows and columns.
fn turned(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut to = vec![0.0; values.len()];
    if !values.is_empty() {
        turn(values, columns, [rows, columns], &mut to, rows);
    }
    to
}

/// \[items, steps, wide\] as \[steps, items, wide\], steps in processing order.
fn by_steps(sequence: &Sequence, values: &[f32], wide: usize) -> Vec<f32> {
    let write = |to: Shared| {
        let steps = (0..sequence.steps).into_par_iter();
        steps.with_min_len(8).for_each(|number| {
            let step = sequence.step(number);
            for item in 0..sequence.items {
                let from = &values[(item * sequence.steps + step) * wide..][..wide];
                // SAFETY: only this task writes this step.
                unsafe { to.write((number * sequence.items + item) * wide, from) };
            }
        });
    };
    // SAFETY: the tasks cover all steps of all items.
    unsafe { written(values.len(), write) }
}

/// The product of transposed `lhs` \[rows, num\] and blocks of columns of `rhs` \[rows, columns\], as \[num, wide\].
/// Each block is given by its first column in the result, its first column in `rhs`, and its width.
fn outer(
    lhs: &[f32],
    num: usize,
    rhs: &[f32],
    columns: usize,
    blocks: Vec<(usize, usize, usize)>,
    wide: usize,
) -> Vec<f32> {
    let rows = lhs.len().checked_div(num).unwrap_or(0);
    if rows == 0 {
        return vec![0.0; num * wide];
    }
    let tasks = blocks.into_iter().flat_map(|(to, from, len)| {
        (0..len)
            .step_by(COLUMNS)
            .map(move |at| (to + at, from + at, COLUMNS.min(len - at)))
    });
    let tasks: Vec<_> = tasks.collect();
    let write = |shared: Shared| {
        tasks.par_iter().for_each(|(to, from, len)| {
            let sums = Matrix {
                values: &rhs[*from..],
                row: 1,
                column: columns,
            };
            let values = Matrix {
                values: lhs,
                row: num,
                column: 1,
            };
            // SAFETY: only this task writes these columns.
            unsafe { product([*len, num, rows], shared.at(*to), wide, false, sums, values) };
        });
    };
    // SAFETY: the blocks cover all columns.
    unsafe { written(num * wide, write) }
}

/// The backward pass of some items.
struct Part<'a> {
    sequence: &'a Sequence,
    kept: &'a Kept,
    output: &'a [f32],
    gradient: &'a [f32],
    first: usize,
    num: usize,
}

impl Part<'_> {
    /// Writes the gradients of these items' sums, \[steps, items, columns\], and of their inputs.
    ///
    /// # Safety
    /// Nothing else accesses these items in the meantime.
    unsafe fn backward(&self, input: &[f32], recurrent: &[f32], to: Shared, dx: Option<Shared>) {
        let Sequence {
            cell,
            items,
            steps,
            inputs,
            hidden,
            ..
        } = *self.sequence;
        let (first, num, columns) = (self.first, self.num, self.sequence.columns());
        scratch::with(num * (columns + 2 * hidden) + hidden, |scratch| {
            let (sums, states) = scratch.split_at_mut(num * columns);
            let (dh, states) = states.split_at_mut(num * hidden);
            let (dc, zeros) = states.split_at_mut(num * hidden);
            dh.fill(0.0);
            dc.fill(0.0);
            zeros.fill(0.0);
            for number in (0..steps).rev() {
                let step = self.sequence.step(number);
                for item in 0..num {
                    let at = (first + item) * steps + step;
                    let sums = &mut sums[item * columns..][..columns];
                    sums.copy_from_slice(&self.kept.gates[at * columns..][..columns]);
                    let dh = &mut dh[item * hidden..][..hidden];
                    let gradient = &self.gradient[at * hidden..][..hidden];
                    dh.iter_mut()
                        .zip(gradient)
                        .for_each(|(dh, gradient)| *dh += gradient);
                    let values = if cell.has_state() {
                        &self.kept.cells
                    } else {
                        self.output
                    };
                    let old = if number == 0 {
                        &*zeros
                    } else {
                        let last = (first + item) * steps + self.sequence.step(number - 1);
                        &values[last * hidden..][..hidden]
                    };
                    let new = &values[at * hidden..][..hidden];
                    cell.backward(sums, (old, new), dh, &mut dc[item * hidden..][..hidden]);
                }
                // SAFETY: only this task writes these items.
                unsafe { to.write((number * items + first) * columns, sums) };
                let lhs = Matrix {
                    values: input,
                    row: 1,
                    column: inputs,
                };
                let rhs = Matrix {
                    values: sums,
                    row: 1,
                    column: columns,
                };
                let terms = cell.input_gates() * hidden;
                if let Some(dx) = dx.filter(|_| inputs > 0) {
                    let to = dx.at((first * steps + step) * inputs);
                    // SAFETY: as above.
                    unsafe { product([inputs, num, terms], to, steps * inputs, false, lhs, rhs) };
                }
                if number == 0 {
                    break;
                }
                // For a GRU, part of the gradient has already been passed to the old state.
                let mut adds = matches!(cell, super::Cell::Gru);
                for (from, column, wide) in cell.hidden_blocks(hidden) {
                    let lhs = Matrix {
                        values: &recurrent[from * hidden..],
                        row: 1,
                        column: hidden,
                    };
                    let rhs = Matrix {
                        values: &sums[column..],
                        row: 1,
                        column: columns,
                    };
                    let to = Shared::of(dh).at(0);
                    // SAFETY: these gradients belong to this task.
                    unsafe { product([hidden, num, wide], to, hidden, adds, lhs, rhs) };
                    adds = true;
                }
            }
        });
    }
}
