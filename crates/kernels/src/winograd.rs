//! Convolutions of 3x3 kernels by Winograd's minimal filtering.
//!
//! Four outputs of a 2x2 window see 4x4 input positions. Both, like the kernel, are transformed by small sums (F(2x2,
//! 3x3) of Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015), after which 16 products of
//! matrices \[outputs, inputs\] and \[inputs, tiles\] replace 36 multiplications per tile: 2.25 times fewer. The sums
//! only add and halve, so that rounding stays close to that of plain sums; those for larger tiles do not, and are not
//! used.
//!
//! Differences of neighbors may turn an infinity into NaN. Values are non-finite where plain sums are, with two
//! exceptions that `special.rs` tests: gradients of a kernel's other weights, and of inputs next to the border if a
//! weight is not finite.
//!
//! Some tiles of an item are computed at a time, so that all 16 matrices stay in the second-level cache.

mod gradient;
mod input;
mod output;

use rayon::prelude::*;

use super::dense::NARROW;
use super::geometry::Geometry;
use super::product::{Matrix, product};
use super::scratch::{self, Shared, written};
pub use gradient::backward_weight;
use input::{Rows, fill, sum_inputs};
use output::{Plane, sum_outputs};

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

/// The output for items, weights \[outputs, group inputs, 3, 3\] and a bias for each output.
pub fn forward(geometry: &Geometry, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let inputs = geometry.group_inputs();
    let kernels = transformed(geometry, |output, input| {
        let kernel = &weight[(output * inputs + input) * 9..][..9];
        std::array::from_fn(|tap| kernel[tap])
    });
    convolve(geometry, x, &kernels, bias)
}

/// The gradient of the input: a convolution of the output gradient with each kernel rotated by 180 degrees.
pub fn backward_input(geometry: &Geometry, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
    let back = Geometry {
        inputs: geometry.outputs,
        outputs: geometry.inputs,
        input: geometry.output(),
        padding: geometry
            .padding
            .map(|(before, after)| (2 - before, 2 - after)),
        ..*geometry
    };
    let (inputs, outputs) = (geometry.group_inputs(), geometry.group_outputs());
    let kernels = transformed(&back, |output, input| {
        let (group, at) = (output / inputs, output % inputs);
        let kernel = &weight[((group * outputs + input) * inputs + at) * 9..][..9];
        std::array::from_fn(|tap| kernel[8 - tap])
    });
    convolve(&back, gradient, &kernels, None)
}

/// The transformed kernels: \[position, output, group input\].
fn transformed(geometry: &Geometry, kernel: impl Fn(usize, usize) -> [f32; 9]) -> Vec<f32> {
    let (outputs, inputs) = (geometry.outputs, geometry.group_inputs());
    let mut all = vec![0.0; PLACES * outputs * inputs];
    let sums = |[a, b, c]: [f32; 3]| [a, (a + b + c) / 2.0, (a - b + c) / 2.0, c];
    for output in 0..outputs {
        for input in 0..inputs {
            let kernel = kernel(output, input);
            let columns: [[f32; 4]; 3] =
                std::array::from_fn(|x| sums(std::array::from_fn(|y| kernel[y * 3 + x])));
            for y in 0..4 {
                for (x, value) in sums(std::array::from_fn(|x| columns[x][y]))
                    .into_iter()
                    .enumerate()
                {
                    all[((y * 4 + x) * outputs + output) * inputs + input] = value;
                }
            }
        }
    }
    all
}

fn convolve(geometry: &Geometry, x: &[f32], kernels: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let (inputs, outputs) = (geometry.group_inputs(), geometry.group_outputs());
    let (area_in, area) = (geometry.area_in(), geometry.area_out());
    let tiling = Tiling::new(geometry, inputs + outputs);
    let (num_tiles, panel, pitch) = (tiling.num, tiling.panel, tiling.pitch);
    let num_panels = num_tiles.div_ceil(panel);
    let layout = Rows::new(geometry, tiling.across);
    let write = |to: Shared| {
        let task = |task: usize| {
            let (item, group) = (
                task / num_panels / geometry.groups,
                task / num_panels % geometry.groups,
            );
            let first = task % num_panels * panel;
            let tiles = first..(first + panel).min(num_tiles);
            let x = &x[(item * geometry.groups + group) * inputs * area_in..][..inputs * area_in];
            let place = (item * geometry.groups + group) * outputs * area;
            let (num_in, num_out) = (PLACES * inputs * pitch, PLACES * outputs * pitch);
            scratch::with(num_in + num_out + layout.len(&tiles), |scratch| {
                let (windows, scratch) = scratch.split_at_mut(num_in);
                let (products, rows) = scratch.split_at_mut(num_out);
                for (input, plane) in x.chunks_exact(area_in).enumerate() {
                    fill(&layout, plane, &tiles, rows);
                    sum_inputs(
                        &layout,
                        rows,
                        &tiles,
                        &mut windows[input * pitch..],
                        inputs * pitch,
                    );
                }
                for at in 0..PLACES {
                    let lhs = Matrix {
                        values: &windows[at * inputs * pitch..],
                        row: 1,
                        column: pitch,
                    };
                    let kernels = &kernels[(at * geometry.outputs + group * outputs) * inputs..];
                    let rhs = Matrix {
                        values: kernels,
                        row: 1,
                        column: inputs,
                    };
                    let to = &mut products[at * outputs * pitch..][..outputs * pitch];
                    // Whole lanes: results beyond the last tile are computed and ignored.
                    let size = [tiles.len().next_multiple_of(LANES), outputs, inputs];
                    multiply(size, to, pitch, false, lhs, rhs);
                }
                for output in 0..outputs {
                    let bias = bias.map_or(0.0, |bias| bias[group * outputs + output]);
                    let products = &products[output * pitch..];
                    let to = Plane {
                        to,
                        first: place + output * area,
                    };
                    sum_outputs(geometry, products, outputs * pitch, &tiles, bias, to);
                }
            });
        };
        let num_tasks = geometry.items * geometry.groups * num_panels;
        (0..num_tasks).into_par_iter().for_each(task);
    };
    // SAFETY: the tasks are all tiles of all channels of all items.
    unsafe { written(geometry.items * geometry.outputs * area, write) }
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

#[inline(always)]
fn part<const N: usize>(from: &[f32], at: usize) -> &[f32; N] {
    from[at..at + N].try_into().expect("equal lengths")
}
