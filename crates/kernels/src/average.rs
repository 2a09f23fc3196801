//! Average pooling over windows, or adaptively into a given number of parts, and the backward pass.

#[cfg(test)]
mod tests;

use std::ops::Range;

use rayon::prelude::*;

use super::geometry::Geometry;
use super::scratch::{Shared, written};
use super::vectors::vectorized;

/// Whether an average pooling is supported here.
pub fn suits(geometry: &Geometry) -> bool {
    geometry.is_sound() && geometry.outputs == geometry.inputs
}

/// The divisors of each row and column of windows: the number of taps inside the input, or of all taps.
fn shares(geometry: &Geometry, counts_padding: bool) -> [Vec<f32>; 2] {
    std::array::from_fn(|axis| {
        let taps = geometry.kernel[axis];
        let mut counts = vec![0usize; geometry.output()[axis]];
        for tap in 0..taps {
            let (windows, _) = geometry.reach(axis, tap);
            counts[windows].iter_mut().for_each(|count| *count += 1);
        }
        // A window that covers only padding has a sum of zero.
        let share = |count: usize| 1.0 / (if counts_padding { taps } else { count.max(1) }) as f32;
        counts.into_iter().map(share).collect()
    })
}

/// The rows or columns of windows that a row or column of taps reaches, and its position for the first of them.
type Reached = (Range<usize>, usize);

struct Taps {
    rows: Vec<Reached>,
    columns: Vec<Reached>,
    shares: [Vec<f32>; 2],
    width: usize,
    width_in: usize,
    stride: [usize; 2],
}

impl Taps {
    fn new(geometry: &Geometry, counts_padding: bool) -> Self {
        let of = |axis: usize| {
            let taps = 0..geometry.kernel[axis];
            taps.map(|tap| geometry.reach(axis, tap)).collect()
        };
        Self {
            rows: of(0),
            columns: of(1),
            shares: shares(geometry, counts_padding),
            width: geometry.output()[1],
            width_in: geometry.input[1],
            stride: geometry.stride,
        }
    }
}

/// The mean of each window of each channel; padding counts as zeros, or not at all.
///
/// # Panics
/// If lengths do not match the sizes, or sizes are not supported.
pub fn pool(geometry: &Geometry, counts_padding: bool, x: &[f32]) -> Vec<f32> {
    assert!(suits(geometry) && x.len() == geometry.num_inputs());
    let (area, area_in) = (geometry.area_out(), geometry.area_in());
    let taps = Taps::new(geometry, counts_padding);
    let write = |to: Shared| {
        let planes = x.par_chunks_exact(area_in).enumerate();
        planes.with_min_len(8).for_each(|(at, x)| {
            // SAFETY: only this task writes this channel.
            let to = unsafe { to.filled(at * area, area, 0.0) };
            means(&taps, x, to);
        });
    };
    // SAFETY: the tasks cover all channels of all items.
    unsafe { written(geometry.items * geometry.inputs * area, write) }
}

/// The gradient of the input.
///
/// # Panics
/// If lengths do not match the sizes, or sizes are not supported.
pub fn pool_backward(geometry: &Geometry, counts_padding: bool, gradient: &[f32]) -> Vec<f32> {
    assert!(suits(geometry));
    let (area, area_in) = (geometry.area_out(), geometry.area_in());
    assert_eq!(gradient.len(), geometry.items * geometry.inputs * area);
    let taps = Taps::new(geometry, counts_padding);
    let write = |to: Shared| {
        let planes = gradient.par_chunks_exact(area).enumerate();
        planes.with_min_len(8).for_each(|(at, gradient)| {
            // SAFETY: only this task writes this channel.
            let to = unsafe { to.filled(at * area_in, area_in, 0.0) };
            spread(&taps, gradient, to);
        });
    };
    // SAFETY: the tasks cover all channels of all items.
    unsafe { written(geometry.num_inputs(), write) }
}

vectorized! {
    fn means = means_now(taps: &Taps, x: &[f32], to: &mut [f32]);
}

#[inline(always)]
fn means_now(taps: &Taps, x: &[f32], to: &mut [f32]) {
    for (row, to) in to.chunks_exact_mut(taps.width).enumerate() {
        for (rows, first_row) in &taps.rows {
            if !rows.contains(&row) {
                continue;
            }
            let x = &x[(first_row + (row - rows.start) * taps.stride[0]) * taps.width_in..]
                [..taps.width_in];
            for (columns, first) in &taps.columns {
                if columns.is_empty() {
                    continue;
                }
                let (to, x) = (&mut to[columns.clone()], &x[*first..]);
                // Common strides separately, so that each loop is vectorized.
                match taps.stride[1] {
                    1 => add_by::<1>(x, to),
                    2 => add_by::<2>(x, to),
                    stride => {
                        let x = x.iter().step_by(stride);
                        to.iter_mut().zip(x).for_each(|(to, x)| *to += *x);
                    }
                }
            }
        }
        let share = taps.shares[0][row];
        for (to, of_column) in to.iter_mut().zip(&taps.shares[1]) {
            *to *= share * of_column;
        }
    }
}

#[inline(always)]
fn add_by<const STRIDE: usize>(x: &[f32], to: &mut [f32]) {
    const LANES: usize = 8;
    let mut at = 0;
    while at + LANES <= to.len() && (at + LANES) * STRIDE <= x.len() {
        let from = &x[at * STRIDE..][..LANES * STRIDE];
        for lane in 0..LANES {
            to[at + lane] += from[lane * STRIDE];
        }
        at += LANES;
    }
    for at in at..to.len() {
        to[at] += x[at * STRIDE];
    }
}

vectorized! {
    fn spread = spread_now(taps: &Taps, gradient: &[f32], to: &mut [f32]);
}

#[inline(always)]
fn spread_now(taps: &Taps, gradient: &[f32], to: &mut [f32]) {
    for (row, gradient) in gradient.chunks_exact(taps.width).enumerate() {
        let share = taps.shares[0][row];
        for (rows, first_row) in &taps.rows {
            if !rows.contains(&row) {
                continue;
            }
            let place = (first_row + (row - rows.start) * taps.stride[0]) * taps.width_in;
            let to = &mut to[place..][..taps.width_in];
            for (columns, first) in &taps.columns {
                if columns.is_empty() {
                    continue;
                }
                let gradient = gradient[columns.clone()].iter();
                let shares = taps.shares[1][columns.clone()].iter();
                let to = to[*first..].iter_mut().step_by(taps.stride[1]);
                for ((to, gradient), of_column) in to.zip(gradient).zip(shares) {
                    *to += *gradient * (share * of_column);
                }
            }
        }
    }
}

/// Channels divided into a given number of parts along both axes, which may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Channels of all items.
    pub planes: usize,
    /// Height and width of the input.
    pub input: [usize; 2],
    /// Height and width of the output.
    pub output: [usize; 2],
}

impl Parts {
    /// The positions of a part along an axis.
    fn of(&self, axis: usize, part: usize) -> Range<usize> {
        let (input, output) = (self.input[axis], self.output[axis]);
        part * input / output..((part + 1) * input).div_ceil(output)
    }

    fn areas(&self) -> [usize; 2] {
        [self.input, self.output].map(|[height, width]| height * width)
    }

    /// The positions of all parts along an axis.
    fn all(&self, axis: usize) -> Vec<Range<usize>> {
        let parts = 0..self.output[axis];
        parts.map(|part| self.of(axis, part)).collect()
    }

    /// The mean of each part.
    ///
    /// # Panics
    /// If lengths do not match the sizes, or no parts.
    pub fn means(&self, x: &[f32]) -> Vec<f32> {
        let [area_in, area] = self.areas();
        assert!(area_in > 0 && area > 0 && x.len() == self.planes * area_in);
        let parts = [self.all(0), self.all(1)];
        let mut output = vec![0.0; self.planes * area];
        let planes = output
            .par_chunks_exact_mut(area)
            .zip(x.par_chunks_exact(area_in));
        let line = || vec![0.0; self.input[1]];
        planes
            .with_min_len(8)
            .for_each_init(line, |line, (to, x)| means_of_parts(&parts, x, line, to));
        output
    }

    /// The gradient of the input.
    ///
    /// # Panics
    /// If lengths do not match the sizes, or no parts.
    pub fn backward(&self, gradient: &[f32]) -> Vec<f32> {
        let [area_in, area] = self.areas();
        assert!(area_in > 0 && area > 0 && gradient.len() == self.planes * area);
        let parts = [self.all(0), self.all(1)];
        let mut input = vec![0.0; self.planes * area_in];
        let planes = input
            .par_chunks_exact_mut(area_in)
            .zip(gradient.par_chunks_exact(area));
        let line = || vec![0.0; self.input[1]];
        planes
            .with_min_len(8)
            .for_each_init(line, |line, (to, gradient)| {
                spread_parts(&parts, gradient, line, to);
            });
        input
    }
}

vectorized! {
    /// The means of the parts of a plane. `line` has room for a row of it.
    fn means_of_parts = means_of_parts_now(parts: &[Vec<Range<usize>>; 2], x: &[f32], line: &mut [f32], to: &mut [f32]);
}

#[inline(always)]
fn means_of_parts_now(parts: &[Vec<Range<usize>>; 2], x: &[f32], line: &mut [f32], to: &mut [f32]) {
    let (width, [of_rows, of_columns]) = (line.len(), parts);
    let are_narrow = of_columns.iter().all(|columns| columns.len() <= LANES);
    for (rows, to) in of_rows.iter().zip(to.chunks_exact_mut(of_columns.len())) {
        if are_narrow {
            line.fill(0.0);
            for x in x[rows.start * width..rows.end * width].chunks_exact(width) {
                line.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
            }
        }
        for (to, columns) in to.iter_mut().zip(of_columns) {
            let sum = if are_narrow {
                line[columns.clone()].iter().fold(0.0, |sum, x| sum + x)
            } else {
                sum_of(x, width, rows, columns)
            };
            *to = sum / (rows.len() * columns.len()) as f32;
        }
    }
}

vectorized! {
    /// Adds the gradients of the parts of a plane to their positions. `line` has room for a row of it.
    fn spread_parts = spread_parts_now(parts: &[Vec<Range<usize>>; 2], gradient: &[f32], line: &mut [f32], to: &mut [f32]);
}

#[inline(always)]
fn spread_parts_now(
    parts: &[Vec<Range<usize>>; 2],
    gradient: &[f32],
    line: &mut [f32],
    to: &mut [f32],
) {
    let (width, [of_rows, of_columns]) = (line.len(), parts);
    for (rows, gradient) in of_rows.iter().zip(gradient.chunks_exact(of_columns.len())) {
        line.fill(0.0);
        for (gradient, columns) in gradient.iter().zip(of_columns) {
            let share = gradient / (rows.len() * columns.len()) as f32;
            line[columns.clone()].iter_mut().for_each(|to| *to += share);
        }
        for to in to[rows.start * width..rows.end * width].chunks_exact_mut(width) {
            to.iter_mut()
                .zip(&*line)
                .for_each(|(to, share)| *to += share);
        }
    }
}

/// The number of sums that the positions of a row are added to in turn.
const LANES: usize = 16;

/// The sum of a part of a plane, accumulated in lanes.
fn sum_of(x: &[f32], width: usize, rows: &Range<usize>, columns: &Range<usize>) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let mut add = |values: &[f32]| {
        let (chunks, rest) = values.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, value) in lanes.iter_mut().zip(chunk) {
                *lane += value;
            }
        }
        for (lane, value) in lanes.iter_mut().zip(rest) {
            *lane += value;
        }
    };
    if columns.len() == width {
        add(&x[rows.start * width..rows.end * width]);
    } else {
        rows.clone()
            .for_each(|row| add(&x[row * width..][columns.clone()]));
    }
    lanes.iter().sum()
}
