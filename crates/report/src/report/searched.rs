//! How the trials of a search were found.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::confirmed::Confirmed;
use super::model::Trial;
use super::population::PopulationReport;
use super::tradeoffs::Tradeoffs;
use runner_core::plan::Plan;
use runner_core::record::{RunEntry, State};
use runner_core::spec::search::{PruneRule, SearchMethod, SuggestedBy};
use runner_statistics::{Direction, are_equal};

/// A search, and how the best trial changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// How points were suggested.
    #[serde(rename = "type")]
    pub method: SearchMethod,
    /// The number of suggestions so far.
    pub num_suggested: usize,
    /// Those that were sampled, without regard to results.
    pub num_sampled: usize,
    /// Those that are in the file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_enqueued: usize,
    /// Trials of earlier results that the search learned from.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_prior: usize,
    /// Those that set the values of an earlier one, whose trial they share.
    pub num_repeated: usize,
    /// Those without a value: they failed, or are not completed.
    pub num_without_value: usize,
    /// The constraints, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// Trials with a value that do not meet them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_infeasible: usize,
    /// Trials that were pruned, with what that saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruning: Option<Pruning>,
    /// The population that was trained, with the schedule that it found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<PopulationReport>,
    /// Trained epochs of all runs.
    pub epochs: usize,
    /// Seconds of training of all runs.
    pub secs: f64,
    /// The trials that were better than all before them, in order, of those that meet the constraints.
    pub history: Vec<Improvement>,
    /// The best trade-offs, in a search for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tradeoffs: Option<Tradeoffs>,
    /// The best trials, trained with other seeds; best first by those.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<Confirmed>,
}

/// How the trials of a search were pruned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pruning {
    /// The rule.
    #[serde(rename = "type")]
    pub rule: PruneRule,
    /// The number of pruned trials.
    pub num_pruned: usize,
    /// Epochs that all started runs would have, if none were pruned.
    pub planned_epochs: usize,
    /// Seconds that the untrained epochs of pruned runs would have taken, each at the measured median of its run's
    /// epochs.
    pub saved_secs: f64,
    /// How far trials were trained, by epochs.
    pub rungs: Vec<Rung>,
}

/// The trials that were trained up to some epoch at least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// The epochs.
    pub epochs: usize,
    /// Trials whose runs were to be trained so far.
    pub num_trials: usize,
    /// Those that were ended here.
    pub num_pruned: usize,
}

/// A trial that was better than all before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Improvement {
    /// The number of the suggestion, from 1.
    pub number: usize,
    /// The trial.
    pub trial: String,
    /// What chose it.
    pub by: SuggestedBy,
    /// The mean of the objective.
    pub value: f64,
    /// Trained epochs of all runs up to it, in the order of suggestions.
    pub epochs: usize,
    /// Seconds of training of all runs up to it, in the order of suggestions.
    pub secs: f64,
}

impl Searched {
    /// The search of a plan, if it has one.
    pub fn of(
        plan: &Plan,
        runs: &[RunEntry],
        trials: &[Trial],
        direction: Direction,
    ) -> Option<Self> {
        let search = plan.search.as_ref()?;
        let objective = plan.objective.name();
        let mut searched = Self {
            method: search.method,
            num_suggested: search.suggestions.len(),
            num_sampled: 0,
            num_enqueued: 0,
            num_prior: search.prior.len(),
            num_repeated: 0,
            num_without_value: 0,
            constraints: search
                .constraints
                .iter()
                .map(|constraint| constraint.source().to_owned())
                .collect(),
            num_infeasible: 0,
            pruning: Pruning::of(plan, runs),
            population: PopulationReport::of(plan, runs, trials),
            epochs: 0,
            secs: 0.0,
            history: Vec::new(),
            tradeoffs: Tradeoffs::of(plan, runs, trials),
            confirmed: Vec::new(),
        };
        let runs_of = by_trial(runs);
        let copied = search.copied_epochs();
        let trials: BTreeMap<&str, &Trial> = trials
            .iter()
            .map(|trial| (trial.id.as_str(), trial))
            .collect();
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut best: Option<f64> = None;
        for (at, suggestion) in search.suggestions.iter().enumerate() {
            searched.num_sampled += (suggestion.by == SuggestedBy::Sample) as usize;
            searched.num_enqueued += (suggestion.by == SuggestedBy::File) as usize;
            if !seen.insert(&suggestion.trial) {
                searched.num_repeated += 1;
                continue;
            }
            let runs = runs_of.get(suggestion.trial.as_str());
            let runs = runs.map_or(&[][..], Vec::as_slice);
            for run in runs {
                // Those that it took over were trained once.
                let before = copied.get(run.trial.as_str()).copied().unwrap_or(0);
                searched.epochs += run.epochs.saturating_sub(before);
                searched.secs += run.wall_secs;
            }
            let trial = trials.get(suggestion.trial.as_str()).copied();
            let value =
                trial.and_then(|trial| Some(trial.metrics.get(&objective)?.description.mean));
            let Some(value) = value else {
                let is_pruned = runs.iter().any(|run| is_pruned(run));
                searched.num_without_value += usize::from(!is_pruned);
                continue;
            };
            if trial.is_some_and(|trial| !trial.is_feasible()) {
                searched.num_infeasible += 1;
                continue;
            }
            let is_better = |best| direction.is_better(value, best) && !are_equal(value, best);
            if best.is_none_or(is_better) {
                best = Some(value);
                searched.history.push(Improvement {
                    number: at + 1,
                    trial: suggestion.trial.clone(),
                    by: suggestion.by,
                    value,
                    epochs: searched.epochs,
                    secs: searched.secs,
                });
            }
        }
        Some(searched)
    }
}

impl Pruning {
    fn of(plan: &Plan, runs: &[RunEntry]) -> Option<Self> {
        let search = plan.search.as_ref()?;
        let prune = search.prune.as_ref()?;
        if prune.population.is_some() {
            // A member that ends is replaced, which saves nothing.
            return None;
        }
        let rule = prune.rule;
        let pruned = runs.iter().filter(|run| is_pruned(run));
        let pruned: BTreeSet<&str> = pruned.map(|run| run.trial.as_str()).collect();
        let trials = search.epochs().into_iter();
        let trials: BTreeMap<&str, (usize, bool)> = trials
            .map(|(trial, epochs)| (trial, (epochs, pruned.contains(trial))))
            .collect();
        let ends: BTreeSet<usize> = trials.values().map(|(epochs, _)| *epochs).collect();
        let rungs = ends.into_iter().map(|epochs| Rung {
            epochs,
            num_trials: trials.values().filter(|(to, _)| *to >= epochs).count(),
            num_pruned: trials
                .values()
                .filter(|trial| **trial == (epochs, true))
                .count(),
        });
        let started = runs.iter().filter(|run| run.epochs > 0);
        let left = runs.iter().filter(|run| is_pruned(run));
        let saved = left.filter_map(|run| {
            Some(run.num_epochs.saturating_sub(run.epochs) as f64 * run.epoch_secs?)
        });
        Some(Self {
            rule,
            num_pruned: trials.values().filter(|(_, is_pruned)| *is_pruned).count(),
            planned_epochs: started.map(|run| run.num_epochs).sum(),
            saved_secs: saved.sum(),
            rungs: rungs.collect(),
        })
    }
}

/// The runs of each trial.
pub(super) fn by_trial(runs: &[RunEntry]) -> BTreeMap<&str, Vec<&RunEntry>> {
    let mut by_trial: BTreeMap<&str, Vec<&RunEntry>> = BTreeMap::new();
    for run in runs {
        by_trial.entry(&run.trial).or_default().push(run);
    }
    by_trial
}

fn is_zero(num: &usize) -> bool {
    *num == 0
}

fn is_pruned(run: &RunEntry) -> bool {
    run.state == State::Pruned
}
