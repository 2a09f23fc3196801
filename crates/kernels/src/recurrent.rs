//! Whole sequences of recurrent cells: all steps forward as one operation, and backpropagation through time as another.
//!
//! For each hidden unit, a cell has `gates` sums of the step's input times `weight`, the last hidden state times
//! `recurrent`, and a bias:
//!
//! - RNN: h = tanh(s).
//! - LSTM (Hochreiter and Schmidhuber, 1997, with forget gates): sums of the input, forget and output gates i, f, o and
//!   of the candidate g; c = sigmoid(f) c' + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c).
//! - GRU (Cho et al., 2014, as in cuDNN): sums of the update and reset gates z, r, of the candidate's input part a and
//!   of its hidden part b; n = tanh(a + sigmoid(r) b), h = (1 - sigmoid(z)) n + sigmoid(z) h'.
//!
//! The items of a batch are independent, so a thread computes all steps for some of them, and the operands of a step's
//! products stay in its caches. How many items are computed at a time depends only on their number; gradients of
//! weights are products over all items and steps at once.

mod backward;
mod cell;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

pub use backward::{Gradients, backward};
pub use cell::Cell;

use super::arithmetic::Arithmetic;
use super::product::{Matrix, product, product_with};
use super::scratch::{self, Shared, written};

/// The sizes of a sequence of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// The kind of cell.
    pub cell: Cell,
    /// Items of the batch.
    pub items: usize,
    /// Steps of each item.
    pub steps: usize,
    /// Numbers of each step's input.
    pub inputs: usize,
    /// Numbers of the hidden state.
    pub hidden: usize,
    /// Whether steps are processed in reverse order.
    pub is_reverse: bool,
    /// How products and sums are rounded.
    pub arithmetic: Arithmetic,
}

/// The weights of a cell.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// \[inputs, input gates * hidden\], see [`Cell::input_gates`].
    pub input: &'a [f32],
    /// \[hidden, hidden gates * hidden\], see [`Cell::hidden_gates`].
    pub hidden: &'a [f32],
    /// \[gates * hidden\], see [`Cell::gates`].
    pub bias: &'a [f32],
}

/// The values of the forward pass that the backward pass needs.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The activated gates of each step, \[items, steps, gates * hidden\].
    gates: Vec<f32>,
    /// The states of cells that have any, \[items, steps, hidden\].
    cells: Vec<f32>,
    /// The steps that are not padding, if some are.
    real: Option<Vec<bool>>,
}

/// Items per block: as many columns as a product can have without copying weights.
fn items_at_once(items: usize) -> usize {
    items.div_ceil(2).clamp(1, 32)
}

impl Sequence {
    /// Columns of sums of a step.
    fn columns(&self) -> usize {
        self.cell.gates() * self.hidden
    }

    /// Numbers of all inputs.
    pub fn num_inputs(&self) -> usize {
        self.items * self.steps * self.inputs
    }

    /// Numbers of all hidden states.
    pub fn num_outputs(&self) -> usize {
        self.items * self.steps * self.hidden
    }

    /// # Panics
    /// If the lengths of inputs or weights do not match the sizes.
    fn check(&self, real: Option<&[bool]>, x: &[f32], weights: &Weights) {
        assert!(real.is_none_or(|real| real.len() == self.items * self.steps));
        assert_eq!(x.len(), self.num_inputs());
        let wide = self.cell.input_gates() * self.hidden;
        assert_eq!(weights.input.len(), self.inputs * wide);
        let wide = self.cell.hidden_gates() * self.hidden;
        assert_eq!(weights.hidden.len(), self.hidden * wide);
        assert_eq!(weights.bias.len(), self.columns());
    }

    /// The index of the step that is processed as the `number`th.
    fn step(&self, number: usize) -> usize {
        if self.is_reverse {
            self.steps - 1 - number
        } else {
            number
        }
    }

    /// The blocks of items.
    fn parts(&self) -> impl IndexedParallelIterator<Item = (usize, usize)> {
        let (items, most) = (self.items, items_at_once(self.items));
        let parts = (0..items.div_ceil(most)).into_par_iter();
        parts.map(move |part| (part * most, most.min(items - part * most)))
    }
}

/// All hidden states, \[items, steps, hidden\], for inputs \[items, steps, inputs\], starting from zeros; and the
/// values for the backward pass, if `is_kept`. States do not change in steps that are not `real`, \[items, steps\].
///
/// # Panics
/// If lengths do not match the sizes.
pub fn forward(
    sequence: &Sequence,
    real: Option<&[bool]>,
    x: &[f32],
    weights: Weights,
    is_kept: bool,
) -> (Vec<f32>, Option<Kept>) {
    sequence.check(real, x, &weights);
    let columns = sequence.columns();
    let num_kept = usize::from(is_kept) * sequence.items * sequence.steps;
    let num_cells = usize::from(sequence.cell.has_state()) * sequence.hidden;
    let mut kept = Kept {
        gates: Vec::new(),
        cells: Vec::new(),
        real: real.filter(|_| is_kept).map(<[bool]>::to_vec),
    };
    let write = |output: Shared| {
        let write = |gates: Shared| {
            let write = |cells: Shared| {
                let places = Places {
                    output,
                    gates,
                    cells,
                    is_kept,
                };
                sequence.parts().for_each(|(first, num)| {
                    // SAFETY: only this task accesses these items.
                    unsafe { forward_part(sequence, real, x, weights, &places, first, num) };
                });
            };
            // SAFETY: the parts cover all items, and each writes all steps.
            kept.cells = unsafe { written(num_kept * num_cells, write) };
        };
        // SAFETY: as above.
        kept.gates = unsafe { written(num_kept * columns, write) };
    };
    // SAFETY: as above.
    let output = unsafe { written(sequence.num_outputs(), write) };
    (output, is_kept.then_some(kept))
}

/// The outputs of a forward pass.
struct Places {
    output: Shared,
    gates: Shared,
    cells: Shared,
    is_kept: bool,
}

/// Computes all steps for `num` items starting at `first`.
///
/// # Safety
/// Nothing else accesses these items in the meantime.
unsafe fn forward_part(
    sequence: &Sequence,
    real: Option<&[bool]>,
    x: &[f32],
    weights: Weights,
    places: &Places,
    first: usize,
    num: usize,
) {
    let Sequence {
        cell,
        steps,
        inputs,
        hidden,
        ..
    } = *sequence;
    let columns = sequence.columns();
    let (wide_in, wide_hidden) = (cell.input_gates() * hidden, cell.hidden_gates() * hidden);
    // The sums of a step, then two cell states, which are swapped.
    scratch::with(num * (columns + 2 * hidden), |scratch| {
        let (sums, cells) = scratch.split_at_mut(num * columns);
        cells.fill(0.0);
        for number in 0..steps {
            let step = sequence.step(number);
            for sums in sums.chunks_exact_mut(columns) {
                sums.copy_from_slice(weights.bias);
            }
            let to = Shared::of(sums);
            let lhs = Matrix {
                values: weights.input,
                row: 1,
                column: wide_in,
            };
            let rhs = Matrix {
                values: &x[(first * steps + step) * inputs..],
                row: 1,
                column: steps * inputs,
            };
            if inputs > 0 {
                // SAFETY: the sums belong to this task and contain the bias.
                unsafe {
                    product(
                        sequence.arithmetic,
                        [wide_in, num, inputs],
                        to.at(0),
                        columns,
                        true,
                        lhs,
                        rhs,
                    )
                };
            }
            if number > 0 {
                let last = sequence.step(number - 1);
                let states = places
                    .output
                    .at((first * steps + last) * hidden)
                    .cast_const();
                let rhs = (states, 1, steps * hidden);
                for (from, to_column, wide) in cell.hidden_blocks(hidden) {
                    let lhs = Matrix {
                        values: &weights.hidden[from..],
                        row: 1,
                        column: wide_hidden,
                    };
                    // SAFETY: as above; this task has written the states of the last step, and nothing writes them now.
                    unsafe {
                        product_with(
                            sequence.arithmetic,
                            [wide, num, hidden],
                            to.at(to_column),
                            columns,
                            true,
                            lhs,
                            rhs,
                        )
                    };
                }
            }
            for item in 0..num {
                let sums = &mut sums[item * columns..][..columns];
                let (old, new) = cells.split_at_mut(num * hidden);
                let (old, new) = if number % 2 == 0 {
                    (old, new)
                } else {
                    (new, old)
                };
                let states = (
                    &old[item * hidden..][..hidden],
                    &mut new[item * hidden..][..hidden],
                );
                let at = (first + item) * steps + step;
                // SAFETY: only this task writes these elements, and this is the only slice of them.
                let output = unsafe { places.output.filled(at * hidden, hidden, 0.0) };
                if real.is_none_or(|real| real[at]) {
                    cell.activate(sums, states.0, states.1, output);
                } else {
                    states.1.copy_from_slice(states.0);
                    if number > 0 {
                        let last = (first + item) * steps + sequence.step(number - 1);
                        // SAFETY: this task has written this state in the last step.
                        let last = unsafe {
                            std::slice::from_raw_parts(places.output.at(last * hidden), hidden)
                        };
                        output.copy_from_slice(last);
                    }
                }
                if places.is_kept {
                    // SAFETY: as above.
                    unsafe { places.gates.write(at * columns, sums) };
                    if cell.has_state() {
                        // SAFETY: as above.
                        unsafe { places.cells.write(at * hidden, states.1) };
                    }
                }
            }
        }
    });
}
