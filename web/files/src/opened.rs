//! A capsule from elsewhere: its numbers, and its weights for other programs.

use std::path::Path;

use burn_pack::{Bytes, Reader};
use runner_core::disk::memory;
use runner_core::plan::RunPlan;
use runner_core::record::capsule::{self, Capsule};
use runner_core::record::{RunFolder, RunRecord, Trace};
use runner_core::spec::plain_file;
use runner_exchange::tensors::{Dtype, NamedTensor, Tensors};
use runner_web_common::shown;
use serde_json::json;
use wasm_bindgen::prelude::*;

use crate::file_of;

/// Where a capsule is unpacked.
const PLACE: &str = "/capsule";

/// The run of a capsule.
#[wasm_bindgen]
pub struct Opened {
    plan: RunPlan,
    shown: String,
    /// The best weights in Burn's format, if the run has them.
    best: Option<Vec<u8>>,
}

#[wasm_bindgen]
impl Opened {
    /// Opens the bytes of a capsule, which is called `name` in messages.
    ///
    /// # Errors
    /// Why it cannot be opened.
    #[wasm_bindgen(constructor)]
    pub fn new(name: &str, bytes: &[u8]) -> Result<Opened, String> {
        let place = Path::new(PLACE);
        let opened = capsule::unpack_in_memory(name, bytes, place).map_err(|e| e.to_string());
        let opened = opened.and_then(|capsule| Self::read(&capsule));
        memory::remove(place);
        opened
    }

    fn read(capsule: &Capsule) -> Result<Self, String> {
        let Capsule { plan, folder, .. } = capsule;
        let text = |e: std::io::Error| e.to_string();
        let record = RunRecord::read_for(folder, plan).map_err(text)?;
        if let Some(changed) = folder.changed_files(&record).into_iter().next() {
            return Err(changed.to_string());
        }
        let best = folder.model("best");
        Ok(Self {
            plan: plan.clone(),
            shown: numbers(plan, folder, &record).map_err(text)?,
            best: plain_file::read_whole(&best).ok(),
        })
    }

    /// The run and its numbers as JSON.
    #[wasm_bindgen(getter)]
    pub fn shown(&self) -> String {
        self.shown.clone()
    }

    /// The bytes of a file with its best weights, as those of a training.
    ///
    /// # Errors
    /// Why the format does not support the network.
    pub fn export(&self, format: &str) -> Result<Vec<u8>, String> {
        let Some(best) = &self.best else {
            return Err("the capsule has no weights: its run did not finish an epoch".into());
        };
        let tensors = tensors(&self.plan, best.clone())?;
        file_of(&self.plan, &tensors, format)
    }
}

fn numbers(plan: &RunPlan, folder: &RunFolder, record: &RunRecord) -> std::io::Result<String> {
    let trace = Trace::read_recorded(folder, record)?;
    let best = record.best_epoch(plan);
    let outcome = record.outcome.as_ref();
    let shown = json!({
        "experiment": plan.experiment,
        "run": shown::run(plan),
        "outcome": outcome.map_or("incomplete", |outcome| outcome.word()),
        "losses": trace.losses,
        "history": record.epochs,
        "finished": {
            "epoch": best.map_or(0, |epoch| epoch.epoch),
            "test": record.evaluations,
            "evaluation": folder.read_evaluation()?,
            "weights_digest": record.weights_digest,
        },
    });
    Ok(shown.to_string())
}

/// The tensors of a file of weights, named as exports do.
fn tensors(plan: &RunPlan, file: Vec<u8>) -> Result<Tensors, String> {
    let wrong = |e: burn_pack::Error| e.to_string();
    let reader = Reader::from_bytes(Bytes::from_bytes_vec(file)).map_err(wrong)?;
    let mut tensors = Tensors::new();
    for tensor in reader.into_tensors().map_err(wrong)? {
        let (name, dtype, shape, _, bytes) = tensor.into_parts().map_err(wrong)?;
        let layers = name.strip_prefix("graph.");
        let name = layers
            .and_then(|path| plan.network.user_path(path))
            .unwrap_or(name);
        let dtype = Dtype::of_burn(dtype).ok_or_else(|| format!("`{name}` is not of floats"))?;
        let tensor = NamedTensor::new(name, shape.to_vec(), dtype, bytes.to_vec());
        let pushed = tensor.and_then(|tensor| tensors.push(tensor));
        pushed.map_err(|e| e.to_string())?;
    }
    Ok(tensors)
}
