//! The values of parameters by their paths in the experiment file: as they are, and from elsewhere.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Tensor, TensorData};

use crate::graph::Graph;
use crate::layer::Layer;
use crate::leaves;

/// The module with some of its parameters and buffers replaced by what `value` gives for their paths in the experiment
/// file, in the device's precision. `name` gives that path for one of Burn's.
///
/// # Panics
/// If the shape of a value differs from that of its parameter.
pub fn with_values<M: Module>(
    module: M,
    name: &dyn Fn(&str) -> String,
    value: &mut dyn FnMut(&str) -> Option<TensorData>,
) -> M {
    let path = Vec::new();
    module.map(&mut Given { name, path, value })
}

/// Every parameter of a graph, the running statistics of batch norms, and the constants of positional encodings, as
/// `<layer>.<path in Burn's module>`, in the order of the layers.
pub fn of_graph(graph: &Graph) -> Vec<(String, TensorData)> {
    let mut all = Vec::new();
    for (layer, plan) in graph.layers() {
        let mut add = |path: &str, data| all.push((format!("{}.{path}", plan.name), data));
        leaves::each(layer, |leaf| {
            // The first part is the module's name as a variant of the layer.
            let path = leaf.path.split_once('.').map_or("", |(_, path)| path);
            add(path, leaf.values());
        });
        match layer {
            Layer::Positional(encoding) => {
                add("sinusoids", encoding.sinusoids.clone().into_data());
            }
            Layer::Rotary(encoding) => {
                add("freq_complex", encoding.freq_complex.clone().into_data());
            }
            _ => {}
        }
    }
    all
}

struct Given<'a> {
    name: &'a dyn Fn(&str) -> String,
    path: Vec<String>,
    value: &'a mut dyn FnMut(&str) -> Option<TensorData>,
}

impl ModuleMapper for Given<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let path = (self.name)(&self.path.join("."));
        let Some(data) = (self.value)(&path) else {
            return param;
        };
        let (id, device) = (param.id, param.lazy_device());
        assert_eq!(data.shape(), &param.lazy_shape(), "{path}");
        param.transform_for_load(Tensor::from_data(data, &device), id)
    }
}
