//! Normalization of channels over a batch (Ioffe and Szegedy, 2015).

use rayon::prelude::*;

use super::super::reduce::{dot, squares_from, sum};
use super::super::scratch::{Shared, copied, written};
use super::super::vectors::vectorized;
use super::Statistics;
use super::planes::{Affine, Planes, TOGETHER, scale, through};

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
    let num = moments.len();
    let (area, of_channel) = (planes.area, planes.of_channel());
    if num == 1 {
        // In 64 bits over the items, so that large batches do not lose precision.
        let of_item = |item: usize| &x[planes.place(item, first)..][..area];
        let (mut all, mut squares) = (0.0f64, 0.0f64);
        for item in 0..planes.items {
            all += f64::from(sum(of_item(item)));
        }
        let mean = (all / f64::from(of_channel)) as f32;
        for item in 0..planes.items {
            squares += f64::from(squares_from(of_item(item), mean));
        }
        moments[0] = [mean, (squares / f64::from(of_channel)) as f32];
        return;
    }
    let (mut means, mut variances) = ([0.0; TOGETHER], [0.0; TOGETHER]);
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
    for (at, moments) in moments.iter_mut().enumerate() {
        *moments = [means[at], variances[at] / of_channel];
    }
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
    if let [[mean, _]] = statistics {
        let (part, products) = (sum(gradient), dot(gradient, x));
        sums.wide[0] += f64::from(part);
        sums.wide[1] += f64::from(products) - f64::from(*mean) * f64::from(part);
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
