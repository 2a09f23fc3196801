//! What is known of a training that has ended, as the files of its run.

use std::collections::BTreeMap;
use std::io;

use runner_core::event::{Epoch, Event, Metrics, Outcome, Started};
use runner_core::plan::RunPlan;
use runner_core::record::capsule::DataRoot;
use runner_core::record::{Environment, RunRecord, files_of, sealed};
use serde::Deserialize;
use serde_json::Value as Json;

/// What is known of a training that has ended.
#[derive(Deserialize)]
pub struct About {
    /// The run.
    pub run: RunPlan,
    /// The name of its device, as the page shows it.
    device_name: String,
    /// How many threads trained it.
    threads: usize,
    /// sha256 of each split's items.
    data_digests: BTreeMap<String, String>,
    /// Whose kernels compute each layer.
    layers: BTreeMap<String, String>,
    /// The finished epochs.
    history: Vec<Epoch>,
    /// The last epoch, and why, if the training ended before the planned one.
    stopped_early: Option<(usize, String)>,
    /// The best epoch.
    epoch: usize,
    /// The metrics of its weights after the training, by split.
    tests: BTreeMap<String, Metrics>,
    evaluation: Option<Json>,
    transforms: Json,
    weights_digest: String,
    /// The data's files, with their sums.
    pub roots: Vec<DataRoot>,
}

/// The files of a run by path in its folder.
pub type Files = BTreeMap<String, Vec<u8>>;

impl About {
    /// From what `Recorded.about` of the other module says.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    /// The record and all files of the run, with those given, written at a time in milliseconds since 1970 and in RFC
    /// 3339.
    pub fn files(
        &self,
        mut files: Files,
        time_ms: f64,
        recorded_at: &str,
    ) -> io::Result<(RunRecord, Files)> {
        files.insert("transforms.json".into(), sealed(&self.transforms)?);
        if let Some(evaluation) = &self.evaluation {
            files.insert("evaluation.json".into(), sealed(evaluation)?);
        }
        let started = started(self);
        let environment = Environment::webassembly(recorded_at.into()).of_run(&self.run, &started);
        // Times of single events are not kept.
        let events = events(self, started).into_iter();
        let events = events.map(|event| (time_ms as u64, event));
        files_of(&self.run, &environment, events.collect(), files)
    }
}

fn started(about: &About) -> Started {
    Started {
        device: about.run.device.to_string(),
        device_name: about.device_name.clone(),
        data_digests: about.data_digests.clone(),
        threads: about.threads,
        resumed_step: 0,
        resumed_secs: 0.0,
        history: Vec::new(),
        rejected_checkpoints: Vec::new(),
        startup_secs: 0.0,
        kept_on_device: BTreeMap::new(),
        instructions: None,
        layers: about.layers.clone(),
        build: None,
    }
}

/// What the program would have recorded.
fn events(about: &About, started: Started) -> Vec<Event> {
    let secs = about.history.iter();
    let secs = secs.map(|epoch| epoch.train_secs + epoch.valid_secs);
    let mut events = vec![Event::RunStarted(started)];
    events.extend(about.history.iter().cloned().map(Event::EpochFinished));
    if let Some((epoch, reason)) = about.stopped_early.clone() {
        events.push(Event::StoppedEarly { epoch, reason });
    }
    let tests = about.tests.iter();
    events.extend(tests.map(|(split, metrics)| Event::SplitEvaluated {
        split: split.clone(),
        epoch: about.epoch,
        metrics: metrics.clone(),
    }));
    events.push(Event::RunFinished {
        outcome: Outcome::Completed,
        wall_secs: secs.sum(),
        weights_digest: about.weights_digest.clone(),
    });
    events
}
