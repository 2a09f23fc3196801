//! Linear layers: rows times a matrix plus a bias, and the backward pass.
//!
//! Rows or columns of each result are spread over threads in blocks whose number depends only on sizes, each a product
//! on one thread, so results are bitwise equal for any number of threads.

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

/// The blocks of a size, for this many multiplications in total: none is so small that threads would wait for each
/// other longer than they compute.
fn blocks(size: usize, num_products: usize) -> impl IndexedParallelIterator<Item = Range<usize>> {
    const BLOCK: usize = 16;
    const PRODUCTS: usize = 1 << 19;
    let num = (num_products / PRODUCTS).clamp(1, 32);
    let num = num.min(size.div_ceil(BLOCK)).max(1);
    (0..num)
        .into_par_iter()
        .map(move |at| at * size / num..(at + 1) * size / num)
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
        // Few rows share the weights, so outputs are divided; otherwise rows are.
        let by_rows = rows >= outputs.min(32);
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
        let num = rows * inputs * outputs;
        let write = |to: Shared| {
            if by_rows {
                blocks(rows, num).for_each(|rows| task(to, rows, 0..outputs));
            } else {
                blocks(outputs, num).for_each(|columns| task(to, 0..rows, columns));
            }
        };
        // SAFETY: the blocks cover all rows, or all columns of all rows.
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
        let mut turned = vec![0.0; weight.len()];
        if !weight.is_empty() {
            turn(weight, outputs, [inputs, outputs], &mut turned, inputs);
        }
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
        let task = |to: Shared, block: Range<usize>| {
            if block.is_empty() || outputs == 0 {
                return;
            }
            let lhs = Matrix {
                values: gradient,
                row: 1,
                column: outputs,
            };
            let rhs = Matrix {
                values: &x[block.start..],
                row: inputs,
                column: 1,
            };
            let to = to.at(block.start * outputs);
            // SAFETY: only this task writes the weights of these inputs.
            unsafe {
                product(
                    arithmetic,
                    [outputs, block.len(), rows],
                    to,
                    outputs,
                    false,
                    lhs,
                    rhs,
                )
            };
        };
        let write = |to: Shared| {
            blocks(inputs, rows * inputs * outputs).for_each(|block| task(to, block));
        };
        // SAFETY: the blocks cover all inputs.
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
