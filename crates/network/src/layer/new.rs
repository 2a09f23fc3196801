//! The module of each type of layer.

use burn::module::{Param, ParamId};
use burn::nn::activation::*;
use burn::nn::conv::{
    Conv1dConfig, Conv2dConfig, Conv3dConfig, ConvTranspose1dConfig, ConvTranspose2dConfig,
    ConvTranspose3dConfig,
};
use burn::nn::transformer::*;
use burn::nn::*;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Tensor};

use super::{Layer, Learned, Stateless, Tied, array};
use crate::attention::GroupedAttention;
use crate::convolution::{Conv1d, Conv2d, Conv3d};
use crate::deform::DeformConv2d;
use crate::dlinoss::Dlinoss;
use crate::message::Gate;
use crate::own::OwnModule;
use crate::transformer;
use runner_core::check::network::Layer as LayerPlan;
use runner_core::check::network::windows::padding;
use runner_core::spec::model::layer::{self, Cell, FeedforwardActivation, LayerKind, Norm};
use runner_core::spec::model::layer_spec::Weights;
use runner_core::spec::model::message::GraphPooling;

impl Layer {
    /// The layer of a plan, with uninitialized weights.
    pub fn new(plan: &LayerPlan, device: &Device) -> Self {
        let input = &plan.inputs[0].shape.dims;
        let width = input.last().copied().unwrap_or(1);
        match &plan.kind {
            kind if matches!(plan.weights, Some(Weights::Shared(_))) => {
                Layer::Function(Stateless { kind: kind.clone() })
            }
            LayerKind::Linear { bias, .. } => {
                let config =
                    LinearConfig::new(width, plan.shape[plan.shape.len() - 1]).with_bias(*bias);
                let linear = config.init(device);
                match plan.weights {
                    None => Layer::Linear(linear),
                    Some(_) => Layer::Tied(Tied { bias: linear.bias }),
                }
            }
            LayerKind::Conv(conv) => Self::conv(conv, input, plan, device),
            LayerKind::ConvTranspose(conv) => {
                Self::conv_transpose(conv, input[0], plan.shape[0], device)
            }
            LayerKind::Norm(norm) => Self::norm(norm, plan, device),
            LayerKind::Embedding { .. } => {
                let vocabulary = plan.inputs[0].shape.vocabulary.unwrap_or(1);
                let config = EmbeddingConfig::new(vocabulary, plan.shape[1]);
                Layer::Embedding(config.init(device))
            }
            LayerKind::DeformConv2d(conv) => {
                let channels = [input[0], plan.shape[0]];
                let conv = DeformConv2d::new(conv, channels, plan.arithmetic, device);
                Layer::DeformConv2d(conv)
            }
            LayerKind::Recurrent(recurrent) => Self::recurrent(recurrent, width, device),
            LayerKind::Dlinoss(oscillators) => {
                Layer::Dlinoss(Dlinoss::new(oscillators, width, plan.arithmetic, device))
            }
            LayerKind::MultiHeadAttention {
                num_heads, dropout, ..
            } => {
                let [keys, values] = plan.attended_widths();
                let widths = [width, keys, values];
                Layer::Attention(transformer::attention(widths, *num_heads, *dropout, device))
            }
            LayerKind::GroupedAttention(attention) => {
                let [keys, values] = plan.attended_widths();
                let widths = [width, keys, values];
                let attention = GroupedAttention::new(attention, widths, plan.arithmetic, device);
                Layer::GroupedAttention(attention)
            }
            LayerKind::TransformerEncoder(stack) => {
                let config = TransformerEncoderConfig::new(
                    width,
                    stack.feedforward_size,
                    stack.num_heads,
                    stack.num_layers,
                )
                .with_dropout(stack.dropout)
                .with_norm_first(stack.norm_first)
                .with_activation(feedforward_activation(stack.activation));
                Layer::Encoder(config.init(device))
            }
            LayerKind::TransformerDecoder(stack) => {
                let config = TransformerDecoderConfig::new(
                    width,
                    stack.feedforward_size,
                    stack.num_heads,
                    stack.num_layers,
                )
                .with_dropout(stack.dropout)
                .with_norm_first(stack.norm_first)
                .with_activation(feedforward_activation(stack.activation));
                Layer::Decoder(config.init(device))
            }
            LayerKind::PositionEmbedding { max_length, std } => {
                Layer::Positions(Learned::new(&[*max_length, width], [0.0, *std], device))
            }
            LayerKind::PositionalEncoding { max_timescale } => Layer::Positional(
                PositionalEncodingConfig::new(width)
                    .with_max_sequence_size(input[0])
                    .with_max_timescale(*max_timescale)
                    .init(device),
            ),
            LayerKind::RotaryEncoding { theta } => {
                let config = RotaryEncodingConfig::new(input[0], width);
                Layer::Rotary(config.with_theta(*theta as f32).init(device))
            }
            LayerKind::Prelu {
                per_channel,
                initial,
            } => {
                let num = if *per_channel { input[0] } else { 1 };
                let config = PReluConfig::new().with_num_parameters(num);
                Layer::Prelu(config.with_alpha(*initial).init(device))
            }
            LayerKind::Swiglu {
                out_features, bias, ..
            } => {
                let config = SwiGluConfig::new(width, *out_features).with_bias(*bias);
                Layer::Swiglu(config.init(device))
            }
            LayerKind::Parameter {
                shape, std, mean, ..
            } => match shape.len() {
                1 => Layer::Parameter1(Learned::new(shape, [*mean, *std], device)),
                2 => Layer::Parameter2(Learned::new(shape, [*mean, *std], device)),
                3 => Layer::Parameter3(Learned::new(shape, [*mean, *std], device)),
                _ => Layer::Parameter4(Learned::new(shape, [*mean, *std], device)),
            },
            LayerKind::Message(message) => Self::of_messages(message, width, device),
            LayerKind::GraphPool {
                operation: GraphPooling::Attention,
            } => Layer::Gate(Gate::new(width, device)),
            LayerKind::Own(own) => Layer::Own(OwnModule::new(own, plan, device)),
            kind => Layer::Function(Stateless { kind: kind.clone() }),
        }
    }

    fn conv(conv: &layer::Conv, input: &[usize], plan: &LayerPlan, device: &Device) -> Self {
        let (channels, computed) = (plan.shape[0], (plan.kernels, plan.arithmetic));
        let pads: Vec<_> = (0..conv.dims)
            .map(|at| {
                let extent = conv.dilation[at] * (conv.kernel_size[at] - 1) + 1;
                padding(&conv.padding, at, input[1 + at], extent, conv.stride[at])
            })
            .collect();
        macro_rules! made {
            ($config:expr, $conv:ident) => {{
                let config = $config.with_groups(conv.groups).with_bias(conv.bias);
                let options = ConvOptions::new_with_padding(
                    array(&conv.stride),
                    array(&pads),
                    array(&conv.dilation),
                    conv.groups,
                );
                Layer::$conv($conv::new(&config, options, computed, device))
            }};
        }
        let sizes = [input[0], channels];
        match conv.dims {
            1 => made!(
                Conv1dConfig::new(sizes[0], sizes[1], conv.kernel_size[0]),
                Conv1d
            ),
            2 => made!(Conv2dConfig::new(sizes, array(&conv.kernel_size)), Conv2d),
            _ => made!(Conv3dConfig::new(sizes, array(&conv.kernel_size)), Conv3d),
        }
    }

    fn conv_transpose(
        conv: &layer::ConvTranspose,
        inputs: usize,
        outputs: usize,
        device: &Device,
    ) -> Self {
        let channels = [inputs, outputs];
        match conv.dims {
            1 => {
                let config = ConvTranspose1dConfig::new(channels, conv.kernel_size[0])
                    .with_stride(conv.stride[0])
                    .with_dilation(conv.dilation[0])
                    .with_groups(conv.groups)
                    .with_padding(conv.padding[0])
                    .with_padding_out(conv.output_padding[0])
                    .with_bias(conv.bias);
                Layer::ConvTranspose1d(config.init(device))
            }
            2 => {
                let config = ConvTranspose2dConfig::new(channels, array(&conv.kernel_size))
                    .with_stride(array(&conv.stride))
                    .with_dilation(array(&conv.dilation))
                    .with_groups(conv.groups)
                    .with_padding(array(&conv.padding))
                    .with_padding_out(array(&conv.output_padding))
                    .with_bias(conv.bias);
                Layer::ConvTranspose2d(config.init(device))
            }
            _ => {
                let config = ConvTranspose3dConfig::new(channels, array(&conv.kernel_size))
                    .with_stride(array(&conv.stride))
                    .with_dilation(array(&conv.dilation))
                    .with_groups(conv.groups)
                    .with_padding(array(&conv.padding))
                    .with_padding_out(array(&conv.output_padding))
                    .with_bias(conv.bias);
                Layer::ConvTranspose3d(config.init(device))
            }
        }
    }

    fn norm(norm: &Norm, plan: &LayerPlan, device: &Device) -> Self {
        let input = &plan.inputs[0].shape.dims;
        let (channels, width) = (input[0], input[input.len() - 1]);
        match *norm {
            Norm::Batch {
                epsilon,
                momentum,
                affine,
            } => {
                let config = BatchNormConfig::new(channels).with_epsilon(epsilon);
                let mut norm = config.with_momentum(momentum).init(device);
                if !affine {
                    let constant = |values| Param::initialized(ParamId::new(), values);
                    norm.gamma = constant(Tensor::ones([channels], device));
                    norm.beta = constant(Tensor::zeros([channels], device));
                }
                Layer::BatchNorm(norm)
            }
            Norm::Layer { epsilon, bias } => {
                let config = LayerNormConfig::new(width).with_epsilon(epsilon);
                Layer::LayerNorm(config.with_bias(bias).init(device))
            }
            Norm::Group {
                num_groups,
                epsilon,
                affine,
            } => {
                let config = GroupNormConfig::new(num_groups, channels).with_epsilon(epsilon);
                Layer::GroupNorm(config.with_affine(affine).init(device))
            }
            Norm::Instance { epsilon, affine } => {
                let config = InstanceNormConfig::new(channels).with_epsilon(epsilon);
                Layer::InstanceNorm(config.with_affine(affine).init(device))
            }
            Norm::Rms { epsilon } => {
                Layer::RmsNorm(RmsNormConfig::new(width).with_epsilon(epsilon).init(device))
            }
            Norm::LocalResponse { .. } => Layer::Function(Stateless {
                kind: plan.kind.clone(),
            }),
        }
    }

    fn recurrent(recurrent: &layer::Recurrent, width: usize, device: &Device) -> Self {
        let (hidden, bias) = (recurrent.hidden_size, recurrent.bias);
        match (recurrent.cell, recurrent.bidirectional) {
            (Cell::Rnn, false) => Layer::Rnn(RnnConfig::new(width, hidden, bias).init(device)),
            (Cell::Rnn, true) => Layer::BiRnn(BiRnnConfig::new(width, hidden, bias).init(device)),
            (Cell::Gru, false) => Layer::Gru(GruConfig::new(width, hidden, bias).init(device)),
            (Cell::Gru, true) => Layer::BiGru(BiGruConfig::new(width, hidden, bias).init(device)),
            (Cell::Lstm, false) => Layer::Lstm(LstmConfig::new(width, hidden, bias).init(device)),
            (Cell::Lstm, true) => {
                Layer::BiLstm(BiLstmConfig::new(width, hidden, bias).init(device))
            }
        }
    }
}

fn feedforward_activation(activation: FeedforwardActivation) -> ActivationConfig {
    match activation {
        FeedforwardActivation::Gelu => ActivationConfig::Gelu,
        FeedforwardActivation::Relu => ActivationConfig::Relu,
    }
}
