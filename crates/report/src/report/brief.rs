//! A one-line summary of an experiment: its progress, and the best result.

use std::collections::BTreeMap;

use super::folds::Folds;
use super::mixture::mixed_trials;
use super::numbers::short_number;
use super::rank::is_of_several_losses;
use runner_core::record::{Index, State};

/// A one-line summary of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    /// Its progress, as text.
    pub state: String,
    /// Planned runs.
    pub num_runs: usize,
    /// Completed runs.
    pub num_completed: usize,
    /// The best mean of a trial by the objective, with the trial; none if there is none, or if the objective is a
    /// different function in different trials.
    pub best: Option<String>,
    /// When the last event of a run arrived, in milliseconds since 1970.
    pub last_event_ms: Option<u64>,
}

impl Brief {
    /// Summarizes an experiment; `is_in_use` while a `runner run` writes to it.
    pub fn of(index: &Index, is_in_use: bool) -> Self {
        let num = |state: State| index.runs.iter().filter(|run| run.state == state).count();
        let num_runs = index.runs.len();
        let num_completed = num(State::Completed);
        let running = num(State::Running);
        let mut parts = Vec::new();
        match (running, is_in_use, num_completed == num_runs) {
            (0, false, true) => parts.push("completed".to_owned()),
            (0, false, false) => {}
            (0, true, _) => parts.push("active".to_owned()),
            (_, _, _) => parts.push(format!("{running} running")),
        }
        let is_over = parts.is_empty();
        let others = [
            (State::Failed, "failed"),
            (State::Interrupted, "interrupted"),
            (State::Skipped, "skipped"),
            (State::Incomplete, "incomplete"),
            (State::NotStarted, "not started"),
        ];
        for (state, word) in others {
            let num = num(state);
            // Waiting is not a problem.
            if num > 0 && (is_over || state != State::NotStarted) {
                parts.push(format!("{num} {word}"));
            }
        }
        let unreadable = index.runs.iter().filter(|run| run.state.is_unreadable());
        match unreadable.count() {
            0 => {}
            num => parts.push(format!("{num} unreadable")),
        }
        Self {
            state: parts.join(", "),
            num_runs,
            num_completed,
            best: best(index),
            last_event_ms: index.runs.iter().filter_map(|run| run.last_event_ms).max(),
        }
    }
}

fn best(index: &Index) -> Option<String> {
    let objective = index.plan.objective;
    let name = objective.name();
    if is_of_several_losses(&name, &index.plan.axes) {
        return None;
    }
    let folds = Folds::of(index);
    let mixed = mixed_trials(index);
    let mut trials: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for run in index
        .runs
        .iter()
        .filter(|run| run.state == State::Completed)
    {
        let trial = folds.trial(run);
        let value = run.metrics.get(&name);
        let value = value.filter(|_| !mixed.contains_key(&trial));
        trials.entry(trial).or_default().extend(value);
    }
    let means = trials.iter().filter(|(_, values)| !values.is_empty());
    let means = means.map(|(trial, values)| {
        let n = values.len();
        (trial, n, values.iter().sum::<f64>() / n as f64)
    });
    let (trial, n, mean) = means.reduce(|best, other| {
        if objective.is_better(other.2, best.2) {
            other
        } else {
            best
        }
    })?;
    let mean = short_number(mean);
    Some(match trials.len() {
        1 => format!("{name} {mean} (n = {n})"),
        _ => format!("{name} {mean} (n = {n}): {trial}"),
    })
}
