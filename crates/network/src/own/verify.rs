//! The promises of own layers, checked before a training: parameters as planned, and no randomness besides the
//! device's.

use burn::tensor::Device;

use super::{OwnModule, parameters_of};
use crate::leaves;
use crate::tensor::DynTensor;
use runner_core::check::network::{Layer, Network};
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::own::Own;

/// Items of the batch that the promises are checked with: a batch norm needs two.
const BATCH: usize = 2;

/// Seeds of the device for the weights and for the forward pass.
const SEEDS: [u64; 2] = [1, 2];

/// Checks the own layers of a network on the device of its training, with modules of its own. The device's generator is
/// in an unknown state afterwards.
///
/// # Errors
/// The first promise that a part breaks.
///
/// # Panics
/// With the name of the part, if it panics.
pub fn verify(plan: &Network, device: &Device) -> Result<(), String> {
    for layer in &plan.layers {
        if let LayerKind::Own(own) = &layer.kind {
            if let Some(missing) = own.missing() {
                return Err(missing);
            }
            verify_layer(own, layer, device)?;
        }
    }
    Ok(())
}

fn verify_layer(own: &Own, layer: &Layer, device: &Device) -> Result<(), String> {
    let kind = &own.layer;
    let broken = |promise: String| {
        Err(format!(
            "the layer type `{kind}` of this program broke its promise: {promise} (layer `{}`)",
            layer.name
        ))
    };
    let draw = || {
        device.seed(SEEDS[0]);
        let module = OwnModule::new(own, layer, device);
        let parameters = parameters_of(&module);
        let mut values = Vec::new();
        leaves::each(&module, |leaf| values.push(leaf.values()));
        (module, parameters, values)
    };
    let (module, found, weights) = draw();
    if found != own.parameters {
        let names = |parameters: &[runner_core::spec::own::Parameter]| {
            let named = parameters
                .iter()
                .map(|parameter| format!("`{}` ({})", parameter.path, parameter.count));
            named.collect::<Vec<_>>().join(", ")
        };
        return broken(format!(
            "its parameters are {}, and {} were planned",
            names(&found),
            names(&own.parameters)
        ));
    }
    if draw().2 != weights {
        return broken(
            "two sets of weights drawn from one seed differ, so that no run could be repeated; draw them with Burn's initializers, or from the device".into(),
        );
    }
    let output = || {
        device.seed(SEEDS[1]);
        let inputs = layer.inputs.iter().map(|input| {
            let dims = [&[BATCH], input.shape.dims.as_slice()].concat();
            let num = dims.iter().product::<usize>();
            let values = (0..num).map(|at| (at as f32 * 0.7).sin()).collect();
            DynTensor::from_values(values, &dims, device)
        });
        let output = module.forward(layer, inputs.collect());
        output.flatten().into_data()
    };
    if output() != output() {
        return broken(
            "two passes over the same items with the same seed differ, so that no run could be repeated; draw random numbers from the device, such as with `Tensor::random`, and keep no state outside of the module".into(),
        );
    }
    Ok(())
}
