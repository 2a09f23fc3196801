//! Max pooling, and its backward pass.

use std::ops::Range;

use rayon::prelude::*;

use super::geometry::Geometry;
use super::scratch::{Shared, written};
use super::vectors::vectorized;

/// Whether every window covers an input, and a byte can identify its taps.
pub fn suits(geometry: &Geometry) -> bool {
    let holds = |axis: usize| {
        let (before, after) = geometry.padding[axis];
        let extent = geometry.dilation[axis] * (geometry.kernel[axis] - 1) + 1;
        before < extent && after < extent && geometry.dilation[axis] == 1
    };
    geometry.is_sound() && geometry.taps() <= 256 && holds(0) && holds(1)
}

/// The maximum of each window of each channel, and its tap: the first of equal ones, or the last NaN, as in PyTorch.
/// The chosen tap is always inside the input, even if a whole window is negative infinity, which nothing exceeds.
pub fn max_pool(geometry: &Geometry, x: &[f32]) -> (Vec<f32>, Vec<u8>) {
    assert!(suits(geometry) && x.len() == geometry.num_inputs());
    let (area, area_in) = (geometry.area_out(), geometry.area_in());
    let reach = Reach::new(geometry);
    let mut chosen = vec![0u8; geometry.items * geometry.outputs * area];
    let write = |to: Shared| {
        let planes = chosen
            .par_chunks_mut(area.max(1))
            .zip(x.par_chunks(area_in.max(1)))
            .enumerate();
        let task = |at: usize, chosen: &mut [u8], x: &[f32]| {
            // SAFETY: only this task writes this channel.
            let largest = unsafe { to.filled(at * area, area, f32::NEG_INFINITY) };
            reach.choose_first(geometry, chosen);
            compare_taps(geometry, &reach, x, largest, chosen);
        };
        planes.for_each(|(at, (chosen, x))| task(at, chosen, x));
    };
    // SAFETY: the tasks cover all channels of all items.
    let largest = unsafe { written(geometry.items * geometry.outputs * area, write) };
    (largest, chosen)
}

/// The output rows or columns for which a row or column of taps is inside the input, and its position for the first
/// one.
type Reached = (Range<usize>, usize);

/// The range of each row and column of taps.
struct Reach {
    rows: Vec<Reached>,
    columns: Vec<Reached>,
    /// The first tap inside the input for each output row and column.
    first_taps: [Vec<usize>; 2],
}

impl Reach {
    fn new(geometry: &Geometry) -> Self {
        let [rows, columns]: [Vec<Reached>; 2] = [0, 1].map(|axis| {
            (0..geometry.kernel[axis])
                .map(|tap| geometry.reach(axis, tap))
                .collect()
        });
        let first_taps = [(0, &rows), (1, &columns)].map(|(axis, taps)| {
            let first = |window: usize| {
                let sees = |(reached, _): &Reached| reached.contains(&window);
                taps.iter()
                    .position(sees)
                    .expect("every window overlaps the input")
            };
            (0..geometry.output()[axis]).map(first).collect()
        });
        Self {
            rows,
            columns,
            first_taps,
        }
    }

    /// Initially selects the first tap of each window that is inside the input.
    fn choose_first(&self, geometry: &Geometry, chosen: &mut [u8]) {
        let [rows, columns] = &self.first_taps;
        for (chosen, y) in chosen.chunks_exact_mut(columns.len()).zip(rows) {
            for (chosen, x) in chosen.iter_mut().zip(columns) {
                *chosen = (y * geometry.kernel[1] + x) as u8;
            }
        }
    }
}

vectorized! {
    #[allow(clippy::too_many_arguments)]
    fn compare_taps = compare_taps_now(
        geometry: &Geometry,
        reach: &Reach,
        x: &[f32],
        largest: &mut [f32],
        chosen: &mut [u8],
    );
}

#[inline(always)]
fn compare_taps_now(
    geometry: &Geometry,
    reach: &Reach,
    x: &[f32],
    largest: &mut [f32],
    chosen: &mut [u8],
) {
    let width = geometry.output()[1];
    let rows = largest
        .chunks_exact_mut(width)
        .zip(chosen.chunks_exact_mut(width));
    for (row, (largest, chosen)) in rows.enumerate() {
        for (y, (rows, first_row)) in reach.rows.iter().enumerate() {
            if row < rows.start || rows.end <= row {
                continue;
            }
            let base = (first_row + (row - rows.start) * geometry.stride[0]) * geometry.input[1];
            for (tap, (columns, first_column)) in reach.columns.iter().enumerate() {
                if columns.is_empty() {
                    continue;
                }
                let tap = (y * geometry.kernel[1] + tap) as u8;
                let (largest, chosen) =
                    (&mut largest[columns.clone()], &mut chosen[columns.clone()]);
                compare(
                    &x[base + first_column..],
                    geometry.stride[1],
                    tap,
                    largest,
                    chosen,
                );
            }
        }
    }
}

#[inline(always)]
fn compare(x: &[f32], stride: usize, tap: u8, largest: &mut [f32], chosen: &mut [u8]) {
    // Common strides are separate cases so that each loop is vectorized.
    match stride {
        1 => compare_by::<1>(x, tap, largest, chosen),
        2 => compare_by::<2>(x, tap, largest, chosen),
        _ => {
            let values = x.iter().step_by(stride).zip(largest).zip(chosen);
            values.for_each(|((value, largest), chosen)| keep(*value, tap, largest, chosen));
        }
    }
}

#[inline(always)]
fn compare_by<const STRIDE: usize>(x: &[f32], tap: u8, largest: &mut [f32], chosen: &mut [u8]) {
    const LANES: usize = 8;
    let mut at = 0;
    while at + LANES <= largest.len() && (at + LANES) * STRIDE <= x.len() {
        let from = &x[at * STRIDE..][..LANES * STRIDE];
        let largest: &mut [f32; LANES] = (&mut largest[at..at + LANES])
            .try_into()
            .expect("equal lengths");
        let chosen: &mut [u8; LANES] = (&mut chosen[at..at + LANES])
            .try_into()
            .expect("equal lengths");
        let values: [f32; LANES] = std::array::from_fn(|lane| from[lane * STRIDE]);
        let is_kept: [bool; LANES] =
            std::array::from_fn(|lane| (values[lane] > largest[lane]) | values[lane].is_nan());
        for lane in 0..LANES {
            largest[lane] = if is_kept[lane] {
                values[lane]
            } else {
                largest[lane]
            };
        }
        for lane in 0..LANES {
            let mask = (is_kept[lane] as u8).wrapping_neg();
            chosen[lane] = (tap & mask) | (chosen[lane] & !mask);
        }
        at += LANES;
    }
    for at in at..largest.len() {
        keep(x[at * STRIDE], tap, &mut largest[at], &mut chosen[at]);
    }
}

#[inline(always)]
fn keep(value: f32, tap: u8, largest: &mut f32, chosen: &mut u8) {
    let is_kept = (value > *largest) | value.is_nan();
    *largest = if is_kept { value } else { *largest };
    let mask = (is_kept as u8).wrapping_neg();
    *chosen = (tap & mask) | (*chosen & !mask);
}

/// The gradient of the input.
pub fn max_pool_backward(geometry: &Geometry, gradient: &[f32], chosen: &[u8]) -> Vec<f32> {
    assert!(suits(geometry) && gradient.len() == geometry.num_outputs());
    assert_eq!(chosen.len(), gradient.len());
    let (area, area_in) = (geometry.area_out(), geometry.area_in());
    let [_, columns] = geometry.output();
    let [(top, _), (left, _)] = geometry.padding;
    let width = geometry.input[1];
    let offsets: Vec<usize> = (0..geometry.taps())
        .map(|tap| tap / geometry.kernel[1] * width + tap % geometry.kernel[1])
        .collect();
    let write = |to: Shared| {
        let tasks = (0..geometry.items * geometry.outputs).into_par_iter();
        tasks.for_each(|at| {
            // SAFETY: only this task writes this channel.
            let to = unsafe { to.filled(at * area_in, area_in, 0.0) };
            let gradient = gradient[at * area..][..area].chunks_exact(columns);
            let chosen = chosen[at * area..][..area].chunks_exact(columns);
            for (row, (gradient, chosen)) in gradient.zip(chosen).enumerate() {
                let mut place = row * geometry.stride[0] * width;
                for (gradient, chosen) in gradient.iter().zip(chosen) {
                    // Chosen taps are inside, so the padding can be removed last.
                    to[place + offsets[*chosen as usize] - top * width - left] += gradient;
                    place += geometry.stride[1];
                }
            }
        });
    };
    // SAFETY: the tasks cover all channels of all items.
    unsafe { written(geometry.items * geometry.inputs * area_in, write) }
}
