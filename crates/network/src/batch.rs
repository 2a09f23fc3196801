//! The items of a step on a device.

use burn::tensor::{Tensor, TensorData};

use crate::targets::Targets;
use crate::tensor::DynTensor;

/// The items of a step.
#[derive(Clone, Debug)]
pub struct Batch {
    /// \[batch, item shape\].
    pub inputs: DynTensor,
    /// What is to be given for it.
    pub targets: Targets,
}

impl Batch {
    /// The items at some places, in their order.
    pub fn pick(&self, places: &[u32]) -> Self {
        let places: Vec<i32> = places.iter().map(|place| *place as i32).collect();
        let num = places.len();
        let data = TensorData::new(places, [num]);
        let places = Tensor::from_data(data, &self.inputs.device());
        Self {
            inputs: self.inputs.clone().select(places.clone()),
            targets: self.targets.clone().select(places),
        }
    }
}
