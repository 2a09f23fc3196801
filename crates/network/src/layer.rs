//! A planned layer as Burn's module.
//!
//! Layers with weights are modules of burn-nn; all others are functions, which need no state.

#[cfg(feature = "flex")]
use std::sync::Arc;

use burn::module::{Module, Param, ParamId};
use burn::nn::activation::*;
use burn::nn::attention::*;
use burn::nn::conv::{
    Conv1dConfig, Conv2dConfig, Conv3d, Conv3dConfig, ConvTranspose1d, ConvTranspose1dConfig,
    ConvTranspose2d, ConvTranspose2dConfig, ConvTranspose3d, ConvTranspose3dConfig,
};
use burn::nn::transformer::*;
use burn::nn::*;
use burn::tensor::activation::silu;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Tensor, TensorData};

use crate::attention::{GroupedAttention, Positions};
use crate::batch_norm;
use crate::convolution::{Conv1d, Conv2d};
use crate::deform::DeformConv2d;
use crate::dlinoss::Dlinoss;
use crate::documents;
#[cfg(feature = "flex")]
use crate::fast::{
    activation, attention, embedding, linear, norm, recurrent::Recurrent, transpose,
};
use crate::function;
use crate::lora;
use crate::masks::{self, Masks, Stepped};
use crate::message::{EdgeConv, Gat, Gate, Gcn, Gin, Sage};
use crate::numeric;
use crate::own::OwnModule;
use crate::rms_norm;
use crate::tensor::{DynTensor, map_rank};
use crate::transformer::{self, Computed};
use runner_core::check::network::Layer as LayerPlan;
use runner_core::check::network::windows::padding;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::layer::{self, Cell, FeedforwardActivation, LayerKind, Norm, Steps};
use runner_core::spec::model::layer_spec::Weights;
use runner_core::spec::model::message::GraphPooling;

/// One layer of a network. [`Layer::new`] maps layer types to variants.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a network has few layers, and boxing them would cost each call"
)]
#[allow(missing_docs, reason = "each holds the module of its name")]
pub enum Layer {
    Linear(Linear),
    Tied(Tied),
    Conv1d(Conv1d),
    Conv2d(Conv2d),
    Conv3d(Conv3d),
    ConvTranspose1d(ConvTranspose1d),
    ConvTranspose2d(ConvTranspose2d),
    ConvTranspose3d(ConvTranspose3d),
    DeformConv2d(DeformConv2d),
    BatchNorm(BatchNorm),
    LayerNorm(LayerNorm),
    GroupNorm(GroupNorm),
    InstanceNorm(InstanceNorm),
    RmsNorm(RmsNorm),
    Embedding(Embedding),
    Rnn(Rnn),
    BiRnn(BiRnn),
    Gru(Gru),
    BiGru(BiGru),
    Lstm(Lstm),
    BiLstm(BiLstm),
    Dlinoss(Dlinoss),
    Attention(MultiHeadAttention),
    GroupedAttention(GroupedAttention),
    Encoder(TransformerEncoder),
    Decoder(TransformerDecoder),
    Positional(PositionalEncoding),
    Positions(Learned<2>),
    Rotary(RotaryEncoding),
    Prelu(PRelu),
    Swiglu(SwiGlu),
    Parameter1(Learned<1>),
    Parameter2(Learned<2>),
    Parameter3(Learned<3>),
    Parameter4(Learned<4>),
    Function(Stateless),
    Gcn(Gcn),
    Gate(Gate),
    Sage(Sage),
    Gat(Gat),
    Gin(Gin),
    EdgeConv(EdgeConv),
    Own(OwnModule),
}

/// What a linear layer with the matrix of another layer has of its own.
#[derive(Module, Debug)]
pub struct Tied {
    pub(crate) bias: Option<Param<Tensor<1>>>,
}

/// A tensor that is learned.
#[derive(Module, Debug)]
pub struct Learned<const D: usize> {
    value: Param<Tensor<D>>,
}

impl<const D: usize> Learned<D> {
    /// Around a mean, with a standard deviation.
    fn new(shape: &[usize], [mean, std]: [f64; 2], device: &Device) -> Self {
        let initializer = if std > 0.0 {
            Initializer::Normal { mean, std }
        } else {
            Initializer::Constant { value: mean }
        };
        let shape: [usize; D] = array(shape);
        Self {
            value: initializer.init(shape, device),
        }
    }

    /// The same for each item of a batch.
    fn repeated(&self, batch: usize, arithmetic: Arithmetic) -> DynTensor {
        let value = self.value.val();
        let dims = [&[batch], value.dims().as_slice()].concat();
        let one = [&[1], value.dims().as_slice()].concat();
        let reshaped = match D {
            1 => DynTensor::R2(value.reshape::<2, _>(array::<_, 2>(&one))),
            2 => DynTensor::R3(value.reshape::<3, _>(array::<_, 3>(&one))),
            3 => DynTensor::R4(value.reshape::<4, _>(array::<_, 4>(&one))),
            _ => DynTensor::R5(value.reshape::<5, _>(array::<_, 5>(&one))),
        };
        reshaped.expand(&dims, arithmetic)
    }
}

impl Learned<2> {
    /// A batch of sequences plus the rows from position `first` on.
    pub(crate) fn added_from(
        &self,
        first: usize,
        x: Tensor<3>,
        arithmetic: Arithmetic,
    ) -> Tensor<3> {
        let [_, length, width] = x.dims();
        let rows = self.value.val().narrow(0, first, length);
        let rows = DynTensor::R3(rows.reshape([1, length, width]));
        let dims = x.dims();
        x + rows.expand(&dims, arithmetic).r3()
    }
}

/// A layer without weights.
#[derive(Module, Debug)]
pub struct Stateless {
    #[module(skip)]
    kind: LayerKind,
}

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
        match conv.dims {
            1 => {
                let config = Conv1dConfig::new(input[0], channels, conv.kernel_size[0])
                    .with_groups(conv.groups)
                    .with_bias(conv.bias);
                let options = ConvOptions::new_with_padding(
                    array(&conv.stride),
                    array(&pads),
                    array(&conv.dilation),
                    conv.groups,
                );
                Layer::Conv1d(Conv1d::new(&config, options, computed, device))
            }
            2 => {
                let config = Conv2dConfig::new([input[0], channels], array(&conv.kernel_size))
                    .with_groups(conv.groups)
                    .with_bias(conv.bias);
                let options = ConvOptions::new_with_padding(
                    array(&conv.stride),
                    array(&pads),
                    array(&conv.dilation),
                    conv.groups,
                );
                Layer::Conv2d(Conv2d::new(&config, options, computed, device))
            }
            _ => {
                let config = Conv3dConfig::new([input[0], channels], array(&conv.kernel_size))
                    .with_stride(array(&conv.stride))
                    .with_dilation(array(&conv.dilation))
                    .with_groups(conv.groups)
                    .with_padding(PaddingConfig3d::Explicit(pads[0].0, pads[1].0, pads[2].0))
                    .with_bias(conv.bias);
                Layer::Conv3d(config.init(device))
            }
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

    /// The output of a part of a stack of transformers, whose first input is the output of the part before it. Other
    /// layers have one part.
    pub fn forward_part(
        &self,
        plan: &LayerPlan,
        part: usize,
        mut inputs: Vec<DynTensor>,
    ) -> DynTensor {
        let computed = Computed {
            is_fast: plan.kernels.is_fast(),
            arithmetic: plan.arithmetic,
        };
        let output = match (self, &plan.kind) {
            (Layer::Encoder(encoder), LayerKind::TransformerEncoder(stack)) => {
                let masks = Masks::take(plan, &mut inputs);
                let layers = &encoder.layers[part..=part];
                transformer::encoder(computed, layers, stack, inputs.remove(0).r3(), &masks)
            }
            (Layer::Decoder(decoder), LayerKind::TransformerDecoder(stack))
                if plan.values().len() > 1 =>
            {
                let masks = Masks::take(plan, &mut inputs);
                let layers = &decoder.layers[part..=part];
                let (memory, x) = (inputs.remove(1).r3(), inputs.remove(0).r3());
                transformer::decoder(computed, layers, stack, x, &memory, &masks)
            }
            _ => return self.forward(plan, inputs),
        };
        DynTensor::R3(output)
    }

    /// The output for a batch of inputs, whose shapes the plan has checked.
    pub fn forward(&self, plan: &LayerPlan, mut inputs: Vec<DynTensor>) -> DynTensor {
        if let LayerKind::Message(message) = &plan.kind {
            let Some(DynTensor::Nodes(nodes)) = inputs.pop() else {
                panic!("messages pass between nodes of a graph");
            };
            let output = self.passed(message, inputs.remove(0).flatten(), &nodes.links);
            return DynTensor::R2(output);
        }
        if let LayerKind::GraphPool { operation } = plan.kind {
            let Some(DynTensor::Nodes(nodes)) = inputs.pop() else {
                panic!("the nodes of graphs are pooled");
            };
            let graphs = nodes.graphs.expect("graphs were planned");
            let gate = match self {
                Layer::Gate(gate) => Some(gate),
                _ => None,
            };
            let x = inputs.remove(0).flatten();
            return DynTensor::R2(graphs.pooled(operation, gate, x));
        }
        if let LayerKind::EdgeEnds {
            operation,
            edge_dim,
        } = plan.kind
        {
            let Some(DynTensor::Nodes(nodes)) = inputs.pop() else {
                panic!("the nodes of pairs are combined");
            };
            let pairs = nodes.pairs.expect("pairs were planned");
            let x = inputs.remove(0).flatten();
            return DynTensor::R2(pairs.combined(operation, edge_dim > 0, x));
        }
        let masks = Masks::take(plan, &mut inputs);
        if let Layer::Function(_) = self {
            return function::apply(plan, inputs, &masks);
        }
        if let Layer::Own(module) = self {
            return module.forward(plan, inputs);
        }
        if let Layer::DeformConv2d(conv) = self {
            let mut inputs = inputs.into_iter().map(DynTensor::r4);
            let mut next = || inputs.next();
            let (Some(x), Some(offsets)) = (next(), next()) else {
                unreachable!("offsets were planned");
            };
            return DynTensor::R4(conv.forward(x, offsets, next()));
        }
        let input = inputs.remove(0);
        let others = inputs;
        // The result of runner's kernel if supported, otherwise of Burn's.
        macro_rules! fast {
            ($ours:expr, $burns:expr) => {{
                #[cfg(feature = "flex")]
                let ours = if plan.kernels.is_fast() { $ours } else { None };
                #[cfg(not(feature = "flex"))]
                let ours = None;
                ours.unwrap_or_else(|| $burns)
            }};
        }
        let computed = Computed {
            is_fast: plan.kernels.is_fast(),
            arithmetic: plan.arithmetic,
        };
        macro_rules! recurrent {
            ($layer:ident, $x:ident => $burns:expr) => {{
                let $x = input.r3();
                let own = masks.own.as_ref();
                #[cfg(feature = "flex")]
                let real = own.filter(|_| computed.is_fast && attention::is_ours(&$x));
                #[cfg(feature = "flex")]
                let real = real.map(|mask| Arc::new(masks::real(mask).collect::<Vec<bool>>()));
                let states = fast!(
                    $layer.states(&$x, (real.as_ref(), plan.arithmetic)),
                    match own {
                        Some(mask) => $layer.stepped(&$x, mask),
                        None => $burns,
                    }
                );
                steps(plan, states, own)
            }};
        }
        match self {
            Layer::Linear(linear) => {
                #[cfg(feature = "flex")]
                if plan.kernels.is_fast() {
                    return map_rank!(input, t => linear::linear(linear, t, plan.arithmetic));
                }
                map_rank!(input, t => lora::forward(linear, t))
            }
            Layer::Conv1d(conv) => DynTensor::R3(conv.forward(input.r3())),
            Layer::Conv2d(conv) => DynTensor::R4(conv.forward(input.r4())),
            Layer::Conv3d(conv) => DynTensor::R5(conv.forward(input.r5())),
            Layer::ConvTranspose1d(conv) => {
                let x = input.r3();
                DynTensor::R3(fast!(
                    transpose::of_rows(conv, &x, plan.arithmetic),
                    conv.forward(x)
                ))
            }
            Layer::ConvTranspose2d(conv) => {
                let x = input.r4();
                DynTensor::R4(fast!(
                    transpose::of_planes(conv, &x, plan.arithmetic),
                    conv.forward(x)
                ))
            }
            Layer::ConvTranspose3d(conv) => DynTensor::R5(conv.forward(input.r5())),
            Layer::BatchNorm(norm) => {
                map_rank!(input, t => fast!(norm::batch(norm, &t), batch_norm::forward(norm, t)))
            }
            Layer::LayerNorm(norm) => {
                map_rank!(input, t => fast!(
                    norm::layer(norm, epsilon(&plan.kind), &t),
                    norm.forward(t)
                ))
            }
            Layer::GroupNorm(norm) => {
                map_rank!(input, t => fast!(norm::group(norm, &t), norm.forward(t)))
            }
            Layer::InstanceNorm(norm) => {
                map_rank!(input, t => fast!(norm::instance(norm, &t), norm.forward(t)))
            }
            Layer::RmsNorm(norm) => {
                map_rank!(input, t => fast!(norm::rms(norm, &t), rms_norm::forward(norm, t)))
            }
            Layer::Embedding(embedding) => {
                let tokens = input.tokens();
                let ours = fast!(
                    embedding::rows(embedding, &tokens),
                    embedding.forward(tokens)
                );
                DynTensor::R3(ours)
            }
            Layer::Rnn(rnn) => recurrent!(rnn, x => rnn.forward(x, None).0),
            Layer::BiRnn(rnn) => recurrent!(rnn, x => rnn.forward(x, None).0),
            Layer::Gru(gru) => recurrent!(gru, x => gru.forward(x, None)),
            Layer::BiGru(gru) => recurrent!(gru, x => gru.forward(x, None).0),
            Layer::Lstm(lstm) => recurrent!(lstm, x => lstm.forward(x, None).0),
            Layer::BiLstm(lstm) => recurrent!(lstm, x => lstm.forward(x, None).0),
            Layer::Dlinoss(oscillators) => DynTensor::R3(oscillators.forward(input.r3())),
            Layer::Attention(attention) => {
                let [query, keys, values] = attended_by(input, others);
                let is_causal = matches!(
                    plan.kind,
                    LayerKind::MultiHeadAttention { causal: true, .. }
                );
                let seen = masks.seen();
                DynTensor::R3(transformer::attended(
                    computed,
                    attention,
                    query,
                    [&keys, &values],
                    is_causal,
                    &seen,
                ))
            }
            Layer::GroupedAttention(attention) => {
                let attended = attended_by(input, others);
                let seen = masks.seen();
                let positions = match (&plan.documents, &masks.documents) {
                    (Some(own), Some(numbers)) if own.positions.is_restarting() => {
                        Positions::In(numbers)
                    }
                    _ => Positions::From(0),
                };
                DynTensor::R3(attention.forward(attended, &seen, positions, computed.is_fast))
            }
            Layer::Encoder(encoder) => {
                let LayerKind::TransformerEncoder(stack) = &plan.kind else {
                    unreachable!("a stack was planned");
                };
                let (layers, x) = (&encoder.layers, input.r3());
                DynTensor::R3(transformer::encoder(computed, layers, stack, x, &masks))
            }
            Layer::Decoder(decoder) => {
                let LayerKind::TransformerDecoder(stack) = &plan.kind else {
                    unreachable!("a stack was planned");
                };
                let sequence = input.r3();
                let memory = others.into_iter().next();
                let memory = memory.map_or_else(|| sequence.clone(), DynTensor::r3);
                let layers = &decoder.layers;
                let x = transformer::decoder(computed, layers, stack, sequence, &memory, &masks);
                DynTensor::R3(x)
            }
            Layer::Positions(learned) => {
                let x = input.r3();
                DynTensor::R3(match &masks.documents {
                    Some(numbers) => x + documents::rows(learned.value.val(), numbers),
                    None => learned.added_from(0, x, plan.arithmetic),
                })
            }
            Layer::Positional(encoding) => {
                let x = input.r3();
                let Some(numbers) = &masks.documents else {
                    return DynTensor::R3(positions(encoding, x, plan.arithmetic));
                };
                let [_, length, width] = x.dims();
                let zeros = Tensor::zeros([1, length, width], (&x.device(), x.dtype()));
                let table = positions(encoding, zeros, plan.arithmetic).squeeze_dim::<2>(0);
                DynTensor::R3(x + documents::rows(table, numbers))
            }
            Layer::Rotary(encoding) => DynTensor::R3(encoding.forward(input.r3())),
            Layer::Prelu(prelu) => map_rank!(input, t => leaky(prelu, t, plan.arithmetic)),
            Layer::Swiglu(swiglu) => {
                map_rank!(input, t => fast!(activation::swiglu(swiglu, &t, plan.arithmetic), gated(swiglu, t)))
            }
            Layer::Parameter1(learned) => learned.repeated(input.dims()[0], plan.arithmetic),
            Layer::Parameter2(learned) => learned.repeated(input.dims()[0], plan.arithmetic),
            Layer::Parameter3(learned) => learned.repeated(input.dims()[0], plan.arithmetic),
            Layer::Parameter4(learned) => learned.repeated(input.dims()[0], plan.arithmetic),
            Layer::Gcn(_) | Layer::Sage(_) | Layer::Gat(_) | Layer::Gin(_) | Layer::EdgeConv(_) => {
                unreachable!("messages were passed above")
            }
            Layer::Function(_)
            | Layer::DeformConv2d(_)
            | Layer::Own(_)
            | Layer::Gate(_)
            | Layer::Tied(_) => {
                unreachable!("they were applied above, or got their matrix")
            }
        }
    }
}

/// Queries, keys and values of attention: those of other inputs than the first, if there are any.
fn attended_by(queries: DynTensor, others: Vec<DynTensor>) -> [Tensor<3>; 3] {
    let queries = queries.r3();
    let mut others = others.into_iter().map(DynTensor::r3);
    let keys = others.next().unwrap_or_else(|| queries.clone());
    let values = others.next().unwrap_or_else(|| keys.clone());
    [queries, keys, values]
}

/// A sequence plus the sines and cosines of its positions. Burn takes them from the system's library.
pub(crate) fn positions(
    encoding: &PositionalEncoding,
    x: Tensor<3>,
    arithmetic: Arithmetic,
) -> Tensor<3> {
    if arithmetic.is_fast() {
        return encoding.forward(x);
    }
    let [_, length, width] = x.dims();
    let increment = -libm::log(encoding.max_timescale as f64) / width as f64;
    let mut table = Vec::with_capacity(length * width);
    for at in 0..length {
        for column in (0..width).step_by(2) {
            let angle = libm::exp(column as f64 * increment) * at as f64;
            table.extend([libm::sin(angle) as f32, libm::cos(angle) as f32]);
        }
    }
    let table = TensorData::new(table, [1, length, width]);
    x.clone() + Tensor::from_data(table, &x.device())
}

/// PReLU: negative numbers times a learned factor.
fn leaky<const D: usize>(prelu: &PRelu, x: Tensor<D>, arithmetic: Arithmetic) -> Tensor<D> {
    if arithmetic.is_fast() || D == 1 {
        return prelu.forward(x);
    }
    let alpha = prelu.alpha.val();
    let mut shape = [1; D];
    shape[1] = alpha.dims()[0];
    let alpha = numeric::expand(arithmetic, alpha.reshape(shape), x.dims());
    x.clone().clamp_min(0.0) + alpha * x.clamp_max(0.0)
}

/// SwiGLU as Burn computes it, with adapters of its layers.
fn gated<const D: usize>(swiglu: &SwiGlu, x: Tensor<D>) -> Tensor<D> {
    let gate = silu(lora::forward(&swiglu.linear_inner, x.clone()));
    gate.mul(lora::forward(&swiglu.linear_outer, x))
}

/// The epsilon of a layer norm.
#[cfg(feature = "flex")]
fn epsilon(kind: &LayerKind) -> f64 {
    match kind {
        LayerKind::Norm(Norm::Layer { epsilon, .. }) => *epsilon,
        other => unreachable!("{} is no layer norm", other.type_name()),
    }
}

fn feedforward_activation(activation: FeedforwardActivation) -> ActivationConfig {
    match activation {
        FeedforwardActivation::Gelu => ActivationConfig::Gelu,
        FeedforwardActivation::Relu => ActivationConfig::Relu,
    }
}

/// The planner has set as many sizes as there are dimensions.
fn array<T: Copy, const N: usize>(sizes: &[T]) -> [T; N] {
    std::array::from_fn(|at| sizes[at])
}

/// All steps of a recurrent layer's output, with zeros for padding, or the last of each direction.
fn steps(plan: &LayerPlan, outputs: Tensor<3>, mask: Option<&Tensor<2>>) -> DynTensor {
    let LayerKind::Recurrent(recurrent) = &plan.kind else {
        return DynTensor::R3(outputs);
    };
    let [items, length, width] = outputs.dims();
    if recurrent.output == Steps::Sequence {
        let Some(mask) = mask else {
            return DynTensor::R3(outputs);
        };
        let padding = masks::padded(mask).reshape([items, length, 1]);
        return DynTensor::R3(outputs.mask_fill(padding.expand([items, length, width]), 0.0));
    }
    let step = |at: usize, from: usize, to: usize| {
        let step = outputs.clone().narrow(1, at, 1).narrow(2, from, to - from);
        step.squeeze_dim::<2>(1)
    };
    DynTensor::R2(if !recurrent.bidirectional {
        step(length - 1, 0, width)
    } else {
        Tensor::cat(
            vec![step(length - 1, 0, width / 2), step(0, width / 2, width)],
            1,
        )
    })
}
