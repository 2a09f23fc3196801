//! The tensors of a network under the names used in weight files.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Tensor, TensorData};

use runner_exchange::tensors::{Dtype, NamedTensor, TensorError, Tensors};
use runner_network::graph::Graph;
use runner_network::layer::Layer;

/// Every parameter of a graph, the running statistics of batch norms, and the constants of positional encodings, as
/// `<layer>.<path in Burn's module>`, in the order of the layers.
///
/// # Errors
/// If two layers have the same name, which cannot occur in a plan.
pub fn tensors(graph: &Graph) -> Result<Tensors, TensorError> {
    let mut tensors = Tensors::new();
    for (layer, plan) in graph.layers() {
        let mut found = Found::default();
        layer.visit(&mut found);
        match layer {
            Layer::Positional(encoding) => {
                let data = encoding.sinusoids.clone().into_data();
                found.data.push(("sinusoids".into(), data));
            }
            Layer::Rotary(encoding) => {
                let data = encoding.freq_complex.clone().into_data();
                found.data.push(("freq_complex".into(), data));
            }
            _ => {}
        }
        for (path, data) in found.data {
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

/// Floats by their path in a layer.
#[derive(Default)]
struct Found {
    path: Vec<String>,
    data: Vec<(String, TensorData)>,
}

impl ModuleVisitor for Found {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        // The first part is the module's name as a variant of the layer.
        let path = self.path[1..].join(".");
        self.data.push((path, param.val().into_data()));
    }
}
