//! Layers in the syntax of an experiment file.

use std::fmt::Write;

use runner_core::spec::kind::Padding;
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{
    Interpolation, LayerKind, Norm, PadMode, Pool, Recurrent, Steps,
};
use runner_core::spec::section::Choice;

/// The keys of a layer with `type` first; those with default values are omitted. Only layers that graphs are converted
/// to have keys here.
pub fn keys(kind: &LayerKind) -> String {
    let mut text = Keys(format!("type = {:?}", kind.type_name()));
    match kind {
        LayerKind::Linear {
            out_features, bias, ..
        } => {
            text.add("out_features", out_features.unwrap_or(1));
            text.unless("bias", *bias, true);
        }
        LayerKind::Conv(conv) => {
            text.add("out_channels", conv.out_channels.unwrap_or(1));
            text.add("kernel_size", sizes(&conv.kernel_size));
            text.each("stride", &conv.stride, 1);
            text.each("dilation", &conv.dilation, 1);
            text.unless("groups", conv.groups, 1);
            text.padding(&conv.padding);
            text.unless("bias", conv.bias, true);
        }
        LayerKind::ConvTranspose(conv) => {
            text.add("out_channels", conv.out_channels.unwrap_or(1));
            text.add("kernel_size", sizes(&conv.kernel_size));
            text.each("stride", &conv.stride, 1);
            text.each("dilation", &conv.dilation, 1);
            text.unless("groups", conv.groups, 1);
            text.each("padding", &conv.padding, 0);
            text.each("output_padding", &conv.output_padding, 0);
            text.unless("bias", conv.bias, true);
        }
        LayerKind::Norm(norm) => text.norm(norm),
        LayerKind::Pool(pool) => text.pool(pool),
        LayerKind::AdaptiveAvgPool { output_size, .. } => text.each("output_size", output_size, 1),
        LayerKind::Recurrent(recurrent) => text.recurrent(recurrent),
        LayerKind::MultiHeadAttention {
            num_heads, causal, ..
        } => {
            text.add("num_heads", num_heads);
            text.unless("causal", *causal, false);
        }
        LayerKind::Embedding { embedding_dim, .. } => {
            text.add("embedding_dim", embedding_dim.unwrap_or(1));
        }
        LayerKind::Dropout { probability } => text.number("probability", *probability, 0.5),
        LayerKind::Prelu { per_channel, .. } => text.unless("per_channel", *per_channel, false),
        LayerKind::Activation(activation) => text.activation(activation),
        LayerKind::Flatten {
            start_axis,
            end_axis,
        } => {
            text.unless("start_axis", *start_axis, 0);
            text.unless("end_axis", *end_axis, -1);
        }
        LayerKind::Reshape { shape } => text.list("shape", shape),
        LayerKind::Permute { axes } => text.list("axes", axes),
        LayerKind::Slice { axis, start, end } => {
            text.unless("axis", *axis, 0);
            text.unless("start", *start, 0);
            if let Some(end) = end {
                text.add("end", end);
            }
        }
        LayerKind::Reduce { axis, .. }
        | LayerKind::Concat { axis }
        | LayerKind::Unsqueeze { axis }
        | LayerKind::Squeeze { axis } => text.unless("axis", *axis, 0),
        LayerKind::Interpolate {
            output_size,
            mode,
            align_corners,
            ..
        } => {
            text.list("output_size", output_size.as_deref().unwrap_or_default());
            if *mode != Interpolation::Nearest {
                text.add("mode", format_args!("{:?}", mode.name()));
            }
            text.unless("align_corners", *align_corners, false);
        }
        LayerKind::PixelShuffle { factor } | LayerKind::PixelUnshuffle { factor } => {
            text.add("factor", factor);
        }
        LayerKind::Pad {
            padding,
            mode,
            value,
        } => {
            text.list("padding", padding);
            if *mode != PadMode::Constant {
                text.add("mode", format_args!("{:?}", mode.name()));
            }
            text.number("value", *value, 0.0);
        }
        LayerKind::Parameter { shape, .. } => text.list("shape", shape),
        _ => {}
    }
    text.0
}

/// One number if all are the same, or a list.
fn sizes(sizes: &[usize]) -> String {
    match sizes {
        [first, rest @ ..] if rest.iter().all(|size| size == first) => first.to_string(),
        several => format!("{several:?}"),
    }
}

struct Keys(String);

impl Keys {
    fn add(&mut self, key: &str, value: impl std::fmt::Display) {
        let _ = write!(self.0, ", {key} = {value}");
    }

    fn list<T: std::fmt::Debug>(&mut self, key: &str, values: &[T]) {
        let _ = write!(self.0, ", {key} = {values:?}");
    }

    fn unless<T: PartialEq + std::fmt::Display>(&mut self, key: &str, value: T, usual: T) {
        if value != usual {
            self.add(key, value);
        }
    }

    fn number(&mut self, key: &str, value: f64, usual: f64) {
        if value != usual {
            let _ = write!(self.0, ", {key} = {value:?}");
        }
    }

    fn each(&mut self, key: &str, values: &[usize], usual: usize) {
        if values.iter().any(|value| *value != usual) {
            self.add(key, sizes(values));
        }
    }

    fn padding(&mut self, padding: &Padding) {
        match padding {
            Padding::Valid => {}
            Padding::Same => self.add("padding", "\"same\""),
            Padding::Causal => self.add("padding", "\"causal\""),
            Padding::Zeros(zeros) => self.each("padding", zeros, 0),
        }
    }

    fn norm(&mut self, norm: &Norm) {
        const EPSILON: f64 = 1e-5;
        match *norm {
            Norm::Batch {
                epsilon,
                momentum,
                affine,
            } => {
                self.number("epsilon", epsilon, EPSILON);
                self.number("momentum", momentum, 0.1);
                self.unless("affine", affine, true);
            }
            Norm::Layer { epsilon, bias } => {
                self.number("epsilon", epsilon, EPSILON);
                self.unless("bias", bias, true);
            }
            Norm::Group {
                num_groups,
                epsilon,
                affine,
            } => {
                self.add("num_groups", num_groups);
                self.number("epsilon", epsilon, EPSILON);
                self.unless("affine", affine, true);
            }
            Norm::Instance { epsilon, affine } => {
                self.number("epsilon", epsilon, EPSILON);
                self.unless("affine", affine, true);
            }
            Norm::Rms { epsilon } => self.number("epsilon", epsilon, EPSILON),
            Norm::LocalResponse {
                size,
                alpha,
                beta,
                k,
            } => {
                self.add("size", size);
                self.number("alpha", alpha, 1e-4);
                self.number("beta", beta, 0.75);
                self.number("k", k, 1.0);
            }
        }
    }

    fn pool(&mut self, pool: &Pool) {
        self.add("kernel_size", sizes(&pool.kernel_size));
        if pool.stride != pool.kernel_size {
            self.add("stride", sizes(&pool.stride));
        }
        self.padding(&pool.padding);
        self.each("dilation", &pool.dilation, 1);
        self.unless("ceil_mode", pool.ceil_mode, false);
        self.unless("count_include_pad", pool.count_include_pad, true);
    }

    fn recurrent(&mut self, recurrent: &Recurrent) {
        self.add("hidden_size", recurrent.hidden_size);
        self.unless("bidirectional", recurrent.bidirectional, false);
        if recurrent.output == Steps::Last {
            self.add("output", "\"last\"");
        }
        self.unless("bias", recurrent.bias, true);
    }

    fn activation(&mut self, activation: &Activation) {
        match *activation {
            Activation::LeakyRelu { negative_slope } => {
                self.number("negative_slope", negative_slope, 0.01);
            }
            Activation::ThresholdedRelu { alpha }
            | Activation::Elu { alpha }
            | Activation::Celu { alpha } => self.number("alpha", alpha, 1.0),
            Activation::HardSigmoid { alpha, beta } => {
                self.number("alpha", alpha, 0.2);
                self.number("beta", beta, 0.5);
            }
            Activation::Hardtanh { min, max } => {
                self.number("min", min, -1.0);
                self.number("max", max, 1.0);
            }
            Activation::Shrink { lambda, bias } => {
                self.number("lambda", lambda, 0.5);
                self.number("bias", bias, 0.5);
            }
            Activation::Power { exponent } => self.number("exponent", exponent, 2.0),
            Activation::Scale { factor, offset } => {
                self.number("factor", factor, 1.0);
                self.number("offset", offset, 0.0);
            }
            _ => {}
        }
    }
}
