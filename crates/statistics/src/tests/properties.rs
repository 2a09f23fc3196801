//! Symmetry, scaling, and invalid input.

use proptest::prelude::*;

use super::super::*;
use super::keyed;
use super::verdicts::claims;

/// Anything that a caller may pass.
fn any_sample() -> impl Strategy<Value = Vec<f64>> {
    let odd = prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        0.1 + 0.2,
        0.3,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        1e-200,
        1e200,
    ]);
    let any = prop_oneof![4 => odd.clone(), 2 => -1.0..1.0, 1 => any::<f64>()];
    // Mostly small numbers too, or nearly all samples would be refused.
    let tame = prop_oneof![
        8 => -1.0..1.0,
        2 => prop::sample::select(vec![0.0, 1.0, 0.1 + 0.2, 0.3, 1e-200, 1e200, 5e-324, 1e300]),
    ];
    prop_oneof![
        prop::collection::vec(any, 0..9),
        prop::collection::vec(tame, 0..9)
    ]
}

fn is_sound(interval: &Interval) -> bool {
    interval.low.is_finite() && interval.high.is_finite() && interval.low <= interval.high
}

fn is_sound_test(result: &TestResult) -> bool {
    (0.0..=1.0).contains(&result.p) && result.statistic.is_finite()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_all_numbers_are_finite(
        first in any_sample(),
        second in any_sample(),
        level in prop_oneof![any::<f64>(), 0.0..1.0, Just(1.0 - 1e-16), Just(1e-300)],
        shift in 0u64..12,
    ) {
        if let Ok(of) = Description::of(&first) {
            prop_assert!(of.mean.is_finite() && of.sd.is_none_or(f64::is_finite) && of.median.is_finite());
            prop_assert!(of.minimum <= of.median && of.median <= of.maximum);
        }
        for interval in [
            Interval::student(&first, level),
            Interval::bca(&first[..first.len().min(4)], level),
            welch_interval(&first, &second, level),
        ] {
            prop_assert!(interval.is_err() || is_sound(&interval.unwrap()), "{:?}", interval);
        }
        for test in [
            paired_t_test(&first),
            sign_flip(&first),
            mann_whitney(&first, &second),
            welch_t_test(&first, &second),
        ] {
            prop_assert!(test.is_err() || is_sound_test(&test.unwrap()), "{:?}", test);
        }
        for effect in [cohens_d_z(&first), hedges_g(&first, &second)] {
            prop_assert!(effect.is_err() || effect.unwrap().is_finite());
        }
        let _ = holm(&first);
        let baseline = keyed(&second);
        let trial: Vec<(u64, f64)> = keyed(&first).iter().map(|(key, v)| (key + shift, *v)).collect();
        let found = verdicts(&baseline, &[&trial, &baseline], &claims(Direction::LowerIsBetter, level, 0));
        for verdict in found.into_iter().flatten() {
            let claims = matches!(verdict.finding, Finding::Better | Finding::Worse);
            prop_assert!(!claims || verdict.p_corrected.is_some_and(|p| p <= level));
            prop_assert!(!claims || verdict.comparison.is_some_and(|c| c.design.n() >= 2));
        }
        let rows: Vec<Row> = (0..).zip(&first).map(|(seed, value)| Row {
            levels: vec![(seed % 2).to_string()],
            seed: seed / 2,
            value: *value,
        }).collect();
        let _ = marginal_effect(&rows, 0, level, None);
    }

    #[test]
    fn swapping_samples_turns_signs(
        first in prop::collection::vec(-1.0..1.0, 2..8),
        second in prop::collection::vec(-1.0..1.0, 2..8),
    ) {
        let (a, b) = (welch_t_test(&first, &second).unwrap(), welch_t_test(&second, &first).unwrap());
        prop_assert_eq!((a.statistic, a.p), (-b.statistic, b.p));
        prop_assert_eq!(hedges_g(&first, &second).unwrap(), -hedges_g(&second, &first).unwrap());
        let (a, b) = (keyed(&first), keyed(&second));
        let there = Comparison::of(&a, &b, 0.95, None).unwrap();
        let back = Comparison::of(&b, &a, 0.95, None).unwrap();
        prop_assert_eq!(there.mean_difference, -back.mean_difference);
        prop_assert_eq!(there.test.p, back.test.p);
        let ends = |c: Comparison| c.interval.map(|i| (i.low, i.high));
        prop_assert_eq!(ends(there), ends(back).map(|(low, high)| (-high, -low)));
    }

    #[test]
    fn units_do_not_matter(
        first in prop::collection::vec(-1.0..1.0, 3..8),
        second in prop::collection::vec(-1.0..1.0, 3..8),
        exponent in -40i32..40,
    ) {
        // By powers of 2, which round nothing.
        let scale = 2.0_f64.powi(exponent);
        let scaled = |values: &[f64]| values.iter().map(|v| v * scale).collect::<Vec<f64>>();
        let (large, larger) = (scaled(&first), scaled(&second));
        prop_assert_eq!(welch_t_test(&first, &second), welch_t_test(&large, &larger));
        prop_assert_eq!(hedges_g(&first, &second), hedges_g(&large, &larger));
        prop_assert_eq!(paired_t_test(&first), paired_t_test(&large));
        prop_assert_eq!(mann_whitney(&first, &second), mann_whitney(&large, &larger));
        prop_assert_eq!(sign_flip(&first).unwrap().p, sign_flip(&large).unwrap().p);
        for (plain, of_large) in [
            (Interval::student(&first, 0.9).unwrap(), Interval::student(&large, 0.9).unwrap()),
            (Interval::bca(&first, 0.9).unwrap(), Interval::bca(&large, 0.9).unwrap()),
        ] {
            prop_assert_eq!((plain.low * scale, plain.high * scale), (of_large.low, of_large.high));
        }
    }

    #[test]
    fn holm_is_monotone_and_between_raw_and_bonferroni(p in prop::collection::vec(0.0..=1.0f64, 0..12)) {
        let corrected = holm(&p).unwrap();
        for (i, a) in p.iter().enumerate() {
            prop_assert!(corrected[i] >= *a && corrected[i] <= (p.len() as f64 * a).min(1.0));
            for (j, b) in p.iter().enumerate() {
                prop_assert!(a > b || corrected[i] <= corrected[j]);
            }
        }
        // By definition: step down while the next p is small enough.
        let mut order: Vec<usize> = (0..p.len()).collect();
        order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
        let steps = order.iter().enumerate();
        let num = steps.take_while(|(k, at)| (p.len() - k) as f64 * p[**at] <= 0.2).count();
        prop_assert_eq!(num, corrected.iter().filter(|p| **p <= 0.2).count());
    }
}
