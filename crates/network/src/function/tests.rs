//! NaN propagates to the loss, so that a diverging run is detected.

use burn::module::Module;
use burn::tensor::{DType, Device, Tensor};

use super::{Activation, activate_by};
use crate::graph::Graph;
use crate::loss::item_losses;
use crate::sparse;
use crate::targets::Targets;
use crate::tensor::DynTensor;
use crate::testing::generator;
use runner_core::check::network::examples::network;
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::loss::{LossFunction, LossSpec, Reduction};

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("numbers")
}

fn activations() -> Vec<Activation> {
    use Activation::*;
    let (alpha, lambda, threshold) = (0.7, 0.5, 0.3);
    vec![
        Relu,
        Relu6,
        LeakyRelu {
            negative_slope: 0.1,
        },
        Rrelu {
            lower: 0.1,
            upper: 0.1,
        },
        Rrelu {
            lower: 0.1,
            upper: 0.3,
        },
        ThresholdedRelu { alpha },
        Gelu,
        GeluTanh,
        Silu,
        Mish,
        Elu { alpha },
        Celu { alpha },
        Selu,
        Tanh,
        Sigmoid,
        LogSigmoid,
        Softplus {
            beta: 1.0,
            threshold: 20.0,
        },
        Softsign,
        Tanhshrink,
        HardSigmoid {
            alpha: 0.2,
            beta: 0.5,
        },
        HardSwish,
        Hardtanh {
            min: -1.0,
            max: 1.0,
        },
        HardShrink { lambda },
        SoftShrink { lambda },
        Shrink { lambda, bias: 0.1 },
        Threshold {
            threshold,
            value: 2.0,
        },
        Softmax,
        LogSoftmax,
        Glu,
    ]
}

#[test]
fn activations_pass_on_what_is_no_number() {
    let _generator = generator();
    for device in [Device::default(), Device::default().autodiff()] {
        for activation in activations() {
            for kernels in [Kernels::Fast, Kernels::Reference] {
                let input = Tensor::<2>::from_floats([[0.4, f32::NAN, -0.6, 1.0]], &device);
                let output = values(activate_by(kernels, &activation, input, Arithmetic::Fast));
                assert!(
                    output.iter().any(|value| value.is_nan()),
                    "{activation:?}: {output:?}"
                );
            }
        }
    }
}

#[test]
fn the_largest_values_are_chosen_beside_what_is_no_number() {
    let numbers = [
        [1.0, f32::NAN, 3.0, 2.0],
        [f32::NAN, f32::NAN, f32::NAN, 2.0],
    ];
    let x = Tensor::<2>::from_data(numbers, &Device::flex());
    let largest = values(sparse::largest(x, 2, -1.0));
    let nan = |at: usize| largest[at].is_nan();
    assert!(nan(1) && (4..7).all(nan), "{largest:?}");
    assert_eq!(
        [largest[0], largest[2], largest[3], largest[7]],
        [-1.0, 3.0, -1.0, -1.0]
    );
}

#[test]
fn functions_with_settings_keep_64_bits() {
    let numbers = [-3.1, -0.7, 0.1, 0.9, 2.3, 61.7];
    let activated = |activation| {
        let device = Device::default();
        let input = Tensor::<1>::from_data(numbers, (&device, DType::F64));
        let output =
            activate_by(Kernels::Reference, &activation, input, Arithmetic::Fast).into_data();
        output.try_into_vec::<f64>().expect("64 bits")
    };
    let hard = |x: f64, alpha: f64, beta: f64| (alpha * x + beta).clamp(0.0, 1.0);
    let (alpha, beta) = (0.2, 0.5);
    let all = [
        (
            Activation::HardSigmoid { alpha, beta },
            numbers.map(|x| hard(x, alpha, beta)),
        ),
        (
            Activation::HardSwish,
            numbers.map(|x| x * hard(x, 1.0 / 6.0, 0.5)),
        ),
    ];
    // As in PyTorch, above the threshold it is the number itself.
    let softplus = |beta: f64, threshold: f64| {
        let of = |x: f64| {
            if beta * x > threshold {
                x
            } else {
                (beta * x).exp().ln_1p() / beta
            }
        };
        (Activation::Softplus { beta, threshold }, numbers.map(of))
    };
    let soft = [
        (0.1, 20.0),
        (0.3, 2.0),
        (1.0, 20.0),
        (2.7, 20.0),
        (13.0, 40.0),
    ];
    let soft = soft.map(|(beta, threshold)| softplus(beta, threshold));
    for (activation, expected) in all.into_iter().chain(soft) {
        for (found, expected) in activated(activation).into_iter().zip(expected) {
            let error = (found - expected).abs() / expected.abs().max(1.0);
            assert!(error < 1e-15, "{found} {expected}");
        }
    }
}

#[test]
fn losses_of_what_is_no_number_are_none() {
    let device = Device::default();
    let spec = |function: LossFunction, reduction| LossSpec {
        function,
        reduction,
        mask: None,
    };
    let classes = [
        LossFunction::CrossEntropy {
            label_smoothing: 0.0,
            class_weights: Vec::new(),
            is_balanced: false,
            focal_gamma: 0.0,
        },
        LossFunction::CrossEntropy {
            label_smoothing: 0.1,
            class_weights: vec![1.0, 2.0, 3.0],
            is_balanced: false,
            focal_gamma: 0.0,
        },
        LossFunction::MultiMargin { margin: 1.0, p: 1 },
        LossFunction::MultiMargin { margin: 1.0, p: 2 },
        LossFunction::Mse,
    ];
    let numbers = [
        LossFunction::Mse,
        LossFunction::Mae,
        LossFunction::Lp { p: 1.5 },
        LossFunction::Huber { delta: 1.0 },
        LossFunction::SmoothL1 { beta: 1.0 },
        LossFunction::PoissonNll {
            log_input: true,
            full: true,
        },
        LossFunction::PoissonNll {
            log_input: false,
            full: false,
        },
        LossFunction::SoftMargin,
        LossFunction::BinaryCrossEntropy {
            label_smoothing: 0.1,
            label_weights: Vec::new(),
            focal_gamma: 0.0,
        },
    ];
    for place in 0..3 {
        let mut output = [0.5, -0.5, 0.25];
        output[place] = f32::NAN;
        let outputs = || Tensor::<2>::from_floats([output], &device);
        for reduction in [Reduction::Mean, Reduction::Sum] {
            for (function, class) in classes
                .iter()
                .flat_map(|f| [0, 1, 2].map(|class| (f, class)))
            {
                let targets = Targets::Classes(Tensor::from_ints([[class]], &device));
                let losses = item_losses(
                    &spec(function.clone(), reduction),
                    Default::default(),
                    outputs(),
                    &targets,
                );
                assert!(
                    values(losses)[0].is_nan(),
                    "{function:?} of {output:?} for {class}"
                );
            }
            for function in &numbers {
                let targets = Targets::Values(Tensor::from_floats([[1.0, 0.0, 2.0]], &device));
                let losses = item_losses(
                    &spec(function.clone(), reduction),
                    Default::default(),
                    outputs(),
                    &targets,
                );
                assert!(values(losses)[0].is_nan(), "{function:?} of {output:?}");
            }
        }
    }
    for place in 0..2 {
        let mut output = [0.5, 0.5];
        output[place] = f32::NAN;
        let outputs = Tensor::<2>::from_floats([output], &device);
        let targets = Targets::Values(Tensor::from_floats([[1.0]], &device));
        let losses = item_losses(
            &spec(LossFunction::GaussianNll, Reduction::Mean),
            Default::default(),
            outputs,
            &targets,
        );
        assert!(values(losses)[0].is_nan(), "a Gaussian of {output:?}");
    }
}

/// A network of one layer over items of a shape.
fn output(items: &[usize], layers: &str, device: &Device) -> DynTensor {
    let plan = network(items, layers);
    let values = (0..3 * items.iter().product::<usize>()).map(|at| 1.0 + at as f32);
    let shape = [&[3], items].concat();
    let input = DynTensor::from_values(values.collect(), &shape, device);
    Graph::new(&plan, Default::default(), device).forward(input)
}

fn numbers(tensor: DynTensor) -> Vec<f32> {
    tensor.into_data().iter().collect()
}

#[test]
fn whole_channels_and_whole_items_are_dropped_in_training_only() {
    let _generator = generator();
    let device = Device::flex().autodiff();
    device.seed(3);
    for (layer, part, num) in [
        ("channel_dropout", 40, 600 * 3),
        ("stochastic_depth", 600 * 40, 3),
    ] {
        let layer = format!("{{ type = '{layer}', probability = 0.25 }}");
        let items = [600, 4, 10];
        let before = numbers(output(&items, "{ type = 'identity' }", &device));
        assert_eq!(numbers(output(&items, &layer, &Device::flex())), before);
        let mut kept = 0;
        // The items of a batch are few, so that they are drawn several times.
        let rounds = 1 + 400 / num;
        for _ in 0..rounds {
            let after = numbers(output(&items, &layer, &device));
            for (before, after) in before.chunks(part).zip(after.chunks(part)) {
                let is_kept = after[0] != 0.0;
                kept += usize::from(is_kept);
                for (before, after) in before.iter().zip(after) {
                    let expected = if is_kept { before / 0.75 } else { 0.0 };
                    assert!((after - expected).abs() <= 1e-6 * expected, "{layer}");
                }
            }
        }
        let fraction = kept as f64 / (num * rounds) as f64;
        assert!((fraction - 0.75).abs() < 0.07, "{layer}: {fraction}");
    }
}

#[test]
fn sums_go_up_to_each_position() {
    let sums = output(&[2, 3], "{ type = 'cumsum', axis = 1 }", &Device::flex());
    let first: Vec<f32> = numbers(sums)[..6].to_vec();
    assert_eq!(first, [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
}

#[test]
fn causal_convolutions_see_no_later_position() {
    let layers =
        "{ type = 'conv1d', out_channels = 2, kernel_size = 3, dilation = 2, padding = 'causal' }";
    let _generator = generator();
    let device = Device::flex();
    let plan = network(&[2, 9], layers);
    let graph = Graph::new(&plan, Default::default(), &device).materialize();
    let run = |last: f32| {
        let mut values: Vec<f32> = (0..18).map(|at| (at as f32).sin()).collect();
        (values[8], values[17]) = (last, last);
        numbers(graph.forward(DynTensor::from_values(values, &[1, 2, 9], &device)))
    };
    let (a, b) = (run(0.0), run(5.0));
    assert_eq!(a.len(), 18);
    let differ = (0..18).filter(|at| a[*at] != b[*at]);
    assert_eq!(differ.collect::<Vec<_>>(), [8, 17]);
}

/// Every equation over small tensors gives the sum that its letters say.
#[test]
fn equations_are_sums_of_products() {
    let size = |letter: char| letter as usize - 'a' as usize + 2;
    for equation in [
        "ab->ba",
        "abc->b",
        "ab,b->a",
        "ab,bc->ac",
        "ab,cb->ca",
        "ab,ac->abc",
        "abc,dc->adb",
        "abc,abc->ab",
        "abc,abd->dca",
        "a,b->ab",
        "ab,c->b",
        "abd,acd->bc",
    ] {
        let (operands, kept) = equation.split_once("->").unwrap();
        let operands: Vec<&str> = operands.split(',').collect();
        let device = Device::flex();
        let tensors = operands.iter().enumerate().map(|(number, letters)| {
            let dims: Vec<usize> = [2].into_iter().chain(letters.chars().map(size)).collect();
            let num = dims.iter().product::<usize>();
            let values = (0..num).map(|at| (number as f32 + 0.7 * at as f32).sin());
            (values.collect::<Vec<f32>>(), dims)
        });
        let tensors: Vec<_> = tensors.collect();
        let inputs = tensors.iter();
        let inputs =
            inputs.map(|(values, dims)| DynTensor::from_values(values.clone(), dims, &device));
        let found = crate::einsum::summed(equation, inputs.collect(), Arithmetic::Fast);
        let mut letters: Vec<char> = operands.concat().chars().collect();
        letters.sort_unstable();
        letters.dedup();
        let dims: Vec<usize> = [2].into_iter().chain(kept.chars().map(size)).collect();
        assert_eq!(found.dims(), dims, "{equation}");
        let mut expected = vec![0.0f64; dims.iter().product()];
        let total = 2 * letters
            .iter()
            .map(|letter| size(*letter))
            .product::<usize>();
        for at in 0..total {
            let (mut rest, batch) = (at / 2, at % 2);
            let places: Vec<(char, usize)> = letters
                .iter()
                .map(|letter| {
                    let place = rest % size(*letter);
                    rest /= size(*letter);
                    (*letter, place)
                })
                .collect();
            let offset = |text: &str| {
                let place = |letter: char| places.iter().find(|(l, _)| *l == letter).unwrap().1;
                text.chars().fold(batch, |offset, letter| {
                    offset * size(letter) + place(letter)
                })
            };
            let factors = operands.iter().zip(&tensors);
            let product: f64 = factors
                .map(|(text, (values, _))| f64::from(values[offset(text)]))
                .product();
            expected[offset(kept)] += product;
        }
        for (found, expected) in numbers(found).iter().zip(&expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{equation}");
        }
    }
}

/// Means 2 and standard deviations 3: in training a sample of these, otherwise the means.
#[test]
fn samples_are_of_the_normal_distribution_and_only_drawn_in_training() {
    let _generator = generator();
    const NUM: usize = 4000;
    let plan = network(&[2], "{ type = 'gaussian_sample' }");
    for arithmetic in [Arithmetic::Fast, Arithmetic::Portable] {
        let outputs = |device: &Device| {
            device.seed(7);
            let graph = Graph::new(&plan, (Kernels::Fast, arithmetic), device);
            let items = [2.0, 2.0 * 3.0f32.ln()].repeat(NUM);
            let items = DynTensor::from_values(items, &[NUM, 2], device);
            let output = values(graph.forward(items).flatten());
            assert_eq!(output.len(), NUM);
            output
        };
        let device = Device::default();
        assert!(outputs(&device).iter().all(|value| *value == 2.0));
        let drawn = outputs(&device.clone().autodiff());
        let mean = drawn.iter().sum::<f32>() / NUM as f32;
        let squares = drawn.iter().map(|value| (value - mean).powi(2));
        let deviation = (squares.sum::<f32>() / NUM as f32).sqrt();
        assert!((mean - 2.0).abs() < 0.2, "{mean}");
        assert!((deviation - 3.0).abs() < 0.2, "{deviation}");
        assert_eq!(drawn, outputs(&device.autodiff()));
    }
}
