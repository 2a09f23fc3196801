//! A run in training.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use burn::module::Module;
use burn::tensor::Device;
use runner_core::data::incoming::{ArrayLayout, Element, Incoming};
use runner_core::data::{self, Transforms};
use runner_core::event::Outcome;
use runner_core::plan::RunPlan;
use runner_core::predict::Meaning;
use runner_core::record::Trace;
use runner_core::spec::backend::{FLEX, Precision, WGPU};
use runner_network::batch;
use runner_network::digest::weights_digest;
use runner_network::network::Network;
use runner_network::trainer::{Advance, Finished, Saved, Trainer, training_device};
use runner_web_common::{PROCESSOR, shown};
use serde_json::json;
use wasm_bindgen::prelude::*;

use crate::seconds;

/// A run in training.
#[wasm_bindgen]
pub struct Session {
    pub(crate) trainer: Trainer,
    pub(crate) transforms: Transforms,
    meaning: Meaning,
    pub(crate) device: Named,
    /// sha256 of each split's items.
    pub(crate) data_digests: BTreeMap<String, String>,
    /// The losses and digests so far.
    pub(crate) trace: Trace,
    /// Once the training has ended.
    pub(crate) finished: Option<Finished>,
}

/// A device and its name in records.
#[derive(Clone)]
pub struct Named {
    pub device: Device,
    pub name: String,
}

/// The state of a training, from which it resumes to the bit.
#[wasm_bindgen(getter_with_clone)]
pub struct Checkpoint {
    /// The weights, in Burn's format.
    pub model: Vec<u8>,
    /// The state of the optimizer.
    pub optimizer: Vec<u8>,
    /// The position in the schedule.
    pub scheduler: Vec<u8>,
    /// The weights of the best epoch.
    pub best: Option<Vec<u8>>,
    /// The loss of each update, as 64-bit floats.
    pub losses: Vec<u8>,
    /// The digests of the weights after each epoch, as CSV.
    pub digests: String,
    /// Everything else, as JSON.
    pub state: String,
}

#[wasm_bindgen]
impl Checkpoint {
    /// A checkpoint from its parts.
    #[wasm_bindgen(constructor)]
    pub fn new(
        model: Vec<u8>,
        optimizer: Vec<u8>,
        scheduler: Vec<u8>,
        best: Option<Vec<u8>>,
        losses: Vec<u8>,
        digests: String,
        state: String,
    ) -> Self {
        Self {
            model,
            optimizer,
            scheduler,
            best,
            losses,
            digests,
            state,
        }
    }
}

/// Methods that read from the device. In the module for WebGPU they return promises: `web/futures` lets WebAssembly wait
/// for a result, and only functions that JavaScript calls so can be suspended.
macro_rules! reading {
    ($($(#[$attribute:meta])* pub fn $name:ident($($argument:tt)*) -> Result<$found:ty, String> $body:block)*) => {
        #[cfg(not(feature = "webgpu"))]
        #[wasm_bindgen]
        impl Session {
            $($(#[$attribute])* pub fn $name($($argument)*) -> Result<$found, String> $body)*
        }

        #[cfg(feature = "webgpu")]
        #[allow(deprecated, reason = "wasm-bindgen calls this attribute experimental")]
        #[wasm_bindgen]
        impl Session {
            $($(#[$attribute])* #[wasm_bindgen(jspi)] pub fn $name($($argument)*) -> Result<$found, String> $body)*
        }
    };
}
pub(crate) use reading;

reading! {
    /// A run before its first update, from the JSON of the module `runner_plan`.
    ///
    /// # Errors
    /// Why it cannot be trained here.
    pub fn start(run: &str) -> Result<Session, String> {
        let plan: RunPlan = serde_json::from_str(run)
            .map_err(|e| format!("the run is not of this version of runner: {e}"))?;
        let device = device(&plan)?;
        let loaded = data::load(&plan.data, &|_, _| {}).map_err(|e| e.to_string())?;
        let transforms = Transforms::of(loaded.train.set());
        let data_digests = loaded.digests.clone();
        // The weights of a run are the same on every device.
        let weights = (plan.device != FLEX).then(|| {
            let drawn = Network::drawn(&plan, &training_device(&plan, &Device::flex()));
            drawn.fork(&training_device(&plan, &device.device))
        });
        let trainer = Trainer::new(&plan, loaded, &device.device, weights, seconds);
        let mut trace = Trace::default();
        trace.digests.push(trainer.digests().map_err(failed)?);
        Ok(Session {
            meaning: Meaning::new(&plan, &transforms),
            device,
            trainer,
            transforms,
            data_digests,
            trace,
            finished: None,
        })
    }

    /// Continues from a checkpoint of the same run.
    ///
    /// # Errors
    /// Why the checkpoint cannot be used.
    pub fn resume(self, from: Checkpoint) -> Result<Session, String> {
        let state = serde_json::from_str(&from.state);
        let saved = Saved {
            model: from.model,
            optimizer: from.optimizer,
            scheduler: from.scheduler,
            best: from.best,
            state: state.map_err(|e| format!("the saved state cannot be read: {e}"))?,
        };
        Ok(Session {
            trainer: self.trainer.resume(saved)?,
            trace: Trace::of(&from.losses, &from.digests),
            ..self
        })
    }

    /// The next updates, at most so many, for at most so many seconds, and no further than the end of an epoch. Returns
    /// JSON: the losses, the position, and the epoch if it was finished.
    ///
    /// # Errors
    /// The failure of the run.
    pub fn advance(&mut self, updates: usize, secs: f64) -> Result<String, String> {
        let started = seconds();
        let mut losses = Vec::new();
        let mut finished = None;
        while !self.trainer.is_done() && finished.is_none() {
            match self.trainer.advance().map_err(failed)? {
                Advance::Updated { loss } => losses.push(loss),
                Advance::EpochFinished {
                    epoch,
                    digests,
                    is_best,
                } => {
                    self.trace.digests.push(digests);
                    finished = Some(json!({
                        "epoch": epoch.epoch,
                        "step": epoch.step,
                        "metrics": epoch.metrics,
                        "train_secs": epoch.train_secs,
                        "valid_secs": epoch.valid_secs,
                        "is_best": is_best,
                    }));
                }
            }
            if losses.len() >= updates || seconds() - started >= secs {
                break;
            }
        }
        self.trace.losses.extend(&losses);
        let done = json!({
            "losses": losses,
            "step": self.trainer.step(),
            "steps": self.plan().num_steps(),
            "epoch": finished,
            "is_done": self.trainer.is_done(),
        });
        Ok(done.to_string())
    }

    /// The metrics of the current weights on a batch of the valid split as JSON; null after the last batch.
    ///
    /// # Errors
    /// The failure of the run.
    pub fn evaluate_batch(&self, at: usize) -> Result<String, String> {
        let metrics = self.trainer.evaluate_batch(at).map_err(failed)?;
        Ok(json!(metrics).to_string())
    }

    /// The state of the training.
    ///
    /// # Errors
    /// If the weights cannot be written.
    pub fn checkpoint(&self) -> Result<Checkpoint, String> {
        let saved = self.trainer.save()?;
        Ok(Checkpoint {
            model: saved.model,
            optimizer: saved.optimizer,
            scheduler: saved.scheduler,
            best: saved.best,
            losses: self.trace.losses_file(),
            digests: self.trace.digests_file(),
            state: serde_json::to_string(&saved.state).map_err(|e| e.to_string())?,
        })
    }

    /// The errors of the current weights on the valid split as JSON: the confusion matrix and the worst mistakes, where
    /// the task has them.
    ///
    /// # Errors
    /// The failure of the run.
    pub fn errors(&self) -> Result<String, String> {
        let epoch = self.trainer.state().epochs_done;
        let network = self.network();
        let errors = self.trainer.errors(&network, epoch).map_err(failed)?;
        serde_json::to_string(&errors).map_err(|e| e.to_string())
    }

    /// Evaluates the best weights after the training, which predict from then on. Returns JSON.
    ///
    /// # Errors
    /// The failure of the run.
    pub fn finish(&mut self) -> Result<String, String> {
        let finished = self.trainer.finish().map_err(failed)?;
        let digest = final_digest(&finished);
        let tests = finished.tests.iter();
        let tests: serde_json::Map<_, _> = tests
            .map(|(split, metrics)| ((*split).to_owned(), json!(metrics)))
            .collect();
        let shown = json!({
            "epoch": finished.epoch,
            "test": tests,
            "evaluation": finished.evaluation,
            "weights_digest": digest,
        });
        self.finished = Some(finished);
        Ok(shown.to_string())
    }

    /// The prediction for one item as JSON: its numbers in the units of the data, in the shape of an item.
    ///
    /// # Errors
    /// Why it is not an item of the run.
    pub fn predict(&self, item: &[f32]) -> Result<String, String> {
        let plan = self.plan();
        let shape = [&[1], plan.data.input.shape.as_slice()].concat();
        let size: usize = shape.iter().product();
        if item.len() != size {
            return Err(format!("expected {size} numbers, found {}", item.len()));
        }
        let bytes: Vec<u8> = item.iter().flat_map(|value| value.to_le_bytes()).collect();
        let layout = ArrayLayout {
            element: Element::Float(4),
            big_endian: false,
        };
        let incoming = Incoming {
            shown: Some("the item"),
            ..Incoming::new(&self.transforms, &plan.data, Path::new("the item"))
        };
        let mut outputs = Vec::new();
        let read = incoming.read_array(layout, &shape, &bytes, &mut |piece| {
            let served = piece.split.serve(&[0], None);
            let input = &plan.data.input;
            let inputs = batch::inputs(served.values, served.num_items, input, &self.device.device);
            outputs = self.network().outputs(inputs).into_data().iter().collect();
            ControlFlow::Continue(())
        });
        read.map_err(|e| e.to_string())?;
        self.meaning.activate(&mut outputs);
        let decided = self.meaning.decide(&outputs);
        let shown = json!({ "prediction": decided, "names": self.meaning.names() });
        Ok(shown.to_string())
    }
}

#[wasm_bindgen]
impl Session {
    /// The finished epochs as JSON, for a page that was opened again.
    pub fn history(&self) -> String {
        json!(self.trainer.state().history).to_string()
    }

    /// Updates so far.
    #[wasm_bindgen(getter)]
    pub fn step(&self) -> usize {
        self.trainer.step()
    }

    /// Whether the epoch has no more updates, so that its validation is next.
    #[wasm_bindgen(getter)]
    pub fn is_epoch_over(&self) -> bool {
        self.trainer.state().steps_in_epoch == self.plan().steps_per_epoch
    }

    /// Whether the training has ended.
    #[wasm_bindgen(getter)]
    pub fn is_done(&self) -> bool {
        self.trainer.is_done()
    }

    /// The network and its task as JSON.
    pub fn info(&self) -> String {
        let plan = self.plan();
        let mut info = shown::run(plan);
        info["experiment"] = json!(plan.experiment);
        info["classes"] = json!(self.meaning.names());
        info["outputs"] = json!(plan.network.layers.last().map(|layer| &layer.shape));
        info.to_string()
    }
}

impl Session {
    pub(crate) fn plan(&self) -> &RunPlan {
        self.trainer.plan()
    }

    /// The weights that predict and are exported: those of the best epoch after the training, before that the current
    /// ones.
    pub(crate) fn network(&self) -> Network {
        match &self.finished {
            Some(finished) => finished.best.clone(),
            None => self.trainer.network(),
        }
    }
}

/// The device of a run.
fn device(plan: &RunPlan) -> Result<Named, String> {
    #[cfg(feature = "webgpu")]
    let gpu = crate::gpu::device();
    #[cfg(not(feature = "webgpu"))]
    let gpu = None;
    match (plan.precision, plan.device, gpu) {
        (Precision::F32, FLEX, _) => Ok(Named {
            device: Device::flex(),
            name: PROCESSOR.into(),
        }),
        (Precision::F32, WGPU, Some(gpu)) => Ok(gpu),
        _ => Err(format!(
            "the page computes in `f32` on `{FLEX}` or, where the browser has WebGPU, on `{WGPU}`; train `{}` with `runner run`",
            plan.id
        )),
    }
}

/// The digest of the weights after the last update.
pub(crate) fn final_digest(finished: &Finished) -> Option<String> {
    let weights = finished.weights.first();
    weights.map(|(_, network)| weights_digest(network))
}

/// The message of a failure.
pub(crate) fn failed(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed { message, .. } => message,
        other => format!("{other:?}"),
    }
}
