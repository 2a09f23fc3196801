use super::*;

fn side(losses: &[f64], digests: &[(usize, &str)], objective: f64) -> Side {
    let digests = digests.iter().map(|(step, digest)| Digests {
        step: *step,
        parameters: vec![
            ("a.weight".into(), "same".into()),
            ("b.weight".into(), (*digest).to_owned()),
        ],
    });
    Side {
        trace: Trace {
            losses: losses.to_vec(),
            digests: digests.collect(),
        },
        objective: Some(objective),
        epochs: Vec::new(),
        evaluations: BTreeMap::new(),
        weights_digest: digests_of(losses),
    }
}

fn digests_of(losses: &[f64]) -> String {
    format!("{losses:?}")
}

fn graded(then: &Side, now: &Side, ulps: Option<f64>, seeds: &[f64]) -> String {
    let weights = ulps.map(|ulps| {
        let weight = WeightDistance::apart("b.weight".to_owned(), [None, None]);
        [WeightDistance { ulps, ..weight }]
    });
    let weights = weights.as_ref().map(|weights| weights.as_slice());
    let comparison = Comparison::of(then, now, None, weights);
    let spread = prediction_interval(seeds);
    Grade::of(&comparison, spread, AtLeast::Bitwise).to_string()
}

#[test]
fn grades_follow_from_what_differs() {
    let then = side(&[0.5, 0.25, 0.125], &[(0, "x"), (3, "y")], 0.9);
    let near = side(&[0.5, 0.25, 0.125 + 3e-8], &[(0, "x"), (3, "z")], 0.9);
    let far = side(&[0.5, 0.3, 0.2], &[(0, "x"), (3, "z")], 0.91);
    let other = side(&[0.4, 0.3, 0.2], &[(0, "w"), (3, "z")], 0.9);
    let longer = side(&[0.5, 0.25, 0.125, 0.1], &[(0, "x"), (3, "y")], 0.9);
    let silent = Side {
        trace: Trace::default(),
        ..then.clone()
    };
    let seeds = [0.9, 0.92, 0.88];
    let cases = [
        ("the same", graded(&then, &then, Some(0.0), &[])),
        ("near", graded(&then, &near, Some(7.5), &[])),
        ("near, weights unknown", graded(&then, &near, None, &[])),
        ("far", graded(&then, &far, Some(1e6), &[])),
        ("far, with seeds", graded(&then, &far, Some(1e6), &seeds)),
        ("another start", graded(&then, &other, Some(1e6), &seeds)),
        ("longer", graded(&then, &longer, Some(1e6), &[])),
        ("no trace, same weights", graded(&silent, &then, None, &[])),
        ("no trace", graded(&silent, &far, None, &[])),
    ];
    let shown = cases.map(|(name, grade)| format!("{name}: {grade}"));
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn the_first_steps_alone_can_be_compared() {
    let then = side(&[0.5, 0.25, 0.125], &[(0, "x"), (3, "y")], 0.9);
    let now = side(&[0.5, 0.25], &[(0, "x"), (2, "v")], 0.1);
    let comparison = Comparison::of(&then, &now, Some(2), None);
    assert!(comparison.is_bitwise() && comparison.num_steps == 2);
    assert_eq!(comparison.objective, None);
}

#[test]
fn grades_are_asked_for_by_name() {
    let parsed = |text: &str| text.parse::<AtLeast>();
    assert_eq!(parsed("ulp:16"), Ok(AtLeast::Ulps(16.0)));
    assert_eq!(parsed("bitwise"), Ok(AtLeast::Bitwise));
    assert!(parsed("ulp:-1").is_err() && parsed("ulp:NaN").is_err() && parsed("exact").is_err());
    let within = Grade::Within {
        ulps: 12.0,
        place: String::new(),
    };
    assert!(within.is(AtLeast::Ulps(12.0)) && !within.is(AtLeast::Ulps(11.0)));
    assert!(within.is(AtLeast::Equivalent) && !within.is(AtLeast::Bitwise));
}

/// Three values with mean 10 and deviation 1: t for two degrees of freedom is 4.302653, of every table.
#[test]
fn the_interval_of_a_further_seed_is_students() {
    let spread = prediction_interval(&[9.0, 10.0, 11.0]).unwrap();
    let half = 4.302_652_73 * (4.0f64 / 3.0).sqrt();
    assert!((spread.interval[1] - (10.0 + half)).abs() < 1e-6);
    assert_eq!(prediction_interval(&[1.0]), None);
    assert_eq!(prediction_interval(&[1.0, f64::NAN]), None);
}

#[test]
fn units_in_the_last_place_are_those_of_floats() {
    assert_eq!(ulp(1.0), f64::from(f32::EPSILON));
    assert_eq!(ulp(-4.0), 4.0 * f64::from(f32::EPSILON));
    assert!(ulp(0.0) > 0.0);
}

#[test]
fn weights_are_held_against_each_other() {
    let far = |a: &[f64], b: &[f64]| {
        let pairs = a.iter().copied().zip(b.iter().copied());
        let far = WeightDistance::of("w".into(), &[a.len()], pairs);
        (far.relative_norm.unwrap(), far.largest.unwrap(), far.ulps)
    };
    assert_eq!(far(&[3.0, 4.0], &[3.0, 4.0]), (0.0, 0.0, 0.0));
    // A difference of norm 5 from a vector of norm 5; the largest one is 4, and 4 is 2^23 units of 4.
    assert_eq!(far(&[3.0, 4.0], &[0.0, 0.0]), (1.0, 4.0, 8_388_608.0));
    assert_eq!(far(&[f64::NAN], &[f64::NAN]).1, 0.0);
    assert_eq!(far(&[1.0, 1.0], &[1.0, f64::NAN]).1, f64::INFINITY);
    assert_eq!(far(&[0.0], &[1.0]).0, f64::INFINITY);
}

#[test]
fn the_processor_is_no_difference_of_portable_runs() {
    let environment = |cpu: &str, os: &str, burn: &str| -> Environment {
        let known = serde_json::json!({
            "recorded_at": "", "runner_version": "1", "burn_version": burn, "backends": [], "git_commit": null,
            "git_dirty": null, "host": "", "os": os, "cpu": cpu, "cores": 1, "memory_bytes": 0,
            "data_notice": null, "worker": null,
        });
        serde_json::from_value(known).expect("an environment")
    };
    let then = environment("a processor", "a system", "1");
    let now = environment("another processor", "another system", "2");
    let names = |arithmetic| {
        let differing = environment_differences(&then, &now, arithmetic).into_iter();
        differing.map(|[name, ..]| name).collect::<Vec<_>>()
    };
    assert_eq!(
        names(Arithmetic::Fast),
        ["burn", OPERATING_SYSTEM, PROCESSOR]
    );
    assert_eq!(names(Arithmetic::Portable), ["burn"]);
}
