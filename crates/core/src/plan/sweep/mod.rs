//! Expansion of the sweep into trials.
//!
//! A sweep is a product of *factors*. A factor is a list of options, and an option sets some keys: each axis of
//! `[sweep.grid]` is a factor, and `[sweep.zip]`, `[[sweep.list]]` and `[sweep.random]` are one each, in this order,
//! the last varying fastest. An *axis* is one key over the options of its factor. A *point* selects an option of each
//! factor. Then, for every point in order:
//!
//! 1. `when`: an axis whose condition is false keeps the value of its key in the file;
//! 2. `exclude`: a point that satisfies a condition is dropped;
//! 3. a point that sets the same values as an earlier one is merged into it;
//! 4. `limit`: of the remaining points, the first ones are kept.
//!
//! All of this only uses the values of axes, so that very many points are cheap; the remaining ones are decoded and
//! checked as separate files ([`Expansion::tree`]).

mod account;
mod axis;
mod condition;
mod draw;
mod expansion;
mod judge;
mod lost;
mod numbers;
mod points;
mod population;
mod pruning;
mod queue;
mod read;
pub mod search;
mod types;

use std::collections::{BTreeMap, BTreeSet};

pub use account::{Account, Dropped};
use axis::Axis;
use condition::Condition;
pub use expansion::Expansion;
use judge::Judge;
use lost::{Cause, Tally};
use read::{Reader, Row, refuse_overridden};

use crate::data::sha256_hex;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, Span, counted, grouped};
use crate::spec::SWEEP_TABLES;
use crate::spec::document::{Document, Table};
use crate::spec::portable::{folded, is_reserved};
use crate::spec::search::{Fork, Suggestion};
use crate::spec::section::Findings;
use crate::spec::sweep::{SweepSpec, Text};

/// More runs than this are a mistake in the file.
const MAX_RUNS: usize = 100_000;

/// More points than this, before exclusions, are a mistake too.
const MAX_POINTS: usize = 1_000_000;

/// More points times axes and conditions take too long.
const MAX_WORK: usize = 100_000_000;

/// Options that vary together.
#[derive(Clone, Debug)]
pub struct Factor {
    /// The key of its axis, or the table of the file.
    pub name: String,
    /// The number of its options.
    pub num: usize,
}

impl Factor {
    fn new(name: impl Into<String>, num: usize) -> Self {
        let name = name.into();
        Self { name, num }
    }
}

/// One trial, as an option for each axis.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its name: `learning_rate=0.01,hidden=128`, or `base` if no axis is set.
    pub id: String,
    /// The option that sets each axis; none if it is not set.
    set: Vec<Option<u32>>,
}

/// The suggestion that a trial begins as a copy of, after so many epochs, if it does.
type Copied = Option<(usize, usize)>;

/// A sweep, parsed and ready to be expanded.
struct Sweep {
    base: Table,
    axes: Vec<Axis>,
    factors: Vec<Factor>,
    conditions: Vec<Condition>,
    /// Axes with a condition, each after those that its condition reads.
    order: Vec<usize>,
    /// The conditions of `exclude`, by index.
    excludes: Vec<usize>,
    limit: Option<(usize, Span)>,
    /// Whether more points will follow, so that nothing can be said about all of them.
    is_search: bool,
}

/// Expands the sweep of a document. Errors, and settings without effect, go into `diagnostics`; returns nothing if the
/// sweep is invalid.
pub fn expand(
    document: &Document,
    num_seeds: usize,
    diagnostics: &mut Diagnostics,
) -> Option<Expansion> {
    let mut findings = Findings::default();
    let spec = SweepSpec::read(&document.root, &mut findings);
    if findings.diagnostics.has_errors() {
        let wrong = findings.diagnostics.0.into_iter();
        wrong.for_each(|diagnostic| diagnostics.push(diagnostic));
        return None;
    }
    let (mut suggestions, rows) = suggested(document, diagnostics)?;
    let sweep = Sweep::read(document, &spec, rows.as_deref(), diagnostics)?;
    let num_points = sweep.factors.iter().map(|factor| factor.num);
    let num_points = num_points.chain([1]).try_fold(1, usize::checked_mul);
    let only_grid = spec.exclude.is_empty() && spec.limit.is_none() && sweep.order.is_empty();
    let num_runs = num_points.and_then(|num| num.checked_mul(num_seeds));
    let too_many = |what: String| {
        let first = sweep.axes.first()?;
        let diagnostic = Diagnostic::error("sweep", what).at(first.key_span);
        Some(diagnostic.help("remove values from the axes, or seeds"))
    };
    if only_grid && num_runs.is_none_or(|num| num > MAX_RUNS) {
        let refusal = too_many(format!("the sweep has more than {MAX_RUNS} runs"));
        refusal.into_iter().for_each(|d| diagnostics.push(d));
        return None;
    }
    let Some(num_points) = num_points.filter(|num| *num <= MAX_POINTS) else {
        let refusal = too_many(format!(
            "the sweep has more than {MAX_POINTS} points before exclusions"
        ));
        refusal.into_iter().for_each(|d| diagnostics.push(d));
        return None;
    };
    let num_rules = sweep.axes.len() + sweep.conditions.len();
    if num_points.saturating_mul(num_rules) > MAX_WORK {
        let refusal = too_many(format!(
            "the sweep has {} points of {} axes with {}, which is too many to evaluate",
            grouped(num_points as u64),
            sweep.axes.len(),
            counted(sweep.conditions.len(), "condition"),
        ));
        refusal.into_iter().for_each(|d| diagnostics.push(d));
        return None;
    }
    let forks: Vec<_> = suggestions.iter().map(|known| known.fork).collect();
    let (points, places, account) = sweep.points((num_points, num_seeds), &forks, diagnostics)?;
    for (suggestion, place) in suggestions.iter_mut().zip(places) {
        suggestion.trial = place.map_or_else(String::new, |place| points[place].id.clone());
    }
    if account.num_runs > MAX_RUNS {
        let refusal = too_many(format!(
            "the sweep has {} runs; the limit is {MAX_RUNS}",
            account.num_runs
        ));
        let refusal =
            refusal.map(|d| d.help("or keep only the first trials with `limit` in `[sweep]`"));
        refusal.into_iter().for_each(|d| diagnostics.push(d));
        return None;
    }
    Some(Expansion {
        base: sweep.base,
        axes: sweep.axes,
        points,
        account,
        suggestions,
    })
}

/// The points of a search: those that the document was given, or otherwise those of the first round. None if there are
/// none to be found.
fn suggested(
    document: &Document,
    diagnostics: &mut Diagnostics,
) -> Option<(Vec<Suggestion>, Option<Vec<Row>>)> {
    let Some(search) = search::Search::of(document) else {
        return Some((Vec::new(), None));
    };
    let refusals = search.refusals();
    if !refusals.is_empty() {
        refusals
            .into_iter()
            .for_each(|wrong| diagnostics.push(wrong));
        return None;
    }
    for warning in search.warnings() {
        diagnostics.push(warning);
    }
    let suggestions = match &document.suggestions {
        Some(suggestions) => suggestions.clone(),
        None => match search.round(&[], &[]) {
            Ok(suggestions) => suggestions,
            Err(diagnostic) => {
                diagnostics.push(*diagnostic);
                return None;
            }
        },
    };
    let Some(rows) = search.rows(&suggestions) else {
        let message = "the results folder contains suggestions that are not in the search space";
        let wrong = Diagnostic::error("sweep", message).at(search.spec.span);
        diagnostics.push(wrong.help("use another `experiment.name` for a search of other axes"));
        return None;
    };
    Some((suggestions, Some(rows)))
}

impl Sweep {
    fn read(
        document: &Document,
        spec: &SweepSpec,
        rows: Option<&[Row]>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let mut base = document.root.clone();
        base.entries
            .retain(|entry| !SWEEP_TABLES.contains(&entry.key.as_str()));
        let mut found = Diagnostics::default();
        let mut reader = Reader {
            base: &base,
            columns: Vec::new(),
            factors: Vec::new(),
            rows,
            diagnostics: &mut found,
        };
        reader.read(spec);
        let (columns, factors) = (reader.columns, reader.factors);
        let whens: Vec<_> = columns.iter().map(|column| column.when.clone()).collect();
        let mut sweep = Self {
            axes: axis::axes(columns, &base),
            base,
            factors,
            conditions: Vec::new(),
            order: Vec::new(),
            excludes: Vec::new(),
            limit: spec.limit,
            is_search: rows.is_some(),
        };
        types::narrow(&mut sweep.axes, &sweep.base);
        refuse_overridden(&sweep.axes, &document.overrides, &mut found);
        // An invalid axis is missing, and conditions over it would be refused for that reason.
        if !found.has_errors() {
            sweep.read_conditions(spec, &whens, &mut found);
        }
        let is_right = !found.has_errors();
        found.0.into_iter().for_each(|d| diagnostics.push(d));
        is_right.then_some(sweep)
    }

    fn read_conditions(
        &mut self,
        spec: &SweepSpec,
        whens: &[Option<Text>],
        diagnostics: &mut Diagnostics,
    ) {
        for (at, when) in whens.iter().enumerate() {
            let Some(when) = when else { continue };
            // The keys of one axis share its condition.
            let known = self.conditions.iter().position(|c| c.text == *when);
            self.axes[at].when = match known {
                Some(known) => Some(known),
                None => self.read_condition(when, diagnostics),
            };
        }
        for text in &spec.exclude {
            let read = self.read_condition(text, diagnostics);
            self.excludes.extend(read);
        }
        let conditional = |at: &usize| self.axes[*at].when.is_some();
        let mut left: Vec<usize> = (0..self.axes.len()).filter(conditional).collect();
        while !left.is_empty() {
            let waits = |at: &usize| {
                let condition = &self.conditions[self.axes[*at].when.unwrap_or(0)];
                condition.axes.iter().any(|other| left.contains(other))
            };
            let (waiting, ready): (Vec<_>, Vec<_>) = left.iter().copied().partition(waits);
            if ready.is_empty() {
                let keys: Vec<_> = waiting
                    .iter()
                    .map(|at| self.axes[*at].key.as_str())
                    .collect();
                let condition = &self.conditions[self.axes[waiting[0]].when.unwrap_or(0)];
                let message = match keys.as_slice() {
                    [key] => format!("whether `{key}` is set depends on its own value"),
                    _ => format!(
                        "the `when` conditions of `{}` depend on each other",
                        keys.join("`, `")
                    ),
                };
                diagnostics.push(
                    Diagnostic::error("sweep", message)
                        .at(condition.text.span)
                        .help("write conditions over keys that are always set"),
                );
                return;
            }
            self.order.extend(ready);
            left = waiting;
        }
    }

    fn read_condition(&mut self, text: &Text, diagnostics: &mut Diagnostics) -> Option<usize> {
        match Condition::new(text, &self.base, &self.axes) {
            Ok(condition) => {
                self.conditions.push(condition);
                Some(self.conditions.len() - 1)
            }
            Err(diagnostic) => {
                diagnostics.push(*diagnostic);
                None
            }
        }
    }

    /// The options of a point without those of axes whose condition is false, and these conditions.
    fn set_by_conditions(
        &self,
        mut set: Vec<Option<u32>>,
        judge: &mut Judge<'_>,
    ) -> (Vec<Option<u32>>, Vec<usize>) {
        let mut off = Vec::new();
        for axis in &self.order {
            let when = self.axes[*axis].when.unwrap_or(0);
            if !judge.holds(when, &set) {
                set[*axis] = None;
                off.push(when);
            }
        }
        (set, off)
    }

    /// The points that become trials, and for the points of a search the index of its trial. `forks` says which points
    /// begin as copies: these are other trials than those that set the same values.
    fn points(
        &self,
        (num_points, num_seeds): (usize, usize),
        forks: &[Option<Fork>],
        diagnostics: &mut Diagnostics,
    ) -> Option<(Vec<Point>, Vec<Option<usize>>, Account)> {
        let mut judge = Judge::new(self);
        let mut account = Account::new(&self.factors, num_points);
        let mut tally = Tally::new(self);
        let mut seen: BTreeMap<(Vec<u32>, Copied), usize> = BTreeMap::new();
        let mut places = Vec::new();
        let mut ids: BTreeSet<String> = BTreeSet::new();
        let mut points = Vec::new();
        for at in 0..num_points {
            let all = self.options(at);
            let (set, mut off) = self.set_by_conditions(all.clone(), &mut judge);
            let fork = forks.get(at).copied().flatten();
            let copied = fork.map(|fork| (fork.from, fork.epochs));
            let values = (self.ids(&set), copied);
            // Each is evaluated for every point, so that one that is never true is found.
            let holding = self
                .excludes
                .iter()
                .filter(|rule| judge.holds(**rule, &set));
            let holding: Vec<usize> = holding.copied().collect();
            let cause;
            if let Some(rule) = holding.first() {
                cause = Some(Cause::Excluded(*rule));
                let text = &self.conditions[*rule].text;
                account.excluded(text, || self.id(&set));
            } else if seen.contains_key(&values) {
                cause = Some(Cause::Merged);
                off.sort_unstable();
                off.dedup();
                let rules: Vec<_> = off.iter().map(|at| &self.conditions[*at].text).collect();
                account.merged(&rules, || self.id(&set));
            } else if let Some((limit, span)) =
                self.limit.filter(|(limit, _)| points.len() >= *limit)
            {
                cause = Some(Cause::Cut);
                account.cut(limit, span, || self.id(&set));
            } else {
                cause = None;
                let mut id = self.id(&set);
                if is_reserved(&id) {
                    id = format!("_{id}");
                }
                // Ids are folder names, and two that differ only in case are one folder on some systems.
                while !ids.insert(folded(&id)) {
                    id = format!("{id}.{}", &sha256_hex(id.as_bytes())[..6]);
                }
                account.narrowed(&self.axes, &set, &id);
                seen.insert(values.clone(), points.len());
                points.push(Point {
                    id,
                    set: set.clone(),
                });
            }
            if self.is_search {
                places.push(seen.get(&values).copied());
            }
            tally.add(&all, &set, cause);
        }
        account.finish(points.len(), num_seeds);
        let mut found = Diagnostics::default();
        let is_right = judge.report(&mut found);
        // What holds for the first points of a search need not hold for the others.
        let found = found.0.into_iter();
        found
            .filter(|found| !self.is_search || found.severity == Severity::Error)
            .for_each(|found| diagnostics.push(found));
        if let (true, true, Some(rule)) = (is_right, points.is_empty(), self.excludes.first()) {
            let message = "together, these conditions exclude every point";
            diagnostics.push(
                Diagnostic::error("sweep", message)
                    .at(self.conditions[*rule].text.span)
                    .help("correct one of them, or remove it"),
            );
            return None;
        }
        if is_right && !points.is_empty() && !self.is_search {
            tally.report(diagnostics);
        }
        is_right.then_some((points, places, account))
    }

    /// The option of each axis at a position of the product; the last factor varies fastest.
    fn options(&self, at: usize) -> Vec<Option<u32>> {
        let mut at = at;
        let mut options = vec![0; self.factors.len()];
        for (option, factor) in options.iter_mut().zip(&self.factors).rev() {
            *option = at % factor.num;
            at /= factor.num;
        }
        let axes = self.axes.iter();
        axes.map(|axis| {
            let option = options[axis.factor];
            axis.settings[option].as_ref().map(|_| option as u32)
        })
        .collect()
    }

    /// Equal for points that set the same values.
    fn ids(&self, set: &[Option<u32>]) -> Vec<u32> {
        let axes = self.axes.iter().zip(set);
        let id = |axis: &Axis, option| axis.settings[option as usize].as_ref().map(|s| s.id);
        axes.map(|(axis, option)| option.and_then(|o| id(axis, o)).unwrap_or(0))
            .collect()
    }

    /// The name of a trial.
    fn id(&self, set: &[Option<u32>]) -> String {
        const MAX_LEN: usize = 96;
        let axes = self.axes.iter().zip(set);
        let parts = axes.filter_map(|(axis, option)| axis.show((*option)? as usize));
        let parts: Vec<_> = parts.collect();
        let id = if parts.is_empty() {
            "base".to_owned()
        } else {
            parts.join(",")
        };
        if id.len() <= MAX_LEN {
            id
        } else {
            // Bytes, since file systems count these.
            let is_end = |at: &usize| id.is_char_boundary(*at);
            let start = (0..=MAX_LEN - 9).rev().find(is_end).unwrap_or(0);
            format!("{}~{}", &id[..start], &sha256_hex(id.as_bytes())[..8])
        }
    }
}
