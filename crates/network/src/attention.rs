//! Attention with the options of language models, for a sequence at once or token by token.

use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear, LinearConfig, RmsNorm, RmsNormConfig};
use burn::tensor::Device;
use burn::tensor::{Bool, Int, Tensor, TensorData};

use crate::documents;
use crate::dropout::dropped;
use crate::masks::Seen;
use crate::numeric::{divided, linear, matmul, softmax};
use crate::past::{KeysValues, Past, each_text, few};
use crate::rms_norm;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::attention::{Attention, Rotary};

/// Attention in which heads of queries share keys and values.
#[derive(Module, Debug)]
pub struct GroupedAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    query_norm: Option<RmsNorm>,
    key_norm: Option<RmsNorm>,
    dropout: Dropout,
    #[module(skip)]
    settings: Attention,
    #[module(skip)]
    head_dim: usize,
    #[module(skip)]
    arithmetic: Arithmetic,
}

impl GroupedAttention {
    /// For queries, keys and values of these widths, with uninitialized weights.
    pub fn new(
        settings: &Attention,
        [width, wide, values]: [usize; 3],
        arithmetic: Arithmetic,
        device: &Device,
    ) -> Self {
        let head_dim = settings.head_dim(width);
        let linear = |inputs: usize, outputs: usize| {
            let config = LinearConfig::new(inputs, outputs).with_bias(settings.bias);
            config.init(device)
        };
        let norm = || {
            let config = RmsNormConfig::new(head_dim).with_epsilon(Attention::EPSILON);
            settings.qk_norm.then(|| config.init(device))
        };
        let (queries, keys) = (
            settings.num_heads * head_dim,
            settings.num_kv_heads * head_dim,
        );
        Self {
            query: linear(width, queries),
            key: linear(wide, keys),
            value: linear(values, keys),
            output: linear(queries, width),
            query_norm: norm(),
            key_norm: norm(),
            dropout: DropoutConfig::new(settings.dropout).init(),
            settings: settings.clone(),
            head_dim,
            arithmetic,
        }
    }

    /// The outputs of \[items, queries, width\] that attend to keys and values \[items, keys, width\], of which some
    /// are seen.
    pub fn forward(
        &self,
        attended: [Tensor<3>; 3],
        seen: &Seen,
        positions: Positions<'_>,
        is_fast: bool,
    ) -> Tensor<3> {
        let projected = self.projected(attended, positions);
        #[cfg(feature = "flex")]
        if is_fast
            && seen.has_documents()
            && let Some(context) = self.of_documents(&projected, seen)
        {
            return linear(self.arithmetic, &self.output, context);
        }
        let context = self.attend(projected, None, seen, is_fast).0;
        linear(self.arithmetic, &self.output, context)
    }

    /// The outputs of tokens of some texts, which follow those of `pasts`; `first` is the position of the first token of
    /// each text, from which positions count.
    pub fn step(&self, x: Tensor<3>, first: &[usize], pasts: &mut [&mut Past]) -> Tensor<3> {
        let arithmetic = self.arithmetic;
        let of = |layer: &Linear| few(arithmetic, layer, x.clone());
        let projected = [&self.query, &self.key, &self.value].map(of);
        let context = each_text(projected, pasts, |projected, at, past| {
            let placed = self.placed(projected, Positions::From(first[at]));
            let change = |head: usize, scores: &mut [f32]| self.change(head, scores);
            past.context(placed, arithmetic, change, |placed, earlier| {
                self.attend(placed, earlier, &Seen::default(), false)
            })
        });
        few(arithmetic, &self.output, context)
    }

    /// Queries, keys and values by heads, rotated by their positions.
    fn projected(
        &self,
        [x, keys, values]: [Tensor<3>; 3],
        positions: Positions<'_>,
    ) -> [Tensor<4>; 3] {
        let of = |layer: &Linear, x: Tensor<3>| linear(self.arithmetic, layer, x);
        let projected = [
            of(&self.query, x),
            of(&self.key, keys),
            of(&self.value, values),
        ];
        self.placed(projected, positions)
    }

    /// The same of projected tokens.
    fn placed(
        &self,
        [query, keys, values]: [Tensor<3>; 3],
        positions: Positions<'_>,
    ) -> [Tensor<4>; 3] {
        let Attention {
            num_heads,
            num_kv_heads,
            ref rotary,
            ..
        } = self.settings;
        let arithmetic = self.arithmetic;
        let normed = |norm: &Option<RmsNorm>, x: Tensor<4>| match norm {
            Some(norm) => unit(norm, x, arithmetic),
            None => x,
        };
        let placed = |x: Tensor<4>| match rotary {
            Some(rotary) => rotated(rotary, x, positions, arithmetic),
            None => x,
        };
        let query = placed(normed(&self.query_norm, self.heads(query, num_heads)));
        let keys = placed(normed(&self.key_norm, self.heads(keys, num_kv_heads)));
        [query, keys, self.heads(values, num_kv_heads)]
    }

    /// The context of documents by runner's kernel, which stores no scores, if it has the settings.
    #[cfg(feature = "flex")]
    fn of_documents(
        &self,
        [query, keys, values]: &[Tensor<4>; 3],
        seen: &Seen,
    ) -> Option<Tensor<3>> {
        let is_dropping = self.dropout.prob > 0.0 && query.device().is_autodiff();
        let Attention {
            alibi,
            window,
            causal,
            ..
        } = self.settings;
        if alibi || window.is_some() || is_dropping {
            return None;
        }
        crate::fast::attention::of_documents([query, keys, values], causal, seen, self.arithmetic)
    }

    /// The context of each query, \[items, queries, heads * size\], with the keys and values of all tokens.
    fn attend(
        &self,
        [query, mut keys, mut values]: [Tensor<4>; 3],
        earlier: Option<KeysValues>,
        seen: &Seen,
        is_fast: bool,
    ) -> (Tensor<3>, KeysValues) {
        let Attention {
            num_heads,
            num_kv_heads,
            ..
        } = self.settings;
        let arithmetic = self.arithmetic;
        let before = earlier.as_ref().map_or(0, |earlier| earlier.keys.dims()[2]);
        if let Some(earlier) = earlier {
            keys = Tensor::cat(vec![earlier.keys, keys], 2);
            values = Tensor::cat(vec![earlier.values, values], 2);
        }
        let [items, _, num, size] = query.dims();
        let total = keys.dims()[2];
        // The queries that share a head of keys follow each other.
        let rows = num_heads / num_kv_heads * num;
        let query = query.reshape([items, num_kv_heads, rows, size]);
        let scores = matmul(arithmetic, query, keys.clone().transpose());
        let scores = divided(scores, (size as f64).sqrt());
        let scores = self.masked(scores.reshape([items, num_heads, num, total]), before);
        let weights = seen.clear(softmax(arithmetic, seen.hide(scores)));
        let weights = dropped(weights, self.dropout.prob, is_fast);
        let weights = weights.reshape([items, num_kv_heads, rows, total]);
        let context = matmul(arithmetic, weights, values.clone());
        let context = context.reshape([items, num_heads, num, size]);
        let context = context
            .swap_dims(1, 2)
            .reshape([items, num, num_heads * size]);
        (context, KeysValues { keys, values })
    }

    /// Changes the scores of the last token's query as [`masked`](Self::masked) does.
    fn change(&self, head: usize, scores: &mut [f32]) {
        let last = scores.len() as i64 - 1;
        if self.settings.alibi {
            let slope = self.settings.slopes(self.arithmetic)[head] as f32;
            for (at, score) in scores.iter_mut().enumerate() {
                *score -= slope * (last - at as i64) as f32;
            }
        }
        if self.settings.window.is_some() {
            for (at, score) in scores.iter_mut().enumerate() {
                if self.settings.is_hidden(last - at as i64) {
                    *score = f32::NEG_INFINITY;
                }
            }
        }
    }

    fn heads(&self, x: Tensor<3>, num: usize) -> Tensor<4> {
        let [items, length, _] = x.dims();
        x.reshape([items, length, num, self.head_dim])
            .swap_dims(1, 2)
    }

    /// Scores of \[items, heads, queries, keys\] that fall with the distance, and are -∞ where nothing is attended to.
    fn masked(&self, scores: Tensor<4>, before: usize) -> Tensor<4> {
        let dims = scores.dims();
        let [_, num_heads, num, total] = dims;
        let device = scores.device();
        let distance = |at: usize| (before + at / total) as i64 - (at % total) as i64;
        let mut scores = scores;
        if self.settings.alibi {
            let dtype = scores.dtype();
            let tensor = |values: Vec<f64>, dims: [usize; 4]| {
                Tensor::<4>::from_data(TensorData::new(values, dims), (&device, dtype))
            };
            let distances = (0..num * total).map(|at| -(distance(at).abs() as f64));
            let distances = tensor(distances.collect(), [1, 1, num, total]);
            let slopes = tensor(self.settings.slopes(self.arithmetic), [1, num_heads, 1, 1]);
            scores = scores.add(distances.mul(slopes));
        }
        if !self.settings.causal && self.settings.window.is_none() {
            return scores;
        }
        let is_hidden = |at: usize| self.settings.is_hidden(distance(at));
        let hidden: Vec<bool> = (0..num * total).map(is_hidden).collect();
        let hidden =
            Tensor::<4, Bool>::from_data(TensorData::new(hidden, [1, 1, num, total]), &device);
        scores.mask_fill(hidden.expand(dims), f64::NEG_INFINITY)
    }
}

/// The norm of queries or keys.
fn unit(norm: &RmsNorm, x: Tensor<4>, arithmetic: Arithmetic) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if arithmetic.is_portable()
        && let Some(output) = crate::fast::norm::rms(norm, &x)
    {
        return output;
    }
    let _ = arithmetic;
    rms_norm::forward(norm, x)
}

/// The positions of a sequence.
#[derive(Clone, Copy, Debug)]
pub enum Positions<'a> {
    /// From this one on.
    From(usize),
    /// Those in the documents with these numbers, \[items, positions\].
    In(&'a Tensor<2, Int>),
}

/// Queries or keys of some positions, rotated: the first half of the features with the second.
fn rotated(
    rotary: &Rotary,
    x: Tensor<4>,
    positions: Positions<'_>,
    arithmetic: Arithmetic,
) -> Tensor<4> {
    let [_, _, num, size] = x.dims();
    let half = size / 2;
    let first = match positions {
        Positions::From(first) => first,
        Positions::In(_) => 0,
    };
    let frequencies = rotary.frequencies(size, first + num, arithmetic);
    let angle = |at: usize| rotary.angle(first + at / half, frequencies[at % half]);
    let factor = rotary.attention_factor();
    let table = |of: fn(Arithmetic, f64) -> f64| {
        let values: Vec<f64> = (0..num * half)
            .map(|at| of(arithmetic, angle(at)) * factor)
            .collect();
        let data = TensorData::new(values, [num, half]);
        let table = Tensor::<2>::from_data(data, (&x.device(), x.dtype()));
        match positions {
            Positions::From(_) => table.reshape([1, 1, num, half]),
            Positions::In(numbers) => documents::rows(table, numbers).unsqueeze_dim::<4>(1),
        }
    };
    let (cos, sin) = (table(Arithmetic::cos), table(Arithmetic::sin));
    let (first, second) = (x.clone().narrow(3, 0, half), x.narrow(3, half, half));
    let turned_first = first
        .clone()
        .mul(cos.clone())
        .sub(second.clone().mul(sin.clone()));
    let turned_second = second.mul(cos).add(first.mul(sin));
    Tensor::cat(vec![turned_first, turned_second], 3)
}

#[cfg(all(test, feature = "flex"))]
mod tests;
