//! The gradients of 3x3 kernels by Winograd's minimal filtering.
//!
//! Four outputs of a 2x2 window see 4x4 input positions. Both, and the kernel's gradient, are transformed by small sums
//! (F(3x3, 2x2) of Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015), after which 16 products of
//! matrices \[outputs, tiles\] and \[tiles, inputs\] replace 36 multiplications per tile: 2.25 times fewer. The sums
//! only add and halve, so that rounding stays close to that of plain sums; those for larger tiles do not, and are not
//! used. Outputs and the gradients of inputs are faster without (`direct.rs`).
//!
//! Differences of neighbors may turn an infinity into NaN: the gradients of a kernel's other weights are not finite
//! then either, which `special.rs` tests.
//!
//! Some tiles of an item are computed at a time, so that all 16 matrices stay in the second-level cache.

use std::ops::Range;

use rayon::prelude::*;

use super::columns::copy;
use super::dense::{NARROW, REGISTER, parts, turn};
use super::geometry::Geometry;
use super::product::{Matrix, product};
use super::scratch;
use super::vectors::vectorized;

/// Products per tile.
const PLACES: usize = 16;
/// Neighboring tiles that are summed at a time.
const LANES: usize = 16;
/// Elements of the matrices of inputs and outputs of a panel: 512 KiB.
const PANEL: usize = 1 << 17;

/// Whether it is faster for a convolution, and as exact.
pub fn suits(geometry: &Geometry) -> bool {
    let channels = [geometry.group_inputs(), geometry.group_outputs()];
    let [height, width] = geometry.output();
    geometry.kernel == [3, 3]
        && geometry.stride == [1, 1]
        && geometry.dilation == [1, 1]
        && geometry
            .padding
            .iter()
            .all(|(before, after)| *before <= 2 && *after <= 2)
        && channels.iter().all(|num| *num >= 16)
        && channels.iter().sum::<usize>() <= 256
        && height >= 4
        && width >= 8
}

/// The gradient of the weights: the 2x2 tiles of the output's gradient are transformed to 4x4, and products of 4x4 to
/// kernels of 3x3.
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

/// How the tiles of an item are divided into panels.
struct Tiling {
    /// Tiles per row.
    across: usize,
    /// Tiles of an item.
    num: usize,
    /// Tiles per panel.
    panel: usize,
    /// Positions in a panel's row, including lanes beyond the last tile.
    pitch: usize,
}

impl Tiling {
    fn new(geometry: &Geometry, channels: usize) -> Self {
        let [down, across] = geometry.output().map(|size| size.div_ceil(2));
        let num = down * across;
        let most = (PANEL / PLACES / channels / LANES * LANES).clamp(LANES, 4 * LANES);
        // Panels of about the same number of tiles, since short products are slow.
        let panel = num.div_ceil(num.div_ceil(most)).next_multiple_of(LANES);
        Self {
            across,
            num,
            panel,
            pitch: panel + LANES,
        }
    }
}

/// Some columns at a time, for which `gemm` need not copy its left side.
fn multiply(
    [m, n, k]: [usize; 3],
    to: &mut [f32],
    pitch: usize,
    adds: bool,
    lhs: Matrix,
    rhs: Matrix,
) {
    for from in (0..n).step_by(NARROW) {
        let num = NARROW.min(n - from);
        let rhs = Matrix {
            values: &rhs.values[from * rhs.column..],
            ..rhs
        };
        let to = &mut to[from * pitch..][..num * pitch];
        assert!(m <= pitch);
        // SAFETY: `to` has a row of `pitch` positions for each of the columns, and nothing else accesses it.
        unsafe { product([m, num, k], to.as_mut_ptr(), pitch, adds, lhs, rhs) };
    }
}

/// How rows of the input are copied into zero padding, so that no tile checks the border.
struct Rows {
    /// Tiles per row.
    across: usize,
    /// Elements of a row.
    pitch: usize,
    input: [usize; 2],
    before: [usize; 2],
}

impl Rows {
    fn new(geometry: &Geometry, across: usize) -> Self {
        Self {
            across,
            // The last tile sees two more columns, and lanes beyond it read further.
            pitch: 2 * across + 2 + 2 * LANES,
            input: geometry.input,
            before: geometry.padding.map(|(before, _)| before),
        }
    }

    /// The rows that some tiles see.
    fn of(&self, tiles: &Range<usize>) -> Range<usize> {
        2 * (tiles.start / self.across)..2 * ((tiles.end - 1) / self.across) + 4
    }

    fn len(&self, tiles: &Range<usize>) -> usize {
        self.of(tiles).len() * self.pitch
    }
}

vectorized! {
    /// Copies the rows that some tiles see.
    fn fill = fill_now(
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
    fn sum_inputs = sum_inputs_now(
        layout: &Rows,
        rows: &[f32],
        tiles: &Range<usize>,
        to: &mut [f32],
        distance: usize,
    );
}

#[inline(always)]
fn part<const N: usize>(from: &[f32], at: usize) -> &[f32; N] {
    from[at..at + N].try_into().expect("equal lengths")
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
