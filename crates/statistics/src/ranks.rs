//! The Mann-Whitney test, exact with ties.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use super::{Refusal, Test, TestResult, check_values};

/// All assignments are counted up to this number of values in both samples together.
pub const MOST_RANKED: usize = 100;
/// The number of assignments sampled beyond that: with the observed one, 2^16.
const NUM_ASSIGNMENTS: u32 = (1 << 16) - 1;
/// The seed of assignments. A constant: equal samples get equal p-values.
const SEED: u64 = 1947;

/// The exact two-sided Mann-Whitney test (Mann and Whitney, 1947, On a Test of Whether one of Two Random Variables is
/// Stochastically Larger; Wilcoxon's rank-sum test). The pooled values get midranks, so that ties share the mean of
/// their ranks. p is the fraction of all ways to choose the first sample's positions whose rank sum is at least as far
/// from its mean n1 (n1 + n2 + 1) / 2 as the observed one. The statistic is U of the first sample: R1 - n1 (n1 + 1) /
/// 2, the number of pairs in which its value is the larger, with ties counted half.
///
/// The distribution of the rank sum comes from a recurrence over the pooled values and holds with ties as well, where
/// tables of U and normal approximations do not. Without ties p is twice the smaller tail.
///
/// Above [`MOST_RANKED`] values, p = (b + 1) / (m + 1) over m = 65,535 sampled choices, b of which are at least as far
/// (Phipson and Smyth, 2010).
///
/// Refuses an empty sample, and values that are not finite.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Result<TestResult, Refusal> {
    check_values(first, 1)?;
    check_values(second, 1)?;
    let (n, m) = (first.len(), second.len());
    let ranks = doubled_midranks(first, second);
    let sum: usize = ranks[..n].iter().sum();
    // The rank sum with fewer terms; both samples' are equally far from their means.
    let (chosen, observed) = if n <= m {
        (n, sum)
    } else {
        (m, ranks[n..].iter().sum())
    };
    let mean = chosen * (n + m + 1);
    let far = observed.abs_diff(mean);
    let (test, p) = if n + m > MOST_RANKED {
        let num = drawn_as_far(&ranks, chosen, |sum| sum.abs_diff(mean) >= far);
        let all = f64::from(NUM_ASSIGNMENTS) + 1.0;
        (Test::MannWhitneyMonteCarlo, (f64::from(num) + 1.0) / all)
    } else {
        let counts = rank_sums(&ranks, chosen);
        let all: f64 = counts.iter().sum();
        let as_far = counts
            .iter()
            .enumerate()
            .filter(|(sum, _)| sum.abs_diff(mean) >= far);
        let num: f64 = as_far.map(|(_, count)| count).sum();
        (Test::MannWhitneyExact, num / all)
    };
    Ok(TestResult {
        test,
        statistic: 0.5 * (sum - n * (n + 1)) as f64,
        df: None,
        p: p.min(1.0),
    })
}

/// How many of the sampled choices of `num` ranks have a sum that is as far.
fn drawn_as_far(ranks: &[usize], num: usize, is_as_far: impl Fn(usize) -> bool) -> u32 {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    // In ascending order, so that the same choices are sampled for the same values in any order.
    let mut left = ranks.to_vec();
    left.sort_unstable();
    let mut as_far = 0;
    for _ in 0..NUM_ASSIGNMENTS {
        let mut sum = 0;
        for at in 0..num {
            let rest = (left.len() - at) as u64;
            let other = at + ((u64::from(random.next_u32()) * rest) >> 32) as usize;
            left.swap(at, other);
            sum += left[at];
        }
        as_far += u32::from(is_as_far(sum));
    }
    as_far
}

/// Twice the midrank of each value, those of `first` first: twice, so that all are integers.
fn doubled_midranks(first: &[f64], second: &[f64]) -> Vec<usize> {
    let pooled: Vec<f64> = first.iter().chain(second).copied().collect();
    let mut order: Vec<usize> = (0..pooled.len()).collect();
    order.sort_by(|a, b| pooled[*a].total_cmp(&pooled[*b]));
    let mut ranks = vec![0; pooled.len()];
    let mut before = 0;
    // With ==, not with the equality of the order, which distinguishes 0 from -0.
    for tied in order.chunk_by(|a, b| pooled[*a] == pooled[*b]) {
        for at in tied {
            ranks[*at] = 2 * before + tied.len() + 1;
        }
        before += tied.len();
    }
    ranks
}

/// The number of ways to choose `num` of `ranks` for each sum. Counts are exact up to 2^53 and rounded above, as C(100,
/// 50) is too large for any integer.
fn rank_sums(ranks: &[usize], num: usize) -> Vec<f64> {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    let largest: usize = sorted.iter().rev().take(num).sum();
    // counts[k][s]: ways to choose k of the ranks seen so far with the sum s.
    let mut counts = vec![vec![0.0; largest + 1]; num + 1];
    counts[0][0] = 1.0;
    for rank in sorted {
        // Descending, so that no rank is used twice.
        for k in (1..=num).rev() {
            let (fewer, more) = counts.split_at_mut(k);
            for (to, from) in more[0].iter_mut().skip(rank).zip(&fewer[k - 1]) {
                *to += from;
            }
        }
    }
    counts.pop().unwrap_or_default()
}

/// The smallest p-value that the Mann-Whitney test can give for samples of `n` and `m` values without ties:
/// 2 / C(n + m, n), or 1 in 65,536 where assignments are sampled. At most 1.
pub fn smallest_rank_p(n: usize, m: usize) -> f64 {
    if n > 0 && m > 0 && n.saturating_add(m) > MOST_RANKED {
        return 1.0 / (f64::from(NUM_ASSIGNMENTS) + 1.0);
    }
    let (few, many) = (n.min(m), n.max(m) as f64);
    let mut p = 2.0;
    for k in 1..=few {
        p *= k as f64 / (many + k as f64);
        if p == 0.0 {
            break;
        }
    }
    f64::min(p, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Over all subsets as bits of a number, in halves of ranks counted by comparing all pairs.
    fn by_enumeration(first: &[i32], second: &[i32]) -> (f64, f64) {
        let pooled: Vec<i32> = first.iter().chain(second).copied().collect();
        let doubled_u = |subset: u32| -> i64 {
            let mut u = 0;
            for (i, a) in pooled
                .iter()
                .enumerate()
                .filter(|(i, _)| subset >> i & 1 == 1)
            {
                for (j, b) in pooled
                    .iter()
                    .enumerate()
                    .filter(|(j, _)| subset >> j & 1 == 0)
                {
                    assert_ne!(i, j);
                    u += 1 + i64::from(a.cmp(b) as i8);
                }
            }
            u
        };
        let mean = (first.len() * second.len()) as i64;
        let observed = doubled_u((1 << first.len()) - 1);
        let (mut all, mut far) = (0, 0);
        for subset in 0..1u32 << pooled.len() {
            if subset.count_ones() as usize == first.len() {
                all += 1;
                far += i32::from((doubled_u(subset) - mean).abs() >= (observed - mean).abs());
            }
        }
        (0.5 * observed as f64, f64::from(far) / f64::from(all))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn it_is_what_enumeration_gives(
            first in prop::collection::vec(0i32..9, 1..6),
            second in prop::collection::vec(0i32..9, 1..6),
        ) {
            let (u, p) = by_enumeration(&first, &second);
            let a: Vec<f64> = first.iter().map(|v| f64::from(*v) * 0.1).collect();
            let b: Vec<f64> = second.iter().map(|v| f64::from(*v) * 0.1).collect();
            let result = mann_whitney(&a, &b).unwrap();
            prop_assert_eq!(result.statistic, u);
            prop_assert!((result.p - p).abs() < 1e-12, "{} {}", result.p, p);
            let turned = mann_whitney(&b, &a).unwrap();
            prop_assert!((turned.p - p).abs() < 1e-12);
            prop_assert_eq!(turned.statistic + u, (a.len() * b.len()) as f64);
        }
    }

    /// Two samples without ties in which the first has the given U.
    fn with_u(n: usize, m: usize, u: usize) -> (Vec<f64>, Vec<f64>) {
        let second: Vec<f64> = (0..m).map(|v| v as f64).collect();
        let mut left = u;
        let mut first = Vec::new();
        for k in 0..n {
            let beaten = left.min(m);
            left -= beaten;
            first.push(beaten as f64 - 0.5 + 0.001 * k as f64 / n as f64);
        }
        (first, second)
    }

    fn p_of(n: usize, m: usize, u: usize) -> f64 {
        let (first, second) = with_u(n, m, u);
        let result = mann_whitney(&first, &second).unwrap();
        assert_eq!(result.statistic, u as f64);
        result.p
    }

    #[test]
    fn the_table_of_mann_and_whitney() {
        // Mann and Whitney (1947), table I: the chance of a U that is not larger, to three digits.
        let tables: [(usize, usize, &[f64]); 3] = [
            (3, 3, &[0.050, 0.100, 0.200, 0.350]),
            (
                4,
                4,
                &[0.014, 0.029, 0.057, 0.100, 0.171, 0.243, 0.343, 0.443],
            ),
            (
                5,
                5,
                &[
                    0.004, 0.008, 0.016, 0.028, 0.048, 0.075, 0.111, 0.155, 0.210, 0.274,
                ],
            ),
        ];
        for (n, m, tails) in tables {
            for (u, tail) in tails.iter().enumerate() {
                assert!((0.5 * p_of(n, m, u) - tail).abs() < 6e-4, "{n} {m} {u}");
            }
        }
    }

    #[test]
    fn critical_values_of_tables() {
        // The largest U that is significant at 0.05, two-sided, as every textbook's table has it (Milton, 1964).
        for (n, m, critical) in [
            (4, 4, 0),
            (3, 5, 0),
            (5, 5, 2),
            (6, 6, 5),
            (7, 7, 8),
            (5, 8, 6),
            (8, 8, 13),
            (9, 9, 17),
            (10, 10, 23),
            (20, 20, 127),
        ] {
            assert!(p_of(n, m, critical) <= 0.05, "{n} {m}");
            assert!(p_of(n, m, critical + 1) > 0.05, "{n} {m}");
            assert!(p_of(m, n, critical) <= 0.05, "{n} {m}");
        }
    }

    #[test]
    fn separated_samples_have_the_smallest_p() {
        for (n, m) in [
            (1, 1),
            (2, 2),
            (3, 3),
            (5, 5),
            (5, 7),
            (7, 5),
            (1, 39),
            (50, 50),
        ] {
            let smallest = smallest_rank_p(n, m);
            assert!(
                (p_of(n, m, 0) - smallest).abs() <= 1e-12 * smallest,
                "{n} {m}"
            );
        }
        assert!((smallest_rank_p(5, 5) - 0.007936507936507936).abs() < 1e-15);
        assert_eq!(smallest_rank_p(0, 3), 1.0);
        assert_eq!(smallest_rank_p(usize::MAX, usize::MAX), 0.5_f64.powi(16));
    }

    #[test]
    fn ties_and_edges() {
        // scipy.stats.permutation_test over the same statistic, scipy 1.17.1.
        let (first, second) = ([1.0, 2.0, 2.0, 3.0, 5.0], [2.0, 3.0, 4.0, 4.0, 6.0, 6.0]);
        let p = mann_whitney(&first, &second).unwrap().p;
        assert!((p - 0.12987012987012986).abs() < 1e-14);
        assert_eq!(mann_whitney(&[0.3; 4], &[0.3; 3]).unwrap().p, 1.0);
        assert_eq!(mann_whitney(&[0.0, -0.0], &[-0.0, 0.0]).unwrap().p, 1.0);
        let too_few = Err(Refusal::TooFew { n: 0, needed: 1 });
        assert_eq!(mann_whitney(&[], &[1.0]), too_few);
        assert_eq!(mann_whitney(&[1.0], &[]), too_few);
        assert_eq!(mann_whitney(&[1.0], &[f64::NAN]), Err(Refusal::NotFinite));
    }

    #[test]
    fn many_values_are_sampled() {
        // p by scipy.stats.mannwhitneyu, exact, scipy 1.17.1.
        for (u, exact) in [
            (1500, 0.116_203_5),
            (1300, 0.008_417_14),
            (1000, 0.000_018_66),
        ] {
            let (first, second) = with_u(60, 60, u);
            let result = mann_whitney(&first, &second).unwrap();
            assert_eq!(result.test, Test::MannWhitneyMonteCarlo);
            let error = (exact * (1.0 - exact) / f64::from(NUM_ASSIGNMENTS)).sqrt();
            assert!(
                (result.p - exact).abs() < 4.0 * error + 2e-5,
                "{u}: {} {exact}",
                result.p
            );
            let turned: Vec<f64> = first.iter().rev().copied().collect();
            assert_eq!(mann_whitney(&turned, &second).unwrap(), result);
        }
        let apart = mann_whitney(&[1.0; 60], &[2.0; 41]).unwrap();
        assert_eq!(apart.p, smallest_rank_p(60, 41));
    }
}
