//! Batched matrix products, forward and backward.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::arithmetic::Arithmetic;
use super::product::{Matrix, product};
use super::scratch::{Shared, written};

/// Rows of a result that a task computes.
const ROWS: usize = 64;

/// The sizes of matrices \[batch, rows, terms\] and \[batch, terms, columns\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matmul {
    /// How many products.
    pub batch: usize,
    /// Rows of each left matrix and of each result.
    pub rows: usize,
    /// Columns of each left matrix and rows of each right one.
    pub terms: usize,
    /// Columns of each right matrix and of each result.
    pub columns: usize,
    /// How products and sums are rounded.
    pub arithmetic: Arithmetic,
}

/// An operand with how far apart its numbers are along its own axis and along the one that is summed over.
type Operand<'a> = (&'a [f32], usize, usize);

impl Matmul {
    /// \[batch, rows, columns\].
    ///
    /// # Panics
    /// If there are not as many numbers.
    pub fn forward(&self, a: &[f32], b: &[f32]) -> Vec<f32> {
        let [rows, terms, columns] = [self.rows, self.terms, self.columns];
        self.each([rows, columns, terms], (a, terms, 1), (b, 1, columns))
    }

    /// The gradient of the left matrices, for that of the result.
    ///
    /// # Panics
    /// If there are not as many numbers.
    pub fn backward_left(&self, gradient: &[f32], b: &[f32]) -> Vec<f32> {
        let [rows, terms, columns] = [self.rows, self.terms, self.columns];
        self.each(
            [rows, terms, columns],
            (gradient, columns, 1),
            (b, columns, 1),
        )
    }

    /// The gradient of the right matrices, for that of the result.
    ///
    /// # Panics
    /// If there are not as many numbers.
    pub fn backward_right(&self, a: &[f32], gradient: &[f32]) -> Vec<f32> {
        let [rows, terms, columns] = [self.rows, self.terms, self.columns];
        self.each(
            [terms, columns, rows],
            (a, 1, terms),
            (gradient, 1, columns),
        )
    }

    /// For each of the batch, \[m, n\] of sums of `k` terms; `b` has the columns.
    fn each(&self, [m, n, k]: [usize; 3], a: Operand, b: Operand) -> Vec<f32> {
        let (of_a, of_b) = (m * k, n * k);
        assert_eq!(
            [a.0.len(), b.0.len()],
            [of_a, of_b].map(|num| self.batch * num)
        );
        if m * n == 0 || k == 0 {
            return vec![0.0; self.batch * m * n];
        }
        let parts = m.div_ceil(ROWS);
        let write = |to: Shared| {
            (0..self.batch * parts).into_par_iter().for_each(|task| {
                let (at, first) = (task / parts, task % parts * ROWS);
                let lhs = Matrix {
                    values: &b.0[at * of_b..][..of_b],
                    row: b.1,
                    column: b.2,
                };
                let rhs = Matrix {
                    values: &a.0[at * of_a + first * a.1..],
                    row: a.2,
                    column: a.1,
                };
                let size = [n, ROWS.min(m - first), k];
                let to = to.at((at * m + first) * n);
                // SAFETY: only this task writes these rows.
                unsafe { product(self.arithmetic, size, to, n, false, lhs, rhs) };
            });
        };
        // SAFETY: the tasks are all rows of the batch.
        unsafe { written(self.batch * m * n, write) }
    }
}
