//! The settings of runs by the keys of the experiment file, for searching and grouping runs.

use serde_json::Value as Json;

use super::settings::{Settings, flatten, settings as planned};
use crate::plan::RunPlan;

/// The settings that all runs share, and the additional ones of each. Runs of a trial differ only in their seed, which
/// is not a setting here.
pub(super) fn settings(runs: &[RunPlan]) -> (Settings, Vec<Settings>) {
    let mut trials: Vec<Settings> = Vec::new();
    let mut of_run = Vec::with_capacity(runs.len());
    for (at, run) in runs.iter().enumerate() {
        if at == 0 || runs[at - 1].trial != run.trial {
            trials.push(of(run));
        }
        of_run.push(trials.len() - 1);
    }
    let mut shared = trials.first().cloned().unwrap_or_default();
    shared.retain(|key, value| trials.iter().all(|trial| trial.get(key) == Some(value)));
    for trial in &mut trials {
        trial.retain(|key, _| !shared.contains_key(key));
    }
    let own = of_run.into_iter().map(|at| trials[at].clone()).collect();
    (shared, own)
}

/// The settings of one run.
pub(super) fn of(run: &RunPlan) -> Settings {
    let mut named = planned(run);
    // A plan contains the planned network, so that variations of the model are only visible in the axes.
    for (key, value) in &run.axes {
        flatten(value.clone(), key.clone(), &mut named);
    }
    named.remove("seed");
    named.retain(|_, value| *value != Json::Null);
    named
}
