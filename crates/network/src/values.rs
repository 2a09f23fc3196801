//! Parameters with values from elsewhere, by their paths in the experiment file.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Tensor, TensorData};

/// The module with some of its parameters and buffers replaced by `values`, in the device's precision, and the paths of
/// unused values. `name` gives the path in the experiment file for one of Burn's.
///
/// # Panics
/// If the shape of a value differs from that of its parameter.
pub fn with_values<M: Module>(
    module: M,
    name: &dyn Fn(&str) -> String,
    values: BTreeMap<String, TensorData>,
) -> (M, Vec<String>) {
    let mut given = Given {
        name,
        path: Vec::new(),
        values,
    };
    let module = module.map(&mut given);
    (module, given.values.into_keys().collect())
}

struct Given<'a> {
    name: &'a dyn Fn(&str) -> String,
    path: Vec<String>,
    values: BTreeMap<String, TensorData>,
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
        let Some(data) = self.values.remove(&path) else {
            return param;
        };
        let (id, device) = (param.id, param.lazy_device());
        assert_eq!(data.shape(), &param.lazy_shape(), "{path}");
        param.transform_for_load(Tensor::from_data(data, &device), id)
    }
}
