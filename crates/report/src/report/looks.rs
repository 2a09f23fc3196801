//! How often the verdicts of an experiment were looked at while seeds were added.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::folds::{Folds, without_fold};
use super::numbers::percent;
use runner_core::diagnostic::counted;
use runner_core::plan::Plan;
use runner_core::record::{Index, Look, RunEntry, State};
use runner_statistics::Looks;

/// The looks at the verdicts of an experiment: analyses with different numbers of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Looking {
    /// The number of this look, from 1.
    pub number: usize,
    /// How many are planned; none if the file does not set `verdict.looks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<usize>,
    /// The runs of the trial with the most at each look, up to this one.
    pub most_runs: Vec<usize>,
    /// The part of the level that all looks may use together, if that is more than all of it, since earlier ones had more
    /// than the plan gives them now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Whether no verdicts are given because runs are left: a look is at all runs of a plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_too_early: bool,
    /// Whether runs are left and no looks are planned: who stops at a look that they like tests more than once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_provisional: bool,
}

impl Looking {
    /// The looks at an index, this one included. An earlier analysis counts if a trial had at least two of its present
    /// runs then, and has more now: with one run, nothing is claimed.
    pub fn at(index: &Index, folds: &Folds) -> Self {
        let mut trial_of: BTreeMap<String, usize> = BTreeMap::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut now: Vec<usize> = Vec::new();
        let completed = index.runs.iter().filter(|run| is_completed(run));
        for run in completed {
            let num = places.len();
            let at = *places.entry(folds.trial(run)).or_insert(num);
            now.resize(places.len(), 0);
            now[at] += 1;
            trial_of.insert(Look::name(run), at);
        }
        let planned = index.plan.verdict.looks;
        let before = earlier(&index.looks, &trial_of, &now);
        let most = now.iter().max().copied().unwrap_or(0);
        let mut most_runs: Vec<usize> = before.iter().map(|(most, _)| *most).collect();
        most_runs.push(most);
        Self {
            number: most_runs.len(),
            planned,
            total: planned.and_then(|planned| total(&before, planned)),
            most_runs,
            is_too_early: planned.is_some() && !is_over(index),
            is_provisional: planned.is_none() && now.iter().any(|num| *num > 1) && !is_over(index),
        }
    }

    /// What is left of the level for this look, if looks are planned.
    pub fn looks(&self) -> Option<Looks> {
        let number = self.number;
        self.planned.map(|planned| Looks { number, planned })
    }

    /// Whether there is anything to say about it.
    pub fn is_usual(&self) -> bool {
        self.planned.is_none() && self.number == 1 && !self.is_provisional
    }

    /// A sentence about the looks at a significance level, as a warning if nothing corrects for them.
    pub fn in_words(&self, alpha: f64) -> Option<String> {
        if self.is_usual() {
            return None;
        }
        let runs: Vec<String> = self.most_runs.iter().map(usize::to_string).collect();
        let runs = runs.join(", ");
        let Some(planned) = self.planned else {
            if self.number == 1 {
                return Some(format!(
                    "Warning: runs are left, so verdicts are provisional: they are wrong with a probability of at most {} only if all planned runs are waited for. Set `verdict.looks` to stop earlier.",
                    percent(alpha)
                ));
            }
            return Some(format!(
                "Warning: seeds were added after verdicts had been looked at ({} with {runs} runs of a trial), so the probability of a wrong claim is above {}. Set `verdict.looks` before the first look to allow for it.",
                counted(self.number, "look"),
                percent(alpha)
            ));
        };
        if self.is_too_early {
            return Some(format!(
                "No verdicts are given before all planned runs have ended, since `verdict.looks` plans {planned} looks and each counts."
            ));
        }
        let (share, all) = (percent(alpha / planned as f64), percent(alpha));
        if let Some(total) = self.total.filter(|_| self.number <= planned) {
            return Some(format!(
                "Warning: this is look {} of {planned} (with {runs} runs of a trial), which have {share} of the {all} for wrong claims each, but earlier ones had more: the claims of all looks together are wrong with a probability of at most {}. Set `verdict.looks` before the first look.",
                self.number,
                percent(total * alpha)
            ));
        }
        Some(if self.number > planned {
            format!(
                "Warning: this is look {} (with {runs} runs of a trial) and `verdict.looks` plans {planned}: nothing can be claimed any more. The claims of the planned looks stand.",
                self.number
            )
        } else {
            format!(
                "This is look {} of {planned} (with {runs} runs of a trial): each has {share} of the {all} for wrong claims.",
                self.number
            )
        })
    }
}

/// The runs of the trial with the most at each of the looks that come before the one at all runs of a plan.
pub fn looks_before(plan: &Plan, looks: &[Look]) -> Vec<usize> {
    let mut trial_of: BTreeMap<String, usize> = BTreeMap::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut all: Vec<usize> = Vec::new();
    for run in &plan.runs {
        let (axes, _) = without_fold(&run.axes);
        let num = places.len();
        let at = *places.entry(Json::Object(axes).to_string()).or_insert(num);
        all.resize(places.len(), 0);
        all[at] += 1;
        trial_of.insert(Look::name_of(&run.id, &run.fingerprint), at);
    }
    let before = earlier(looks, &trial_of, &all);
    before.into_iter().map(|(most, _)| most).collect()
}

/// The part of the level that some earlier looks had and the planned ones after them have, if it is more than all of it.
fn total(before: &[(usize, Option<f64>)], planned: usize) -> Option<f64> {
    let share = 1.0 / planned as f64;
    let had: f64 = before.iter().map(|(_, had)| had.unwrap_or(share)).sum();
    let total = had + share * planned.saturating_sub(before.len()) as f64;
    (total > 1.0 + 1e-9).then_some(total)
}

/// The runs of the trial with the most at each look at which some trial had at least two of its present runs, and fewer
/// than now; with the part of the level that the look had.
fn earlier(
    looks: &[Look],
    trial_of: &BTreeMap<String, usize>,
    now: &[usize],
) -> Vec<(usize, Option<f64>)> {
    let mut found = Vec::new();
    for look in looks {
        let mut then = vec![0; now.len()];
        let known = look.runs.iter().filter_map(|run| trial_of.get(run));
        known.for_each(|at| then[*at] += 1);
        let grown = then.iter().zip(now);
        if grown.into_iter().any(|(then, now)| *then > 1 && then < now) {
            found.push((then.into_iter().max().unwrap_or(0), look.share));
        }
    }
    found
}

/// Whether nothing is left to do for any run.
pub fn is_over(index: &Index) -> bool {
    index.runs.iter().all(|run| !is_left(run.state))
}

/// Whether a run in this state will still be trained.
pub fn is_left(state: State) -> bool {
    matches!(
        state,
        State::Running
            | State::Queued
            | State::Requeued
            | State::Incomplete
            | State::Interrupted
            | State::NotStarted
    )
}

fn is_completed(run: &RunEntry) -> bool {
    run.state == State::Completed
}
