//! The result of Student's t for a difference of means, whatever its standard error was estimated from.

use super::distribution::{student_critical, student_two_sided_p};
use super::sample::{Interval, IntervalMethod, mean, sd};
use super::{Refusal, Test, TestResult, check_level, check_values, finite};

/// A difference of means (or a mean) with its standard error and degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Student {
    pub difference: f64,
    error: f64,
    df: f64,
    /// A second, independent error with its degrees of freedom, such as that of seeds beside that of splits.
    other: Option<(f64, f64)>,
    test: Test,
}

impl Student {
    /// Of paired differences: sd / sqrt(n) with n - 1 degrees of freedom (Student, 1908). With an overlap `ratio`, the
    /// variance is sd² (1/n + ratio) instead of sd² / n: the corrected resampled t test (Nadeau and Bengio, 2003,
    /// section 3; Bouckaert and Frank, 2004).
    ///
    /// Refuses fewer than two differences, equal ones, and non-finite ones.
    pub fn paired(differences: &[f64], ratio: Option<f64>) -> Result<Self, Refusal> {
        Self::of_differences(differences, ratio)?.if_it_varies()
    }

    /// The same, also of equal differences.
    pub(super) fn of_differences(differences: &[f64], ratio: Option<f64>) -> Result<Self, Refusal> {
        check_values(differences, 2)?;
        let n = differences.len() as f64;
        Ok(Self {
            difference: mean(differences)?,
            error: finite(sd(differences)? * (1.0 / n + ratio.unwrap_or(0.0)).sqrt())?,
            df: n - 1.0,
            other: None,
            test: match ratio {
                None => Test::PairedT,
                Some(_) => Test::CorrectedResampledT,
            },
        })
    }

    /// Of two samples without pairs, by Welch (1947): variances v = sd² / n add up, and
    /// (v1 + v2)² / (v1²/(n1 - 1) + v2²/(n2 - 1)) are the degrees of freedom. With an overlap `ratio`, v is
    /// sd² (1/n + ratio).
    ///
    /// Refuses fewer than two values in a sample, two samples of equal values each, and values that are not finite.
    pub fn welch(first: &[f64], second: &[f64], ratio: Option<f64>) -> Result<Self, Refusal> {
        Self::of_two(first, second, ratio)?.if_it_varies()
    }

    /// The same, also of two samples of equal values.
    pub(super) fn of_two(
        first: &[f64],
        second: &[f64],
        ratio: Option<f64>,
    ) -> Result<Self, Refusal> {
        check_both(first, second)?;
        let (n, m) = (first.len() as f64, second.len() as f64);
        let factor = |n: f64| (1.0 / n + ratio.unwrap_or(0.0)).sqrt();
        let (a, b) = (sd(first)? * factor(n), sd(second)? * factor(m));
        let (error, df) = sum((a, n - 1.0), (b, m - 1.0));
        Ok(Self {
            difference: finite(mean(first)? - mean(second)?)?,
            error: finite(error)?,
            df,
            other: None,
            test: match ratio {
                None => Test::WelchT,
                Some(_) => Test::CorrectedWelchT,
            },
        })
    }

    /// The same with a second error that is independent of the first.
    ///
    /// The half width of an interval is then the root of the sum of the squares of the half widths of both, each with
    /// its own quantile: Howe (1974, Approximate Confidence Limits on the Mean of X + Y Where X and Y Are Two Tabled
    /// Independent Random Variables), Graybill and Wang (1980, Confidence Intervals on Nonnegative Linear Combinations
    /// of Variances). Where one of the two is small, it is the interval of the other. A sum of both variances with the
    /// degrees of freedom of Satterthwaite (1946) is too narrow for two seeds: it is wrong up to twice as often as it
    /// says, because the smaller one of few seeds is often estimated as nearly 0.
    pub(super) fn with(self, error: f64, df: f64) -> Result<Self, Refusal> {
        let other = Some((error, df));
        Self { other, ..self }.if_it_varies()
    }

    fn if_it_varies(self) -> Result<Self, Refusal> {
        if self.total_error() == 0.0 {
            return Err(Refusal::NoSpread);
        }
        Ok(self)
    }

    fn total_error(&self) -> f64 {
        self.other
            .map_or(self.error, |(error, _)| self.error.hypot(error))
    }

    /// The half width of the interval that leaves `tail` on each side.
    fn half(&self, tail: f64) -> f64 {
        let half = |error: f64, df| match error {
            0.0 => 0.0,
            error => student_critical(tail, df) * error,
        };
        match self.other {
            None => half(self.error, self.df),
            Some((error, df)) => half(self.error, self.df).hypot(half(error, df)),
        }
    }

    /// Twice the probability of a difference of at least `size` if there is none: the p for which `size` is the half
    /// width of the interval that leaves p / 2 on each side.
    fn two_sided_p(&self, size: f64) -> f64 {
        let Some((other, other_df)) = self.other.filter(|(error, _)| *error > 0.0) else {
            return student_two_sided_p(size / self.error, self.df);
        };
        if self.error == 0.0 {
            return student_two_sided_p(size / other, other_df);
        }
        // The two half widths are `size` times the cosine and the sine of an angle at which both have the same p.
        let both = |angle: f64| {
            let p = student_two_sided_p(size * angle.cos() / self.error, self.df);
            let other_p = student_two_sided_p(size * angle.sin() / other, other_df);
            (p, other_p)
        };
        let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
        for _ in 0..64 {
            let angle = f64::midpoint(low, high);
            let (p, other_p) = both(angle);
            if p < other_p {
                low = angle
            } else {
                high = angle
            }
        }
        let (p, other_p) = both(f64::midpoint(low, high));
        p.max(other_p)
    }

    /// The two-sided test of no difference. With two errors, there is no single number of degrees of freedom.
    pub fn test(&self) -> Result<TestResult, Refusal> {
        let t = finite(self.difference / self.total_error())?;
        Ok(TestResult {
            test: self.test,
            statistic: t,
            df: self.other.is_none().then_some(self.df),
            p: match self.other {
                None => student_two_sided_p(t, self.df),
                Some(_) => self.two_sided_p(self.difference.abs()),
            },
        })
    }

    /// The p-value of "the difference is `within` or more in either direction": the larger of two one-sided tests
    /// (Schuirmann, 1987, A Comparison of the Two One-Sided Tests Procedure). A small value means that the means are
    /// equal for practical purposes. Refuses a `within` that is not above 0.
    pub fn equality_p(&self, within: f64) -> Result<f64, Refusal> {
        if !(within > 0.0 && within.is_finite()) {
            return Err(Refusal::NotFinite);
        }
        let to_spare = within - self.difference.abs();
        finite(to_spare / self.total_error())?;
        let tail = 0.5 * self.two_sided_p(to_spare.abs());
        Ok(if to_spare > 0.0 { tail } else { 1.0 - tail })
    }

    /// The interval for the difference.
    ///
    /// Refuses a level that is not between 0 and 1.
    pub fn interval(&self, level: f64) -> Result<Interval, Refusal> {
        check_level(level)?;
        let method = match self.test {
            Test::WelchT => IntervalMethod::WelchT,
            Test::CorrectedResampledT | Test::CorrectedWelchT => IntervalMethod::CorrectedT,
            _ => IntervalMethod::StudentT,
        };
        Interval::around(
            method,
            level,
            self.difference,
            self.half(0.5 * (1.0 - level)),
        )
    }
}

/// The sum of two independent errors, each with its degrees of freedom, with those of Welch (1947) and Satterthwaite
/// (1946).
pub(super) fn sum((a, n): (f64, f64), (b, m): (f64, f64)) -> (f64, f64) {
    let error = a.hypot(b);
    if error == 0.0 {
        return (error, n.min(m));
    }
    // In units of the error, so that no fourth power over- or underflows.
    let (a, b) = ((a / error).powi(2), (b / error).powi(2));
    // Between the smaller one and their sum. Rounding must not carry it below 1.
    (error, (1.0 / (a * a / n + b * b / m)).max(1.0))
}

/// The values of a sample without their keys.
pub(super) fn values(sample: &[(u64, f64)]) -> Vec<f64> {
    sample.iter().map(|(_, value)| *value).collect()
}

/// Refuses fewer than two values in a sample, and values that are not finite.
pub fn check_both(first: &[f64], second: &[f64]) -> Result<(), Refusal> {
    // The smaller one last, so that a refusal reports it.
    let (small, large) = if first.len() < second.len() {
        (first, second)
    } else {
        (second, first)
    };
    check_values(large, 0)?;
    check_values(small, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's sleep data (1908): hours gained by each of two drugs.
    const DRUG_1: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    const DRUG_2: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
    }

    fn differences() -> Vec<f64> {
        DRUG_1.iter().zip(DRUG_2).map(|(a, b)| a - b).collect()
    }

    #[test]
    fn two_one_sided_tests_are_those_of_scipy() {
        // max(ttest_1samp(d + w, 0, "greater"), ttest_1samp(d - w, 0, "less")) of the sleep data, and the same by
        // ttest_ind(equal_var=False); scipy 1.17.1.
        let paired = Student::paired(&differences(), None).unwrap();
        let welch = Student::welch(&DRUG_1, &DRUG_2, None).unwrap();
        close(paired.equality_p(1.0).unwrap(), 0.9149441145512885);
        close(welch.equality_p(1.0).unwrap(), 0.7483198114409818);
        close(paired.equality_p(2.0).unwrap(), 0.1541572356690974);
        close(welch.equality_p(2.0).unwrap(), 0.31345362597515697);
        close(paired.equality_p(2.5).unwrap(), 0.02111686024650077);
        close(welch.equality_p(2.5).unwrap(), 0.14652972312252044);
        close(paired.equality_p(4.0).unwrap(), 7.738898503215396e-05);
        close(welch.equality_p(4.0).unwrap(), 0.0053616241031591155);
        assert_eq!(paired.equality_p(0.0), Err(Refusal::NotFinite));
        assert_eq!(paired.equality_p(f64::NAN), Err(Refusal::NotFinite));
    }

    #[test]
    fn overlap_widens_by_what_is_shared() {
        // By hand from Nadeau and Bengio's formula: t = mean / (sd sqrt(1/J + n2/n1)), here of ten folds, 1/10 + 1/9.
        let d = differences();
        let corrected = Student::paired(&d, Some(1.0 / 9.0))
            .unwrap()
            .test()
            .unwrap();
        let plain = Student::paired(&d, None).unwrap().test().unwrap();
        close(
            corrected.statistic,
            plain.statistic * (0.1_f64 / (0.1 + 1.0 / 9.0)).sqrt(),
        );
        // 2 * scipy.stats.t.sf(|t|, 9).
        close(corrected.p, 0.020857022957686787);
        assert_eq!(corrected.test, Test::CorrectedResampledT);
        let welch = Student::welch(&DRUG_1, &DRUG_2, Some(0.25))
            .unwrap()
            .test()
            .unwrap();
        let plain = Student::welch(&DRUG_1, &DRUG_2, None)
            .unwrap()
            .test()
            .unwrap();
        close(welch.statistic, plain.statistic * (0.1_f64 / 0.35).sqrt());
    }
}
