//! Initial weights that `[init]` takes from a file, and constants.

use std::collections::{BTreeMap, BTreeSet};

use burn::tensor::TensorData;

use runner_core::check::network::Layer;
use runner_core::event::{FailureClass, Outcome};
use runner_core::plan::RunPlan;
use runner_exchange::tensors::{Dtype, NamedTensor};
use runner_exchange::{constant, init};
use runner_network::digest::is_finite;
use runner_network::network::Network;
use runner_network::paths::Paths;
use runner_network::values::with_values;

/// The network with the tensors that its plan takes from files; the others stay.
pub fn with_first_weights(network: Network, plan: &RunPlan) -> Result<Network, Outcome> {
    let network = with_init(network, plan)?;
    let failed = |message: String| Outcome::failed(FailureClass::Data, message);
    let mut values = BTreeMap::new();
    for constant in &plan.constants {
        let tensor = constant::load(constant).map_err(|e| failed(e.to_string()))?;
        let layer = &plan.network.layers[constant.layer];
        values.insert(format!("{}.value", layer.name), data_of(&tensor));
    }
    if values.is_empty() {
        return Ok(network);
    }
    let paths = Paths::new(plan);
    let (network, unplaced) = with_values(network, &|path| paths.of(path), values);
    match unplaced.first() {
        None => Ok(network),
        Some(name) => Err(failed(format!("the network has no constant `{name}`"))),
    }
}

/// The network with the tensors that it takes from the file of an `[init]`.
fn with_init(network: Network, plan: &RunPlan) -> Result<Network, Outcome> {
    let Some(from) = &plan.init else {
        return Ok(network);
    };
    let failed = |message: String| Outcome::failed(FailureClass::Data, message);
    let loaded = init::load(from, &plan.network).map_err(|e| failed(e.to_string()))?;
    let mut values = BTreeMap::new();
    for (name, tensor) in loaded {
        let data = data_of(&tensor);
        if !is_finite(&data) {
            let place = from.path.display();
            return Err(failed(format!(
                "`{name}` of `{place}` has values that are infinite or not a number"
            )));
        }
        values.insert(name, data);
    }
    let paths = Paths::new(plan);
    // Weights of a file without what they are computed from.
    let loaded: BTreeSet<String> = values.keys().cloned().collect();
    let has = |layer: &Layer, rest: &str| loaded.contains(&format!("{}.weight{rest}", layer.name));
    let is_bare = |layer: &Layer| match layer.kind.parametrization().state().first() {
        Some(state) => has(layer, "") && !has(layer, &format!(".{state}")),
        None => false,
    };
    let (network, unplaced) = with_values(network, &|path| paths.of(path), values);
    match unplaced.first() {
        None => Ok(network.started(plan, is_bare)),
        Some(name) => Err(failed(format!("the network has no parameter `{name}`"))),
    }
}

/// Values of at least 32 bits, which hold those of fewer.
fn data_of(tensor: &NamedTensor) -> TensorData {
    let shape = tensor.shape().to_vec();
    match tensor.dtype() {
        Dtype::F64 => TensorData::new(tensor.to_f64s(), shape),
        _ => TensorData::new(tensor.to_f32s(), shape),
    }
}
