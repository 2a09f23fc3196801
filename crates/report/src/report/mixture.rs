//! Runs of one trial that do not belong together: those with different data are not averaged, and those of different
//! builds or machines are averaged with a warning.

mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::folds::Folds;
use runner_core::event::Kernels;
use runner_core::record::{DataUsed, Environment, Index, KERNELS, RunEntry, State};
pub use words::{DATA_REMEDY, data_in_words, environments_in_words, groups, other_items};

/// Completed runs of a trial with the same data, if others of the trial have different data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SameData {
    /// sha256 of each split's items.
    pub digests: BTreeMap<String, String>,
    /// The ids of the runs.
    pub runs: Vec<String>,
}

/// A fact that numbers may depend on and that differs between the completed runs of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Differing {
    /// The name of the fact in environments.
    pub what: String,
    /// Each value with its runs. A run that was resumed elsewhere has several.
    pub values: Vec<Having>,
}

/// A value with its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Having {
    /// The value.
    pub value: String,
    /// The ids of the runs.
    pub runs: Vec<String>,
}

/// Runs by the digests of their data.
type ByDigests<'a> = BTreeMap<&'a BTreeMap<String, String>, Vec<String>>;

/// The runs of a trial by their data, if it differs; otherwise empty. Folds have different train and valid splits, so
/// runs are compared with those of the same fold, and all of them by their test split. Records of some earlier versions
/// do not contain the data of a run, which is then not compared.
pub fn mixed_data(index: &Index, runs: &[&RunEntry], folds: &Folds) -> Vec<SameData> {
    let mut by_fold: BTreeMap<Option<u64>, ByDigests<'_>> = BTreeMap::new();
    let mut tests: BTreeSet<Option<&String>> = BTreeSet::new();
    for run in runs {
        let Some(digests) = index.data.get(run.data).map(|data| &data.digests) else {
            continue;
        };
        if digests.is_empty() {
            continue;
        }
        // If the valid split is sampled for each run, the test split is too.
        if !folds.are_splits_drawn {
            tests.insert(digests.get("test"));
        }
        let of_fold = by_fold.entry(folds.data_of(run)).or_default();
        of_fold.entry(digests).or_default().push(run.id.clone());
    }
    let has_one_test = tests.len() < 2;
    by_fold.retain(|_, of_fold| of_fold.len() > 1 || !has_one_test);
    let all = by_fold.into_values().flatten();
    all.map(|(digests, runs)| SameData {
        digests: digests.clone(),
        runs,
    })
    .collect()
}

/// The split that a metric is measured on: averaged weights are evaluated on the same items.
fn split_of(metric: &str) -> &str {
    let split = metric.split('/').next().unwrap_or_default();
    split.trim_end_matches("_ema").trim_end_matches("_swa")
}

/// Whether the split of a metric has the same items in two sets of runs, in each fold that both have if there are
/// several. Values on different items are not compared.
pub fn share_items(own: &[&DataUsed], others: &[&DataUsed], metric: &str) -> bool {
    let split = split_of(metric);
    let digests = |data: &[&DataUsed]| -> Vec<Option<String>> {
        let digests = data.iter().map(|data| data.digests.get(split).cloned());
        digests.collect()
    };
    let (own, others) = (digests(own), digests(others));
    let is_part = |of: &[_], all: &[_]| of.iter().all(|digest| all.contains(digest));
    if own.len() < others.len() {
        !own.is_empty() && is_part(&own, &others)
    } else {
        own.is_empty() || (!others.is_empty() && is_part(&others, &own))
    }
}

/// The trials of an index whose completed runs have different data.
pub fn mixed_trials(index: &Index) -> BTreeMap<String, Vec<SameData>> {
    let folds = Folds::of(index);
    let mut trials: BTreeMap<String, Vec<&RunEntry>> = BTreeMap::new();
    let completed = index
        .runs
        .iter()
        .filter(|run| run.state == State::Completed);
    for run in completed {
        trials.entry(folds.trial(run)).or_default().push(run);
    }
    let mixed = trials
        .into_iter()
        .map(|(trial, runs)| (trial, mixed_data(index, &runs, &folds)));
    mixed.filter(|(_, mixed)| !mixed.is_empty()).collect()
}

/// Differences between the environments of a trial's runs.
pub fn differing(index: &Index, runs: &[&RunEntry]) -> Vec<Differing> {
    let mut by_place: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for run in runs {
        if let Some(at) = run.environment {
            by_place.entry(at).or_default().push(&run.id);
        }
    }
    let places = by_place
        .iter()
        .filter_map(|(at, runs)| Some((index.environments.get(*at)?, runs)));
    let places: Vec<(&Environment, &Vec<&str>)> = places.collect();
    let is_one = places.len() < 2 && places.iter().all(|(place, _)| place.earlier.is_empty());
    if is_one {
        return Vec::new();
    }
    let mut facts: Vec<(&str, BTreeMap<String, Vec<String>>)> = Vec::new();
    for (place, runs) in &places {
        for place in place.earlier.iter().chain([*place]) {
            for (at, (what, value)) in place.facts().into_iter().enumerate() {
                if facts.len() == at {
                    facts.push((what, BTreeMap::new()));
                }
                if let Some(value) = value {
                    add(facts[at].1.entry(value).or_default(), runs);
                }
            }
        }
    }
    facts.push((KERNELS, by_kernels(&places)));
    facts.retain(|(_, values)| values.len() > 1);
    // Another build may have another version of Burn and other backends, which its digest already covers.
    if facts.iter().any(|(what, _)| *what == "runner") {
        facts.retain(|(what, _)| !["burn", "backends"].contains(what));
    }
    let differing = facts.into_iter().map(|(what, values)| Differing {
        what: what.to_owned(),
        values: values
            .into_iter()
            .map(|(value, runs)| Having { value, runs })
            .collect(),
    });
    differing.collect()
}

fn add(all: &mut Vec<String>, runs: &[&str]) {
    for run in runs {
        if !all.iter().any(|known| known == run) {
            all.push((*run).to_owned());
        }
    }
}

/// Runs by compatible kernels: a run selects some itself and reuses others, so only a key with two different selections
/// counts.
fn by_kernels(places: &[(&Environment, &Vec<&str>)]) -> BTreeMap<String, Vec<String>> {
    let mut groups: Vec<(Kernels, Vec<String>)> = Vec::new();
    for (place, runs) in places {
        let Some(kernels) = place.kernels() else {
            continue;
        };
        let goes_with = |(other, _): &&mut (Kernels, Vec<String>)| kernels.differing(other).0 == 0;
        match groups.iter_mut().find(goes_with) {
            Some((known, all)) => {
                known.choices.extend(kernels.choices.clone());
                add(all, runs);
            }
            None => {
                let mut all = Vec::new();
                add(&mut all, runs);
                groups.push((kernels.clone(), all));
            }
        }
    }
    let shown = |digest: &str| digest.chars().take(12).collect();
    groups
        .into_iter()
        .map(|(kernels, runs)| (shown(&kernels.digest), runs))
        .collect()
}
