//! The points of a search: which come next, and how they become trials.
//!
//! Points are suggested in rounds. All of a round are suggested from the results of the rounds before it, so that the
//! trials of a search do not depend on how many runs are active at a time, or on which of them ends first. The same holds
//! for how far they are trained: a search that prunes ends each run at a rung, and a later round may continue it.

mod refusals;

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::draw::{axis_of, node_at, position_of};
use super::judge::Judge;
use super::pruning::Pruning;
use super::queue::Queue;
use super::read::Row;
use super::{Sweep, SweepSpec};
use crate::data::sha256_hex;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::constraint::{Constraint, total};
use crate::spec::document::{Document, Value};
use crate::spec::search::{
    OnRung, PopulationSpec, SearchMethod, SearchSpec, SuggestedBy, Suggestion,
};
use crate::spec::section::Findings;
use crate::spec::sweep::RandomAxisSpec;
use crate::spec::traded::Traded;
use runner_search::{By, Job, Method, Point, Shown, Space, Told, suggest};

/// The search of a document.
pub struct Search<'a> {
    pub(super) document: &'a Document,
    sweep: SweepSpec,
    /// `[search]`
    pub spec: SearchSpec,
    pub(super) space: Space,
    pub(super) pruning: Option<Pruning>,
    queue: Queue,
    /// What earlier results teach.
    pub(super) prior: Vec<Told>,
}

/// The result of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialResult {
    /// The best value after each epoch, of which lower is better, or only the last of them.
    pub values: Vec<f64>,
    /// Whether its training has ended by itself: the last value is the final one.
    pub is_final: bool,
    /// The values of the further objectives, of which lower is better; empty if one is missing.
    pub others: Vec<f64>,
    /// How far the trial is from meeting the constraints: 0 if it does, infinite if that is not known.
    pub violation: f64,
    /// The same after each epoch, in a search that prunes and has constraints; otherwise empty.
    pub violations: Vec<f64>,
}

impl TrialResult {
    /// A trial without a value.
    pub fn failed() -> Self {
        Self::default()
    }

    /// A trial that was trained completely.
    pub fn of(value: f64) -> Self {
        Self {
            values: vec![value],
            is_final: true,
            ..Self::default()
        }
    }

    /// The finite value after this many epochs.
    pub(super) fn after(&self, epochs: usize) -> Option<f64> {
        let last = self.values.last().filter(|_| self.is_final);
        let value = self.values.get(epochs.checked_sub(1)?).or(last);
        value.copied().filter(|value| value.is_finite())
    }

    /// How far the trial is from meeting the constraints after this many epochs.
    pub(super) fn violation_after(&self, epochs: usize) -> f64 {
        let known = self.violations.get(epochs.saturating_sub(1));
        known
            .or(self.violations.last())
            .copied()
            .unwrap_or(self.violation)
    }

    /// The finite value at the end.
    pub(super) fn last(&self) -> Option<f64> {
        let last = self.values.last().filter(|_| self.is_final);
        last.copied().filter(|value| value.is_finite())
    }
}

/// The sampler of a method.
pub(super) fn sampler(method: SearchMethod) -> Method {
    match method {
        SearchMethod::Random => Method::Random,
        SearchMethod::Sobol => Method::Sobol,
        SearchMethod::Tpe => Method::Tpe,
        SearchMethod::Gp => Method::Gp,
        SearchMethod::CmaEs => Method::CmaEs,
        SearchMethod::Nsga2 => Method::Nsga2,
    }
}

impl<'a> Search<'a> {
    /// The search of a document; none if it has none, or an invalid one.
    pub fn of(document: &'a Document) -> Option<Self> {
        document.root.get("search")?;
        let mut findings = Findings::default();
        let sweep = SweepSpec::read(&document.root, &mut findings);
        if findings.diagnostics.has_errors() {
            return None;
        }
        let spec = sweep.search.clone()?;
        let axes = sweep.random.iter().flat_map(|random| &random.axes);
        let space = Space {
            axes: axes.map(|axis| axis_of(&axis.distribution)).collect(),
        };
        let prune = spec.prune.as_ref();
        let pruning = prune.map(|prune| Pruning::of(document, prune));
        let axes = sweep.random.iter().flat_map(|random| &random.axes);
        let queue = Queue::of(&spec, axes);
        let mut search = Self {
            document,
            sweep,
            spec,
            space,
            pruning,
            queue,
            prior: Vec::new(),
        };
        let prior = document.prior.iter().flatten();
        let told = prior.filter_map(|prior| {
            Some(Told {
                point: search.point(&prior.values)?,
                value: prior.value,
                pruned_at: None,
                others: prior.others.clone(),
                violation: total(&prior.violations),
            })
        });
        search.prior = told.collect();
        Some(search)
    }

    /// Why a trial of earlier results is not in the space.
    pub fn differs(&self, values: &serde_json::Map<String, Json>) -> Option<String> {
        let is_axis = |key: &&String| self.axes().any(|axis| axis.key == **key);
        if let Some(key) = values.keys().find(|key| !is_axis(key)) {
            return Some(format!(
                "it varies `{key}`, which is not an axis of this search"
            ));
        }
        for axis in self.axes() {
            match values.get(&axis.key) {
                None if axis.when.is_none() => {
                    return Some(format!("it does not vary `{}`", axis.key));
                }
                Some(value) if position_of(&axis.distribution, value).is_none() => {
                    return Some(format!(
                        "it has `{} = {value}`, which this search cannot try",
                        axis.key
                    ));
                }
                _ => {}
            }
        }
        let point = self.point(values)?;
        let anywhere = point.iter().map(|at| at.unwrap_or(0.5));
        let is_set = self.conditions(&anywhere.collect::<Vec<f64>>())?;
        let axes = self.axes().zip(&point).zip(is_set);
        let mut other = axes.filter(|((_, at), is_set)| at.is_some() != *is_set);
        let ((axis, _), _) = other.next()?;
        Some(format!("the condition of `{}` is another there", axis.key))
    }

    /// Limits that its best trial has to meet.
    pub fn constraints(&self) -> impl Iterator<Item = &Constraint> {
        self.spec
            .constraints
            .iter()
            .map(|(constraint, _)| constraint)
    }

    /// Its further objectives.
    pub fn objectives(&self) -> impl Iterator<Item = Traded> + '_ {
        self.spec.objectives.iter().map(|(traded, _)| *traded)
    }

    /// The point with this number: of the file, or suggested by the sampler.
    fn suggest(&self, number: usize, shown: &Shown) -> Option<runner_search::Suggestion> {
        let method = match self.spec.method {
            _ if number < self.queue.points.len() => Method::Sobol,
            method => sampler(method),
        };
        let trial = |positions: &[f64]| self.trial(&self.queue.placed(number, positions));
        let stream = (self.spec.seed, number);
        if number >= self.queue.points.len() && !self.prior.is_empty() {
            let is_known = |point: &Point| self.prior.iter().any(|told| told.point == *point);
            let new = |positions: &[f64]| trial(positions).filter(|point| !is_known(point));
            let suggested = suggest(method, &self.space, stream, shown, &new);
            if suggested.is_some() {
                return suggested;
            }
        }
        suggest(method, &self.space, stream, shown, &trial)
    }

    /// A digest of what must not change between the rounds of a search.
    pub fn digest(&self) -> String {
        let root = &self.document.root;
        let value = |key: &str| root.at(key).map(|entry| entry.node.value.to_json());
        let mut all = vec![
            json!(value("sweep.random.axes")),
            json!(self.spec.method),
            json!(self.spec.seed),
            json!(self.spec.parallel),
        ];
        if let (Some(pruning), Some(prune)) = (&self.pruning, &self.spec.prune) {
            all.push(json!([prune, pruning.epochs]));
        }
        let queue = value("search.enqueue");
        all.extend(queue.map(|queue| json!({ "enqueue": queue })));
        let objectives = value("search.objectives");
        all.extend(objectives.map(|objectives| json!({ "objectives": objectives })));
        let constraints = value("search.constraints");
        all.extend(constraints.map(|constraints| json!({ "constraints": constraints })));
        let folders = value("search.warm_start");
        all.extend(folders.map(|folders| json!({ "warm_start": folders })));
        let all = Json::from(all);
        sha256_hex(all.to_string().as_bytes())
    }

    /// The numbers of suggestions at the beginning and at the end of the round to which the trial with this number
    /// belongs, from 0. They do not depend on how many trials there will be: a round that `num_trials` cut short is
    /// completed by a larger one, from the same results.
    pub(super) fn round_of(&self, number: usize) -> (usize, usize) {
        let num_startup = sampler(self.spec.method).num_startup(&self.space);
        let is_unlimited = self.spec.budget.is_unlimited() && self.pruning.is_none();
        let first = match (num_startup, self.spec.num_trials) {
            (None, Some(all)) if is_unlimited => all,
            (Some(startup), _) if self.prior.len() < startup => startup,
            _ => 0,
        };
        if number < first {
            return (0, first);
        }
        let num_before = (number - first) / self.spec.parallel * self.spec.parallel;
        let start = first + num_before;
        (start, start.saturating_add(self.spec.parallel))
    }

    /// All suggestions after the round that follows the known ones, each of which has a result: with new ones at the
    /// end, and in a search that prunes with trials that are trained further. Empty if nothing is left to do.
    ///
    /// # Errors
    ///
    /// If no point is left by `sweep.exclude`.
    pub fn round(
        &self,
        known: &[Suggestion],
        results: &[TrialResult],
    ) -> Result<Vec<Suggestion>, Box<Diagnostic>> {
        let most = self.spec.num_trials.unwrap_or(usize::MAX);
        let (start, end) = self.round_of(known.len());
        let num_new = end.min(most).saturating_sub(known.len());
        let Some(pruning) = &self.pruning else {
            if num_new == 0 {
                return Ok(Vec::new());
            }
            let mut shown = self.shown(&known[..start], results);
            let of_round = known[start..].iter();
            shown.pending = of_round
                .filter_map(|known| self.point(&known.values))
                .collect();
            return self.extended(known.to_vec(), (shown, start), vec![None; num_new]);
        };
        if let Some(population) = self.population() {
            return self.next_interval(population, &pruning.epochs, known, results);
        }
        let shown = self.shown(known, results);
        let rounds = known.iter().filter_map(|known| known.rung);
        let round = rounds.map(|rung| rung.round + 1).max().unwrap_or(0);
        let num = num_new.max(self.spec.parallel);
        let left = most.saturating_sub(known.len());
        let jobs = pruning
            .rule
            .batch(&pruning.climbers(known, results), num, left);
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let mut all = known.to_vec();
        let mut new = Vec::new();
        for job in jobs {
            match job {
                Job::Start { bracket, rung } => new.push(Some(OnRung {
                    epochs: pruning.epochs[rung],
                    bracket,
                    round,
                })),
                Job::Continue { trial } => {
                    if let Some(on) = &mut all[trial].rung {
                        (on.epochs, on.round) = (pruning.next(on.epochs), round);
                    }
                }
            }
        }
        self.extended(all, (shown, known.len()), new)
    }

    /// The population that it trains, if it does.
    pub fn population(&self) -> Option<&PopulationSpec> {
        self.spec.prune.as_ref()?.population.as_ref()
    }

    /// Suggestions with new ones at these rungs, from the results of so many trials.
    pub(super) fn extended(
        &self,
        mut all: Vec<Suggestion>,
        (mut shown, num_shown): (Shown, usize),
        rungs: Vec<Option<OnRung>>,
    ) -> Result<Vec<Suggestion>, Box<Diagnostic>> {
        let num_known = all.len();
        for (number, rung) in (num_known..).zip(rungs) {
            let suggested = self.suggest(number, &shown);
            let suggested = suggested.ok_or_else(|| Box::new(self.no_point()))?;
            let (by, shown_to_it) = match suggested.by {
                _ if number < self.queue.points.len() => (SuggestedBy::File, 0),
                By::Sample => (SuggestedBy::Sample, 0),
                By::Model => (SuggestedBy::Model, num_shown),
            };
            all.push(Suggestion {
                trial: String::new(),
                by,
                shown: shown_to_it,
                values: self.values(&suggested.point),
                rung,
                fork: None,
                is_confirmed: false,
            });
            shown.pending.push(suggested.point);
        }
        Ok(all)
    }

    /// What suggestions and their results teach.
    fn shown(&self, known: &[Suggestion], results: &[TrialResult]) -> Shown {
        let mut shown = Shown {
            told: self.prior.clone(),
            pending: Vec::new(),
        };
        for (suggestion, result) in known.iter().zip(results) {
            let Some(point) = self.point(&suggestion.values) else {
                continue;
            };
            let (value, pruned_at, violation) = match (&self.pruning, suggestion.rung) {
                (Some(pruning), Some(on)) => {
                    let (value, pruned_at) = pruning.told(on, result);
                    (value, pruned_at, result.violation_after(on.epochs))
                }
                _ => (result.last(), None, result.violation),
            };
            // A trial of which not all is known is one without a value.
            let is_known = result.others.len() == self.spec.objectives.len();
            let value = value.filter(|_| is_known);
            shown.told.push(Told {
                point,
                value,
                pruned_at,
                others: result.others.clone(),
                violation,
            });
        }
        shown
    }

    /// Points of the space that are sampled evenly; none if no point was found.
    pub fn samples(&self, num: usize) -> Option<Vec<Suggestion>> {
        let (seed, shown) = (self.spec.seed, Shown::default());
        let trial = |positions: &[f64]| self.trial(positions);
        let sampled = (0..num).map(|number| {
            let stream = (seed, number);
            let suggested = suggest(Method::Sobol, &self.space, stream, &shown, &trial)?;
            Some(Suggestion {
                trial: String::new(),
                by: SuggestedBy::Sample,
                shown: 0,
                values: self.values(&suggested.point),
                rung: None,
                fork: None,
                is_confirmed: false,
            })
        });
        sampled.collect()
    }

    /// The values at a point, by axis.
    fn values(&self, point: &Point) -> serde_json::Map<String, Json> {
        let axes = self.axes().zip(point);
        let values = axes.filter_map(|(axis, position)| {
            let node = node_at(&axis.distribution, axis.span, (*position)?);
            Some((axis.key.clone(), node.value.to_json()))
        });
        values.collect()
    }

    /// The point with these values; none if it is not in the space.
    fn point(&self, values: &serde_json::Map<String, Json>) -> Option<Point> {
        let position = |axis: &RandomAxisSpec| match values.get(&axis.key) {
            None => Some(None),
            Some(value) => position_of(&axis.distribution, value).map(Some),
        };
        self.axes().map(position).collect()
    }

    /// The values of suggestions for all axes, with their places in the file; none if one is not in the space.
    pub fn rows(&self, suggestions: &[Suggestion]) -> Option<Vec<Row>> {
        let row = |suggestion: &Suggestion| {
            let point = self.point(&suggestion.values)?;
            let row = self.axes().zip(&point).map(|(axis, position)| {
                let written = suggestion.values.get(&axis.key)?;
                let mut node = node_at(&axis.distribution, axis.span, (*position)?);
                // The recorded number, rather than that of a position computed from it.
                node.value = match (node.value, written.as_i64(), written.as_f64()) {
                    (Value::Int(_), Some(number), _) => Value::Int(number),
                    (Value::Float(_), _, Some(number)) => Value::Float(number),
                    (other, _, _) => other,
                };
                Some(node)
            });
            Some(row.collect())
        };
        suggestions.iter().map(row).collect()
    }

    pub(super) fn axes(&self) -> impl Iterator<Item = &RandomAxisSpec> {
        self.sweep.random.iter().flat_map(|random| &random.axes)
    }

    /// The point of the trial at these positions, as its recorded values give it; none if it is excluded.
    fn trial(&self, positions: &[f64]) -> Option<Point> {
        let is_set = self.conditions(positions)?;
        let axes = self.axes().zip(positions).zip(is_set);
        let recorded = axes.map(|((axis, position), is_set)| {
            let value = node_at(&axis.distribution, axis.span, *position).value;
            let recorded = position_of(&axis.distribution, &value.to_json());
            is_set.then(|| recorded.unwrap_or(*position))
        });
        Some(recorded.collect())
    }

    /// Which axes a point sets; none if it is excluded.
    fn conditions(&self, positions: &[f64]) -> Option<Vec<bool>> {
        let is_conditional = self.axes().any(|axis| axis.when.is_some());
        if !is_conditional && self.sweep.exclude.is_empty() {
            return Some(vec![true; positions.len()]);
        }
        let row = self.axes().zip(positions);
        let row =
            row.map(|(axis, position)| Some(node_at(&axis.distribution, axis.span, *position)));
        let rows = vec![row.collect()];
        // Whatever is wrong with the sweep is reported when it is expanded.
        let Some(sweep) = Sweep::read(
            self.document,
            &self.sweep,
            Some(&rows),
            &mut Diagnostics::default(),
        ) else {
            return Some(vec![true; positions.len()]);
        };
        let mut judge = Judge::new(&sweep);
        let (set, _) = sweep.set_by_conditions(sweep.options(0), &mut judge);
        if sweep.excludes.iter().any(|rule| judge.holds(*rule, &set)) {
            return None;
        }
        let keys = sweep.axes.iter().zip(&set);
        let off = keys.filter(|(_, set)| set.is_none());
        let off: BTreeSet<_> = off.map(|(axis, _)| axis.key_span).collect();
        Some(
            self.axes()
                .map(|axis| !off.contains(&axis.key_span))
                .collect(),
        )
    }
}

#[cfg(test)]
pub(super) mod tests;
