//! Convolutions whose outputs see one channel each, as sums over the taps.
//!
//! A matrix product would have a single term per tap. Instead a channel is copied into its zero padding once, so that
//! no tap needs to check the border, and 16 neighbors are summed at a time in registers.

use std::ops::Range;

use rayon::prelude::*;

use super::geometry::{Volume, places};
use super::scratch::{self, Shared, written};
use super::vectors::vectorized;

/// Neighbors that are summed at a time.
const LANES: usize = 16;

/// Whether these loops support a convolution.
pub fn suits(geometry: &Volume) -> bool {
    geometry.group_inputs() == 1 && geometry.groups > 1 && geometry.group_outputs() <= 8
}

/// A zero-padded channel that contains each tap of each window.
struct Padded {
    size: [usize; 3],
    before: [usize; 3],
    inner: [usize; 3],
    /// The first position that each row of windows sees.
    starts: Vec<usize>,
    /// The offset of each tap of a window from its first position.
    offsets: Vec<usize>,
}

impl Padded {
    /// The channels of a geometry's input.
    fn of(geometry: &Volume) -> Self {
        let size = std::array::from_fn(|axis| {
            let (before, after) = geometry.padding[axis];
            geometry.input[axis] + before + after
        });
        let place = |[z, y, x]: [usize; 3]| (z * size[1] + y) * size[2] + x;
        let [slabs, rows, _] = geometry.output();
        let step =
            |at: [usize; 3], by: [usize; 3]| place([0, 1, 2].map(|axis| at[axis] * by[axis]));
        let starts = places([slabs, rows, 1]).map(|window| step(window, geometry.stride));
        let offsets = places(geometry.kernel).map(|tap| step(tap, geometry.dilation));
        let (starts, offsets) = (starts.collect(), offsets.collect());
        Self {
            size,
            before: geometry.padding.map(|(before, _)| before),
            inner: geometry.input,
            starts,
            offsets,
        }
    }

    /// Its number of elements.
    fn len(&self) -> usize {
        self.size.iter().product()
    }

    /// The places of the inner part's rows, in their order.
    #[inline(always)]
    fn inner_rows(&self) -> impl Iterator<Item = Range<usize>> {
        let ([_, height, width], [front, top, left]) = (self.size, self.before);
        let [slabs, rows, columns] = self.inner;
        (0..slabs).flat_map(move |slab| {
            (0..rows).map(move |row| {
                let first = ((front + slab) * height + top + row) * width + left;
                first..first + columns
            })
        })
    }

    /// Fills the inner part; the rest is already zero.
    #[inline(always)]
    fn fill(&self, padded: &mut [f32], plane: &[f32]) {
        for (row, from) in self.inner_rows().zip(plane.chunks_exact(self.inner[2])) {
            padded[row].copy_from_slice(from);
        }
    }

    #[inline(always)]
    fn take(&self, padded: &[f32], plane: &mut [f32]) {
        for (row, to) in self.inner_rows().zip(plane.chunks_exact_mut(self.inner[2])) {
            to.copy_from_slice(&padded[row]);
        }
    }
}

vectorized! {
    /// Computes one channel of the output.
    fn sum_windows = sum_windows_now(
        geometry: &Volume,
        padded: &Padded,
        values: &[f32],
        weight: &[f32],
        bias: f32,
        to: &mut [f32],
    );
}

#[inline(always)]
fn sum_windows_now(
    geometry: &Volume,
    padded: &Padded,
    values: &[f32],
    weight: &[f32],
    bias: f32,
    to: &mut [f32],
) {
    let ([.., columns], [.., right]) = (geometry.output(), geometry.stride);
    for (base, to) in padded.starts.iter().zip(to.chunks_exact_mut(columns)) {
        let mut first = 0;
        if right == 1 && columns >= LANES {
            while first < columns {
                // The last step overlaps the one before.
                let at = first.min(columns - LANES);
                let mut sums = [bias; LANES];
                for (offset, weight) in padded.offsets.iter().zip(weight) {
                    let from: &[f32; LANES] = values[base + at + offset..][..LANES]
                        .try_into()
                        .expect("equal lengths");
                    for (sum, value) in sums.iter_mut().zip(from) {
                        *sum += weight * value;
                    }
                }
                to[at..at + LANES].copy_from_slice(&sums);
                first = at + LANES;
            }
            continue;
        }
        for (at, to) in to.iter_mut().enumerate() {
            let from = &values[base + at * right..];
            let terms = padded.offsets.iter().zip(weight);
            *to = terms.fold(bias, |sum, (offset, weight)| sum + weight * from[*offset]);
        }
    }
}

/// The output for items, weights \[outputs, taps\] and a bias for each output.
pub fn forward(geometry: &Volume, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let (area, taps, outputs) = (
        geometry.area_out(),
        geometry.taps(),
        geometry.group_outputs(),
    );
    let padded = Padded::of(geometry);
    let write = |to: Shared| {
        let task = |task: usize| {
            let group = task % geometry.groups;
            let plane = &x[task * geometry.area_in()..][..geometry.area_in()];
            scratch::with(padded.len(), |values| {
                values.fill(0.0);
                padded.fill(values, plane);
                for at in 0..outputs {
                    let output = group * outputs + at;
                    // SAFETY: only this task writes this channel.
                    let to = unsafe { to.filled((task * outputs + at) * area, area, 0.0) };
                    let weight = &weight[output * taps..][..taps];
                    let bias = bias.map_or(0.0, |bias| bias[output]);
                    sum_windows(geometry, &padded, values, weight, bias, to);
                }
            });
        };
        let tasks = (0..geometry.items * geometry.groups).into_par_iter();
        tasks.for_each(task);
    };
    // SAFETY: the tasks cover all channels of all items.
    unsafe { written(geometry.items * geometry.outputs * area, write) }
}

/// The gradient of the input.
pub fn backward_input(geometry: &Volume, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
    let (area, taps, outputs) = (
        geometry.area_out(),
        geometry.taps(),
        geometry.group_outputs(),
    );
    let padded = Padded::of(geometry);
    let write = |to: Shared| {
        let task = |task: usize| {
            let group = task % geometry.groups;
            // SAFETY: only this task writes this channel.
            let to = unsafe { to.filled(task * geometry.area_in(), geometry.area_in(), 0.0) };
            scratch::with(padded.len(), |values| {
                values.fill(0.0);
                for at in 0..outputs {
                    let gradient = &gradient[(task * outputs + at) * area..][..area];
                    let weight = &weight[(group * outputs + at) * taps..][..taps];
                    spread_windows(geometry, &padded, gradient, weight, values);
                }
                padded.take(values, to);
            });
        };
        let tasks = (0..geometry.items * geometry.groups).into_par_iter();
        tasks.for_each(task);
    };
    // SAFETY: the tasks cover all channels of all items.
    unsafe { written(geometry.items * geometry.inputs * geometry.area_in(), write) }
}

vectorized! {
    /// Adds the contribution of one output channel to each position of its windows.
    fn spread_windows = spread_windows_now(
        geometry: &Volume,
        padded: &Padded,
        gradient: &[f32],
        weight: &[f32],
        values: &mut [f32],
    );
}

#[inline(always)]
fn spread_windows_now(
    geometry: &Volume,
    padded: &Padded,
    gradient: &[f32],
    weight: &[f32],
    values: &mut [f32],
) {
    let ([.., columns], [.., right]) = (geometry.output(), geometry.stride);
    for (base, from) in padded.starts.iter().zip(gradient.chunks_exact(columns)) {
        for (offset, weight) in padded.offsets.iter().zip(weight) {
            spread(&mut values[base + offset..], right, from, *weight);
        }
    }
}

/// Adds multiples of a row to every `stride`th position.
#[inline(always)]
fn spread(to: &mut [f32], stride: usize, from: &[f32], weight: f32) {
    if stride == 1 {
        for (to, value) in to.iter_mut().zip(from) {
            *to += weight * value;
        }
    } else {
        for (to, value) in to.iter_mut().step_by(stride).zip(from) {
            *to += weight * value;
        }
    }
}

/// The gradient of the weights.
pub fn backward_weight(geometry: &Volume, x: &[f32], gradient: &[f32]) -> Vec<f32> {
    let (area, taps, outputs) = (
        geometry.area_out(),
        geometry.taps(),
        geometry.group_outputs(),
    );
    let padded = Padded::of(geometry);
    let task = |group: usize| {
        let mut sums = vec![0.0f64; outputs * taps];
        let mut lanes = vec![[0.0f32; LANES]; taps];
        scratch::with(padded.len(), |values| {
            values.fill(0.0);
            for item in 0..geometry.items {
                let task = item * geometry.groups + group;
                padded.fill(
                    values,
                    &x[task * geometry.area_in()..][..geometry.area_in()],
                );
                for at in 0..outputs {
                    let gradient = &gradient[(task * outputs + at) * area..][..area];
                    lanes.fill([0.0; LANES]);
                    multiply_windows(geometry, &padded, values, gradient, &mut lanes);
                    for (sum, lanes) in sums[at * taps..].iter_mut().zip(&lanes) {
                        *sum += f64::from(lanes.iter().sum::<f32>());
                    }
                }
            }
        });
        sums
    };
    let groups = (0..geometry.groups).into_par_iter();
    let sums: Vec<Vec<f64>> = groups.map(task).collect();
    sums.into_iter().flatten().map(|sum| sum as f32).collect()
}

vectorized! {
    /// Sums, for each tap, the products of its positions and one output channel.
    fn multiply_windows = multiply_windows_now(
        geometry: &Volume,
        padded: &Padded,
        values: &[f32],
        gradient: &[f32],
        lanes: &mut [[f32; LANES]],
    );
}

#[inline(always)]
fn multiply_windows_now(
    geometry: &Volume,
    padded: &Padded,
    values: &[f32],
    gradient: &[f32],
    lanes: &mut [[f32; LANES]],
) {
    let ([.., columns], [.., right]) = (geometry.output(), geometry.stride);
    for (offset, lanes) in padded.offsets.iter().zip(lanes) {
        let mut sums = *lanes;
        for (base, gradient) in padded.starts.iter().zip(gradient.chunks_exact(columns)) {
            multiply(&mut sums, &values[base + offset..], right, gradient);
        }
        *lanes = sums;
    }
}

/// Adds the products of two rows to sums, each position to one of them.
#[inline(always)]
fn multiply(lanes: &mut [f32; LANES], x: &[f32], stride: usize, gradient: &[f32]) {
    if stride == 1 {
        let x = &x[..gradient.len()];
        let mut pairs = gradient.chunks_exact(LANES).zip(x.chunks_exact(LANES));
        for (gradient, x) in &mut pairs {
            for ((lane, gradient), x) in lanes.iter_mut().zip(gradient).zip(x) {
                *lane += gradient * x;
            }
        }
        let whole = gradient.len() / LANES * LANES;
        for ((lane, gradient), x) in lanes.iter_mut().zip(&gradient[whole..]).zip(&x[whole..]) {
            *lane += gradient * x;
        }
    } else {
        for (at, gradient) in gradient.iter().enumerate() {
            lanes[at % LANES] += gradient * x[at * stride];
        }
    }
}
