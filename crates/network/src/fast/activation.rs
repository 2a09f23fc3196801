//! Activation functions and softmaxes.

use burn::backend::flex::FlexTensor;
use burn::nn::SwiGlu;
use burn::tensor::Tensor;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::activation::Activation as Planned;
use runner_kernels::activation::Activation;
use runner_kernels::softmax::{self as rows, Form};

use super::gated::glu;
use super::linear::linear;
use super::operation::{
    Back, Operation, apply_1, changed, contiguous, is_ours, numbers, sizes, tensor,
};

/// An element-wise function.
#[derive(Clone, Debug)]
struct Each(Activation);

impl Operation<1> for Each {
    /// The output, for functions whose derivative is a function of it.
    type Kept = Option<FlexTensor>;

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [!self.0.keeps_output()]
    }

    fn is_cheap(&self) -> bool {
        !self.0.keeps_output()
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<Self::Kept>) {
        let x = contiguous(x);
        let output = if x.is_unique() {
            changed(x, |values| self.0.apply(values))
        } else {
            tensor(
                self.0.forward(numbers(&x)),
                burn::backend::TensorMetadata::shape(&x),
            )
        };
        let kept = is_kept.then(|| self.0.keeps_output().then(|| output.clone()));
        (output, kept)
    }

    fn backward(&self, mut back: Back<Self::Kept, 1>) -> [Option<FlexTensor>; 1] {
        let seen = match back.kept.take() {
            Some(output) => contiguous(output),
            None => back.operand(0),
        };
        [Some(changed(back.gradient, |gradient| {
            self.0.backward(numbers(&seen), gradient)
        }))]
    }
}

/// A row-wise function along the last axis.
#[derive(Clone, Debug)]
struct Rows(Form);

impl Operation<1> for Rows {
    /// The output.
    type Kept = FlexTensor;

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<FlexTensor>) {
        let columns = columns(&x);
        let output = changed(x, |values| rows::apply(self.0, values, columns));
        let kept = is_kept.then(|| output.clone());
        (output, kept)
    }

    fn backward(&self, back: Back<FlexTensor, 1>) -> [Option<FlexTensor>; 1] {
        let output = contiguous(back.kept);
        let columns = columns(&output);
        let change =
            |gradient: &mut [f32]| rows::backward(self.0, numbers(&output), gradient, columns);
        [Some(changed(back.gradient, change))]
    }
}

fn columns(x: &FlexTensor) -> usize {
    sizes(x).last().copied().unwrap_or(1)
}

/// A function of each number, if it is supported here; else the tensor as it was.
#[expect(
    clippy::result_large_err,
    reason = "both are tensors, of which one is returned"
)]
pub fn activate<const D: usize>(x: Tensor<D>, function: &Planned) -> Result<Tensor<D>, Tensor<D>> {
    if !is_ours(&x) || x.shape().num_elements() == 0 {
        return Err(x);
    }
    match function {
        Planned::Softmax => Ok(softmax(x)),
        Planned::LogSoftmax => Ok(log_softmax(x)),
        Planned::Glu => Ok(glu(x)),
        other => match of(other) {
            Some(function) => Ok(apply_1(x, Each(function))),
            None => Err(x),
        },
    }
}

/// A function of each number; the tensor must be one that is computed here.
pub fn each<const D: usize>(x: Tensor<D>, function: Activation) -> Tensor<D> {
    apply_1(x, Each(function))
}

/// The softmax along the last axis of a tensor that is computed here.
pub fn softmax<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    apply_1(x, Rows(Form::Softmax))
}

/// The logarithm of the same.
pub fn log_softmax<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    apply_1(x, Rows(Form::LogSoftmax))
}

/// A linear layer gated by SiLU of another, if it can be computed here.
pub fn swiglu<const D: usize>(
    layer: &SwiGlu,
    x: &Tensor<D>,
    arithmetic: Arithmetic,
) -> Option<Tensor<D>> {
    if !is_ours(x) {
        return None;
    }
    let gate = linear(&layer.linear_inner, x.clone(), arithmetic);
    let gate = activate(gate, &Planned::Silu).ok()?;
    Some(gate * linear(&layer.linear_outer, x.clone(), arithmetic))
}

/// The kernel of a function; none if there is no kernel for it, or not with its settings.
pub fn of(function: &Planned) -> Option<Activation> {
    let kernel = match *function {
        Planned::Relu => Activation::Relu,
        Planned::Relu6 => Activation::Hardtanh { min: 0.0, max: 6.0 },
        Planned::LeakyRelu { negative_slope } => Activation::LeakyRelu {
            negative_slope: negative_slope as f32,
        },
        Planned::Rrelu { lower, upper } if lower == upper => Activation::LeakyRelu {
            negative_slope: lower as f32,
        },
        Planned::ThresholdedRelu { alpha } => Activation::ThresholdedRelu {
            alpha: alpha as f32,
        },
        Planned::Gelu => Activation::Gelu,
        Planned::GeluTanh => Activation::GeluTanh,
        Planned::Silu => Activation::Silu,
        Planned::Mish => Activation::Mish,
        Planned::Elu { alpha } => Activation::Elu {
            alpha: alpha as f32,
        },
        Planned::Celu { alpha } => Activation::Celu {
            alpha: alpha as f32,
        },
        Planned::Selu => Activation::Selu,
        Planned::Tanh => Activation::Tanh,
        Planned::Sigmoid => Activation::Sigmoid,
        Planned::LogSigmoid => Activation::LogSigmoid,
        Planned::Softplus { beta, threshold } => Activation::Softplus {
            beta: beta as f32,
            threshold: threshold as f32,
        },
        Planned::Softsign => Activation::Softsign,
        Planned::Tanhshrink => Activation::Tanhshrink,
        Planned::HardSigmoid { alpha, beta } => Activation::HardSigmoid {
            alpha: alpha as f32,
            beta: beta as f32,
        },
        Planned::HardSwish => Activation::HardSwish,
        Planned::Hardtanh { min, max } => Activation::Hardtanh {
            min: min as f32,
            max: max as f32,
        },
        Planned::HardShrink { lambda } if lambda >= 0.0 => Activation::HardShrink {
            lambda: lambda as f32,
        },
        Planned::SoftShrink { lambda } if lambda >= 0.0 => Activation::SoftShrink {
            lambda: lambda as f32,
        },
        Planned::Shrink { lambda, bias } if lambda >= 0.0 => Activation::Shrink {
            lambda: lambda as f32,
            bias: bias as f32,
        },
        Planned::Threshold { threshold, value } => Activation::Threshold {
            threshold: threshold as f32,
            value: value as f32,
        },
        Planned::Exp => Activation::Exp,
        Planned::Erf => Activation::Erf,
        _ => return None,
    };
    Some(kernel)
}
