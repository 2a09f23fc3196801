//! The statistics behind reports and comparisons: samples, two samples, multiple comparisons, verdicts, effects of axes
//! and Pareto fronts. Handles only numbers: no runs, trials or files.
//!
//! Everything here is a pure function, and equal input gives equal output: random numbers come from ChaCha8 with a
//! constant seed. No input panics. What cannot be computed is refused with a [`Refusal`], and no result contains NaN or
//! infinity.
//!
//! Reports use the following:
//!
//! - interval for a mean: Student's t; also the bootstrap's BCa (Efron 1987, 10,000 resamples) from 3 seeds on
//! - difference: paired by seed if there are common seeds, since these share initial weights and item order; its
//!   interval by Student or, unpaired, by Welch (1947); effect size d_z or Hedges' g
//! - test: paired, sign flips (Fisher 1935), all of them up to 20 seeds, sampled beyond; unpaired, Mann and Whitney
//!   (1947), exact by counting all assignments, including ties, and sampled beyond 100 values
//! - a second reading, if the noise is normal: paired t or Welch's, and equality by two one-sided tests
//!   (Schuirmann 1987)
//! - repeats over other splits: the t test corrected for shared training items (Nadeau and Bengio 2003);
//!   with seeds that are used on several splits, the spread over seeds is added (Howe 1974, [`Overlap`])
//! - several comparisons: Holm (1979)
//! - the best of many: the trials that no other beats (Gupta 1965)
//! - several looks at growing samples: each with an equal part of the level ([`Looks`])
//! - probabilities: ROC and precision-recall curves, and calibration, by thresholds ([`Separation`])
//! - learning rates: what a range test suggests ([`RateRange`])
//! - effect of an axis: the mean over all other settings within each seed, and Student's interval over the seeds
//! - importance of axes: shares of the variance in a grid (Hutter et al. 2014); of drawn values, by permutation in a
//!   forest (Breiman 2001)
//!
//! Two numbers are easily confused. A `level` is a confidence level, such as 0.95, and belongs to an interval. An
//! `alpha` is a significance level, such as 0.05, and belongs to a test.

mod best;
mod bootstrap;
mod compare;
mod distribution;
mod forest;
mod holm;
mod independent;
mod items;
mod looks;
mod marginal;
mod overlap;
mod pairs;
mod pareto;
mod power;
mod ranks;
mod rates;
mod sample;
mod sign_flip;
mod student;
#[cfg(test)]
mod tests;
mod thresholds;
mod verdict;

use serde::{Deserialize, Serialize};

pub use best::may_be_best;
pub use bootstrap::{LEAST_FOR_BCA, NUM_RESAMPLES, quantile};
pub use compare::{Comparison, Design, Effect, EffectMeasure};
pub use forest::{ForestImportance, LEAST_FOR_FOREST, Permuted, forest_importance};
pub use holm::holm;
pub use independent::{hedges_g, welch_interval, welch_t_test};
pub use items::{mcnemar, percentile_interval, resample};
pub use looks::Looks;
pub use marginal::{Balance, Importance, LevelEffect, Marginal, Row, importance, marginal_effect};
pub use overlap::Overlap;
pub use pairs::{Pairs, cohens_d_z, paired_t_test};
pub use pareto::pareto_front;
pub use power::{Approximation, SeedsForPower, TARGET_POWER, detectable_effect, seeds_for_power};
pub use ranks::{MOST_RANKED, mann_whitney, smallest_rank_p};
pub use rates::{RatePoint, RateRange};
pub use sample::{Description, Interval, IntervalMethod};
pub use sign_flip::{MOST_ENUMERATED, NUM_FLIPS, pairs_to_reach, sign_flip, smallest_sign_flip_p};
pub use thresholds::{Bin, STEPS, Scored, Separation, Threshold};
pub use verdict::{AboutMore, Claims, Equality, Finding, IfNormal, Reading, Verdict, verdicts};

/// Which values of an objective are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Such as accuracy.
    HigherIsBetter,
    /// Such as a loss.
    LowerIsBetter,
}

impl Direction {
    /// Whether higher values are better, as a direction.
    pub fn of(is_higher_better: bool) -> Self {
        if is_higher_better {
            Self::HigherIsBetter
        } else {
            Self::LowerIsBetter
        }
    }

    /// Whether `a` is strictly better than `b`. NaN is neither better nor worse than anything.
    pub fn is_better(self, a: f64, b: f64) -> bool {
        match self {
            Self::HigherIsBetter => a > b,
            Self::LowerIsBetter => a < b,
        }
    }
}

/// Means that differ by less, relative to themselves, are equal: the same values in another order have sums that differ by
/// what was rounded.
const ROUNDED: f64 = 1e-14;

/// Whether two means are equal but for rounding.
pub fn are_equal(a: f64, b: f64) -> bool {
    let size = a.abs().max(b.abs());
    a == b || size.is_finite() && (a - b).abs() <= ROUNDED * size
}

/// A statistical test. All of them are two-sided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// Student's t on the differences of pairs (Student, 1908).
    PairedT,
    /// The t test for unequal variances (Welch, 1947).
    WelchT,
    /// Student's t for paired values of several splits, corrected for the training items that splits share (Nadeau and
    /// Bengio, 2003). With seeds that are used on several splits, it includes the spread over seeds and has no single
    /// number of degrees of freedom.
    CorrectedResampledT,
    /// The t test for unequal variances with the same correction.
    CorrectedWelchT,
    /// Fisher's paired permutation test over all sign flips (Fisher, 1935).
    SignFlipExact,
    /// The same over sampled sign flips (Phipson and Smyth, 2010).
    SignFlipMonteCarlo,
    /// The rank test over all assignments of the pooled midranks (Mann and Whitney, 1947).
    MannWhitneyExact,
    /// The same over sampled assignments (Phipson and Smyth, 2010).
    MannWhitneyMonteCarlo,
}

/// The result of a test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// The test.
    pub test: Test,
    /// Its statistic: t, the mean of the differences, or U of the first sample.
    pub statistic: f64,
    /// Degrees of freedom, for tests that have them. Welch's are not an integer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub df: Option<f64>,
    /// The two-sided p-value, uncorrected, from 0 to 1.
    pub p: f64,
}

/// Why something was not computed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// There are fewer values than the method needs.
    TooFew {
        /// The number of values, in the smaller of two samples.
        n: usize,
        /// The required number.
        needed: usize,
    },
    /// A value is NaN or infinite, or so large that the sum overflows.
    NotFinite,
    /// All values are equal, so there is nothing to estimate their spread from.
    NoSpread,
    /// A level of confidence or of significance that is not between 0 and 1.
    BadLevel,
    /// A p-value outside 0 to 1.
    BadProbability,
    /// A duplicate key (seed) in one sample.
    RepeatedKey {
        /// The key.
        key: u64,
    },
    /// Rows of a table with different numbers of axes, or fewer than requested.
    NoSuchAxis,
    /// All planned looks at the samples were made before.
    NoLooksLeft {
        /// How many were planned.
        planned: usize,
    },
}

impl Test {
    /// Whether its p-value is valid for any distribution.
    pub fn is_exact(self) -> bool {
        matches!(
            self,
            Self::SignFlipExact
                | Self::SignFlipMonteCarlo
                | Self::MannWhitneyExact
                | Self::MannWhitneyMonteCarlo
        )
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooFew { n, needed } => {
                write!(f, "at least {needed} values are needed, found {n}")
            }
            Self::NotFinite => f.write_str("a value is not finite, or too large to add up"),
            Self::NoSpread => f.write_str("all values are equal, so their spread is unknown"),
            Self::BadLevel => f.write_str("a level must be between 0 and 1"),
            Self::BadProbability => f.write_str("a p-value must be between 0 and 1"),
            Self::RepeatedKey { key } => write!(f, "seed {key} occurs twice in one sample"),
            Self::NoSuchAxis => f.write_str("a row does not have the requested axis"),
            Self::NoLooksLeft { planned } => {
                write!(f, "all {planned} planned looks were made before")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Refuses a level that is not strictly between 0 and 1.
fn check_level(level: f64) -> Result<(), Refusal> {
    if level > 0.0 && level < 1.0 {
        Ok(())
    } else {
        Err(Refusal::BadLevel)
    }
}

/// Refuses fewer than `needed` values, and values that are not finite.
fn check_values(values: &[f64], needed: usize) -> Result<(), Refusal> {
    if values.iter().any(|value| !value.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    match values.len() {
        n if n < needed => Err(Refusal::TooFew { n, needed }),
        _ => Ok(()),
    }
}

/// Refuses a non-finite result: the sum of finite values can overflow.
fn finite(value: f64) -> Result<f64, Refusal> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Refusal::NotFinite)
    }
}
