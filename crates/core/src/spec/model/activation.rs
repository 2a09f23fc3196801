//! Activation functions, each a separate layer type.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::Section;

/// An element-wise function, except for the softmaxes and `glu`, which work along the last axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "function", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the table of layer types documents each")]
pub enum Activation {
    Relu,
    Relu6,
    LeakyRelu { negative_slope: f64 },
    Rrelu { lower: f64, upper: f64 },
    ThresholdedRelu { alpha: f64 },
    Gelu,
    GeluTanh,
    Silu,
    Mish,
    Elu { alpha: f64 },
    Celu { alpha: f64 },
    Selu,
    Tanh,
    Sigmoid,
    LogSigmoid,
    Softplus { beta: f64, threshold: f64 },
    Softsign,
    Tanhshrink,
    HardSigmoid { alpha: f64, beta: f64 },
    HardSwish,
    Hardtanh { min: f64, max: f64 },
    HardShrink { lambda: f64 },
    SoftShrink { lambda: f64 },
    Shrink { lambda: f64, bias: f64 },
    Threshold { threshold: f64, value: f64 },
    Exp,
    Abs,
    Erf,
    Power { exponent: f64 },
    Scale { factor: f64, offset: f64 },
    Softmax,
    LogSoftmax,
    Sparsemax,
    Glu,
}

impl Activation {
    /// The function of a name, with its keys; `None` if it is not an activation.
    pub(in crate::spec) fn decode(s: &mut Section<'_>, name: &str) -> Option<Self> {
        let mut number = |key, default, doc| s.field(key, Kind::any(), doc).or(default);
        Some(match name {
            "relu" => Activation::Relu,
            "relu6" => Activation::Relu6,
            "leaky_relu" => Activation::LeakyRelu {
                negative_slope: number("negative_slope", 0.01, "Slope below zero."),
            },
            "rrelu" => Activation::Rrelu {
                lower: number("lower", 0.125, "Smallest slope below zero in training."),
                upper: number("upper", 1.0 / 3.0, "Largest slope below zero in training."),
            },
            "thresholded_relu" => Activation::ThresholdedRelu {
                alpha: number("alpha", 1.0, "Values up to this become 0."),
            },
            "gelu" => Activation::Gelu,
            "gelu_tanh" => Activation::GeluTanh,
            "silu" => Activation::Silu,
            "mish" => Activation::Mish,
            "elu" => Activation::Elu {
                alpha: number("alpha", 1.0, "Negated limit below zero."),
            },
            "celu" => Activation::Celu {
                alpha: s
                    .field("alpha", Kind::positive(), "Negated limit below zero.")
                    .or(1.0),
            },
            "selu" => Activation::Selu,
            "tanh" => Activation::Tanh,
            "sigmoid" => Activation::Sigmoid,
            "log_sigmoid" => Activation::LogSigmoid,
            "softplus" => Activation::Softplus {
                threshold: number(
                    "threshold",
                    20.0,
                    "Above this (times beta) the function is linear.",
                ),
                beta: s
                    .field("beta", Kind::positive(), "Sharpness of the bend.")
                    .or(1.0),
            },
            "softsign" => Activation::Softsign,
            "tanhshrink" => Activation::Tanhshrink,
            "hard_sigmoid" => Activation::HardSigmoid {
                alpha: number("alpha", 0.2, "Slope."),
                beta: number("beta", 0.5, "Value at zero."),
            },
            "hard_swish" => Activation::HardSwish,
            "hardtanh" => Activation::Hardtanh {
                min: number("min", -1.0, "Lower bound."),
                max: number("max", 1.0, "Upper bound."),
            },
            "hard_shrink" => Activation::HardShrink {
                lambda: number("lambda", 0.5, "Values closer to zero become 0."),
            },
            "soft_shrink" => Activation::SoftShrink {
                lambda: number(
                    "lambda",
                    0.5,
                    "Values closer to zero become 0, others shrink by it.",
                ),
            },
            "shrink" => Activation::Shrink {
                lambda: number("lambda", 0.5, "Values closer to zero become 0."),
                bias: number("bias", 0.5, "How far the other values move toward zero."),
            },
            "threshold" => Activation::Threshold {
                threshold: number("threshold", 0.0, "Values up to this are replaced."),
                value: number("value", 0.0, "The replacement value."),
            },
            "exp" => Activation::Exp,
            "abs" => Activation::Abs,
            "erf" => Activation::Erf,
            "power" => Activation::Power {
                exponent: number("exponent", 2.0, "The power."),
            },
            "scale" => Activation::Scale {
                factor: number("factor", 1.0, "What values are multiplied by."),
                offset: number("offset", 0.0, "What is added to them."),
            },
            "softmax" => Activation::Softmax,
            "log_softmax" => Activation::LogSoftmax,
            "sparsemax" => Activation::Sparsemax,
            "glu" => Activation::Glu,
            _ => return None,
        })
    }
}
