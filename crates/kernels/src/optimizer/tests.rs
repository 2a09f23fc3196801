use super::adam::Adam;
use super::lion::Lion;
use super::rms::RmsProp;
use super::sgd::{Momentum, Sgd};
use super::*;
use crate::tests::numbers;

const ADAM: Adam = Adam {
    share_1: 0.1,
    beta_2: 0.99,
    share_2: 0.01,
    root: 0.1,
    epsilon: 1e-8,
    rate: 1.0,
    penalty: 0.0,
    kept: 1.0,
    cautious: 0.0,
};

#[test]
fn steps_of_adam_are_those_of_the_definition() {
    for (penalty, kept) in [(0.0, 1.0), (0.1, 1.0), (0.0, 0.999)] {
        let len = FEW + 37;
        let (mut weights, mut first, mut second) =
            (numbers(len, 1), vec![0.0; len], vec![0.0; len]);
        let mut plain: Vec<[f64; 3]> = weights.iter().map(|w| [f64::from(*w), 0.0, 0.0]).collect();
        for time in 1..=5 {
            let gradient = numbers(len, 1 + time as u64);
            let adam = Adam {
                root: (1.0 - 0.99f64.powi(time)).sqrt() as f32,
                epsilon: 1e-3,
                rate: (0.01 / (1.0 - 0.9f64.powi(time))) as f32,
                penalty,
                kept,
                ..ADAM
            };
            adam.step(&mut weights, [&mut first, &mut second], &gradient);
            for ([w, m, v], g) in plain.iter_mut().zip(&gradient) {
                let g = f64::from(*g) + f64::from(penalty) * *w;
                *m = 0.9 * *m + 0.1 * g;
                *v = 0.99 * *v + 0.01 * g * g;
                let (m, v) = (
                    *m / (1.0 - 0.9f64.powi(time)),
                    *v / (1.0 - 0.99f64.powi(time)),
                );
                *w = *w * f64::from(kept) - 0.01 * m / (v.sqrt() + 1e-3);
            }
        }
        for (ours, [plain, ..]) in weights.iter().zip(&plain) {
            assert!(
                (f64::from(*ours) - plain).abs() < 1e-6,
                "{penalty}, {kept}: {ours} for {plain}"
            );
        }
    }
}

#[test]
fn a_gradient_that_is_no_number_spoils_its_weight_only() {
    fn spoils<const N: usize>(rule: &impl Rule<N>) {
        let (mut weights, mut kept) = ([1.0; 3], [[0.0; 3]; N]);
        for gradient in [[1.0, f32::NAN, 1.0], [1.0; 3]] {
            let kept = kept.each_mut().map(|kept| kept.as_mut_slice());
            rule.step(&mut weights, kept, &gradient);
            assert!(weights[0].is_finite() && weights[1].is_nan() && weights[2].is_finite());
        }
    }
    spoils::<2>(&ADAM);
    spoils::<3>(&ADAM);
    spoils(&SGD);
    spoils(&MOMENTUM);
    spoils::<1>(&RMS_PROP);
    spoils::<2>(&RMS_PROP);
    spoils(&LION);
}

const SGD: Sgd = Sgd {
    rate: 0.1,
    penalty: 0.0,
};
const MOMENTUM: Momentum = Momentum {
    sgd: SGD,
    momentum: 0.9,
    share: 1.0,
    nesterov: true,
};
const RMS_PROP: RmsProp<false> = RmsProp {
    alpha: 0.9,
    share: 0.1,
    momentum: 0.9,
    epsilon: 1e-8,
    rate: 0.1,
    penalty: 0.0,
};
const LION: Lion = Lion {
    share_1: 0.1,
    share_2: 0.01,
    rate: 0.1,
    kept: 1.0,
};

/// What is kept for an input that is 0 from some step on comes to 0, and not to a subnormal number.
#[test]
fn running_means_come_to_zero() {
    fn settles<const N: usize>(rule: &impl Rule<N>, settled: [bool; N]) {
        let (mut weights, mut kept) = ([1.0; 2], [[0.0; 2]; N]);
        for time in 0..12_000 {
            let kept = kept.each_mut().map(|kept| kept.as_mut_slice());
            let gradient = if time == 0 { 0.1 } else { 0.0 };
            rule.step(&mut weights, kept, &[gradient, 1.0]);
        }
        let of_weight = |at: usize| kept.map(|kept| kept[at]);
        let zeros = of_weight(0).map(|number| number == 0.0);
        assert_eq!(zeros, settled, "{:?}", of_weight(0));
        assert!(of_weight(1).iter().all(|number| *number > 0.1));
    }
    settles::<2>(&ADAM, [true; 2]);
    settles::<3>(&ADAM, [true, true, false]);
    settles(&MOMENTUM, [true]);
    settles::<1>(&RMS_PROP, [true]);
    settles::<2>(&RMS_PROP, [true; 2]);
    settles(&LION, [true]);
}

#[test]
fn pieces_are_updated_as_a_whole_is() {
    let len = 2 * FEW + 5;
    let (start, gradient) = (numbers(len, 1), numbers(len, 2));
    let (mut weights, mut first, mut second) = (start.clone(), numbers(len, 3), vec![0.5; len]);
    let (mut alone, mut both) = (start, [first.clone(), second.clone()]);
    ADAM.step(&mut weights, [&mut first, &mut second], &gradient);
    let [first_alone, second_alone] = &mut both;
    for at in 0..len {
        let kept = [&mut first_alone[at..=at], &mut second_alone[at..=at]];
        ADAM.step(&mut alone[at..=at], kept, &gradient[at..=at]);
    }
    assert!(weights == alone && first == both[0] && second == both[1]);
}
