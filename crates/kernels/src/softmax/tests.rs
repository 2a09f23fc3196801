use proptest::prelude::*;

use super::*;
use crate::tests::numbers;

fn plain(form: Form, row: &[f64]) -> Vec<f64> {
    let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - most).exp()).sum();
    let log = |x: &f64| x - most - sum.ln();
    match form {
        Form::Softmax => row.iter().map(|x| log(x).exp()).collect(),
        Form::LogSoftmax => row.iter().map(log).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn rows_are_those_of_the_definition(rows in 0usize..5, columns in 1usize..70, seed in 0u64..1000) {
        let x: Vec<f32> = numbers(rows * columns, seed).iter().map(|x| 20.0 * x).collect();
        let upstream = numbers(rows * columns, seed + 1);
        for form in [Form::Softmax, Form::LogSoftmax] {
            let mut y = x.clone();
            apply(form, &mut y, columns);
            let mut gradient = upstream.clone();
            backward(form, &y, &mut gradient, columns);
            for row in 0..rows {
                let range = row * columns..(row + 1) * columns;
                let exact: Vec<f64> = x[range.clone()].iter().map(|x| f64::from(*x)).collect();
                for (ours, plain) in y[range.clone()].iter().zip(plain(form, &exact)) {
                    prop_assert!((f64::from(*ours) - plain).abs() < 1e-5 * (1.0 + plain.abs()));
                }
                let loss = |x: &[f64]| -> f64 {
                    plain(form, x).iter().zip(&upstream[range.clone()]).map(|(y, g)| y * f64::from(*g)).sum()
                };
                for at in (0..columns).step_by(3) {
                    let sides = [1e-5, -1e-5].map(|by| {
                        let mut moved = exact.clone();
                        moved[at] += by;
                        loss(&moved)
                    });
                    let wanted = (sides[0] - sides[1]) / 2e-5;
                    prop_assert!((f64::from(gradient[range.start + at]) - wanted).abs() < 1e-4);
                }
            }
        }
    }

    #[test]
    fn cross_entropy_is_that_of_the_definition(rows in 0usize..5, columns in 1usize..70, smooth in 0usize..2, seed in 0u64..1000) {
        let smoothing = [0.0, 0.125][smooth];
        let scores: Vec<f32> = numbers(rows * columns, seed).iter().map(|x| 20.0 * x).collect();
        let upstream = numbers(rows, seed + 1);
        let classes: Vec<usize> = (0..rows).map(|row| (seed as usize + 7 * row) % columns).collect();
        let (losses, sums) = cross_entropy(&scores, &classes, columns, smoothing);
        let gradient = cross_entropy_backward(&scores, &classes, columns, smoothing, &sums, &upstream);
        for row in 0..rows {
            let exact: Vec<f64> = scores[row * columns..][..columns].iter().map(|x| f64::from(*x)).collect();
            let loss = |x: &[f64]| {
                let logs = plain(Form::LogSoftmax, x);
                let even = logs.iter().sum::<f64>() / columns as f64;
                -(1.0 - f64::from(smoothing)) * logs[classes[row]] - f64::from(smoothing) * even
            };
            prop_assert!((f64::from(losses[row]) - loss(&exact)).abs() < 1e-4);
            for at in 0..columns {
                let sides = [1e-5, -1e-5].map(|by| {
                    let mut moved = exact.clone();
                    moved[at] += by;
                    loss(&moved)
                });
                let wanted = (sides[0] - sides[1]) / 2e-5 * f64::from(upstream[row]);
                prop_assert!((f64::from(gradient[row * columns + at]) - wanted).abs() < 1e-4);
            }
        }
    }
}

#[test]
fn specials_stay_in_their_row() {
    let inf = f32::INFINITY;
    let rows = [
        [1.0, 2.0, 3.0],
        [f32::NAN, 1.0, 2.0],
        [-inf, 0.0, 0.0],
        [inf, 0.0, 0.0],
        [-inf; 3],
    ];
    let mut values = rows.concat();
    apply(Form::Softmax, &mut values, 3);
    assert!(values[..3].iter().all(|x| x.is_finite()));
    assert!(values[3..6].iter().all(|x| x.is_nan()));
    assert_eq!(values[6..9], [0.0, 0.5, 0.5]);
    assert!(values[9].is_nan() && values[12..].iter().all(|x| x.is_nan()));
    let (losses, _) = cross_entropy(&rows.concat(), &[2, 1, 1, 1, 0], 3, 0.0);
    assert!(losses[0].is_finite() && losses[1].is_nan());
    assert!((losses[2] - 2f32.ln()).abs() < 1e-6);
    assert!(!losses[3].is_finite() && losses[4].is_nan());
}

#[test]
fn a_gradient_of_zero_cross_entropy_stays_small() {
    let (losses, _) = cross_entropy(&[100.0, 0.0], &[0], 2, 0.0);
    assert_eq!(losses, [0.0]);
    let (losses, _) = cross_entropy(&[-1000.0, 1000.0], &[0], 2, 0.0);
    assert_eq!(losses, [2000.0]);
}
