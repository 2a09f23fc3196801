//! The targets of a batch on the device.

use burn::tensor::{DType, Int, Tensor};

use crate::tensor::DynTensor;

/// The targets of a batch.
#[derive(Clone, Debug)]
pub enum Targets {
    /// The class of each position (one for a whole item, tokens, pixels), \[batch, positions\]; -1 for an ignored
    /// position.
    Classes(Tensor<2, Int>),
    /// Values, or labels that are 0 or 1, \[batch, values\].
    Values(Tensor<2>),
}

impl Targets {
    /// The targets of the items at some positions, in that order.
    pub fn select(self, places: Tensor<1, Int>) -> Self {
        match self {
            Targets::Classes(classes) => Targets::Classes(classes.select(0, places)),
            Targets::Values(values) => Targets::Values(values.select(0, places)),
        }
    }

    /// The first ones.
    pub fn first(&self, num: usize) -> Self {
        match self {
            Targets::Classes(classes) => Targets::Classes(classes.clone().narrow(0, 0, num)),
            Targets::Values(values) => Targets::Values(values.clone().narrow(0, 0, num)),
        }
    }

    /// The targets as numbers of a network's input, \[batch, shape\]: a channel for each class, which is 1 where the
    /// target is that class.
    pub fn as_condition(&self, shape: &[usize], precision: DType) -> DynTensor {
        let values = match self {
            Targets::Values(values) => values.clone().cast(precision),
            Targets::Classes(classes) => {
                let [num, positions] = classes.dims();
                let wide = [num, shape[0], positions];
                let each = Tensor::<1, Int>::arange(0..shape[0] as i64, &classes.device());
                let each: Tensor<3, Int> = each.reshape([1, shape[0], 1]).expand(wide);
                let classes: Tensor<3, Int> = classes.clone().reshape([num, 1, positions]);
                let is = classes.expand(wide).equal(each);
                let flat: Tensor<2> = is.float().reshape([num, shape[0] * positions]);
                flat.cast(precision)
            }
        };
        let num = values.dims()[0];
        DynTensor::R2(values).reshape(&[&[num], shape].concat())
    }

    /// The same, detached from the graph.
    pub fn without_autodiff(self) -> Self {
        match self {
            Targets::Classes(classes) => Targets::Classes(classes.without_autodiff()),
            Targets::Values(values) => Targets::Values(values.without_autodiff()),
        }
    }
}
