//! Convolutions of stride 1 without columns: a tile of outputs and positions stays in registers while all taps of all
//! channels are added to it (Georganas et al., Anatomy of High-Performance Deep Learning Convolutions on SIMD
//! Architectures, 2018).
//!
//! Channels are copied with their padding, so that the window of an output position is at the same offsets for all
//! positions: position `y * pitch + x` of tap (i, j) of a channel sees `channel * plane + (y + i) * pitch + x + j`. So
//! positions are one row, in which those between the end of an output row and the beginning of the next are computed
//! and dropped.
//!
//! The gradient of the input is the same convolution of the padded gradient with the taps in reverse order. The gradient
//! of a weight is the product of an output's gradients, with zeros between rows, and the channel from the tap's offset on.

pub mod tiles;

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::columns::copy;
use super::dense::parts;
use super::geometry::Geometry;
use super::scratch::{self, Shared, written};
use super::vectors::vectorized;
use tiles::{Products, Rows, TAPS, WIDEST, run};

/// The maximum number of lanes of any register.
const REGISTER: usize = 16;

/// Whether these loops compute a convolution.
pub fn suits(geometry: &Geometry) -> bool {
    let holds = |axis: usize| {
        let extent = geometry.dilation[axis] * (geometry.kernel[axis] - 1);
        let (before, after) = geometry.padding[axis];
        before <= extent && after <= extent
    };
    geometry.stride == [1, 1] && geometry.taps() > 1 && holds(0) && holds(1)
}

/// Channels with their padding, one after another.
struct Padded {
    /// Padding before the first row and the first column.
    before: [usize; 2],
    /// Rows and columns without padding.
    size: [usize; 2],
    pitch: usize,
    plane: usize,
}

impl Padded {
    fn of(geometry: &Geometry) -> Self {
        let [(top, bottom), (left, right)] = geometry.padding;
        let pitch = geometry.input[1] + left + right;
        Self {
            before: [top, left],
            size: geometry.input,
            pitch,
            plane: pitch * (geometry.input[0] + top + bottom),
        }
    }

    /// Copies channels, and returns whether all numbers are finite.
    fn copy(&self, from: &[f32], to: &mut [f32]) -> bool {
        copy_planes(self, from, to);
        all_finite(from)
    }
}

vectorized! {
    /// Copies planes one after another, with zeros around each.
    fn copy_planes = copy_planes_now(padded: &Padded, from: &[f32], to: &mut [f32]);
}

#[inline(always)]
fn copy_planes_now(padded: &Padded, from: &[f32], to: &mut [f32]) {
    let [height, width] = padded.size;
    let planes = from.chunks_exact(height * width);
    for (from, to) in planes.zip(to.chunks_exact_mut(padded.plane)) {
        let mut filled = 0;
        let mut place = padded.before[0] * padded.pitch + padded.before[1];
        for from in from.chunks_exact(width) {
            to[filled..place].fill(0.0);
            copy(&mut to[place..place + width], from);
            filled = place + width;
            place += padded.pitch;
        }
        to[filled..].fill(0.0);
    }
}

fn all_finite(values: &[f32]) -> bool {
    let mut largest = [0; 1];
    largest_bits(values, &mut largest);
    largest[0] < f32::INFINITY.to_bits()
}

vectorized! {
    /// The largest exponent of a size.
    fn largest_bits = largest_bits_now(values: &[f32], largest: &mut [u32; 1]);
}

#[inline(always)]
fn largest_bits_now(values: &[f32], largest: &mut [u32; 1]) {
    for value in values {
        largest[0] = largest[0].max(value.abs().to_bits());
    }
}

/// The offset of each tap of each channel.
fn offsets(geometry: &Geometry, padded: &Padded, channels: usize) -> Vec<usize> {
    let [height, width] = geometry.kernel;
    let [dy, dx] = geometry.dilation;
    let taps = (0..height).flat_map(|y| (0..width).map(move |x| (y, x)));
    let of = |channel: usize| {
        let taps = taps.clone();
        taps.map(move |(y, x)| channel * padded.plane + y * dy * padded.pitch + x * dx)
    };
    (0..channels).flat_map(of).collect()
}

/// Positions of an output channel in the pitch of the padded input, from its first to its last one.
fn positions(geometry: &Geometry, padded: &Padded) -> usize {
    let [height, width] = geometry.output();
    (height - 1) * padded.pitch + width
}

/// The widths of tiles: as few tiles as possible, all but one of equal width.
fn widths(outputs: usize) -> impl Iterator<Item = (usize, usize)> {
    let num = outputs.div_ceil(WIDEST);
    (0..num).map(move |at| {
        let first = at * outputs / num;
        (first, (at + 1) * outputs / num - first)
    })
}

/// The output for items, weights \[outputs, group inputs, taps\] and a bias for each output.
pub fn forward(geometry: &Geometry, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let terms = geometry.group_inputs() * geometry.taps();
    let places = Places {
        of_output: (0..geometry.outputs).map(|output| output * terms).collect(),
        of_term: (0..terms).collect(),
    };
    convolve(geometry, x, bias, weight, &places)
}

/// The gradient of the input.
pub fn backward_input(geometry: &Geometry, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
    let (inputs, outputs) = (geometry.group_inputs(), geometry.group_outputs());
    let taps = geometry.taps();
    let around = |axis: usize| {
        let extent = geometry.dilation[axis] * (geometry.kernel[axis] - 1);
        let (before, after) = geometry.padding[axis];
        (extent - before, extent - after)
    };
    let turned = Geometry {
        inputs: geometry.outputs,
        outputs: geometry.inputs,
        input: geometry.output(),
        padding: [around(0), around(1)],
        ..*geometry
    };
    let inputs_of_all =
        (0..geometry.groups).flat_map(|group| (0..inputs).map(move |at| (group, at)));
    let terms = (0..outputs).flat_map(|output| (0..taps).rev().map(move |tap| (output, tap)));
    let places = Places {
        of_output: inputs_of_all
            .map(|(group, input)| (group * outputs * inputs + input) * taps)
            .collect(),
        of_term: terms
            .map(|(output, tap)| output * inputs * taps + tap)
            .collect(),
    };
    convolve(&turned, gradient, None, weight, &places)
}

/// The offsets of outputs and of terms (taps of an input of the group) in the weights: a weight is at the sum of both.
struct Places {
    of_output: Vec<usize>,
    of_term: Vec<usize>,
}

fn convolve(
    geometry: &Geometry,
    x: &[f32],
    bias: Option<&[f32]>,
    weight: &[f32],
    places: &Places,
) -> Vec<f32> {
    let (inputs, outputs) = (geometry.group_inputs(), geometry.group_outputs());
    let padded = Padded::of(geometry);
    let offsets = offsets(geometry, &padded, inputs);
    let num = positions(geometry, &padded).next_multiple_of(REGISTER);
    // By tile, term and output of the tile.
    let mut weights = Vec::with_capacity(geometry.num_weights());
    for group in 0..geometry.groups {
        for (first, width) in widths(outputs) {
            let of_outputs = &places.of_output[group * outputs + first..][..width];
            for of_term in &places.of_term {
                weights.extend(
                    of_outputs
                        .iter()
                        .map(|of_output| weight[of_output + of_term]),
                );
            }
        }
    }
    let tiles: Vec<_> = widths(outputs).collect();
    // With few items, each tile of outputs is a separate task, which copies the item again.
    let per_task = if geometry.items * geometry.groups < 16 {
        1
    } else {
        tiles.len()
    };
    let num_parts = tiles.len().div_ceil(per_task);
    let [height, width] = geometry.output();
    let area = height * width;
    let write = |to: Shared| {
        let task = |task: usize| {
            let (unit, part) = (task / num_parts, task % num_parts);
            let group = unit % geometry.groups;
            let x = &x[unit * inputs * geometry.area_in()..][..inputs * geometry.area_in()];
            let room = inputs * padded.plane;
            let offset = offsets.last().copied().unwrap_or(0);
            let room = room.max(offset + num);
            scratch::with(room + WIDEST * num, |scratch| {
                let (planes, sums) = scratch.split_at_mut(room);
                copy_planes(&padded, x, &mut planes[..inputs * padded.plane]);
                planes[inputs * padded.plane..].fill(0.0);
                for (first, wide) in &tiles[part * per_task..][..per_task.min(tiles.len())] {
                    let output = group * outputs + first;
                    let terms = offsets.len();
                    let weights = &weights[output * terms..][..wide * terms];
                    let mut start = [0.0; WIDEST];
                    if let Some(bias) = bias {
                        start[..*wide].copy_from_slice(&bias[output..][..*wide]);
                    }
                    let sums = &mut sums[..wide * num];
                    run(
                        geometry.arithmetic,
                        Rows {
                            planes,
                            offsets: &offsets,
                            weights,
                            start: &start[..*wide],
                            num,
                            sums,
                        },
                    );
                    for (at, sums) in sums.chunks_exact(num).enumerate() {
                        let place = (unit * outputs + first + at) * area;
                        for row in 0..height {
                            let from = &sums[row * padded.pitch..][..width];
                            // SAFETY: only this task writes these outputs of the item.
                            unsafe { to.write(place + row * width, from) };
                        }
                    }
                }
            });
        };
        let num_tasks = geometry.items * geometry.groups * num_parts;
        (0..num_tasks).into_par_iter().for_each(task);
    };
    // SAFETY: the tasks cover all rows of all channels of all items.
    unsafe { written(geometry.num_outputs(), write) }
}

/// The gradient of the weights; none if an input or gradient is infinite or NaN, since its products with the zeros
/// between rows would be added to other weights.
pub fn backward_weight(geometry: &Geometry, x: &[f32], gradient: &[f32]) -> Option<Vec<f32>> {
    let (inputs, outputs) = (geometry.group_inputs(), geometry.group_outputs());
    let padded = Padded::of(geometry);
    let mut offsets = offsets(geometry, &padded, inputs);
    let terms = offsets.len();
    offsets.resize(terms.next_multiple_of(TAPS), 0);
    let num = positions(geometry, &padded).next_multiple_of(REGISTER);
    let [height, width] = geometry.output();
    let rows = Padded {
        before: [0, 0],
        size: [height, width],
        pitch: padded.pitch,
        plane: num,
    };
    let room = (inputs * padded.plane).max(offsets.iter().max().copied().unwrap_or(0) + num);
    let num_weights = geometry.num_weights();
    let num_parts = parts(geometry, num_weights);
    let all_finite = AtomicBool::new(true);
    // If there are few parts of sums, outputs are divided too, and each task copies its items.
    let num_shares = 16usize
        .div_ceil(num_parts * geometry.groups)
        .min(outputs.div_ceil(4));
    let share = |at: usize| at * outputs / num_shares..(at + 1) * outputs / num_shares;
    let task = |task: usize| {
        let (task, share) = (task / num_shares, share(task % num_shares));
        let (part, group) = (task / geometry.groups, task % geometry.groups);
        let items = part * geometry.items / num_parts..(part + 1) * geometry.items / num_parts;
        let (all_outputs, outputs) = (outputs, share.len());
        let mut sums = vec![0.0; outputs * terms];
        // Several small items at a time, so that sums over lanes are added up less often.
        let at_a_time = ((1 << 17) / (room + outputs * num)).clamp(1, items.len());
        scratch::with(at_a_time * (room + outputs * num), |scratch| {
            let (planes, gradients) = scratch.split_at_mut(at_a_time * room);
            for first in items.clone().step_by(at_a_time) {
                let items = first..(first + at_a_time).min(items.end);
                for (at, item) in items.clone().enumerate() {
                    let unit = item * geometry.groups + group;
                    let x = &x[unit * inputs * geometry.area_in()..];
                    let x = &x[..inputs * geometry.area_in()];
                    let (to, rest) =
                        planes[at * room..][..room].split_at_mut(inputs * padded.plane);
                    let mut is_finite = padded.copy(x, to);
                    rest.fill(0.0);
                    let from = &gradient[(unit * all_outputs + share.start) * height * width..];
                    let to = &mut gradients[at * outputs * num..][..outputs * num];
                    is_finite &= rows.copy(&from[..outputs * height * width], to);
                    if !is_finite {
                        all_finite.store(false, Ordering::Relaxed);
                    }
                }
                run(
                    geometry.arithmetic,
                    Products {
                        planes,
                        room,
                        gradients,
                        outputs,
                        num,
                        items: items.len(),
                        offsets: &offsets,
                        terms,
                        sums: &mut sums,
                    },
                );
            }
        });
        sums
    };
    let tasks = (0..num_parts * geometry.groups * num_shares).into_par_iter();
    let sums: Vec<Vec<f32>> = tasks.map(task).collect();
    if !all_finite.into_inner() {
        return None;
    }
    let mut weight = vec![0.0; num_weights];
    for (at, sums) in sums.iter().enumerate() {
        let (group, share) = (at / num_shares % geometry.groups, share(at % num_shares));
        let to = &mut weight[(group * outputs + share.start) * terms..][..share.len() * terms];
        for (to, sum) in to.iter_mut().zip(sums) {
            *to += sum;
        }
    }
    Some(weight)
}
