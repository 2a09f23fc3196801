//! Rows of numbers.

use super::{Item, below, normal, turn, uniform};

/// Classes alternate, so that there are equally many of each.
pub fn blob(item: &mut Item<'_>, num_classes: usize, num_features: usize, noise: f64) {
    let class = item.at % num_classes;
    let mut shared = item.shared();
    // Centers are sampled in order; the item uses the one of its class.
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
    let (sine, cosine) = turn(0.5 * uniform(&mut item.rng));
    let (x, y) = match class {
        0 => (cosine, sine),
        _ => (1.0 - cosine, 0.5 - sine),
    };
    for value in [x, y] {
        let value = value + noise * normal(&mut item.rng);
        item.number(value);
    }
    item.class(class as i32);
}

/// One and a half turns from the center outwards.
pub fn spiral(item: &mut Item<'_>, num_classes: usize, noise: f64) {
    let class = item.at % num_classes;
    let radius = uniform(&mut item.rng);
    let (sine, cosine) = turn(1.5 * radius + class as f64 / num_classes as f64);
    for value in [radius * cosine, radius * sine] {
        let value = value + noise * normal(&mut item.rng);
        item.number(value);
    }
    item.class(class as i32);
}

/// Trials of a count.
const NUM_CHANCES: usize = 20;

/// For each target a plane, a wave along another direction, and noise; or a count whose mean is derived from them, from
/// 0 to 6. An outlier is off by ten times the spread of targets.
pub fn regression(
    item: &mut Item<'_>,
    (num_features, num_targets): (usize, usize),
    noise: f64,
    outliers: f64,
    is_counted: bool,
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
        let score = plane + 0.5 * turn(wave / 3.0).0 + noise * normal(&mut item.rng);
        let is_outlier = uniform(&mut item.rng) < outliers;
        let target = match is_counted {
            true => {
                let mean = 3.0 * (1.0 + score / (1.0 + score.abs()));
                let chance = mean / NUM_CHANCES as f64;
                let hits = (0..NUM_CHANCES).filter(|_| uniform(&mut item.rng) < chance);
                let count = hits.count() as f64;
                if is_outlier { 10.0 * count } else { count }
            }
            false if is_outlier => {
                score
                    + if below(&mut item.rng, 2) == 0 {
                        10.0
                    } else {
                        -10.0
                    }
            }
            false => score,
        };
        item.target(target);
    }
}
