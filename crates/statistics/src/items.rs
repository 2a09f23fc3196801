//! Statistics over items: bootstrap intervals for any statistic, and McNemar's test.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use statrs::distribution::{Binomial, DiscreteCDF};

/// A resample with replacement: how often each item occurs in it. It is a function of only `resample` and the number of
/// items, so that two runs on the same items are resampled alike.
pub fn resample(num_items: usize, resample: u64) -> Vec<u32> {
    let mut rng = ChaCha8Rng::seed_from_u64(resample);
    let mut counts = vec![0; num_items];
    for _ in 0..num_items {
        let at = ((u128::from(rng.next_u64()) * num_items as u128) >> 64) as usize;
        counts[at] += 1;
    }
    counts
}

/// The percentile bootstrap interval (Efron and Tibshirani, 1993, section 13.3): from the quantile (1 - level) / 2 of a
/// statistic's values over resamples to the quantile (1 + level) / 2, with linear interpolation. `None` if there are no
/// values, or one is not finite.
pub fn percentile_interval(mut values: Vec<f64>, level: f64) -> Option<[f64; 2]> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (values.len() - 1) as f64;
        let (below, part) = (place.floor() as usize, place.fract());
        let above = (below + 1).min(values.len() - 1);
        values[below] * (1.0 - part) + values[above] * part
    };
    let tail = 0.5 * (1.0 - level);
    Some([at(tail), at(1.0 - tail)])
}

/// The exact two-sided p-value of McNemar's test (McNemar, 1947), by the binomial distribution: the probability of a
/// division of the items that only one of two predicts correctly at least as uneven as the observed one, if both were
/// equally likely to be correct.
pub fn mcnemar(only_first: u64, only_second: u64) -> f64 {
    let n = only_first + only_second;
    let Ok(binomial) = Binomial::new(0.5, n) else {
        return 1.0;
    };
    if n == 0 {
        return 1.0;
    }
    (2.0 * binomial.cdf(only_first.min(only_second))).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcnemar_is_the_binomial_test() {
        // 2 (1 + 10 + 45) / 1024, by hand; scipy.stats.binomtest(2, 10).pvalue is the same.
        assert!((mcnemar(2, 8) - 0.109_375).abs() < 1e-12);
        assert_eq!(mcnemar(8, 2), mcnemar(2, 8));
        assert_eq!((mcnemar(0, 0), mcnemar(5, 5)), (1.0, 1.0));
        assert!((mcnemar(0, 6) - 0.031_25).abs() < 1e-12);
        assert!(mcnemar(400, 600) < 1e-9);
    }

    #[test]
    fn intervals_hold_the_middle_share_of_resamples() {
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let [low, high] = percentile_interval(values, 0.9).unwrap();
        assert!(
            (low - 5.0).abs() < 1e-12 && (high - 95.0).abs() < 1e-12,
            "{low} {high}"
        );
        assert_eq!(percentile_interval(Vec::new(), 0.9), None);
        assert_eq!(percentile_interval(vec![1.0, f64::NAN], 0.9), None);
        // The bootstrap of a mean has the standard error of the mean.
        let values: Vec<f64> = (0..200).map(|at| f64::from(at % 10)).collect();
        let mean = |counts: &[u32]| {
            let pairs = counts.iter().zip(&values);
            pairs
                .map(|(count, value)| f64::from(*count) * value)
                .sum::<f64>()
                / 200.0
        };
        let means: Vec<f64> = (0..2000).map(|at| mean(&resample(200, at))).collect();
        let [low, high] = percentile_interval(means, 0.95).unwrap();
        let half = 1.96 * (8.25_f64 / 200.0).sqrt();
        assert!((low - (4.5 - half)).abs() < 0.05, "{low}");
        assert!((high - (4.5 + half)).abs() < 0.05, "{high}");
        assert_eq!(resample(50, 7), resample(50, 7));
        assert_eq!(resample(50, 7).iter().sum::<u32>(), 50);
    }
}
