//! The BCa bootstrap interval for a mean (Efron, 1987).

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use super::distribution::{normal_cdf, normal_quantile};
use super::sample::{Interval, IntervalMethod, is_constant, mean};
use super::{Refusal, check_level, check_values, finite};

/// The number of resamples for a BCa interval. Efron recommends at least 1000; with ten times as many, the ends do not
/// visibly depend on the samples.
pub const NUM_RESAMPLES: usize = 10_000;
/// The minimum number of values for a BCa interval. Two have no skewness, and only three different resampled means.
pub const LEAST_FOR_BCA: usize = 3;
/// The seed of resamples. A constant: equal samples get equal intervals.
const SEED: u64 = 1987;

/// See [`Interval::bca`].
pub fn bca(values: &[f64], level: f64) -> Result<Interval, Refusal> {
    check_level(level)?;
    check_values(values, LEAST_FOR_BCA)?;
    if is_constant(values) {
        return Err(Refusal::NoSpread);
    }
    // Sorted, so that the interval depends on the values and not on their order.
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let observed = mean(&values)?;
    let means = resampled_means(&values)?;
    let correction = bias_correction(&means, observed, &values);
    let acceleration = acceleration(&values, observed);
    let tail = 0.5 * (1.0 - level);
    let end = |z: f64| quantile(&means, adjusted(z, correction, acceleration));
    Ok(Interval {
        method: IntervalMethod::Bca,
        level,
        low: end(normal_quantile(tail)),
        high: end(-normal_quantile(tail)),
    })
}

/// The means of resamples with replacement, in ascending order.
fn resampled_means(values: &[f64]) -> Result<Vec<f64>, Refusal> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut means = Vec::with_capacity(NUM_RESAMPLES);
    for _ in 0..NUM_RESAMPLES {
        let drawn = values.iter().map(|_| values[index(&mut rng, values.len())]);
        means.push(finite(drawn.sum::<f64>() / values.len() as f64)?);
    }
    means.sort_by(f64::total_cmp);
    Ok(means)
}

/// A number below `num` from 64 random bits. Implemented here, since the same samples must result with every version of
/// a library; the bias, `num` / 2^64, is not visible in any interval.
fn index(rng: &mut ChaCha8Rng, num: usize) -> usize {
    ((u128::from(rng.next_u64()) * num as u128) >> 64) as usize
}

/// z0: the normal quantile of the fraction of resampled means below the observed one. Those equal to it count half,
/// since a small sample has many; differences due to rounding count as equal.
fn bias_correction(means: &[f64], observed: f64, values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0_f64, |m, value| m.max(value.abs()));
    let rounding = values.len() as f64 * f64::EPSILON * largest;
    let below = means.partition_point(|mean| *mean < observed - rounding) as f64;
    let not_above = means.partition_point(|mean| *mean <= observed + rounding) as f64;
    let num = means.len() as f64;
    // An infinite quantile would leave no interval.
    let share = (0.5 * (below + not_above) / num).clamp(0.5 / num, 1.0 - 0.5 / num);
    normal_quantile(share)
}

/// a = Σ d³ / (6 (Σ d²)^(3/2)), with d the mean of the jackknife's means minus each of them (Efron and Tibshirani,
/// 1993, An Introduction to the Bootstrap, equation 14.15). For a mean, d is proportional to the value minus the mean,
/// and a has no unit.
fn acceleration(values: &[f64], observed: f64) -> f64 {
    let distances = values.iter().map(|value| value - observed);
    let largest = distances.clone().fold(0.0_f64, |m, d| m.max(d.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    // In units of the largest distance, so that powers neither overflow nor underflow.
    let sum = |power: i32| {
        distances
            .clone()
            .map(|d| (d / largest).powi(power))
            .sum::<f64>()
    };
    sum(3) / (6.0 * sum(2).powf(1.5))
}

/// Φ(z0 + (z0 + z) / (1 - a (z0 + z))): the fraction of resampled means below an end.
fn adjusted(z: f64, correction: f64, acceleration: f64) -> f64 {
    let moved = correction + z;
    let denominator = 1.0 - acceleration * moved;
    match denominator > 0.0 {
        true => normal_cdf(correction + moved / denominator),
        // Beyond the pole there is no solution; the limit is the outermost mean.
        false if moved > 0.0 => 1.0,
        false => 0.0,
    }
}

/// The quantile at `share` of ascending values, linear between them (Hyndman and Fan, 1996, definition 7).
///
/// # Panics
///
/// If there are no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    let (low, high) = (sorted[below], sorted[above]);
    if low == high {
        low
    } else {
        low * (1.0 - part) + high * part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BCa over all n^n resamples, each once, which random ones estimate.
    fn over_all_resamples(values: &[f64], level: f64) -> (f64, f64) {
        let n = values.len();
        let mut means = Vec::new();
        for mut code in 0..n.pow(n as u32) {
            let mut sum = 0.0;
            for _ in 0..n {
                sum += values[code % n];
                code /= n;
            }
            means.push(sum / n as f64);
        }
        means.sort_by(f64::total_cmp);
        let observed = mean(values).unwrap();
        // The jackknife by its definition, and not by the shortcut for means.
        let total: f64 = values.iter().sum();
        let left_out: Vec<f64> = values
            .iter()
            .map(|v| (total - v) / (n - 1) as f64)
            .collect();
        let middle = left_out.iter().sum::<f64>() / n as f64;
        let cubes: f64 = left_out.iter().map(|m| (middle - m).powi(3)).sum();
        let squares: f64 = left_out.iter().map(|m| (middle - m).powi(2)).sum();
        let a = cubes / (6.0 * squares.powf(1.5));
        let z0 = bias_correction(&means, observed, values);
        let z = normal_quantile(0.5 * (1.0 + level));
        let end = |z: f64| quantile(&means, normal_cdf(z0 + (z0 + z) / (1.0 - a * (z0 + z))));
        (end(-z), end(z))
    }

    #[test]
    fn random_resamples_come_close_to_all_of_them() {
        for values in [
            [0.1, 0.5, 0.7, 0.72, 2.0, 2.1],
            [1.0, 2.0, 4.0, 8.0, 16.0, 32.0],
            [-3.0, 0.25, 0.5, 0.75, 1.0, 1.5],
        ] {
            let interval = bca(&values, 0.9).unwrap();
            let (low, high) = over_all_resamples(&values, 0.9);
            let width = high - low;
            assert!(
                (interval.low - low).abs() < 0.03 * width,
                "{interval:?} {low}"
            );
            assert!(
                (interval.high - high).abs() < 0.03 * width,
                "{interval:?} {high}"
            );
        }
    }

    #[test]
    fn intervals_are_those_of_scipy() {
        // scipy.stats.bootstrap(method="BCa"), scipy 1.17.1, with 400,000 resamples for Student's sleep data and a
        // million for the others. The tolerance is the variation of the ends with 10,000 resamples.
        let sleep = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let differences = [-1.2, -2.4, -1.3, -1.3, 0.0, -1.0, -1.8, -0.8, -4.6, -1.4];
        let fibonacci = [1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 34.0];
        let darwin = [
            49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0,
            -48.0,
        ];
        for (values, level, low, high) in [
            (&sleep[..], 0.9, -0.05, 1.73),
            (&sleep[..], 0.95, -0.19, 1.93),
            (&differences[..], 0.9, -2.43, -1.12),
            (&differences[..], 0.95, -2.63, -1.05),
            (&fibonacci[..], 0.95, 5.125, 21.0),
            (&darwin[..], 0.95, -1.6667, 36.3333),
        ] {
            let interval = bca(values, level).unwrap();
            let within = 0.025 * (high - low);
            assert!((interval.low - low).abs() < within, "{interval:?} {low}");
            assert!((interval.high - high).abs() < within, "{interval:?} {high}");
        }
    }

    #[test]
    fn order_does_not_matter_and_levels_nest() {
        let values = [0.3, 0.9, 0.1, 0.4, 0.45];
        let mut turned = values;
        turned.reverse();
        assert_eq!(bca(&values, 0.95), bca(&turned, 0.95));
        let (narrow, wide) = (bca(&values, 0.5).unwrap(), bca(&values, 0.999_999).unwrap());
        assert!(wide.low <= narrow.low && narrow.high <= wide.high);
        assert!(wide.low >= 0.1 && wide.high <= 0.9);
    }

    #[test]
    fn draws_are_pinned() {
        // Published intervals depend on these samples: changing them changes results.
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        let drawn: Vec<usize> = (0..12).map(|_| index(&mut rng, 10)).collect();
        assert_eq!(drawn, [4, 2, 8, 7, 3, 7, 0, 9, 7, 7, 6, 6]);
    }

    #[test]
    fn what_has_no_interval_is_refused() {
        let refused = |values: &[f64]| bca(values, 0.95).unwrap_err();
        assert_eq!(refused(&[1.0, 2.0]), Refusal::TooFew { n: 2, needed: 3 });
        assert_eq!(refused(&[0.1; 5]), Refusal::NoSpread);
        assert_eq!(refused(&[0.1, f64::NAN, 0.3]), Refusal::NotFinite);
        assert_eq!(refused(&[1e308, 1.7e308, 1.6e308]), Refusal::NotFinite);
        assert_eq!(bca(&[1.0, 2.0, 3.0], 1.0), Err(Refusal::BadLevel));
    }
}
