use burn::nn::loss::{
    BinaryCrossEntropyLossConfig, CrossEntropyLossConfig, HuberLossConfig, MseLoss,
    Reduction as BurnReduction,
};

use super::*;

/// Losses by runner's kernels, which equal Burn's up to the last digits.
fn item_losses(spec: &LossSpec, outputs: Tensor<2>, targets: &Targets) -> Tensor<1> {
    let of = |kernels, arithmetic| {
        super::item_losses(spec, (kernels, arithmetic), outputs.clone(), targets)
    };
    let fast = of(Kernels::Fast, Arithmetic::Fast);
    for other in [
        of(Kernels::Reference, Arithmetic::Fast),
        of(Kernels::Fast, Arithmetic::Portable),
    ] {
        assert_close(&numbers(fast.clone()), &numbers(other));
    }
    fast
}

fn spec(function: LossFunction) -> LossSpec {
    LossSpec {
        reduction: Reduction::Mean,
        function,
        mask: None,
    }
}

fn rows<const N: usize>(values: &[[f32; N]]) -> Tensor<2> {
    let data = TensorData::new(values.concat(), [values.len(), N]);
    Tensor::from_data(data, &Device::flex())
}

fn classes(values: &[&[i64]]) -> Targets {
    let data = TensorData::new(values.concat(), [values.len(), values[0].len()]);
    Targets::Classes(Tensor::from_data(data, &Device::flex()))
}

fn numbers(tensor: Tensor<1>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

fn assert_close(found: &[f32], expected: &[f32]) {
    let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5 * (1.0 + b.abs());
    assert_eq!(found.len(), expected.len());
    assert!(
        found.iter().zip(expected).all(close),
        "{found:?} for {expected:?}"
    );
}

fn cross_entropy(label_smoothing: f64, class_weights: &[f64]) -> LossSpec {
    spec(LossFunction::CrossEntropy {
        label_smoothing,
        class_weights: class_weights.to_vec(),
        is_balanced: false,
        focal_gamma: 0.0,
    })
}

const OUTPUTS: [[f32; 3]; 2] = [[1.0, 2.0, 0.5], [-1.0, 0.0, 3.0]];

/// -ln softmax, by hand.
fn nll(row: [f32; 3], class: usize) -> f32 {
    let sum: f32 = row.iter().map(|x| x.exp()).sum();
    -(row[class].exp() / sum).ln()
}

/// The divergence of a row from a teacher's at a temperature, by hand.
fn divergence(ours: &[f32], theirs: &[f32], temperature: f32) -> f32 {
    let logs = |row: &[f32]| {
        let sum: f32 = row.iter().map(|x| (x / temperature).exp()).sum();
        let logs = row.iter().map(|x| x / temperature - sum.ln());
        logs.collect::<Vec<f32>>()
    };
    let each = logs(ours).into_iter().zip(logs(theirs));
    let sum: f32 = each.map(|(q, p)| p.exp() * (p - q)).sum();
    temperature * temperature * sum
}

#[test]
fn distances_are_those_of_the_definition() {
    // Two items with two positions; one position is ignored.
    let ours = [
        [1.0f32, 2.0, 0.5],
        [-1.0, 0.0, 3.0],
        [0.3, 0.2, 0.1],
        [2.0, -2.0, 0.0],
    ];
    let theirs = [
        [0.0f32, 2.5, 0.5],
        [1.0, 0.0, 1.0],
        [-0.3, 0.2, 0.4],
        [0.0, 0.0, 5.0],
    ];
    let kl = |at: usize| divergence(&ours[at], &theirs[at], 3.0);
    let [a, b, d] = [kl(0), kl(1), kl(3)];
    for arithmetic in [Arithmetic::Fast, Arithmetic::Portable] {
        let of = |reduction, temperature, targets: &Targets| {
            let spec = LossSpec {
                reduction,
                ..cross_entropy(0.0, &[])
            };
            let both = [rows(&ours), rows(&theirs)];
            numbers(item_distances(
                &spec,
                arithmetic,
                temperature,
                both,
                targets,
            ))
        };
        let positions = classes(&[&[1, 2], &[-1, 0]]);
        assert_close(
            &of(Reduction::Mean, Some(3.0), &positions),
            &[(a + b) / 2.0, d],
        );
        assert_close(&of(Reduction::Sum, Some(3.0), &positions), &[a + b, d]);
        let of_items = classes(&[&[1], &[2], &[0], &[0]]);
        assert_close(
            &of(Reduction::Mean, Some(3.0), &of_items),
            &[a, b, kl(2), d],
        );
        // Each label is a choice between two classes, whose outputs differ by its own.
        let labels = Targets::Values(rows(&[[0.0f32; 3]; 4]));
        let of_label = |at: usize, label: usize| {
            divergence(&[ours[at][label], 0.0], &[theirs[at][label], 0.0], 3.0)
        };
        let sums = [0, 1, 2, 3].map(|at| (0..3).map(|label| of_label(at, label)).sum::<f32>());
        assert_close(&of(Reduction::Sum, Some(3.0), &labels), &sums);
        assert_close(
            &of(Reduction::Mean, Some(3.0), &labels),
            &sums.map(|sum| sum / 3.0),
        );
        let squares = [0, 1, 2, 3].map(|at| {
            let pairs = ours[at].iter().zip(&theirs[at]);
            pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f32>() / 3.0
        });
        assert_close(&of(Reduction::Mean, None, &labels), &squares);
    }
    // A teacher with the same outputs is not away, and a certain one is a target.
    let spec = cross_entropy(0.0, &[]);
    let of = |theirs: [[f32; 3]; 2]| {
        let both = [rows(&OUTPUTS), rows(&theirs)];
        let targets = classes(&[&[0], &[0]]);
        numbers(item_distances(
            &spec,
            Arithmetic::Fast,
            Some(1.0),
            both,
            &targets,
        ))
    };
    assert_close(&of(OUTPUTS), &[0.0, 0.0]);
    let expected = [nll(OUTPUTS[0], 2), nll(OUTPUTS[1], 1)];
    assert_close(&of([[0.0, 0.0, 200.0], [0.0, 200.0, 0.0]]), &expected);
}

#[test]
fn penalties_are_those_of_the_definition() {
    // Two positions, each with two means and two logarithms of variances.
    let item = [0.5f32, -1.0, 0.0, 0.7, 0.0, 0.0, 0.0, 0.0];
    let kl = |mean: f32, log: f32| 0.5 * (mean * mean + log.exp() - log - 1.0);
    let sum = kl(0.5, 0.0) + kl(-1.0, 0.7);
    let absolute = item.iter().map(|x| x.abs()).sum::<f32>();
    let squares = item.iter().map(|x| x * x).sum::<f32>();
    let cases = [
        (LossFunction::KlNormal, Reduction::Sum, sum),
        (LossFunction::KlNormal, Reduction::Mean, sum / 4.0),
        (LossFunction::L1, Reduction::Sum, absolute),
        (LossFunction::L2, Reduction::Mean, squares / 8.0),
    ];
    for (function, reduction, expected) in cases {
        let spec = LossSpec {
            function,
            reduction,
            mask: None,
        };
        for arithmetic in [Arithmetic::Fast, Arithmetic::Portable] {
            let data = TensorData::new([item, [0.0; 8]].concat(), [2, 2, 4]);
            let output = Tensor::from_data(data, &Device::flex());
            let found = item_penalties(&spec, arithmetic, output);
            assert_close(&numbers(found), &[expected, 0.0]);
        }
    }
}

/// (1 - p)^gamma times the cross-entropy, with a gradient, also of items that are surely right.
#[test]
fn focal_losses_are_those_of_the_definition() {
    for gamma in [0.5, 1.0, 2.0] {
        let function = LossFunction::CrossEntropy {
            label_smoothing: 0.0,
            class_weights: vec![1.0, 2.0, 1.0],
            is_balanced: false,
            focal_gamma: gamma,
        };
        let values = [[1.0f32, 0.2, -0.5], [0.0, 2.0, 1.0], [90.0, 0.0, 0.0]];
        let wanted = [0usize, 1, 0];
        let targets = classes(&[&[0], &[1], &[0]]);
        let found = numbers(item_losses(
            &spec(function.clone()),
            rows(&values),
            &targets,
        ));
        for ((row, class), found) in values.iter().zip(wanted).zip(&found) {
            let total: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
            let p = f64::from(row[class]).exp() / total;
            let weight = if class == 1 { 2.0 } else { 1.0 };
            let expected = -weight * (1.0 - p).powf(gamma) * p.ln();
            assert!(
                (f64::from(*found) - expected).abs() < 1e-5,
                "{gamma}: {found} for {expected}"
            );
        }
        assert_gradients_are_finite(&function, &values, &[[0], [1], [0]]);
    }
    let function = LossFunction::BinaryCrossEntropy {
        label_smoothing: 0.0,
        label_weights: Vec::new(),
        focal_gamma: 2.0,
    };
    let labels = Targets::Values(rows(&[[1.0f32], [0.0]]));
    let found = numbers(item_losses(
        &spec(function),
        rows(&[[0.3f32], [1.2]]),
        &labels,
    ));
    for (found, (x, sign)) in found.iter().zip([(0.3f64, 1.0), (1.2, -1.0)]) {
        let p = 1.0 / (1.0 + (-sign * x).exp());
        let expected = -(1.0 - p).powi(2) * p.ln();
        assert!(
            (f64::from(*found) - expected).abs() < 1e-6,
            "{found} for {expected}"
        );
    }
}

fn assert_gradients_are_finite<const N: usize, const P: usize>(
    function: &LossFunction,
    values: &[[f32; N]],
    wanted: &[[i64; P]],
) {
    let device = Device::flex().autodiff();
    let data = TensorData::new(values.concat(), [values.len(), N]);
    let outputs = Tensor::<2>::from_data(data, &device).require_grad();
    let targets = TensorData::new(wanted.concat(), [wanted.len(), P]);
    let targets = Targets::Classes(Tensor::from_data(targets, &device));
    let spec = spec(function.clone());
    let losses = super::item_losses(&spec, Default::default(), outputs.clone(), &targets);
    let gradients = outputs.grad(&losses.sum().backward()).unwrap();
    assert!(gradients.into_data().iter::<f64>().all(f64::is_finite));
}

/// Two items of three pixels, of which the last of the second one is ignored; by hand.
#[test]
fn dice_losses_are_those_of_the_definition() {
    let values = [
        [1.0f32, 0.2],
        [0.0, 2.0],
        [-1.0, 0.5],
        [0.3, 0.1],
        [2.0, -1.0],
        [9.0, -9.0],
    ];
    let wanted = [[0i64, 1, 1], [0, 0, -1]];
    let probability = |at: usize, class: usize| {
        let [a, b] = values[at].map(|x| f64::from(x).exp());
        [a, b][class] / (a + b)
    };
    for (smoothing, weight) in [(1e-5, 0.0), (1.0, 0.5)] {
        let function = LossFunction::Dice {
            smoothing,
            cross_entropy_weight: weight,
        };
        let targets: Vec<&[i64]> = wanted.iter().map(|of| of.as_slice()).collect();
        let found = item_losses(&spec(function.clone()), rows(&values), &classes(&targets));
        for (item, found) in numbers(found).into_iter().enumerate() {
            let pixels: Vec<(usize, usize)> = (0..3)
                .filter_map(|at| Some((3 * item + at, usize::try_from(wanted[item][at]).ok()?)))
                .collect();
            let loss = |class: usize| {
                let sum = |of: &dyn Fn(usize, usize) -> f64| {
                    pixels.iter().map(|(at, is)| of(*at, *is)).sum::<f64>()
                };
                let both = sum(&|at, is| {
                    if is == class {
                        probability(at, class)
                    } else {
                        0.0
                    }
                });
                let all = sum(&|at, is| probability(at, class) + f64::from(is == class));
                1.0 - (2.0 * both + smoothing) / (all + smoothing)
            };
            let entropies = pixels.iter().map(|(at, is)| -probability(*at, *is).ln());
            let entropy = entropies.sum::<f64>() / pixels.len() as f64;
            let expected = (loss(0) + loss(1)) / 2.0 + weight * entropy;
            assert!(
                (f64::from(found) - expected).abs() < 1e-5,
                "{found} for {expected}"
            );
        }
        assert_gradients_are_finite(&function, &values, &wanted);
    }
}

#[test]
fn the_quantile_loss_weighs_errors_by_their_sides() {
    let function = LossFunction::Quantile { quantile: 0.9 };
    let targets = Targets::Values(rows(&[[1.0f32, 4.0], [0.0, 0.0]]));
    let found = item_losses(
        &spec(function),
        rows(&[[3.0f32, 2.0], [0.0, 1.0]]),
        &targets,
    );
    assert_close(&numbers(found), &[(0.1 * 2.0 + 0.9 * 2.0) / 2.0, 0.1 / 2.0]);
}

#[test]
fn cross_entropy_is_the_negative_log_likelihood() {
    let [a, b] = OUTPUTS;
    let found = item_losses(
        &cross_entropy(0.0, &[]),
        rows(&OUTPUTS),
        &classes(&[&[1], &[0]]),
    );
    assert_close(&numbers(found), &[nll(a, 1), nll(b, 0)]);
    let weighted = cross_entropy(0.0, &[2.0, 0.5, 1.0]);
    let found = item_losses(&weighted, rows(&OUTPUTS), &classes(&[&[1], &[0]]));
    assert_close(&numbers(found), &[0.5 * nll(a, 1), 2.0 * nll(b, 0)]);
}

#[test]
fn the_mean_of_cross_entropy_is_burns() {
    for smoothing in [None, Some(0.1)] {
        let device = Device::flex();
        let burn = CrossEntropyLossConfig::new()
            .with_smoothing(smoothing)
            .init(&device);
        let flat = Tensor::<1, Int>::from_ints([1, 0], &device);
        let expected = numbers(burn.forward(rows(&OUTPUTS), flat));
        let smoothing = smoothing.map_or(0.0, f64::from);
        let ours = item_losses(
            &cross_entropy(smoothing, &[]),
            rows(&OUTPUTS),
            &classes(&[&[1], &[0]]),
        );
        assert_close(&numbers(ours.mean()), &expected);
    }
}

#[test]
fn positions_that_do_not_count_are_left_out() {
    let [a, b] = OUTPUTS;
    let outputs = rows(&[a, b, a, b]);
    let targets = classes(&[&[1, -1], &[0, 2]]);
    let found = item_losses(&cross_entropy(0.0, &[]), outputs.clone(), &targets);
    assert_close(&numbers(found), &[nll(a, 1), (nll(a, 0) + nll(b, 2)) / 2.0]);
    let summed = LossSpec {
        reduction: Reduction::Sum,
        ..cross_entropy(0.0, &[])
    };
    let found = item_losses(&summed, outputs, &targets);
    assert_close(&numbers(found), &[nll(a, 1), nll(a, 0) + nll(b, 2)]);
}

#[test]
fn margins_are_those_of_the_definition() {
    let margin = spec(LossFunction::MultiMargin { margin: 1.0, p: 1 });
    let found = item_losses(&margin, rows(&OUTPUTS), &classes(&[&[1], &[0]]));
    // (max(0, 1 - 2 + 1) + max(0, 1 - 2 + 0.5)) / 3 and (max(0, 1 + 1 + 0) + max(0, 1 + 1 + 3)) / 3
    assert_close(&numbers(found), &[0.0, 7.0 / 3.0]);
    let squares = spec(LossFunction::Mse);
    let found = item_losses(&squares, rows(&OUTPUTS), &classes(&[&[1], &[0]]));
    assert_close(&numbers(found), &[2.25 / 3.0, 13.0 / 3.0]);
}

#[test]
fn losses_of_values_are_those_of_the_definition() {
    let outputs = [[1.0, -2.0], [0.5, 4.0]];
    let targets = Targets::Values(rows(&[[0.0, 1.0], [0.5, 2.0]]));
    let stirling = 2.0 * 2f32.ln() - 2.0 + 0.5 * (2.0 * std::f32::consts::TAU).ln();
    let cases: [(LossFunction, [f32; 2]); 7] = [
        (
            LossFunction::PoissonNll {
                log_input: true,
                full: true,
            },
            [
                (1f32.exp() + (-2f32).exp() + 2.0) / 2.0,
                (0.5f32.exp() - 0.25 + 4f32.exp() - 8.0 + stirling) / 2.0,
            ],
        ),
        (LossFunction::Mse, [5.0, 2.0]),
        (LossFunction::Mae, [2.0, 1.0]),
        (LossFunction::Lp { p: 3.0 }, [14.0, 4.0]),
        (LossFunction::Huber { delta: 1.0 }, [1.5, 0.75]),
        (
            LossFunction::SmoothL1 { beta: 2.0 },
            [(0.25 + 2.0) / 2.0, 0.5],
        ),
        (
            LossFunction::PoissonNll {
                log_input: true,
                full: false,
            },
            [
                (1f32.exp() + (-2f32).exp() + 2.0) / 2.0,
                (0.5f32.exp() - 0.25 + 4f32.exp() - 8.0) / 2.0,
            ],
        ),
    ];
    for (function, expected) in cases {
        let found = item_losses(&spec(function), rows(&outputs), &targets);
        assert_close(&numbers(found), &expected);
    }
    let Targets::Values(values) = &targets else {
        unreachable!()
    };
    let burn = HuberLossConfig::new(1.0).init();
    let expected = burn.forward(rows(&outputs), values.clone(), BurnReduction::Mean);
    let ours = item_losses(
        &spec(LossFunction::Huber { delta: 1.0 }),
        rows(&outputs),
        &targets,
    );
    assert_close(&numbers(ours.mean()), &numbers(expected));
    let expected = MseLoss::new().forward(rows(&outputs), values.clone(), BurnReduction::Mean);
    let ours = item_losses(&spec(LossFunction::Mse), rows(&outputs), &targets);
    assert_close(&numbers(ours.mean()), &numbers(expected));
}

/// In `f64`, neither 0.1 nor its reciprocal is rounded to 32 bits, forward and backward.
#[test]
fn huber_losses_have_settings_of_64_bits() {
    let device = Device::flex().autodiff();
    let tensor = |values: [f64; 3]| {
        let data = TensorData::new(values.to_vec(), [3, 1]);
        Tensor::<2>::from_data(data, (&device, DType::F64))
    };
    let (errors, delta) = ([0.03, -0.7, 1.9], 0.1);
    let near = |error: f64| error.abs() <= delta;
    for (function, factor) in [
        (LossFunction::Huber { delta }, 1.0),
        (LossFunction::SmoothL1 { beta: delta }, 1.0 / delta),
    ] {
        let outputs = tensor(errors).require_grad();
        let targets = Targets::Values(tensor([0.0; 3]));
        let computed = (Kernels::Fast, Arithmetic::Fast);
        let losses = super::item_losses(&spec(function), computed, outputs.clone(), &targets);
        let gradients = outputs.grad(&losses.clone().sum().backward()).unwrap();
        let found = |data: TensorData| data.iter::<f64>().collect::<Vec<_>>();
        let (losses, gradients) = (found(losses.into_data()), found(gradients.into_data()));
        for (at, error) in errors.into_iter().enumerate() {
            let (loss, gradient) = if near(error) {
                (error * error / 2.0, error)
            } else {
                (delta * (error.abs() - delta / 2.0), delta * error.signum())
            };
            for (found, wanted) in [(losses[at], loss), (gradients[at], gradient)] {
                assert!(
                    (found / (wanted * factor) - 1.0).abs() < 1e-14,
                    "{found}, {wanted}"
                );
            }
        }
    }
}

#[test]
fn a_variance_is_the_softplus_of_the_second_half() {
    let outputs = rows(&[[1.0, -2.0, 0.3, 1.5]]);
    let targets = Targets::Values(rows(&[[0.0, 1.0]]));
    let one = |x: f32, y: f32, raw: f32| {
        let variance = (1.0 + raw.exp()).ln();
        0.5 * (variance.ln() + (x - y) * (x - y) / variance)
    };
    let found = item_losses(&spec(LossFunction::GaussianNll), outputs, &targets);
    assert_close(
        &numbers(found),
        &[(one(1.0, 0.0, 0.3) + one(-2.0, 1.0, 1.5)) / 2.0],
    );
}

/// As in PyTorch, whose clamp is not part of the gradient.
#[test]
fn a_variance_below_the_smallest_can_rise() {
    let device = Device::flex().autodiff();
    for arithmetic in [Arithmetic::Fast, Arithmetic::Portable] {
        let data = TensorData::new(vec![0.5_f32, -16.0], [1, 2]);
        let outputs = Tensor::<2>::from_data(data, &device).require_grad();
        let targets = Tensor::from_data(TensorData::new(vec![0.0_f32], [1, 1]), &device);
        let losses = super::item_losses(
            &spec(LossFunction::GaussianNll),
            (Kernels::Fast, arithmetic),
            outputs.clone(),
            &Targets::Values(targets),
        );
        let expected = 0.5 * ((1e-6_f32).ln() + 0.25 / 1e-6);
        let found = numbers(losses.clone())[0];
        assert!((found / expected - 1.0).abs() < 1e-5, "{found} {expected}");
        let gradients = outputs.grad(&losses.sum().backward()).unwrap();
        // Of the variance, 0.5 (1 / v - e² / v²), by the slope of softplus.
        let expected = 0.5 * (1e6 - 0.25 * 1e12) * (-16.0_f32).exp();
        let found = gradients.into_data().try_to_vec::<f32>().unwrap()[1];
        assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
    }
}

#[test]
fn losses_of_labels_are_those_of_the_definition() {
    let outputs = [[1.0f32, -2.0], [0.5, 4.0]];
    let labels = [[1.0f32, 0.0], [0.0, 1.0]];
    let targets = Targets::Values(rows(&labels));
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let one = |x: f32, y: f32| -(y * sigmoid(x).ln() + (1.0 - y) * (1.0 - sigmoid(x)).ln());
    let binary = |label_smoothing, label_weights: &[f64]| {
        spec(LossFunction::BinaryCrossEntropy {
            label_smoothing,
            label_weights: label_weights.to_vec(),
            focal_gamma: 0.0,
        })
    };
    let found = item_losses(&binary(0.0, &[]), rows(&outputs), &targets);
    assert_close(
        &numbers(found),
        &[
            (one(1.0, 1.0) + one(-2.0, 0.0)) / 2.0,
            (one(0.5, 0.0) + one(4.0, 1.0)) / 2.0,
        ],
    );
    let found = item_losses(&binary(0.0, &[3.0, 1.0]), rows(&outputs), &targets);
    assert_close(
        &numbers(found),
        &[
            (3.0 * one(1.0, 1.0) + one(-2.0, 0.0)) / 2.0,
            (3.0 * one(0.5, 0.0) + one(4.0, 1.0)) / 2.0,
        ],
    );
    let device = Device::flex();
    let burn = BinaryCrossEntropyLossConfig::new()
        .with_logits(true)
        .with_smoothing(Some(0.2))
        .init(&device);
    let flat = Tensor::<2, Int>::from_ints([[1, 0], [0, 1]], &device);
    let ours = item_losses(&binary(0.2, &[]), rows(&outputs), &targets);
    assert_close(
        &numbers(ours.mean()),
        &numbers(burn.forward(rows(&outputs), flat)),
    );
    // ln(1 + exp(-y x)) with y of 1 and -1.
    let soft = |x: f32, y: f32| (1.0 + (-y * x).exp()).ln();
    let found = item_losses(&spec(LossFunction::SoftMargin), rows(&outputs), &targets);
    assert_close(
        &numbers(found),
        &[
            (soft(1.0, 1.0) + soft(-2.0, -1.0)) / 2.0,
            (soft(0.5, -1.0) + soft(4.0, 1.0)) / 2.0,
        ],
    );
}
