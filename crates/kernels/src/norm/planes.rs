//! What norms of channels share: sizes, and the last step, which scales each channel and may apply an activation.

use std::mem::MaybeUninit;

use rayon::prelude::*;

use super::super::activation::{Activation, apply_to_piece, backward_of_piece};
use super::super::vectors::vectorized;

/// The sizes of \[items, channels, area\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planes {
    /// Items of the batch.
    pub items: usize,
    /// Channels of an item.
    pub channels: usize,
    /// Positions of a channel.
    pub area: usize,
}

/// What normalized numbers become, channel by channel: times `gamma`, plus `beta`, and then an activation, which reads
/// them while they are in a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine<'a> {
    /// A factor for each channel.
    pub gamma: &'a [f32],
    /// A summand for each channel.
    pub beta: &'a [f32],
    /// The activation, if there is one.
    pub then: Option<Activation>,
}

impl Affine<'_> {
    /// The same for some of the channels.
    pub(super) fn of(self, first: usize, num: usize) -> Self {
        Self {
            gamma: &self.gamma[first..first + num],
            beta: &self.beta[first..first + num],
            ..self
        }
    }

    /// # Panics
    /// If there are not as many channels.
    pub(super) fn assert(&self, channels: usize) {
        assert!(self.gamma.len() == channels && self.beta.len() == channels);
    }
}

/// Adjacent channels with few positions are processed together.
const WIDE: usize = 16;

/// How many of them, at most.
pub(super) const TOGETHER: usize = 64;

impl Planes {
    /// The number of elements.
    pub fn num(&self) -> usize {
        self.items * self.channels * self.area
    }

    /// Numbers of a channel in the whole batch.
    pub(super) fn of_channel(&self) -> f32 {
        (self.items * self.area) as f32
    }

    /// Calls a function with the first channel of each group of channels and their part of `of_channels`, on several
    /// threads.
    pub(super) fn for_channels<T: Send>(
        &self,
        of_channels: &mut [T],
        call: impl Fn(usize, &mut [T]) + Send + Sync,
    ) {
        let step = if self.area < WIDE { TOGETHER } else { 1 };
        let parts = of_channels.par_chunks_mut(step).enumerate();
        parts.for_each(|(part, of_channels)| call(part * step, of_channels));
    }

    /// The place of a channel of an item.
    #[inline(always)]
    pub(super) fn place(&self, item: usize, channel: usize) -> usize {
        (item * self.channels + channel) * self.area
    }
}

vectorized! {
    /// Normalizes channels by their means and the inverses of their deviations.
    pub(super) fn scale = scale_now(x: &[f32], statistics: &[[f32; 2]], affine: Affine<'_>, to: &mut [MaybeUninit<f32>]);
}

#[inline(always)]
fn scale_now(x: &[f32], statistics: &[[f32; 2]], affine: Affine<'_>, to: &mut [MaybeUninit<f32>]) {
    let channels = statistics.len();
    let (gamma, beta) = (&affine.gamma[..channels], &affine.beta[..channels]);
    let area = x.len() / channels.max(1);
    let to = &mut to[..channels * area];
    if area == 1 {
        let x = &x[..channels];
        for at in 0..channels {
            let [mean, inverse] = statistics[at];
            to[at].write((x[at] - mean) * (inverse * gamma[at]) + beta[at]);
        }
    } else {
        for at in 0..channels {
            let [mean, inverse] = statistics[at];
            let (scale, shift) = (inverse * gamma[at], beta[at]);
            let x = &x[at * area..][..area];
            for (to, x) in to[at * area..][..area].iter_mut().zip(x) {
                to.write((x - mean) * scale + shift);
            }
        }
    }
    if let Some(then) = affine.then {
        // SAFETY: all of it was written above.
        apply_to_piece(then, unsafe { to.assume_init_mut() });
    }
}

/// Numbers of which what an activation read is computed again at once.
const BLOCK: usize = 1 << 10;

/// Multiplies the gradient of what [`scale`] computed by the derivative of its activation.
pub(super) fn through(
    x: &[f32],
    statistics: &[[f32; 2]],
    affine: Affine<'_>,
    gradient: &mut [f32],
) {
    let Some(then) = affine.then else {
        return;
    };
    let again = Affine {
        then: Some(then).filter(|then| then.keeps_output()),
        ..affine
    };
    let channels = statistics.len();
    let area = (x.len() / channels.max(1)).max(1);
    let at_once = (BLOCK / area).max(1);
    let mut seen = [MaybeUninit::uninit(); BLOCK];
    for first in (0..channels).step_by(at_once) {
        let num = at_once.min(channels - first);
        let (statistics, again) = (&statistics[first..first + num], again.of(first, num));
        let numbers = first * area..(first + num) * area;
        // A channel with many positions has several blocks.
        let blocks = gradient[numbers.clone()].chunks_mut(BLOCK);
        for (gradient, x) in blocks.zip(x[numbers].chunks(BLOCK)) {
            let seen = &mut seen[..x.len()];
            scale(x, statistics, again, seen);
            // SAFETY: all of it was written.
            backward_of_piece(then, unsafe { seen.assume_init_ref() }, gradient);
        }
    }
}
