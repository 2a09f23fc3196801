//! Attention and transformer stacks, using the parameters of Burn's modules.
//!
//! A stack is computed step by step as in Burn, with runner's kernels instead of Burn's. Attention with dropout in
//! training is left to Burn, since weights that are never stored cannot be dropped.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::nn::LayerNorm;
use burn::nn::attention::{MhaInput, MultiHeadAttention};
use burn::nn::transformer::{PositionWiseFeedForward, TransformerDecoder, TransformerEncoder};
use burn::tensor::{Bool, Tensor};
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{FeedforwardActivation, Transformer};
use runner_kernels::attention::{Attention, backward, forward};

use super::linear::linear;
use super::operation::{self, Back, Operation, apply_3, contiguous, numbers, tensor};
use super::{activation, norm, portable, rounding};

/// The epsilon of a stack's norms: Burn's default.
const EPSILON: f64 = 1e-5;

/// Operands are queries, keys and values.
#[derive(Clone, Debug)]
struct Heads(Attention);

impl Operation<3> for Heads {
    /// The logarithm of each row's sum of exponentials.
    type Kept = Arc<Vec<f32>>;

    fn asks_for(&self, _: [bool; 3]) -> [bool; 3] {
        [true, true, true]
    }

    fn forward(
        &self,
        operands: [FlexTensor; 3],
        is_kept: bool,
    ) -> (FlexTensor, Option<Self::Kept>) {
        let [q, k, v] = operands.map(contiguous);
        let (output, sums) = forward(&self.0, numbers(&q), numbers(&k), numbers(&v));
        (tensor(output, q.shape()), is_kept.then(|| Arc::new(sums)))
    }

    fn backward(&self, mut back: Back<Self::Kept, 3>) -> [Option<FlexTensor>; 3] {
        let [q, k, v] = [0, 1, 2].map(|at| back.operand(at));
        let found = backward(
            &self.0,
            numbers(&q),
            numbers(&k),
            numbers(&v),
            &back.kept,
            numbers(&back.gradient),
        );
        let shapes = [q.shape(), k.shape(), v.shape()];
        let mut wants = back.wants.into_iter();
        let mut shapes = shapes.into_iter();
        found.map(|values| {
            let (is_wanted, shape) = (wants.next()?, shapes.next()?);
            is_wanted.then(|| tensor(values, shape))
        })
    }
}

/// Whether a sequence is supported here.
pub fn is_ours(x: &Tensor<3>) -> bool {
    operation::is_ours(x) && x.shape().num_elements() > 0
}

/// Attention of \[items, queries, width\] over \[items, keys, width\], if it is supported here.
pub fn multi_head(
    mha: &MultiHeadAttention,
    query: &Tensor<3>,
    memory: &Tensor<3>,
    is_causal: bool,
    arithmetic: Arithmetic,
) -> Option<Tensor<3>> {
    let is_dropping = mha.dropout.prob > 0.0 && query.device().is_autodiff();
    if !is_ours(query) || !is_ours(memory) || mha.quiet_softmax {
        return None;
    }
    if is_dropping {
        return arithmetic
            .is_portable()
            .then(|| dropping(mha, query, memory, is_causal));
    }
    let [items, queries, _] = query.dims();
    let sizes = Attention {
        items,
        heads: mha.n_heads,
        queries,
        keys: memory.dims()[1],
        width: mha.d_k,
        is_causal,
        arithmetic: rounding(arithmetic),
    };
    let q = linear(&mha.query, query.clone(), arithmetic);
    let k = linear(&mha.key, memory.clone(), arithmetic);
    let v = linear(&mha.value, memory.clone(), arithmetic);
    Some(linear(
        &mha.output,
        apply_3((q, k, v), Heads(sizes)),
        arithmetic,
    ))
}

/// Portable attention whose weights are stored, so that some can be dropped.
fn dropping(
    mha: &MultiHeadAttention,
    query: &Tensor<3>,
    memory: &Tensor<3>,
    is_causal: bool,
) -> Tensor<3> {
    const PORTABLE: Arithmetic = Arithmetic::Portable;
    let ([items, queries, width], keys) = (query.dims(), memory.dims()[1]);
    let heads = |x: Tensor<3>, num: usize| -> Tensor<4> {
        x.reshape([items, num, mha.n_heads, mha.d_k])
            .swap_dims(1, 2)
    };
    let q = heads(linear(&mha.query, query.clone(), PORTABLE), queries);
    let k = heads(linear(&mha.key, memory.clone(), PORTABLE), keys);
    let v = heads(linear(&mha.value, memory.clone(), PORTABLE), keys);
    let mut scores = portable::matmul(q, k.transpose()) / f64::from(mha.d_k as u32).sqrt();
    if is_causal {
        let mask = Tensor::<2, Bool>::tril_mask([queries, keys], 0, &query.device());
        let mask = mask.reshape([1, 1, queries, keys]);
        let mask = mask.expand([items, mha.n_heads, queries, keys]);
        scores = scores.mask_fill(mask, mha.min_float);
    }
    let weights = mha.dropout.forward(activation::softmax(scores));
    let seen = portable::matmul(weights, v).swap_dims(1, 2);
    linear(&mha.output, seen.reshape([items, queries, width]), PORTABLE)
}

/// The same, by Burn if weights are dropped.
fn attended(
    mha: &MultiHeadAttention,
    query: Tensor<3>,
    memory: &Tensor<3>,
    is_causal: bool,
    arithmetic: Arithmetic,
) -> Tensor<3> {
    multi_head(mha, &query, memory, is_causal, arithmetic).unwrap_or_else(|| {
        let ([items, queries, _], keys) = (query.dims(), memory.dims()[1]);
        let mask = Tensor::<2, Bool>::tril_mask([queries, keys], 0, &query.device());
        let mut input = MhaInput::new(query, memory.clone(), memory.clone());
        if is_causal {
            input = input.mask_attn(mask.unsqueeze::<3>().expand([items, queries, keys]));
        }
        mha.forward(input).context
    })
}

fn normalized(norm: &LayerNorm, x: Tensor<3>) -> Tensor<3> {
    norm::layer(norm, EPSILON, &x).unwrap_or_else(|| norm.forward(x))
}

fn fed_forward(
    feedforward: &PositionWiseFeedForward,
    function: FeedforwardActivation,
    x: Tensor<3>,
    arithmetic: Arithmetic,
) -> Tensor<3> {
    let function = match function {
        FeedforwardActivation::Gelu => Activation::Gelu,
        FeedforwardActivation::Relu => Activation::Relu,
    };
    let x = linear(&feedforward.linear_inner, x, arithmetic);
    let x =
        activation::activate(x, &function).unwrap_or_else(|x| feedforward.activation.forward(x));
    linear(
        &feedforward.linear_outer,
        feedforward.dropout.forward(x),
        arithmetic,
    )
}

/// A stack of encoders over \[items, length, width\].
pub fn encoder(
    encoder: &TransformerEncoder,
    stack: &Transformer,
    sequence: Tensor<3>,
    arithmetic: Arithmetic,
) -> Tensor<3> {
    let mut x = sequence;
    for layer in &encoder.layers {
        let before = if layer.norm_first {
            normalized(&layer.norm_2, x.clone())
        } else {
            x.clone()
        };
        let seen = before.clone();
        let attended = attended(&layer.mha, before, &seen, stack.causal, arithmetic);
        x = x + layer.dropout.forward(attended);
        let before = normalized(&layer.norm_1, x.clone());
        if !layer.norm_first {
            x = before.clone();
        }
        let fed = fed_forward(&layer.pwff, stack.activation, before, arithmetic);
        x = x + layer.dropout.forward(fed);
        if !layer.norm_first {
            x = normalized(&layer.norm_2, x);
        }
    }
    x
}

/// A stack of decoders over \[items, length, width\], which attend to a memory.
pub fn decoder(
    decoder: &TransformerDecoder,
    stack: &Transformer,
    sequence: Tensor<3>,
    memory: &Tensor<3>,
    arithmetic: Arithmetic,
) -> Tensor<3> {
    let mut x = sequence;
    for layer in &decoder.layers {
        let before = if layer.norm_first {
            normalized(&layer.norm_3, x.clone())
        } else {
            x.clone()
        };
        let seen = before.clone();
        let own = attended(&layer.self_attn, before, &seen, stack.causal, arithmetic);
        x = x + layer.dropout.forward(own);
        let before = normalized(&layer.norm_1, x.clone());
        if !layer.norm_first {
            x = before.clone();
        }
        let crossed = attended(&layer.cross_attn, before, memory, false, arithmetic);
        x = x + layer.dropout.forward(crossed);
        let before = normalized(&layer.norm_2, x.clone());
        if !layer.norm_first {
            x = before.clone();
        }
        let fed = fed_forward(&layer.pwff, stack.activation, before, arithmetic);
        x = x + layer.dropout.forward(fed);
        if !layer.norm_first {
            x = normalized(&layer.norm_3, x);
        }
    }
    x
}
