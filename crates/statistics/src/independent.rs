//! Two samples that share no seeds: Welch's t test and Hedges' g.

use super::distribution::{gamma_ratio, student_critical, student_two_sided_p};
use super::sample::{Interval, IntervalMethod, mean, sd};
use super::{Refusal, Test, TestResult, check_level, check_values, finite};

/// The difference of two means, its standard error and Welch's degrees of freedom.
struct Welch {
    difference: f64,
    error: f64,
    df: f64,
}

impl Welch {
    fn of(first: &[f64], second: &[f64]) -> Result<Self, Refusal> {
        check_both(first, second)?;
        let (n, m) = (first.len() as f64, second.len() as f64);
        let (a, b) = (sd(first)? / n.sqrt(), sd(second)? / m.sqrt());
        let error = a.hypot(b);
        if error == 0.0 {
            return Err(Refusal::NoSpread);
        }
        // In units of the error, so that no fourth power over- or underflows.
        let (a, b) = ((a / error).powi(2), (b / error).powi(2));
        Ok(Self {
            difference: finite(mean(first)? - mean(second)?)?,
            error: finite(error)?,
            // Between the smaller n - 1 and their sum. Rounding must not carry it below 1.
            df: (1.0 / (a * a / (n - 1.0) + b * b / (m - 1.0))).max(1.0),
        })
    }
}

/// Welch's t test (Welch, 1947, The Generalization of "Student's" Problem): t = (mean1 - mean2) / sqrt(v1 + v2) with
/// v = sd² / n of each sample, and (v1 + v2)² / (v1²/(n1 - 1) + v2²/(n2 - 1)) degrees of freedom. It takes both samples
/// for normal and lets their variances differ.
///
/// Refuses fewer than two values in a sample, two samples of equal values each, and values that are not finite.
pub fn welch_t_test(first: &[f64], second: &[f64]) -> Result<TestResult, Refusal> {
    let welch = Welch::of(first, second)?;
    let t = finite(welch.difference / welch.error)?;
    Ok(TestResult {
        test: Test::WelchT,
        statistic: t,
        df: Some(welch.df),
        p: student_two_sided_p(t, welch.df),
    })
}

/// The interval for the mean of the first sample less that of the second, with Welch's standard error and degrees of
/// freedom (Welch, 1947), in the unit of the values.
///
/// Refuses what [`welch_t_test`] does, and a level that is not between 0 and 1.
pub fn welch_interval(first: &[f64], second: &[f64], level: f64) -> Result<Interval, Refusal> {
    check_level(level)?;
    let welch = Welch::of(first, second)?;
    let half = student_critical(0.5 * (1.0 - level), welch.df) * welch.error;
    Interval::around(IntervalMethod::WelchT, level, welch.difference, half)
}

/// Hedges' g, the effect size of independent samples (Hedges, 1981, Distribution Theory for Glass's Estimator of Effect
/// Size): J (mean1 - mean2) / s, with s the pooled standard deviation of n1 + n2 - 2 degrees of freedom and
/// J = Γ(df/2) / (sqrt(df/2) Γ((df - 1)/2)), which takes away the bias of small samples. No unit.
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

fn check_both(first: &[f64], second: &[f64]) -> Result<(), Refusal> {
    // The smaller one last, so that a refusal tells of it.
    let (small, large) = if first.len() < second.len() {
        (first, second)
    } else {
        (second, first)
    };
    check_values(large, 0)?;
    check_values(small, 2)
}
