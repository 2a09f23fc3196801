//! The same trials on several devices or in several precisions, side by side.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::aggregate::{Mean, Trial};
use super::text::value_text;

/// The keys that say where and in what a trial is computed.
const KEYS: [&str; 2] = ["backend.device", "backend.precision"];

/// A trial on one device in one precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnBackend {
    /// The trial without its backend: the values of the other axes.
    pub trial: String,
    /// The device and the precision.
    pub backend: String,
    /// Completed runs.
    pub n: usize,
    /// The objective.
    pub objective: Option<Mean>,
    /// Seconds that an epoch's training takes.
    pub epoch_secs: Option<f64>,
    /// The most memory that a run held, in bytes.
    pub memory_bytes: Option<u64>,
    /// The same against the first backend of the trial in the order of the file, where both have runs.
    pub against_first: Option<Against>,
}

/// A backend against another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// Its mean objective less the other's.
    pub difference: f64,
    /// How many times faster an epoch is.
    pub speed: f64,
    /// How many times more memory it holds.
    pub memory: Option<f64>,
}

/// Trials by backend, those together that differ in nothing else, in the order of the file; none when there is
/// one backend alone. The trials are those of a report, with their places in the file.
pub fn by_backend(trials: &[&Trial], objective: &str) -> Vec<OnBackend> {
    let mut groups: Vec<(String, Vec<&Trial>)> = Vec::new();
    for trial in trials {
        let name = without_backend(trial);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(trial),
            None => groups.push((name, vec![trial])),
        }
    }
    if groups.iter().all(|(_, members)| members.len() < 2) {
        return Vec::new();
    }
    let rows = groups.iter().flat_map(|(name, members)| {
        let first = members.iter().find(|trial| trial.n > 0);
        members.iter().map(move |trial| {
            let is_other = first.is_some_and(|first| first.id != trial.id);
            OnBackend {
                trial: name.clone(),
                backend: format!("{} {}", trial.device, trial.precision),
                n: trial.n,
                objective: trial.metrics.get(objective).copied(),
                epoch_secs: trial.epoch_secs,
                memory_bytes: trial.memory.map(|memory| memory.measured.bytes()),
                against_first: first
                    .filter(|_| is_other)
                    .and_then(|first| against(trial, first, objective)),
            }
        })
    });
    rows.collect()
}

fn without_backend(trial: &Trial) -> String {
    let others = trial.axes.iter();
    let others = others.filter(|(key, _)| !KEYS.contains(&key.as_str()));
    let others: Vec<String> = others
        .map(|(key, value): (&String, &Json)| format!("{key}={}", value_text(value)))
        .collect();
    match others.is_empty() {
        true => "all".into(),
        false => others.join(", "),
    }
}

fn against(trial: &Trial, first: &Trial, objective: &str) -> Option<Against> {
    let mean = |trial: &Trial| trial.metrics.get(objective).map(|mean| mean.mean);
    let bytes = |trial: &Trial| trial.memory.map(|memory| memory.measured.bytes() as f64);
    Some(Against {
        difference: mean(trial)? - mean(first)?,
        speed: first.epoch_secs? / trial.epoch_secs?,
        memory: bytes(trial).zip(bytes(first)).map(|(a, b)| a / b.max(1.0)),
    })
}
