//! What the page shows of a run, planned or from a capsule.

use runner_core::plan::RunPlan;
use serde_json::{Value as Json, json};

/// The run as JSON.
pub fn run(run: &RunPlan) -> Json {
    let network = &run.network;
    let layers = network.layers.iter().map(|layer| {
        let kind = serde_json::to_value(&layer.kind).unwrap_or_default();
        let inputs = layer.inputs.iter();
        let inputs = inputs.map(|input| json!(network.source_name(input)));
        json!({
            "name": layer.name,
            "type": kind.get("type").cloned().unwrap_or_default(),
            "inputs": inputs.collect::<Vec<_>>(),
            "shape": layer.shape,
            "parameters": layer.num_parameters,
        })
    });
    json!({
        "id": run.id,
        "trial": run.trial,
        "seed": run.seed,
        "fingerprint": run.fingerprint,
        "axes": run.axes,
        "device": run.device.to_string(),
        "skipped": run.skip,
        "task": run.task.kind,
        "objective": run.objective.name(),
        "epochs": run.train.epochs,
        "batch_size": run.train.batch_size,
        "steps_per_epoch": run.steps_per_epoch,
        "steps": run.num_steps(),
        "data": {
            "name": run.data.dataset.name(),
            "train": run.data.num_train,
            "valid": run.data.num_valid,
            "test": run.data.num_test,
            "shape": run.data.input.shape,
            "target": run.data.target.show(),
        },
        "network": {
            "shape": network.items.dims,
            "parameters": network.num_parameters,
            "multiply_adds": network.multiply_adds_per_item,
            "layers": layers.collect::<Vec<_>>(),
        },
    })
}
