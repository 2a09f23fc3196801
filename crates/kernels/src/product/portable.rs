//! Products of matrices with the same bits on every processor.
//!
//! Each number of the result is the sum of blocks of [`TERMS`] terms, and each block the sum of its products in their
//! order, from 0 on, with every product and sum rounded by itself. Numbers of the result do not depend on each other, so
//! that a vector register holds as many of them as it has lanes.

use std::mem::MaybeUninit;

use super::Matrix;
use crate::arithmetic::Arithmetic;
use crate::direct::tiles::{Tiled, run};
use crate::lanes::Lanes;

/// Terms of a block, whose rows of a tile stay in the first-level cache.
const TERMS: usize = 256;
/// Registers of a column of a tile.
const REGISTERS: usize = 2;
/// Rows of the tile with the widest registers.
const ROWS: usize = REGISTERS * 16;
/// With more columns than this, rows are copied, since each tile of columns would fetch them again.
const COLUMNS: usize = 32;

/// As [`super::product_with`].
///
/// # Safety
/// As there; also, all places of the left operand are within its slice.
pub unsafe fn product(
    [m, n, k]: [usize; 3],
    to: *mut f32,
    pitch: usize,
    adds: bool,
    lhs: Matrix,
    rhs: (*const f32, usize, usize),
) {
    if k == 0 && !adds {
        for column in 0..n {
            for row in 0..m {
                // SAFETY: the caller guarantees the elements of the result.
                unsafe { to.add(row + column * pitch).write(0.0) };
            }
        }
    }
    for first in (0..k).step_by(TERMS) {
        let block = Block {
            sizes: [m, n, TERMS.min(k - first)],
            to,
            pitch,
            adds: adds || first > 0,
            lhs: Matrix {
                values: &lhs.values[first * lhs.column..],
                ..lhs
            },
            // SAFETY: the caller guarantees all terms of the right operand.
            rhs: (unsafe { rhs.0.add(first * rhs.1) }, rhs.1, rhs.2),
        };
        run(Arithmetic::Portable, block);
    }
}

/// The part of a product that few terms have.
struct Block<'a> {
    sizes: [usize; 3],
    to: *mut f32,
    pitch: usize,
    adds: bool,
    lhs: Matrix<'a>,
    rhs: (*const f32, usize, usize),
}

impl Tiled for Block<'_> {
    const ADDS_LANES: bool = false;

    #[inline(always)]
    unsafe fn run<L: Lanes>(self, parts: usize) {
        let ([m, n, terms], rows) = (self.sizes, REGISTERS * L::NUM);
        let mut copied = [const { MaybeUninit::<f32>::uninit() }; TERMS * ROWS];
        for first in (0..m).step_by(rows) {
            let num = rows.min(m - first);
            let is_direct = self.lhs.row == 1 && num == rows && n <= COLUMNS;
            // SAFETY: all places of the left operand are within its slice, and `copied` has a row of the tile for each
            // term; the caller guarantees the processor's features.
            unsafe {
                let from = self.lhs.values.as_ptr().add(first * self.lhs.row);
                let (lhs, column) = if is_direct {
                    (from, self.lhs.column)
                } else {
                    let to = copied.as_mut_ptr().cast();
                    self.copy(from, num, rows, to);
                    (to.cast_const(), rows)
                };
                debug_assert!(terms <= TERMS);
                let wide = 2 * parts;
                for at in (0..n).step_by(wide) {
                    macro_rules! by {
                        ($($num:literal)+) => {
                            match wide.min(n - at) {
                                $($num => self.tile::<L, $num>(lhs, column, first, num, at),)+
                                _ => self.tile::<L, 8>(lhs, column, first, num, at),
                            }
                        };
                    }
                    by!(1 2 3 4 5 6 7);
                }
            }
        }
    }
}

impl Block<'_> {
    /// Copies `num` rows of the left operand for all terms, and fills them up with zeros.
    #[inline(always)]
    unsafe fn copy(&self, from: *const f32, num: usize, rows: usize, to: *mut f32) {
        let terms = self.sizes[2];
        // SAFETY: the caller guarantees all elements.
        unsafe {
            if self.lhs.row == 1 {
                for term in 0..terms {
                    let (from, to) = (from.add(term * self.lhs.column), to.add(term * rows));
                    for row in 0..num {
                        *to.add(row) = *from.add(row);
                    }
                    for row in num..rows {
                        *to.add(row) = 0.0;
                    }
                }
                return;
            }
            for row in 0..rows {
                let is_one = row < num;
                for term in 0..terms {
                    let place = row * self.lhs.row + term * self.lhs.column;
                    let value = if is_one { *from.add(place) } else { 0.0 };
                    *to.add(term * rows + row) = value;
                }
            }
        }
    }

    /// `num` rows from `first` on of `N` columns from `at` on.
    #[inline(always)]
    unsafe fn tile<L: Lanes, const N: usize>(
        &self,
        lhs: *const f32,
        column: usize,
        first: usize,
        num: usize,
        at: usize,
    ) {
        let terms = self.sizes[2];
        let (rhs, rhs_row, rhs_column) = self.rhs;
        // SAFETY: the caller guarantees the processor's features and all elements.
        unsafe {
            let mut sums = [[L::splat(0.0); REGISTERS]; N];
            let mut lhs = lhs;
            let mut rhs: [*const f32; N] =
                std::array::from_fn(|output| rhs.add((at + output) * rhs_column));
            for _ in 0..terms {
                let x: [L; REGISTERS] = std::array::from_fn(|part| L::load(lhs.add(part * L::NUM)));
                for output in 0..N {
                    let y = L::splat(*rhs[output]);
                    for part in 0..REGISTERS {
                        sums[output][part] = sums[output][part].plus_product(x[part], y);
                    }
                    // Not read behind the last term.
                    rhs[output] = rhs[output].wrapping_add(rhs_row);
                }
                lhs = lhs.wrapping_add(column);
            }
            for output in 0..N {
                let to = self.to.add(first + (at + output) * self.pitch);
                if num == REGISTERS * L::NUM {
                    for part in 0..REGISTERS {
                        let to = to.add(part * L::NUM);
                        let mut sum = sums[output][part];
                        if self.adds {
                            sum = L::load(to).plus(sum);
                        }
                        sum.store(to);
                    }
                    continue;
                }
                let mut column = [0.0; ROWS];
                for part in 0..REGISTERS {
                    sums[output][part].store(column.as_mut_ptr().add(part * L::NUM));
                }
                for row in 0..num {
                    let to = to.add(row);
                    *to = if self.adds { *to } else { -0.0 } + column[row];
                }
            }
        }
    }
}
