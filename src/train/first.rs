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
    let mut tensors = BTreeMap::new();
    for constant in &plan.constants {
        let tensor = constant::load(constant)
            .map_err(|e| Outcome::failed(FailureClass::Data, e.to_string()))?;
        let layer = &plan.network.layers[constant.layer];
        tensors.insert(format!("{}.value", layer.name), tensor);
    }
    with_tensors(network, plan, tensors, &mut |_, _| {})
}

/// The network with these tensors, each read as its parameter is reached, and seen: large networks have memory for one
/// copy.
fn with_tensors(
    network: Network,
    plan: &RunPlan,
    mut tensors: BTreeMap<String, NamedTensor>,
    see: &mut dyn FnMut(&str, &TensorData),
) -> Result<Network, Outcome> {
    if tensors.is_empty() {
        return Ok(network);
    }
    let paths = Paths::new(plan);
    let mut value = |path: &str| {
        let data = data_of(&tensors.remove(path)?);
        see(path, &data);
        Some(data)
    };
    let network = with_values(network, &|path| paths.of(path), &mut value);
    match tensors.keys().next() {
        None => Ok(network),
        Some(name) => Err(Outcome::failed(
            FailureClass::Data,
            format!("the network has no parameter `{name}`"),
        )),
    }
}

/// The network with the tensors that it takes from the file of an `[init]`.
fn with_init(network: Network, plan: &RunPlan) -> Result<Network, Outcome> {
    let Some(from) = &plan.init else {
        return Ok(network);
    };
    let failed = |message: String| Outcome::failed(FailureClass::Data, message);
    let loaded = init::load(from, &plan.network).map_err(|e| failed(e.to_string()))?;
    let tensors: BTreeMap<String, NamedTensor> = loaded.into_iter().collect();
    // Weights of a file without what they are computed from.
    let loaded: BTreeSet<String> = tensors.keys().cloned().collect();
    let has = |layer: &Layer, rest: &str| loaded.contains(&format!("{}.weight{rest}", layer.name));
    let is_bare = |layer: &Layer| match layer.kind.parametrization().state().first() {
        Some(state) => has(layer, "") && !has(layer, &format!(".{state}")),
        None => false,
    };
    let mut not_finite = BTreeSet::new();
    let network = with_tensors(network, plan, tensors, &mut |name, data| {
        if !is_finite(data) {
            not_finite.insert(name.to_owned());
        }
    })?;
    if let Some(name) = not_finite.first() {
        let place = from.path.display();
        return Err(failed(format!(
            "`{name}` of `{place}` has values that are infinite or not a number"
        )));
    }
    Ok(network.started(plan, is_bare))
}

/// Values of at least 32 bits, which hold those of fewer.
fn data_of(tensor: &NamedTensor) -> TensorData {
    let shape = tensor.shape().to_vec();
    match tensor.dtype() {
        Dtype::F64 => TensorData::new(tensor.to_f64s(), shape),
        _ => TensorData::new(tensor.to_f32s(), shape),
    }
}
