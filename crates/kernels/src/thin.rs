//! Few rows times a large matrix, as in the steps of text generation: reading the matrix takes longer than computing.
//!
//! The matrix is read once, in the order of its memory, whatever the number of rows. Each number of the result is a sum
//! whose order depends only on sizes, so that results are bitwise equal for any number of threads, and a row has the same
//! result alone and among others.

#[cfg(test)]
mod tests;

use std::ops::Range;

use rayon::prelude::*;

use super::arithmetic::Arithmetic;
use super::direct::tiles::{Tiled, run};
use super::lanes::Lanes;
use super::linear::begin;
use super::scratch::{Shared, written};

/// The most rows that are computed by one pass over the matrix.
pub const MOST_ROWS: usize = 16;
/// Rows of a tile.
const ROWS: usize = 4;
/// Inputs of a tile, whose rows of the matrix are read side by side.
const INPUTS: usize = 8;
/// Outputs of a block: its weights for [`INPUTS`] stay in the caches for all rows.
const OUTPUTS: usize = 1024;
/// Outputs of a tile of a matrix that is stored by outputs.
const TURNED: usize = 4;

/// Rows times a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thin {
    /// Rows of the input and of the output.
    pub rows: usize,
    /// Numbers of a row of the input.
    pub inputs: usize,
    /// Numbers of a row of the output.
    pub outputs: usize,
    /// Whether the matrix is stored as \[outputs, inputs\], and not as \[inputs, outputs\].
    pub is_turned: bool,
}

impl Thin {
    /// `x w + bias`, \[rows, outputs\].
    ///
    /// # Panics
    /// If lengths do not match the sizes.
    ///
    /// ```
    /// # use runner_kernels::thin::Thin;
    /// let layer = Thin { rows: 1, inputs: 2, outputs: 3, is_turned: false };
    /// let output = layer.forward(&[1.0, 2.0], &[1.0, 0.0, 2.0, 0.0, 1.0, 2.0], Some(&[0.0, 0.0, 1.0]));
    /// assert_eq!(output, [1.0, 2.0, 7.0]);
    /// ```
    pub fn forward(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let Self {
            rows,
            inputs,
            outputs,
            ..
        } = *self;
        assert_eq!(
            [x.len(), weight.len()],
            [rows * inputs, inputs * outputs],
            "numbers of {self:?}"
        );
        assert!(bias.is_none_or(|bias| bias.len() == outputs));
        let task = |to: Shared, columns: Range<usize>| {
            // SAFETY: only this task writes these columns.
            unsafe { begin(to, outputs, 0..rows, columns.clone(), bias) };
            let part = Part {
                sizes: *self,
                x,
                weight,
                to,
                columns,
            };
            run(Arithmetic::Fast, part);
        };
        let write = |to: Shared| parts(outputs, inputs).for_each(|columns| task(to, columns));
        // SAFETY: the parts cover all columns of all rows.
        unsafe { written(rows * outputs, write) }
    }
}

/// The columns of each task, for so many weights of each: as few tasks as keep all threads busy.
fn parts(outputs: usize, inputs: usize) -> impl IndexedParallelIterator<Item = Range<usize>> {
    /// Weights that are worth another task.
    const WEIGHTS: usize = 1 << 15;
    /// Columns that start at a line of the cache.
    const LINE: usize = 16;
    let lines = outputs.div_ceil(LINE);
    let most = 2 * rayon::current_num_threads();
    let num = (inputs * outputs / WEIGHTS)
        .clamp(1, most)
        .min(lines.max(1));
    (0..num).into_par_iter().map(move |at| {
        let start = |at: usize| (at * lines / num * LINE).min(outputs);
        start(at)..start(at + 1)
    })
}

/// Some columns of the result of all rows, which have their initial values.
struct Part<'a> {
    sizes: Thin,
    x: &'a [f32],
    weight: &'a [f32],
    to: Shared,
    columns: Range<usize>,
}

/// Calls a function with so many rows or outputs as a constant.
macro_rules! tiles {
    ($num:expr, $part:ident, $function:ident::<$lanes:ident>($($argument:expr),*)) => {
        match $num {
            1 => $part.$function::<$lanes, 1>($($argument),*),
            2 => $part.$function::<$lanes, 2>($($argument),*),
            3 => $part.$function::<$lanes, 3>($($argument),*),
            _ => $part.$function::<$lanes, 4>($($argument),*),
        }
    };
}

impl Tiled for Part<'_> {
    const ADDS_LANES: bool = true;

    #[inline(always)]
    unsafe fn run<L: Lanes>(self, _: usize) {
        let Thin { rows, inputs, .. } = self.sizes;
        // SAFETY: `forward` has checked the lengths, and only this task accesses its columns; the caller guarantees the
        // processor's features.
        unsafe {
            if self.sizes.is_turned {
                for first in self.columns.clone().step_by(TURNED) {
                    let num = TURNED.min(self.columns.end - first);
                    for row in (0..rows).step_by(ROWS) {
                        tiles!(ROWS.min(rows - row), self, turned::<L>(row, first, num));
                    }
                }
                return;
            }
            for first in self.columns.clone().step_by(OUTPUTS) {
                let end = self.columns.end.min(first + OUTPUTS);
                for input in (0..inputs).step_by(INPUTS) {
                    for row in (0..rows).step_by(ROWS) {
                        tiles!(
                            ROWS.min(rows - row),
                            self,
                            added::<L>(row, input, first, end)
                        );
                    }
                }
            }
        }
    }
}

impl Part<'_> {
    /// Adds the products of some inputs of `N` rows, in their order.
    ///
    /// # Safety
    /// As for `run`; rows, inputs and columns exist.
    #[inline(always)]
    unsafe fn added<L: Lanes, const N: usize>(
        &self,
        row: usize,
        input: usize,
        first: usize,
        end: usize,
    ) {
        let Thin {
            inputs, outputs, ..
        } = self.sizes;
        // SAFETY: the caller guarantees all places.
        unsafe {
            let weight = self.weight.as_ptr();
            let to: [*mut f32; N] = std::array::from_fn(|at| self.to.at((row + at) * outputs));
            let x: [*const f32; N] =
                std::array::from_fn(|at| self.x.as_ptr().add((row + at) * inputs + input));
            let mut column = first;
            if inputs - input >= INPUTS {
                while column + L::NUM <= end {
                    let weights: [L; INPUTS] = std::array::from_fn(|at| {
                        L::load(weight.add((input + at) * outputs + column))
                    });
                    for at in 0..N {
                        let to = to[at].add(column);
                        let mut sum = L::load(to);
                        for term in 0..INPUTS {
                            sum = sum.plus_product(L::splat(*x[at].add(term)), weights[term]);
                        }
                        sum.store(to);
                    }
                    column += L::NUM;
                }
            }
            let num = INPUTS.min(inputs - input);
            while column < end {
                let wide = L::NUM.min(end - column);
                for at in 0..N {
                    let mut lanes = [0.0; 16];
                    let to = to[at].add(column);
                    std::ptr::copy_nonoverlapping(to, lanes.as_mut_ptr(), wide);
                    let mut sum = L::load(lanes.as_ptr());
                    for term in 0..num {
                        let mut weights = [0.0; 16];
                        let from = weight.add((input + term) * outputs + column);
                        std::ptr::copy_nonoverlapping(from, weights.as_mut_ptr(), wide);
                        let weights = L::load(weights.as_ptr());
                        sum = sum.plus_product(L::splat(*x[at].add(term)), weights);
                    }
                    sum.store(lanes.as_mut_ptr());
                    std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, wide);
                }
                column += wide;
            }
        }
    }

    /// Adds the products of `N` rows with the `num` rows of the matrix from `first` on.
    ///
    /// # Safety
    /// As for `run`; rows and columns exist.
    #[inline(always)]
    unsafe fn turned<L: Lanes, const N: usize>(&self, row: usize, first: usize, num: usize) {
        let Thin {
            inputs, outputs, ..
        } = self.sizes;
        // SAFETY: the caller guarantees all places; outputs behind the last one are read as if they were the last one.
        unsafe {
            let weight: [*const f32; TURNED] = std::array::from_fn(|at| {
                self.weight.as_ptr().add((first + at.min(num - 1)) * inputs)
            });
            let x: [*const f32; N] =
                std::array::from_fn(|at| self.x.as_ptr().add((row + at) * inputs));
            let mut sums = [[L::splat(0.0); TURNED]; N];
            let mut input = 0;
            while input + L::NUM <= inputs {
                let weights: [L; TURNED] = std::array::from_fn(|at| L::load(weight[at].add(input)));
                for at in 0..N {
                    let x = L::load(x[at].add(input));
                    for output in 0..TURNED {
                        sums[at][output] = sums[at][output].plus_product(x, weights[output]);
                    }
                }
                input += L::NUM;
            }
            for at in 0..N {
                let mut all = L::sums(sums[at]);
                for rest in input..inputs {
                    for (output, sum) in all.iter_mut().enumerate() {
                        *sum += *x[at].add(rest) * *weight[output].add(rest);
                    }
                }
                for (output, sum) in all.into_iter().enumerate().take(num) {
                    *self.to.at((row + at) * outputs + first + output) += sum;
                }
            }
        }
    }
}
