//! Masks of positions: from items, and as layers apply them.

mod stepped;
#[cfg(all(test, feature = "flex"))]
mod tests;

pub use stepped::Stepped;

use std::sync::Arc;

use burn::tensor::{Bool, DType, Int, Tensor};

use crate::documents;
use crate::numeric::{mean_axis, sum_axis};
use crate::tensor::DynTensor;
use runner_core::check::network::Layer as LayerPlan;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::layer::Reduction;
use runner_core::spec::model::layer_spec::MaskKey;

/// A score that does not count: not -infinity, whose softmax is not a number where no score counts.
pub(crate) fn least_score(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => -6e4,
        _ => -1e30,
    }
}

/// The masks of a layer, \[items, positions\]: 0 for padding.
#[derive(Clone, Debug, Default)]
pub struct Masks {
    /// Of its sequence, or of the sequence that it attends to.
    pub own: Option<Tensor<2>>,
    /// Of the second input of a decoder.
    pub memory: Option<Tensor<2>>,
    /// The numbers of the documents that are kept apart, \[items, positions\].
    pub documents: Option<Tensor<2, Int>>,
}

impl Masks {
    /// Takes the masks from the end of a layer's inputs.
    pub fn take(plan: &LayerPlan, inputs: &mut Vec<DynTensor>) -> Self {
        let documents = documents::take(plan, inputs);
        let of = |key: MaskKey| {
            let at = plan.mask(key)?;
            match &inputs[at] {
                DynTensor::R2(mask) => Some(mask.clone()),
                other => panic!("a mask was planned, found {:?}", other.dims()),
            }
        };
        let masks = Self {
            own: of(MaskKey::Mask),
            memory: of(MaskKey::MemoryMask),
            documents,
        };
        inputs.truncate(plan.values().len());
        masks
    }

    /// Which positions of its sequence a layer attends to.
    pub fn seen(&self) -> Seen {
        Seen {
            keys: self.own.clone(),
            documents: self.documents.clone(),
        }
    }

    /// Which positions of its second input a layer attends to.
    pub fn seen_of_memory(&self) -> Seen {
        Seen {
            keys: self.memory.clone(),
            documents: None,
        }
    }
}

/// The keys that get weight.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// \[items, keys\]: 0 for those that never do.
    keys: Option<Tensor<2>>,
    /// \[items, positions\]: positions attend only to those of the same number.
    documents: Option<Tensor<2, Int>>,
}

impl Seen {
    /// Whether all do.
    pub fn is_all(&self) -> bool {
        self.keys.is_none() && self.documents.is_none()
    }

    /// Whether documents are kept apart.
    pub fn has_documents(&self) -> bool {
        self.documents.is_some()
    }

    /// The same in host memory: the mask of the keys, and the numbers of documents.
    pub fn labels(&self) -> [Option<Arc<Vec<u32>>>; 2] {
        let mask = |mask| Arc::new(real(mask).map(u32::from).collect());
        let numbers = self.documents.as_ref();
        [
            self.keys.as_ref().map(mask),
            numbers.map(documents::in_memory),
        ]
    }

    /// Scores of \[items, heads, queries, keys\] with hidden keys at the end of the range, if there are any.
    pub fn hide(&self, scores: Tensor<4>) -> Tensor<4> {
        match self.hidden(scores.dims()) {
            Some(hidden) => {
                let least = least_score(scores.dtype());
                scores.mask_fill(hidden, least)
            }
            None => scores,
        }
    }

    /// Weights of the same shape with zeros for hidden keys.
    pub fn clear(&self, weights: Tensor<4>) -> Tensor<4> {
        match self.hidden(weights.dims()) {
            Some(hidden) => weights.mask_fill(hidden, 0.0),
            None => weights,
        }
    }

    fn hidden(&self, dims: [usize; 4]) -> Option<Tensor<4, Bool>> {
        let [items, _, _, keys] = dims;
        let mask = self.keys.as_ref();
        let mask = mask.map(|mask| padded(mask).reshape([items, 1, 1, keys]).expand(dims));
        let others = self.documents.as_ref().map(|numbers| {
            let [of_queries, of_keys] = [[items, 1, keys, 1], [items, 1, 1, keys]]
                .map(|dims| numbers.clone().reshape(dims).expand([items, 1, keys, keys]));
            of_queries.not_equal(of_keys).expand(dims)
        });
        match (mask, others) {
            (Some(mask), Some(others)) => Some(mask.bool_or(others)),
            (mask, others) => mask.or(others),
        }
    }
}

/// Which positions of a mask are not padding, item by item.
pub fn real(mask: &Tensor<2>) -> impl Iterator<Item = bool> {
    let data = mask.clone().into_data();
    let values: Vec<f32> = data.iter::<f32>().collect();
    values.into_iter().map(|value| value != 0.0)
}

/// Which positions of a mask are padding.
pub fn padded(mask: &Tensor<2>) -> Tensor<2, Bool> {
    mask.clone().equal_elem(0.0)
}

/// The mask of items: tokens that are not `padding`, or the positions of a series up to the last one with a number that
/// is not. All are real if there is no padding.
pub fn of_items(items: DynTensor, padding: Option<f64>) -> Tensor<2> {
    let differs = match items {
        DynTensor::Tokens(tokens) => {
            return match padding {
                Some(token) => tokens.not_equal_elem(token as i64).float(),
                None => tokens.ones_like().float(),
            };
        }
        DynTensor::R2(series) => series.not_equal_elem(padding.unwrap_or(0.0)).int(),
        DynTensor::R3(series) => {
            let differs = series.not_equal_elem(padding.unwrap_or(0.0)).int();
            differs.max_dim(2).squeeze_dim(2)
        }
        other => panic!("sequences were planned, found {:?}", other.dims()),
    };
    let following = differs.flip([1]).cumsum(1).flip([1]);
    following.greater_elem(0).float()
}

/// A reduction along an axis, which keeps a size of 1, over the positions of a mask; 0 for an item without any.
pub fn reduced<const D: usize>(
    operation: Reduction,
    x: Tensor<D>,
    axis: usize,
    mask: &Tensor<2>,
    arithmetic: Arithmetic,
) -> Tensor<D> {
    let dims = x.dims();
    let mut shape = [1; D];
    (shape[0], shape[axis]) = (dims[0], dims[axis]);
    let along = shape;
    let around = |mask: Tensor<2, Bool>| mask.reshape(along).expand(dims);
    let padding = padded(mask);
    let num = padding.clone().bool_not().int().sum_dim(1);
    shape[axis] = 1;
    match operation {
        Reduction::Sum => sum_axis(arithmetic, x.mask_fill(around(padding), 0.0), axis),
        Reduction::Mean => {
            let num = num.clamp_min(1).float().cast(x.dtype()).reshape(shape);
            let sums = sum_axis(arithmetic, x.mask_fill(around(padding), 0.0), axis);
            let dims = sums.dims();
            sums / num.expand(dims)
        }
        Reduction::Max => {
            let largest = x
                .mask_fill(around(padding), f64::NEG_INFINITY)
                .max_dim(axis);
            let dims = largest.dims();
            let is_empty = num.equal_elem(0).reshape(shape).expand(dims);
            largest.mask_fill(is_empty, 0.0)
        }
        Reduction::Last => {
            let [items, length] = mask.dims();
            let places = Tensor::<1, Int>::arange(1..1 + length as i64, &mask.device());
            let places = places.reshape([1, length]).expand([items, length]);
            let places = places.mask_fill(padding.clone(), 0);
            let last = places.clone().max_dim(1).expand([items, length]);
            let others = places.not_equal(last).bool_or(padding);
            sum_axis(arithmetic, x.mask_fill(around(others), 0.0), axis)
        }
    }
}

/// The same over all positions.
pub fn reduced_whole<const D: usize>(
    operation: Reduction,
    x: Tensor<D>,
    axis: usize,
    arithmetic: Arithmetic,
) -> Tensor<D> {
    match operation {
        Reduction::Mean => mean_axis(arithmetic, x, axis),
        Reduction::Max => x.max_dim(axis),
        Reduction::Sum => sum_axis(arithmetic, x, axis),
        Reduction::Last => {
            let length = x.dims()[axis];
            x.narrow(axis, length - 1, 1)
        }
    }
}
