//! Which of many trials may be the best one.

use super::overlap::Overlap;
use super::student::{Student, values};
use super::{Direction, Looks, Pairs, Refusal, check_level};

/// Trials that others are compared with: those with the best means. The bound holds for any choice of them.
const NUM_RIVALS: usize = 10;

/// For each sample, whether its trial may be the best. With a probability of at least 1 - alpha, the best trial is among
/// those that may be, if the noise is normal: subset selection (Gupta, 1965, On Some Multiple Decision Rules; Hsu,
/// 1981, Simultaneous Confidence Intervals for All Distances from the "Best").
///
/// A trial is ruled out if some other is better by a one-sided t test at alpha / (k - 1), for k trials. The best trial
/// is wrongly ruled out only if one of k - 1 tests is wrong about it, so selection by values needs no further
/// correction: k - 1 comparisons instead of all k (k - 1) / 2. That is a statement about the best trial alone. If
/// several are equally good, some of them may be ruled out.
///
/// Samples are compared without pairs (Welch), which has more degrees of freedom than pairs for the few seeds that
/// trials usually have; over several splits, whose difficulty all trials share, they are paired and the test is
/// corrected for what splits share. Trials with fewer than two values cannot be ruled out.
///
/// Refuses an `alpha` that is not between 0 and 1, fewer than two samples, and a look beyond the planned ones.
pub fn may_be_best<T: AsRef<[(u64, f64)]>>(
    samples: &[T],
    direction: Direction,
    alpha: f64,
    overlap: Option<&Overlap>,
    looks: Option<Looks>,
) -> Result<Vec<bool>, Refusal> {
    check_level(alpha)?;
    if samples.len() < 2 {
        return Err(Refusal::TooFew {
            n: samples.len(),
            needed: 2,
        });
    }
    let share = looks.map_or(Ok(1.0), Looks::share)?;
    let level = alpha * share / (samples.len() - 1) as f64;
    let mean = |sample: &T| {
        let values = sample.as_ref();
        values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64
    };
    let means: Vec<f64> = samples.iter().map(mean).collect();
    let mut rivals: Vec<usize> = (0..samples.len())
        .filter(|at| means[*at].is_finite())
        .collect();
    rivals.sort_by(|a, b| {
        let upwards = means[*a].total_cmp(&means[*b]);
        match direction {
            Direction::HigherIsBetter => upwards.reverse(),
            Direction::LowerIsBetter => upwards,
        }
    });
    rivals.truncate(NUM_RIVALS);
    let is_beaten = |at: usize, rival: usize| {
        let found = compared(samples[rival].as_ref(), samples[at].as_ref(), overlap);
        let tested = found.and_then(|student| Ok((student.difference, student.test()?)));
        tested.is_ok_and(|(difference, test)| {
            direction.is_better(difference, 0.0) && 0.5 * test.p <= level
        })
    };
    let may_be = |at: usize| {
        let mut others = rivals.iter().filter(|rival| **rival != at);
        !others.any(|rival| is_beaten(at, *rival))
    };
    Ok((0..samples.len()).map(may_be).collect())
}

/// Student's t for two samples.
fn compared(
    first: &[(u64, f64)],
    second: &[(u64, f64)],
    overlap: Option<&Overlap>,
) -> Result<Student, Refusal> {
    match overlap {
        Some(overlap) => overlap.of_pairs(&Pairs::of(first, second)?),
        None => Student::welch(&values(first), &values(second), None),
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{HigherIsBetter, LowerIsBetter};
    use super::*;

    fn sample(values: &[f64]) -> Vec<(u64, f64)> {
        (1..).zip(values.iter().copied()).collect()
    }

    fn may_be(samples: &[Vec<(u64, f64)>], direction: Direction) -> Vec<bool> {
        may_be_best(samples, direction, 0.05, None, None).unwrap()
    }

    #[test]
    fn what_is_plainly_beaten_is_ruled_out() {
        let samples = [
            sample(&[0.70, 0.71, 0.72]),
            sample(&[0.960, 0.961, 0.962]),
            sample(&[0.959, 0.962, 0.963]),
            sample(&[0.5]),
        ];
        assert_eq!(may_be(&samples, HigherIsBetter), [false, true, true, true]);
        assert_eq!(may_be(&samples, LowerIsBetter), [true, false, false, true]);
        // Values without spread, NaN and no values rule out nothing.
        let odd = [
            sample(&[1.0, 1.0]),
            sample(&[2.0, 2.0]),
            sample(&[f64::NAN, 1.0]),
            sample(&[]),
        ];
        assert_eq!(may_be(&odd, HigherIsBetter), [true; 4]);
    }

    #[test]
    fn looks_and_splits_make_it_harder() {
        let samples = [
            sample(&[0.90, 0.91, 0.92, 0.90]),
            sample(&[0.93, 0.94, 0.95, 0.96]),
        ];
        assert_eq!(may_be(&samples, HigherIsBetter), [false, true]);
        let at = |number| {
            let looks = Some(Looks {
                number,
                planned: 500,
            });
            may_be_best(&samples, HigherIsBetter, 0.05, None, looks)
        };
        assert_eq!(at(1), Ok(vec![true, true]));
        assert_eq!(at(501), Err(Refusal::NoLooksLeft { planned: 500 }));
        let overlap = Overlap {
            ratio: 2.0,
            ..Overlap::default()
        };
        let over_splits = may_be_best(&samples, HigherIsBetter, 0.05, Some(&overlap), None);
        assert_eq!(over_splits, Ok(vec![true, true]));
        assert!(may_be_best(&samples[..1], HigherIsBetter, 0.05, None, None).is_err());
        assert!(may_be_best(&samples, HigherIsBetter, 1.0, None, None).is_err());
    }
}
