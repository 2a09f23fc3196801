//! Two samples that share no seeds: Welch's t test and Hedges' g.

use super::distribution::gamma_ratio;
use super::sample::{Interval, mean, sd};
use super::student::{Student, check_both};
use super::{Refusal, TestResult, check_level, finite};

/// Welch's t test (Welch, 1947, The Generalization of "Student's" Problem): t = (mean1 - mean2) / sqrt(v1 + v2) with v
/// = sd² / n of each sample, and (v1 + v2)² / (v1²/(n1 - 1) + v2²/(n2 - 1)) degrees of freedom. It assumes that both
/// samples are normal, with possibly different variances.
///
/// Refuses fewer than two values in a sample, two samples of equal values each, and values that are not finite.
pub fn welch_t_test(first: &[f64], second: &[f64]) -> Result<TestResult, Refusal> {
    Student::welch(first, second, None)?.test()
}

/// The interval for the mean of the first sample minus that of the second, with Welch's standard error and degrees of
/// freedom (Welch, 1947), in the unit of the values.
///
/// Refuses what [`welch_t_test`] does, and a level that is not between 0 and 1.
pub fn welch_interval(first: &[f64], second: &[f64], level: f64) -> Result<Interval, Refusal> {
    check_level(level)?;
    Student::welch(first, second, None)?.interval(level)
}

/// Hedges' g, the effect size of independent samples (Hedges, 1981, Distribution Theory for Glass's Estimator of Effect
/// Size): J (mean1 - mean2) / s, with s the pooled standard deviation of n1 + n2 - 2 degrees of freedom and J = Γ(df/2)
/// / (sqrt(df/2) Γ((df - 1)/2)), which removes the bias of small samples. No unit.
///
/// Refuses fewer than two values in a sample, two samples of equal values each, and values that are not finite.
pub fn hedges_g(first: &[f64], second: &[f64]) -> Result<f64, Refusal> {
    check_both(first, second)?;
    let (n, m) = (first.len() as f64, second.len() as f64);
    let df = n + m - 2.0;
    let (a, b) = (((n - 1.0) / df).sqrt(), ((m - 1.0) / df).sqrt());
    let pooled = (a * sd(first)?).hypot(b * sd(second)?);
    if pooled == 0.0 {
        return Err(Refusal::NoSpread);
    }
    let unbiased = gamma_ratio(0.5 * df) / (0.5 * df).sqrt();
    finite(unbiased * (mean(first)? - mean(second)?) / pooled)
}
