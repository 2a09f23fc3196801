//! The keys of types of layers that have many.

use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::attention::Attention;
use runner_core::spec::model::initializer::{Distribution, Initializer};
use runner_core::spec::model::layer::{
    Conv, ConvTranspose, DeformConv, FeedforwardActivation, Norm, Oscillators, Pool, Recurrent,
    Steps, Transformer, Unfold,
};
use runner_core::spec::model::message::{Aggregation, EdgeEnds, GraphPooling, Message};
use runner_core::spec::model::parametrization::Parametrization;
use runner_core::spec::model::rotary::RotaryType;
use runner_core::spec::own::Own;
use serde_json::Value as Json;

use super::{Keys, sizes};

const EPSILON: f64 = 1e-5;

impl Keys {
    /// What the initial weights are, and how the weight is computed.
    pub(super) fn initial(
        &mut self,
        initializer: Option<&Initializer>,
        parametrization: Parametrization,
    ) {
        self.initializer(initializer);
        self.choice("parametrization", parametrization, Parametrization::None);
    }

    pub(super) fn initializer(&mut self, initializer: Option<&Initializer>) {
        let Some(initializer) = initializer else {
            return;
        };
        let kind = match &initializer.distribution {
            Distribution::Constant { value } => {
                format!("type = \"constant\", value = {value:?}")
            }
            Distribution::Uniform { min, max } => {
                format!("type = \"uniform\", min = {min:?}, max = {max:?}")
            }
            Distribution::Normal { mean, std } => {
                format!("type = \"normal\", mean = {mean:?}, std = {std:?}")
            }
            Distribution::KaimingUniform { gain, fan_out } => {
                format!("type = \"kaiming_uniform\", gain = {gain:?}, fan_out = {fan_out}")
            }
            Distribution::KaimingNormal { gain, fan_out } => {
                format!("type = \"kaiming_normal\", gain = {gain:?}, fan_out = {fan_out}")
            }
            Distribution::XavierUniform { gain } => {
                format!("type = \"xavier_uniform\", gain = {gain:?}")
            }
            Distribution::XavierNormal { gain } => {
                format!("type = \"xavier_normal\", gain = {gain:?}")
            }
            Distribution::Orthogonal { gain } => format!("type = \"orthogonal\", gain = {gain:?}"),
        };
        let bias = initializer.bias;
        let bias = bias.map_or_else(String::new, |bias| format!(", bias = {bias:?}"));
        self.add("initializer", format_args!("{{ {kind}{bias} }}"));
    }

    pub(super) fn conv(&mut self, conv: &Conv) {
        let Conv {
            dims: _,
            out_channels,
            kernel_size,
            stride,
            dilation,
            groups,
            padding,
            bias,
            initializer,
            parametrization,
        } = conv;
        self.some("out_channels", *out_channels);
        self.add("kernel_size", sizes(kernel_size));
        self.each("stride", stride, 1);
        self.each("dilation", dilation, 1);
        self.unless("groups", *groups, 1);
        self.padding(padding);
        self.unless("bias", *bias, true);
        self.initial(initializer.as_ref(), *parametrization);
    }

    pub(super) fn conv_transpose(&mut self, conv: &ConvTranspose) {
        let ConvTranspose {
            dims: _,
            out_channels,
            kernel_size,
            stride,
            dilation,
            groups,
            padding,
            output_padding,
            bias,
            initializer,
            parametrization,
        } = conv;
        self.some("out_channels", *out_channels);
        self.add("kernel_size", sizes(kernel_size));
        self.each("stride", stride, 1);
        self.each("dilation", dilation, 1);
        self.unless("groups", *groups, 1);
        self.each("padding", padding, 0);
        self.each("output_padding", output_padding, 0);
        self.unless("bias", *bias, true);
        self.initial(initializer.as_ref(), *parametrization);
    }

    pub(super) fn norm(&mut self, norm: &Norm) {
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

    pub(super) fn pool(&mut self, pool: &Pool) {
        let Pool {
            max: _,
            dims: _,
            kernel_size,
            stride,
            padding,
            dilation,
            ceil_mode,
            count_include_pad,
        } = pool;
        self.add("kernel_size", sizes(kernel_size));
        if stride != kernel_size {
            self.add("stride", sizes(stride));
        }
        self.padding(padding);
        self.each("dilation", dilation, 1);
        self.unless("ceil_mode", *ceil_mode, false);
        self.unless("count_include_pad", *count_include_pad, true);
    }

    pub(super) fn recurrent(&mut self, recurrent: &Recurrent) {
        let Recurrent {
            cell: _,
            hidden_size,
            bidirectional,
            output,
            bias,
            initializer,
        } = recurrent;
        self.add("hidden_size", hidden_size);
        self.unless("bidirectional", *bidirectional, false);
        self.choice("output", *output, Steps::Sequence);
        self.unless("bias", *bias, true);
        self.initializer(initializer.as_ref());
    }

    pub(super) fn window(&mut self, window: &Unfold) {
        let Unfold {
            kernel_size,
            stride,
            dilation,
            padding,
        } = window;
        self.add("kernel_size", sizes(kernel_size));
        self.each("stride", stride, 1);
        self.each("dilation", dilation, 1);
        self.each("padding", padding, 0);
    }

    pub(super) fn deform_conv(&mut self, conv: &DeformConv) {
        let DeformConv {
            out_channels,
            window,
            groups,
            bias,
            initializer,
        } = conv;
        self.some("out_channels", *out_channels);
        self.window(window);
        self.unless("groups", *groups, 1);
        self.unless("bias", *bias, true);
        self.initializer(initializer.as_ref());
    }

    pub(super) fn oscillators(&mut self, oscillators: &Oscillators) {
        let Oscillators {
            state_size,
            min_radius,
            max_radius,
            max_angle,
        } = oscillators;
        self.add("state_size", state_size);
        self.number("min_radius", *min_radius, 0.9);
        self.number("max_radius", *max_radius, 1.0);
        self.number("max_angle", *max_angle, std::f64::consts::PI);
    }

    pub(super) fn attention(&mut self, attention: &Attention) {
        let Attention {
            num_heads,
            num_kv_heads,
            head_dim,
            bias,
            rotary,
            qk_norm,
            window,
            alibi,
            dropout,
            causal,
            initializer,
        } = attention;
        self.add("num_heads", num_heads);
        self.unless("num_kv_heads", *num_kv_heads, *num_heads);
        self.some("head_dim", *head_dim);
        self.unless("bias", *bias, true);
        if let Some(rotary) = rotary {
            self.add("rotary", true);
            self.number("theta", rotary.theta, 10_000.0);
            self.number("rotary_scaling", rotary.scaling, 1.0);
            if let Some(stretch) = &rotary.stretch {
                self.choice("rotary_type", stretch.form, RotaryType::Linear);
                self.add("rotary_length", stretch.length);
                if stretch.form.depends_on_length() {
                    self.number("rotary_low", stretch.low, 1.0);
                    self.number("rotary_high", stretch.high, 4.0);
                } else {
                    self.add("rotary_low", format!("{:?}", stretch.low));
                    self.add("rotary_high", format!("{:?}", stretch.high));
                }
                if stretch.form == RotaryType::Longrope {
                    self.add("rotary_short", format!("{:?}", stretch.short));
                    self.add("rotary_long", format!("{:?}", stretch.long));
                }
                if matches!(stretch.form, RotaryType::Yarn | RotaryType::Longrope) {
                    let factor = format!("{:?}", stretch.attention_factor);
                    self.add("rotary_attention_factor", factor);
                } else {
                    self.number("rotary_attention_factor", stretch.attention_factor, 1.0);
                }
            }
        }
        self.unless("qk_norm", *qk_norm, false);
        self.some("window", *window);
        self.unless("alibi", *alibi, false);
        self.number("dropout", *dropout, 0.0);
        self.unless("causal", *causal, false);
        self.initializer(initializer.as_ref());
    }

    pub(super) fn transformer(&mut self, stack: &Transformer) {
        let Transformer {
            num_layers,
            num_heads,
            feedforward_size,
            dropout,
            norm_first,
            causal,
            activation,
            initializer,
        } = stack;
        self.add("num_layers", num_layers);
        self.add("num_heads", num_heads);
        self.add("feedforward_size", feedforward_size);
        self.number("dropout", *dropout, 0.1);
        self.unless("norm_first", *norm_first, false);
        self.unless("causal", *causal, false);
        self.choice("activation", *activation, FeedforwardActivation::Gelu);
        self.initializer(initializer.as_ref());
    }

    pub(super) fn message(&mut self, message: &Message) {
        match *message {
            Message::Gcn {
                out_features,
                bias,
                self_loops,
                normalize,
            } => {
                self.add("out_features", out_features);
                self.unless("bias", bias, true);
                self.unless("self_loops", self_loops, true);
                self.unless("normalize", normalize, true);
            }
            Message::Sage { out_features, bias } => {
                self.add("out_features", out_features);
                self.unless("bias", bias, true);
            }
            Message::Gat {
                out_features,
                num_heads,
                concat,
                negative_slope,
                dropout,
                self_loops,
                bias,
                edge_dim,
            } => {
                self.add("out_features", out_features);
                self.unless("edge_dim", edge_dim, 0);
                self.unless("num_heads", num_heads, 1);
                self.unless("concat", concat, true);
                self.number("negative_slope", negative_slope, 0.2);
                self.number("dropout", dropout, 0.0);
                self.unless("self_loops", self_loops, true);
                self.unless("bias", bias, true);
            }
            Message::Gin {
                out_features,
                hidden_features,
                epsilon,
                learn_epsilon,
                edge_dim,
            } => {
                self.add("out_features", out_features);
                self.unless("edge_dim", edge_dim, 0);
                self.unless("hidden_features", hidden_features, out_features);
                self.number("epsilon", epsilon, 0.0);
                self.unless("learn_epsilon", learn_epsilon, false);
            }
            Message::EdgeConv {
                out_features,
                hidden_features,
                aggregation,
                edge_dim,
            } => {
                self.add("out_features", out_features);
                self.unless("edge_dim", edge_dim, 0);
                self.unless("hidden_features", hidden_features, out_features);
                self.choice("aggregation", aggregation, Aggregation::Max);
            }
        }
    }

    pub(super) fn pooling(&mut self, operation: GraphPooling) {
        self.choice("operation", operation, GraphPooling::Mean);
    }

    pub(super) fn edge_ends(&mut self, operation: EdgeEnds, edge_dim: usize) {
        self.choice("operation", operation, EdgeEnds::Product);
        self.unless("edge_dim", edge_dim, 0);
    }

    /// All settings of a layer of the program's own.
    pub(super) fn own(&mut self, own: &Own) {
        for (key, value) in &own.settings {
            self.add(key, inline(value));
        }
    }

    pub(super) fn activation(&mut self, activation: &Activation) {
        match *activation {
            Activation::LeakyRelu { negative_slope } => {
                self.number("negative_slope", negative_slope, 0.01);
            }
            Activation::Rrelu { lower, upper } => {
                self.number("lower", lower, 0.125);
                self.number("upper", upper, 1.0 / 3.0);
            }
            Activation::ThresholdedRelu { alpha }
            | Activation::Elu { alpha }
            | Activation::Celu { alpha } => self.number("alpha", alpha, 1.0),
            Activation::Softplus { beta, threshold } => {
                self.number("beta", beta, 1.0);
                self.number("threshold", threshold, 20.0);
            }
            Activation::HardSigmoid { alpha, beta } => {
                self.number("alpha", alpha, 0.2);
                self.number("beta", beta, 0.5);
            }
            Activation::Hardtanh { min, max } => {
                self.number("min", min, -1.0);
                self.number("max", max, 1.0);
            }
            Activation::HardShrink { lambda } | Activation::SoftShrink { lambda } => {
                self.number("lambda", lambda, 0.5);
            }
            Activation::Shrink { lambda, bias } => {
                self.number("lambda", lambda, 0.5);
                self.number("bias", bias, 0.5);
            }
            Activation::Threshold { threshold, value } => {
                self.number("threshold", threshold, 0.0);
                self.number("value", value, 0.0);
            }
            Activation::Power { exponent } => self.number("exponent", exponent, 2.0),
            Activation::Scale { factor, offset } => {
                self.number("factor", factor, 1.0);
                self.number("offset", offset, 0.0);
            }
            Activation::Relu
            | Activation::Relu6
            | Activation::Gelu
            | Activation::GeluTanh
            | Activation::Silu
            | Activation::Mish
            | Activation::Selu
            | Activation::Tanh
            | Activation::Sigmoid
            | Activation::LogSigmoid
            | Activation::Softsign
            | Activation::Tanhshrink
            | Activation::HardSwish
            | Activation::Exp
            | Activation::Abs
            | Activation::Erf
            | Activation::Softmax
            | Activation::LogSoftmax
            | Activation::Sparsemax
            | Activation::Glu => {}
        }
    }
}

/// A setting as a value of TOML on one line.
fn inline(value: &Json) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    match value {
        Json::Object(table) => {
            let entries = table.iter();
            let entries = entries.map(|(key, value)| format!("{key:?} = {}", inline(value)));
            format!("{{ {} }}", join(entries.collect()))
        }
        Json::Array(all) => format!("[{}]", join(all.iter().map(inline).collect())),
        other => other.to_string(),
    }
}
