//! Files of trained runs in a browser: weights and networks for other programs, and capsules.
//!
//! A module of its own, which the page loads when the first file is asked for: a training does not wait for it.

mod capsule;
mod recorded;
mod report;
// Capsules are only opened where files are in memory.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod opened;

use std::io::Cursor;

use runner_core::plan::RunPlan;
use runner_exchange::onnx;
use runner_exchange::state::StateDict;
use runner_exchange::tensors::{Dtype, NamedTensor, Tensors};
use runner_exchange::write;
// Its exports: files, and messages of panics.
use runner_web_common as _;
use safetensors::SafeTensors;
use wasm_bindgen::prelude::*;

pub use capsule::Capsule;
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub use opened::Opened;
pub use report::Report;

/// The bytes of a file with the weights of a run: `safetensors`, `pytorch-json`, `npz`, `pytorch` or `onnx`. The run is
/// JSON, and the weights safetensors with Burn's names and layouts.
///
/// # Errors
/// Why the format does not support the network.
#[wasm_bindgen]
pub fn write_weights(run: &str, weights: &[u8], format: &str) -> Result<Vec<u8>, String> {
    let plan: RunPlan = serde_json::from_str(run).map_err(|e| e.to_string())?;
    file_of(&plan, &tensors(weights)?, format)
}

/// A file of weights with Burn's names and layouts.
fn file_of(plan: &RunPlan, burn: &Tensors, format: &str) -> Result<Vec<u8>, String> {
    if format == "onnx" {
        return onnx::file(&plan.network, burn).map_err(|e| e.to_string());
    }
    let torch = StateDict::of(&plan.network).to_torch(burn);
    let torch = torch.map_err(|e| e.to_string())?;
    let mut bytes = Cursor::new(Vec::new());
    let written = match format {
        "safetensors" => write::safetensors(&torch, &mut bytes),
        "pytorch-json" => write::flat(&torch, &mut bytes),
        "pytorch" => write::torch(&torch, &mut bytes),
        "npz" => write::npz(&torch, &mut bytes),
        other => return Err(format!("unknown format `{other}`")),
    };
    written.map_err(|e| e.to_string())?;
    Ok(bytes.into_inner())
}

fn tensors(weights: &[u8]) -> Result<Tensors, String> {
    let read = SafeTensors::deserialize(weights).map_err(|e| e.to_string())?;
    let mut tensors = Tensors::new();
    for (name, view) in read.tensors() {
        if view.dtype() != safetensors::Dtype::F32 {
            return Err(format!("`{name}` is not of 32-bit floats"));
        }
        let bytes = view.data().to_vec();
        let tensor = NamedTensor::new(name, view.shape().to_vec(), Dtype::F32, bytes);
        let pushed = tensor.and_then(|tensor| tensors.push(tensor));
        pushed.map_err(|e| e.to_string())?;
    }
    Ok(tensors)
}
