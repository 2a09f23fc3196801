//! The number of seeds needed to detect an effect.

use serde::{Deserialize, Serialize};

use super::distribution::{noncentral_t_power, normal_quantile};
use super::{Effect, EffectMeasure, check_level};

/// The power for which numbers of seeds are computed: the probability of detecting an existing effect (Cohen, 1988).
pub const TARGET_POWER: f64 = 0.8;
/// Up to this many seeds the noncentral distribution is used. Above, the normal one gives at most a few seeds less: 2
/// at an alpha of 0.05.
const FEW: f64 = 10_000.0;
/// Beyond this many seeds no number is given.
const MOST: f64 = 1e9;

/// How a number of seeds was computed. Both are for the t test. In simulations with normal differences, the sign-flip
/// test needs as many, or one more if the number is barely enough for it to reach alpha at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approximation {
    /// The noncentral t distribution.
    NoncentralT,
    /// The normal distribution: n = ((z at 1 - alpha/2) + (z at power))² / effect², twice that for independent samples.
    Normal,
}

/// The number of seeds that an effect needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeedsForPower {
    /// Total number of pairs, or of values in each of two independent samples.
    pub seeds: usize,
    /// How the number was computed.
    pub approximation: Approximation,
}

/// The minimum number of seeds with which the two-sided t test at `alpha` detects the effect with a power of
/// [`TARGET_POWER`]: pairs for Cohen's d_z, where the noncentrality is d_z sqrt(n) with n - 1 degrees of freedom, and
/// seeds in each of two equal samples for Hedges' g, where it is g sqrt(n / 2) with 2 n - 2 (Cohen, 1988, chapter 2).
///
/// An effect that was estimated from few seeds is itself uncertain, and so is this number: it is correct if the true
/// effect is the observed one. None for an effect of 0 or no effect, for one that would need more than 10^9 seeds, and
/// for an `alpha` that is not between 0 and 1.
pub fn seeds_for_power(effect: Effect, alpha: f64) -> Option<SeedsForPower> {
    check_level(alpha).ok()?;
    let size = effect.value.abs();
    let samples = samples_of(effect.measure);
    let quantiles = normal_quantile(TARGET_POWER) - normal_quantile(0.5 * alpha);
    let normal = samples * (quantiles / size).powi(2);
    // An effect of 0 gives infinity, and NaN compares with nothing.
    if !(0.0..=MOST).contains(&normal) {
        return None;
    }
    if normal > FEW {
        return Some(SeedsForPower {
            seeds: normal.ceil() as usize,
            approximation: Approximation::Normal,
        });
    }
    let power =
        |n: f64| noncentral_t_power(alpha, samples * (n - 1.0), size * (n / samples).sqrt());
    // The normal number is never too large, since it treats the spread as known.
    let first = (normal.ceil() as usize).max(2);
    let seeds = (first..2 * FEW as usize).find(|n| power(*n as f64) >= TARGET_POWER)?;
    Some(SeedsForPower {
        seeds,
        approximation: Approximation::NoncentralT,
    })
}

/// The smallest effect, in standard deviations, that the two-sided t test at `alpha` detects with a power of
/// [`TARGET_POWER`] from `n` pairs or from `n` seeds in each of two samples: the inverse of [`seeds_for_power`]. None
/// for fewer than two, and for an `alpha` that is not between 0 and 1.
pub fn detectable_effect(measure: EffectMeasure, n: usize, alpha: f64) -> Option<f64> {
    check_level(alpha).ok()?;
    if n < 2 {
        return None;
    }
    let samples = samples_of(measure);
    let n = n as f64;
    let power = |size: f64| {
        noncentral_t_power(alpha, samples * (n - 1.0), size * (n / samples).sqrt()) >= TARGET_POWER
    };
    let mut high = 1.0;
    while !power(high) {
        high *= 2.0;
        if high > MOST {
            return None;
        }
    }
    let mut low = 0.0;
    // To five digits, which is more precise than anybody needs.
    while high - low > 1e-5 * high {
        let middle = f64::midpoint(low, high);
        if power(middle) {
            high = middle
        } else {
            low = middle
        }
    }
    Some(high)
}

/// How many samples an effect is measured over.
fn samples_of(measure: EffectMeasure) -> f64 {
    match measure {
        EffectMeasure::CohensDz => 1.0,
        EffectMeasure::HedgesG => 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(measure: EffectMeasure, value: f64, alpha: f64) -> Option<usize> {
        seeds_for_power(Effect { measure, value }, alpha).map(|found| found.seeds)
    }

    #[test]
    fn numbers_are_those_of_the_exact_noncentral_distribution() {
        // By scipy.stats.nct, scipy 1.17.1. Those of 64 and 26 in each of two samples for 0.5 and 0.8 at 0.05 stand in
        // Cohen's (1988) table 2.4.1 as well.
        for (value, alpha, pairs, each) in [
            (0.2, 0.05, 199, 394),
            (0.3, 0.05, 90, 176),
            (0.5, 0.05, 34, 64),
            (0.8, 0.05, 15, 26),
            (1.0, 0.05, 10, 17),
            (1.5, 0.05, 6, 9),
            (2.0, 0.05, 5, 6),
            (0.5, 0.005, 58, 109),
            (0.8, 0.005, 25, 44),
            (1.0, 0.005, 18, 29),
            (1.5, 0.005, 10, 14),
            (0.2, 0.001, 433, 857),
            (1.0, 0.001, 23, 37),
        ] {
            for sign in [1.0, -1.0] {
                let found = seeds(EffectMeasure::CohensDz, sign * value, alpha).unwrap();
                assert_eq!(found, pairs, "{value} {alpha}");
                let found = seeds(EffectMeasure::HedgesG, sign * value, alpha).unwrap();
                assert_eq!(found, each, "{value} {alpha}");
            }
        }
    }

    #[test]
    fn detectable_effects_are_those_of_scipy() {
        // By root finding over scipy.stats.nct, scipy 1.17.1.
        use EffectMeasure::{CohensDz, HedgesG};
        for (measure, n, alpha, effect) in [
            (CohensDz, 3, 0.05, 3.264043549819919),
            (CohensDz, 3, 0.005, 10.355180625585836),
            (CohensDz, 5, 0.05, 1.681997282215826),
            (CohensDz, 10, 0.016666666666666666, 1.2234701319228485),
            (CohensDz, 30, 0.05, 0.5292362447759074),
            (HedgesG, 3, 0.05, 3.070892843773172),
            (HedgesG, 5, 0.01, 2.7444678918845673),
            (HedgesG, 20, 0.05, 0.9091301276269141),
        ] {
            let found = detectable_effect(measure, n, alpha).unwrap();
            assert!(
                (found / effect - 1.0).abs() < 1e-4,
                "{n} {alpha}: {found} {effect}"
            );
        }
        assert_eq!(detectable_effect(CohensDz, 1, 0.05), None);
        assert_eq!(detectable_effect(CohensDz, 5, 1.0), None);
    }

    #[test]
    fn edges() {
        let pairs = |value, alpha| seeds(EffectMeasure::CohensDz, value, alpha);
        for value in [0.0, 1e-9, f64::NAN] {
            assert_eq!(pairs(value, 0.05), None, "{value}");
        }
        assert_eq!(pairs(0.5, 0.0), None);
        assert_eq!(pairs(0.5, f64::NAN), None);
        assert!(pairs(1e300, 0.05).is_some_and(|n| n <= 5));
        assert!(pairs(f64::INFINITY, 0.05).is_none_or(|n| n <= 5));
        assert!(pairs(1.0, 1e-300).is_none_or(|n| n > 1000));
        // The two approximations meet where one takes over from the other.
        let large = |value| {
            let effect = Effect {
                measure: EffectMeasure::CohensDz,
                value,
            };
            seeds_for_power(effect, 0.05).unwrap()
        };
        let (exact, normal) = (large(0.02802), large(0.02801));
        assert_eq!(exact.approximation, Approximation::NoncentralT);
        assert_eq!(normal.approximation, Approximation::Normal);
        assert!(
            exact.seeds.abs_diff(normal.seeds) < 10,
            "{exact:?} {normal:?}"
        );
    }
}
