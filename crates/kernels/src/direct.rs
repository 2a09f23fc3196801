//! Convolutions without columns: a tile of outputs and positions stays in registers while all taps of all channels are
//! added to it (Georganas et al., Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures, 2018).
//!
//! Channels are copied with their padding, one plane for each phase of the stride, so that the window of an output
//! position is at the same offsets for all positions: position `(z * rows + y) * pitch + x` sees each tap at the offset of
//! its plane and place. So positions are one row, in which those between the end of an output row or slab and the beginning
//! of the next are computed and dropped.
//!
//! The gradient of the input is, for each phase of the stride, such a convolution of the padded gradient with the taps of
//! that phase in reverse order. The gradient of a weight is the sum of products of an output's gradients and the channel
//! at the tap's offset.

mod planes;
pub mod tiles;
mod weights;

use std::ops::Range;

use rayon::prelude::*;

use super::depthwise;
use super::geometry::{Volume, places};
use super::scratch::{self, Shared, written};
use planes::{Planes, at_once, taps};
use tiles::{Rows, WIDEST, run};
use weights::are_finite;
pub use weights::backward_weight;

/// Whether these loops compute a convolution.
pub fn suits(geometry: &Volume) -> bool {
    let is_strided = geometry.stride != [1; 3];
    geometry.taps() > 1 && !(is_strided && depthwise::suits(geometry))
}

/// The widths of tiles: as few tiles as possible, all but one of equal width.
fn widths(outputs: usize) -> impl Iterator<Item = (usize, usize)> {
    let num = outputs.div_ceil(WIDEST);
    (0..num).map(move |at| {
        let first = at * outputs / num;
        (first, (at + 1) * outputs / num - first)
    })
}

/// Whether they compute the gradient of the input. Each phase of the strides is computed by itself, and many phases have
/// too few positions for registers.
pub fn suits_input(geometry: &Volume, weight: &[f32]) -> bool {
    const MOST_PHASES: usize = 16;
    let phases = geometry.stride.iter();
    suits(geometry)
        && phases.fold(1, |n: usize, stride| n.saturating_mul(*stride)) <= MOST_PHASES
        // Weights are multiplied by the zeros around gradients.
        && are_finite(weight)
}

/// The output for items, weights \[outputs, group inputs, taps\] and a bias for each output.
pub fn forward(geometry: &Volume, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let items = at_once(geometry.items, geometry.area_out());
    let (planes, offsets) = Planes::of_input(geometry, geometry.group_inputs(), items);
    let terms = offsets.len();
    let convolution = Convolution {
        geometry,
        channels: geometry.group_inputs(),
        area: geometry.area_in(),
        planes,
        of_result: (0..geometry.outputs).map(|output| output * terms).collect(),
        results: geometry.group_outputs(),
        size: geometry.output(),
        parts: vec![Part {
            of_term: (0..terms).collect(),
            offsets,
            first: [0; 3],
            step: [1; 3],
            num: geometry.output(),
        }],
    };
    convolution.of(x, weight, bias)
}

/// The gradient of the input.
pub fn backward_input(geometry: &Volume, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
    let (inputs, outputs) = (geometry.group_inputs(), geometry.group_outputs());
    let (num_taps, output) = (geometry.taps(), geometry.output());
    let taps = [0, 1, 2].map(|axis| taps(geometry, axis));
    let reaches = [0, 1, 2].map(|axis| {
        let phases = 0..geometry.stride[axis];
        phases
            .map(move |phase| geometry.seen(axis, phase))
            .collect::<Vec<_>>()
    });
    // Zeros before the gradient, as many as a tap of some phase is ahead of the first input.
    let before = [0, 1, 2].map(|axis| {
        let ahead = taps[axis]
            .iter()
            .map(|tap| tap.shift.saturating_sub(reaches[axis][tap.phase].0));
        ahead.max().unwrap_or(0)
    });
    // All rows and columns; along the depth, as many windows of each phase can be copied at a time, wherever they begin.
    let [rows, columns] = [1, 2].map(|axis| {
        let ends = reaches[axis].iter().map(|(at, _, num)| at + num);
        before[axis] + ends.max().unwrap_or(0).max(output[axis])
    });
    let most = |of: fn(&(usize, usize, usize)) -> usize| {
        let of_phases = reaches[0].iter().map(of);
        of_phases.max().unwrap_or(0)
    };
    let windows = most(|(_, _, num)| *num);
    let lens = [before[0] + most(|(at, ..)| *at) + windows, rows, columns];
    let of_phase = geometry
        .area_in()
        .div_ceil(geometry.stride.iter().product());
    let items = at_once(geometry.items, of_phase);
    let planes = Planes::around(output, before, [windows, outputs, items], lens);
    let part = |phase: [usize; 3]| {
        let reach = [0, 1, 2].map(|axis| reaches[axis][phase[axis]]);
        let (mut offsets, mut of_term) = (Vec::new(), Vec::new());
        for output in 0..outputs {
            for (at, tap) in (0..num_taps).rev().zip(places(geometry.kernel).rev()) {
                let tap = [0, 1, 2].map(|axis| &taps[axis][tap[axis]]);
                if tap.map(|tap| tap.phase) == phase {
                    let place =
                        [0, 1, 2].map(|axis| before[axis] + reach[axis].0 - tap[axis].shift);
                    offsets.push(output * planes.of_channel() + planes.place(place));
                    of_term.push(output * inputs * num_taps + at);
                }
            }
        }
        Part {
            of_term,
            offsets,
            first: reach.map(|(_, first, _)| first),
            step: geometry.stride,
            num: reach.map(|(_, _, num)| num),
        }
    };
    let parts = places(geometry.stride)
        .map(part)
        .filter(|part| !part.num.contains(&0))
        .collect();
    let inputs_of_all =
        (0..geometry.groups).flat_map(|group| (0..inputs).map(move |at| (group, at)));
    let convolution = Convolution {
        geometry,
        channels: outputs,
        area: geometry.area_out(),
        planes,
        of_result: inputs_of_all
            .map(|(group, input)| (group * outputs * inputs + input) * num_taps)
            .collect(),
        results: inputs,
        size: geometry.input,
        parts,
    };
    convolution.of(gradient, weight, None)
}

/// Some positions of each result channel: every `step`-th from a first one on.
struct Part {
    /// Each term's offset in the planes, and in the weights.
    offsets: Vec<usize>,
    of_term: Vec<usize>,
    first: [usize; 3],
    step: [usize; 3],
    num: [usize; 3],
}

impl Part {
    /// Writes a slab of a channel of `size` from sums of its positions.
    ///
    /// # Safety
    /// Nothing else accesses these positions, which begin at `place`, in the meantime.
    unsafe fn write(
        &self,
        to: Shared,
        place: usize,
        size: [usize; 3],
        slab: usize,
        pitch: usize,
        sums: &[f32],
    ) {
        let [_, rows, columns] = self.num;
        let [_, height, width] = size;
        let at = (self.first[0] + slab * self.step[0]) * height + self.first[1];
        for row in 0..rows {
            let from = &sums[row * pitch..][..columns];
            let place = place + (at + row * self.step[1]) * width + self.first[2];
            if self.step[2] == 1 {
                // SAFETY: the caller guarantees it.
                unsafe { to.write(place, from) };
                continue;
            }
            // SAFETY: as above.
            let to = unsafe { to.part(place, (columns - 1) * self.step[2] + 1) };
            for (to, value) in to.iter_mut().step_by(self.step[2]).zip(from) {
                to.write(*value);
            }
        }
    }
}

/// Sums over the taps of all channels of a group.
struct Convolution<'a> {
    geometry: &'a Volume,
    /// Channels of a group that are summed over, and the positions of each.
    channels: usize,
    area: usize,
    planes: Planes,
    /// The offset of each result channel in the weights: a weight is at its sum with that of the term.
    of_result: Vec<usize>,
    /// Channels of a group in the result, and slabs, rows and columns of each.
    results: usize,
    size: [usize; 3],
    /// Together, all positions.
    parts: Vec<Part>,
}

impl Convolution<'_> {
    /// The weights of a part, by tile, term and channel of the tile.
    fn weights(&self, part: &Part, weight: &[f32]) -> Vec<f32> {
        let mut weights = Vec::with_capacity(self.of_result.len() * part.of_term.len());
        for of_group in self.of_result.chunks_exact(self.results) {
            for (first, width) in widths(self.results) {
                let of_results = &of_group[first..][..width];
                for of_term in &part.of_term {
                    weights.extend(of_results.iter().map(|at| weight[at + of_term]));
                }
            }
        }
        weights
    }

    /// Writes a slab of some channels of some items from sums of a part's positions in each channel.
    ///
    /// # Safety
    /// Nothing else accesses these slabs of the items in the meantime.
    unsafe fn write(
        &self,
        part: &Part,
        items: Range<usize>,
        slab: usize,
        channels: Range<usize>,
        sums: &[f32],
        to: Shared,
    ) {
        let area: usize = self.size.iter().product();
        let num_channels = self.geometry.groups * self.results;
        let each = sums.chunks_exact(sums.len() / channels.len());
        for (channel, sums) in channels.zip(each) {
            for (at, item) in items.clone().enumerate() {
                let place = (item * num_channels + channel) * area;
                let sums = &sums[at * self.planes.width..];
                // SAFETY: the caller guarantees it.
                unsafe { part.write(to, place, self.size, slab, self.planes.pitch(), sums) };
            }
        }
    }

    /// All units: those of the same items one after another.
    fn units(&self) -> Vec<Unit> {
        let Volume { items, groups, .. } = *self.geometry;
        let windows = self.parts.iter().map(|part| part.num[0]).max().unwrap_or(0);
        let mut units = Vec::new();
        for first in (0..items).step_by(self.planes.items) {
            for group in 0..groups {
                for window in (0..windows).step_by(self.planes.windows) {
                    units.push(Unit {
                        items: first..items.min(first + self.planes.items),
                        group,
                        window,
                    });
                }
            }
        }
        units
    }

    fn of(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let Volume {
            items,
            groups,
            arithmetic,
            ..
        } = *self.geometry;
        let (results, planes) = (self.results, &self.planes);
        // Each slab by itself, so that those between two are not computed.
        let of_slab = |part: &Part| planes.positions([1, part.num[1], part.num[2]]);
        let of_part = |part: &Part| (self.weights(part, weight), of_slab(part));
        let weights: Vec<_> = self.parts.iter().map(of_part).collect();
        let tiles: Vec<_> = widths(results).collect();
        let units = self.units();
        // With few units, each tile of channels is a separate task, which copies the items again.
        let per_task = if units.len() < 16 { 1 } else { tiles.len() };
        let num_shares = tiles.len().div_ceil(per_task);
        let copied = self.channels * planes.of_channel();
        let ends = self.parts.iter().zip(&weights).map(|(part, (_, num))| {
            let offset = part.offsets.iter().max().copied().unwrap_or(0);
            offset + planes.place([planes.windows - 1, 0, 0]) + num
        });
        let room = copied.max(ends.max().unwrap_or(0));
        let most = weights.iter().map(|(_, num)| *num).max().unwrap_or(0);
        let write = |to: Shared| {
            let task = |task: usize| {
                let (unit, share) = (&units[task / num_shares], task % num_shares);
                let of_group = self.channels * self.area;
                let x = &x[(unit.items.start * groups + unit.group) * of_group..];
                scratch::with(room + WIDEST * most, |scratch| {
                    let (values, sums) = scratch.split_at_mut(room);
                    let (apart, num) = (groups * of_group, unit.items.len());
                    planes.copy(unit.window, x, num, apart, &mut values[..copied]);
                    values[copied..].fill(0.0);
                    for (first, wide) in &tiles[share * per_task..][..per_task.min(tiles.len())] {
                        let result = unit.group * results + first;
                        let mut start = [0.0; WIDEST];
                        if let Some(bias) = bias {
                            start[..*wide].copy_from_slice(&bias[result..][..*wide]);
                        }
                        for (part, (weights, num)) in self.parts.iter().zip(&weights) {
                            let terms = part.offsets.len();
                            let past = part.num[0].min(unit.window + planes.windows);
                            for slab in unit.window..past {
                                let sums = &mut sums[..wide * num];
                                let from = planes.place([slab - unit.window, 0, 0]);
                                let rows = Rows {
                                    planes: &values[from..],
                                    offsets: &part.offsets,
                                    weights: &weights[result * terms..][..wide * terms],
                                    start: &start[..*wide],
                                    num: *num,
                                    sums,
                                };
                                run(arithmetic, rows);
                                let (items, channels) = (unit.items.clone(), result..result + wide);
                                // SAFETY: only this task writes these slabs of the items.
                                unsafe { self.write(part, items, slab, channels, sums, to) };
                            }
                        }
                    }
                });
            };
            (0..units.len() * num_shares).into_par_iter().for_each(task);
        };
        let area: usize = self.size.iter().product();
        // SAFETY: the tasks cover all channels of all items, and the parts all their positions.
        unsafe { written(items * groups * results * area, write) }
    }
}

/// What a task computes: a group of channels of some items, for some windows along the depth from a first one on.
struct Unit {
    items: Range<usize>,
    group: usize,
    window: usize,
}
