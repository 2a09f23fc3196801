//! The planes that windows are seen in.
//!
//! Windows that are `stride` apart see every `stride`-th row and column, so a channel is copied as several planes, its
//! phases: one for each remainder of the places of its padded rows and columns that some tap has. In a phase, the next
//! window is at the next place, as with stride 1.
//!
//! Several small items are side by side in a plane, so that fewer positions are computed in vain.

use crate::columns::copy_every;
use crate::dense::REGISTER;
use crate::geometry::Geometry;
use crate::vectors::vectorized;

/// The rows (or columns) of a channel that are copied to a phase, `stride` apart.
#[derive(Clone, Copy)]
struct Run {
    /// The first one.
    from: usize,
    /// Its place in the phase.
    at: usize,
    num: usize,
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
pub fn taps(geometry: &Geometry, axis: usize) -> Vec<Tap> {
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

/// Channels as planes with zeros around them, one after another.
pub struct Planes {
    /// For each phase along an axis.
    runs: [Vec<Run>; 2],
    stride: [usize; 2],
    /// Rows and columns of a channel.
    size: [usize; 2],
    /// Items side by side.
    pub items: usize,
    /// How far apart items are.
    pub width: usize,
    /// Numbers of a plane.
    len: usize,
}

impl Planes {
    /// Some channels of some items of a convolution's input, and the offset of each tap of each channel.
    pub fn of_input(geometry: &Geometry, channels: usize, items: usize) -> (Self, Vec<usize>) {
        let output = geometry.output();
        let taps = [0, 1].map(|axis| taps(geometry, axis));
        let lens = [0, 1].map(|axis| {
            let shifts = taps[axis].iter().map(|tap| tap.shift);
            output[axis] + shifts.max().unwrap_or(0)
        });
        let phases = taps.each_ref().map(|taps| {
            let mut phases: Vec<_> = taps.iter().map(|tap| tap.phase).collect();
            phases.sort_unstable();
            phases.dedup();
            phases
        });
        let runs = [0, 1].map(|axis| {
            let run = |phase: &usize| {
                let (at, from, num) = geometry.seen(axis, *phase);
                let num = num.min(lens[axis].saturating_sub(at));
                Run { from, at, num }
            };
            phases[axis].iter().map(run).collect()
        });
        let planes = Self {
            runs,
            stride: geometry.stride,
            size: geometry.input,
            items,
            width: lens[1],
            len: lens[0] * items * lens[1],
        };
        let place = |axis: usize, tap: &Tap| {
            let phase = phases[axis].iter().position(|phase| *phase == tap.phase);
            phase.expect("a phase of each tap")
        };
        let mut offsets = Vec::with_capacity(channels * geometry.taps());
        for channel in 0..channels {
            for y in &taps[0] {
                for x in &taps[1] {
                    let phase = place(0, y) * phases[1].len() + place(1, x);
                    let plane = channel * planes.of_channel() + phase * planes.len;
                    offsets.push(plane + y.shift * planes.pitch() + x.shift);
                }
            }
        }
        (planes, offsets)
    }

    /// Planes of rows and columns as in `lens` with channels of `size`, whose first element is at a place.
    pub fn around(size: [usize; 2], at: [usize; 2], items: usize, lens: [usize; 2]) -> Self {
        let run = |axis: usize| Run {
            from: 0,
            at: at[axis],
            num: size[axis],
        };
        Self {
            runs: [vec![run(0)], vec![run(1)]],
            stride: [1, 1],
            size,
            items,
            width: lens[1],
            len: lens[0] * items * lens[1],
        }
    }

    /// Planes of `len` numbers with channels of results, at the positions of these planes.
    pub fn of_results(&self, size: [usize; 2], len: usize) -> Self {
        let planes = Self::around(size, [0, 0], self.items, [size[0], self.width]);
        Self { len, ..planes }
    }

    /// How far apart the rows of a plane are.
    pub fn pitch(&self) -> usize {
        self.items * self.width
    }

    /// Numbers of all planes of a channel.
    pub fn of_channel(&self) -> usize {
        self.runs[0].len() * self.runs[1].len() * self.len
    }

    /// Places from the first to the last of some rows and columns of all items, in whole registers.
    pub fn positions(&self, [rows, columns]: [usize; 2]) -> usize {
        let last = (rows - 1) * self.pitch() + (self.items - 1) * self.width;
        (last + columns).next_multiple_of(REGISTER)
    }

    /// Copies the channels of `num` items, which are `apart` from each other.
    pub fn copy(&self, from: &[f32], num: usize, apart: usize, to: &mut [f32]) {
        copy(self, from, num, apart, to);
    }
}

vectorized! {
    fn copy = copy_now(planes: &Planes, from: &[f32], num: usize, apart: usize, to: &mut [f32]);
}

#[inline(always)]
fn copy_now(planes: &Planes, from: &[f32], num: usize, apart: usize, to: &mut [f32]) {
    let [height, width] = planes.size;
    let channels = to.chunks_exact_mut(planes.of_channel()).enumerate();
    for (channel, to) in channels {
        let mut phases = to.chunks_exact_mut(planes.len);
        for rows in &planes.runs[0] {
            for columns in &planes.runs[1] {
                let to = phases.next().expect("a plane for each phase");
                let mut filled = 0;
                for row in 0..rows.num * usize::from(columns.num > 0) {
                    let first = (channel * height + rows.from + row * planes.stride[0]) * width;
                    let place = (rows.at + row) * planes.pitch() + columns.at;
                    for item in 0..num {
                        let place = place + item * planes.width;
                        to[filled..place].fill(0.0);
                        filled = place + columns.num;
                        let from = &from[item * apart + first + columns.from..];
                        copy_every(&mut to[place..filled], from, planes.stride[1]);
                    }
                }
                to[filled..].fill(0.0);
            }
        }
    }
}
