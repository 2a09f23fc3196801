//! What is claimed if the noise is normal, and what over several splits.

use super::super::Direction::HigherIsBetter;
use super::super::*;
use super::verdicts::claims;
use super::{DRUG_1, DRUG_2, close, keyed};

fn read(trial: &[(u64, f64)], baseline: &[(u64, f64)], smallest: Option<f64>) -> Verdict {
    let claims = Claims {
        smallest_difference: smallest,
        ..claims(HigherIsBetter, 0.05, 0)
    };
    verdicts(baseline, &[trial], &claims).unwrap()[0]
}

#[test]
fn three_seeds_say_what_is_plain_and_nothing_else() {
    // 0.745 ± 0.012 against 0.961 ± 0.004: no exact test can reach 5 % with three seeds.
    let best = keyed(&[0.957, 0.961, 0.965]);
    let bad = read(&keyed(&[0.733, 0.745, 0.757]), &best, None);
    assert!(matches!(bad.finding, Finding::TooFewSeeds { .. }));
    let normal = bad.if_normal.unwrap();
    assert_eq!((normal.reading, normal.about_more), (Reading::Worse, None));
    // scipy.stats.ttest_rel([0.733, 0.745, 0.757], [0.957, 0.961, 0.965]), scipy 1.17.1.
    close(normal.test.statistic, -46.76537180435963);
    close(normal.test.p, 0.0004569339968970069);
    // 0.9643 against 0.9634.
    let near = read(
        &keyed(&[0.9603, 0.9634, 0.9665]),
        &keyed(&[0.961, 0.968, 0.9639]),
        None,
    );
    let normal = near.if_normal.unwrap();
    assert_eq!(normal.reading, Reading::Undecided);
    assert!(normal.about_more.is_some_and(|more| more > 3), "{normal:?}");
}

#[test]
fn equality_can_be_concluded() {
    let one = keyed(&[0.9601, 0.9634, 0.9665, 0.9640]);
    let other = keyed(&[0.9612, 0.9630, 0.9672, 0.9636]);
    let equal = |within| read(&one, &other, Some(within)).if_normal.unwrap();
    let found = equal(0.005);
    assert_eq!(found.reading, Reading::Equal);
    let equality = found.equality.unwrap();
    // The larger p of scipy.stats.ttest_1samp(d ± 0.005, 0) one way each, scipy 1.17.1.
    close(equality.p, 0.0005694037336621486);
    assert!(equality.is_claimed && equality.within == 0.005);
    // What matters less than the noise cannot be ruled out, and without a bound nothing is equal.
    assert_eq!(equal(0.0005).reading, Reading::Undecided);
    assert_eq!(read(&one, &other, None).if_normal.unwrap().equality, None);
    // A difference can be certain and too small to matter.
    let above: Vec<_> = (1..9)
        .map(|seed| (seed, 0.5 + 1e-3 + 1e-5 * seed as f64))
        .collect();
    let below: Vec<_> = (1..9).map(|seed| (seed, 0.5)).collect();
    let both = read(&above, &below, Some(0.005));
    let normal = both.if_normal.unwrap();
    assert_eq!(
        (both.finding, normal.reading),
        (Finding::Better, Reading::Better)
    );
    assert!(normal.equality.unwrap().is_claimed);
}

#[test]
fn readings_are_corrected_for_their_number() {
    let baseline = keyed(&[0.50, 0.52, 0.51]);
    let trial = keyed(&[0.60, 0.64, 0.62]);
    let normal = |num| {
        let claims = claims(HigherIsBetter, 0.05, num);
        let found = verdicts(&baseline, &[&trial], &claims).unwrap()[0];
        found.if_normal.unwrap()
    };
    let (one, many) = (normal(1), normal(24));
    assert_eq!(one.reading, Reading::Better);
    close(many.p_corrected, 24.0 * one.test.p);
    assert_eq!(many.reading, Reading::Undecided);
}

#[test]
fn values_without_spread_have_no_reading() {
    let same = keyed(&[0.9, 0.8, 0.7]);
    let other = keyed(&[0.8, 0.7, 0.6]);
    assert_eq!(read(&same, &other, Some(0.1)).if_normal, None);
    assert_eq!(read(&same, &same, Some(0.1)).if_normal, None);
}

#[test]
fn few_common_seeds_do_not_throw_the_others_away() {
    let sample = |seeds: std::ops::RangeInclusive<u64>, values: &[f64]| -> Vec<(u64, f64)> {
        seeds.zip(values.iter().copied()).collect()
    };
    let (a, b) = (sample(1..=10, &DRUG_1), sample(10..=19, &DRUG_2));
    let found = Comparison::of(&a, &b, 0.95, None).unwrap();
    let independent = |first, second, common| Design::Independent {
        first,
        second,
        common,
    };
    assert_eq!(found.design, independent(10, 10, 1));
    close(found.test.p, mann_whitney(&DRUG_1, &DRUG_2).unwrap().p);
    // From half of the seeds on pairs are as good, at a correlation of one half.
    let design = |start| {
        let b = sample(start..=start + 9, &DRUG_2);
        Comparison::of(&a, &b, 0.95, None).unwrap().design
    };
    assert_eq!(design(7), independent(10, 10, 4));
    let paired = Design::Paired {
        pairs: 5,
        only_first: 5,
        only_second: 5,
    };
    assert_eq!(design(6), paired);
    // By keys alone: other values have the same design.
    let others = sample(1..=10, &[1e6; 10]);
    assert_eq!(
        Comparison::of(&others, &b, 0.95, None).unwrap().design,
        found.design
    );
    // One value has no spread, so one pair stays one.
    let one = Comparison::of(&a[..1], &a[..1], 0.95, None).unwrap().design;
    assert_eq!(one.n(), 1);
}

#[test]
fn splits_that_share_items_have_a_corrected_test_alone() {
    let splits = (1..=10).map(|key| (key, (key - 1) / 2)).collect();
    let overlap = Overlap {
        ratio: 0.25,
        splits,
        ..Overlap::default()
    };
    let claims = Claims {
        overlap: Some(&overlap),
        ..claims(HigherIsBetter, 0.05, 0)
    };
    let (baseline, trial) = (keyed(&DRUG_1), keyed(&DRUG_2));
    let found = verdicts(&baseline, &[&trial], &claims).unwrap()[0];
    assert_eq!(
        (found.finding, found.p_corrected),
        (Finding::NoExactTest, None)
    );
    let compared = found.comparison.unwrap();
    assert_eq!(
        (compared.design.n(), compared.test.test),
        (5, Test::CorrectedResampledT)
    );
    // mean / (sd sqrt(1/5 + 1/4)) of the five differences of means, 2 scipy.stats.t.sf(t, 4), scipy 1.17.1.
    close(compared.test.statistic, 2.5592288619492765);
    close(found.if_normal.unwrap().test.p, 0.06268925166808488);
    assert_eq!(found.if_normal.unwrap().about_more, None);
    // One split says nothing.
    let found = verdicts(&baseline[..2], &[&trial[..2]], &claims).unwrap()[0];
    let Finding::TooFewSeeds { about_more } = found.finding else {
        panic!("{found:?}");
    };
    assert_eq!(about_more.to_reach, Some(1));
    let interval = Interval::corrected(&baseline, &overlap, 0.95).unwrap();
    close(interval.low, -1.6541714155277978);
    close(interval.high, 3.154171415527798);
}

#[test]
fn looks_share_the_level() {
    let trial: Vec<(u64, f64)> = (0..10)
        .map(|seed| (seed, 1.0 + 0.1 * seed as f64))
        .collect();
    let base: Vec<(u64, f64)> = (0..10).map(|seed| (seed, 0.2 * seed as f64)).collect();
    let at = |looks: Option<Looks>| {
        let claims = Claims {
            looks,
            smallest_difference: Some(5.0),
            ..claims(HigherIsBetter, 0.05, 0)
        };
        verdicts(&base, &[&trial], &claims).unwrap()[0]
    };
    let (once, second) = (
        at(None),
        at(Some(Looks {
            number: 2,
            planned: 5,
        })),
    );
    let both = [once, second].map(|verdict| verdict.if_normal.unwrap());
    close(both[1].p_corrected, 5.0 * both[0].p_corrected);
    close(second.p_corrected.unwrap(), 5.0 * once.p_corrected.unwrap());
    close(second.alpha_corrected, 0.01);
    let equal = both.map(|normal| normal.equality.unwrap().p_corrected);
    close(equal[1], 5.0 * equal[0]);
    // Nothing is tested once all of them were made, and the difference is still told.
    let late = at(Some(Looks {
        number: 6,
        planned: 5,
    }));
    let refusal = Refusal::NoLooksLeft { planned: 5 };
    assert_eq!(late.finding, Finding::NotTested { refusal });
    assert_eq!(late.comparison, once.comparison);
    assert_eq!(late.if_normal, None);
}
