//! Activation functions.

use super::super::{Attribute, Graph, OnnxError};
use super::{Scope, samples};
use crate::torch::shrinks;
use runner_core::spec::model::activation::Activation;

/// An activation function.
pub fn activation(
    scope: &mut Scope<'_>,
    function: &Activation,
    x: &str,
) -> Result<String, OnnxError> {
    if let Activation::HardShrink { lambda }
    | Activation::SoftShrink { lambda }
    | Activation::Shrink { lambda, .. } = *function
    {
        shrinks(lambda).map_err(|reason| scope.unsupported(reason))?;
    }
    let width = scope.layer.shape.last().copied().unwrap_or(1);
    let graph = &mut *scope.graph;
    let alpha = |alpha: f64| [Attribute::Float("alpha", alpha)];
    let last = [Attribute::Int("axis", -1)];
    Ok(match *function {
        Activation::Relu => graph.node("Relu", &[x], &[]),
        Activation::Relu6 => between(graph, x, 0.0, 6.0),
        Activation::LeakyRelu { negative_slope } => {
            graph.node("LeakyRelu", &[x], &alpha(negative_slope))
        }
        Activation::Rrelu { lower, upper } => {
            graph.node("LeakyRelu", &[x], &alpha((lower + upper) / 2.0))
        }
        Activation::ThresholdedRelu { alpha: above } => above_or(graph, x, above, 0.0),
        Activation::Gelu => gelu(graph, x),
        Activation::GeluTanh => gelu_tanh(graph, x),
        Activation::Silu => {
            let gate = graph.node("Sigmoid", &[x], &[]);
            graph.node("Mul", &[x, &gate], &[])
        }
        Activation::Mish => graph.node("Mish", &[x], &[]),
        Activation::Elu { alpha: below } => graph.node("Elu", &[x], &alpha(below)),
        Activation::Celu { alpha: below } => graph.node("Celu", &[x], &alpha(below)),
        Activation::Selu => graph.node("Selu", &[x], &[]),
        Activation::Tanh => graph.node("Tanh", &[x], &[]),
        Activation::Sigmoid => graph.node("Sigmoid", &[x], &[]),
        Activation::LogSigmoid => {
            let negative = graph.node("Neg", &[x], &[]);
            let soft = graph.node("Softplus", &[&negative], &[]);
            graph.node("Neg", &[&soft], &[])
        }
        Activation::Softplus { beta, threshold } => softplus(graph, x, beta, threshold),
        Activation::Softsign => graph.node("Softsign", &[x], &[]),
        Activation::Tanhshrink => {
            let tanh = graph.node("Tanh", &[x], &[]);
            graph.node("Sub", &[x, &tanh], &[])
        }
        Activation::HardSigmoid { alpha: slope, beta } => {
            let settings = [
                Attribute::Float("alpha", slope),
                Attribute::Float("beta", beta),
            ];
            graph.node("HardSigmoid", &[x], &settings)
        }
        Activation::HardSwish => graph.node("HardSwish", &[x], &[]),
        Activation::Hardtanh { min, max } => between(graph, x, min, max),
        Activation::HardShrink { lambda } => shrink(graph, x, lambda, 0.0),
        Activation::SoftShrink { lambda } => shrink(graph, x, lambda, lambda),
        Activation::Shrink { lambda, bias } => shrink(graph, x, lambda, bias),
        Activation::Threshold { threshold, value } => above_or(graph, x, threshold, value),
        Activation::Exp => graph.node("Exp", &[x], &[]),
        Activation::Abs => graph.node("Abs", &[x], &[]),
        Activation::Erf => graph.node("Erf", &[x], &[]),
        Activation::Power { exponent } => {
            let exponent = graph.number(exponent);
            graph.node("Pow", &[x, &exponent], &[])
        }
        Activation::Scale { factor, offset } => {
            let (factor, offset) = (graph.number(factor), graph.number(offset));
            let scaled = graph.node("Mul", &[x, &factor], &[]);
            graph.node("Add", &[&scaled, &offset], &[])
        }
        Activation::Softmax => graph.node("Softmax", &[x], &last),
        Activation::LogSoftmax => graph.node("LogSoftmax", &[x], &last),
        Activation::Sparsemax => samples::sparsemax(graph, x, width),
        Activation::Glu => {
            let halves = [Attribute::Int("axis", -1), Attribute::Int("num_outputs", 2)];
            let [value, gate] = graph.nodes("Split", &[x], [true, true], &halves);
            let gate = graph.node("Sigmoid", &[&gate], &[]);
            graph.node("Mul", &[&value, &gate], &[])
        }
    })
}

fn between(graph: &mut Graph, x: &str, min: f64, max: f64) -> String {
    let (min, max) = (graph.number(min), graph.number(max));
    graph.node("Clip", &[x, &min, &max], &[])
}

/// Values above a threshold, otherwise a constant.
fn above_or(graph: &mut Graph, x: &str, threshold: f64, value: f64) -> String {
    let (threshold, value) = (graph.number(threshold), graph.number(value));
    let is_above = graph.node("Greater", &[x, &threshold], &[]);
    graph.node("Where", &[&is_above, x, &value], &[])
}

/// x Φ(x); a separate operator exists since version 20.
pub fn gelu(graph: &mut Graph, x: &str) -> String {
    let root = graph.number(std::f64::consts::FRAC_1_SQRT_2);
    let (one, half) = (graph.number(1.0), graph.number(0.5));
    let scaled = graph.node("Mul", &[x, &root], &[]);
    let erf = graph.node("Erf", &[&scaled], &[]);
    let sum = graph.node("Add", &[&erf, &one], &[]);
    let share = graph.node("Mul", &[&sum, &half], &[]);
    graph.node("Mul", &[x, &share], &[])
}

/// x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2.
fn gelu_tanh(graph: &mut Graph, x: &str) -> String {
    let root = graph.number((2.0 / std::f64::consts::PI).sqrt());
    let cubic = graph.number(0.044_715);
    let (one, half) = (graph.number(1.0), graph.number(0.5));
    let square = graph.node("Mul", &[x, x], &[]);
    let cube = graph.node("Mul", &[&square, x], &[]);
    let cube = graph.node("Mul", &[&cube, &cubic], &[]);
    let sum = graph.node("Add", &[x, &cube], &[]);
    let inner = graph.node("Mul", &[&sum, &root], &[]);
    let tanh = graph.node("Tanh", &[&inner], &[]);
    let sum = graph.node("Add", &[&tanh, &one], &[]);
    let share = graph.node("Mul", &[&sum, &half], &[]);
    graph.node("Mul", &[x, &share], &[])
}

/// log(1 + exp(beta x)) / beta, and x where beta x is above the threshold.
fn softplus(graph: &mut Graph, x: &str, beta: f64, threshold: f64) -> String {
    let (factor, bound) = (graph.number(beta), graph.number(threshold));
    let scaled = graph.node("Mul", &[x, &factor], &[]);
    let soft = graph.node("Softplus", &[&scaled], &[]);
    let soft = graph.node("Div", &[&soft, &factor], &[]);
    let is_above = graph.node("Greater", &[&scaled, &bound], &[]);
    graph.node("Where", &[&is_above, x, &soft], &[])
}

fn shrink(graph: &mut Graph, x: &str, lambda: f64, bias: f64) -> String {
    let settings = [
        Attribute::Float("lambd", lambda),
        Attribute::Float("bias", bias),
    ];
    graph.node("Shrink", &[x], &settings)
}
