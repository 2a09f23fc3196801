//! The schedule of hyperparameters that population-based training found.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::model::Trial;
use super::searched::by_trial;
use runner_core::plan::Plan;
use runner_core::record::RunEntry;
use runner_core::spec::search::Suggestion;

/// A population, and the lineage of its best member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationReport {
    /// The number of members.
    pub size: usize,
    /// Epochs between decisions.
    pub interval: usize,
    /// The copies that replaced members, in order.
    pub copies: Vec<Copied>,
    /// The schedule of the best trial, from the first epoch on; empty while no trial has a rank.
    pub schedule: Vec<Segment>,
    /// The best epochs of its runs, whose weights count.
    pub best_epochs: BTreeSet<usize>,
}

/// A member that was replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// The epoch after which it was replaced.
    pub after_epoch: usize,
    /// The member, from 1.
    pub member: usize,
    /// The trial of the copy.
    pub trial: String,
    /// What it is a copy of.
    pub of: String,
}

/// Epochs with the same hyperparameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// The first epoch.
    pub from_epoch: usize,
    /// The last epoch.
    pub to_epoch: usize,
    /// The trial that trained them.
    pub trial: String,
    /// The hyperparameters.
    pub values: Map<String, Json>,
}

impl PopulationReport {
    /// That of a plan, if it trains a population.
    pub fn of(plan: &Plan, runs: &[RunEntry], trials: &[Trial]) -> Option<Self> {
        let search = plan.search.as_ref()?;
        let prune = search.prune.as_ref()?;
        let population = prune.population.as_ref()?;
        let known = &search.suggestions;
        let copies = known.iter().filter_map(|copy| {
            let fork = copy.fork?;
            Some(Copied {
                after_epoch: fork.epochs,
                member: fork.member + 1,
                trial: copy.trial.clone(),
                of: known.get(fork.from)?.trial.clone(),
            })
        });
        // Of equal trials, the one that was suggested first.
        let ranks: BTreeMap<&str, usize> = trials
            .iter()
            .filter_map(|trial| Some((trial.id.as_str(), trial.rank?)))
            .collect();
        let best = known
            .iter()
            .find(|known| ranks.get(known.trial.as_str()) == Some(&1));
        let runs = by_trial(runs);
        let of_best = best.and_then(|best| runs.get(best.trial.as_str()));
        let of_best = of_best.map_or(&[][..], Vec::as_slice);
        Some(Self {
            size: population.size,
            interval: prune.step,
            copies: copies.collect(),
            schedule: best.map_or_else(Vec::new, |best| schedule(known, best)),
            best_epochs: of_best.iter().filter_map(|run| run.best_epoch).collect(),
        })
    }
}

/// The segments of a trial, from the first epoch on.
fn schedule(known: &[Suggestion], best: &Suggestion) -> Vec<Segment> {
    let mut schedule = Vec::new();
    let mut next = Some((best, best.rung.map_or(0, |rung| rung.epochs)));
    while let Some((trial, to_epoch)) = next {
        let before = trial.fork.map_or(0, |fork| fork.epochs);
        schedule.push(Segment {
            from_epoch: before + 1,
            to_epoch,
            trial: trial.trial.clone(),
            values: trial.values.clone(),
        });
        // A copy is of an earlier suggestion, so that this ends.
        next = trial
            .fork
            .and_then(|fork| Some((known[..known.len().min(fork.from + 1)].last()?, fork.epochs)));
    }
    schedule.reverse();
    schedule
}
