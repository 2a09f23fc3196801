//! The planes that windows are seen in.
//!
//! Windows that are `stride` apart see every `stride`-th row and column, so a channel is copied as several planes, its
//! phases: one for each remainder of the places of its padded rows and columns that some tap has. In a phase, the next
//! window is at the next place, as with stride 1.
//!
//! Several small items are side by side in a plane, so that fewer positions are computed in vain. Of a large volume, only
//! the slabs that some windows along the depth see are copied at a time.

use crate::columns::copy_every;
use crate::dense::REGISTER;
use crate::geometry::{Volume, places};
use crate::vectors::vectorized;

/// The slabs (or rows, or columns) of a channel that are copied to a phase, `stride` apart.
#[derive(Clone, Copy)]
struct Run {
    /// The first one.
    from: usize,
    /// Its place in the phase.
    at: usize,
    num: usize,
}

/// The only phase of channels of a size, whose first element is at a place.
fn whole(size: [usize; 3], at: [usize; 3]) -> [Vec<Run>; 3] {
    let run = |axis: usize| Run {
        from: 0,
        at: at[axis],
        num: size[axis],
    };
    [0, 1, 2].map(|axis| vec![run(axis)])
}

/// Where a tap sees the first window.
#[derive(Clone, Copy)]
pub struct Tap {
    /// The remainder of its place.
    pub phase: usize,
    /// Its place in the phase.
    pub shift: usize,
}

/// The taps along an axis.
pub fn taps(geometry: &Volume, axis: usize) -> Vec<Tap> {
    let places = (0..geometry.kernel[axis]).map(|tap| tap * geometry.dilation[axis]);
    let stride = geometry.stride[axis];
    let tap = |place: usize| Tap {
        phase: place % stride,
        shift: place / stride,
    };
    places.map(tap).collect()
}

/// Items of a batch that are in the same planes, for results of so many positions: not so many that threads would have
/// nothing to do.
pub fn at_once(items: usize, positions: usize) -> usize {
    64_usize.div_ceil(positions).clamp(1, (items / 16).max(1))
}

/// Numbers of the slabs that are copied at a time, if it is more than one: they stay in the second cache.
const SLABS: usize = 1 << 17;

/// Windows along the depth that are computed at a time, for slabs of so many numbers.
fn at_a_time(windows: usize, of_slab: usize) -> usize {
    let most = (SLABS / of_slab.max(1)).clamp(1, windows.max(1));
    windows.div_ceil(windows.div_ceil(most).max(1))
}

/// Channels as planes with zeros around them, one after another.
pub struct Planes {
    /// For each phase along an axis.
    runs: [Vec<Run>; 3],
    stride: [usize; 3],
    /// Slabs, rows and columns of a channel.
    size: [usize; 3],
    /// Items side by side.
    pub items: usize,
    /// How far apart items are.
    pub width: usize,
    /// Windows along the depth at a time.
    pub windows: usize,
    /// Slabs of a plane, and rows of a slab.
    slabs: usize,
    rows: usize,
    /// Numbers of a plane.
    len: usize,
}

impl Planes {
    /// Some channels of some items of a convolution's input, and the offset of each tap of each channel.
    pub fn of_input(geometry: &Volume, channels: usize, items: usize) -> (Self, Vec<usize>) {
        let output = geometry.output();
        let taps = [0, 1, 2].map(|axis| taps(geometry, axis));
        let lens = [0, 1, 2].map(|axis| {
            let shifts = taps[axis].iter().map(|tap| tap.shift);
            output[axis] + shifts.max().unwrap_or(0)
        });
        let phases = taps.each_ref().map(|taps| {
            let mut phases: Vec<_> = taps.iter().map(|tap| tap.phase).collect();
            phases.sort_unstable();
            phases.dedup();
            phases
        });
        let runs = [0, 1, 2].map(|axis| {
            let run = |phase: &usize| {
                let (at, from, num) = geometry.seen(axis, *phase);
                let num = num.min(lens[axis].saturating_sub(at));
                Run { from, at, num }
            };
            phases[axis].iter().map(run).collect()
        });
        let planes = Self::new(
            runs,
            geometry.stride,
            geometry.input,
            [output[0], channels, items],
            lens,
        );
        let place = |axis: usize, tap: &Tap| {
            let phase = phases[axis].iter().position(|phase| *phase == tap.phase);
            phase.expect("a phase of each tap")
        };
        let mut offsets = Vec::with_capacity(channels * geometry.taps());
        for channel in 0..channels {
            for at in places(geometry.kernel) {
                let tap = [0, 1, 2].map(|axis| &taps[axis][at[axis]]);
                let phase = [0, 1, 2].iter().fold(0, |phase, axis| {
                    phase * phases[*axis].len() + place(*axis, tap[*axis])
                });
                let plane = channel * planes.of_channel() + phase * planes.len;
                offsets.push(plane + planes.place(tap.map(|tap| tap.shift)));
            }
        }
        (planes, offsets)
    }

    /// Planes of slabs, rows and columns as in `lens` with channels of `size`, whose first element is at a place.
    /// `num` are the windows along the depth, channels and items.
    pub fn around(size: [usize; 3], at: [usize; 3], num: [usize; 3], lens: [usize; 3]) -> Self {
        Self::new(whole(size, at), [1; 3], size, num, lens)
    }

    fn new(
        runs: [Vec<Run>; 3],
        stride: [usize; 3],
        size: [usize; 3],
        [windows, channels, items]: [usize; 3],
        [slabs, rows, width]: [usize; 3],
    ) -> Self {
        let phases: usize = runs.iter().map(Vec::len).product();
        let at_a_time = at_a_time(windows, channels * phases * rows * width);
        let items = if at_a_time < windows { 1 } else { items };
        let slabs = slabs - (windows - at_a_time);
        Self {
            runs,
            stride,
            size,
            items,
            width,
            windows: at_a_time,
            slabs,
            rows,
            len: slabs * rows * items * width,
        }
    }

    /// Planes of `len` numbers with a slab of channels of results, at the positions of these planes.
    pub fn of_results(&self, size: [usize; 3], len: usize) -> Self {
        Self {
            runs: whole(size, [0; 3]),
            stride: [1; 3],
            size,
            slabs: 1,
            len,
            ..*self
        }
    }

    /// How far apart the rows of a plane are.
    pub fn pitch(&self) -> usize {
        self.items * self.width
    }

    /// The position of a slab, row and column of the first item.
    pub fn place(&self, [slab, row, column]: [usize; 3]) -> usize {
        (slab * self.rows + row) * self.pitch() + column
    }

    /// Numbers of all planes of a channel.
    pub fn of_channel(&self) -> usize {
        self.runs.iter().map(Vec::len).product::<usize>() * self.len
    }

    /// Places from the first to the last of some slabs, rows and columns of all items, in whole registers.
    pub fn positions(&self, [slabs, rows, columns]: [usize; 3]) -> usize {
        let last = self.place([slabs - 1, rows - 1, (self.items - 1) * self.width]);
        (last + columns).next_multiple_of(REGISTER)
    }

    /// Copies the slabs for windows along the depth from `first` on, of the channels of `num` items, which are `apart`
    /// from each other.
    pub fn copy(&self, first: usize, from: &[f32], num: usize, apart: usize, to: &mut [f32]) {
        copy(self, first, from, num, apart, to);
    }
}

vectorized! {
    fn copy = copy_now(planes: &Planes, first: usize, from: &[f32], num: usize, apart: usize, to: &mut [f32]);
}

#[inline(always)]
fn copy_now(planes: &Planes, first: usize, from: &[f32], num: usize, apart: usize, to: &mut [f32]) {
    let [depth, height, width] = planes.size;
    let channels = to.chunks_exact_mut(planes.of_channel()).enumerate();
    for (channel, to) in channels {
        let mut phases = to.chunks_exact_mut(planes.len);
        for slabs in &planes.runs[0] {
            let seen = slabs.at.max(first)..(slabs.at + slabs.num).min(first + planes.slabs);
            for rows in &planes.runs[1] {
                for columns in &planes.runs[2] {
                    let to = phases.next().expect("a plane for each phase");
                    let mut filled = 0;
                    for slab in seen.clone() {
                        let source = slabs.from + (slab - slabs.at) * planes.stride[0];
                        let source = (channel * depth + source) * height + rows.from;
                        let place = (slab - first) * planes.rows + rows.at;
                        for row in 0..rows.num * usize::from(columns.num > 0) {
                            let source = (source + row * planes.stride[1]) * width + columns.from;
                            let place = (place + row) * planes.pitch() + columns.at;
                            for item in 0..num {
                                let place = place + item * planes.width;
                                to[filled..place].fill(0.0);
                                filled = place + columns.num;
                                let from = &from[item * apart + source..];
                                copy_every(&mut to[place..filled], from, planes.stride[2]);
                            }
                        }
                    }
                    to[filled..].fill(0.0);
                }
            }
        }
    }
}
