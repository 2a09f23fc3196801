//! Gradients of weights: for each output and term, the sum over all positions of products of gradients and inputs.

use std::ops::Range;

use rayon::prelude::*;

use super::planes::{Planes, at_once};
use super::tiles::{ByOutput, ByPosition, TAPS, run};
use crate::dense::{REGISTER, parts, turn};
use crate::geometry::Volume;
use crate::scratch::{self, PIECE};
use crate::vectors::vectorized;

/// Numbers that a task reads over and over: they stay in the second cache.
const AT_A_TIME: usize = 1 << 17;

/// The gradient of the weights; none if registers hold positions, and an input or gradient is infinite or NaN.
pub fn backward_weight(geometry: &Volume, x: &[f32], gradient: &[f32]) -> Option<Vec<f32>> {
    let (groups, outputs) = (geometry.groups, geometry.group_outputs());
    let num_weights = geometry.num_weights();
    let mut work = Work::new(geometry, x, gradient);
    // A part has enough positions that adding it to others takes less time than its products.
    let num_positions = geometry.items * geometry.area_out();
    let num_parts = parts(geometry, num_weights).min(num_positions.div_ceil(128));
    // If there are few parts of sums, channels are divided too, and each task copies its items.
    let (divided, most_shares) = if work.is_by_output {
        (geometry.group_inputs(), geometry.group_inputs())
    } else {
        (outputs, outputs.div_ceil(4))
    };
    let num_shares = (16 / (num_parts * groups)).clamp(1, most_shares);
    if work.is_by_output && num_shares > 1 {
        work.turn();
    }
    let share = |at: usize| at * divided / num_shares..(at + 1) * divided / num_shares;
    let task = |task: usize| {
        let (task, share) = (task / num_shares, share(task % num_shares));
        let (part, group) = (task / groups, task % groups);
        let items = part * geometry.items / num_parts..(part + 1) * geometry.items / num_parts;
        if work.is_by_output {
            Some(work.by_output(items, group, share))
        } else {
            work.by_position(items, group, share)
        }
    };
    let tasks = (0..num_parts * groups * num_shares).into_par_iter();
    let mut sums = tasks.map(task).collect::<Option<Vec<Vec<f32>>>>()?;
    let (terms, taps) = (work.terms, geometry.taps());
    let mut weight = vec![0.0; num_weights];
    // The sums of all parts of each share, in their order.
    for at in 0..groups * num_shares {
        let (group, share) = (at / num_shares, share(at % num_shares));
        let mut all = std::mem::take(&mut sums[at]);
        let others = sums[at..].iter().step_by(groups * num_shares).skip(1);
        let pieces = all.par_chunks_mut(PIECE).enumerate();
        pieces.for_each(|(piece, all)| {
            for sums in others.clone() {
                for (all, sum) in all.iter_mut().zip(&sums[piece * PIECE..]) {
                    *all += sum;
                }
            }
        });
        let of_group = &mut weight[group * outputs * terms..][..outputs * terms];
        if work.is_by_output {
            let size = [share.len() * taps, outputs];
            turn(
                &all,
                work.wide(),
                size,
                &mut of_group[share.start * taps..],
                terms,
            );
        } else {
            of_group[share.start * terms..share.end * terms].copy_from_slice(&all);
        }
    }
    Some(weight)
}

/// Whether registers hold outputs at one position: if those leave at most a sixth of the registers empty, are turned for
/// enough terms, and either take several registers, which share what a term sees, or have so few positions that adding up
/// lanes would take longer. These bounds are measured.
fn is_by_output(outputs: usize, terms: usize, positions: usize) -> bool {
    const LEAST_TERMS: usize = 64;
    const FEW_POSITIONS: usize = 100;
    let wide = outputs.next_multiple_of(REGISTER);
    6 * outputs >= 5 * wide
        && terms >= LEAST_TERMS
        && (wide > REGISTER || positions <= FEW_POSITIONS)
}

/// What the tasks share.
struct Work<'a> {
    geometry: &'a Volume,
    x: &'a [f32],
    gradient: &'a [f32],
    /// Whether registers hold outputs at one position; otherwise, they hold positions of one output.
    is_by_output: bool,
    planes: Planes,
    /// Each term's offset in the planes, and others up to a whole tile.
    offsets: Vec<usize>,
    terms: usize,
    /// Gradients, \[groups, items, positions, outputs in whole registers\]; if there are none, each task turns its own.
    turned: Vec<f32>,
}

impl<'a> Work<'a> {
    fn new(geometry: &'a Volume, x: &'a [f32], gradient: &'a [f32]) -> Self {
        let outputs = geometry.group_outputs();
        let items = at_once(geometry.items, geometry.area_out());
        let (planes, mut offsets) = Planes::of_input(geometry, geometry.group_inputs(), items);
        let terms = offsets.len();
        offsets.resize(terms.next_multiple_of(TAPS), 0);
        Self {
            geometry,
            x,
            gradient,
            is_by_output: is_by_output(outputs, terms, geometry.area_out()),
            planes,
            offsets,
            terms,
            turned: Vec::new(),
        }
    }

    /// Outputs of a group, in whole registers.
    fn wide(&self) -> usize {
        self.geometry.group_outputs().next_multiple_of(REGISTER)
    }

    /// Turns all gradients, for tasks that share them.
    fn turn(&mut self) {
        let Volume { items, groups, .. } = *self.geometry;
        let of_item = self.geometry.area_out() * self.wide();
        let mut turned = vec![0.0; items * groups * of_item];
        let units = turned.par_chunks_mut(of_item).enumerate();
        let all = 0..self.geometry.area_out();
        units.for_each(|(unit, to)| self.turn_item(unit % items, unit / items, all.clone(), to));
        self.turned = turned;
    }

    fn turn_item(&self, item: usize, group: usize, positions: Range<usize>, to: &mut [f32]) {
        let (area, outputs) = (self.geometry.area_out(), self.geometry.group_outputs());
        let from = &self.gradient[(item * self.geometry.groups + group) * outputs * area..];
        let size = [outputs, positions.len()];
        turn(&from[positions.start..], area, size, to, self.wide());
    }

    /// Numbers of a group's channels, and of outputs, of an item, and how far apart items are.
    fn sizes(&self) -> [[usize; 2]; 2] {
        let Volume { groups, .. } = *self.geometry;
        let of_group = self.geometry.group_inputs() * self.geometry.area_in();
        let of_output = self.geometry.group_outputs() * self.geometry.area_out();
        [of_group, of_output].map(|num| [num, groups * num])
    }

    /// The items and windows along the depth that are in scratch memory at a time: `num` items at most.
    fn units(&self, items: Range<usize>, num: usize) -> impl Iterator<Item = [Range<usize>; 2]> {
        let (depth, at_a_time) = (self.geometry.output()[0], self.planes.windows);
        items.clone().step_by(num).flat_map(move |first| {
            let items = first..(first + num).min(items.end);
            let windows = (0..depth).step_by(at_a_time);
            windows.map(move |window| [items.clone(), window..(window + at_a_time).min(depth)])
        })
    }

    /// The number of bundles of items in scratch memory at a time, for so many numbers of each.
    fn bundles(&self, of_bundle: usize, items: &Range<usize>) -> usize {
        let is_whole = self.planes.windows == self.geometry.output()[0];
        let most = if is_whole {
            items.len().div_ceil(self.planes.items)
        } else {
            1
        };
        (AT_A_TIME / of_bundle).clamp(1, most)
    }

    /// Sums of some channels of a group, \[terms, outputs in whole registers\].
    fn by_output(&self, items: Range<usize>, group: usize, channels: Range<usize>) -> Vec<f32> {
        let (geometry, planes) = (self.geometry, &self.planes);
        let [depth, height, width] = geometry.output();
        let (of_slab, wide, at_once) = (height * width, self.wide(), planes.items);
        let [[of_group, apart], _] = self.sizes();
        let offsets = &self.offsets[..channels.len() * geometry.taps()];
        let room = channels.len() * planes.of_channel();
        let of_item = planes.windows * of_slab * wide;
        let at_a_time = self.bundles(room + at_once * of_item, &items);
        let own = if self.turned.is_empty() {
            at_a_time * at_once * of_item
        } else {
            0
        };
        // Those of all items that are in scratch memory.
        let places = (0..at_a_time).flat_map(|bundle| {
            let of_item = move |item: usize| {
                let first = bundle * room + item * planes.width;
                let row = move |row: usize| {
                    let first = first + planes.place([row / height, row % height, 0]);
                    first..first + width
                };
                (0..planes.windows * height).flat_map(row)
            };
            (0..at_once).flat_map(of_item)
        });
        let places: Vec<usize> = places.collect();
        let mut sums = vec![0.0; offsets.len() * wide];
        scratch::with(at_a_time * room + own, |scratch| {
            let (values, own) = scratch.split_at_mut(at_a_time * room);
            if wide > geometry.group_outputs() {
                own.fill(0.0);
            }
            for [items, windows] in self.units(items, at_a_time * at_once) {
                for (at, item) in items.clone().step_by(at_once).enumerate() {
                    let x = &self.x[item * apart + group * of_group..];
                    let x = &x[channels.start * geometry.area_in()..];
                    let num = at_once.min(items.end - item);
                    planes.copy(
                        windows.start,
                        x,
                        num,
                        apart,
                        &mut values[at * room..][..room],
                    );
                }
                let num_items = items.len();
                let positions = windows.start * of_slab..windows.end * of_slab;
                let gradients = if self.turned.is_empty() {
                    let each = items.zip(own.chunks_exact_mut(of_item));
                    each.for_each(|(item, to)| self.turn_item(item, group, positions.clone(), to));
                    &*own
                } else {
                    let item = group * geometry.items + items.start;
                    &self.turned[(item * depth + windows.start) * of_slab * wide..]
                };
                let work = ByOutput {
                    planes: values,
                    places: &places[..num_items * positions.len()],
                    gradients,
                    wide,
                    offsets,
                    sums: &mut sums,
                };
                run(geometry.arithmetic, work);
            }
        });
        sums
    }

    /// The same, \[outputs, terms\]; none if an input or gradient is infinite or NaN, since its products with the zeros
    /// between rows would be added to other weights.
    fn by_position(
        &self,
        items: Range<usize>,
        group: usize,
        share: Range<usize>,
    ) -> Option<Vec<f32>> {
        let geometry = self.geometry;
        let (size, area) = (geometry.output(), geometry.area_out());
        let (of_input, at_once) = (&self.planes, self.planes.items);
        let [[of_group, apart], [of_output, outputs_apart]] = self.sizes();
        let num = of_input.positions([1, size[1], size[2]]);
        let of_item = geometry.group_inputs() * of_input.of_channel();
        let of_results = of_input.of_results(size, num);
        let last = of_input.place([of_input.windows - 1, 0, 0]);
        let room = last + self.offsets.iter().max().copied().unwrap_or(0) + num;
        let room = of_item.max(room);
        let outputs = share.len();
        let of_gradients = of_input.windows * outputs * num;
        let mut sums = vec![0.0; outputs * self.terms];
        let mut all_finite = true;
        // Several small items at a time, so that sums over lanes are added up less often.
        let at_a_time = self.bundles(room + of_gradients, &items);
        scratch::with(at_a_time * (room + of_gradients), |scratch| {
            let (planes, gradients) = scratch.split_at_mut(at_a_time * room);
            let mut starts = Vec::with_capacity(at_a_time * of_input.windows);
            for [items, windows] in self.units(items, at_a_time * at_once) {
                let mut slabs = gradients.chunks_exact_mut(outputs * num);
                starts.clear();
                for (at, item) in items.clone().step_by(at_once).enumerate() {
                    let num_items = at_once.min(items.end - item);
                    let x = &self.x[item * apart + group * of_group..];
                    let (to, rest) = planes[at * room..][..room].split_at_mut(of_item);
                    of_input.copy(windows.start, x, num_items, apart, to);
                    rest.fill(0.0);
                    let place = item * outputs_apart + group * of_output;
                    let from = &self.gradient[place + share.start * area..];
                    for (slab, to) in (0..windows.len()).zip(&mut slabs) {
                        of_results.copy(windows.start + slab, from, num_items, outputs_apart, to);
                        starts.push(at * room + of_input.place([slab, 0, 0]));
                    }
                    // Once for all windows of an item.
                    all_finite &= windows.start > 0
                        || (0..num_items).all(|item| {
                            are_finite(&x[item * apart..][..of_group])
                                && are_finite(&from[item * outputs_apart..][..outputs * area])
                        });
                }
                let work = ByPosition {
                    planes,
                    starts: &starts,
                    gradients,
                    outputs,
                    num,
                    offsets: &self.offsets,
                    terms: self.terms,
                    sums: &mut sums,
                };
                run(geometry.arithmetic, work);
            }
        });
        all_finite.then_some(sums)
    }
}

/// Whether no number is infinite or NaN.
pub(super) fn are_finite(values: &[f32]) -> bool {
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
