//! Local response normalization across channels (Krizhevsky et al., 2012).

use std::mem::MaybeUninit;
use std::ops::Range;

use rayon::prelude::*;

use super::super::functions::{exp, ln};
use super::super::scratch::{self, Shared, written};
use super::super::vectors::vectorized;
use super::planes::Planes;

/// Values divided by `(k + alpha * mean)^beta`, where the mean is that of the squares of neighboring channels; those that
/// do not exist count as 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalResponse {
    /// Number of channels of a mean: the same before and after, and if it is even one more after.
    pub size: usize,
    /// Weight of the mean.
    pub alpha: f32,
    /// Exponent.
    pub beta: f32,
    /// Added to the mean; above 0.
    pub k: f32,
}

/// Positions that a task computes for all channels.
const POSITIONS: usize = 128;

impl LocalResponse {
    /// The output \[items, channels, area\].
    ///
    /// # Panics
    /// If `x` does not have as many numbers, or `size` is 0.
    pub fn forward(&self, planes: &Planes, x: &[f32]) -> Vec<f32> {
        self.each(planes, x, |positions, to| {
            divide(self, planes, &x[positions], to);
        })
    }

    /// The gradient of the input.
    ///
    /// # Panics
    /// As [`LocalResponse::forward`].
    pub fn backward(&self, planes: &Planes, x: &[f32], gradient: &[f32]) -> Vec<f32> {
        assert_eq!(gradient.len(), x.len());
        self.each(planes, x, |positions, to| {
            let gradient = &gradient[positions.clone()];
            scratch::with(2 * planes.channels * POSITIONS, |scratch| {
                pull(self, planes, &x[positions], gradient, scratch, to);
            });
        })
    }

    /// Calls with the numbers of an item from some of its first channel's positions on, for each item.
    fn each(
        &self,
        planes: &Planes,
        x: &[f32],
        compute: impl Fn(Range<usize>, Block) + Sync,
    ) -> Vec<f32> {
        assert!(self.size > 0 && x.len() == planes.num());
        let of_item = planes.channels * planes.area;
        let of_row = planes.area.div_ceil(POSITIONS);
        let write = |to: Shared| {
            let tasks = (0..planes.items * of_row).into_par_iter();
            tasks.for_each(|task| {
                let first = task % of_row * POSITIONS;
                let (from, past) = (task / of_row * of_item, (task / of_row + 1) * of_item);
                let block = Block {
                    to,
                    from: from + first,
                    num: POSITIONS.min(planes.area - first),
                };
                compute(from + first..past, block);
            });
        };
        // SAFETY: the tasks cover all positions of all channels.
        unsafe { written(x.len(), write) }
    }

    /// The channels that a channel is divided by, and those that are divided by it.
    #[inline(always)]
    fn neighbors(&self, channel: usize, channels: usize) -> [Range<usize>; 2] {
        let [fewer, more] = [(self.size - 1) / 2, self.size / 2];
        let within = |before: usize, after: usize| {
            channel.saturating_sub(before)..channels.min((channel + 1).saturating_add(after))
        };
        [within(fewer, more), within(more, fewer)]
    }

    /// For each of `num` positions, the sum of the squares that a channel is divided by.
    #[inline(always)]
    fn squares(&self, planes: &Planes, x: &[f32], channel: usize, num: usize) -> [f32; POSITIONS] {
        let [near, _] = self.neighbors(channel, planes.channels);
        let mut sums = [0.0; POSITIONS];
        for other in near {
            for (sum, x) in sums.iter_mut().zip(&x[other * planes.area..][..num]) {
                *sum += x * x;
            }
        }
        sums
    }

    /// `sum` is that of squares: the number that they are part of, and what values are multiplied by.
    #[inline(always)]
    fn factor(&self, sum: f32) -> [f32; 2] {
        let base = self.k + self.alpha / self.size as f32 * sum;
        // The usual exponent, by roots.
        let factor = if self.beta == 0.75 {
            let root = base.sqrt();
            1.0 / (root * root.sqrt())
        } else {
            exp(-self.beta * ln(base))
        };
        [base, factor]
    }
}

/// Some positions of all channels of an item, which one task writes.
struct Block {
    to: Shared,
    from: usize,
    num: usize,
}

impl Block {
    #[inline(always)]
    fn of_channel(&mut self, channel: usize, area: usize) -> &mut [MaybeUninit<f32>] {
        // SAFETY: only this task writes these positions, and this method borrows the block.
        unsafe { self.to.part(self.from + channel * area, self.num) }
    }
}

vectorized! {
    fn divide = divide_now(norm: &LocalResponse, planes: &Planes, x: &[f32], to: Block);
}

#[inline(always)]
fn divide_now(norm: &LocalResponse, planes: &Planes, x: &[f32], mut to: Block) {
    let (area, num) = (planes.area, to.num);
    for channel in 0..planes.channels {
        let sums = norm.squares(planes, x, channel, num);
        let x = &x[channel * area..][..num];
        let to = to.of_channel(channel, area);
        for ((to, x), sum) in to.iter_mut().zip(x).zip(sums) {
            let [_, factor] = norm.factor(sum);
            to.write(x * factor);
        }
    }
}

vectorized! {
    /// `scratch` has room for two numbers of each position.
    fn pull = pull_now(norm: &LocalResponse, planes: &Planes, x: &[f32], gradient: &[f32], scratch: &mut [f32], to: Block);
}

#[inline(always)]
fn pull_now(
    norm: &LocalResponse,
    planes: &Planes,
    x: &[f32],
    gradient: &[f32],
    scratch: &mut [f32],
    mut to: Block,
) {
    let (area, num, channels) = (planes.area, to.num, planes.channels);
    let (factors, shares) = scratch.split_at_mut(channels * POSITIONS);
    for channel in 0..channels {
        let sums = norm.squares(planes, x, channel, num);
        let (x, gradient) = (
            &x[channel * area..][..num],
            &gradient[channel * area..][..num],
        );
        let factors = &mut factors[channel * POSITIONS..][..num];
        let shares = &mut shares[channel * POSITIONS..][..num];
        for at in 0..num {
            let [base, factor] = norm.factor(sums[at]);
            factors[at] = factor;
            shares[at] = gradient[at] * x[at] * factor / base;
        }
    }
    let slope = 2.0 * norm.alpha * norm.beta / norm.size as f32;
    for channel in 0..channels {
        let [_, near] = norm.neighbors(channel, channels);
        let mut sums = [0.0f32; POSITIONS];
        for other in near {
            for (sum, share) in sums.iter_mut().zip(&shares[other * POSITIONS..][..num]) {
                *sum += share;
            }
        }
        let (x, gradient) = (
            &x[channel * area..][..num],
            &gradient[channel * area..][..num],
        );
        let factors = &factors[channel * POSITIONS..][..num];
        let to = to.of_channel(channel, area);
        for at in 0..num {
            to[at].write(gradient[at] * factors[at] - slope * x[at] * sums[at]);
        }
    }
}
