//! NaN propagates to the loss, so that a diverging run is detected.

use burn::tensor::{Device, Tensor};

use super::{Activation, activate_by};
use crate::loss::item_losses;
use crate::targets::Targets;
use runner_core::spec::backend::Kernels;
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
    for device in [Device::default(), Device::default().autodiff()] {
        for activation in activations() {
            for kernels in [Kernels::Fast, Kernels::Reference] {
                let input = Tensor::<2>::from_floats([[0.4, f32::NAN, -0.6, 1.0]], &device);
                let output = values(activate_by(kernels, &activation, input));
                assert!(
                    output.iter().any(|value| value.is_nan()),
                    "{activation:?}: {output:?}"
                );
            }
        }
    }
}

#[test]
fn losses_of_what_is_no_number_are_none() {
    let device = Device::default();
    let spec = |function: LossFunction, reduction| LossSpec {
        function,
        reduction,
    };
    let classes = [
        LossFunction::CrossEntropy {
            label_smoothing: 0.0,
            class_weights: Vec::new(),
            focal_gamma: 0.0,
        },
        LossFunction::CrossEntropy {
            label_smoothing: 0.1,
            class_weights: vec![1.0, 2.0, 3.0],
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
