//! The same trials on several devices or precisions, side by side.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::model::Trial;
use super::numbers::{mean_and_sd, short_number, value_text};
use super::sample::{ALPHA, Sample, keyed, overlap};
use super::verdict;
use runner_core::show::show_bytes;
use runner_core::table::Columns;
use runner_statistics::{Claims, Direction, Looks, Verdict, verdicts};

/// The keys of a trial's device and precision.
const KEYS: [&str; 2] = ["backend.device", "backend.precision"];

/// A trial on one device with one precision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnBackend {
    /// The trial without its backend: the values of the other axes.
    pub trial: String,
    /// The device and the precision.
    pub backend: String,
    /// Completed runs.
    pub n: usize,
    /// The objective.
    pub objective: Option<Sample>,
    /// Training seconds per epoch.
    pub epoch_secs: Option<f64>,
    /// Peak memory of a run, in bytes.
    pub memory_bytes: Option<u64>,
    /// The comparison with the trial's first backend in file order, if both have runs.
    pub against_first: Option<Against>,
}

/// A backend compared with another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The verdict on its objective against the other's; corrected for all comparisons of the table.
    pub verdict: Option<Verdict>,
    /// The speedup of an epoch.
    pub speed: Option<f64>,
    /// The ratio of memory.
    pub memory: Option<f64>,
}

/// Trials by backend, grouped by their other settings; none if there is only one backend. The trials are in file order.
pub fn by_backend(
    trials: &[Trial],
    objective: &str,
    direction: Direction,
    ratio: Option<f64>,
    looks: Option<Looks>,
) -> Vec<OnBackend> {
    let mut groups: Vec<(String, Vec<&Trial>)> = Vec::new();
    for trial in trials {
        let name = without_backend(trial);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(trial),
            None => groups.push((name, vec![trial])),
        }
    }
    // A difference in data or experiment only is not another backend.
    groups.retain(|(_, members)| {
        let backends = members
            .iter()
            .map(|trial| (&trial.device, &trial.precision));
        backends.collect::<BTreeSet<_>>().len() > 1
    });
    let num_comparisons = groups.iter().map(|(_, members)| members.len() - 1).sum();
    if num_comparisons == 0 {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for (name, members) in &groups {
        // Trials that were computed on another device than their row says, or on different data, are not compared.
        let can_be = |trial: &Trial| trial.num_moved == 0 && !trial.has_mixed_data();
        let first = members.iter().find(|trial| trial.n > 0 && can_be(trial));
        let is_other =
            |trial: &Trial| can_be(trial) && first.is_some_and(|first| first.id != trial.id);
        let others: Vec<&&Trial> = members.iter().filter(|trial| is_other(trial)).collect();
        let baseline = first.map_or::<&[_], _>(&[], |first| first.values(objective));
        let samples = others.iter().map(|trial| trial.values(objective));
        let samples: Vec<_> = [baseline].into_iter().chain(samples).collect();
        let overlap = overlap(&samples, ratio);
        let mut samples = keyed(&samples);
        let baseline = samples.remove(0);
        let claims = Claims {
            direction,
            alpha: ALPHA,
            num_comparisons,
            smallest_difference: None,
            overlap: overlap.as_ref(),
            looks,
        };
        let found = verdicts(&baseline, &samples, &claims);
        let mut found = found.unwrap_or_default().into_iter();
        for trial in members {
            let is_other = is_other(trial);
            let verdict = if is_other { found.next() } else { None };
            rows.push(OnBackend {
                trial: name.clone(),
                backend: match trial.num_moved {
                    0 => format!("{} {}", trial.device, trial.precision),
                    num => format!(
                        "{} {} ({num} of {} moved to another device)",
                        trial.device, trial.precision, trial.n
                    ),
                },
                n: trial.n,
                objective: trial.metrics.get(objective).cloned(),
                epoch_secs: trial.epoch_secs,
                memory_bytes: trial.memory.map(|memory| memory.measured.bytes()),
                against_first: first
                    .filter(|_| is_other && trial.n > 0)
                    .map(|first| against(trial, first, verdict)),
            });
        }
    }
    rows
}

fn without_backend(trial: &Trial) -> String {
    let others = trial.axes.iter();
    let others = others.filter(|(key, _)| !KEYS.contains(&key.as_str()));
    let others: Vec<String> = others
        .map(|(key, value): (&String, &Json)| format!("{key}={}", value_text(value)))
        .collect();
    if others.is_empty() {
        "all".into()
    } else {
        others.join(", ")
    }
}

fn against(trial: &Trial, first: &Trial, verdict: Option<Verdict>) -> Against {
    let bytes = |trial: &Trial| trial.memory.map(|memory| memory.measured.bytes() as f64);
    let secs = first.epoch_secs.zip(trial.epoch_secs);
    Against {
        verdict,
        speed: secs.map(|(first, its)| first / its),
        memory: bytes(trial).zip(bytes(first)).map(|(a, b)| a / b.max(1.0)),
    }
}

/// The table: one row per trial and backend.
pub fn rows(backends: &[OnBackend], value: &str) -> Columns {
    let dash = || "-".to_owned();
    let times = |factor: f64| format!("{} x", short_number(factor));
    let row = |on: &OnBackend| {
        let against = on.against_first.as_ref();
        let found = against.and_then(|a| a.verdict.as_ref());
        let objective = on.objective.as_ref();
        vec![
            on.trial.clone(),
            on.backend.clone(),
            on.n.to_string(),
            objective.map_or_else(dash, |s| mean_and_sd(&s.description)),
            found.map_or_else(dash, verdict::difference),
            found.map_or_else(dash, verdict::code),
            on.epoch_secs.map_or_else(dash, short_number),
            against.and_then(|a| a.speed).map_or_else(dash, times),
            on.memory_bytes.map_or_else(dash, show_bytes),
            against.and_then(|a| a.memory).map_or_else(dash, times),
        ]
    };
    let head = [
        "trial",
        "backend",
        "n",
        value,
        "difference",
        "verdict",
        "s/epoch",
        "speed",
        "memory",
        "times",
    ];
    Columns {
        head: head.map(str::to_owned).to_vec(),
        rows: backends.iter().map(row).collect(),
    }
}
