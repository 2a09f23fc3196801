use super::*;

fn error(reference: &[f64], other: &[f64], precision: Precision) -> Error {
    let pairs = reference.iter().copied().zip(other.iter().copied());
    Error::of(pairs, precision)
}

#[test]
fn errors_are_measured_against_the_largest_value() {
    let ulp_of_4 = f64::powi(2.0, 2 - 23);
    let found = error(&[4.0, 1e-6], &[4.0, 1e-6 + ulp_of_4], Precision::F32);
    assert!((found.ulps - 1.0).abs() < 1e-6, "{found:?}");
    assert!((found.relative - ulp_of_4 / 4.0).abs() < 1e-12, "{found:?}");
    // A unit in the last place of half precision is 2^13 of those.
    let half = error(&[4.0], &[4.0 + 8192.0 * ulp_of_4], Precision::F16);
    assert_eq!(half.ulps, 1.0);
}

#[test]
fn what_is_no_number_is_equal_to_itself_alone() {
    let nan = f64::NAN;
    assert_eq!(error(&[nan], &[nan], Precision::F32), Error::default());
    let infinite = error(&[nan, 1.0], &[2.0, 1.0], Precision::F32);
    assert_eq!(infinite.ulps, f64::INFINITY);
    // JSON has no infinity, but it is still read back.
    let json = serde_json::to_string(&infinite).unwrap();
    assert!(json.contains("\"ulps\":null"), "{json}");
    assert_eq!(serde_json::from_str::<Error>(&json).unwrap(), infinite);
}

fn tensor(layer: &str, of: Of, by_itself: bool, ulps: f64, floor: f64) -> Compared {
    Compared {
        layer: layer.into(),
        kind: "linear".into(),
        of,
        part: None,
        by_itself,
        error: Error {
            ulps,
            ..Error::default()
        },
        floor,
    }
}

fn step(step: usize, compared: Vec<Compared>) -> Step {
    Step {
        step,
        reference_loss: 1.0,
        loss: 1.0,
        compared,
    }
}

#[test]
fn an_infinite_noise_floor_hides_nothing() {
    let infinite = f64::INFINITY;
    let lost = step(3, vec![tensor("a", Of::Output, true, infinite, infinite)]);
    match Verdict::of(&[lost]) {
        Verdict::NotCompared { first } => assert_eq!(first.step, 3),
        other => panic!("{other:?}"),
    }
    let equal = step(1, vec![tensor("a", Of::Output, true, 0.0, infinite)]);
    assert_eq!(Verdict::of(&[equal]), Verdict::Agrees);
}

#[test]
fn a_layer_is_wrong_only_by_itself() {
    let good = step(1, vec![tensor("a", Of::Output, false, 40.0, 10.0)]);
    assert_eq!(
        Verdict::of(std::slice::from_ref(&good)),
        Verdict::Agrees,
        "as far as the floor allows"
    );
    let suffers = step(2, vec![tensor("a", Of::Output, false, 41.0, 10.0)]);
    let drifts = Verdict::of(&[good.clone(), suffers.clone()]);
    assert!(
        matches!(&drifts, Verdict::Drifts { first } if first.step == 2),
        "{drifts:?}"
    );
    let wrong = step(
        3,
        vec![
            tensor("b", Of::Output, true, 9.0, 0.0),
            tensor("b", Of::InputGradient, true, 900.0, 0.0),
        ],
    );
    let differs = Verdict::of(&[good, suffers, wrong]);
    let Verdict::Differs {
        first: Some(first),
        wrong,
    } = &differs
    else {
        panic!("{differs:?}");
    };
    assert_eq!((first.step, first.compared.layer.as_str()), (2, "a"));
    assert_eq!(wrong.len(), 1);
    assert_eq!((wrong[0].step, wrong[0].compared.of), (3, Of::Output));
}
