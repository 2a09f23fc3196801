//! Which claims are made, and which are not.

use super::super::Direction::{HigherIsBetter, LowerIsBetter};
use super::super::*;
use super::{DRUG_1, DRUG_2, close, keyed};

/// Claims without a smallest difference, on one split.
pub fn claims(direction: Direction, alpha: f64, num_comparisons: usize) -> Claims<'static> {
    Claims {
        direction,
        alpha,
        num_comparisons,
        smallest_difference: None,
        overlap: None,
        looks: None,
    }
}

/// The finding of a single trial against a baseline at 0.05.
fn finding(trial: &[(u64, f64)], baseline: &[(u64, f64)], direction: Direction) -> Finding {
    verdicts(baseline, &[trial], &claims(direction, 0.05, 0)).unwrap()[0].finding
}

#[test]
fn verdicts_go_the_way_of_the_direction() {
    let (low, high) = (keyed(&DRUG_1), keyed(&DRUG_2));
    assert_eq!(finding(&high, &low, HigherIsBetter), Finding::Better);
    assert_eq!(finding(&high, &low, LowerIsBetter), Finding::Worse);
    assert_eq!(finding(&low, &high, HigherIsBetter), Finding::Worse);
    assert_eq!(finding(&low, &high, LowerIsBetter), Finding::Better);
    assert_eq!(
        finding(&low, &low, LowerIsBetter),
        Finding::NoDifferenceShown
    );
    // The same values without common seeds: only some difference, by ranks.
    let others: Vec<(u64, f64)> = high.iter().map(|(key, v)| (key + 100, *v)).collect();
    let verdict = verdicts(&low, &[&others], &claims(HigherIsBetter, 0.05, 0)).unwrap()[0];
    assert_eq!(verdict.finding, Finding::NoDifferenceShown);
    let comparison = verdict.comparison.unwrap();
    assert_eq!(
        comparison.design,
        Design::Independent {
            first: 10,
            second: 10,
            common: 0
        }
    );
    assert_eq!(comparison.test.test, Test::MannWhitneyExact);
    close(comparison.mean_difference, 1.58);
}

#[test]
fn too_few_seeds_make_no_claim_however_clear() {
    let baseline = keyed(&[0.10, 0.11, 0.12, 0.10, 0.11, 0.13, 0.12]);
    let trial = keyed(&[0.90, 0.92, 0.91, 0.93, 0.90, 0.94, 0.91]);
    for n in 0..=7 {
        let verdict =
            verdicts(&baseline, &[&trial[..n]], &claims(HigherIsBetter, 0.05, 0)).unwrap()[0];
        match (n, verdict.finding) {
            (0..=5, Finding::TooFewSeeds { about_more }) => {
                assert_eq!(about_more.to_reach, Some(6 - n), "{n}");
                assert_eq!(about_more.for_power, (n >= 2).then_some(6 - n), "{n}");
                let noncentral = (n >= 2).then_some(Approximation::NoncentralT);
                assert_eq!(about_more.approximation, noncentral);
            }
            (6.., Finding::Better) => {}
            (_, finding) => panic!("{n}: {finding:?}"),
        }
        assert_eq!(verdict.p_corrected.is_some(), n >= 2);
    }
    // A weak effect takes more than the test itself.
    let weak = keyed(&[0.105, 0.105, 0.13]);
    let Finding::TooFewSeeds { about_more } = finding(&weak, &baseline, HigherIsBetter) else {
        panic!("a claim from three seeds");
    };
    assert_eq!(about_more.to_reach, Some(3));
    assert!(about_more.for_power > Some(20), "{about_more:?}");
}

#[test]
fn one_seed_among_many_makes_no_claim() {
    // By ranks 2/41 would do for one value beyond 40 others.
    let baseline: Vec<(u64, f64)> = (0..40).map(|seed| (seed, seed as f64)).collect();
    let verdict = verdicts(&baseline, &[[(99, 1e6)]], &claims(HigherIsBetter, 0.05, 0)).unwrap()[0];
    assert!(verdict.comparison.unwrap().test.p < 0.05);
    assert_eq!(verdict.p_corrected, None);
    let Finding::TooFewSeeds { about_more } = verdict.finding else {
        panic!("{verdict:?}");
    };
    assert_eq!((about_more.to_reach, about_more.for_power), (Some(1), None));
    let two = [(99, 1e6), (98, 1e6 + 1.0)];
    assert_eq!(finding(&two, &baseline, HigherIsBetter), Finding::Better);
}

#[test]
fn many_trials_need_more_seeds() {
    // Six pairs reach 1/32: enough for one trial, not for two.
    let baseline = keyed(&[0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
    let clear = keyed(&[1.0, 1.2, 1.1, 1.3, 1.5, 1.6]);
    let same = keyed(&[0.1, 0.0, 0.3, 0.2, 0.5, 0.4]);
    assert_eq!(finding(&clear, &baseline, HigherIsBetter), Finding::Better);
    for trials in [[&clear, &same], [&same, &clear], [&clear, &clear]] {
        for verdict in verdicts(&baseline, &trials, &claims(HigherIsBetter, 0.05, 0)).unwrap() {
            let Finding::TooFewSeeds { about_more } = verdict.finding else {
                panic!("{verdict:?}");
            };
            assert_eq!(about_more.to_reach, Some(1));
            assert_eq!(verdict.alpha_corrected, 0.025);
            assert_eq!(verdict.num_comparisons, 2);
        }
    }
    // A trial that failed is counted, or its absence would make a claim of the other.
    let failed = vec![(1, f64::NAN)];
    let found = verdicts(
        &baseline,
        &[&clear, &failed],
        &claims(HigherIsBetter, 0.05, 0),
    )
    .unwrap();
    assert!(matches!(found[0].finding, Finding::TooFewSeeds { .. }));
    let refusal = Refusal::NotFinite;
    assert_eq!(found[1].finding, Finding::NotTested { refusal });
    assert_eq!((found[1].comparison, found[1].p_corrected), (None, None));
}

#[test]
fn a_claim_leaves_more_to_the_others() {
    let seeds = 1..=10;
    let baseline: Vec<(u64, f64)> = seeds.clone().map(|seed| (seed, 0.0)).collect();
    let clear: Vec<(u64, f64)> = seeds.map(|seed| (seed, seed as f64)).collect();
    let six = &clear[..6];
    // 2/1024 is a claim at 0.05 / 2, after which 2/64 is one at 0.05.
    let found = verdicts(
        &baseline,
        &[six, &clear[..]],
        &claims(HigherIsBetter, 0.05, 0),
    )
    .unwrap();
    assert_eq!(
        (found[0].finding, found[1].finding),
        (Finding::Better, Finding::Better)
    );
    assert_eq!(
        (found[0].alpha_corrected, found[1].alpha_corrected),
        (0.05, 0.025)
    );
    assert_eq!(found[0].p_corrected, Some(1.0 / 32.0));
    let pairs = Design::Paired {
        pairs: 6,
        only_first: 0,
        only_second: 4,
    };
    assert_eq!(found[0].comparison.unwrap().design, pairs);
    // Equal differences have no spread to estimate, but still support a claim.
    let steady: Vec<(u64, f64)> = baseline.iter().map(|(seed, v)| (*seed, v + 0.1)).collect();
    let found = verdicts(&baseline, &[&steady], &claims(LowerIsBetter, 0.05, 0)).unwrap()[0];
    assert_eq!(found.finding, Finding::Worse);
    assert_eq!(
        (
            found.comparison.unwrap().interval,
            found.comparison.unwrap().effect
        ),
        (None, None)
    );
}

#[test]
fn levels_beyond_reach_are_told() {
    let (trial, baseline) = (keyed(&DRUG_2), keyed(&DRUG_1));
    let verdict = verdicts(&baseline, &[&trial], &claims(HigherIsBetter, 1e-9, 0)).unwrap()[0];
    let Finding::TooFewSeeds { about_more } = verdict.finding else {
        panic!("{verdict:?}");
    };
    assert_eq!((about_more.to_reach, about_more.for_power), (None, None));
    assert!(verdicts(&baseline, &[&trial], &claims(HigherIsBetter, 1e-300, 0)).is_ok());
    assert_eq!(
        verdicts(&baseline, &[&trial], &claims(HigherIsBetter, 0.0, 0)),
        Err(Refusal::BadLevel)
    );
    let none: [Vec<(u64, f64)>; 0] = [];
    assert_eq!(
        verdicts(&baseline, &none, &claims(HigherIsBetter, 0.05, 0)),
        Ok(vec![])
    );
}

#[test]
fn a_verdict_survives_json() {
    let (trial, baseline) = (keyed(&DRUG_2), keyed(&DRUG_1));
    let trials = [
        trial.clone(),
        trial[..3].to_vec(),
        vec![],
        vec![(1, f64::NAN)],
    ];
    let found = verdicts(&baseline, &trials, &claims(HigherIsBetter, 0.05, 0)).unwrap();
    let text = serde_json::to_string(&found).unwrap();
    for part in [
        "\"better\"",
        "\"too_few_seeds\"",
        "\"not_finite\"",
        "\"sign_flip_exact\"",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let read: Vec<Verdict> = serde_json::from_str(&text).unwrap();
    let summary = |verdicts: &[Verdict]| verdicts.iter().map(|v| v.finding).collect::<Vec<_>>();
    assert_eq!(summary(&read), summary(&found));
}

#[test]
fn comparisons_that_are_made_elsewhere_count() {
    let baseline = keyed(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let above: Vec<_> = baseline
        .iter()
        .map(|(key, v)| (*key, v + 1.0 + v / 10.0))
        .collect();
    let verdict = |num| {
        super::super::verdicts(&baseline, &[&above], &claims(HigherIsBetter, 0.05, num)).unwrap()[0]
    };
    // All six differences point one way: p = 2 / 2^6.
    assert_eq!(verdict(0).p_corrected, Some(0.03125));
    assert_eq!(verdict(0).finding, Finding::Better);
    assert_eq!(verdict(3).p_corrected, Some(0.09375));
    assert!(matches!(verdict(3).finding, Finding::TooFewSeeds { .. }));
    assert_eq!(verdict(3).alpha_corrected, 0.05 / 3.0);
}
