//! Values of runs on several splits of the same items, with one seed or several on each.

use std::collections::{BTreeMap, BTreeSet};

use super::sample::{mean, sd};
use super::student::{Student, sum, values};
use super::{Pairs, Refusal, finite};

/// Values whose repeats are other splits of the same items: the runs share training items, so their values are
/// correlated and their spread is too small (Nadeau and Bengio, 2003, Inference for the Generalization Error).
///
/// If the same seeds are used on several splits, runs share two things: a split with the runs of other seeds, and a seed
/// (initial weights and the order of batches) with the runs on other splits. The mean then has two variances:
/// sd² (1/J + ratio) with the spread of the means by split, for J splits, and sd² / S with the spread of the means by
/// seed, for S seeds. Each includes the variance of single runs, which is therefore counted twice: the sum is never too
/// small. Half the width of the interval is the root of the sum of the squares of both half widths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlap {
    /// Held-out items over training items, such as 1/4 for 5 folds.
    pub ratio: f64,
    /// The split of each key. A key without a split counts as its own split.
    pub splits: BTreeMap<u64, u64>,
    /// The seed of each key. A key without a seed counts as its own seed.
    pub seeds: BTreeMap<u64, u64>,
}

impl Overlap {
    /// The means by split, keyed by split. Keys of one split (seeds on one fold) are not further splits.
    pub fn by_split(&self, values: &[(u64, f64)]) -> Vec<(u64, f64)> {
        means(values, &self.splits)
    }

    /// The means by seed, keyed by seed.
    fn by_seed(&self, values: &[(u64, f64)]) -> Vec<(u64, f64)> {
        means(values, &self.seeds)
    }

    /// The mean of the means by split, with its standard errors: of splits, and of seeds if some seed is on several
    /// splits and there is another one. A single seed has no spread, so the result is about this seed only.
    ///
    /// Refuses fewer than two splits, values without any spread, and values that are not finite.
    pub fn of_mean(&self, sample: &[(u64, f64)]) -> Result<Student, Refusal> {
        let by_split = values(&self.by_split(sample));
        match self.error_of_seeds(sample)? {
            None => Student::paired(&by_split, Some(self.ratio)),
            Some((error, df)) => {
                Student::of_differences(&by_split, Some(self.ratio))?.with(error, df)
            }
        }
    }

    /// The same for the differences of pairs: keys are paired first, then averaged. Seeds with the same number have no
    /// effect in common that cancels out, so their differences scatter as the seeds do.
    pub fn of_pairs(&self, pairs: &Pairs) -> Result<Student, Refusal> {
        let keys = pairs.keys.iter().copied();
        let keyed: Vec<(u64, f64)> = keys.zip(pairs.differences.iter().copied()).collect();
        self.of_mean(&keyed)
    }

    /// The same for the difference of two means, without pairs: variances add up, by Welch.
    ///
    /// Also refuses a single seed on several splits, unless the other sample has only the same one: their difference has
    /// the whole effect of that seed, whose size a single one does not show.
    pub fn of_two(&self, first: &[(u64, f64)], second: &[(u64, f64)]) -> Result<Student, Refusal> {
        let seeds = [first, second].map(|sample| self.seeds_of(sample));
        let is_one =
            |(sample, seeds): (&[(u64, f64)], &BTreeSet<u64>)| seeds.len() == 1 && sample.len() > 1;
        if seeds[0] != seeds[1] && [first, second].into_iter().zip(&seeds).any(is_one) {
            return Err(Refusal::TooFew { n: 1, needed: 2 });
        }
        let by_split = [first, second].map(|sample| values(&self.by_split(sample)));
        let seeds = (self.error_of_seeds(first)?, self.error_of_seeds(second)?);
        let (error, df) = match seeds {
            (None, None) => {
                return Student::welch(&by_split[0], &by_split[1], Some(self.ratio));
            }
            (Some(one), None) | (None, Some(one)) => one,
            (Some((a, n)), Some((b, m))) => sum((a, n), (b, m)),
        };
        Student::of_two(&by_split[0], &by_split[1], Some(self.ratio))?.with(error, df)
    }

    /// How many different splits the keys have.
    pub fn num_splits(&self, keys: &[u64]) -> usize {
        let split = |key| self.splits.get(key).unwrap_or(key);
        keys.iter().map(split).collect::<BTreeSet<_>>().len()
    }

    fn seeds_of(&self, sample: &[(u64, f64)]) -> BTreeSet<u64> {
        let keys = sample.iter().map(|(key, _)| key);
        keys.map(|key| *self.seeds.get(key).unwrap_or(key))
            .collect()
    }

    /// The standard error of the mean by split that is due to seeds, with its degrees of freedom; none if there is one
    /// seed, or if no seed is on several splits, so that each split has seeds of its own.
    fn error_of_seeds(&self, sample: &[(u64, f64)]) -> Result<Option<(f64, f64)>, Refusal> {
        let split_of = |key: &u64| *self.splits.get(key).unwrap_or(key);
        let seed_of = |key: &u64| *self.seeds.get(key).unwrap_or(key);
        let mut of_split: BTreeMap<u64, f64> = BTreeMap::new();
        let mut splits_of_seed: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (key, _) in sample {
            *of_split.entry(split_of(key)).or_default() += 1.0;
            let splits = splits_of_seed.entry(seed_of(key)).or_default();
            splits.insert(split_of(key));
        }
        if splits_of_seed.len() < 2 || splits_of_seed.values().all(|splits| splits.len() < 2) {
            return Ok(None);
        }
        // The weight of each seed in the mean of the means by split: 1/S if none is missing.
        let mut weights: BTreeMap<u64, f64> = BTreeMap::new();
        for (key, _) in sample {
            let weight = 1.0 / (of_split.len() as f64 * of_split[&split_of(key)]);
            *weights.entry(seed_of(key)).or_default() += weight;
        }
        let squares: f64 = weights.values().map(|weight| weight * weight).sum();
        let means = values(&self.by_seed(sample));
        let error = finite(sd(&means)? * squares.sqrt())?;
        Ok(Some((error, means.len() as f64 - 1.0)))
    }
}

/// The means of the values with the same `group` of their key; a key without one is its own.
fn means(values: &[(u64, f64)], group: &BTreeMap<u64, u64>) -> Vec<(u64, f64)> {
    let mut all: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (key, value) in values {
        let group = group.get(key).unwrap_or(key);
        all.entry(*group).or_default().push(*value);
    }
    let means = all.into_iter();
    means
        .map(|(group, values)| (group, mean(&values).unwrap_or(f64::NAN)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Test;
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
    }

    /// Keys 10 * split + seed.
    fn crossed(splits: u64, seeds: u64) -> Overlap {
        let keys = || (0..splits).flat_map(move |split| (0..seeds).map(move |seed| (split, seed)));
        let key = |(split, seed)| 10 * split + seed;
        Overlap {
            ratio: 0.5,
            splits: keys().map(|at| (key(at), at.0)).collect(),
            seeds: keys().map(|at| (key(at), at.1)).collect(),
        }
    }

    #[test]
    fn seeds_of_one_split_are_no_further_splits() {
        let overlap = Overlap {
            ratio: 1.0,
            splits: [(1, 0), (2, 0), (3, 1), (4, 1)].into(),
            ..Overlap::default()
        };
        let first = [(1, 1.0), (2, 3.0), (3, 5.0), (9, 0.0)];
        assert_eq!(overlap.by_split(&first), [(0, 2.0), (1, 5.0), (9, 0.0)]);
        assert_eq!(overlap.num_splits(&[1, 2, 3, 9]), 3);
        // Each split has seeds of its own, so its mean includes all that varies.
        let by_split = Student::paired(&[2.0, 5.0, 0.0], Some(1.0));
        assert_eq!(overlap.of_mean(&first), by_split);
        let pairs = Pairs::of(&first, &[(1, 0.0), (3, 1.0), (2, 1.0)]).unwrap();
        let by_split = Student::paired(&[1.5, 4.0], Some(1.0));
        assert_eq!(overlap.of_pairs(&pairs), by_split);
    }

    #[test]
    fn seeds_on_all_splits_add_their_spread() {
        // Splits with means 1 and 2, seeds with means 0.5 and 2.5.
        let sample = [(0, 0.0), (1, 2.0), (10, 1.0), (11, 3.0)];
        let student = crossed(2, 2).of_mean(&sample).unwrap();
        let test = student.test().unwrap();
        assert_eq!(student.difference, 1.5);
        assert_eq!((test.test, test.df), (Test::CorrectedResampledT, None));
        // sqrt(0.5 (1/2 + 0.5) + 2 / 2), both with one degree of freedom and the quantile 12.7062.
        let half = 12.706204736174698 * 1.5_f64.sqrt();
        let interval = student.interval(0.95).unwrap();
        close(interval.high, 1.5 + half);
        close(interval.low, 1.5 - half);
        close(test.statistic, 1.5 / 1.5_f64.sqrt());
        // One degree of freedom: 1 - 2 / pi * atan(t).
        close(
            test.p,
            1.0 - std::f64::consts::FRAC_2_PI * test.statistic.atan(),
        );
        // One seed has no spread to add. Another one is not compared with it, since each has an effect of its own.
        let other = [(1, 2.0), (11, 3.0)];
        let overlap = crossed(2, 2);
        let too_few = Err(Refusal::TooFew { n: 1, needed: 2 });
        assert_eq!(overlap.of_two(&sample[..1], &other), too_few);
        assert_eq!(overlap.of_two(&sample, &other), too_few);
        assert!(overlap.of_two(&[(0, 0.0), (11, 1.0)], &sample).is_ok());
        // Seeds without any spread add nothing.
        let one = [(0, 0.0), (10, 1.0)];
        let by_split = Student::paired(&[0.0, 1.0], Some(0.5));
        assert_eq!(crossed(2, 1).of_mean(&one), by_split);
        let same = [(0, 0.0), (1, 0.0), (10, 1.0), (11, 1.0)];
        let same = crossed(2, 2).of_mean(&same).unwrap();
        let plain = by_split.unwrap();
        close(same.test().unwrap().p, plain.test().unwrap().p);
        assert_eq!(same.interval(0.9), plain.interval(0.9));
        // Splits without any are no reason to trust the seeds.
        let seeds = [(0, 0.0), (1, 1.0), (10, 0.0), (11, 1.0)];
        assert!(crossed(2, 2).of_mean(&seeds).unwrap().test().unwrap().p > 0.1);
        let none = crossed(2, 2).of_mean(&sample.map(|(key, _)| (key, 1.0)));
        assert_eq!(none, Err(Refusal::NoSpread));
    }

    #[test]
    fn the_p_value_belongs_to_the_interval() {
        let overlap = crossed(3, 4);
        let sample: Vec<(u64, f64)> = (overlap.splits.keys())
            .map(|key| (*key, ((key * key) % 7) as f64 + 0.3 * (key % 10) as f64))
            .collect();
        let other: Vec<(u64, f64)> = sample.iter().map(|(key, v)| (key + 100, v * v)).collect();
        for student in [overlap.of_mean(&sample), overlap.of_two(&sample, &other)] {
            let student = student.unwrap();
            let p = student.test().unwrap().p;
            let interval = student.interval(1.0 - p).unwrap();
            let end = if student.difference > 0.0 {
                interval.low
            } else {
                interval.high
            };
            assert!(
                end.abs() < 1e-6 * student.difference.abs(),
                "{end} {student:?}"
            );
        }
        // A seed that is missing on one split has less weight there, and the others have more.
        let part = overlap.of_mean(&sample[1..]).unwrap();
        assert!(part.test().unwrap().p < 1.0);
    }
}
