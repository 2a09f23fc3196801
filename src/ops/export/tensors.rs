//! The tensors of a network under the names used in weight files.

use burn::tensor::TensorData;

use runner_exchange::tensors::{Dtype, NamedTensor, TensorError, Tensors};
use runner_network::graph::Graph;
use runner_network::values;

/// Every tensor of a graph, as `<layer>.<path in Burn's module>`, in the order of the layers.
///
/// # Errors
/// If two layers have the same name, which cannot occur in a plan.
pub fn tensors(graph: &Graph) -> Result<Tensors, TensorError> {
    let mut tensors = Tensors::new();
    for (name, data) in values::of_graph(graph) {
        tensors.push(named(name, data)?)?;
    }
    Ok(tensors)
}

/// Named Burn tensor data.
///
/// # Errors
/// If its bytes do not match its shape, which cannot occur in Burn's data.
pub fn named(name: String, data: TensorData) -> Result<NamedTensor, TensorError> {
    match Dtype::of_burn(data.dtype()) {
        Some(dtype) if dtype.is_float() => {
            let shape = data.shape().to_vec();
            NamedTensor::new(name, shape, dtype, data.as_bytes().to_vec())
        }
        // Weights have no other types; other types of a backend are wider than necessary.
        _ => named(name, data.convert::<f32>()),
    }
}
