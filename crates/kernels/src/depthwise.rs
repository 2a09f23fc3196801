//! Convolutions whose outputs see one channel each, as sums over the taps.
//!
//! A matrix product would have a single term per tap. Instead a channel is copied into its zero padding once, so that
//! no tap needs to check the border, and 16 neighbors are summed at a time in registers.

use rayon::prelude::*;

use super::geometry::Geometry;
use super::scratch::{self, Shared, written};
use super::vectors::vectorized;

/// Neighbors that are summed at a time.
const LANES: usize = 16;

/// Whether these loops support a convolution.
pub fn suits(geometry: &Geometry) -> bool {
    geometry.group_inputs() == 1 && geometry.groups > 1 && geometry.group_outputs() <= 8
}

/// A zero-padded channel that contains each tap of each window.
struct Padded {
    height: usize,
    width: usize,
    before: [usize; 2],
    inner: [usize; 2],
}

impl Padded {
    /// The channels of a geometry's input.
    fn of(geometry: &Geometry) -> Self {
        let [(top, bottom), (left, right)] = geometry.padding;
        Self {
            height: geometry.input[0] + top + bottom,
            width: geometry.input[1] + left + right,
            before: [top, left],
            inner: geometry.input,
        }
    }

    /// Its number of elements.
    fn len(&self) -> usize {
        self.height * self.width
    }

    fn inner_row(&self, row: usize) -> std::ops::Range<usize> {
        let first = (self.before[0] + row) * self.width + self.before[1];
        first..first + self.inner[1]
    }

    /// Fills the inner part; the rest is already zero.
    #[inline(always)]
    fn fill(&self, padded: &mut [f32], plane: &[f32]) {
        for (row, from) in plane.chunks_exact(self.inner[1].max(1)).enumerate() {
            padded[self.inner_row(row)].copy_from_slice(from);
        }
    }

    #[inline(always)]
    fn take(&self, padded: &[f32], plane: &mut [f32]) {
        for (row, to) in plane.chunks_exact_mut(self.inner[1].max(1)).enumerate() {
            to.copy_from_slice(&padded[self.inner_row(row)]);
        }
    }
}

/// The offset of each tap of a window from its first position.
fn offsets(geometry: &Geometry, width: usize) -> Vec<usize> {
    let [height_of, width_of] = geometry.kernel;
    let [down, right] = geometry.dilation;
    let taps = (0..height_of).flat_map(|y| (0..width_of).map(move |x| (y, x)));
    taps.map(|(y, x)| y * down * width + x * right).collect()
}

vectorized! {
    /// Computes one channel of the output.
    #[allow(clippy::too_many_arguments)]
    fn sum_windows = sum_windows_now(
        geometry: &Geometry,
        padded: &[f32],
        width: usize,
        offsets: &[usize],
        weight: &[f32],
        bias: f32,
        to: &mut [f32],
    );
}

#[inline(always)]
fn sum_windows_now(
    geometry: &Geometry,
    padded: &[f32],
    width: usize,
    offsets: &[usize],
    weight: &[f32],
    bias: f32,
    to: &mut [f32],
) {
    let [_, columns] = geometry.output();
    let [down, right] = geometry.stride;
    for (row, to) in to.chunks_exact_mut(columns.max(1)).enumerate() {
        let base = row * down * width;
        let mut first = 0;
        if right == 1 && columns >= LANES {
            while first < columns {
                // The last step overlaps the one before.
                let at = first.min(columns - LANES);
                let mut sums = [bias; LANES];
                for (offset, weight) in offsets.iter().zip(weight) {
                    let from: &[f32; LANES] = padded[base + at + offset..][..LANES]
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
            let from = &padded[base + at * right..];
            let terms = offsets.iter().zip(weight);
            *to = terms.fold(bias, |sum, (offset, weight)| sum + weight * from[*offset]);
        }
    }
}

/// The output for items, weights \[outputs, taps\] and a bias for each output.
pub fn forward(geometry: &Geometry, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let (area, taps, outputs) = (
        geometry.area_out(),
        geometry.taps(),
        geometry.group_outputs(),
    );
    let padded = Padded::of(geometry);
    let offsets = offsets(geometry, padded.width);
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
                    sum_windows(geometry, values, padded.width, &offsets, weight, bias, to);
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
pub fn backward_input(geometry: &Geometry, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
    let (area, taps, outputs) = (
        geometry.area_out(),
        geometry.taps(),
        geometry.group_outputs(),
    );
    let padded = Padded::of(geometry);
    let offsets = offsets(geometry, padded.width);
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
                    spread_windows(geometry, gradient, padded.width, &offsets, weight, values);
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
    #[allow(clippy::too_many_arguments)]
    fn spread_windows = spread_windows_now(
        geometry: &Geometry,
        gradient: &[f32],
        width: usize,
        offsets: &[usize],
        weight: &[f32],
        padded: &mut [f32],
    );
}

#[inline(always)]
fn spread_windows_now(
    geometry: &Geometry,
    gradient: &[f32],
    width: usize,
    offsets: &[usize],
    weight: &[f32],
    padded: &mut [f32],
) {
    let [_, columns] = geometry.output();
    for (row, from) in gradient.chunks_exact(columns.max(1)).enumerate() {
        let base = row * geometry.stride[0] * width;
        for (offset, weight) in offsets.iter().zip(weight) {
            spread(
                &mut padded[base + offset..],
                geometry.stride[1],
                from,
                *weight,
            );
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
pub fn backward_weight(geometry: &Geometry, x: &[f32], gradient: &[f32]) -> Vec<f32> {
    let (area, taps, outputs) = (
        geometry.area_out(),
        geometry.taps(),
        geometry.group_outputs(),
    );
    let padded = Padded::of(geometry);
    let offsets = offsets(geometry, padded.width);
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
                    multiply_windows(
                        geometry,
                        values,
                        padded.width,
                        &offsets,
                        gradient,
                        &mut lanes,
                    );
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
    #[allow(clippy::too_many_arguments)]
    fn multiply_windows = multiply_windows_now(
        geometry: &Geometry,
        padded: &[f32],
        width: usize,
        offsets: &[usize],
        gradient: &[f32],
        lanes: &mut [[f32; LANES]],
    );
}

#[inline(always)]
fn multiply_windows_now(
    geometry: &Geometry,
    padded: &[f32],
    width: usize,
    offsets: &[usize],
    gradient: &[f32],
    lanes: &mut [[f32; LANES]],
) {
    let [_, columns] = geometry.output();
    for (offset, lanes) in offsets.iter().zip(lanes) {
        let mut sums = *lanes;
        for (row, gradient) in gradient.chunks_exact(columns.max(1)).enumerate() {
            let from = &padded[row * geometry.stride[0] * width + offset..];
            multiply(&mut sums, from, geometry.stride[1], gradient);
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
