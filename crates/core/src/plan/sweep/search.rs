//! The points of a search: which come next, and how they become trials.
//!
//! Points are suggested in rounds. All of a round are suggested from the results of the rounds before it, so that the
//! trials of a search do not depend on how many runs are active at a time, or on which of them ends first.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::draw::{axis_of, node_at, position_of};
use super::judge::Judge;
use super::read::Row;
use super::{Sweep, SweepSpec};
use crate::data::sha256_hex;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::document::{Document, Value};
use crate::spec::search::{SearchMethod, SearchSpec, SuggestedBy, Suggestion};
use crate::spec::section::Findings;
use crate::spec::sweep::RandomAxisSpec;
use runner_search::{By, Method, NUM_STARTUP, Point, Shown, Space, Told, suggest};

/// The search of a document.
pub struct Search<'a> {
    document: &'a Document,
    sweep: SweepSpec,
    /// `[search]`
    pub spec: SearchSpec,
    space: Space,
}

/// The result of a trial: its value, of which lower is better; none if it failed or has no finite value.
pub type TrialResult = Option<f64>;

impl<'a> Search<'a> {
    /// The search of a document; none if it has none, or an invalid one.
    pub fn of(document: &'a Document) -> Option<Self> {
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
        Some(Self {
            document,
            sweep,
            spec,
            space,
        })
    }

    /// A digest of what must not change between the rounds of a search.
    pub fn digest(&self) -> String {
        let root = &self.document.root;
        let value = |key: &str| root.at(key).map(|entry| entry.node.value.to_json());
        let all = json!([
            value("sweep.random.axes"),
            self.spec.method,
            self.spec.seed,
            self.spec.parallel,
        ]);
        sha256_hex(all.to_string().as_bytes())
    }

    /// The number of suggestions after the round that follows `num`.
    fn end_of_round(&self, num: usize) -> usize {
        let most = self.spec.num_trials.unwrap_or(usize::MAX);
        let learns = self.spec.method == SearchMethod::Tpe;
        let end = match (learns, self.spec.num_trials) {
            (false, Some(all)) if self.spec.budget.is_unlimited() => all,
            (true, _) if num < NUM_STARTUP => NUM_STARTUP,
            _ => num + self.spec.parallel,
        };
        end.min(most)
    }

    /// The suggestions of the round that follows the known ones, each of which has a result. Empty if there is no more.
    ///
    /// # Errors
    ///
    /// If no point is left by `sweep.exclude`.
    pub fn round(
        &self,
        known: &[Suggestion],
        results: &[TrialResult],
    ) -> Result<Vec<Suggestion>, Box<Diagnostic>> {
        let told = known.iter().zip(results);
        let told = told.filter_map(|(suggestion, value)| {
            let point = self.point(suggestion)?;
            Some(Told {
                point,
                value: value.filter(|value| value.is_finite()),
            })
        });
        let mut shown = Shown {
            told: told.collect(),
            pending: Vec::new(),
        };
        let method = match self.spec.method {
            SearchMethod::Random => Method::Random,
            SearchMethod::Sobol => Method::Sobol,
            SearchMethod::Tpe => Method::Tpe,
        };
        let trial = |positions: &[f64]| self.trial(positions);
        let mut round = Vec::new();
        for number in known.len()..self.end_of_round(known.len()) {
            let stream = (self.spec.seed, number);
            let found = suggest(method, &self.space, stream, &shown, &trial);
            let suggested = found.ok_or_else(|| Box::new(self.no_point()))?;
            round.push(Suggestion {
                trial: String::new(),
                by: match suggested.by {
                    By::Sample => SuggestedBy::Sample,
                    By::Model => SuggestedBy::Model,
                },
                shown: match suggested.by {
                    By::Sample => 0,
                    By::Model => known.len(),
                },
                values: self.values(&suggested.point),
            });
            shown.pending.push(suggested.point);
        }
        Ok(round)
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
            })
        });
        sampled.collect()
    }

    fn no_point(&self) -> Diagnostic {
        let message = "the search found no point that `sweep.exclude` leaves";
        let span = self.sweep.exclude.first().map(|text| text.span);
        Diagnostic::error("sweep", message)
            .at(span.unwrap_or(self.spec.span))
            .help("exclude less, or search smaller ranges")
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

    /// The point of a suggestion; none if it is not in the space.
    fn point(&self, suggestion: &Suggestion) -> Option<Point> {
        let position = |axis: &RandomAxisSpec| match suggestion.values.get(&axis.key) {
            None => Some(None),
            Some(value) => position_of(&axis.distribution, value).map(Some),
        };
        self.axes().map(position).collect()
    }

    /// The values of suggestions for all axes, with their places in the file; none if one is not in the space.
    pub fn rows(&self, suggestions: &[Suggestion]) -> Option<Vec<Row>> {
        let row = |suggestion: &Suggestion| {
            let point = self.point(suggestion)?;
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

    fn axes(&self) -> impl Iterator<Item = &RandomAxisSpec> {
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
mod tests {
    use super::*;

    /// The suggestions of a search whose trials have these values.
    fn searched(text: &str, value: impl Fn(&Suggestion) -> TrialResult) -> Vec<Suggestion> {
        let document = Document::compose("spec.toml", text, None).ok().unwrap();
        let search = Search::of(&document).unwrap();
        let mut known: Vec<Suggestion> = Vec::new();
        loop {
            let results: Vec<_> = known.iter().map(&value).collect();
            let round = search.round(&known, &results).ok().unwrap();
            if round.is_empty() {
                return known;
            }
            known.extend(round);
        }
    }

    #[test]
    fn a_point_that_only_differs_in_unrecorded_digits_is_not_suggested() {
        // Two hundred values, as rounded.
        let text = r#"
[search]
type = "tpe"
num_trials = 90

[sweep.random.axes]
"optimizer.learning_rate" = { type = "log_uniform", min = 0.1, max = 0.102 }
"#;
        let rate = |suggestion: &Suggestion| suggestion.values["optimizer.learning_rate"].clone();
        let value = |suggestion: &Suggestion| Some((rate(suggestion).as_f64()? - 0.1004).abs());
        let all = searched(text, value);
        let tried: BTreeSet<String> = all.iter().map(|s| rate(s).to_string()).collect();
        assert_eq!((all.len(), tried.len()), (90, 90));
    }
}
