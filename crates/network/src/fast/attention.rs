//! Attention, using the parameters of Burn's modules. Attention with dropout in training stores its weights, since
//! those that are never stored cannot be dropped.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::nn::attention::MultiHeadAttention;
use burn::tensor::Tensor;
use runner_core::spec::backend::Arithmetic;
use runner_kernels::attention::{Attention, Visible, backward, forward};

use super::linear::linear;
use super::operation::{self, Back, Operation, apply_3, contiguous, numbers, tensor};
use super::rounding;
use crate::masks::Seen;
use crate::transformer::{Computed, stored};

/// Operands are queries, keys and values. Keys with the label 0 get no weight, and documents are kept apart.
#[derive(Clone, Debug)]
struct Heads(Attention, [Option<Arc<Vec<u32>>>; 2]);

impl Heads {
    fn visible(&self) -> Visible<'_> {
        let [keys, documents] = [0, 1].map(|at| self.1[at].as_ref().map(|all| all.as_slice()));
        Visible { keys, documents }
    }
}

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
        let (output, sums) = forward(
            &self.0,
            self.visible(),
            numbers(&q),
            numbers(&k),
            numbers(&v),
        );
        (tensor(output, q.shape()), is_kept.then(|| Arc::new(sums)))
    }

    fn backward(&self, mut back: Back<Self::Kept, 3>) -> [Option<FlexTensor>; 3] {
        let [q, k, v] = [0, 1, 2].map(|at| back.operand(at));
        let found = backward(
            &self.0,
            self.visible(),
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

/// Attention of \[items, queries, width\] over keys and values \[items, keys, width\], of which some are seen, if it is
/// supported here.
pub fn multi_head(
    mha: &MultiHeadAttention,
    query: &Tensor<3>,
    memory: [&Tensor<3>; 2],
    is_causal: bool,
    seen: &Seen,
    arithmetic: Arithmetic,
) -> Option<Tensor<3>> {
    let is_dropping = mha.dropout.prob > 0.0 && query.device().is_autodiff();
    if !is_ours(query) || !memory.into_iter().all(is_ours) || mha.quiet_softmax {
        return None;
    }
    if is_dropping {
        let computed = Computed {
            is_fast: true,
            arithmetic,
        };
        return Some(stored(mha, query, memory, is_causal, seen, computed));
    }
    let [items, queries, _] = query.dims();
    let sizes = Attention {
        items,
        heads: mha.n_heads,
        queries,
        keys: memory[0].dims()[1],
        width: mha.d_k,
        is_causal,
        arithmetic: rounding(arithmetic),
    };
    let q = linear(&mha.query, query.clone(), arithmetic);
    let k = linear(&mha.key, memory[0].clone(), arithmetic);
    let v = linear(&mha.value, memory[1].clone(), arithmetic);
    Some(linear(
        &mha.output,
        apply_3((q, k, v), Heads(sizes, seen.labels())),
        arithmetic,
    ))
}

/// The context of queries \[items, heads, positions, size\] of sequences whose documents are kept apart, with keys and
/// values that heads share, \[items, positions, heads * size\], if it is supported here.
pub fn of_documents(
    [query, keys, values]: [&Tensor<4>; 3],
    is_causal: bool,
    seen: &Seen,
    arithmetic: Arithmetic,
) -> Option<Tensor<3>> {
    if !operation::is_ours(query) || query.shape().num_elements() == 0 {
        return None;
    }
    let [items, heads, positions, width] = query.dims();
    let rows = |x: Tensor<4>| x.swap_dims(1, 2).reshape([items, positions, heads * width]);
    let repeated = |x: &Tensor<4>| {
        let shared = x.dims()[1];
        let x = x.clone().unsqueeze_dim::<5>(2);
        let x = x.expand([items, shared, heads / shared, positions, width]);
        rows(x.reshape([items, heads, positions, width]))
    };
    let sizes = Attention {
        items,
        heads,
        queries: positions,
        keys: positions,
        width,
        is_causal,
        arithmetic: rounding(arithmetic),
    };
    let operands = (rows(query.clone()), repeated(keys), repeated(values));
    Some(apply_3(operands, Heads(sizes, seen.labels())))
}
