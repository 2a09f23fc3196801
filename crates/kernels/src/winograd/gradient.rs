//! The gradient of the weights.

use std::ops::Range;

use rayon::prelude::*;

use super::input::{Rows, fill, sum_inputs};
use super::{LANES, PLACES, Tiling, multiply, part};
use crate::dense::{REGISTER, parts, turn};
use crate::geometry::Geometry;
use crate::product::Matrix;
use crate::scratch;
use crate::vectors::vectorized;

/// The gradient of the weights: the same with the output gradient as the kernels, whose 2x2 tiles are transformed to
/// 4x4, and products of 4x4 to kernels of 3x3.
pub fn backward_weight(geometry: &Geometry, x: &[f32], gradient: &[f32]) -> Vec<f32> {
    let (inputs, outputs) = (geometry.group_inputs(), geometry.group_outputs());
    let (area_in, area) = (geometry.area_in(), geometry.area_out());
    let wide = outputs.next_multiple_of(REGISTER);
    let tiling = Tiling::new(geometry, inputs + wide);
    let layout = Rows::new(geometry, tiling.across);
    let num_sums = PLACES * inputs * wide;
    let num_parts = parts(geometry, num_sums * geometry.groups);
    let task = |task: usize| {
        let (part, group) = (task / geometry.groups, task % geometry.groups);
        let items = part * geometry.items / num_parts..(part + 1) * geometry.items / num_parts;
        // [place, input, output]
        let mut sums = vec![0.0; num_sums];
        let (num_in, num_out) = (PLACES * inputs * tiling.pitch, PLACES * tiling.panel * wide);
        let whole = 0..tiling.panel.min(tiling.num);
        let num_rows = (tiling.panel.div_ceil(tiling.across) + 1) * 2;
        let num_turned = num_rows * 2 * tiling.across * wide;
        let num_layout = (num_rows + 2) * layout.pitch;
        debug_assert!(num_layout >= layout.len(&whole));
        scratch::with(num_in + num_out + num_turned + num_layout, |scratch| {
            let (windows, scratch) = scratch.split_at_mut(num_in);
            let (places, scratch) = scratch.split_at_mut(num_out);
            let (turned, rows) = scratch.split_at_mut(num_turned);
            for item in items {
                let x =
                    &x[(item * geometry.groups + group) * inputs * area_in..][..inputs * area_in];
                let gradient = &gradient[(item * geometry.groups + group) * outputs * area..]
                    [..outputs * area];
                for first in (0..tiling.num).step_by(tiling.panel) {
                    let tiles = first..(first + tiling.panel).min(tiling.num);
                    for (input, plane) in x.chunks_exact(area_in).enumerate() {
                        fill(&layout, plane, &tiles, rows);
                        let to = &mut windows[input * tiling.pitch..];
                        sum_inputs(&layout, rows, &tiles, to, inputs * tiling.pitch);
                    }
                    turn_rows(geometry, gradient, &tiles, turned, wide);
                    sum_gradients(&tiling, turned, &tiles, places, wide);
                    for at in 0..PLACES {
                        let lhs = Matrix {
                            values: &places[at * tiling.panel * wide..],
                            row: 1,
                            column: wide,
                        };
                        let rhs = Matrix {
                            values: &windows[at * inputs * tiling.pitch..],
                            row: 1,
                            column: tiling.pitch,
                        };
                        let to = &mut sums[at * inputs * wide..][..inputs * wide];
                        multiply([wide, inputs, tiles.len()], to, wide, true, lhs, rhs);
                    }
                }
            }
        });
        sums
    };
    let tasks = (0..num_parts * geometry.groups).into_par_iter();
    let mut sums: Vec<Vec<f32>> = tasks.map(task).collect();
    let (all, others) = sums.split_at_mut(geometry.groups);
    for (at, part) in others.iter().enumerate() {
        let all = &mut all[at % geometry.groups];
        all.iter_mut()
            .zip(part)
            .for_each(|(sum, part)| *sum += part);
    }
    let kernel_sums =
        |[a, b, c, d]: [f32; 4]| [a + (b + c) / 2.0, (b - c) / 2.0, (b + c) / 2.0 + d];
    let mut weight = vec![0.0; geometry.num_weights()];
    for (group, sums) in all.iter().enumerate() {
        for input in 0..inputs {
            for output in 0..outputs {
                let columns: [[f32; 3]; 4] = std::array::from_fn(|x| {
                    kernel_sums(std::array::from_fn(|y| {
                        sums[((4 * y + x) * inputs + input) * wide + output]
                    }))
                });
                let kernel = &mut weight[((group * outputs + output) * inputs + input) * 9..][..9];
                for (y, row) in kernel.chunks_exact_mut(3).enumerate() {
                    row.copy_from_slice(&kernel_sums(std::array::from_fn(|x| columns[x][y])));
                }
            }
        }
    }
    weight
}

/// The rows of some tiles with contiguous outputs: \[row, column, output\], zeros beyond the last row and column.
fn turn_rows(
    geometry: &Geometry,
    gradient: &[f32],
    tiles: &Range<usize>,
    turned: &mut [f32],
    wide: usize,
) {
    let [height, width] = geometry.output();
    let across = width.div_ceil(2);
    let rows = 2 * (tiles.start / across)..2 * ((tiles.end - 1) / across) + 2;
    if width == 2 * across {
        // Rows are contiguous, and so are transposed ones.
        let (num, past) = (rows.end.min(height) - rows.start, rows.len() * width);
        let size = [geometry.group_outputs(), num * width];
        turn(
            &gradient[rows.start * width..],
            height * width,
            size,
            turned,
            wide,
        );
        turned[num * width * wide..past * wide].fill(0.0);
        return;
    }
    for (row, to) in rows.zip(turned.chunks_exact_mut(2 * across * wide)) {
        if row < height {
            to[width * wide..].fill(0.0);
            let size = [geometry.group_outputs(), width];
            turn(&gradient[row * width..], height * width, size, to, wide);
        } else {
            to.fill(0.0);
        }
    }
}

vectorized! {
    /// The transformed 2x2 gradients of each tile: \[position, tile, output\].
    fn sum_gradients = sum_gradients_now(
        tiling: &Tiling,
        turned: &[f32],
        tiles: &Range<usize>,
        to: &mut [f32],
        wide: usize,
    );
}

#[inline(always)]
fn gradient_sums([a, b]: [f32; 2]) -> [f32; 4] {
    [a, a + b, a - b, -b]
}

#[inline(always)]
fn sum_gradients_now(
    tiling: &Tiling,
    turned: &[f32],
    tiles: &Range<usize>,
    to: &mut [f32],
    wide: usize,
) {
    let first_row = tiles.start / tiling.across;
    for tile in tiles.clone() {
        let (row, column) = (tile / tiling.across - first_row, tile % tiling.across);
        for output in (0..wide).step_by(LANES) {
            let places: [[&[f32; LANES]; 2]; 2] = std::array::from_fn(|y| {
                std::array::from_fn(|x| {
                    let at = (2 * row + y) * 2 * tiling.across + 2 * column + x;
                    part(turned, at * wide + output)
                })
            });
            let mut sums = [[0.0; LANES]; PLACES];
            for lane in 0..LANES {
                let columns: [[f32; 4]; 2] = std::array::from_fn(|x| {
                    gradient_sums([places[0][x][lane], places[1][x][lane]])
                });
                for y in 0..4 {
                    let row = gradient_sums([columns[0][y], columns[1][y]]);
                    for x in 0..4 {
                        sums[4 * y + x][lane] = row[x];
                    }
                }
            }
            for (place, sums) in sums.iter().enumerate() {
                let at = (place * tiling.panel + tile - tiles.start) * wide + output;
                to[at..at + LANES].copy_from_slice(sums);
            }
        }
    }
}
