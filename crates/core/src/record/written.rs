//! The settings of runs by the keys of the experiment file, for searching and grouping runs.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::in_parallel;
use super::settings::{Settings, flatten, settings as planned};
use crate::plan::RunPlan;

/// The settings that all runs share, and the additional ones of each. Runs of a trial differ only in their seed, which
/// is not a setting here.
pub(super) fn settings(runs: &[RunPlan]) -> (Settings, Vec<Settings>) {
    let mut trials: Vec<&RunPlan> = Vec::new();
    let mut of_run = Vec::with_capacity(runs.len());
    for run in runs {
        if trials.last().is_none_or(|last| last.trial != run.trial) {
            trials.push(run);
        }
        of_run.push(trials.len() - 1);
    }
    let first = trials.first().map(|run| of(run)).unwrap_or_default();
    // Most settings are the same in thousands of trials: only the others are kept.
    let apart = in_parallel(&trials, |run| Apart::of(of(run), &first));
    let varied = apart.iter().flat_map(|it| it.own.keys().chain(&it.missing));
    let varied: BTreeSet<&String> = varied.collect();
    let own = apart.iter().map(|it| {
        let mut own = it.own.clone();
        let same = varied.iter().filter_map(|key| first.get_key_value(*key));
        let same = same.filter(|(key, _)| !it.own.contains_key(*key) && !it.missing.contains(*key));
        own.extend(same.map(|(key, value)| (key.clone(), value.clone())));
        own
    });
    let own: Vec<Settings> = own.collect();
    let own = of_run.into_iter().map(|at| own[at].clone()).collect();
    let mut shared = first.clone();
    shared.retain(|key, _| !varied.contains(key));
    (shared, own)
}

/// In what the settings of a trial differ from those of the first one.
struct Apart {
    own: Settings,
    missing: BTreeSet<String>,
}

impl Apart {
    fn of(settings: Settings, first: &Settings) -> Self {
        let (mut own, mut missing) = (Settings::new(), BTreeSet::new());
        let mut known = first.iter().peekable();
        for (key, value) in settings {
            while let Some((before, _)) = known.next_if(|(known, _)| **known < key) {
                missing.insert(before.clone());
            }
            let same = known.next_if(|(known, _)| **known == key);
            if same.is_none_or(|(_, same)| *same != value) {
                own.insert(key, value);
            }
        }
        missing.extend(known.map(|(key, _)| key.clone()));
        Self { own, missing }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_from_the_first_is_kept() {
        let settings = |json: Json| serde_json::from_value::<Settings>(json).unwrap();
        let first = settings(json!({"a": 1, "b": 1, "d": 1, "e": 1}));
        let other = settings(json!({"b": 1, "c": 2, "d": 2}));
        let apart = Apart::of(other, &first);
        assert_eq!(apart.own, settings(json!({"c": 2, "d": 2})));
        assert!(apart.missing.iter().eq(["a", "e"]));
        let same = Apart::of(first.clone(), &first);
        assert!(same.own.is_empty() && same.missing.is_empty());
    }
}
