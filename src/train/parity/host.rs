//! Tensors between devices, through the host.

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};

use runner_core::parity::Error;
use runner_core::spec::backend::Precision;
use runner_network::leaves;
use runner_network::targets::Targets;
use runner_network::tensor::{DynTensor, map_rank};

/// The tensor, read back. A device that cannot be read is a panic, like every failure of a device.
pub fn get(tensor: DynTensor) -> TensorData {
    tensor.into_data()
}

/// The tensor with its gradient tracked; tokens have none.
pub fn tracked(tensor: DynTensor) -> DynTensor {
    match tensor {
        DynTensor::Tokens(_) | DynTensor::Parts(_) | DynTensor::Nodes(_) => tensor,
        numbers => map_rank!(numbers, t => t.require_grad()),
    }
}

/// The gradient of a tracked tensor; none if the result does not depend on it.
pub fn gradient(tensor: &DynTensor, gradients: &Gradients) -> Option<TensorData> {
    match tensor {
        DynTensor::R1(t) => t.grad(gradients).map(Tensor::into_data),
        DynTensor::R2(t) => t.grad(gradients).map(Tensor::into_data),
        DynTensor::R3(t) => t.grad(gradients).map(Tensor::into_data),
        DynTensor::R4(t) => t.grad(gradients).map(Tensor::into_data),
        DynTensor::R5(t) => t.grad(gradients).map(Tensor::into_data),
        DynTensor::Tokens(_) | DynTensor::Parts(_) | DynTensor::Nodes(_) => None,
    }
}

/// Zeros in the shape of a tensor, on its device.
pub fn zeros(like: &DynTensor) -> DynTensor {
    map_rank!(like.clone(), t => Tensor::zeros(t.dims(), &t.device()))
}

/// The targets of a batch, on the host.
#[derive(Clone, Debug)]
pub struct HostTargets {
    data: TensorData,
    is_classes: bool,
}

impl HostTargets {
    /// Reads targets back.
    pub fn get(targets: Targets) -> Self {
        let (data, is_classes) = match targets {
            Targets::Classes(classes) => (classes.into_data(), true),
            Targets::Values(values) => (values.into_data(), false),
        };
        Self { data, is_classes }
    }

    /// The targets on a device, items in the given order.
    pub fn put(&self, order: &Order, device: &Device) -> Targets {
        let data = order.apply(&self.data);
        if self.is_classes {
            Targets::Classes(Tensor::<2, Int>::from_data(data, device))
        } else {
            Targets::Values(Tensor::from_data(data, device))
        }
    }
}

/// An order of the items of a batch.
#[derive(Clone, Debug)]
pub struct Order(Option<Vec<u32>>);

impl Order {
    /// Unchanged.
    pub const SAME: Self = Self(None);

    /// The old position of each item.
    pub fn new(places: Vec<u32>) -> Self {
        Self(Some(places))
    }

    /// Rows in this order.
    pub fn apply(&self, rows: &TensorData) -> TensorData {
        match &self.0 {
            None => rows.clone(),
            Some(places) => moved(rows, places, |new, old| (new, old)),
        }
    }

    /// Restores the previous order of rows.
    pub fn undo(&self, rows: TensorData) -> TensorData {
        match &self.0 {
            None => rows,
            Some(places) => moved(&rows, places, |new, old| (old, new)),
        }
    }
}

fn moved(
    rows: &TensorData,
    places: &[u32],
    to_from: impl Fn(usize, usize) -> (usize, usize),
) -> TensorData {
    let bytes = rows.as_bytes();
    let size = bytes.len() / places.len().max(1);
    let mut moved = vec![0; bytes.len()];
    for (new, old) in places.iter().enumerate() {
        let (to, from) = to_from(new, *old as usize);
        moved[to * size..(to + 1) * size].copy_from_slice(&bytes[from * size..(from + 1) * size]);
    }
    TensorData::from_bytes_vec(moved, rows.shape().clone(), rows.dtype())
}

/// The distance of `other` from `reference`. Tensors of other shapes are infinitely far.
pub fn error(reference: &TensorData, other: &TensorData, precision: Precision) -> Error {
    if reference.shape() != other.shape() {
        return Error {
            maximum: f64::INFINITY,
            relative: f64::INFINITY,
            ulps: f64::INFINITY,
        };
    }
    let pairs = reference.iter::<f64>().zip(other.iter::<f64>());
    Error::of(pairs, precision)
}

/// Burn's path and the gradient of each parameter that has one.
pub fn parameter_gradients(
    module: &impl Module,
    gradients: &GradientsParams,
) -> Vec<(String, TensorData)> {
    let mut found = Vec::new();
    leaves::each(module, |leaf| {
        let gradient = leaf.gradient(gradients);
        found.extend(gradient.map(|gradient| (leaf.path.to_owned(), gradient)));
    });
    found
}

/// The values of the parameters at these Burn paths.
pub fn weights(module: &impl Module, paths: &[String]) -> Vec<(String, TensorData)> {
    let mut found = Vec::new();
    leaves::each(module, |leaf| {
        if paths.iter().any(|path| path == leaf.path) {
            found.push((leaf.path.to_owned(), leaf.values()));
        }
    });
    found
}
