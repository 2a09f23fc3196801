//! Affine maps, norms and activation functions.

use super::call::{Call, truth};
use super::helpers::Helper;
use super::{Names, Piece};
use runner_core::check::network::Layer;
use runner_core::diagnostic::Reason;
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{LayerKind, Norm};

/// Affine maps of the last axis, and embeddings.
pub fn linear(layer: &Layer, names: &Names<'_>) -> Piece {
    let input = &layer.inputs[0].shape;
    let width = input.dims.last().copied().unwrap_or(1);
    let output = layer.shape.last().copied().unwrap_or(1);
    match &layer.kind {
        LayerKind::Swiglu { bias, .. } => {
            let call = Call::new("SwiGLU").arg(width).arg(output);
            Piece::module(names, call.named("bias", truth(*bias)).end()).with(Helper::SwiGlu)
        }
        LayerKind::Embedding { .. } => {
            let call = Call::new("nn.Embedding").arg(input.vocabulary.unwrap_or(1));
            Piece::module(names, call.arg(output).end())
        }
        kind => {
            let has_bias = !matches!(kind, LayerKind::Linear { bias: false, .. });
            if let Some(matrix) = &names.matrix {
                let x = names.input();
                return if has_bias {
                    let call = format!("self.{}({x}, {matrix})", names.module);
                    Piece {
                        module: Some(format!("TiedLinear({output})")),
                        ..Piece::expression(names, call).with(Helper::TiedLinear)
                    }
                } else {
                    Piece::expression(names, format!("F.linear({x}, {matrix})"))
                };
            }
            let call = Call::new("nn.Linear").arg(width).arg(output);
            Piece::module(names, call.flag("bias", has_bias, true).end())
        }
    }
}

/// A learned slope for negative values.
pub fn prelu(initial: f64, layer: &Layer, names: &Names<'_>) -> Piece {
    let is_each = matches!(
        layer.kind,
        LayerKind::Prelu {
            per_channel: true,
            ..
        }
    );
    let num = if is_each {
        layer.inputs[0].shape.dims[0]
    } else {
        1
    };
    let call = Call::new("nn.PReLU").arg(num);
    Piece::module(names, call.named("init", format!("{initial:?}")).end())
}

/// Norms; their epsilon is PyTorch's default of 1e-5 in all but one.
pub fn norm(norm: &Norm, layer: &Layer, names: &Names<'_>) -> Piece {
    let dims = &layer.inputs[0].shape.dims;
    let (channels, width) = (dims[0], dims[dims.len() - 1]);
    let number = |value: f64| format!("{value:?}");
    let eps = |call: Call, epsilon: f64| call.unless("eps", number(epsilon), number(1e-5));
    // The number of spatial axes is the number of axes after the channels.
    let images = dims.len().saturating_sub(1).max(1);
    let module = match *norm {
        Norm::Batch {
            epsilon,
            momentum,
            affine,
        } => {
            let call = eps(
                Call::new(format!("nn.BatchNorm{images}d")).arg(channels),
                epsilon,
            );
            let call = call.unless("momentum", number(momentum), number(0.1));
            call.flag("affine", affine, true).end()
        }
        Norm::Layer { epsilon, bias } => {
            let call = eps(Call::new("nn.LayerNorm").arg(width), epsilon);
            call.flag("bias", bias, true).end()
        }
        Norm::Group {
            num_groups,
            epsilon,
            affine,
        } => {
            let call = Call::new("nn.GroupNorm").arg(num_groups).arg(channels);
            eps(call, epsilon).flag("affine", affine, true).end()
        }
        Norm::Instance { epsilon, affine } => {
            let call = Call::new(format!("nn.InstanceNorm{images}d")).arg(channels);
            eps(call, epsilon).flag("affine", affine, false).end()
        }
        Norm::Rms { epsilon } => {
            let call = Call::new("nn.RMSNorm").arg(width);
            call.named("eps", number(epsilon)).end()
        }
        Norm::LocalResponse {
            size,
            alpha,
            beta,
            k,
        } => {
            let has_middle = !size.is_multiple_of(2);
            let name = if has_middle {
                "F.local_response_norm"
            } else {
                "local_response_norm"
            };
            let call = Call::new(name).arg(names.input()).arg(size);
            let numbers = [alpha, beta, k].into_iter().map(number);
            let piece = Piece::expression(names, numbers.fold(call, Call::arg).end());
            return if has_middle {
                piece
            } else {
                piece.with(Helper::LocalResponseNorm)
            };
        }
    };
    Piece::module(names, module)
}

/// An activation function of `x` as an expression. The error is why there is none.
pub fn activation(function: &Activation, x: &str) -> Result<String, Reason> {
    let with = |name: &str, numbers: &[f64]| {
        let call = Call::new(name).arg(x);
        let numbers = numbers.iter().map(|number| format!("{number:?}"));
        numbers.fold(call, Call::arg).end()
    };
    let plain = |name: &str| with(name, &[]);
    Ok(match *function {
        Activation::Relu => plain("F.relu"),
        Activation::Relu6 => plain("F.relu6"),
        Activation::LeakyRelu { negative_slope } => with("F.leaky_relu", &[negative_slope]),
        Activation::Rrelu { lower, upper } if lower == upper => with("F.leaky_relu", &[lower]),
        Activation::Rrelu { lower, upper } => {
            format!("F.rrelu({x}, {lower:?}, {upper:?}, self.training)")
        }
        Activation::ThresholdedRelu { alpha } => with("F.threshold", &[alpha, 0.0]),
        Activation::Gelu => plain("F.gelu"),
        Activation::GeluTanh => format!("F.gelu({x}, approximate=\"tanh\")"),
        Activation::Silu => plain("F.silu"),
        Activation::Mish => plain("F.mish"),
        Activation::Elu { alpha } => with("F.elu", &[alpha]),
        Activation::Celu { alpha } => with("F.celu", &[alpha]),
        Activation::Selu => plain("F.selu"),
        Activation::Tanh => plain("torch.tanh"),
        Activation::Sigmoid => plain("torch.sigmoid"),
        Activation::LogSigmoid => plain("F.logsigmoid"),
        Activation::Softplus { beta, threshold } => with("F.softplus", &[beta, threshold]),
        Activation::Softsign => plain("F.softsign"),
        Activation::Tanhshrink => plain("F.tanhshrink"),
        Activation::HardSigmoid { alpha, beta } => {
            format!("torch.clamp({alpha:?} * {x} + {beta:?}, 0.0, 1.0)")
        }
        Activation::HardSwish => plain("F.hardswish"),
        Activation::Hardtanh { min, max } => with("torch.clamp", &[min, max]),
        Activation::HardShrink { lambda } => {
            shrinks(lambda)?;
            with("F.hardshrink", &[lambda])
        }
        Activation::SoftShrink { lambda } => {
            shrinks(lambda)?;
            with("F.softshrink", &[lambda])
        }
        Activation::Shrink { lambda, bias } => {
            shrinks(lambda)?;
            format!("torch.where({x}.abs() <= {lambda:?}, 0.0, {x} - {bias:?} * {x}.sign())")
        }
        Activation::Threshold { threshold, value } => with("F.threshold", &[threshold, value]),
        Activation::Exp => plain("torch.exp"),
        Activation::Abs => plain("torch.abs"),
        Activation::Erf => plain("torch.erf"),
        Activation::Power { exponent } => with("torch.pow", &[exponent]),
        Activation::Scale { factor, offset } => format!("{x} * {factor:?} + {offset:?}"),
        Activation::Softmax => format!("F.softmax({x}, dim=-1)"),
        Activation::LogSoftmax => format!("F.log_softmax({x}, dim=-1)"),
        // A helper of the file.
        Activation::Sparsemax => plain("sparsemax"),
        Activation::Glu => format!("F.glu({x}, dim=-1)"),
    })
}

/// Whether an absolute value is 1.
pub fn shrinks(lambda: f64) -> Result<(), Reason> {
    if lambda >= 0.0 {
        Ok(())
    } else {
        Err(Reason(format!(
            "has a `lambda` of {lambda}, but PyTorch requires at least 0"
        )))
    }
}
