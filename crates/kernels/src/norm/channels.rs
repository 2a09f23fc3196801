//! Normalization of channels: over a batch, or in groups within an item.

use std::mem::MaybeUninit;

use rayon::prelude::*;

use super::super::reduce::{dot, squares_from, sum};
use super::super::scratch::{Shared, written};
use super::super::vectors::vectorized;
use super::Statistics;

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

/// Adjacent channels with few positions are processed together.
const WIDE: usize = 16;

impl Planes {
    /// The number of elements.
    pub fn num(&self) -> usize {
        self.items * self.channels * self.area
    }

    /// Numbers of a channel in the whole batch.
    fn of_channel(&self) -> f32 {
        (self.items * self.area) as f32
    }

    /// Calls a function with the first channel and the size of each group of channels, on several threads.
    fn for_channels(&self, call: impl Fn(usize, usize) + Sync) {
        let step = if self.area < WIDE { 64 } else { 1 };
        let parts = (0..self.channels.div_ceil(step)).into_par_iter();
        parts.for_each(|part| call(part * step, step.min(self.channels - part * step)));
    }

    /// The rows of one item for the channels starting at `first`.
    #[inline(always)]
    fn place(&self, item: usize, channel: usize) -> usize {
        (item * self.channels + channel) * self.area
    }
}

/// The mean and the (biased) variance of each channel.
///
/// # Panics
/// If lengths do not match the sizes as the sizes say.
pub fn batch_statistics(planes: &Planes, x: &[f32]) -> [Vec<f32>; 2] {
    assert_eq!(x.len(), planes.num());
    let mut variances = Vec::new();
    let write = |means: Shared| {
        let write = |variances: Shared| {
            planes.for_channels(|first, num| {
                // SAFETY: only this task writes these channels.
                let [means, variances] =
                    unsafe { [means, variances].map(|to| to.filled(first, num, 0.0)) };
                moments(planes, x, first, means, variances);
            });
        };
        // SAFETY: the tasks cover all channels.
        variances = unsafe { written(planes.channels, write) };
    };
    // SAFETY: as above.
    let means = unsafe { written(planes.channels, write) };
    [means, variances]
}

vectorized! {
    fn moments = moments_now(planes: &Planes, x: &[f32], first: usize, means: &mut [f32], variances: &mut [f32]);
}

#[inline(always)]
fn moments_now(planes: &Planes, x: &[f32], first: usize, means: &mut [f32], variances: &mut [f32]) {
    let num = means.len();
    let variances = &mut variances[..num];
    let (area, of_channel) = (planes.area, planes.of_channel());
    if num == 1 {
        // In 64 bits over the items, so that large batches do not lose precision.
        let (mut all, mut squares) = (0.0f64, 0.0f64);
        for item in 0..planes.items {
            all += f64::from(sum(&x[planes.place(item, first)..][..area]));
        }
        means[0] = (all / f64::from(of_channel)) as f32;
        for item in 0..planes.items {
            squares += f64::from(squares_from(
                &x[planes.place(item, first)..][..area],
                means[0],
            ));
        }
        variances[0] = (squares / f64::from(of_channel)) as f32;
        return;
    }
    for item in 0..planes.items {
        let x = &x[planes.place(item, first)..][..num * area];
        for (mean, x) in means.iter_mut().zip(x.chunks_exact(area)) {
            x.iter().for_each(|x| *mean += x);
        }
    }
    means.iter_mut().for_each(|mean| *mean /= of_channel);
    for item in 0..planes.items {
        let x = &x[planes.place(item, first)..][..num * area];
        for (at, x) in x.chunks_exact(area).enumerate() {
            for x in x {
                let from = x - means[at];
                variances[at] += from * from;
            }
        }
    }
    variances
        .iter_mut()
        .for_each(|variance| *variance /= of_channel);
}

/// Each channel minus its mean, times `scale`, plus `shift`; `scale` is `gamma` divided by the deviation.
///
/// # Panics
/// If lengths do not match the sizes.
pub fn batch_forward(
    planes: &Planes,
    x: &[f32],
    means: &[f32],
    scale: &[f32],
    shift: &[f32],
) -> Vec<f32> {
    assert_eq!(x.len(), planes.num());
    assert!(
        [means, scale, shift]
            .iter()
            .all(|values| values.len() == planes.channels)
    );
    let item_len = planes.channels * planes.area;
    let write = |to: Shared| {
        (0..planes.items).into_par_iter().for_each(|item| {
            // SAFETY: only this task writes this item.
            let to = unsafe { to.part(item * item_len, item_len) };
            scale_channels(&x[item * item_len..][..item_len], means, scale, shift, to);
        });
    };
    // SAFETY: the tasks cover all items.
    unsafe { written(x.len(), write) }
}

vectorized! {
    fn scale_channels = scale_now(x: &[f32], means: &[f32], scale: &[f32], shift: &[f32], to: &mut [MaybeUninit<f32>]);
}

#[inline(always)]
fn scale_now(x: &[f32], means: &[f32], scale: &[f32], shift: &[f32], to: &mut [MaybeUninit<f32>]) {
    let channels = means.len();
    let (scale, shift) = (&scale[..channels], &shift[..channels]);
    let area = x.len() / channels.max(1);
    if area == 1 {
        let (x, to) = (&x[..channels], &mut to[..channels]);
        for at in 0..channels {
            to[at].write((x[at] - means[at]) * scale[at] + shift[at]);
        }
        return;
    }
    for at in 0..channels {
        let (mean, scale, shift) = (means[at], scale[at], shift[at]);
        let x = &x[at * area..][..area];
        let to = &mut to[at * area..][..area];
        for (to, x) in to.iter_mut().zip(x) {
            to.write((x - mean) * scale + shift);
        }
    }
}

/// The gradients of the input, `gamma` and `beta` of a batch norm in training, given the mean and the inverse deviation
/// of each channel.
///
/// # Panics
/// If lengths do not match the sizes.
pub fn batch_backward(
    planes: &Planes,
    x: &[f32],
    gamma: &[f32],
    statistics: &[[f32; 2]],
    gradient: &[f32],
) -> [Vec<f32>; 3] {
    assert!(x.len() == planes.num() && gradient.len() == planes.num());
    assert!(gamma.len() == planes.channels && statistics.len() == planes.channels);
    let (mut of_gamma, mut of_beta) = (Vec::new(), Vec::new());
    let write = |to: Shared| {
        let write = |gammas: Shared| {
            let write = |betas: Shared| {
                planes.for_channels(|first, num| {
                    // SAFETY: only this task writes these channels.
                    let [gammas, betas] =
                        unsafe { [gammas, betas].map(|to| to.filled(first, num, 0.0)) };
                    sums_back(
                        planes,
                        x,
                        &statistics[first..first + num],
                        gradient,
                        first,
                        gammas,
                        betas,
                    );
                    for item in 0..planes.items {
                        let at = planes.place(item, first);
                        // SAFETY: as above.
                        let to = unsafe { to.part(at, num * planes.area) };
                        let range = at..at + num * planes.area;
                        let channels = first..first + num;
                        input_back(
                            planes,
                            &x[range.clone()],
                            &gamma[channels.clone()],
                            &statistics[channels],
                            &gradient[range],
                            gammas,
                            betas,
                            to,
                        );
                    }
                });
            };
            // SAFETY: the tasks cover all channels.
            of_beta = unsafe { written(planes.channels, write) };
        };
        // SAFETY: as above.
        of_gamma = unsafe { written(planes.channels, write) };
    };
    // SAFETY: as above, of all items.
    let of_x = unsafe { written(x.len(), write) };
    [of_x, of_gamma, of_beta]
}

vectorized! {
    fn sums_back = sums_back_now(planes: &Planes, x: &[f32], statistics: &[[f32; 2]], gradient: &[f32], first: usize, gammas: &mut [f32], betas: &mut [f32]);
}

#[inline(always)]
fn sums_back_now(
    planes: &Planes,
    x: &[f32],
    statistics: &[[f32; 2]],
    gradient: &[f32],
    first: usize,
    gammas: &mut [f32],
    betas: &mut [f32],
) {
    let (num, area) = (statistics.len(), planes.area);
    if num == 1 {
        let [mean, inverse] = statistics[0];
        let (mut all, mut along) = (0.0f64, 0.0f64);
        for item in 0..planes.items {
            let at = planes.place(item, first);
            let (x, gradient) = (&x[at..][..area], &gradient[at..][..area]);
            let (part, products) = (sum(gradient), dot(gradient, x));
            all += f64::from(part);
            along += f64::from(products) - f64::from(mean) * f64::from(part);
        }
        betas[0] = all as f32;
        gammas[0] = (along * f64::from(inverse)) as f32;
        return;
    }
    let (gammas, betas) = (&mut gammas[..num], &mut betas[..num]);
    for item in 0..planes.items {
        let at = planes.place(item, first);
        let rows = x[at..][..num * area]
            .chunks_exact(area)
            .zip(gradient[at..][..num * area].chunks_exact(area));
        for (at, (x, gradient)) in rows.enumerate() {
            let [mean, inverse] = statistics[at];
            for (x, gradient) in x.iter().zip(gradient) {
                gammas[at] += gradient * ((x - mean) * inverse);
                betas[at] += gradient;
            }
        }
    }
}

vectorized! {
    fn input_back = input_back_now(planes: &Planes, x: &[f32], gamma: &[f32], statistics: &[[f32; 2]], gradient: &[f32], gammas: &[f32], betas: &[f32], to: &mut [MaybeUninit<f32>]);
}

#[inline(always)]
#[allow(
    clippy::too_many_arguments,
    reason = "slices of the same channels each"
)]
fn input_back_now(
    planes: &Planes,
    x: &[f32],
    gamma: &[f32],
    statistics: &[[f32; 2]],
    gradient: &[f32],
    gammas: &[f32],
    betas: &[f32],
    to: &mut [MaybeUninit<f32>],
) {
    let area = planes.area;
    for (at, [mean, inverse]) in statistics.iter().enumerate() {
        let scale = gamma[at] * inverse;
        let (even, along) = (
            betas[at] / planes.of_channel(),
            gammas[at] / planes.of_channel(),
        );
        let x = &x[at * area..][..area];
        let gradient = &gradient[at * area..][..area];
        let to = &mut to[at * area..][..area];
        for ((to, x), gradient) in to.iter_mut().zip(x).zip(gradient) {
            to.write((gradient - even - (x - mean) * inverse * along) * scale);
        }
    }
}

/// Normalizes groups of channels of each item, times `gamma` and plus `beta` of the channel (Wu and He, 2018).
///
/// # Panics
/// If lengths do not match the sizes, or groups do not have equal numbers of channels.
pub fn group_forward(
    planes: &Planes,
    groups: usize,
    epsilon: f32,
    x: &[f32],
    gamma: &[f32],
    beta: &[f32],
) -> (Vec<f32>, Statistics) {
    assert!(x.len() == planes.num() && groups > 0 && planes.channels.is_multiple_of(groups));
    assert!(gamma.len() == planes.channels && beta.len() == planes.channels);
    let of_group = planes.channels / groups;
    let len = of_group * planes.area;
    let mut statistics = vec![[0.0; 2]; planes.items * groups];
    let write = |to: Shared| {
        statistics
            .par_iter_mut()
            .enumerate()
            .for_each(|(at, statistics)| {
                // SAFETY: only this task writes this group.
                let to = unsafe { to.part(at * len, len) };
                let first = at % groups * of_group;
                let channels = first..first + of_group;
                normalize_group(
                    epsilon,
                    &x[at * len..][..len],
                    &gamma[channels.clone()],
                    &beta[channels],
                    statistics,
                    to,
                );
            });
    };
    // SAFETY: the tasks cover all groups.
    let output = unsafe { written(x.len(), write) };
    (output, statistics)
}

vectorized! {
    fn normalize_group = normalize_group_now(epsilon: f32, x: &[f32], gamma: &[f32], beta: &[f32], statistics: &mut [f32; 2], to: &mut [MaybeUninit<f32>]);
}

#[inline(always)]
fn normalize_group_now(
    epsilon: f32,
    x: &[f32],
    gamma: &[f32],
    beta: &[f32],
    statistics: &mut [f32; 2],
    to: &mut [MaybeUninit<f32>],
) {
    if x.is_empty() {
        return;
    }
    let mean = sum(x) / x.len() as f32;
    let inverse = 1.0 / (squares_from(x, mean) / x.len() as f32 + epsilon).sqrt();
    let area = x.len() / gamma.len();
    for (at, (gamma, beta)) in gamma.iter().zip(beta).enumerate() {
        let x = &x[at * area..][..area];
        for (to, x) in to[at * area..][..area].iter_mut().zip(x) {
            to.write((x - mean) * inverse * gamma + beta);
        }
    }
    *statistics = [mean, inverse];
}

/// The gradients of the input, `gamma` and `beta`.
///
/// # Panics
/// As [`group_forward`].
pub fn group_backward(
    planes: &Planes,
    groups: usize,
    x: &[f32],
    gamma: &[f32],
    statistics: &[[f32; 2]],
    gradient: &[f32],
) -> [Vec<f32>; 3] {
    assert!(x.len() == planes.num() && gradient.len() == planes.num());
    assert!(groups > 0 && planes.channels.is_multiple_of(groups) && gamma.len() == planes.channels);
    assert_eq!(statistics.len(), planes.items * groups);
    let of_group = planes.channels / groups;
    let len = of_group * planes.area;
    // Each item's part of the gradients of `gamma` and `beta`, channel by channel.
    let mut parts = vec![[0.0; 2]; planes.items * planes.channels];
    let write = |to: Shared| {
        let tasks = parts.par_chunks_mut(of_group.max(1)).enumerate();
        tasks.for_each(|(at, parts)| {
            // SAFETY: only this task writes this group.
            let to = unsafe { to.part(at * len, len) };
            let first = at % groups * of_group;
            let gamma = &gamma[first..first + of_group];
            group_back(
                &x[at * len..][..len],
                gamma,
                &statistics[at],
                &gradient[at * len..][..len],
                parts,
                to,
            );
        });
    };
    // SAFETY: the tasks cover all groups.
    let of_x = unsafe { written(x.len(), write) };
    let mut sums = [vec![0.0; planes.channels], vec![0.0; planes.channels]];
    for (at, part) in parts.iter().enumerate() {
        for (sums, part) in sums.iter_mut().zip(part) {
            sums[at % planes.channels] += part;
        }
    }
    let [of_gamma, of_beta] = sums;
    [of_x, of_gamma, of_beta]
}

vectorized! {
    fn group_back = group_back_now(x: &[f32], gamma: &[f32], statistics: &[f32; 2], gradient: &[f32], parts: &mut [[f32; 2]], to: &mut [MaybeUninit<f32>]);
}

#[inline(always)]
fn group_back_now(
    x: &[f32],
    gamma: &[f32],
    statistics: &[f32; 2],
    gradient: &[f32],
    parts: &mut [[f32; 2]],
    to: &mut [MaybeUninit<f32>],
) {
    let area = x.len() / gamma.len().max(1);
    let [mean, inverse] = *statistics;
    let (mut even, mut along) = (0.0, 0.0);
    for (at, (part, gamma)) in parts.iter_mut().zip(gamma).enumerate() {
        let (x, gradient) = (&x[at * area..][..area], &gradient[at * area..][..area]);
        let all = sum(gradient);
        let products = (dot(gradient, x) - mean * all) * inverse;
        *part = [products, all];
        even += gamma * all;
        along += gamma * products;
    }
    let (even, along) = (even / x.len() as f32, along / x.len() as f32);
    for (at, gamma) in gamma.iter().enumerate() {
        let (x, gradient) = (&x[at * area..][..area], &gradient[at * area..][..area]);
        for ((to, x), gradient) in to[at * area..][..area].iter_mut().zip(x).zip(gradient) {
            to.write((gradient * gamma - even - (x - mean) * inverse * along) * inverse);
        }
    }
}
