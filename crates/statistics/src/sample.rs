//! One sample: its summary, and intervals for its mean.

use serde::{Deserialize, Serialize};

use super::distribution::student_critical;
use super::overlap::Overlap;
use super::{Refusal, bootstrap, check_level, check_values, finite};

/// The summary of a sample. Everything is in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// The number of values.
    pub n: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The sample standard deviation, with n - 1 in the denominator; none for a single value.
    pub sd: Option<f64>,
    /// The median: the middle value, or the mean of the middle two.
    pub median: f64,
    /// The smallest value.
    pub minimum: f64,
    /// The largest value.
    pub maximum: f64,
}

/// How an interval was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntervalMethod {
    /// Student's t (Student, 1908).
    StudentT,
    /// Student's t, for one more value (Hahn and Meeker, 1991).
    Prediction,
    /// Student's t with Welch's degrees of freedom (Welch, 1947).
    WelchT,
    /// Student's t, corrected for repeats that share training items (Nadeau and Bengio, 2003).
    CorrectedT,
    /// The bootstrap, bias-corrected and accelerated (Efron, 1987).
    Bca,
}

/// A two-sided confidence interval for a mean or for a difference of means, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// How it was computed.
    pub method: IntervalMethod,
    /// The level of confidence, such as 0.95.
    pub level: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Description {
    /// Summarizes `values`. Refuses an empty sample, values that are not finite, and values that are too large to sum.
    pub fn of(values: &[f64]) -> Result<Self, Refusal> {
        check_values(values, 1)?;
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        Ok(Self {
            n,
            mean: mean(values)?,
            sd: match n {
                1 => None,
                _ => Some(sd(values)?),
            },
            median: sorted[(n - 1) / 2].midpoint(sorted[n / 2]),
            minimum: sorted[0],
            maximum: sorted[n - 1],
        })
    }
}

impl Interval {
    /// Student's t interval for the mean: mean ± t sd / sqrt(n), with t the quantile at (1 + level) / 2 of Student's
    /// distribution with n - 1 degrees of freedom (Student, 1908). It assumes normal values.
    ///
    /// Refuses fewer than two values, equal values, values that are not finite, and a level that is not between 0
    /// and 1.
    pub fn student(values: &[f64], level: f64) -> Result<Self, Refusal> {
        check_level(level)?;
        check_values(values, 2)?;
        let n = values.len() as f64;
        let (mean, error) = (mean(values)?, spread(values)? / n.sqrt());
        let half = student_critical(0.5 * (1.0 - level), n - 1.0) * error;
        Self::around(IntervalMethod::StudentT, level, mean, half)
    }

    /// The same for values whose repeats are other splits of the same items: see [`Overlap`], which also allows for the
    /// spread of seeds that are used on several splits. Refuses the same inputs as [`Self::student`].
    pub fn corrected(
        values: &[(u64, f64)],
        overlap: &Overlap,
        level: f64,
    ) -> Result<Self, Refusal> {
        overlap.of_mean(values)?.interval(level)
    }

    /// The prediction interval for one more value of a normal distribution: mean ± t sd sqrt(1 + 1/n), with t as in
    /// [`Self::student`] (Hahn and Meeker, Statistical Intervals, 1991, section 4.7). For equal values it is that
    /// value.
    ///
    /// Refuses fewer than two values, values that are not finite, and a level that is not between 0 and 1.
    pub fn prediction(values: &[f64], level: f64) -> Result<Self, Refusal> {
        check_level(level)?;
        check_values(values, 2)?;
        let n = values.len() as f64;
        let (mean, error) = (mean(values)?, sd(values)? * (1.0 + 1.0 / n).sqrt());
        let half = student_critical(0.5 * (1.0 - level), n - 1.0) * error;
        Self::around(IntervalMethod::Prediction, level, mean, half)
    }

    /// The BCa bootstrap interval for the mean (Efron, 1987, Better Bootstrap Confidence Intervals), from
    /// [`NUM_RESAMPLES`](super::NUM_RESAMPLES) resamples. It assumes no particular distribution, corrects for skewness,
    /// and is known to be too narrow for small samples: with 5 seeds prefer [`Self::student`].
    ///
    /// The order of the values does not matter. Takes time in proportion to their number. Refuses fewer than
    /// [`LEAST_FOR_BCA`](super::LEAST_FOR_BCA) values, equal values, values that are not finite, and a level that is
    /// not between 0 and 1.
    pub fn bca(values: &[f64], level: f64) -> Result<Self, Refusal> {
        bootstrap::bca(values, level)
    }

    /// The interval that extends `half` to both sides of `center`.
    pub(super) fn around(
        method: IntervalMethod,
        level: f64,
        center: f64,
        half: f64,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            method,
            level,
            low: finite(center - half)?,
            high: finite(center + half)?,
        })
    }

    /// Whether `value` lies within, ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Whether all values are equal.
pub(super) fn is_constant(values: &[f64]) -> bool {
    values.windows(2).all(|two| two[0] == two[1])
}

/// The mean of at least one value. For equal values it is exactly their value, which a rounded sum would miss.
pub(super) fn mean(values: &[f64]) -> Result<f64, Refusal> {
    match values {
        [] => Err(Refusal::TooFew { n: 0, needed: 1 }),
        [first, ..] if is_constant(values) => Ok(*first),
        values => finite(values.iter().sum::<f64>() / values.len() as f64),
    }
}

/// The sample standard deviation of at least two values, 0 for equal ones.
pub(super) fn sd(values: &[f64]) -> Result<f64, Refusal> {
    if values.len() < 2 {
        let n = values.len();
        return Err(Refusal::TooFew { n, needed: 2 });
    }
    let mean = mean(values)?;
    let distances = values.iter().map(|value| (value - mean).abs());
    let largest = distances.clone().fold(0.0, f64::max);
    if largest == 0.0 {
        return Ok(0.0);
    }
    // In units of the largest distance, so that no square over- or underflows.
    let squares: f64 = distances.map(|d| (d / largest).powi(2)).sum();
    finite(largest * (squares / (values.len() - 1) as f64).sqrt())
}

/// The sample standard deviation if it must be above 0.
pub(super) fn spread(values: &[f64]) -> Result<f64, Refusal> {
    match sd(values)? {
        0.0 => Err(Refusal::NoSpread),
        sd => Ok(sd),
    }
}
