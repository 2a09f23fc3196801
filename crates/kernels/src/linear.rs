//! Linear layers: rows times a matrix plus a bias, and the backward pass.
//!
//! Rows and columns of each result are spread over threads in tiles whose number depends only on sizes, each a product on
//! one thread, so results are bitwise equal for any number of threads.

#[cfg(test)]
mod tests;

use std::ops::Range;

use rayon::prelude::*;

use super::arithmetic::Arithmetic;
use super::dense::turn;
use super::product::{Matrix, product};
use super::reduce::column_sums;
use super::scratch::{Shared, written};

/// The sizes of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Rows of the input and of the output.
    pub rows: usize,
    /// Numbers of a row of the input.
    pub inputs: usize,
    /// Numbers of a row of the output.
    pub outputs: usize,
    /// How products and sums are rounded.
    pub arithmetic: Arithmetic,
}

/// Outputs whose weights are transposed at a time.
const TURNED: usize = 64;

/// Calls with the rows and the columns of each tile of a result, which sums so many terms for each number. A tile reads
/// its rows and its columns of the operands once, and both stay in the caches.
fn for_tiles(
    sizes: [usize; 2],
    num_terms: usize,
    call: impl Fn(Range<usize>, Range<usize>) + Sync,
) {
    /// Multiplications that are worth a task: with fewer, threads would wait for each other longer than they compute.
    const PRODUCTS: usize = 1 << 19;
    /// The most tasks, unless tiles would be larger than they may be.
    const TASKS: usize = 32;
    /// The most rows or columns of a tile.
    const MOST: usize = 256;
    let wanted = (sizes[0] * sizes[1] * num_terms / PRODUCTS).clamp(1, TASKS);
    let mut parts = sizes.map(|size| size.div_ceil(MOST).max(1));
    // Columns first, since they are contiguous. Tiles of less than 64 take more time for each product, so that only a
    // few threads are worth them.
    for (wanted, least, order) in [(wanted, 64, [1, 0]), (wanted.min(4), 16, [0, 1])] {
        while parts[0] * parts[1] < wanted {
            let can_divide = |axis: &usize| sizes[*axis] >= 2 * least * parts[*axis];
            let Some(axis) = order.into_iter().find(can_divide) else {
                break;
            };
            parts[axis] *= 2;
        }
    }
    let range = |axis: usize, at: usize| {
        let [size, num] = [sizes[axis], parts[axis]];
        at * size / num..(at + 1) * size / num
    };
    let tiles = (0..parts[0] * parts[1]).into_par_iter();
    tiles.for_each(|at| call(range(0, at / parts[1]), range(1, at % parts[1])));
}

/// Gives some columns of some rows, of `outputs` numbers each, their initial values: the bias, or 0.
///
/// # Safety
/// They are inside the buffer, and no other task accesses them.
pub(crate) unsafe fn begin(
    to: Shared,
    outputs: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    bias: Option<&[f32]>,
) {
    for row in rows {
        let place = row * outputs + columns.start;
        // SAFETY: the caller guarantees it.
        let to = unsafe { to.filled(place, columns.len(), 0.0) };
        if let Some(bias) = bias {
            to.copy_from_slice(&bias[columns.clone()]);
        }
    }
}

impl Linear {
    /// `x w + bias`, \[rows, outputs\], of \[rows, inputs\], \[inputs, outputs\] and \[outputs\].
    ///
    /// # Panics
    /// If lengths do not match the sizes.
    ///
    /// ```
    /// # use runner_kernels::{Arithmetic, linear::Linear};
    /// let layer = Linear { rows: 1, inputs: 2, outputs: 3, arithmetic: Arithmetic::Fast };
    /// let output = layer.forward(&[1.0, 2.0], &[1.0, 0.0, 2.0, 0.0, 1.0, 2.0], Some(&[0.0, 0.0, 1.0]));
    /// assert_eq!(output, [1.0, 2.0, 7.0]);
    /// ```
    pub fn forward(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let Self {
            rows,
            inputs,
            outputs,
            arithmetic,
        } = *self;
        assert_eq!(
            [x.len(), weight.len()],
            [rows * inputs, inputs * outputs],
            "numbers of {self:?}"
        );
        assert!(bias.is_none_or(|bias| bias.len() == outputs));
        let task = |to: Shared, rows: Range<usize>, columns: Range<usize>| {
            // SAFETY: only this task writes these columns of its rows.
            unsafe { begin(to, outputs, rows.clone(), columns.clone(), bias) };
            if rows.is_empty() || columns.is_empty() || inputs == 0 {
                return;
            }
            let lhs = Matrix {
                values: &weight[columns.start..],
                row: 1,
                column: outputs,
            };
            let rhs = Matrix {
                values: &x[rows.start * inputs..],
                row: 1,
                column: inputs,
            };
            let to = to.at(rows.start * outputs + columns.start);
            // SAFETY: as above, and they are written.
            unsafe {
                product(
                    arithmetic,
                    [columns.len(), rows.len(), inputs],
                    to,
                    outputs,
                    true,
                    lhs,
                    rhs,
                );
            }
        };
        let write = |to: Shared| {
            for_tiles([rows, outputs], inputs, |rows, columns| {
                task(to, rows, columns)
            });
        };
        // SAFETY: the tiles cover all columns of all rows.
        unsafe { written(rows * outputs, write) }
    }

    /// The gradient of the input: the output's times the transposed weights.
    ///
    /// # Panics
    /// If lengths do not match the sizes.
    pub fn backward_input(&self, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
        let Self {
            rows,
            inputs,
            outputs,
            arithmetic,
        } = *self;
        assert_eq!(
            [gradient.len(), weight.len()],
            [rows * outputs, inputs * outputs],
            "numbers of {self:?}"
        );
        // [output, input], so that a product finds its terms next to each other.
        let turn = |to: Shared| {
            (0..outputs.div_ceil(TURNED))
                .into_par_iter()
                .for_each(|at| {
                    let first = at * TURNED;
                    let num = TURNED.min(outputs - first);
                    // SAFETY: only this task writes these outputs.
                    let to = unsafe { to.filled(first * inputs, num * inputs, 0.0) };
                    if inputs > 0 {
                        turn(&weight[first..], outputs, [inputs, num], to, inputs);
                    }
                });
        };
        // SAFETY: the tasks cover all outputs.
        let turned = unsafe { written(weight.len(), turn) };
        let other = Self {
            rows,
            inputs: outputs,
            outputs: inputs,
            arithmetic,
        };
        other.forward(gradient, &turned, None)
    }

    /// The gradient of the weights: the transposed input times the output's gradient.
    ///
    /// # Panics
    /// If lengths do not match the sizes.
    pub fn backward_weight(&self, x: &[f32], gradient: &[f32]) -> Vec<f32> {
        let Self {
            rows,
            inputs,
            outputs,
            arithmetic,
        } = *self;
        assert_eq!(
            [x.len(), gradient.len()],
            [rows * inputs, rows * outputs],
            "numbers of {self:?}"
        );
        if rows == 0 {
            return vec![0.0; inputs * outputs];
        }
        let task = |to: Shared, block: Range<usize>, columns: Range<usize>| {
            if block.is_empty() || columns.is_empty() {
                return;
            }
            let lhs = Matrix {
                values: &gradient[columns.start..],
                row: 1,
                column: outputs,
            };
            let rhs = Matrix {
                values: &x[block.start..],
                row: inputs,
                column: 1,
            };
            let to = to.at(block.start * outputs + columns.start);
            // SAFETY: only this task writes these weights.
            unsafe {
                product(
                    arithmetic,
                    [columns.len(), block.len(), rows],
                    to,
                    outputs,
                    false,
                    lhs,
                    rhs,
                )
            };
        };
        let write = |to: Shared| {
            for_tiles([inputs, outputs], rows, |block, columns| {
                task(to, block, columns)
            });
        };
        // SAFETY: the tiles cover all weights.
        unsafe { written(inputs * outputs, write) }
    }

    /// The gradient of the bias: the sum of the output's over rows.
    ///
    /// # Panics
    /// If lengths do not match the sizes.
    pub fn backward_bias(&self, gradient: &[f32]) -> Vec<f32> {
        assert_eq!(gradient.len(), self.rows * self.outputs);
        if self.outputs == 0 {
            return Vec::new();
        }
        column_sums(gradient, self.outputs)
    }
}
