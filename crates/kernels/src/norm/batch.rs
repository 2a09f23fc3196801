//! Normalization of channels over a batch (Ioffe and Szegedy, 2015).

use std::ops::Range;

use rayon::prelude::*;

use super::super::reduce::{dot, dot_from, squares_from, sum, sum_from};
use super::super::scratch::{Shared, copied, written};
use super::super::vectors::vectorized;
use super::planes::{Affine, Planes, TOGETHER, scale, through};
use super::{NEAR, Statistics, is_near};

/// Normalizes each channel over the batch. Also returns the mean and the (biased) variance of each channel.
///
/// # Panics
/// If lengths do not match the sizes.
pub fn batch_forward(
    planes: &Planes,
    epsilon: f32,
    x: &[f32],
    affine: Affine<'_>,
) -> (Vec<f32>, Vec<[f32; 2]>) {
    assert_eq!(x.len(), planes.num());
    affine.assert(planes.channels);
    let mut moments = vec![[0.0; 2]; planes.channels];
    let write = |to: Shared| {
        planes.for_channels(&mut moments, |first, moments| {
            measure(planes, x, first, moments);
            let statistics = deviations(moments, epsilon);
            let affine = affine.of(first, moments.len());
            for item in 0..planes.items {
                let (at, len) = (planes.place(item, first), moments.len() * planes.area);
                // SAFETY: only this task writes these channels.
                let to = unsafe { to.part(at, len) };
                scale(&x[at..at + len], &statistics, affine, to);
            }
        });
    };
    // SAFETY: the tasks cover all channels of all items.
    let output = unsafe { written(x.len(), write) };
    (output, moments)
}

/// Each mean with the inverse of the deviation, from means and variances.
pub fn deviations(moments: &[[f32; 2]], epsilon: f32) -> Statistics {
    let each = moments.iter();
    let each = each.map(|[mean, variance]| [*mean, 1.0 / (variance + epsilon).sqrt()]);
    each.collect()
}

vectorized! {
    fn measure = measure_now(planes: &Planes, x: &[f32], first: usize, moments: &mut [[f32; 2]]);
}

#[inline(always)]
fn measure_now(planes: &Planes, x: &[f32], first: usize, moments: &mut [[f32; 2]]) {
    if let [moments] = moments {
        let mean = mean_from(planes, x, first, 0.0) as f32;
        *moments = [mean, variance_from(planes, x, first, mean)];
        if is_far(*moments) {
            let mean = mean + mean_from(planes, x, first, mean) as f32;
            *moments = [mean, variance_from(planes, x, first, mean)];
        }
        return;
    }
    let channels = first..first + moments.len();
    let mut means = means_from(planes, x, channels.clone(), &[0.0; TOGETHER]);
    let mut variances = variances_from(planes, x, channels.clone(), &means);
    let mut is_again = [false; TOGETHER];
    for at in 0..moments.len() {
        is_again[at] = is_far([means[at], variances[at]]);
    }
    if is_again.contains(&true) {
        let more = means_from(planes, x, channels.clone(), &means);
        for at in 0..moments.len() {
            means[at] += if is_again[at] { more[at] } else { 0.0 };
        }
        variances = variances_from(planes, x, channels, &means);
    }
    for (at, moments) in moments.iter_mut().enumerate() {
        *moments = [means[at], variances[at]];
    }
}

/// Whether a mean is too far from zero, in deviations, for two passes.
#[inline(always)]
fn is_far([mean, variance]: [f32; 2]) -> bool {
    mean.abs() > NEAR * variance.sqrt()
}

/// The mean difference of a channel's numbers from a number; in 64 bits over the items, so that large batches do not
/// lose precision.
#[inline(always)]
fn mean_from(planes: &Planes, x: &[f32], channel: usize, center: f32) -> f64 {
    let mut all = 0.0;
    for item in 0..planes.items {
        all += f64::from(sum_from(
            &x[planes.place(item, channel)..][..planes.area],
            center,
        ));
    }
    all / f64::from(planes.of_channel())
}

/// The variance of a channel, given its mean.
#[inline(always)]
fn variance_from(planes: &Planes, x: &[f32], channel: usize, mean: f32) -> f32 {
    let mut squares = 0.0;
    for item in 0..planes.items {
        squares += f64::from(squares_from(
            &x[planes.place(item, channel)..][..planes.area],
            mean,
        ));
    }
    (squares / f64::from(planes.of_channel())) as f32
}

/// The mean differences of adjacent channels' numbers from a number each.
#[inline(always)]
fn means_from(
    planes: &Planes,
    x: &[f32],
    channels: Range<usize>,
    centers: &[f32; TOGETHER],
) -> [f32; TOGETHER] {
    let mut means = [0.0; TOGETHER];
    for item in 0..planes.items {
        let x = &x[planes.place(item, channels.start)..][..channels.len() * planes.area];
        let sums = means.iter_mut().zip(centers);
        for ((mean, center), x) in sums.zip(x.chunks_exact(planes.area)) {
            x.iter().for_each(|x| *mean += x - center);
        }
    }
    means.map(|sum| sum / planes.of_channel())
}

/// The variances of adjacent channels, given their means.
#[inline(always)]
fn variances_from(
    planes: &Planes,
    x: &[f32],
    channels: Range<usize>,
    means: &[f32; TOGETHER],
) -> [f32; TOGETHER] {
    let mut variances = [0.0; TOGETHER];
    for item in 0..planes.items {
        let x = &x[planes.place(item, channels.start)..][..channels.len() * planes.area];
        for (at, x) in x.chunks_exact(planes.area).enumerate() {
            for x in x {
                let from = x - means[at];
                variances[at] += from * from;
            }
        }
    }
    variances.map(|squares| squares / planes.of_channel())
}

/// Normalizes each channel by given statistics: its mean and the inverse of its deviation.
///
/// # Panics
/// If lengths do not match the sizes.
pub fn batch_evaluate(
    planes: &Planes,
    x: &[f32],
    statistics: &[[f32; 2]],
    affine: Affine<'_>,
) -> Vec<f32> {
    assert!(x.len() == planes.num() && statistics.len() == planes.channels);
    affine.assert(planes.channels);
    let len = planes.channels * planes.area;
    let write = |to: Shared| {
        (0..planes.items).into_par_iter().for_each(|item| {
            // SAFETY: only this task writes this item.
            let to = unsafe { to.part(item * len, len) };
            scale(&x[item * len..][..len], statistics, affine, to);
        });
    };
    // SAFETY: the tasks cover all items.
    unsafe { written(x.len(), write) }
}

/// The gradients of the input, `gamma` and `beta` in training, given the mean and the inverse deviation of each channel.
///
/// # Panics
/// If lengths do not match the sizes.
pub fn batch_backward(
    planes: &Planes,
    x: &[f32],
    affine: Affine<'_>,
    statistics: &[[f32; 2]],
    gradient: &[f32],
) -> [Vec<f32>; 3] {
    assert!(x.len() == planes.num() && gradient.len() == planes.num());
    assert_eq!(statistics.len(), planes.channels);
    affine.assert(planes.channels);
    let mut sums = vec![[0.0; 2]; planes.channels];
    let write = |to: Shared| {
        planes.for_channels(&mut sums, |first, sums| {
            let num = sums.len();
            let (statistics, affine) = (&statistics[first..first + num], affine.of(first, num));
            let mut found = Sums::default();
            let items = |item: usize| {
                let at = planes.place(item, first);
                at..at + num * planes.area
            };
            for numbers in (0..planes.items).map(items) {
                // SAFETY: only this task writes these channels.
                let to = unsafe { to.part(numbers.start, numbers.len()) };
                let of_x = copied(to, &gradient[numbers.clone()]);
                through(&x[numbers.clone()], statistics, affine, of_x);
                add(&x[numbers], statistics, of_x, &mut found);
            }
            found.write(statistics, sums);
            for numbers in (0..planes.items).map(items) {
                // SAFETY: as above; all of it was written there.
                let of_x = unsafe { to.part(numbers.start, numbers.len()).assume_init_mut() };
                input_back(planes, &x[numbers], affine.gamma, statistics, sums, of_x);
            }
        });
    };
    // SAFETY: the tasks cover all channels of all items.
    let of_x = unsafe { written(x.len(), write) };
    let [of_gamma, of_beta] = [0, 1].map(|which| sums.iter().map(|sum| sum[which]).collect());
    [of_x, of_gamma, of_beta]
}

/// Sums of gradients of adjacent channels.
struct Sums {
    /// Of one channel: the gradients, and their products with the centered input. In 64 bits over the items.
    wide: [f64; 2],
    /// Of several: the gradients' products with the normalized input.
    gammas: [f32; TOGETHER],
    /// Of several: the gradients.
    betas: [f32; TOGETHER],
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            wide: [0.0; 2],
            gammas: [0.0; TOGETHER],
            betas: [0.0; TOGETHER],
        }
    }
}

impl Sums {
    /// The gradients of `gamma` and `beta` of each channel.
    fn write(&self, statistics: &[[f32; 2]], to: &mut [[f32; 2]]) {
        if let ([to], [[_, inverse]]) = (&mut *to, statistics) {
            let [all, along] = self.wide;
            *to = [(along * f64::from(*inverse)) as f32, all as f32];
            return;
        }
        for (at, to) in to.iter_mut().enumerate() {
            *to = [self.gammas[at], self.betas[at]];
        }
    }
}

vectorized! {
    fn add = add_now(x: &[f32], statistics: &[[f32; 2]], gradient: &[f32], sums: &mut Sums);
}

/// Adds the gradients of one item.
#[inline(always)]
fn add_now(x: &[f32], statistics: &[[f32; 2]], gradient: &[f32], sums: &mut Sums) {
    if let [[mean, inverse]] = statistics {
        let part = sum(gradient);
        sums.wide[0] += f64::from(part);
        sums.wide[1] += if is_near(*mean, *inverse) {
            f64::from(dot(gradient, x)) - f64::from(*mean) * f64::from(part)
        } else {
            f64::from(dot_from(gradient, x, *mean))
        };
        return;
    }
    let area = x.len() / statistics.len();
    let rows = x.chunks_exact(area).zip(gradient.chunks_exact(area));
    for (at, (x, gradient)) in rows.enumerate() {
        let [mean, inverse] = statistics[at];
        for (x, gradient) in x.iter().zip(gradient) {
            sums.gammas[at] += gradient * ((x - mean) * inverse);
            sums.betas[at] += gradient;
        }
    }
}

vectorized! {
    fn input_back = input_back_now(planes: &Planes, x: &[f32], gamma: &[f32], statistics: &[[f32; 2]], sums: &[[f32; 2]], gradient: &mut [f32]);
}

/// The gradients of normalized numbers become those of the input.
#[inline(always)]
fn input_back_now(
    planes: &Planes,
    x: &[f32],
    gamma: &[f32],
    statistics: &[[f32; 2]],
    sums: &[[f32; 2]],
    gradient: &mut [f32],
) {
    let area = planes.area;
    for (at, [mean, inverse]) in statistics.iter().enumerate() {
        let scale = gamma[at] * inverse;
        let [along, even] = sums[at].map(|sum| sum / planes.of_channel());
        let x = &x[at * area..][..area];
        for (gradient, x) in gradient[at * area..][..area].iter_mut().zip(x) {
            *gradient = (*gradient - even - (x - mean) * inverse * along) * scale;
        }
    }
}
