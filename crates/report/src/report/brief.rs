//! A one-line summary of an experiment: its progress, and the best result.

use std::collections::BTreeMap;

use super::confirmed;
use super::folds::Folds;
use super::infeasible::Violated;
use super::mixture::mixed_trials;
use super::numbers::short_number;
use super::rank::{is_other_quantity, ranked};
use runner_core::record::{Index, RunEntry, State};
use runner_statistics::{Description, Direction};

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
        let is_completed = num_completed > 0 && num_completed + num(State::Pruned) == num_runs;
        match (running, is_in_use, is_completed) {
            (0, false, true) => parts.push("completed".to_owned()),
            (0, false, false) => {}
            (0, true, _) => parts.push("active".to_owned()),
            (_, _, _) => parts.push(format!("{running} running")),
        }
        let is_over = parts.is_empty();
        let others = [
            (State::Queued, "queued"),
            (State::Requeued, "requeued"),
            (State::Failed, "failed"),
            (State::Interrupted, "interrupted"),
            (State::Pruned, "pruned"),
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

/// The trial that a report ranks highest, by the same rules.
fn best(index: &Index) -> Option<String> {
    let objective = index.plan.objective;
    let name = objective.name();
    if is_other_quantity(index, &name) {
        return None;
    }
    // Runs that confirm trials with other seeds do not select them.
    let (index, _) = confirmed::apart(index);
    let folds = Folds::of(&index);
    let mixed = mixed_trials(&index);
    // In the order of the file, as in a report: of equal trials, the first one is named.
    let mut trials: Vec<(String, Vec<&RunEntry>, usize)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for run in &index.runs {
        let trial = folds.trial(run);
        let at = *places.entry(trial.clone()).or_insert_with(|| {
            trials.push((trial.clone(), Vec::new(), 0));
            trials.len() - 1
        });
        trials[at].2 += 1;
        if run.state == State::Completed {
            trials[at].1.push(run);
        }
    }
    let mean = |(trial, completed, _): &(String, Vec<&RunEntry>, usize)| {
        if mixed.contains_key(trial) || !Violated::all(&index.plan, completed).is_empty() {
            return None;
        }
        let values = completed.iter().map(|run| run.metrics.get(&name).copied());
        let values = values.collect::<Option<Vec<f64>>>()?;
        Description::of(&values).ok().map(|found| found.mean)
    };
    let means: Vec<Option<f64>> = trials.iter().map(mean).collect();
    let direction = Direction::of(objective.metric.higher_is_better());
    let (at, _) = ranked(&means, direction).into_iter().next()?;
    let mean = short_number(means[at]?);
    let (trial, completed, planned) = &trials[at];
    let n = match completed.len() {
        n if n == *planned => n.to_string(),
        n => format!("{n} of {planned}"),
    };
    Some(match trials.len() {
        1 => format!("{name} {mean} (n = {n})"),
        _ => format!("{name} {mean} (n = {n}): {trial}"),
    })
}
