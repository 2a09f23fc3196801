//! A language model computed incrementally: values of earlier tokens that later ones need are cached, so that each
//! token is computed once. For attention these are keys and values, for recurrent layers their states.

use burn::nn::attention::MultiHeadAttention;
use burn::nn::transformer::TransformerEncoderLayer;
use burn::nn::{LstmState, RnnState};
use burn::tensor::activation::softmax;
use burn::tensor::{Bool, Device, Tensor, TensorData};

use crate::attention::KeysValues;
use crate::layer::{Layer, positions};
use crate::network::Network;
use crate::tensor::DynTensor;
use runner_core::check::network::{Layer as LayerPlan, Network as NetworkPlan};
use runner_core::spec::data::DocumentPositions;
use runner_core::spec::model::layer::{LayerKind, Norm, Steps};

/// Of attention without `causal`.
const LATER: &str = "attends to later tokens (`causal` is not set)";

/// Why a network cannot continue texts, or only limited ones: the name of a layer with the reason.
pub fn unfit(plan: &NetworkPlan) -> Option<String> {
    let reason = |layer: &LayerPlan| match &layer.kind {
        LayerKind::Linear { .. }
        | LayerKind::Dropout { .. }
        | LayerKind::StochasticDepth { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::GaussianSample
        | LayerKind::Embedding { .. }
        | LayerKind::PositionalEncoding { .. }
        | LayerKind::PositionEmbedding { .. }
        | LayerKind::RotaryEncoding { .. }
        | LayerKind::Activation(_)
        | LayerKind::Prelu {
            per_channel: false, ..
        }
        | LayerKind::Swiglu { .. }
        | LayerKind::Identity
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::Pairwise { .. }
        | LayerKind::Norm(Norm::Layer { .. } | Norm::Rms { .. }) => None,
        LayerKind::Recurrent(recurrent) if recurrent.bidirectional => {
            Some("processes the text in both directions")
        }
        LayerKind::Recurrent(recurrent) if recurrent.output != Steps::Sequence => {
            Some("outputs only its last step")
        }
        LayerKind::Recurrent(_) => None,
        LayerKind::MultiHeadAttention { causal: false, .. } => Some(LATER),
        LayerKind::GroupedAttention(attention) if !attention.causal => Some(LATER),
        LayerKind::MultiHeadAttention { .. } | LayerKind::GroupedAttention(_) => {
            (layer.inputs.len() > 1).then_some("attends to another input")
        }
        LayerKind::TransformerEncoder(stack) if stack.causal => None,
        LayerKind::TransformerEncoder(_) => Some(LATER),
        _ => Some("needs the whole text at once"),
    };
    let mut found = plan.layers.iter();
    found.find_map(|layer| Some(format!("layer `{}` {}", layer.name, reason(layer)?)))
}

/// Whether a network processes texts of any length, up to the one in training.
pub fn takes_any_length(plan: &NetworkPlan) -> bool {
    // Layers that do not depend on the text, such as embeddings of segments.
    let mut constant = Vec::with_capacity(plan.layers.len());
    plan.layers.iter().all(|layer| {
        let inputs = || layer.inputs.iter().filter_map(|input| input.layer);
        let is_constant = match layer.kind {
            LayerKind::Parameter { .. } => true,
            LayerKind::Slice { .. } => {
                layer.inputs.iter().all(|input| input.layer.is_some())
                    && inputs().all(|at| constant[at])
            }
            _ => false,
        };
        constant.push(is_constant);
        let is_spread = |at: usize| matches!(plan.layers[at].shape[..], [_] | [1, _]);
        is_constant
            || is_by_position(&layer.kind) && inputs().all(|at| !constant[at] || is_spread(at))
    })
}

/// Whether a layer has an output for each position of any text.
fn is_by_position(kind: &LayerKind) -> bool {
    match kind {
        LayerKind::Linear { .. }
        | LayerKind::Dropout { .. }
        | LayerKind::StochasticDepth { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::Embedding { .. }
        | LayerKind::PositionalEncoding { .. }
        | LayerKind::PositionEmbedding { .. }
        | LayerKind::RotaryEncoding { .. }
        | LayerKind::Activation(_)
        | LayerKind::Prelu {
            per_channel: false, ..
        }
        | LayerKind::Swiglu { .. }
        | LayerKind::Identity
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::PaddingMask { .. }
        | LayerKind::MultiHeadAttention { .. }
        | LayerKind::GroupedAttention(_)
        | LayerKind::TransformerEncoder(_)
        | LayerKind::Norm(Norm::Layer { .. } | Norm::Rms { .. }) => true,
        LayerKind::Recurrent(recurrent) => recurrent.output == Steps::Sequence,
        _ => false,
    }
}

/// Whether the output of a network depends on positions, so that it cannot process more tokens than in training.
pub fn has_positions(plan: &NetworkPlan) -> bool {
    plan.layers.iter().any(|layer| {
        matches!(
            layer.kind,
            LayerKind::PositionalEncoding { .. }
                | LayerKind::PositionEmbedding { .. }
                | LayerKind::RotaryEncoding { .. }
                | LayerKind::MultiHeadAttention { .. }
                | LayerKind::GroupedAttention(_)
                | LayerKind::TransformerEncoder(_)
        )
    })
}

/// The cache for the tokens so far.
#[derive(Debug, Default)]
pub struct Cache {
    num_tokens: usize,
    layers: Vec<Kept>,
    /// Whether the last token ended a document, which later ones do not attend to.
    is_ended: bool,
}

impl Cache {
    /// Forgets the document that ended `before` the next tokens.
    fn end(&mut self, before: usize, positions: DocumentPositions) {
        self.layers.clear();
        self.num_tokens = match positions {
            DocumentPositions::Restart => 0,
            DocumentPositions::Continue => self.num_tokens + before,
        };
    }
}

/// The cache of a layer.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each layer, and each token would pay for a box"
)]
enum Kept {
    #[default]
    Nothing,
    Hidden(Tensor<2>),
    Lstm(Tensor<2>, Tensor<2>),
    Attention(Vec<KeysValues>),
}

impl Network {
    /// The outputs for the token after the last of `tokens`, which follow the cached ones. The network must not be
    /// [`unfit`].
    ///
    /// # Panics
    /// If there are no tokens, or more than the positions of the network.
    pub fn next_outputs(&self, tokens: &[i32], cache: &mut Cache, device: &Device) -> Vec<f32> {
        let graph = self.graph();
        let mut tokens = tokens;
        if let Some(documents) = graph.layers().find_map(|(_, plan)| plan.documents) {
            let is_end = |token: &i32| *token as u32 == documents.end;
            let (last, others) = tokens.split_last().expect("a token");
            if let Some(end) = others.iter().rposition(is_end) {
                tokens = &tokens[end + 1..];
                cache.end(end + 1, documents.positions);
            } else if cache.is_ended {
                cache.end(0, documents.positions);
            }
            cache.is_ended = is_end(last);
        }
        let num = tokens.len();
        let data = TensorData::new(tokens.to_vec(), [1, num]);
        cache
            .layers
            .resize_with(graph.layers().count(), Kept::default);
        let before = cache.num_tokens;
        let kept = &mut cache.layers;
        let head = kept.len() - 1;
        let outputs = graph.outputs_by(
            DynTensor::from_data(data, device),
            |at, layer, plan, inputs| {
                let is_head = at == head && matches!(plan.kind, LayerKind::Linear { .. });
                let inputs = if is_head {
                    last_position(inputs)
                } else {
                    inputs
                };
                step(layer, plan, inputs, before, &mut kept[at])
            },
        );
        cache.num_tokens += num;
        let outputs = outputs.r3();
        let num = outputs.dims()[1];
        let last = outputs.narrow(1, num - 1, 1);
        last.into_data().iter::<f32>().collect()
    }
}

/// The inputs of a layer that treats each position alike, only at the last one: the scores of a large vocabulary for all
/// tokens of a prompt would take longer than the rest of the network.
fn last_position(inputs: Vec<DynTensor>) -> Vec<DynTensor> {
    let last = |input: DynTensor| match input {
        DynTensor::R3(values) => {
            let num = values.dims()[1];
            DynTensor::R3(values.narrow(1, num - 1, 1))
        }
        other => other,
    };
    inputs.into_iter().map(last).collect()
}

/// A layer's output for the tokens after the first `before` ones.
fn step(
    layer: &Layer,
    plan: &LayerPlan,
    mut inputs: Vec<DynTensor>,
    before: usize,
    kept: &mut Kept,
) -> DynTensor {
    match layer {
        Layer::Positional(encoding) => {
            let input = inputs.remove(0).r3();
            let [batch, num, width] = input.dims();
            let zeros = Tensor::<3>::zeros([batch, before + num, width], &input.device());
            DynTensor::R3(
                input + positions(encoding, zeros, plan.arithmetic).narrow(1, before, num),
            )
        }
        Layer::Positions(learned) => {
            DynTensor::R3(learned.added_from(before, inputs.remove(0).r3(), plan.arithmetic))
        }
        Layer::Rotary(encoding) => DynTensor::R3(encoding.apply(inputs.remove(0).r3(), before)),
        Layer::Rnn(rnn) => {
            let state = hidden(kept).map(RnnState::new);
            let (outputs, state) = rnn.forward(inputs.remove(0).r3(), state);
            *kept = Kept::Hidden(state.hidden);
            DynTensor::R3(outputs)
        }
        Layer::Gru(gru) => {
            let outputs = gru.forward(inputs.remove(0).r3(), hidden(kept));
            let num = outputs.dims()[1];
            *kept = Kept::Hidden(outputs.clone().narrow(1, num - 1, 1).squeeze_dim(1));
            DynTensor::R3(outputs)
        }
        Layer::Lstm(lstm) => {
            let state = match std::mem::take(kept) {
                Kept::Lstm(cell, hidden) => Some(LstmState::new(cell, hidden)),
                _ => None,
            };
            let (outputs, state) = lstm.forward(inputs.remove(0).r3(), state);
            *kept = Kept::Lstm(state.cell, state.hidden);
            DynTensor::R3(outputs)
        }
        Layer::Attention(attention) => {
            let mut all = keys_values(kept);
            let outputs = attend(attention, inputs.remove(0).r3(), all.pop(), &mut all);
            *kept = Kept::Attention(all);
            DynTensor::R3(outputs)
        }
        Layer::GroupedAttention(attention) => {
            let mut all = keys_values(kept);
            let (outputs, now) = attention.step(inputs.remove(0).r3(), all.pop(), before);
            *kept = Kept::Attention(vec![now]);
            DynTensor::R3(outputs)
        }
        Layer::Encoder(encoder) => {
            let mut earlier = keys_values(kept).into_iter();
            let mut now = Vec::with_capacity(encoder.layers.len());
            let mut x = inputs.remove(0).r3();
            for layer in &encoder.layers {
                x = encode(layer, x, earlier.next(), &mut now);
            }
            *kept = Kept::Attention(now);
            DynTensor::R3(x)
        }
        _ => layer.forward(plan, inputs),
    }
}

fn hidden(kept: &mut Kept) -> Option<Tensor<2>> {
    match std::mem::take(kept) {
        Kept::Hidden(hidden) => Some(hidden),
        _ => None,
    }
}

fn keys_values(kept: &mut Kept) -> Vec<KeysValues> {
    match std::mem::take(kept) {
        Kept::Attention(all) => all,
        _ => Vec::new(),
    }
}

/// A layer of an encoder, as in [`TransformerEncoderLayer::forward`].
fn encode(
    layer: &TransformerEncoderLayer,
    x: Tensor<3>,
    earlier: Option<KeysValues>,
    now: &mut Vec<KeysValues>,
) -> Tensor<3> {
    let normed = if layer.norm_first {
        layer.norm_2.forward(x.clone())
    } else {
        x.clone()
    };
    let x = x + attend(&layer.mha, normed, earlier, now);
    if layer.norm_first {
        let fed = layer.pwff.forward(layer.norm_1.forward(x.clone()));
        x + fed
    } else {
        let x = layer.norm_1.forward(x);
        layer.norm_2.forward(x.clone() + layer.pwff.forward(x))
    }
}

/// Attention of new tokens to all tokens up to themselves.
fn attend(
    attention: &MultiHeadAttention,
    x: Tensor<3>,
    earlier: Option<KeysValues>,
    now: &mut Vec<KeysValues>,
) -> Tensor<3> {
    let [batch, num, width] = x.dims();
    let heads = |of: Tensor<3>| -> Tensor<4> {
        of.reshape([batch, num, attention.n_heads, attention.d_k])
            .swap_dims(1, 2)
    };
    let query = heads(attention.query.forward(x.clone()));
    let (mut keys, mut values) = (
        heads(attention.key.forward(x.clone())),
        heads(attention.value.forward(x)),
    );
    if let Some(earlier) = earlier {
        keys = Tensor::cat(vec![earlier.keys, keys], 2);
        values = Tensor::cat(vec![earlier.values, values], 2);
    }
    let total = keys.dims()[2];
    let mut scores = query
        .matmul(keys.clone().transpose())
        .div_scalar(f64::from(attention.d_k as u32).sqrt());
    if num > 1 {
        let before = (total - num) as i64;
        let mask = Tensor::<2, Bool>::tril_mask([num, total], before, &scores.device());
        let mask = mask.reshape([1, 1, num, total]);
        let dims = scores.dims();
        scores = scores.mask_fill(mask.expand(dims), attention.min_float);
    }
    let context = softmax(scores, 3).matmul(values.clone());
    now.push(KeysValues { keys, values });
    let context = context.swap_dims(1, 2).reshape([batch, num, width]);
    attention.output.forward(context)
}
