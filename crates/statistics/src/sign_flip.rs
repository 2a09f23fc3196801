//! The paired permutation test: the distribution of the mean difference if the signs of the pairs were random.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use super::sample::mean;
use super::{Refusal, Test, TestResult, check_values, finite};

/// All sign flips are enumerated up to this number of pairs: 2^20 of them.
pub const MOST_ENUMERATED: usize = 20;
/// The number of flips sampled beyond that. With the observed one they are 2^19, so that the smallest p equals that of
/// [`MOST_ENUMERATED`] pairs, and never grows with the number of pairs.
pub const NUM_FLIPS: u32 = (1 << 19) - 1;
/// The seed of flips. A constant: equal samples get equal p-values.
const SEED: u64 = 2010;
/// Sums closer than this to the observed one, in units of the sum of all magnitudes, are ties. Differences of decimal
/// numbers are rounded, and a missed tie would make p too small.
const TIE: f64 = 1e-9;

/// The exact paired sign-flip test (Fisher, 1935, The Design of Experiments, section 21): p is the fraction of all 2^n
/// ways to flip the signs of the differences whose mean is at least as far from 0 as the observed one. It only assumes
/// that the differences are symmetric around 0 if there is no effect, and is exact for any distribution.
///
/// Above [`MOST_ENUMERATED`] pairs, p = (b + 1) / (m + 1) over m = [`NUM_FLIPS`] sampled flips, b of which are at least
/// as far (Phipson and Smyth, 2010, Permutation P-values Should Never Be Zero). The statistic is the mean difference. p
/// depends neither on the order of the differences nor on which sample comes first.
///
/// Refuses an empty sample, and differences that are not finite or too large to sum. A single difference has p = 1.
pub fn sign_flip(differences: &[f64]) -> Result<TestResult, Refusal> {
    check_values(differences, 1)?;
    // Flips of the magnitudes are flips of the differences. In ascending order, so that the same flips are sampled for
    // the same pairs in any order and direction.
    let mut sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let total = finite(sizes.iter().sum::<f64>())?;
    let least = differences.iter().sum::<f64>().abs() - TIE * total;
    let (test, p) = match sizes.split_first() {
        Some((first, rest)) if sizes.len() <= MOST_ENUMERATED => {
            // Flipping all signs keeps the magnitude of a sum, so the first sign can be fixed.
            let num = f64::from(as_far(rest, *first, least));
            (Test::SignFlipExact, num * smallest_sign_flip_p(sizes.len()))
        }
        _ => {
            let num = drawn_as_far(&sizes, least);
            let all = f64::from(NUM_FLIPS) + 1.0;
            (Test::SignFlipMonteCarlo, (f64::from(num) + 1.0) / all)
        }
    };
    Ok(TestResult {
        test,
        // Differences that cancel up to rounding have a mean of 0.
        statistic: if least <= 0.0 {
            0.0
        } else {
            mean(differences)?
        },
        df: None,
        p: p.min(1.0),
    })
}

/// The number of sign assignments of `rest` whose sum, added to `sum`, has a magnitude of at least `least`.
fn as_far(rest: &[f64], sum: f64, least: f64) -> u32 {
    match rest.split_first() {
        Some((first, rest)) => as_far(rest, sum + first, least) + as_far(rest, sum - first, least),
        None => u32::from(sum.abs() >= least),
    }
}

/// The number of sampled flips whose sum has a magnitude of at least `least`.
///
/// A flip is one bit per difference. The sums of eight neighbors with each assignment of signs are computed once, so
/// that a flip needs one addition per eight differences; and several flips are summed in parallel, since each addition
/// waits for the previous one.
fn drawn_as_far(sizes: &[f64], least: f64) -> u32 {
    const SIDE_BY_SIDE: usize = 8;
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let tables: Vec<Vec<[f64; 256]>> = sizes
        .chunks(64)
        .map(|word| word.chunks(8).map(signed_sums).collect())
        .collect();
    let mut words = vec![[0; SIDE_BY_SIDE]; tables.len()];
    let mut num = 0;
    let mut left = NUM_FLIPS as usize;
    while left > 0 {
        let now = left.min(SIDE_BY_SIDE);
        left -= now;
        for flip in 0..now {
            words
                .iter_mut()
                .for_each(|word| word[flip] = rng.next_u64());
        }
        let mut sums = [0.0_f64; SIDE_BY_SIDE];
        for (word, tables) in words.iter().zip(&tables) {
            let mut signs = *word;
            for table in tables {
                for (sum, signs) in sums.iter_mut().zip(&mut signs) {
                    *sum += table[usize::from(*signs as u8)];
                    *signs >>= 8;
                }
            }
        }
        let as_far = sums[..now].iter().filter(|sum| sum.abs() >= least);
        num += as_far.count() as u32;
    }
    num
}

/// The sums of up to eight differences, negated where the bit of the index is set.
fn signed_sums(sizes: &[f64]) -> [f64; 256] {
    let mut sums = [0.0; 256];
    for (signs, sum) in sums.iter_mut().enumerate() {
        for (at, size) in sizes.iter().enumerate() {
            *sum += match signs >> at & 1 {
                0 => *size,
                _ => -*size,
            };
        }
    }
    sums
}

/// The smallest possible p-value of the sign-flip test for `n` pairs: 2 / 2^n if all flips are enumerated, since the
/// observed signs and their opposites are always equally far, and 1 / ([`NUM_FLIPS`] + 1) above. At most 1.
pub fn smallest_sign_flip_p(n: usize) -> f64 {
    let exponent = n.clamp(1, MOST_ENUMERATED) - 1;
    0.5_f64.powi(exponent as i32)
}

/// The minimum number of pairs with which the sign-flip test can reach `alpha`: ceil(log2(2 / alpha)), which is 6 for
/// 0.05. None if no number suffices, for an alpha below 2^-19, and if `alpha` is invalid.
pub fn pairs_to_reach(alpha: f64) -> Option<usize> {
    super::check_level(alpha).ok()?;
    (1..=MOST_ENUMERATED).find(|n| smallest_sign_flip_p(*n) <= alpha)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Darwin's differences of cross- and self-fertilized Zea mays in eighths of an inch, as Fisher gives them.
    const DARWIN: [f64; 15] = [
        49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0,
    ];

    /// Over all flips as bits of a number, in whole numbers.
    fn by_enumeration(differences: &[i64]) -> f64 {
        let n = differences.len();
        let observed = differences.iter().sum::<i64>().abs();
        let sum = |flips: u32| -> i64 {
            let signed = |(at, d): (usize, &i64)| if flips >> at & 1 == 1 { -d } else { *d };
            differences.iter().enumerate().map(signed).sum()
        };
        let num = (0..1u32 << n)
            .filter(|flips| sum(*flips).abs() >= observed)
            .count();
        num as f64 / f64::from(1u32 << n)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn it_is_what_enumeration_gives(whole in prop::collection::vec(-6i64..7, 1..11), exponent in -3i32..4) {
            // As decimals, which have ties that rounding hides.
            let scale = 10f64.powi(exponent);
            let differences: Vec<f64> = whole.iter().map(|d| *d as f64 * scale).collect();
            let p = sign_flip(&differences).unwrap().p;
            prop_assert_eq!(p, by_enumeration(&whole));
            let turned: Vec<f64> = differences.iter().rev().map(|d| -d).collect();
            prop_assert_eq!(sign_flip(&turned).unwrap().p, p);
        }
    }

    #[test]
    fn fishers_example() {
        // The Design of Experiments, section 21: 1726 of 32768 arrangements, 5.267 %.
        let result = sign_flip(&DARWIN).unwrap();
        assert_eq!(result.test, Test::SignFlipExact);
        assert_eq!(result.p, 1726.0 / 32768.0);
    }

    #[test]
    fn rounded_decimals_tie() {
        // In whole numbers 1 + 2 - 3 = 0; as differences of decimals it is not.
        let differences = [0.91 - 0.90, 0.92 - 0.90, -(0.93 - 0.90)];
        assert_eq!(sign_flip(&differences).unwrap().p, 1.0);
    }

    #[test]
    fn draws_come_close_to_enumeration() {
        // Six zeros leave the exact p as it is, and make 21 pairs.
        let mut more = DARWIN.to_vec();
        more.extend([0.0; 6]);
        let result = sign_flip(&more).unwrap();
        assert_eq!(result.test, Test::SignFlipMonteCarlo);
        // Four standard errors of a share of 2^19 draws.
        assert!((result.p - 1726.0 / 32768.0).abs() < 0.00125, "{result:?}");
        let turned: Vec<f64> = more.iter().rev().map(|d| -d).collect();
        assert_eq!(sign_flip(&turned).unwrap().p, result.p);
        let many: Vec<f64> = (1..70).map(f64::from).collect();
        assert_eq!(sign_flip(&many).unwrap().p, 0.5f64.powi(19));
    }

    #[test]
    fn few_pairs_reach_little() {
        assert_eq!(sign_flip(&[5.0]).unwrap().p, 1.0);
        assert_eq!(sign_flip(&[0.0; 4]).unwrap().p, 1.0);
        assert_eq!(sign_flip(&[1.0, 2.0]).unwrap().p, 0.5);
        assert_eq!(sign_flip(&[]), Err(Refusal::TooFew { n: 0, needed: 1 }));
        assert_eq!(sign_flip(&[f64::INFINITY]), Err(Refusal::NotFinite));
        assert_eq!(sign_flip(&[1e308, 1e308]), Err(Refusal::NotFinite));
        for n in 1..=MOST_ENUMERATED {
            let differences: Vec<f64> = (1..=n).map(|d| d as f64).collect();
            assert_eq!(sign_flip(&differences).unwrap().p, smallest_sign_flip_p(n));
        }
    }

    #[test]
    fn pairs_needed_are_those_of_the_formula() {
        for alpha in [0.9, 0.5, 0.1, 0.05, 0.025, 0.01, 0.005, 0.001, 1e-5] {
            let formula = (2.0_f64 / alpha).log2().ceil() as usize;
            assert_eq!(pairs_to_reach(alpha), Some(formula), "{alpha}");
        }
        assert_eq!(pairs_to_reach(0.05), Some(6));
        assert_eq!(pairs_to_reach(1e-7), None);
        assert_eq!(pairs_to_reach(0.0), None);
        assert_eq!(pairs_to_reach(f64::NAN), None);
    }
}
