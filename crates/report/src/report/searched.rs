//! How the trials of a search were found.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::model::Trial;
use runner_core::plan::Plan;
use runner_core::record::RunEntry;
use runner_core::spec::search::{SearchMethod, SuggestedBy};
use runner_statistics::Direction;

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
    /// Those that set the values of an earlier one, whose trial they share.
    pub num_repeated: usize,
    /// Those without a value: they failed, or are not completed.
    pub num_without_value: usize,
    /// Trained epochs of all runs.
    pub epochs: usize,
    /// Seconds of training of all runs.
    pub secs: f64,
    /// The trials that were better than all before them, in order.
    pub history: Vec<Improvement>,
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
            num_repeated: 0,
            num_without_value: 0,
            epochs: 0,
            secs: 0.0,
            history: Vec::new(),
        };
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut best: Option<f64> = None;
        for (at, suggestion) in search.suggestions.iter().enumerate() {
            searched.num_sampled += (suggestion.by == SuggestedBy::Sample) as usize;
            if !seen.insert(&suggestion.trial) {
                searched.num_repeated += 1;
                continue;
            }
            for run in runs.iter().filter(|run| run.trial == suggestion.trial) {
                searched.epochs += run.epochs;
                searched.secs += run.wall_secs;
            }
            let trial = trials.iter().find(|trial| trial.id == suggestion.trial);
            let value =
                trial.and_then(|trial| Some(trial.metrics.get(&objective)?.description.mean));
            let Some(value) = value else {
                searched.num_without_value += 1;
                continue;
            };
            if best.is_none_or(|best| direction.is_better(value, best)) {
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
