//! Attention and transformer stacks, using the parameters of Burn's modules.
//!
//! A stack is computed step by step as in Burn, with runner's kernels instead of Burn's where there are any. Weights of
//! attention that are never stored cannot be dropped, so attention with dropout in training stores them.

use burn::nn::attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig};
use burn::nn::transformer::{
    PositionWiseFeedForward, TransformerDecoderLayer, TransformerEncoderLayer,
};
use burn::nn::{Dropout, LayerNorm, Linear, LinearConfig};
use burn::tensor::{Bool, DType, Device, Tensor};
use runner_core::spec::backend::Arithmetic;
#[cfg(feature = "flex")]
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{FeedforwardActivation, Transformer};

use crate::dropout::dropped;
use crate::lora;
use crate::masks::{Masks, Seen};
use crate::numeric;

/// Which kernels compute a layer, and how they round.
#[derive(Clone, Copy, Debug)]
pub struct Computed {
    /// Whether runner's do.
    pub is_fast: bool,
    /// How they round.
    pub arithmetic: Arithmetic,
}

/// The epsilon of a stack's norms: Burn's default.
#[cfg(feature = "flex")]
const EPSILON: f64 = 1e-5;

impl Computed {
    fn linear(self, layer: &Linear, x: Tensor<3>) -> Tensor<3> {
        #[cfg(feature = "flex")]
        if self.is_fast {
            return crate::fast::linear::linear(layer, x, self.arithmetic);
        }
        lora::forward(layer, x)
    }

    fn dropped<const D: usize>(self, dropout: &Dropout, x: Tensor<D>) -> Tensor<D> {
        dropped(x, dropout.prob, self.is_fast)
    }

    fn normalized(self, norm: &LayerNorm, x: Tensor<3>) -> Tensor<3> {
        #[cfg(feature = "flex")]
        if self.is_fast
            && let Some(x) = crate::fast::norm::layer(norm, EPSILON, &x)
        {
            return x;
        }
        norm.forward(x)
    }

    fn fed_forward(
        self,
        feedforward: &PositionWiseFeedForward,
        function: FeedforwardActivation,
        x: Tensor<3>,
    ) -> Tensor<3> {
        let x = self.linear(&feedforward.linear_inner, x);
        let x = self.activated(feedforward, function, x);
        let x = self.dropped(&feedforward.dropout, x);
        self.linear(&feedforward.linear_outer, x)
    }

    fn activated(
        self,
        feedforward: &PositionWiseFeedForward,
        function: FeedforwardActivation,
        x: Tensor<3>,
    ) -> Tensor<3> {
        #[cfg(feature = "flex")]
        let x = if self.is_fast {
            match crate::fast::activation::activate(x, &activation(function)) {
                Ok(x) => return x,
                Err(x) => x,
            }
        } else {
            x
        };
        let _ = function;
        feedforward.activation.forward(x)
    }
}

/// The same function as a layer.
#[cfg(feature = "flex")]
fn activation(function: FeedforwardActivation) -> Activation {
    match function {
        FeedforwardActivation::Gelu => Activation::Gelu,
        FeedforwardActivation::Relu => Activation::Relu,
    }
}

/// Attention of queries to keys and values of these widths, with uninitialized weights.
pub fn attention(
    [width, keys, values]: [usize; 3],
    num_heads: usize,
    dropout: f64,
    device: &Device,
) -> MultiHeadAttention {
    let config = MultiHeadAttentionConfig::new(width, num_heads).with_dropout(dropout);
    let mut attention = config.init(device);
    // Burn's configuration has one width for all.
    for (layer, wide) in [(&mut attention.key, keys), (&mut attention.value, values)] {
        if wide != width || keys != width {
            let linear = LinearConfig::new(wide, width);
            let linear = linear.with_initializer(config.initializer.clone());
            *layer = linear.init(device);
        }
    }
    attention
}

/// True where a position must not attend: at later ones. \[queries, keys\].
fn later(queries: usize, keys: usize, device: &Device) -> Tensor<2, Bool> {
    Tensor::<2, Bool>::tril_mask([queries, keys], 0, device)
}

/// Attention of \[items, queries, width\] over keys and values \[items, keys, width\], of which some are seen.
pub fn attended(
    computed: Computed,
    mha: &MultiHeadAttention,
    query: Tensor<3>,
    memory: [&Tensor<3>; 2],
    is_causal: bool,
    seen: &Seen,
) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if computed.is_fast
        && let Some(context) = crate::fast::attention::multi_head(
            mha,
            &query,
            memory,
            is_causal,
            seen,
            computed.arithmetic,
        )
    {
        return context;
    }
    let projections = [&mha.query, &mha.key, &mha.value, &mha.output];
    // Burn's divides by a root of 32 bits, and has one width for all.
    let is_double = query.dtype() == DType::F64;
    let is_wider = memory.iter().any(|of| of.dims()[2] != query.dims()[2]);
    if is_double || is_wider || !seen.is_all() || projections.into_iter().any(lora::is_changed) {
        return stored(mha, &query, memory, is_causal, seen, computed);
    }
    let ([items, queries, _], keys) = (query.dims(), memory[0].dims()[1]);
    let device = query.device();
    let mut input = MhaInput::new(query, memory[0].clone(), memory[1].clone());
    if is_causal {
        let mask = later(queries, keys, &device).unsqueeze::<3>();
        input = input.mask_attn(mask.expand([items, queries, keys]));
    }
    mha.forward(input).context
}

/// Attention whose weights are stored, so that some can be dropped or hidden.
pub(crate) fn stored(
    mha: &MultiHeadAttention,
    query: &Tensor<3>,
    memory: [&Tensor<3>; 2],
    is_causal: bool,
    seen: &Seen,
    computed: Computed,
) -> Tensor<3> {
    let arithmetic = computed.arithmetic;
    let ([items, queries, width], keys) = (query.dims(), memory[0].dims()[1]);
    let heads = |x: Tensor<3>, num: usize| -> Tensor<4> {
        x.reshape([items, num, mha.n_heads, mha.d_k])
            .swap_dims(1, 2)
    };
    let linear = |layer: &Linear, x: &Tensor<3>| numeric::linear(arithmetic, layer, x.clone());
    let q = heads(linear(&mha.query, query), queries);
    let k = heads(linear(&mha.key, memory[0]), keys);
    let v = heads(linear(&mha.value, memory[1]), keys);
    let scores = numeric::matmul(arithmetic, q, k.transpose());
    let mut scores = numeric::divided(scores, f64::from(mha.d_k as u32).sqrt());
    if is_causal {
        let mask = later(queries, keys, &query.device()).reshape([1, 1, queries, keys]);
        let mask = mask.expand([items, mha.n_heads, queries, keys]);
        scores = scores.mask_fill(mask, f64::NEG_INFINITY);
    }
    let weights = seen.clear(numeric::softmax(arithmetic, seen.hide(scores)));
    let weights = computed.dropped(&mha.dropout, weights);
    let context = numeric::matmul(arithmetic, weights, v);
    let context = context.swap_dims(1, 2).reshape([items, queries, width]);
    linear(&mha.output, &context)
}

/// Some encoders of a stack over \[items, length, width\].
pub fn encoder(
    computed: Computed,
    layers: &[TransformerEncoderLayer],
    stack: &Transformer,
    sequence: Tensor<3>,
    masks: &Masks,
) -> Tensor<3> {
    let seen = masks.seen();
    let mut x = sequence;
    for layer in layers {
        let before = if layer.norm_first {
            computed.normalized(&layer.norm_2, x.clone())
        } else {
            x.clone()
        };
        let of = before.clone();
        let attended = attended(computed, &layer.mha, before, [&of; 2], stack.causal, &seen);
        x = x + computed.dropped(&layer.dropout, attended);
        let before = computed.normalized(&layer.norm_1, x.clone());
        if !layer.norm_first {
            x = before.clone();
        }
        let fed = computed.fed_forward(&layer.pwff, stack.activation, before);
        x = x + computed.dropped(&layer.dropout, fed);
        if !layer.norm_first {
            x = computed.normalized(&layer.norm_2, x);
        }
    }
    x
}

/// Some decoders of a stack over \[items, length, width\], which attend to a memory.
pub fn decoder(
    computed: Computed,
    layers: &[TransformerDecoderLayer],
    stack: &Transformer,
    sequence: Tensor<3>,
    memory: &Tensor<3>,
    masks: &Masks,
) -> Tensor<3> {
    let (seen, seen_of_memory) = (masks.seen(), masks.seen_of_memory());
    let mut x = sequence;
    for layer in layers {
        let before = if layer.norm_first {
            computed.normalized(&layer.norm_3, x.clone())
        } else {
            x.clone()
        };
        let of = before.clone();
        let own = attended(
            computed,
            &layer.self_attn,
            before,
            [&of; 2],
            stack.causal,
            &seen,
        );
        x = x + computed.dropped(&layer.dropout, own);
        let before = computed.normalized(&layer.norm_1, x.clone());
        if !layer.norm_first {
            x = before.clone();
        }
        let cross = &layer.cross_attn;
        let crossed = attended(computed, cross, before, [memory; 2], false, &seen_of_memory);
        x = x + computed.dropped(&layer.dropout, crossed);
        let before = computed.normalized(&layer.norm_2, x.clone());
        if !layer.norm_first {
            x = before.clone();
        }
        let fed = computed.fed_forward(&layer.pwff, stack.activation, before);
        x = x + computed.dropped(&layer.dropout, fed);
        if !layer.norm_first {
            x = computed.normalized(&layer.norm_3, x);
        }
    }
    x
}
