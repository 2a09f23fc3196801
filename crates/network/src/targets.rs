//! The targets of a batch on the device.

use burn::tensor::{Int, Tensor};

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

    /// The same, detached from the graph.
    pub fn without_autodiff(self) -> Self {
        match self {
            Targets::Classes(classes) => Targets::Classes(classes.without_autodiff()),
            Targets::Values(values) => Targets::Values(values.without_autodiff()),
        }
    }
}
