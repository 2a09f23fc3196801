//! A planned layer as Burn's module.
//!
//! Layers with weights are modules of burn-nn; all others are functions, which need no state.

mod new;

#[cfg(feature = "flex")]
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::nn::activation::*;
use burn::nn::attention::*;
use burn::nn::conv::{ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
use burn::nn::transformer::*;
use burn::nn::*;
use burn::tensor::activation::silu;
use burn::tensor::{Device, Tensor, TensorData};

use crate::attention::{GroupedAttention, Positions};
use crate::batch_norm;
use crate::convolution::{Conv1d, Conv2d, Conv3d};
use crate::deform::DeformConv2d;
use crate::dlinoss::Dlinoss;
use crate::documents;
#[cfg(feature = "flex")]
use crate::fast::{
    activation, attention, embedding, gated, linear, norm, recurrent::Recurrent, transpose,
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
use runner_core::spec::backend::Arithmetic;
#[cfg(feature = "flex")]
use runner_core::spec::model::layer::Norm;
use runner_core::spec::model::layer::{LayerKind, Steps};

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
            Layer::ConvTranspose3d(conv) => {
                let x = input.r5();
                DynTensor::R5(fast!(
                    transpose::of_volumes(conv, &x, plan.arithmetic),
                    conv.forward(x)
                ))
            }
            Layer::BatchNorm(norm) => {
                map_rank!(input, t => fast!(norm::batch(norm, &t, None), batch_norm::forward(norm, t)))
            }
            Layer::LayerNorm(norm) => {
                map_rank!(input, t => fast!(
                    norm::layer(norm, epsilon(&plan.kind), &t),
                    norm.forward(t)
                ))
            }
            Layer::GroupNorm(norm) => {
                map_rank!(input, t => fast!(norm::group(norm, &t, None), norm.forward(t)))
            }
            Layer::InstanceNorm(norm) => {
                map_rank!(input, t => fast!(norm::instance(norm, &t, None), norm.forward(t)))
            }
            Layer::RmsNorm(norm) => {
                map_rank!(input, t => fast!(norm::rms(norm, &t), rms_norm::forward(norm, t)))
            }
            Layer::Embedding(embedding) => {
                let tokens = input.tokens();
                let ours = fast!(
                    embedding::rows(embedding.weight.val(), &tokens),
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
            Layer::Prelu(prelu) => {
                map_rank!(input, t => fast!(gated::prelu(prelu, &t), leaky(prelu, t, plan.arithmetic)))
            }
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
