//! Embedding lookup.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::nn::Embedding;
use burn::tensor::{Int, Shape, Tensor};
use runner_kernels::embedding::{gather, scatter};

use super::operation::{Back, Operation, apply_1, contiguous, is_ours, numbers, sizes, tensor};

/// The operand is the table, \[tokens, width\].
#[derive(Clone, Debug)]
struct Rows {
    tokens: Arc<Vec<usize>>,
    /// Items, and tokens of each.
    shape: [usize; 2],
}

impl Operation<1> for Rows {
    /// The table's shape.
    type Kept = Shape;

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [table]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<Shape>) {
        let table = contiguous(table);
        let width = sizes(&table)[1];
        let rows = gather(numbers(&table), width, &self.tokens);
        let [items, length] = self.shape;
        let output = tensor(rows, Shape::from([items, length, width]));
        (output, is_kept.then(|| table.shape()))
    }

    fn backward(&self, back: Back<Shape, 1>) -> [Option<FlexTensor>; 1] {
        let (rows, width) = (back.kept[0], back.kept[1]);
        let sums = scatter(numbers(&back.gradient), width, &self.tokens, rows);
        [Some(tensor(sums, back.kept))]
    }
}

/// The row of each token, \[items, length, width\], if it is supported here.
pub fn rows(embedding: &Embedding, tokens: &Tensor<2, Int>) -> Option<Tensor<3>> {
    let table = embedding.weight.val();
    let [rows, width] = table.dims();
    if !is_ours(&table) || tokens.shape().num_elements() == 0 || width == 0 {
        return None;
    }
    let shape = tokens.dims();
    let tokens = tokens.to_data();
    let tokens = tokens.iter::<i64>();
    let known = tokens.map(|token| usize::try_from(token).ok().filter(|token| *token < rows));
    let tokens: Option<Vec<usize>> = known.collect();
    let operation = Rows {
        tokens: Arc::new(tokens?),
        shape,
    };
    Some(apply_1(table, operation))
}
