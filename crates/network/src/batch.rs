//! The items of a step on a device.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use runner_core::data::{Served, TargetValues, Values};

use crate::targets::Targets;
use crate::tensor::DynTensor;

/// The items of a step.
#[derive(Clone, Debug)]
pub struct Batch {
    /// \[batch, item shape\].
    pub inputs: DynTensor,
    /// The targets.
    pub targets: Targets,
}

/// Items on a device, \[batch, item shape\].
pub fn inputs(values: Values, num_items: usize, shape: &[usize], device: &Device) -> DynTensor {
    let shape = [&[num_items], shape].concat();
    match values {
        Values::Floats(values) => DynTensor::from_values(values, &shape, device),
        Values::Tokens(tokens) => DynTensor::from_data(TensorData::new(tokens, shape), device),
    }
}

impl Batch {
    /// Puts items of a shape on a device. Those of an autoencoder are their own targets.
    pub fn new(items: Served, shape: &[usize], is_autoencoding: bool, device: &Device) -> Self {
        let num = items.num_items;
        let inputs = inputs(items.values, num, shape, device);
        let targets = match items.targets {
            _ if is_autoencoding => Targets::Values(inputs.clone().flatten()),
            TargetValues::Classes(classes) => {
                let shape = [num, classes.len() / num];
                Targets::Classes(Tensor::from_data(TensorData::new(classes, shape), device))
            }
            TargetValues::Floats(values) => {
                let shape = [num, values.len() / num];
                Targets::Values(Tensor::from_data(TensorData::new(values, shape), device))
            }
        };
        Self { inputs, targets }
    }

    /// The items at some positions, in that order.
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

/// The end of each piece of each batch, as positions in the order. `size` is that of a batch's pieces.
pub fn piece_ends(
    places: Range<usize>,
    batch_size: usize,
    size: impl Fn(usize) -> usize,
) -> Vec<usize> {
    let batches = places.clone().step_by(batch_size).enumerate();
    batches
        .flat_map(|(batch, from)| {
            let to = (from + batch_size).min(places.end);
            let size = size(batch);
            (from..to).step_by(size).map(move |at| (at + size).min(to))
        })
        .collect()
}
