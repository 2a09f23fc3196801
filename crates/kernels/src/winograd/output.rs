//! The outputs of tiles.

use std::ops::Range;

use super::{LANES, part};
use crate::geometry::Geometry;
use crate::scratch::Shared;
use crate::vectors::vectorized;

/// A channel of the output.
#[derive(Clone, Copy)]
pub(super) struct Plane {
    pub(super) to: Shared,
    pub(super) first: usize,
}

vectorized! {
    /// The four outputs of each tile.
    pub(super) fn sum_outputs = sum_outputs_now(
        geometry: &Geometry,
        products: &[f32],
        distance: usize,
        tiles: &Range<usize>,
        bias: f32,
        to: Plane,
    );
}

#[inline(always)]
fn output_sums([a, b, c, d]: [f32; 4]) -> [f32; 2] {
    [a + b + c, b - c - d]
}

#[inline(always)]
fn sum_outputs_now(
    geometry: &Geometry,
    products: &[f32],
    distance: usize,
    tiles: &Range<usize>,
    bias: f32,
    to: Plane,
) {
    let [height, width] = geometry.output();
    let across = width.div_ceil(2);
    let mut tile = tiles.start;
    while tile < tiles.end {
        let (row, column) = (tile / across, tile % across);
        let num = (across - column).min(tiles.end - tile).min(LANES);
        let places: [[&[f32; LANES]; 4]; 4] = std::array::from_fn(|y| {
            std::array::from_fn(|x| part(products, (4 * y + x) * distance + tile - tiles.start))
        });
        let mut rows = [[0.0; 2 * LANES]; 2];
        for lane in 0..LANES {
            let columns: [[f32; 2]; 4] =
                std::array::from_fn(|x| output_sums(std::array::from_fn(|y| places[y][x][lane])));
            for y in 0..2 {
                let [even, odd] = output_sums(std::array::from_fn(|x| columns[x][y]));
                rows[y][2 * lane] = even + bias;
                rows[y][2 * lane + 1] = odd + bias;
            }
        }
        let num_columns = (2 * num).min(width - 2 * column);
        for (y, sums) in rows.iter().enumerate().take(height - 2 * row) {
            let at = to.first + (2 * row + y) * width + 2 * column;
            // SAFETY: only this task writes these tiles.
            unsafe { to.to.write(at, &sums[..num_columns]) };
        }
        tile += num;
    }
}
