//! Norms compared with 64-bit definitions, and gradients with finite differences.

use proptest::prelude::*;

use super::*;
use crate::activation::Activation;
use crate::tests::numbers;

/// Normalizes each set of positions, with or without subtracting the mean.
fn plain(
    x: &[f64],
    sets: &[Vec<usize>],
    has_mean: bool,
    epsilon: f64,
    gamma: &dyn Fn(usize) -> f64,
    beta: &dyn Fn(usize) -> f64,
) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    for set in sets {
        let num = set.len() as f64;
        let mean = if has_mean {
            set.iter().map(|at| x[*at]).sum::<f64>() / num
        } else {
            0.0
        };
        let square = set.iter().map(|at| (x[*at] - mean).powi(2)).sum::<f64>() / num;
        for at in set {
            y[*at] = (x[*at] - mean) / (square + epsilon).sqrt() * gamma(*at) + beta(*at);
        }
    }
    y
}

/// Which kernel is tested.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Which {
    Rows(RowNorm),
    Batch,
    Group(usize),
}

const EPSILON: f32 = 1e-3;

fn affine<'a>(gamma: &'a [f32], beta: &'a [f32]) -> Affine<'a> {
    let then = None;
    Affine { gamma, beta, then }
}

fn check(which: Which, planes: Planes, seed: u64) {
    let Planes {
        items,
        channels,
        area,
    } = planes;
    let width = if matches!(which, Which::Rows(_)) {
        area
    } else {
        channels
    };
    let x: Vec<f32> = numbers(planes.num(), seed)
        .iter()
        .map(|x| 3.0 * x + 0.5)
        .collect();
    let (gamma, beta) = (numbers(width, seed + 1), numbers(width, seed + 2));
    let upstream = numbers(planes.num(), seed + 3);
    let (y, back) = match which {
        Which::Rows(norm) => {
            let (y, statistics) = rows_forward(norm, &x, &gamma, Some(&beta));
            (y, rows_backward(norm, &x, &gamma, &statistics, &upstream))
        }
        Which::Group(groups) => {
            let affine = affine(&gamma, &beta);
            let (y, statistics) = group_forward(&planes, groups, EPSILON, &x, affine);
            let back = group_backward(&planes, groups, &x, affine, &statistics, &upstream);
            (y, back)
        }
        Which::Batch => {
            let affine = affine(&gamma, &beta);
            let (y, moments) = batch_forward(&planes, EPSILON, &x, affine);
            let statistics = deviations(&moments, EPSILON);
            // The same statistics given.
            assert_eq!(y, batch_evaluate(&planes, &x, &statistics, affine));
            let back = batch_backward(&planes, &x, affine, &statistics, &upstream);
            (y, back)
        }
    };
    let place = |item: usize, channel: usize, at: usize| (item * channels + channel) * area + at;
    let mut sets: Vec<Vec<usize>> = Vec::new();
    match which {
        Which::Rows(_) => {
            sets.extend((0..items * channels).map(|row| (row * area..(row + 1) * area).collect()))
        }
        Which::Batch => sets.extend((0..channels).map(|channel| {
            (0..items)
                .flat_map(|item| (0..area).map(move |at| place(item, channel, at)))
                .collect()
        })),
        Which::Group(groups) => {
            let len = channels / groups * area;
            sets.extend(
                (0..items * groups).map(|group| (group * len..(group + 1) * len).collect()),
            );
        }
    }
    let column = move |at: usize| {
        if matches!(which, Which::Rows(_)) {
            at % area
        } else {
            at / area % channels
        }
    };
    let has_mean = !matches!(which, Which::Rows(RowNorm::Rms { .. }));
    let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
    let operands = [wide(&x), wide(&gamma), wide(&beta)];
    let output = |[x, gamma, beta]: &[Vec<f64>; 3]| {
        plain(
            x,
            &sets,
            has_mean,
            f64::from(EPSILON),
            &|at| gamma[column(at)],
            &|at| beta[column(at)],
        )
    };
    for (ours, plain) in y.iter().zip(output(&operands)) {
        assert!(
            (f64::from(*ours) - plain).abs() < 2e-5,
            "{which:?} {planes:?}: {ours} for {plain}"
        );
    }
    let loss = |operands: &[Vec<f64>; 3]| -> f64 {
        output(operands)
            .iter()
            .zip(&upstream)
            .map(|(y, g)| y * f64::from(*g))
            .sum()
    };
    for (operand, found) in back.iter().enumerate() {
        assert_eq!(found.len(), operands[operand].len());
        for at in (0..found.len()).step_by(1 + found.len() / 4) {
            let sides = [1e-5, -1e-5].map(|by| {
                let mut operands = operands.clone();
                operands[operand][at] += by;
                loss(&operands)
            });
            let wanted = (sides[0] - sides[1]) / 2e-5;
            let ours = f64::from(found[at]);
            assert!(
                (ours - wanted).abs() < 2e-4 * (1.0 + wanted.abs()),
                "{which:?} {planes:?}: {ours} for {wanted} of {operand} at {at}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn norms_are_those_of_the_definition(items in 1usize..5, channels in 1usize..7, area in 2usize..40, seed in 0u64..1000) {
        let planes = Planes { items, channels, area };
        check(Which::Rows(RowNorm::Layer { epsilon: EPSILON }), planes, seed);
        check(Which::Rows(RowNorm::Rms { epsilon: EPSILON }), planes, seed);
        check(Which::Group(1), planes, seed);
        check(Which::Group(channels), planes, seed);
        check(Which::Batch, Planes { items: items + 1, ..planes }, seed);
    }
}

#[test]
fn channels_of_one_position_and_large_batches_are_normalized_too() {
    check(
        Which::Batch,
        Planes {
            items: 33,
            channels: 70,
            area: 1,
        },
        1,
    );
    check(
        Which::Batch,
        Planes {
            items: 5,
            channels: 130,
            area: 3,
        },
        2,
    );
    check(
        Which::Group(2),
        Planes {
            items: 3,
            channels: 4,
            area: 1,
        },
        3,
    );
    check(
        Which::Rows(RowNorm::Layer { epsilon: EPSILON }),
        Planes {
            items: 300,
            channels: 7,
            area: 33,
        },
        4,
    );
}

/// The rounding of a mean is not multiplied by the inverse of a deviation of zero.
#[test]
fn equal_numbers_are_normalized_to_zero() {
    for value in [0.1, 255.3, 1000.1, 1e5 + 0.1] {
        for [items, channels, area] in [[5, 3, 784], [33, 70, 1], [7, 6, 11]] {
            let planes = Planes {
                items,
                channels,
                area,
            };
            let x = vec![value; planes.num()];
            let upstream = numbers(planes.num(), 1);
            let gamma = numbers(channels, 2);
            let affine = affine(&gamma, &[0.0; 70][..channels]);
            let is_zero = |what: &str, numbers: &[f32]| {
                let largest = numbers.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
                assert!(largest < 2e-5, "{what} {planes:?} {value}: {largest}");
            };
            let (y, moments) = batch_forward(&planes, EPSILON, &x, affine);
            is_zero("batch", &y);
            let statistics = deviations(&moments, EPSILON);
            is_zero(
                "gamma",
                &batch_backward(&planes, &x, affine, &statistics, &upstream)[1],
            );
            let (y, statistics) = group_forward(&planes, channels, EPSILON, &x, affine);
            is_zero("group", &y);
            let back = group_backward(&planes, channels, &x, affine, &statistics, &upstream);
            is_zero("gamma", &back[1]);
            let (norm, gamma) = (RowNorm::Layer { epsilon: EPSILON }, numbers(area, 3));
            let (y, statistics) = rows_forward(norm, &x, &gamma, None);
            is_zero("layer", &y);
            is_zero(
                "gamma",
                &rows_backward(norm, &x, &gamma, &statistics, &upstream)[1],
            );
        }
    }
}

/// A norm with an activation has the bits of one after the other.
#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn activations_in_the_same_pass_change_no_bit() {
    let sizes = [
        [33, 70, 1],
        [5, 130, 3],
        [3, 8, 16],
        [4, 6, 49],
        [2, 4, 1500],
    ];
    let functions = [
        Activation::Relu,
        Activation::Gelu,
        Activation::Silu,
        Activation::Hardtanh { min: 0.0, max: 6.0 },
        Activation::HardSwish,
    ];
    let cases = sizes
        .iter()
        .flat_map(|sizes| functions.map(|of| (*sizes, of)));
    for ([items, channels, area], function) in cases {
        let planes = Planes {
            items,
            channels,
            area,
        };
        let mut x = numbers(planes.num(), 1);
        x[planes.num() / 2] = f32::INFINITY;
        let upstream = numbers(planes.num(), 2);
        let (gamma, beta) = (numbers(channels, 3), numbers(channels, 4));
        let apart = affine(&gamma, &beta);
        let together = Affine {
            then: Some(function),
            ..apart
        };
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let gradient = |before: &[f32], after: &[f32]| {
            let seen = if function.keeps_output() {
                after
            } else {
                before
            };
            let mut gradient = upstream.clone();
            function.backward(seen, &mut gradient);
            gradient
        };
        let (before, moments) = batch_forward(&planes, EPSILON, &x, apart);
        let (after, again) = batch_forward(&planes, EPSILON, &x, together);
        assert_eq!(bits(&after), bits(&function.forward(&before)));
        assert_eq!(bits(&moments.concat()), bits(&again.concat()));
        let statistics = deviations(&moments, EPSILON);
        let evaluated = batch_evaluate(&planes, &x, &statistics, together);
        assert_eq!(bits(&after), bits(&evaluated));
        let upstream_of_norm = gradient(&before, &after);
        let wanted = batch_backward(&planes, &x, apart, &statistics, &upstream_of_norm);
        let found = batch_backward(&planes, &x, together, &statistics, &upstream);
        assert_eq!(found.map(|of| bits(&of)), wanted.map(|of| bits(&of)));

        let (before, statistics) = group_forward(&planes, 2, EPSILON, &x, apart);
        let (after, _) = group_forward(&planes, 2, EPSILON, &x, together);
        assert_eq!(bits(&after), bits(&function.forward(&before)));
        let upstream_of_norm = gradient(&before, &after);
        let wanted = group_backward(&planes, 2, &x, apart, &statistics, &upstream_of_norm);
        let found = group_backward(&planes, 2, &x, together, &statistics, &upstream);
        assert_eq!(found.map(|of| bits(&of)), wanted.map(|of| bits(&of)));
    }
}

#[test]
fn nothing_gives_nothing() {
    let planes = Planes {
        items: 0,
        channels: 3,
        area: 4,
    };
    assert!(
        group_forward(&planes, 3, EPSILON, &[], affine(&[1.0; 3], &[0.0; 3]))
            .0
            .is_empty()
    );
    assert!(
        rows_forward(RowNorm::Rms { epsilon: EPSILON }, &[], &[1.0; 3], None)
            .0
            .is_empty()
    );
}

#[test]
fn nan_and_infinity_stay_in_their_set() {
    for special in [f32::NAN, f32::INFINITY] {
        let planes = Planes {
            items: 3,
            channels: 4,
            area: 5,
        };
        let mut x = numbers(planes.num(), 1);
        x[(4 + 2) * 5 + 3] = special;
        let is_nan = |values: &[f32]| values.iter().map(|x| x.is_nan()).collect::<Vec<_>>();
        let (y, _) = rows_forward(RowNorm::Layer { epsilon: EPSILON }, &x, &[1.0; 5], None);
        let rows: Vec<_> = y
            .chunks_exact(5)
            .map(|row| is_nan(row).contains(&true))
            .collect();
        assert_eq!(rows.iter().filter(|row| **row).count(), 1, "{special}");
        let (y, _) = group_forward(&planes, 2, EPSILON, &x, affine(&[1.0; 4], &[0.0; 4]));
        let groups: Vec<_> = y
            .chunks_exact(10)
            .map(|group| is_nan(group).contains(&true))
            .collect();
        assert_eq!(
            groups.iter().filter(|group| **group).count(),
            1,
            "{special}"
        );
        let (y, moments) = batch_forward(&planes, EPSILON, &x, affine(&[1.0; 4], &[0.0; 4]));
        let finite = moments.iter().map(|of| of.map(f32::is_finite));
        assert_eq!(
            finite.collect::<Vec<_>>(),
            [true, true, false, true].map(|is| [is; 2])
        );
        let of_channel = |(at, _): &(usize, &f32)| at / 5 % 4 == 2;
        let (inside, outside): (Vec<_>, Vec<_>) = y.iter().enumerate().partition(of_channel);
        assert!(inside.iter().all(|(_, y)| y.is_nan()));
        assert!(outside.iter().all(|(_, y)| y.is_finite()));
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let planes = Planes {
        items: 9,
        channels: 24,
        area: 70,
    };
    let (x, gradient) = (numbers(planes.num(), 1), numbers(planes.num(), 2));
    let gamma = numbers(24, 3);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        pool.install(|| {
            let affine = affine(&gamma, &gamma);
            let (y, moments) = batch_forward(&planes, EPSILON, &x, affine);
            let statistics = deviations(&moments, EPSILON);
            let [a, b, c] = batch_backward(&planes, &x, affine, &statistics, &gradient);
            let gamma_rows = numbers(70, 4);
            let norm = RowNorm::Layer { epsilon: EPSILON };
            let (d, statistics) = rows_forward(norm, &x, &gamma_rows, None);
            let [e, f, g] = rows_backward(norm, &x, &gamma_rows, &statistics, &gradient);
            [a, b, c, d, e, f, g, y, moments.concat()]
                .map(|values| values.into_iter().map(f32::to_bits).collect::<Vec<_>>())
        })
    };
    assert!(run(1) == run(2) && run(2) == run(5));
}

/// The numbers of `torch.nn.LocalResponseNorm(3, alpha=0.5, beta=0.75, k=2.0)` for 5 channels of 2 positions.
#[test]
fn local_responses_are_those_of_pytorch() {
    let norm = LocalResponse {
        size: 3,
        alpha: 0.5,
        beta: 0.75,
        k: 2.0,
    };
    let planes = Planes {
        items: 1,
        channels: 5,
        area: 2,
    };
    let x = [1.0, -2.0, 3.0, 0.5, -1.0, 2.0, 4.0, -3.0, 0.5, 1.0];
    let expected = [
        0.377_395_24,
        -0.947_334_6,
        1.095_062_3,
        0.200_800_45,
        -0.250_481_55,
        0.680_686_95,
        1.219_211_5,
        -0.998_860_24,
        0.156_429_84,
        0.377_395_24,
    ];
    for (found, expected) in norm.forward(&planes, &x).into_iter().zip(expected) {
        let expected: f32 = expected;
        assert!((found - expected).abs() < 1e-6, "{found} and {expected}");
    }
}

/// The output of a local response norm in 64 bits.
fn divided(norm: &LocalResponse, planes: &Planes, x: &[f64]) -> Vec<f64> {
    let of = |at: usize| {
        let (item, position) = (at / planes.area / planes.channels, at % planes.area);
        let channel = (at / planes.area % planes.channels) as i64;
        let first = channel - (norm.size as i64 - 1) / 2;
        let near = (first..first + norm.size as i64)
            .filter(|channel| (0..planes.channels as i64).contains(channel));
        let square = |channel: i64| {
            let place = item * planes.channels + channel as usize;
            x[place * planes.area + position].powi(2)
        };
        let mean = near.map(square).sum::<f64>() / norm.size as f64;
        let base = f64::from(norm.k) + f64::from(norm.alpha) * mean;
        x[at] / base.powf(f64::from(norm.beta))
    };
    (0..x.len()).map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn local_responses_are_those_of_the_definition(
        (items, channels, area) in (1usize..3, 1usize..9, prop_oneof![1usize..9, 120usize..140]),
        size in 1usize..12,
        beta in prop_oneof![Just(0.75f32), 0.1f32..2.0],
        seed in 0u64..1000,
    ) {
        let planes = Planes { items, channels, area };
        let norm = LocalResponse { size, alpha: 0.7, beta, k: 0.5 };
        let x: Vec<f32> = numbers(planes.num(), seed).iter().map(|x| 4.0 * x).collect();
        let gradient = numbers(planes.num(), seed + 1);
        let in_64 = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let exact = in_64(&x);
        for (found, expected) in norm.forward(&planes, &x).iter().zip(divided(&norm, &planes, &exact)) {
            prop_assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} and {expected}");
        }
        let found = norm.backward(&planes, &x, &gradient);
        let loss = |x: &[f64]| -> f64 {
            divided(&norm, &planes, x).iter().zip(&gradient).map(|(y, g)| y * f64::from(*g)).sum()
        };
        for at in (0..x.len()).step_by(x.len().div_ceil(12)) {
            let shifted = |step: f64| {
                let mut x = exact.clone();
                x[at] += step;
                loss(&x)
            };
            let slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            prop_assert!((f64::from(found[at]) - slope).abs() < 1e-4, "{} and {slope}", found[at]);
        }
    }
}
