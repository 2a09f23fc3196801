//! Listed runs of one trial that have different data, and so no common mean.

use std::collections::BTreeMap;

use super::Run;
use crate::report::folds::Folds;
use crate::report::mixture::{DATA_REMEDY, SameData, groups, mixed_data};
use runner_core::record::{Index, RunEntry, State};

/// More warnings than this are left to the reports.
const MAX_WARNINGS: usize = 5;

/// The grouping of runs into trials, for each experiment.
pub struct Trials<'a>(Vec<(&'a Index, Folds)>);

impl<'a> Trials<'a> {
    /// For some experiments.
    pub fn of(indexes: &'a [Index]) -> Self {
        let all = indexes.iter();
        Self(all.map(|index| (index, Folds::of(index))).collect())
    }

    /// Whether these runs contain completed runs of one trial with different data.
    pub fn are_mixed(&self, runs: &[Run<'_>]) -> bool {
        !self.mixed(runs).is_empty()
    }

    /// A line for each trial with completed runs among these that have different data.
    pub fn warnings(&self, runs: &[Run<'_>]) -> Vec<String> {
        let lines = self.mixed(runs).into_iter().map(|(index, trial, mixed)| {
            format!(
                "warning: completed runs of `{trial}` in `{}` read different data, so they have no common mean: {}. {DATA_REMEDY}",
                index.plan.experiment,
                groups(&mixed)
            )
        });
        lines.take(MAX_WARNINGS).collect()
    }

    fn mixed(&self, runs: &[Run<'_>]) -> Vec<(&'a Index, String, Vec<SameData>)> {
        let mut found = Vec::new();
        for (index, folds) in &self.0 {
            let mut trials: BTreeMap<String, Vec<&RunEntry>> = BTreeMap::new();
            let here = runs.iter().filter(|run| std::ptr::eq(run.index, *index));
            for run in here.filter(|run| run.entry.state == State::Completed) {
                let trial = folds.trial(run.entry);
                trials.entry(trial).or_default().push(run.entry);
            }
            for (trial, runs) in trials {
                let mixed = mixed_data(index, &runs, folds);
                if !mixed.is_empty() {
                    found.push((*index, trial, mixed));
                }
            }
        }
        found
    }
}
