//! The items of a step on a device.

use std::ops::Range;

use burn::tensor::{Device, Element, Tensor, TensorData};
use runner_core::data::encode::Number;
use runner_core::data::{InputPart, InputPlan, NodeGraph, Served, TargetValues, Values};
use runner_core::plan::RunPlan;

use crate::message::Nodes;
use crate::noise::Noise;
use crate::targets::Targets;
use crate::tensor::DynTensor;

/// The items of a step.
#[derive(Clone, Debug)]
pub struct Batch {
    /// \[batch, item shape\], or a tensor for each named input.
    pub inputs: DynTensor,
    /// The targets.
    pub targets: Targets,
    /// The targets of `[[losses]]` that are other columns.
    pub more_targets: Vec<Targets>,
    /// With what the items are mixed, if they are.
    pub mixed: Option<MixedTargets>,
    /// The weights of the items in the loss, \[batch\], if they differ.
    pub weights: Option<Tensor<1>>,
    /// What items are generated from, in an adversarial training.
    pub noise: Option<Noise>,
    /// What items are generated for, in a conditional one.
    pub condition: Option<Targets>,
}

/// What the targets of the data are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetUse {
    /// They are predicted.
    Predicted,
    /// Nothing: the items are their own targets.
    Unused,
    /// Items are generated for them, and are their own targets.
    Condition,
}

impl TargetUse {
    /// That of a plan.
    pub fn of(plan: &RunPlan) -> Self {
        let pair = plan.strategy.adversarial();
        match pair.map(|pair| pair.conditional) {
            Some(true) => Self::Condition,
            _ if plan.task.kind.is_of_items() => Self::Unused,
            _ => Self::Predicted,
        }
    }
}

/// The other classes of mixed items.
#[derive(Clone, Debug)]
pub struct MixedTargets {
    /// The class of the smaller part of each item.
    pub targets: Targets,
    /// The share of the smaller part, \[batch\].
    pub shares: Tensor<1>,
}

/// Items on a device, \[batch, item shape\], or a tensor for each named input.
pub fn inputs(values: Values, num_items: usize, plan: &InputPlan, device: &Device) -> DynTensor {
    match values {
        Values::Floats(rows) if !plan.parts.is_empty() => parts(&rows, num_items, plan, device),
        Values::Doubles(rows) if !plan.parts.is_empty() => parts(&rows, num_items, plan, device),
        values => of_shape(values, num_items, &plan.shape, device),
    }
}

/// A tensor for each named input, from the numbers of all. They are separated on the host: indices are exact there in
/// every precision of the device.
fn parts<N: Number>(rows: &[N], num_items: usize, plan: &InputPlan, device: &Device) -> DynTensor {
    let width: usize = plan.parts.iter().map(InputPart::size).sum();
    let mut from = 0;
    let parts = plan.parts.iter().map(|part| {
        let own = from..from + part.size();
        from = own.end;
        let rows = rows.chunks_exact(width).map(|row| &row[own.clone()]);
        let values = if part.vocabulary.is_some() {
            let index = |number: &N| (*number).into() as i32;
            Values::Tokens(rows.flatten().map(index).collect())
        } else {
            N::values(rows.flatten().copied().collect())
        };
        of_shape(values, num_items, &part.shape, device)
    });
    DynTensor::Parts(parts.collect())
}

/// Items of a shape on a device, \[batch, shape\].
pub fn of_shape(values: Values, num_items: usize, shape: &[usize], device: &Device) -> DynTensor {
    let shape = [&[num_items], shape].concat();
    match values {
        Values::Floats(values) => DynTensor::from_values(values, &shape, device),
        Values::Doubles(values) => DynTensor::from_data(TensorData::new(values, shape), device),
        Values::Tokens(tokens) => DynTensor::from_data(TensorData::new(tokens, shape), device),
        Values::Graphs { graph, of } => {
            DynTensor::Nodes(Box::new(Nodes::of_graphs(*graph, of, shape[0], device)))
        }
        Values::Pairs { graph, part } => {
            let graph = NodeGraph::clone(&graph);
            DynTensor::Nodes(Box::new(Nodes::of_pairs(graph, part, device)))
        }
        Values::Nodes { graph, rows } => {
            let graph = NodeGraph::clone(&graph);
            DynTensor::Nodes(Box::new(Nodes::new(graph, &rows, device)))
        }
    }
}

impl Batch {
    /// Puts items on a device. Those of an autoencoder are their own targets.
    pub fn new(items: Served, plan: &InputPlan, use_of: TargetUse, device: &Device) -> Self {
        let num = items.num_items;
        let inputs = inputs(items.values, num, plan, device);
        let known = (use_of != TargetUse::Unused).then(|| on_device(items.targets, num, device));
        let (targets, condition) = match (known, use_of) {
            (Some(targets), TargetUse::Predicted) => (targets, None),
            (condition, _) => (Targets::Values(inputs.clone().flatten()), condition),
        };
        let more = items.more_targets.into_iter();
        let weights =
            |weights: Vec<f64>| Tensor::from_data(TensorData::new(weights, [num]), device);
        Self {
            inputs,
            targets,
            more_targets: more.map(|more| on_device(more, num, device)).collect(),
            mixed: items.mixed.map(|mixed| MixedTargets {
                targets: on_device(TargetValues::Classes(mixed.classes), num, device),
                shares: Tensor::from_data(TensorData::new(mixed.shares, [num]), device),
            }),
            weights: items.weights.map(weights),
            noise: None,
            condition,
        }
    }

    /// The same with what items are generated from.
    pub fn with_noise(self, noise: Option<Noise>) -> Self {
        Self { noise, ..self }
    }

    /// The same on the device without autodiff.
    pub fn without_autodiff(self) -> Self {
        let more = self.more_targets.into_iter();
        Self {
            inputs: self.inputs.without_autodiff(),
            targets: self.targets.without_autodiff(),
            more_targets: more.map(Targets::without_autodiff).collect(),
            mixed: self.mixed.map(|mixed| MixedTargets {
                targets: mixed.targets.without_autodiff(),
                shares: mixed.shares.without_autodiff(),
            }),
            weights: self.weights.map(Tensor::without_autodiff),
            noise: self.noise.map(Noise::without_autodiff),
            condition: self.condition.map(Targets::without_autodiff),
        }
    }

    /// The items at some positions, in that order; those that are kept on a device are not mixed, and have no noise.
    pub fn pick(&self, places: &[u32]) -> Self {
        let places: Vec<i32> = places.iter().map(|place| *place as i32).collect();
        let num = places.len();
        let data = TensorData::new(places, [num]);
        let places = Tensor::from_data(data, &self.inputs.device());
        Self {
            inputs: self.inputs.clone().select(places.clone()),
            targets: self.targets.clone().select(places.clone()),
            more_targets: {
                let more = self.more_targets.iter().cloned();
                more.map(|more| more.select(places.clone())).collect()
            },
            mixed: None,
            condition: {
                let condition = self.condition.clone();
                condition.map(|condition| condition.select(places.clone()))
            },
            weights: {
                let weights = self.weights.clone();
                weights.map(|weights| weights.select(0, places))
            },
            noise: None,
        }
    }
}

/// The targets of `num` items on a device.
pub fn on_device(targets: TargetValues, num: usize, device: &Device) -> Targets {
    match targets {
        TargetValues::Classes(classes) => {
            let shape = [num, classes.len() / num];
            Targets::Classes(Tensor::from_data(TensorData::new(classes, shape), device))
        }
        TargetValues::Floats(values) => values_on_device(values, num, device),
        TargetValues::Doubles(values) => values_on_device(values, num, device),
    }
}

fn values_on_device<E: Element>(values: Vec<E>, num: usize, device: &Device) -> Targets {
    let shape = [num, values.len() / num];
    Targets::Values(Tensor::from_data(TensorData::new(values, shape), device))
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

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    /// 16 bits cannot hold these indices.
    #[test]
    fn indices_beside_numbers_are_exact() {
        let part = |name: &str, vocabulary| InputPart {
            name: name.into(),
            shape: vec![2],
            vocabulary,
        };
        let plan = InputPlan::of_parts(vec![part("a", None), part("b", Some(1 << 20))]);
        let rows = vec![0.5, -0.5, 1_048_573.0, 65_537.0, 1.5, 2.5, 3.0, 1_048_575.0];
        let parts = inputs(Values::Floats(rows), 2, &plan, &Device::flex()).into_parts();
        let [numbers, indices] = parts.try_into().unwrap();
        let numbers: Vec<f32> = numbers.into_data().iter::<f32>().collect();
        assert_eq!(numbers, [0.5, -0.5, 1.5, 2.5]);
        let indices: Vec<i64> = indices.into_data().iter::<i64>().collect();
        assert_eq!(indices, [1_048_573, 65_537, 3, 1_048_575]);
    }
}
