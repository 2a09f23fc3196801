//! The best trade-offs of a search with several objectives.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::model::Trial;
use super::sample::Sample;
use super::searched::by_trial;
use runner_core::plan::Plan;
use runner_core::record::{RunEntry, State};
use runner_statistics::{Direction, pareto_front};

/// The trials that no other trial beats in all objectives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tradeoffs {
    /// The objectives: that of the experiment first.
    pub objectives: Vec<String>,
    /// All trials with a value of each objective, in the order of the ranking.
    pub trials: Vec<Tradeoff>,
}

/// A trial with its means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tradeoff {
    /// The trial.
    pub trial: String,
    /// The mean of each objective over its runs.
    pub values: Vec<f64>,
    /// Whether no other trial that meets the constraints is at least as good in all objectives, and better in one. False
    /// if it does not meet them itself.
    pub is_best: bool,
}

impl Tradeoffs {
    /// Those of a plan, if its search has several objectives.
    pub(super) fn of(plan: &Plan, runs: &[RunEntry], trials: &[Trial]) -> Option<Self> {
        let search = plan.search.as_ref()?;
        if search.objectives.is_empty() {
            return None;
        }
        let first = plan.objective.name();
        let runs_of = by_trial(runs);
        let values = |trial: &Trial| -> Option<Vec<f64>> {
            let mut values = vec![trial.metrics.get(&first).map(Sample::mean)?];
            let runs = runs_of.get(trial.id.as_str())?.iter().copied();
            let runs = runs.filter(|run| run.state == State::Completed && !plan.confirms(run.seed));
            for traded in &search.objectives {
                values.push(RunEntry::mean_reached(*traded, runs.clone())?);
            }
            Some(values)
        };
        let infeasible = trials.iter().filter(|trial| !trial.is_feasible());
        let infeasible: BTreeSet<&str> = infeasible.map(|trial| trial.id.as_str()).collect();
        let mut ranked: Vec<&Trial> = trials.iter().collect();
        ranked.sort_by_key(|trial| trial.rank.unwrap_or(usize::MAX));
        let mut trials: Vec<Tradeoff> = ranked
            .into_iter()
            .filter_map(|trial| {
                Some(Tradeoff {
                    trial: trial.id.clone(),
                    values: values(trial)?,
                    is_best: false,
                })
            })
            .collect();
        let others = search.objectives.iter();
        let directions: Vec<Direction> = [plan.objective.is_better(1.0, 0.0)]
            .into_iter()
            .chain(others.map(|traded| traded.is_better(1.0, 0.0)))
            .map(Direction::of)
            .collect();
        let is_feasible = |at: &usize| !infeasible.contains(trials[*at].trial.as_str());
        let feasible: Vec<usize> = (0..trials.len()).filter(is_feasible).collect();
        let points: Vec<&[f64]> = feasible.iter().map(|at| &trials[*at].values[..]).collect();
        let best = pareto_front(&points, &directions).unwrap_or_default();
        best.iter()
            .for_each(|at| trials[feasible[*at]].is_best = true);
        let names = search.objectives.iter().map(|traded| traded.name());
        Some(Self {
            objectives: [first].into_iter().chain(names).collect(),
            trials,
        })
    }

    /// The best trade-offs.
    pub fn best(&self) -> impl Iterator<Item = &Tradeoff> {
        self.trials.iter().filter(|trial| trial.is_best)
    }
}
