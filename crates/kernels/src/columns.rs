//! Windows as the columns of a matrix (im2col), and columns added back to their source (col2im).
//!
//! A row of the matrix is a tap of a channel, a column an output position: [channels * taps, positions]. Only some
//! positions are laid out at a time, so that the matrix stays in the cache.

use std::ops::Range;

use super::geometry::{Volume, places};
use super::vectors::vectorized;

/// The layout information of a convolution, computed once for all panels.
pub struct Layout {
    taps: Vec<Tap>,
    stride: [usize; 3],
    input: [usize; 3],
    /// Height and width of the output.
    height: usize,
    width: usize,
}

/// The output slabs, rows and columns for which a tap is inside the input, and its position for the first of them.
struct Tap {
    slabs: Range<usize>,
    first_slab: usize,
    rows: Range<usize>,
    first_row: usize,
    columns: Range<usize>,
    first_column: usize,
}

impl Layout {
    pub fn new(geometry: &Volume) -> Self {
        let taps = places(geometry.kernel).map(|tap| {
            let [
                (slabs, first_slab),
                (rows, first_row),
                (columns, first_column),
            ] = [0, 1, 2].map(|axis| geometry.reach(axis, tap[axis]));
            Tap {
                slabs,
                first_slab,
                rows,
                first_row,
                columns,
                first_column,
            }
        });
        let taps = taps.collect();
        let [_, height, width] = geometry.output();
        Self {
            taps,
            stride: geometry.stride,
            input: geometry.input,
            height,
            width,
        }
    }

    fn area_in(&self) -> usize {
        self.input.iter().product()
    }

    #[inline(always)]
    fn runs<'a>(&'a self, tap: &'a Tap, positions: &Range<usize>) -> Runs<'a> {
        let row = positions.start / self.width;
        Runs {
            layout: self,
            tap,
            slab: row / self.height,
            row: row % self.height,
            first: positions.start % self.width,
            at: 0,
            num: positions.len(),
        }
    }
}

vectorized! {
    /// Lays out `positions` of some channels of an item, which begin at `x`; rows are `pitch` apart.
    pub fn gather = gather_rows(
        layout: &Layout,
        x: &[f32],
        channels: usize,
        positions: Range<usize>,
        columns: &mut [f32],
        pitch: usize,
    );
}

vectorized! {
    /// Adds each column to its window.
    pub fn scatter = scatter_rows(
        layout: &Layout,
        columns: &[f32],
        pitch: usize,
        channels: usize,
        positions: Range<usize>,
        x: &mut [f32],
    );
}

#[inline(always)]
fn gather_rows(
    layout: &Layout,
    x: &[f32],
    channels: usize,
    positions: Range<usize>,
    columns: &mut [f32],
    pitch: usize,
) {
    let mut rows = columns.chunks_mut(pitch);
    for channel in 0..channels {
        let plane = &x[channel * layout.area_in()..][..layout.area_in()];
        for tap in &layout.taps {
            let row = &mut rows.next().expect("one row per tap")[..positions.len()];
            for run in layout.runs(tap, &positions) {
                if run.at < run.inside {
                    row[run.at..run.inside].fill(0.0);
                }
                if run.outside < run.past {
                    row[run.outside..run.past].fill(0.0);
                }
                let to = &mut row[run.inside..run.outside];
                copy_every(to, &plane[run.from.min(plane.len())..], layout.stride[2]);
            }
        }
    }
}

#[inline(always)]
fn scatter_rows(
    layout: &Layout,
    columns: &[f32],
    pitch: usize,
    channels: usize,
    positions: Range<usize>,
    x: &mut [f32],
) {
    let mut rows = columns.chunks(pitch);
    for channel in 0..channels {
        let plane = &mut x[channel * layout.area_in()..][..layout.area_in()];
        for tap in &layout.taps {
            let row = &rows.next().expect("one row per tap")[..positions.len()];
            for run in layout.runs(tap, &positions) {
                let from = &row[run.inside..run.outside];
                let first = run.from.min(plane.len());
                if layout.stride[2] == 1 {
                    for (to, value) in plane[first..].iter_mut().zip(from) {
                        *to += *value;
                    }
                } else {
                    for (to, value) in plane[first..]
                        .iter_mut()
                        .step_by(layout.stride[2])
                        .zip(from)
                    {
                        *to += *value;
                    }
                }
            }
        }
    }
}

/// The part of an output row among the positions, as offsets from the first position on: `at..inside` and
/// `outside..past` are in the padding, the rest is in the channel from `from` on.
struct Run {
    at: usize,
    inside: usize,
    outside: usize,
    past: usize,
    from: usize,
}

/// The output rows of some positions.
struct Runs<'a> {
    layout: &'a Layout,
    tap: &'a Tap,
    slab: usize,
    row: usize,
    first: usize,
    at: usize,
    num: usize,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    #[inline(always)]
    fn next(&mut self) -> Option<Run> {
        if self.at >= self.num {
            return None;
        }
        let (tap, layout) = (self.tap, self.layout);
        let past = layout.width.min(self.first + self.num - self.at);
        // The columns inside the input, none for rows outside it.
        let (mut inside, mut outside, mut from) = (past, past, 0);
        if tap.slabs.contains(&self.slab) && tap.rows.contains(&self.row) {
            inside = tap.columns.start.max(self.first).min(past);
            outside = tap.columns.end.max(inside).min(past);
            if inside < outside {
                let [_, height, width] = layout.input;
                let slab = tap.first_slab + (self.slab - tap.slabs.start) * layout.stride[0];
                let row = tap.first_row + (self.row - tap.rows.start) * layout.stride[1];
                let column = tap.first_column + (inside - tap.columns.start) * layout.stride[2];
                from = (slab * height + row) * width + column;
            }
        }
        let shift = self.at;
        let first = self.first;
        self.at += past - first;
        self.row += 1;
        if self.row == layout.height {
            (self.slab, self.row) = (self.slab + 1, 0);
        }
        self.first = 0;
        Some(Run {
            at: shift,
            inside: shift + inside - first,
            outside: shift + outside - first,
            past: shift + past - first,
            from,
        })
    }
}

/// Copies every `stride`-th number.
#[inline(always)]
pub fn copy_every(to: &mut [f32], from: &[f32], stride: usize) {
    match stride {
        1 => copy(to, from),
        // A constant stride is vectorized.
        2 => each_of(to, from, 2),
        _ => each_of(to, from, stride),
    }
}

#[inline(always)]
fn each_of(to: &mut [f32], from: &[f32], stride: usize) {
    for (to, from) in to.iter_mut().zip(from.iter().step_by(stride)) {
        *to = *from;
    }
}

/// Copies a run, which is usually short: calling `memcpy` would take longer.
#[inline(always)]
fn copy(to: &mut [f32], from: &[f32]) {
    const STEP: usize = 16;
    let num = to.len();
    let from = &from[..num];
    if num < STEP {
        #[expect(clippy::manual_memcpy, reason = "a call takes longer")]
        for at in 0..num {
            to[at] = from[at];
        }
        return;
    }
    let mut at = 0;
    while at + STEP <= num {
        to[at..at + STEP].copy_from_slice(&from[at..at + STEP]);
        at += STEP;
    }
    // The last step overlaps the one before.
    to[num - STEP..].copy_from_slice(&from[num - STEP..]);
}
