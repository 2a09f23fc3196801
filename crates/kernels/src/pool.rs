//! Max pooling, and its backward pass.

use std::mem::MaybeUninit;
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
    let windows = Windows::new(geometry);
    let mut chosen = vec![0u8; geometry.items * geometry.outputs * area];
    let write = |to: Shared| {
        let planes = chosen
            .par_chunks_mut(area.max(1))
            .zip(x.par_chunks(area_in.max(1)))
            .enumerate();
        let task = |at: usize, chosen: &mut [u8], x: &[f32]| {
            // SAFETY: only this task writes this channel.
            let largest = unsafe { to.part(at * area, area) };
            choose(&windows, x, largest, chosen);
        };
        planes.for_each(|(at, (chosen, x))| task(at, chosen, x));
    };
    // SAFETY: the tasks cover all channels of all items.
    let largest = unsafe { written(geometry.items * geometry.outputs * area, write) };
    (largest, chosen)
}

/// The taps of a window along an axis that are inside the input, and the input position of the first one.
type Taps = (Range<usize>, usize);

/// The windows of a channel.
struct Windows {
    /// Of each output row and column.
    rows: Vec<Taps>,
    columns: Vec<Taps>,
    /// The columns of which all taps are inside.
    inside: Range<usize>,
    kernel: usize,
    stride: usize,
    /// The width of the input.
    width: usize,
}

impl Windows {
    fn new(geometry: &Geometry) -> Self {
        let [rows, columns] = [0, 1].map(|axis| {
            let (before, kernel) = (geometry.padding[axis].0, geometry.kernel[axis]);
            let taps = |window: usize| {
                let start = window * geometry.stride[axis];
                let first = before.saturating_sub(start);
                let past = kernel.min(geometry.input[axis] + before - start);
                (first..past, start + first - before)
            };
            (0..geometry.output()[axis])
                .map(taps)
                .collect::<Vec<Taps>>()
        });
        let kernel = geometry.kernel[1];
        let is_inside = |(taps, _): &Taps| taps.len() == kernel;
        let first = columns.iter().position(is_inside).unwrap_or(columns.len());
        let num = columns[first..].iter().take_while(|of| is_inside(of));
        let inside = first..first + num.count();
        Self {
            rows,
            columns,
            inside,
            kernel,
            stride: geometry.stride[1],
            width: geometry.input[1],
        }
    }

    /// The largest number of a window and its tap; `x` begins in the row of the first tap.
    #[inline(always)]
    fn largest(&self, x: &[f32], rows: &Range<usize>, column: usize) -> (f32, u8) {
        let (columns, first) = &self.columns[column];
        let mut largest = (f32::NEG_INFINITY, rows.start * self.kernel + columns.start);
        for (line, row) in rows.clone().enumerate() {
            let line = &x[line * self.width + first..][..columns.len()];
            for (value, column) in line.iter().zip(columns.clone()) {
                if (*value > largest.0) | value.is_nan() {
                    largest = (*value, row * self.kernel + column);
                }
            }
        }
        (largest.0, largest.1 as u8)
    }

    /// The same for adjacent windows from `column` on, of which all columns of taps are inside. `None` if `x` ends
    /// before the last of the numbers that are read at a time.
    #[inline(always)]
    fn largest_of<const STRIDE: usize, const LANES: usize>(
        &self,
        x: &[f32],
        rows: &Range<usize>,
        column: usize,
    ) -> Option<([f32; LANES], [u32; LANES])> {
        let x = x.get(self.columns[column].1..)?;
        let mut largest = [f32::NEG_INFINITY; LANES];
        let mut taps = [(rows.start * self.kernel) as u32; LANES];
        for (line, row) in rows.clone().enumerate() {
            for first in (0..self.kernel).step_by(STRIDE) {
                let from = x.get(line * self.width + first..)?.get(..LANES * STRIDE)?;
                for beside in 0..STRIDE.min(self.kernel - first) {
                    let tap = (row * self.kernel + first + beside) as u32;
                    for lane in 0..LANES {
                        let value = from[lane * STRIDE + beside];
                        let is_kept = (value > largest[lane]) | value.is_nan();
                        largest[lane] = if is_kept { value } else { largest[lane] };
                        taps[lane] = if is_kept { tap } else { taps[lane] };
                    }
                }
            }
        }
        Some((largest, taps))
    }
}

vectorized! {
    fn choose = choose_now(windows: &Windows, x: &[f32], largest: &mut [MaybeUninit<f32>], chosen: &mut [u8]);
}

#[inline(always)]
fn choose_now(windows: &Windows, x: &[f32], largest: &mut [MaybeUninit<f32>], chosen: &mut [u8]) {
    let width = windows.columns.len();
    let rows = largest
        .chunks_exact_mut(width)
        .zip(chosen.chunks_exact_mut(width));
    for ((largest, chosen), (taps, first)) in rows.zip(&windows.rows) {
        let x = &x[first * windows.width..];
        // Common strides are separate cases so that each loop is vectorized.
        match (windows.stride, windows.inside.len()) {
            (1, 16..) => choose_lanes::<1, 16>(windows, x, taps, largest, chosen),
            (1, 8..) => choose_lanes::<1, 8>(windows, x, taps, largest, chosen),
            (1, 4..) => choose_lanes::<1, 4>(windows, x, taps, largest, chosen),
            (2, 16..) => choose_lanes::<2, 16>(windows, x, taps, largest, chosen),
            (2, 8..) => choose_lanes::<2, 8>(windows, x, taps, largest, chosen),
            (2, 4..) => choose_lanes::<2, 4>(windows, x, taps, largest, chosen),
            (3, 8..) => choose_lanes::<3, 8>(windows, x, taps, largest, chosen),
            (3, 4..) => choose_lanes::<3, 4>(windows, x, taps, largest, chosen),
            _ => choose_each(windows, x, taps, 0..width, largest, chosen),
        }
    }
}

#[inline(always)]
fn choose_each(
    windows: &Windows,
    x: &[f32],
    rows: &Range<usize>,
    columns: Range<usize>,
    largest: &mut [MaybeUninit<f32>],
    chosen: &mut [u8],
) {
    for column in columns {
        let (value, tap) = windows.largest(x, rows, column);
        largest[column].write(value);
        chosen[column] = tap;
    }
}

/// A row of windows, of which at least `LANES` have all columns of taps inside.
#[inline(always)]
fn choose_lanes<const STRIDE: usize, const LANES: usize>(
    windows: &Windows,
    x: &[f32],
    rows: &Range<usize>,
    largest: &mut [MaybeUninit<f32>],
    chosen: &mut [u8],
) {
    let inside = windows.inside.clone();
    choose_each(windows, x, rows, 0..inside.start, largest, chosen);
    for start in inside.clone().step_by(LANES) {
        // The last ones overlap those before.
        let at = start.min(inside.end - LANES);
        let Some((values, taps)) = windows.largest_of::<STRIDE, LANES>(x, rows, at) else {
            choose_each(windows, x, rows, at..at + LANES, largest, chosen);
            continue;
        };
        for (largest, value) in largest[at..at + LANES].iter_mut().zip(values) {
            largest.write(value);
        }
        let chosen = &mut chosen[at..at + LANES];
        for (chosen, tap) in chosen.iter_mut().zip(taps) {
            *chosen = tap as u8;
        }
    }
    choose_each(
        windows,
        x,
        rows,
        inside.end..windows.columns.len(),
        largest,
        chosen,
    );
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
