//! What the module of files needs of a training.

use std::io::Cursor;

use burn::tensor::Device;
use runner_core::data::origin::{self, Root};
use runner_core::record::capsule::DataRoot;
use runner_exchange::tensors::{Dtype, NamedTensor, Tensors};
use runner_exchange::write;
use runner_network::trainer::Finished;
use runner_network::values;
use serde_json::json;
use wasm_bindgen::prelude::*;

use crate::session::{Session, final_digest, reading};

/// A training that has ended.
#[wasm_bindgen]
pub struct Recorded {
    about: String,
    files: Vec<(String, Vec<u8>)>,
    data: Vec<String>,
}

#[wasm_bindgen]
impl Recorded {
    /// Everything but files, as JSON.
    #[wasm_bindgen(getter)]
    pub fn about(&self) -> String {
        self.about.clone()
    }

    /// The paths of files in the run's folder.
    #[wasm_bindgen(getter)]
    pub fn names(&self) -> Vec<String> {
        self.files.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Takes the content of one of them.
    pub fn take(&mut self, at: usize) -> Vec<u8> {
        self.files
            .get_mut(at)
            .map_or_else(Vec::new, |(_, bytes)| std::mem::take(bytes))
    }

    /// The paths of the data's files.
    #[wasm_bindgen(getter)]
    pub fn data(&self) -> Vec<String> {
        self.data.clone()
    }
}

#[wasm_bindgen]
impl Session {
    /// The resolved run as JSON.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn run(&self) -> Result<String, String> {
        serde_json::to_string(self.plan()).map_err(|e| e.to_string())
    }
}

reading! {
    /// The weights that predict, as safetensors with Burn's names and layouts.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn weights(&self) -> Result<Vec<u8>, String> {
        let network = self.network().merged();
        let mut burn = Tensors::new();
        for (name, data) in values::of_graph(network.graph()) {
            let dtype = Dtype::of_burn(data.dtype()).ok_or("weights are floats")?;
            let shape = data.shape().to_vec();
            let tensor = NamedTensor::new(name, shape, dtype, data.as_bytes().to_vec());
            let pushed = tensor.and_then(|tensor| burn.push(tensor));
            pushed.map_err(|e| e.to_string())?;
        }
        let mut bytes = Cursor::new(Vec::new());
        write::safetensors(&burn, &mut bytes).map_err(|e| e.to_string())?;
        Ok(bytes.into_inner())
    }

    /// What a report has of the training, or with weights and data, a capsule.
    ///
    /// # Errors
    /// If it has not ended, or its data was changed since.
    pub fn record(&self, is_whole: bool) -> Result<Recorded, String> {
        let Some(finished) = &self.finished else {
            let message = "the training has not ended yet; train it to its end";
            return Err(message.into());
        };
        let mut trace = self.trace.clone();
        trace.digests.push(self.trainer.optimizer_digests()?);
        let mut files = vec![
            ("trace/losses.f64".to_owned(), trace.losses_file()),
            (
                "trace/digests.csv".to_owned(),
                trace.digests_file().into_bytes(),
            ),
        ];
        let mut data = Vec::new();
        let mut roots = Vec::new();
        if is_whole {
            let weights = self.trainer.weight_files(finished, &Device::flex())?;
            let weights = weights.into_iter();
            files.extend(weights.map(|(name, bytes)| (format!("model/{name}.bpk"), bytes)));
            roots = self.roots()?;
            data.extend(roots.iter().flat_map(paths));
        }
        Ok(Recorded {
            about: self.about(finished, &roots),
            files,
            data,
        })
    }
}

impl Session {
    /// The data's files, as the run was trained on them.
    fn roots(&self) -> Result<Vec<Root>, String> {
        let data = &self.plan().data;
        let measured = origin::measure(data, &|_, _| {}).map_err(|e| e.to_string())?;
        let is_same = origin::is_as_planned(data, &measured).map_err(|e| e.to_string())?;
        if is_same == Some(false) {
            return Err("the data was changed since it was trained on; train again".into());
        }
        Ok(measured)
    }

    /// Everything but files, as JSON.
    fn about(&self, finished: &Finished, roots: &[Root]) -> String {
        let plan = self.plan();
        let state = self.trainer.state();
        let stopped_early = plan.train.early_stopping.as_ref();
        let stopped_early = stopped_early.filter(|_| state.is_stopped_early(plan));
        let stopped_early = stopped_early.map(|stopping| {
            let metric = plan.watched().unwrap_or(plan.objective).name();
            let reason = format!("no better {metric} for {} epochs", stopping.patience);
            (state.epochs_done, reason)
        });
        let tests = finished.tests.iter();
        let tests: serde_json::Map<_, _> = tests
            .map(|(split, metrics)| ((*split).to_owned(), json!(metrics)))
            .collect();
        let about = json!({
            "run": plan,
            "device_name": self.device.name,
            "threads": crate::num_threads(),
            "data_digests": self.data_digests,
            "layers": plan.network.computed_by(plan.kernels, plan.device.backend, plan.precision),
            "history": state.history,
            "stopped_early": stopped_early,
            "epoch": finished.epoch,
            "tests": tests,
            "evaluation": finished.evaluation,
            "transforms": self.transforms,
            "weights_digest": final_digest(finished),
            "roots": roots.iter().map(DataRoot::of).collect::<Vec<_>>(),
        });
        about.to_string()
    }
}

/// The paths of a root's files.
fn paths(root: &Root) -> impl Iterator<Item = String> {
    root.files.iter().map(|file| {
        let path = if root.is_folder {
            root.path.join(&file.name)
        } else {
            root.path.clone()
        };
        path.to_string_lossy().into_owned()
    })
}
