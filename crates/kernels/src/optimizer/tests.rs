use super::*;
use crate::tests::numbers;

#[test]
fn steps_are_those_of_the_definition() {
    for (penalty, kept) in [(0.0, 1.0), (0.1, 1.0), (0.0, 0.999)] {
        let len = PIECE + 37;
        let (mut weights, mut first, mut second) =
            (numbers(len, 1), vec![0.0; len], vec![0.0; len]);
        let mut plain: Vec<[f64; 3]> = weights.iter().map(|w| [f64::from(*w), 0.0, 0.0]).collect();
        for time in 1..=5 {
            let gradient = numbers(len, 1 + time as u64);
            let step = Adam {
                share_1: 0.1,
                beta_2: 0.99,
                share_2: 0.01,
                root: (1.0 - 0.99f64.powi(time)).sqrt() as f32,
                epsilon: 1e-3,
                rate: (0.01 / (1.0 - 0.9f64.powi(time))) as f32,
                penalty,
                kept,
            };
            step.step(&mut weights, [&mut first, &mut second], &gradient);
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
    let mut weights = [1.0; 3];
    let step = Adam {
        share_1: 0.1,
        beta_2: 0.99,
        share_2: 0.01,
        root: 0.1,
        epsilon: 1e-8,
        rate: 1.0,
        penalty: 0.0,
        kept: 1.0,
    };
    step.step(
        &mut weights,
        [&mut [0.0; 3], &mut [0.0; 3]],
        &[1.0, f32::NAN, 1.0],
    );
    assert!(weights[0].is_finite() && weights[1].is_nan() && weights[2].is_finite());
}
