//! The result of Student's t for a difference of means, whatever its standard error was estimated from.

use std::collections::BTreeMap;

use super::distribution::{student_critical, student_two_sided_p};
use super::sample::{Interval, IntervalMethod, mean, sd, spread};
use super::{Pairs, Refusal, Test, TestResult, check_level, check_values, finite};

/// Values whose repeats are other splits of the same items: the runs share training items, so their values are
/// correlated and their spread is too small (Nadeau and Bengio, 2003, Inference for the Generalization Error).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlap {
    /// Held-out items over training items, such as 1/4 for 5 folds.
    pub ratio: f64,
    /// The split of each key. Keys of one split (seeds on one fold) are averaged first: they are not further splits.
    pub splits: BTreeMap<u64, u64>,
}

impl Overlap {
    /// The means by split, keyed by split. A key without a split counts as its own split.
    pub fn by_split(&self, values: &[(u64, f64)]) -> Vec<(u64, f64)> {
        let mut all: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (key, value) in values {
            let split = self.splits.get(key).unwrap_or(key);
            all.entry(*split).or_default().push(*value);
        }
        let means = all.into_iter();
        means
            .map(|(split, values)| (split, mean(&values).unwrap_or(f64::NAN)))
            .collect()
    }

    /// The differences of pairs by split: keys are paired first, then averaged.
    pub fn pairs(&self, pairs: &Pairs) -> Pairs {
        let keyed: Vec<(u64, f64)> = pairs
            .keys
            .iter()
            .copied()
            .zip(pairs.differences.iter().copied())
            .collect();
        let (keys, differences) = self.by_split(&keyed).into_iter().unzip();
        Pairs {
            keys,
            differences,
            only_first: pairs.only_first,
            only_second: pairs.only_second,
        }
    }
}

/// A difference of means (or a mean) with its standard error and degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Student {
    pub difference: f64,
    error: f64,
    df: f64,
    test: Test,
}

impl Student {
    /// Of paired differences: sd / sqrt(n) with n - 1 degrees of freedom (Student, 1908). With an overlap `ratio`, the
    /// variance is sd² (1/n + ratio) instead of sd² / n: the corrected resampled t test (Nadeau and Bengio, 2003,
    /// section 3; Bouckaert and Frank, 2004).
    ///
    /// Refuses fewer than two differences, equal ones, and non-finite ones.
    pub fn paired(differences: &[f64], ratio: Option<f64>) -> Result<Self, Refusal> {
        check_values(differences, 2)?;
        let n = differences.len() as f64;
        Ok(Self {
            difference: mean(differences)?,
            error: finite(spread(differences)? * (1.0 / n + ratio.unwrap_or(0.0)).sqrt())?,
            df: n - 1.0,
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
        check_both(first, second)?;
        let (n, m) = (first.len() as f64, second.len() as f64);
        let factor = |n: f64| (1.0 / n + ratio.unwrap_or(0.0)).sqrt();
        let (a, b) = (sd(first)? * factor(n), sd(second)? * factor(m));
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
            test: match ratio {
                None => Test::WelchT,
                Some(_) => Test::CorrectedWelchT,
            },
        })
    }

    /// The two-sided test of no difference.
    pub fn test(&self) -> Result<TestResult, Refusal> {
        let t = finite(self.difference / self.error)?;
        Ok(TestResult {
            test: self.test,
            statistic: t,
            df: Some(self.df),
            p: student_two_sided_p(t, self.df),
        })
    }

    /// The p-value of "the difference is `within` or more in either direction": the larger of two one-sided tests
    /// (Schuirmann, 1987, A Comparison of the Two One-Sided Tests Procedure). A small value means that the means are
    /// equal for practical purposes. Refuses a `within` that is not above 0.
    pub fn equality_p(&self, within: f64) -> Result<f64, Refusal> {
        if !(within > 0.0 && within.is_finite()) {
            return Err(Refusal::NotFinite);
        }
        let t = finite((within - self.difference.abs()) / self.error)?;
        let tail = 0.5 * student_two_sided_p(t, self.df);
        Ok(if t > 0.0 { tail } else { 1.0 - tail })
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
        let half = student_critical(0.5 * (1.0 - level), self.df) * self.error;
        Interval::around(method, level, self.difference, half)
    }
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

    #[test]
    fn seeds_of_one_split_are_no_further_splits() {
        let splits = [(1, 0), (2, 0), (3, 1), (4, 1)].into();
        let overlap = Overlap { ratio: 1.0, splits };
        let first = [(1, 1.0), (2, 3.0), (3, 5.0), (9, 0.0)];
        assert_eq!(overlap.by_split(&first), [(0, 2.0), (1, 5.0), (9, 0.0)]);
        let pairs = Pairs::of(&first, &[(1, 0.0), (3, 1.0), (2, 1.0)]).unwrap();
        let by_split = overlap.pairs(&pairs);
        assert_eq!(
            (by_split.keys, by_split.differences),
            (vec![0, 1], vec![1.5, 4.0])
        );
    }
}
