//! Backpropagation through time.

use rayon::prelude::*;

use super::super::arithmetic::Arithmetic;
use super::super::dense::turn;
use super::super::product::{Matrix, product, product_with};
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

/// The gradients, for the gradient of all hidden states, which are `output`. Gradients of sums take the place of gates.
///
/// # Panics
/// If lengths do not match the sizes.
pub fn backward(
    sequence: &Sequence,
    x: &[f32],
    weights: Weights,
    output: &[f32],
    kept: Kept,
    gradient: &[f32],
    wants_input: bool,
) -> Gradients {
    sequence.check(kept.real.as_deref(), x, &weights);
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
    let Kept {
        mut gates,
        cells,
        real,
    } = kept;
    assert_eq!(gates.len(), items * steps * columns);
    let of_gates = Shared::of(&mut gates);
    let write = |to: Shared| {
        sequence.parts().for_each(|(first, num)| {
            let part = Part {
                sequence,
                real: real.as_deref(),
                cells: &cells,
                output,
                gradient,
                first,
                num,
            };
            let dx = wants_input.then_some(to);
            // SAFETY: only this task has these items.
            unsafe { part.backward(&input_turned, &hidden_turned, of_gates, dx) };
        });
    };
    let num = if wants_input { x.len() } else { 0 };
    // SAFETY: the parts are all items, and each writes all steps.
    let dx = unsafe { written(num, write) };
    let sums = gates;
    let wide = cell.input_gates() * hidden;
    let arithmetic = sequence.arithmetic;
    let blocks = vec![(0, 0, wide)];
    let input = outer(arithmetic, x, inputs, &sums, columns, blocks, wide);
    let before = states_before(sequence, output);
    let wide = cell.hidden_gates() * hidden;
    let blocks = cell.hidden_blocks(hidden);
    let recurrent = outer(arithmetic, &before, hidden, &sums, columns, blocks, wide);
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

/// The hidden state that each step started from, zeros for the first one.
fn states_before(sequence: &Sequence, output: &[f32]) -> Vec<f32> {
    let Sequence { steps, hidden, .. } = *sequence;
    let zeros = vec![0.0; hidden];
    let write = |to: Shared| {
        let items = (0..sequence.items).into_par_iter();
        items.with_min_len(4).for_each(|item| {
            for number in 0..steps {
                let place = |number| (item * steps + sequence.step(number)) * hidden;
                let from = match number {
                    0 => &zeros[..],
                    _ => &output[place(number - 1)..][..hidden],
                };
                // SAFETY: only this task writes this item.
                unsafe { to.write(place(number), from) };
            }
        });
    };
    // SAFETY: the tasks are all items, and each writes all steps.
    unsafe { written(output.len(), write) }
}

/// The product of transposed `lhs` \[rows, num\] and blocks of columns of `rhs` \[rows, columns\], as \[num, wide\].
/// Each block is given by its first column in the result, its first column in `rhs`, and its width.
fn outer(
    arithmetic: Arithmetic,
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
            unsafe {
                product(
                    arithmetic,
                    [*len, num, rows],
                    shared.at(*to),
                    wide,
                    false,
                    sums,
                    values,
                )
            };
        });
    };
    // SAFETY: the blocks cover all columns.
    unsafe { written(num * wide, write) }
}

/// The backward pass of some items.
struct Part<'a> {
    sequence: &'a Sequence,
    real: Option<&'a [bool]>,
    cells: &'a [f32],
    output: &'a [f32],
    gradient: &'a [f32],
    first: usize,
    num: usize,
}

impl Part<'_> {
    /// Writes the gradients of these items' sums in the place of their gates, and of their inputs.
    ///
    /// # Safety
    /// Nothing else uses the places of these items meanwhile; all gates are written.
    unsafe fn backward(&self, input: &[f32], recurrent: &[f32], gates: Shared, dx: Option<Shared>) {
        let Sequence {
            cell,
            steps,
            inputs,
            hidden,
            ..
        } = *self.sequence;
        let (first, num, columns) = (self.first, self.num, self.sequence.columns());
        scratch::with((2 * num + 1) * hidden, |scratch| {
            let (dh, states) = scratch.split_at_mut(num * hidden);
            let (dc, zeros) = states.split_at_mut(num * hidden);
            dh.fill(0.0);
            dc.fill(0.0);
            zeros.fill(0.0);
            for number in (0..steps).rev() {
                let step = self.sequence.step(number);
                for item in 0..num {
                    let at = (first + item) * steps + step;
                    // SAFETY: only this task uses these places, and this is the only slice of them.
                    let sums =
                        unsafe { std::slice::from_raw_parts_mut(gates.at(at * columns), columns) };
                    let dh = &mut dh[item * hidden..][..hidden];
                    let gradient = &self.gradient[at * hidden..][..hidden];
                    dh.iter_mut()
                        .zip(gradient)
                        .for_each(|(dh, gradient)| *dh += gradient);
                    let values = if cell.has_state() {
                        self.cells
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
                    if self.real.is_some_and(|real| !real[at]) {
                        // The gradients of states pass unchanged.
                        sums.fill(0.0);
                        continue;
                    }
                    cell.backward(sums, (old, new), dh, &mut dc[item * hidden..][..hidden]);
                    if self.real.is_some() && !matches!(cell, super::Cell::Gru) {
                        dh.fill(0.0);
                    }
                }
                // A step's sums of one item and of the next.
                let (place, apart) = ((first * steps + step) * columns, steps * columns);
                let lhs = Matrix {
                    values: input,
                    row: 1,
                    column: inputs,
                };
                let terms = cell.input_gates() * hidden;
                if let Some(dx) = dx.filter(|_| inputs > 0) {
                    let to = dx.at((first * steps + step) * inputs);
                    let rhs = (gates.at(place).cast_const(), 1, apart);
                    // SAFETY: as above; the gradients of this step's sums are written.
                    unsafe {
                        product_with(
                            self.sequence.arithmetic,
                            [inputs, num, terms],
                            to,
                            steps * inputs,
                            false,
                            lhs,
                            rhs,
                        )
                    };
                }
                if number == 0 {
                    break;
                }
                // For a GRU, part of the gradient has already been passed to the old state, as has that of a state
                // that did not change.
                let mut adds = matches!(cell, super::Cell::Gru) || self.real.is_some();
                for (from, column, wide) in cell.hidden_blocks(hidden) {
                    let lhs = Matrix {
                        values: &recurrent[from * hidden..],
                        row: 1,
                        column: hidden,
                    };
                    let rhs = (gates.at(place + column).cast_const(), 1, apart);
                    let to = Shared::of(dh).at(0);
                    // SAFETY: these gradients are this task's.
                    unsafe {
                        product_with(
                            self.sequence.arithmetic,
                            [hidden, num, wide],
                            to,
                            hidden,
                            adds,
                            lhs,
                            rhs,
                        )
                    };
                    adds = true;
                }
            }
        });
    }
}
