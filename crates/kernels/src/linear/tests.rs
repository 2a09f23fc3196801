//! Linear layers compared with plain loops in double precision.

use crate::Arithmetic;
use proptest::prelude::*;
use rayon::ThreadPoolBuilder;

use super::Linear;
use crate::tests::numbers;

/// Sums over `terms` of products of two functions of row, column and term.
fn plain(
    [rows, columns, terms]: [usize; 3],
    a: impl Fn(usize, usize) -> f32,
    b: impl Fn(usize, usize) -> f32,
) -> Vec<f64> {
    let sum = |row: usize, column: usize| -> f64 {
        let terms = 0..terms;
        terms
            .map(|term| f64::from(a(row, term)) * f64::from(b(term, column)))
            .sum()
    };
    (0..rows)
        .flat_map(|row| (0..columns).map(move |column| (row, column)))
        .map(|(row, column)| sum(row, column))
        .collect()
}

fn assert_near(ours: &[f32], plain: &[f64], what: &str) {
    assert_eq!(ours.len(), plain.len(), "{what}");
    let size = plain.iter().fold(0.1f64, |size, x| size.max(x.abs()));
    for (ours, plain) in ours.iter().zip(plain) {
        assert!(
            (f64::from(*ours) - plain).abs() < 1e-5 * size,
            "{what}: {ours} and {plain}"
        );
    }
}

fn assert_right(layer: Linear, seed: u64) {
    for arithmetic in [Arithmetic::Fast, Arithmetic::Portable] {
        assert_one_right(
            Linear {
                arithmetic,
                ..layer
            },
            seed,
        );
    }
}

fn assert_one_right(layer: Linear, seed: u64) {
    let Linear {
        rows,
        inputs,
        outputs,
        ..
    } = layer;
    let x = numbers(rows * inputs, seed);
    let weight = numbers(inputs * outputs, seed + 1);
    let bias = numbers(outputs, seed + 2);
    let gradient = numbers(rows * outputs, seed + 3);
    let mut output = plain(
        [rows, outputs, inputs],
        |r, i| x[r * inputs + i],
        |i, o| weight[i * outputs + o],
    );
    assert_near(
        &layer.forward(&x, &weight, None),
        &output,
        "output without bias",
    );
    for (at, value) in output.iter_mut().enumerate() {
        *value += f64::from(bias[at % outputs]);
    }
    assert_near(&layer.forward(&x, &weight, Some(&bias)), &output, "output");
    let input = plain(
        [rows, inputs, outputs],
        |r, o| gradient[r * outputs + o],
        |o, i| weight[i * outputs + o],
    );
    assert_near(
        &layer.backward_input(&gradient, &weight),
        &input,
        "gradient of the input",
    );
    let of_weight = plain(
        [inputs, outputs, rows],
        |i, r| x[r * inputs + i],
        |r, o| gradient[r * outputs + o],
    );
    assert_near(
        &layer.backward_weight(&x, &gradient),
        &of_weight,
        "gradient of the weights",
    );
    let of_bias = plain(
        [1, outputs, rows],
        |_, _| 1.0,
        |r, o| gradient[r * outputs + o],
    );
    assert_near(
        &layer.backward_bias(&gradient),
        &of_bias,
        "gradient of the bias",
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn layers_are_plain_loops(rows in 0..300usize, inputs in 0..90usize, outputs in 0..90usize, seed in 0..1000u64) {
        assert_right(Linear { rows, inputs, outputs, arithmetic: Arithmetic::Fast }, seed);
    }
}

#[test]
fn small_layers_are_plain_loops() {
    assert_right(
        Linear {
            rows: 3,
            inputs: 5,
            outputs: 2,
            arithmetic: Arithmetic::Fast,
        },
        1,
    );
    assert_right(
        Linear {
            rows: 1,
            inputs: 1,
            outputs: 17,
            arithmetic: Arithmetic::Fast,
        },
        1,
    );
    assert_right(
        Linear {
            rows: 0,
            inputs: 2,
            outputs: 3,
            arithmetic: Arithmetic::Fast,
        },
        1,
    );
    assert_right(
        Linear {
            rows: 2,
            inputs: 0,
            outputs: 3,
            arithmetic: Arithmetic::Fast,
        },
        1,
    );
}

#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn bits_do_not_depend_on_threads() {
    for layer in [
        Linear {
            rows: 64,
            inputs: 784,
            outputs: 128,
            arithmetic: Arithmetic::Fast,
        },
        Linear {
            rows: 2,
            inputs: 300,
            outputs: 700,
            arithmetic: Arithmetic::Fast,
        },
    ] {
        let x = numbers(layer.rows * layer.inputs, 1);
        let weight = numbers(layer.inputs * layer.outputs, 2);
        let gradient = numbers(layer.rows * layer.outputs, 3);
        let with = |threads: usize| {
            let pool = ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("threads");
            pool.install(|| {
                [
                    layer.forward(&x, &weight, None),
                    layer.backward_input(&gradient, &weight),
                    layer.backward_weight(&x, &gradient),
                    layer.backward_bias(&gradient),
                ]
            })
        };
        let alone = with(1);
        for threads in [2, 3, 8] {
            assert!(with(threads) == alone, "{threads} threads, {layer:?}");
        }
    }
}

/// Non-finite values stay in their row of outputs, and in their column of gradients.
#[test]
fn what_is_no_number_stays_where_it_is_from() {
    let layer = Linear {
        rows: 40,
        inputs: 20,
        outputs: 33,
        arithmetic: Arithmetic::Fast,
    };
    let mut x = numbers(layer.rows * layer.inputs, 1);
    x[7 * layer.inputs + 3] = f32::NAN;
    let weight = numbers(layer.inputs * layer.outputs, 2);
    let output = layer.forward(&x, &weight, None);
    for (row, output) in output.chunks(layer.outputs).enumerate() {
        assert!(
            output.iter().all(|value| value.is_nan() == (row == 7)),
            "row {row}"
        );
    }
    let gradient = numbers(layer.rows * layer.outputs, 3);
    let gradient = layer.backward_weight(&x, &gradient);
    for (input, gradient) in gradient.chunks(layer.outputs).enumerate() {
        assert!(
            gradient.iter().all(|value| value.is_nan() == (input == 3)),
            "input {input}"
        );
    }
}
