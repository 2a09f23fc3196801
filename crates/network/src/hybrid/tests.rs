//! The phases as a function of numbers.

use super::machine::{Machine, Phase, Verdict};
use crate::testing::{IRIS, planned};
use runner_core::spec::hybrid::{HybridSpec, Limits};

/// The settings of a strategy with more keys.
fn spec(more: &str) -> HybridSpec {
    let text = format!(
        "strategy = {{ type = \"hybrid\", warmup_steps = 2, full_steps = 4, max_predict_steps = 8, confidence_threshold = 0.8, correction_steps = 3, snapshots = 3, max_prediction_error = 1000000, {more} }}\n{IRIS}"
    );
    *planned(&text).strategy.hybrid().unwrap()
}

/// A machine whose first prediction can start: it returns how many updates.
fn ready(spec: &HybridSpec) -> (Machine, usize) {
    let mut machine = Machine::new(spec);
    let mut found = None;
    for step in 1..=6 {
        assert_eq!(found, None, "{step}");
        if machine.wants_snapshot(spec) {
            machine.add_snapshot();
        }
        found = machine.add_real_step(spec, (1.0, None));
    }
    (
        machine,
        found.expect("a prediction after warm-up and full phase"),
    )
}

/// Real steps up to the next prediction; returns their number and the number of predicted updates.
fn until_prediction(machine: &mut Machine, spec: &HybridSpec) -> (usize, usize) {
    for steps in 1..100 {
        if machine.wants_snapshot(spec) {
            machine.add_snapshot();
        }
        if let Some(length) = machine.add_real_step(spec, (1.0, None)) {
            return (steps, length);
        }
    }
    panic!("no prediction");
}

fn predict(machine: &mut Machine, spec: &HybridSpec, length: usize, after: f64) -> Verdict {
    machine.predict(spec, length, 1.0);
    for _ in 0..length {
        assert_eq!(machine.add_forward(spec, 1.0), None);
        if machine.add_predicted(spec, 1) && machine.check(spec, after) == Verdict::Rejected {
            return Verdict::Rejected;
        }
    }
    Verdict::Accepted
}

#[test]
fn phases_follow_each_other() {
    let spec = spec("");
    let (mut machine, length) = ready(&spec);
    assert_eq!((machine.phase(), length), (Phase::Full, 8));
    assert_eq!(predict(&mut machine, &spec, length, 0.9), Verdict::Accepted);
    assert_eq!(machine.phase(), Phase::Correct);
    // Five predictions in a row, each after a correction, then a full phase.
    for _ in 1..5 {
        assert_eq!(until_prediction(&mut machine, &spec).0, 3);
        predict(&mut machine, &spec, 1, 0.9);
    }
    assert_eq!(until_prediction(&mut machine, &spec).0, 3 + 4);
    let counters = machine.counters;
    assert_eq!(counters.backwards, counters.updates);
    assert_eq!(counters.forwards, counters.updates + counters.predicted);
    assert_eq!((counters.predicted, counters.rolled_back), (8 + 4, 0));
    assert_eq!((counters.predictions, counters.probe_forwards), (5, 10));
}

#[test]
fn a_rejection_halves_the_horizon_and_costs_confidence() {
    let spec = spec("correction_interval = 3, tolerance = 0.1");
    let (mut machine, length) = ready(&spec);
    let confidence = machine.confidence();
    machine.predict(&spec, length, 1.0);
    // The first three updates are within the tolerance; the next three are not, and only they are rolled back.
    for (at, after, wanted) in [(3, 1.1, Verdict::Accepted), (6, 1.22, Verdict::Rejected)] {
        while machine.done() + 1 < at {
            assert!(!machine.add_predicted(&spec, 1));
        }
        assert!(machine.add_predicted(&spec, 1));
        assert_eq!(machine.check(&spec, after), wanted);
    }
    assert_eq!(machine.phase(), Phase::Correct);
    assert_eq!(
        (machine.counters.predicted, machine.counters.rolled_back),
        (6, 3)
    );
    assert!(machine.confidence() < confidence);
    let horizons: Vec<usize> = (0..4)
        .map(|_| {
            let (_, length) = until_prediction(&mut machine, &spec);
            predict(&mut machine, &spec, length, f64::NAN);
            length
        })
        .collect();
    assert_eq!(horizons, [4, 2, 1, 1]);
    // Accepted ones double it again.
    let (_, length) = until_prediction(&mut machine, &spec);
    predict(&mut machine, &spec, length, 1.0);
    assert_eq!(until_prediction(&mut machine, &spec).1, 2);
}

#[test]
fn what_it_knows_is_saved_to_the_bit() {
    let spec = spec("");
    let (mut machine, length) = ready(&spec);
    predict(&mut machine, &spec, length, 0.1 + 0.2);
    machine.add_real_step(&spec, (1.0 / 3.0, Some(0.7)));
    let text = serde_json::to_string(&machine).unwrap();
    let again: Machine = serde_json::from_str(&text).unwrap();
    assert_eq!(again, machine);
}

/// A machine in the middle of a prediction of eight updates, after enough calm steps.
fn predicting(spec: &HybridSpec) -> Machine {
    let mut machine = Machine::new(spec);
    for step in 0..200 {
        if machine.wants_snapshot(spec) {
            machine.add_snapshot();
        }
        let loss = 1.0 + if step % 4 < 2 { 0.1 } else { -0.1 };
        if let Some(length) = machine.add_real_step(spec, (loss, Some(1.0))) {
            machine.predict(spec, length, 1.0);
            machine.add_predicted(spec, 1);
            return machine;
        }
    }
    panic!("no prediction");
}

#[test]
fn signs_of_divergence_change_the_phase() {
    let spec = spec("correction_interval = 4");
    let spec = HybridSpec {
        warmup_steps: 20,
        ..spec
    };
    // A warning ends the prediction with the next update, and the horizon is halved.
    let mut machine = predicting(&spec);
    assert_eq!(machine.add_forward(&spec, 1.4), None);
    assert!(machine.add_predicted(&spec, 1));
    assert_eq!(machine.check(&spec, 0.9), Verdict::Accepted);
    assert_eq!(machine.phase(), Phase::Correct);
    assert_eq!(machine.counters.loss_signals, 1);
    // A grave one rolls it back.
    let mut machine = predicting(&spec);
    assert_eq!(machine.add_forward(&spec, 1.9), Some(Verdict::Rejected));
    assert_eq!(machine.phase(), Phase::Correct);
    assert_eq!(machine.counters.rolled_back, 1);
    // Gradients that explode reset the predictor: its snapshots do not count any more.
    let mut machine = predicting(&spec);
    machine.add_forward(&spec, f64::NAN);
    machine.add_snapshot();
    assert_eq!(machine.add_real_step(&spec, (1.0, Some(1e4))), None);
    assert_eq!((machine.phase(), machine.known()), (Phase::Full, 0));
    assert_eq!(machine.counters.gradient_signals, 1);
    // A prediction that is far off does too.
    let near = HybridSpec {
        limits: Limits {
            max_prediction_error: 0.5,
            ..spec.limits
        },
        ..spec
    };
    for (after, phase) in [(1.4, Phase::Correct), (1.6, Phase::Full)] {
        let mut machine = predicting(&near);
        for _ in 0..3 {
            machine.add_predicted(&near, 1);
        }
        assert_eq!(machine.check(&near, after), Verdict::Rejected);
        assert_eq!(machine.phase(), phase, "{after}");
    }
}
