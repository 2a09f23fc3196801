//! Attention with the options of language models: shared keys and values, rotated positions, windows.

use serde::{Deserialize, Serialize};

use super::decode::MAX_SIZE;
use super::initializer::Initializer;
use super::layer::LayerKind;
pub use super::rotary::{Rotary, RotaryType, Stretch};
use crate::spec::backend::Arithmetic;
use crate::spec::kind::Kind;
use crate::spec::section::Section;

/// A `multi_head_attention` that sets an option beyond those of Vaswani et al. (2017).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attention {
    /// Heads of queries.
    pub num_heads: usize,
    /// Heads of keys and values, each used by as many heads of queries (Ainslie et al., 2023).
    pub num_kv_heads: usize,
    /// Features of a head; those of the input over the heads if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_dim: Option<usize>,
    /// Whether the projections have biases.
    pub bias: bool,
    /// How queries and keys are rotated by their position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotary: Option<Rotary>,
    /// Whether queries and keys of a head are normalized (Dehghani et al., 2023).
    pub qk_norm: bool,
    /// How many positions a position attends to at most, itself included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// Whether scores fall with the distance (Press et al., 2022).
    pub alibi: bool,
    /// Dropout of the weights.
    pub dropout: f64,
    /// Whether a position attends only to itself and earlier ones.
    pub causal: bool,
    /// How weights are initialized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initializer: Option<Initializer>,
}

impl Attention {
    /// Features of a head for an input of this width.
    pub fn head_dim(&self, width: usize) -> usize {
        self.head_dim.unwrap_or(width / self.num_heads)
    }

    /// For ALiBi, by how much the scores of each head fall with the distance: a geometric sequence that ends at 2^-8, and
    /// for other numbers of heads than powers of 2 the one of the next lower power, filled up with every other slope of
    /// the next higher one.
    pub fn slopes(&self, arithmetic: Arithmetic) -> Vec<f64> {
        let of_power = |num: usize| {
            (1..=num).map(move |head| arithmetic.pow(2.0, -8.0 * head as f64 / num as f64))
        };
        let lower = 1 << self.num_heads.ilog2();
        let all = of_power(lower).chain(of_power(2 * lower).step_by(2));
        all.take(self.num_heads).collect()
    }

    /// Whether a position does not attend to another, which is `distance` positions before it.
    pub fn is_hidden(&self, distance: i64) -> bool {
        let is_far = |window| distance.unsigned_abs() >= window as u64;
        (self.causal && distance < 0) || self.window.is_some_and(is_far)
    }

    /// The epsilon of the norms of queries and keys.
    pub const EPSILON: f64 = 1e-6;

    /// The keys of `multi_head_attention` beyond `num_heads`, `dropout` and `causal`: the attention of the paper if none
    /// of them is set.
    pub(super) fn decode(
        s: &mut Section<'_>,
        num_heads: usize,
        dropout: f64,
        causal: bool,
    ) -> LayerKind {
        let size = Kind::Int(1, MAX_SIZE);
        let doc = "Heads of keys and values, each shared by the same number of heads of queries; `num_heads` when not set.";
        let num_kv_heads: Option<usize> = s.field("num_kv_heads", size.clone(), doc).optional();
        let doc = "Features of a head; those of the input divided by `num_heads` when not set.";
        let head_dim = s.field("head_dim", size.clone(), doc).optional();
        let doc = "Whether the projections to queries, keys, values and output have biases.";
        let bias = s.field("bias", Kind::Bool, doc).or(true);
        let rotary = Rotary::decode(s);
        let doc = "Whether queries and keys of each head are divided by their root mean square, with a learned scale.";
        let qk_norm = s.field("qk_norm", Kind::Bool, doc).or(false);
        let doc = "How many positions a position attends to, itself included; with `causal` the last ones, otherwise to both sides.";
        let window = s.field("window", size, doc).optional();
        let doc = "Whether scores fall in proportion to the distance, with a different slope for each head (ALiBi).";
        let alibi = s.field("alibi", Kind::Bool, doc).or(false);
        let initializer = Initializer::decode(s);
        let is_usual = num_kv_heads.is_none_or(|num| num == num_heads)
            && head_dim.is_none()
            && bias
            && rotary.is_none()
            && !qk_norm
            && window.is_none()
            && !alibi;
        if is_usual {
            return LayerKind::MultiHeadAttention {
                num_heads,
                dropout,
                causal,
                initializer,
            };
        }
        LayerKind::GroupedAttention(Self {
            num_heads,
            num_kv_heads: num_kv_heads.unwrap_or(num_heads),
            head_dim,
            bias,
            rotary,
            qk_norm,
            window,
            alibi,
            dropout,
            causal,
            initializer,
        })
    }
}
