//! The tensors of a network under the names used in weight files.

use burn::tensor::{DType, TensorData};

use runner_exchange::tensors::{Dtype, NamedTensor, TensorError, Tensors};
use runner_network::graph::Graph;
use runner_network::layer::Layer;
use runner_network::leaves;

/// Every parameter of a graph, the running statistics of batch norms, and the constants of positional encodings, as
/// `<layer>.<path in Burn's module>`, in the order of the layers.
///
/// # Errors
/// If two layers have the same name, which cannot occur in a plan.
pub fn tensors(graph: &Graph) -> Result<Tensors, TensorError> {
    let mut tensors = Tensors::new();
    for (layer, plan) in graph.layers() {
        let mut found = Vec::new();
        leaves::each(layer, |leaf| {
            // The first part is the module's name as a variant of the layer.
            let path = leaf.path.split_once('.').map_or("", |(_, path)| path);
            found.push((path.to_owned(), leaf.values()));
        });
        match layer {
            Layer::Positional(encoding) => {
                let data = encoding.sinusoids.clone().into_data();
                found.push(("sinusoids".into(), data));
            }
            Layer::Rotary(encoding) => {
                let data = encoding.freq_complex.clone().into_data();
                found.push(("freq_complex".into(), data));
            }
            _ => {}
        }
        for (path, data) in found {
            tensors.push(named(format!("{}.{path}", plan.name), data)?)?;
        }
    }
    Ok(tensors)
}

/// Named Burn tensor data.
///
/// # Errors
/// If its bytes do not match its shape, which cannot occur in Burn's data.
pub fn named(name: String, data: TensorData) -> Result<NamedTensor, TensorError> {
    let dtype = match data.dtype() {
        DType::F64 => Dtype::F64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::Bf16,
        DType::F32 => Dtype::F32,
        // Weights have no other types; other types of a backend are wider than necessary.
        _ => return named(name, data.convert::<f32>()),
    };
    let shape = data.shape().to_vec();
    NamedTensor::new(name, shape, dtype, data.as_bytes().to_vec())
}
