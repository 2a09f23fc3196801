//! Rows of numbers.

use std::f64::consts::{PI, TAU};

use super::{Item, normal, uniform};

/// Classes take turns, so that there are equally many of each.
pub fn blob(item: &mut Item<'_>, num_classes: usize, num_features: usize, noise: f64) {
    let class = item.at % num_classes;
    let mut shared = item.shared();
    // Centres are drawn in order, and the item's own is the one of its class.
    let centres = (0..num_classes * num_features).map(|_| 8.0 * uniform(&mut shared) - 4.0);
    let centre: Vec<f64> = centres
        .skip(class * num_features)
        .take(num_features)
        .collect();
    for middle in centre {
        let value = middle + noise * normal(&mut item.rng);
        item.number(value);
    }
    item.class(class as i32);
}

/// Half a circle, or its mirror image moved into it.
pub fn moon(item: &mut Item<'_>, noise: f64) {
    let class = item.at % 2;
    let angle = PI * uniform(&mut item.rng);
    let (x, y) = match class {
        0 => (angle.cos(), angle.sin()),
        _ => (1.0 - angle.cos(), 0.5 - angle.sin()),
    };
    for value in [x, y] {
        let value = value + noise * normal(&mut item.rng);
        item.number(value);
    }
    item.class(class as i32);
}

/// One and a half turns from the middle outwards.
pub fn spiral(item: &mut Item<'_>, num_classes: usize, noise: f64) {
    let class = item.at % num_classes;
    let radius = uniform(&mut item.rng);
    let angle = TAU * (1.5 * radius + class as f64 / num_classes as f64);
    for value in [radius * angle.cos(), radius * angle.sin()] {
        let value = value + noise * normal(&mut item.rng);
        item.number(value);
    }
    item.class(class as i32);
}

/// For each target a plane, a wave along another direction, and noise; an outlier is off by some ten times
/// what targets vary.
pub fn regression(
    item: &mut Item<'_>,
    num_features: usize,
    num_targets: usize,
    noise: f64,
    outliers: f64,
) {
    let features: Vec<f64> = (0..num_features).map(|_| normal(&mut item.rng)).collect();
    features.iter().for_each(|value| item.number(*value));
    let mut shared = item.shared();
    let scale = 1.0 / (num_features as f64).sqrt();
    for _ in 0..num_targets {
        let mut along = || -> f64 {
            let weighted = features.iter().map(|value| value * normal(&mut shared));
            weighted.sum::<f64>() * scale
        };
        let (plane, wave) = (along(), along());
        let mut value = plane + 0.5 * (2.0 * wave).sin() + noise * normal(&mut item.rng);
        if uniform(&mut item.rng) < outliers {
            value += 10.0 * normal(&mut item.rng);
        }
        item.target(value);
    }
}
