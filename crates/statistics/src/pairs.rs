//! Two samples of the same seeds: their differences, and Student's t for them.

use serde::{Deserialize, Serialize};

use super::sample::{mean, spread};
use super::student::Student;
use super::{Refusal, TestResult, check_values, finite};

/// The possible rounding error of a difference, in units of the larger value.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// Two samples paired by key. Values without a partner are excluded and counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pairs {
    /// The keys that both samples have, ascending.
    pub keys: Vec<u64>,
    /// The first value minus the second, for each key.
    pub differences: Vec<f64>,
    /// The number of values of the first sample without a partner.
    pub only_first: usize,
    /// The number for the second.
    pub only_second: usize,
}

impl Pairs {
    /// Pairs `first` with `second` by key (the seed). Samples without a common key give no pairs, which is not an
    /// error.
    ///
    /// A difference within rounding error counts as 0, and differences that agree up to rounding count as equal.
    /// Otherwise 0.9 - 0.8 and 0.8 - 0.7 would have a spread, and an effect of 10^15 standard deviations.
    ///
    /// Refuses a duplicate key in a sample, non-finite values, and values whose difference is not finite.
    pub fn of(first: &[(u64, f64)], second: &[(u64, f64)]) -> Result<Self, Refusal> {
        let (first, second) = (sorted(first)?, sorted(second)?);
        let mut pairs = Self::default();
        let mut largest = 0.0_f64;
        for (key, a) in &first {
            let Ok(at) = second.binary_search_by_key(key, |(key, _)| *key) else {
                continue;
            };
            let b = second[at].1;
            let size = a.abs().max(b.abs());
            let difference = finite(a - b)?;
            pairs.keys.push(*key);
            pairs
                .differences
                .push(if difference.abs() <= ROUNDING * size {
                    0.0
                } else {
                    difference
                });
            largest = largest.max(size);
        }
        pairs.only_first = first.len() - pairs.keys.len();
        pairs.only_second = second.len() - pairs.keys.len();
        let lowest = pairs
            .differences
            .iter()
            .fold(f64::INFINITY, |m, d| m.min(*d));
        let highest = pairs
            .differences
            .iter()
            .fold(f64::NEG_INFINITY, |m, d| m.max(*d));
        if highest - lowest <= ROUNDING * largest {
            let equal = pairs.differences.first().copied().unwrap_or_default();
            pairs.differences.fill(equal);
        }
        Ok(pairs)
    }

    /// The number of pairs.
    pub fn n(&self) -> usize {
        self.differences.len()
    }
}

/// A sample in the order of its keys.
fn sorted(sample: &[(u64, f64)]) -> Result<Vec<(u64, f64)>, Refusal> {
    if sample.iter().any(|(_, value)| !value.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    let mut sorted = sample.to_vec();
    sorted.sort_by_key(|(key, _)| *key);
    match sorted.windows(2).find(|two| two[0].0 == two[1].0) {
        Some(two) => Err(Refusal::RepeatedKey { key: two[0].0 }),
        None => Ok(sorted),
    }
}

/// Student's paired t test (Student, 1908, The Probable Error of a Mean): t = mean / (sd / sqrt(n)) of the differences,
/// with n - 1 degrees of freedom. It assumes normal differences.
///
/// Refuses fewer than two differences, equal ones, and non-finite ones.
pub fn paired_t_test(differences: &[f64]) -> Result<TestResult, Refusal> {
    Student::paired(differences, None)?.test()
}

/// Cohen's d_z, the effect size of paired samples: the mean of the differences over their sample standard deviation
/// (Cohen, 1988, Statistical Power Analysis, section 2.3.5). Unitless. It is not corrected for small samples, and
/// describes how consistent a difference is over seeds, not how large it is.
///
/// Refuses fewer than two differences, equal ones, and non-finite ones.
pub fn cohens_d_z(differences: &[f64]) -> Result<f64, Refusal> {
    check_values(differences, 2)?;
    finite(mean(differences)? / spread(differences)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_partner_is_counted() {
        let first = [(3, 5.0), (1, 2.0), (9, 1.0)];
        let second = [(1, 1.5), (2, 7.0), (3, 4.0), (4, 0.0)];
        let pairs = Pairs::of(&first, &second).unwrap();
        assert_eq!(pairs.keys, [1, 3]);
        assert_eq!(pairs.differences, [0.5, 1.0]);
        assert_eq!((pairs.only_first, pairs.only_second), (1, 2));
        assert_eq!(Pairs::of(&[], &second).unwrap().only_second, 4);
        assert_eq!(Pairs::of(&[], &[]).unwrap(), Pairs::default());
    }

    #[test]
    fn repeated_keys_and_infinities_are_refused() {
        let twice = [(7, 1.0), (2, 1.0), (7, 2.0)];
        assert_eq!(Pairs::of(&twice, &[]), Err(Refusal::RepeatedKey { key: 7 }));
        assert_eq!(Pairs::of(&[], &twice), Err(Refusal::RepeatedKey { key: 7 }));
        assert_eq!(Pairs::of(&[(1, f64::NAN)], &[]), Err(Refusal::NotFinite));
        assert_eq!(
            Pairs::of(&[(1, 1.7e308)], &[(1, -1.7e308)]),
            Err(Refusal::NotFinite)
        );
    }

    #[test]
    fn rounding_is_no_difference() {
        let first = [(1, 0.9), (2, 0.8), (3, 0.7)];
        let second = [(1, 0.8), (2, 0.7), (3, 0.6)];
        let pairs = Pairs::of(&first, &second).unwrap();
        assert_eq!(cohens_d_z(&pairs.differences), Err(Refusal::NoSpread));
        let pairs = Pairs::of(&[(1, 0.1 + 0.2), (2, 1.0)], &[(1, 0.3), (2, 0.5)]).unwrap();
        assert_eq!(pairs.differences, [0.0, 0.5]);
    }
}
