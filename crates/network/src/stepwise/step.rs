//! A layer of a language model computed for tokens that follow others.

use burn::nn::attention::MultiHeadAttention;
use burn::nn::transformer::TransformerEncoderLayer;
use burn::nn::{Linear, LstmState, RnnState, SwiGlu};
use burn::tensor::activation::{silu, softmax};
use burn::tensor::{Bool, Tensor};

use crate::layer::{Layer, positions};
use crate::past::{KeysValues, Past, each_text, few};
use crate::tensor::DynTensor;
use runner_core::check::network::Layer as LayerPlan;
use runner_core::spec::backend::Arithmetic;

/// The cache of a layer.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for each layer, and each token would pay for a box"
)]
pub(super) enum Kept {
    #[default]
    Nothing,
    Hidden(Tensor<2>),
    Lstm(Tensor<2>, Tensor<2>),
    Attention(Vec<Past>),
}

impl Kept {
    fn hidden(&mut self) -> Option<Tensor<2>> {
        match std::mem::take(self) {
            Kept::Hidden(hidden) => Some(hidden),
            _ => None,
        }
    }

    /// The pasts of so many layers of attention.
    fn pasts(&mut self, num: usize) -> &mut [Past] {
        if !matches!(self, Kept::Attention(_)) {
            *self = Kept::Attention(vec![Past::Nothing; num]);
        }
        match self {
            Kept::Attention(pasts) => pasts,
            _ => unreachable!("it was just set"),
        }
    }
}

/// A layer's output for the tokens of some texts that follow the first `before` ones of each.
pub(super) fn step(
    layer: &Layer,
    plan: &LayerPlan,
    mut inputs: Vec<DynTensor>,
    before: &[usize],
    kept: &mut [&mut Kept],
) -> DynTensor {
    let arithmetic = plan.arithmetic;
    let mut each = |x: Tensor<3>, of: &dyn Fn(Tensor<3>, usize, &mut Kept) -> Tensor<3>| {
        if let [kept] = kept {
            return DynTensor::R3(of(x, before[0], kept));
        }
        let texts = kept.iter_mut().zip(before).enumerate();
        let texts = texts.map(|(at, (kept, before))| of(x.clone().narrow(0, at, 1), *before, kept));
        DynTensor::R3(Tensor::cat(texts.collect(), 0))
    };
    match layer {
        Layer::Positional(encoding) => each(inputs.remove(0).r3(), &|x, before, _| {
            let [batch, num, width] = x.dims();
            let zeros = Tensor::<3>::zeros([batch, before + num, width], &x.device());
            x + positions(encoding, zeros, arithmetic).narrow(1, before, num)
        }),
        Layer::Positions(learned) => each(inputs.remove(0).r3(), &|x, before, _| {
            learned.added_from(before, x, arithmetic)
        }),
        Layer::Rotary(encoding) => each(inputs.remove(0).r3(), &|x, before, _| {
            encoding.apply(x, before)
        }),
        Layer::Rnn(rnn) => each(inputs.remove(0).r3(), &|x, _, kept| {
            let (outputs, state) = rnn.forward(x, kept.hidden().map(RnnState::new));
            *kept = Kept::Hidden(state.hidden);
            outputs
        }),
        Layer::Gru(gru) => each(inputs.remove(0).r3(), &|x, _, kept| {
            let outputs = gru.forward(x, kept.hidden());
            let num = outputs.dims()[1];
            *kept = Kept::Hidden(outputs.clone().narrow(1, num - 1, 1).squeeze_dim(1));
            outputs
        }),
        Layer::Lstm(lstm) => each(inputs.remove(0).r3(), &|x, _, kept| {
            let state = match std::mem::take(kept) {
                Kept::Lstm(cell, hidden) => Some(LstmState::new(cell, hidden)),
                _ => None,
            };
            let (outputs, state) = lstm.forward(x, state);
            *kept = Kept::Lstm(state.cell, state.hidden);
            outputs
        }),
        Layer::Attention(attention) => {
            let mut pasts: Vec<_> = kept.iter_mut().map(|kept| &mut kept.pasts(1)[0]).collect();
            DynTensor::R3(attend(
                attention,
                inputs.remove(0).r3(),
                &mut pasts,
                arithmetic,
            ))
        }
        Layer::GroupedAttention(attention) => {
            let mut pasts: Vec<_> = kept.iter_mut().map(|kept| &mut kept.pasts(1)[0]).collect();
            DynTensor::R3(attention.step(inputs.remove(0).r3(), before, &mut pasts))
        }
        Layer::Encoder(encoder) => {
            let num = encoder.layers.len();
            let mut x = inputs.remove(0).r3();
            for (at, layer) in encoder.layers.iter().enumerate() {
                let pasts = kept.iter_mut().map(|kept| &mut kept.pasts(num)[at]);
                x = encode(layer, x, &mut pasts.collect::<Vec<_>>(), arithmetic);
            }
            DynTensor::R3(x)
        }
        Layer::Linear(linear) if is_few(&inputs[0], arithmetic) => {
            DynTensor::R3(few(arithmetic, linear, inputs.remove(0).r3()))
        }
        Layer::Swiglu(swiglu) if is_few(&inputs[0], arithmetic) => {
            DynTensor::R3(gated(swiglu, inputs.remove(0).r3(), arithmetic))
        }
        _ => layer.forward(plan, inputs),
    }
}

/// Whether a layer has few rows, for which it has another kernel.
fn is_few(input: &DynTensor, arithmetic: Arithmetic) -> bool {
    let _ = arithmetic;
    match input {
        #[cfg(feature = "flex")]
        DynTensor::R3(x) => crate::fast::thin::suits(x, arithmetic),
        _ => false,
    }
}

fn gated(swiglu: &SwiGlu, x: Tensor<3>, arithmetic: Arithmetic) -> Tensor<3> {
    let gate = silu(few(arithmetic, &swiglu.linear_inner, x.clone()));
    gate.mul(few(arithmetic, &swiglu.linear_outer, x))
}

/// A layer of an encoder, as in [`TransformerEncoderLayer::forward`].
fn encode(
    layer: &TransformerEncoderLayer,
    x: Tensor<3>,
    pasts: &mut [&mut Past],
    arithmetic: Arithmetic,
) -> Tensor<3> {
    let feed = |x: Tensor<3>| {
        let layer = &layer.pwff;
        let inner = few(arithmetic, &layer.linear_inner, x);
        few(
            arithmetic,
            &layer.linear_outer,
            layer.activation.forward(inner),
        )
    };
    let normed = if layer.norm_first {
        layer.norm_2.forward(x.clone())
    } else {
        x.clone()
    };
    let x = x + attend(&layer.mha, normed, pasts, arithmetic);
    if layer.norm_first {
        let fed = feed(layer.norm_1.forward(x.clone()));
        x + fed
    } else {
        let x = layer.norm_1.forward(x);
        layer.norm_2.forward(x.clone() + feed(x))
    }
}

/// Attention of new tokens to all tokens of their texts up to themselves.
fn attend(
    attention: &MultiHeadAttention,
    x: Tensor<3>,
    pasts: &mut [&mut Past],
    arithmetic: Arithmetic,
) -> Tensor<3> {
    let of = |layer: &Linear| few(arithmetic, layer, x.clone());
    let projected = [&attention.query, &attention.key, &attention.value].map(of);
    let context = each_text(projected, pasts, |projected, _, past| {
        let heads = projected.map(|of| -> Tensor<4> {
            let [batch, num, _] = of.dims();
            of.reshape([batch, num, attention.n_heads, attention.d_k])
                .swap_dims(1, 2)
        });
        past.context(
            heads,
            arithmetic,
            |_, _| {},
            |heads, earlier| causal(attention, heads, earlier),
        )
    });
    few(arithmetic, &attention.output, context)
}

/// The context of several tokens of a text, and the keys and values of all.
fn causal(
    attention: &MultiHeadAttention,
    [query, mut keys, mut values]: [Tensor<4>; 3],
    earlier: Option<KeysValues>,
) -> (Tensor<3>, KeysValues) {
    if let Some(earlier) = earlier {
        keys = Tensor::cat(vec![earlier.keys, keys], 2);
        values = Tensor::cat(vec![earlier.values, values], 2);
    }
    let [batch, heads, num, size] = query.dims();
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
    let context = context.swap_dims(1, 2).reshape([batch, num, heads * size]);
    (context, KeysValues { keys, values })
}
