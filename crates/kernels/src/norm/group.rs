//! Normalization of groups of channels of each item (Wu and He, 2018).

use std::mem::MaybeUninit;

use rayon::prelude::*;

use super::super::reduce::sum;
use super::super::scratch::{Shared, copied, written};
use super::super::vectors::vectorized;
use super::planes::{Affine, Planes, scale, through};
use super::{Statistics, centered, statistics_of};

/// Normalizes groups of channels of each item.
///
/// # Panics
/// If lengths do not match the sizes, or groups do not have equal numbers of channels.
pub fn group_forward(
    planes: &Planes,
    groups: usize,
    epsilon: f32,
    x: &[f32],
    affine: Affine<'_>,
) -> (Vec<f32>, Statistics) {
    assert!(x.len() == planes.num() && groups > 0 && planes.channels.is_multiple_of(groups));
    affine.assert(planes.channels);
    let of_group = planes.channels / groups;
    let len = of_group * planes.area;
    let mut statistics = vec![[0.0; 2]; planes.items * groups];
    let write = |to: Shared| {
        let tasks = statistics.par_iter_mut().enumerate();
        tasks.for_each(|(at, statistics)| {
            // SAFETY: only this task writes this group.
            let to = unsafe { to.part(at * len, len) };
            let affine = affine.of(at % groups * of_group, of_group);
            normalize_group(epsilon, &x[at * len..][..len], affine, statistics, to);
        });
    };
    // SAFETY: the tasks cover all groups.
    let output = unsafe { written(x.len(), write) };
    (output, statistics)
}

vectorized! {
    fn normalize_group = normalize_group_now(epsilon: f32, x: &[f32], affine: Affine<'_>, statistics: &mut [f32; 2], to: &mut [MaybeUninit<f32>]);
}

#[inline(always)]
fn normalize_group_now(
    epsilon: f32,
    x: &[f32],
    affine: Affine<'_>,
    statistics: &mut [f32; 2],
    to: &mut [MaybeUninit<f32>],
) {
    if x.is_empty() {
        return;
    }
    *statistics = statistics_of(x, epsilon);
    scale(x, &vec![*statistics; affine.gamma.len()], affine, to);
}

/// The gradients of the input, `gamma` and `beta`.
///
/// # Panics
/// As [`group_forward`].
pub fn group_backward(
    planes: &Planes,
    groups: usize,
    x: &[f32],
    affine: Affine<'_>,
    statistics: &[[f32; 2]],
    gradient: &[f32],
) -> [Vec<f32>; 3] {
    assert!(x.len() == planes.num() && gradient.len() == planes.num());
    assert!(groups > 0 && planes.channels.is_multiple_of(groups));
    assert_eq!(statistics.len(), planes.items * groups);
    affine.assert(planes.channels);
    let of_group = planes.channels / groups;
    let len = of_group * planes.area;
    // Each item's part of the gradients of `gamma` and `beta`, channel by channel.
    let mut parts = vec![[0.0; 2]; planes.items * planes.channels];
    let write = |to: Shared| {
        let tasks = parts.par_chunks_mut(of_group.max(1)).enumerate();
        tasks.for_each(|(at, parts)| {
            let affine = affine.of(at % groups * of_group, of_group);
            let (x, gradient) = (&x[at * len..][..len], &gradient[at * len..][..len]);
            // SAFETY: only this task writes this group.
            let of_x = copied(unsafe { to.part(at * len, len) }, gradient);
            through(x, &vec![statistics[at]; of_group], affine, of_x);
            group_back(x, affine.gamma, &statistics[at], parts, of_x);
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
    fn group_back = group_back_now(x: &[f32], gamma: &[f32], statistics: &[f32; 2], parts: &mut [[f32; 2]], gradient: &mut [f32]);
}

/// The gradients of normalized numbers become those of the input.
#[inline(always)]
fn group_back_now(
    x: &[f32],
    gamma: &[f32],
    statistics: &[f32; 2],
    parts: &mut [[f32; 2]],
    gradient: &mut [f32],
) {
    let area = x.len() / gamma.len().max(1);
    let [mean, inverse] = *statistics;
    let (mut even, mut along) = (0.0, 0.0);
    for (at, (part, gamma)) in parts.iter_mut().zip(gamma).enumerate() {
        let (x, gradient) = (&x[at * area..][..area], &gradient[at * area..][..area]);
        let all = sum(gradient);
        let products = centered(gradient, x, *statistics, all) * inverse;
        *part = [products, all];
        even += gamma * all;
        along += gamma * products;
    }
    let (even, along) = (even / x.len() as f32, along / x.len() as f32);
    for (at, gamma) in gamma.iter().enumerate() {
        let x = &x[at * area..][..area];
        for (gradient, x) in gradient[at * area..][..area].iter_mut().zip(x) {
            *gradient = (*gradient * gamma - even - (x - mean) * inverse * along) * inverse;
        }
    }
}
