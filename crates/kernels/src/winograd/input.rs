//! The transformed 4x4 positions of tiles.

use std::ops::Range;

use super::{LANES, PLACES, part};
use crate::columns::copy;
use crate::geometry::Geometry;
use crate::vectors::vectorized;

/// How rows of the input are copied into zero padding, so that no tile checks the border.
pub(super) struct Rows {
    /// Tiles per row.
    pub(super) across: usize,
    /// Elements of a row.
    pub(super) pitch: usize,
    pub(super) input: [usize; 2],
    pub(super) before: [usize; 2],
}

impl Rows {
    pub(super) fn new(geometry: &Geometry, across: usize) -> Self {
        Self {
            across,
            // The last tile sees two more columns, and lanes beyond it read further.
            pitch: 2 * across + 2 + 2 * LANES,
            input: geometry.input,
            before: geometry.padding.map(|(before, _)| before),
        }
    }

    /// The rows that some tiles see.
    pub(super) fn of(&self, tiles: &Range<usize>) -> Range<usize> {
        2 * (tiles.start / self.across)..2 * ((tiles.end - 1) / self.across) + 4
    }

    pub(super) fn len(&self, tiles: &Range<usize>) -> usize {
        self.of(tiles).len() * self.pitch
    }
}

vectorized! {
    /// Copies the rows that some tiles see.
    pub(super) fn fill = fill_now(
        layout: &Rows,
        plane: &[f32],
        tiles: &Range<usize>,
        rows: &mut [f32],
    );
}

#[inline(always)]
fn fill_now(layout: &Rows, plane: &[f32], tiles: &Range<usize>, rows: &mut [f32]) {
    let [height, width] = layout.input;
    let [above, left] = layout.before;
    // Values that lanes beyond the last tile read are ignored.
    let seen = 2 * layout.across + 2;
    let num = width.min(seen - left);
    for (row, to) in layout.of(tiles).zip(rows.chunks_exact_mut(layout.pitch)) {
        let to = &mut to[..seen];
        if row < above || row - above >= height {
            to.fill(0.0);
            continue;
        }
        for value in &mut to[..left] {
            *value = 0.0;
        }
        for value in &mut to[left + num..] {
            *value = 0.0;
        }
        copy(
            &mut to[left..left + num],
            &plane[(row - above) * width..][..num],
        );
    }
}

vectorized! {
    /// The transformed 4x4 positions of each tile; consecutive positions are `distance` apart.
    pub(super) fn sum_inputs = sum_inputs_now(
        layout: &Rows,
        rows: &[f32],
        tiles: &Range<usize>,
        to: &mut [f32],
        distance: usize,
    );
}

#[inline(always)]
fn input_sums([a, b, c, d]: [f32; 4]) -> [f32; 4] {
    [a - c, b + c, c - b, b - d]
}

#[inline(always)]
fn sum_inputs_now(
    layout: &Rows,
    rows: &[f32],
    tiles: &Range<usize>,
    to: &mut [f32],
    distance: usize,
) {
    let first_row = tiles.start / layout.across;
    let mut tile = tiles.start;
    while tile < tiles.end {
        let (row, column) = (tile / layout.across, tile % layout.across);
        let num = (layout.across - column).min(tiles.end - tile).min(LANES);
        let base = 2 * (row - first_row) * layout.pitch + 2 * column;
        let windows: [&[f32; 2 * LANES + 2]; 4] =
            std::array::from_fn(|y| part(rows, base + y * layout.pitch));
        let mut sums = [[0.0; LANES]; PLACES];
        for lane in 0..LANES {
            let rows: [[f32; 4]; 4] = std::array::from_fn(|y| {
                input_sums(std::array::from_fn(|x| windows[y][2 * lane + x]))
            });
            for x in 0..4 {
                let column = input_sums(std::array::from_fn(|y| rows[y][x]));
                for y in 0..4 {
                    sums[4 * y + x][lane] = column[y];
                }
            }
        }
        // Lanes beyond the row are overwritten by the next one's.
        for (place, sums) in sums.iter().enumerate() {
            let at = place * distance + tile - tiles.start;
            to[at..at + LANES].copy_from_slice(sums);
        }
        tile += num;
    }
}
