//! `siblings.json`: the other seeds of a run's trial, so that their spread is known without the experiment.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::event::{Metrics, Outcome};
use crate::plan::RunPlan;
use crate::record::{ExperimentFolder, RunFolder, RunRecord};

/// Another completed run of the same trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sibling {
    /// Its id.
    pub run: String,
    /// Its seed.
    pub seed: u64,
    /// Its environment.
    pub device: String,
    /// sha256 of its final weights by path.
    pub weights_digest: String,
    /// The metrics of its `summary.json`, without NaN.
    pub metrics: Metrics,
}

/// The other completed runs of a run's trial in the surrounding experiment's folder, by seed, and a sentence for each
/// unreadable one.
pub fn siblings(folder: &RunFolder, plan: &RunPlan) -> (Vec<Sibling>, Vec<String>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let Ok(here) = fs::canonicalize(&folder.0) else {
        return (found, unread);
    };
    let Some(runs) = here.parent().filter(|runs| runs.ends_with("runs")) else {
        return (found, unread);
    };
    let Some(experiment) = runs.parent() else {
        return (found, unread);
    };
    let experiment = ExperimentFolder(experiment.to_owned());
    let start = format!("{}-s", plan.trial);
    // By name first: an experiment may have very many runs.
    let is_candidate = |id: &String| {
        let seed = id.strip_prefix(&start);
        *id != plan.id && seed.is_some_and(|seed| seed.parse::<u64>().is_ok())
    };
    let own = RunRecord::read(folder).ok().and_then(|own| own.started);
    let own = own.map(|started| started.data_digests);
    for id in experiment.run_ids().into_iter().filter(is_candidate) {
        let folder = experiment.run(&id);
        match sibling(&folder, plan, own.as_ref()) {
            Ok(sibling) => found.extend(sibling),
            Err(e) => unread.push(format!("run `{id}` is excluded from the comparison: {e}")),
        }
    }
    found.sort_by_key(|sibling| sibling.seed);
    (found, unread)
}

fn sibling(
    folder: &RunFolder,
    plan: &RunPlan,
    own: Option<&BTreeMap<String, String>>,
) -> std::io::Result<Option<Sibling>> {
    let Some(there) = folder.read_plan()? else {
        return Ok(None);
    };
    let record = RunRecord::read_for(folder, &there)?;
    let is_sibling = there.trial == plan.trial
        && there.experiment == plan.experiment
        && record.outcome == Some(Outcome::Completed)
        // Seeds on other data do not measure the spread on this data.
        && record.started.as_ref().map(|it| &it.data_digests) == own;
    let summary = record.summary(&there).filter(|_| is_sibling);
    Ok(summary.map(|summary| Sibling {
        run: summary.run,
        seed: summary.seed,
        device: summary.device,
        weights_digest: summary.weights_digest,
        metrics: summary
            .metrics
            .into_iter()
            .filter(|(_, value)| value.is_finite())
            .collect(),
    }))
}
