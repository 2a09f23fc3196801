//! Expansion of the sweep into trials.
//!
//! A sweep is a product of *factors*. A factor is a row of options, and an option sets some keys: each
//! axis of `[sweep.grid]` is a factor, and `[sweep.zip]`, `[[sweep.list]]` and `[sweep.random]` are one each, in
//! this order, the last fastest. An *axis* is one key over the options of its factor. A *point* takes an
//! option of each factor. Then, for every point in order:
//!
//! 1. `when`: an axis whose condition does not hold leaves its key as the file has it;
//! 2. `exclude`: a point for which a condition holds is dropped;
//! 3. a point that sets the same values as an earlier one is merged into it;
//! 4. `limit`: of what is left, the first ones are kept.
//!
//! All of this looks at the values of axes alone, so that very many points cost little; what is left is
//! decoded and checked, each as a file of its own ([`Expansion::tree`]).

mod account;
mod axis;
mod condition;
mod draw;
mod judge;
mod lost;
mod read;
mod types;

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

pub use account::{Account, Dropped};
use axis::{Axis, Form};
use condition::Condition;
use judge::Judge;
use lost::{Cause, Tally};
use read::{Reader, refuse_overridden};

use crate::diagnostic::{Diagnostic, Diagnostics, Span, counted, grouped};
use crate::spec::document::{Document, Table, Value};
use crate::spec::portable::{folded, is_reserved};
use crate::spec::section::Findings;
use crate::spec::sweep::{SweepSpec, Text};

/// More runs than this are a mistake in the file.
const MAX_RUNS: usize = 100_000;

/// More points than this, before anything is left out, are a mistake too.
const MAX_POINTS: usize = 1_000_000;

/// More points times axes and conditions take too long.
const MAX_WORK: usize = 100_000_000;

/// Options that are walked side by side.
#[derive(Clone, Debug)]
pub struct Factor {
    /// Its axis' key, or the table of the file.
    pub name: String,
    /// How many options it has.
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
    /// What it is called: `learning_rate=0.01,hidden=128`, or `base` where no axis is set.
    pub id: String,
    /// For each axis the option that sets it; none where it is not set.
    set: Vec<Option<u32>>,
}

/// A sweep expanded.
#[derive(Debug)]
pub struct Expansion {
    base: Table,
    axes: Vec<Axis>,
    /// The trials in order.
    pub points: Vec<Point>,
    /// What became of the points that are no trials.
    pub account: Account,
}

/// A sweep, read and ready to be expanded.
struct Sweep {
    base: Table,
    axes: Vec<Axis>,
    factors: Vec<Factor>,
    conditions: Vec<Condition>,
    /// Axes with a condition, each after those that its condition looks at.
    order: Vec<usize>,
    /// The conditions of `exclude`, by index.
    excludes: Vec<usize>,
    limit: Option<(usize, Span)>,
}

/// Expands the sweep of a document. What is wrong with it, or does nothing, goes into `diagnostics`;
/// nothing comes back when it is wrong.
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
    let sweep = Sweep::read(document, &spec, diagnostics)?;
    let num_points = sweep.factors.iter().map(|factor| factor.num);
    let num_points = num_points.chain([1]).try_fold(1, usize::checked_mul);
    let only_grid = spec.exclude.is_empty() && spec.limit.is_none() && sweep.order.is_empty();
    let num_runs = num_points.and_then(|num| num.checked_mul(num_seeds));
    let too_many = |what: String| {
        let first = sweep.axes.first()?;
        let diagnostic = Diagnostic::error("sweep", what).at(first.key_span);
        Some(diagnostic.help("take values out of the axes, or seeds"))
    };
    if only_grid && num_runs.is_none_or(|num| num > MAX_RUNS) {
        let refusal = too_many(format!("the sweep has more than {MAX_RUNS} runs"));
        refusal.into_iter().for_each(|d| diagnostics.push(d));
        return None;
    }
    let Some(num_points) = num_points.filter(|num| *num <= MAX_POINTS) else {
        let refusal = too_many(format!(
            "the sweep has more than {MAX_POINTS} points before any is left out"
        ));
        refusal.into_iter().for_each(|d| diagnostics.push(d));
        return None;
    };
    let num_rules = sweep.axes.len() + sweep.conditions.len();
    if num_points.saturating_mul(num_rules) > MAX_WORK {
        let refusal = too_many(format!(
            "the sweep has {} points of {} axes with {}, which is too much to look at",
            grouped(num_points as u64),
            sweep.axes.len(),
            counted(sweep.conditions.len(), "condition"),
        ));
        refusal.into_iter().for_each(|d| diagnostics.push(d));
        return None;
    }
    let (points, account) = sweep.points(num_points, num_seeds, diagnostics)?;
    if account.num_runs > MAX_RUNS {
        let refusal = too_many(format!(
            "the sweep has {} runs, and {MAX_RUNS} are the most",
            account.num_runs
        ));
        let refusal = refusal.map(|d| d.help("or keep the first trials with `limit` in `[sweep]`"));
        refusal.into_iter().for_each(|d| diagnostics.push(d));
        return None;
    }
    Some(Expansion {
        base: sweep.base,
        axes: sweep.axes,
        points,
        account,
    })
}

impl Expansion {
    /// Whether there is nothing to vary.
    pub fn is_plain(&self) -> bool {
        self.axes.is_empty()
    }

    /// The varied keys.
    pub fn keys(&self) -> Vec<String> {
        self.axes.iter().map(|axis| axis.key.clone()).collect()
    }

    /// The file of a trial: the document without its sweep and with the values of the trial in place.
    pub fn tree(&self, point: &Point) -> Table {
        let mut root = self.base.clone();
        // First, so that what an axis sets for a type that does not have it is refused.
        for (axis, option) in self.axes.iter().zip(&point.set) {
            let left_out = option.iter().flat_map(|option| axis.left_out(*option));
            left_out.for_each(|narrowed| root.remove(&narrowed.key));
        }
        for (axis, option) in self.axes.iter().zip(&point.set) {
            let setting = option.and_then(|option| axis.settings[option as usize].as_ref());
            if let Some(setting) = setting {
                root.set(&axis.key, axis.key_span, setting.node.clone());
            }
        }
        root
    }

    /// What the user is told of keys that trials of some types are without. `line` names a place.
    pub fn notices(&self, line: &dyn Fn(Span) -> String) -> Vec<String> {
        let used = self.axes.iter().enumerate().map(|(at, axis)| {
            if axis.narrowed.is_empty() {
                return BTreeSet::new();
            }
            let table = axis.key.strip_suffix(".type").unwrap_or(&axis.key);
            let own = self
                .base
                .at(&format!("{table}.type"))
                .map(|entry| &entry.node.value);
            let values = self.points.iter().filter_map(|point| match point.set[at] {
                Some(option) => Some(&axis.settings[option as usize].as_ref()?.node.value),
                None => own,
            });
            let names = values.filter_map(|value| match value {
                Value::Str(name) => Some(name.clone()),
                _ => None,
            });
            names.collect()
        });
        types::notices(&self.axes, &used.collect::<Vec<_>>(), line)
    }

    /// What to do where an axis sets a key that the type of the trial does not have.
    pub fn remedy_at(&self, span: Span) -> Option<String> {
        let axis = self.axes.iter().find(|axis| axis.key_span == span)?;
        let (table, _) = axis.key.rsplit_once('.')?;
        let kind = format!("{table}.type");
        let types = self.axes.iter().find(|axis| axis.key == kind)?;
        let first = types.settings.iter().flatten().next()?;
        let name = first.node.value.to_toml().replace('"', "'");
        Some(format!(
            "set it only where the type has it: `{{ values = […], when = \"{kind} == {name}\" }}`"
        ))
    }

    /// The values that a trial sets, by their keys.
    pub fn values(&self, point: &Point) -> Map<String, Json> {
        let axes = self.axes.iter().zip(&point.set);
        let values = axes.filter_map(|(axis, option)| {
            let setting = axis.settings[(*option)? as usize].as_ref()?;
            Some((axis.key.clone(), setting.node.value.to_json()))
        });
        values.collect()
    }

    /// The drawn value of a trial at a place of the file, in words.
    pub fn drawn_at(&self, point: &Point, span: Span) -> Option<String> {
        let mut axes = self.axes.iter().zip(&point.set);
        axes.find_map(|(axis, option)| {
            let setting = axis.settings[(*option)? as usize].as_ref()?;
            (axis.form == Form::Random && setting.node.span == span).then(|| {
                let value = setting.node.value.to_toml();
                format!(
                    "{value} was drawn for `{}` from this distribution",
                    axis.key
                )
            })
        })
    }
}

impl Sweep {
    fn read(document: &Document, spec: &SweepSpec, diagnostics: &mut Diagnostics) -> Option<Self> {
        let mut base = document.root.clone();
        base.entries.retain(|entry| entry.key != "sweep");
        let mut found = Diagnostics::default();
        let mut reader = Reader {
            base: &base,
            columns: Vec::new(),
            factors: Vec::new(),
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
        };
        types::narrow(&mut sweep.axes, &sweep.base);
        refuse_overridden(&sweep.axes, &document.overrides, &mut found);
        // An axis that is wrong is not there, and conditions that name it would be refused for that.
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
                        "whether `{}` are set depends on each other",
                        keys.join("`, `")
                    ),
                };
                diagnostics.push(
                    Diagnostic::error("sweep", message)
                        .at(condition.text.span)
                        .help("write conditions over keys that are set anyway"),
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

    /// The points that are trials.
    fn points(
        &self,
        num_points: usize,
        num_seeds: usize,
        diagnostics: &mut Diagnostics,
    ) -> Option<(Vec<Point>, Account)> {
        let mut judge = Judge::new(self);
        let mut account = Account::new(&self.factors, num_points);
        let mut tally = Tally::new(self);
        let mut seen: BTreeSet<Vec<u32>> = BTreeSet::new();
        let mut ids: BTreeSet<String> = BTreeSet::new();
        let mut points = Vec::new();
        for at in 0..num_points {
            let all = self.options(at);
            let mut set = all.clone();
            let mut off = Vec::new();
            for axis in &self.order {
                let when = self.axes[*axis].when.unwrap_or(0);
                if !judge.holds(when, &set) {
                    set[*axis] = None;
                    off.push(when);
                }
            }
            // Each is looked at for every point, so that one that never holds is found.
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
            } else if !seen.insert(self.ids(&set)) {
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
                // Ids are folders' names, and two that differ in case alone are one folder on some systems.
                while !ids.insert(folded(&id)) {
                    id = format!("{id}.{}", points.len() + 1);
                }
                account.narrowed(&self.axes, &set, &id);
                points.push(Point {
                    id,
                    set: set.clone(),
                });
            }
            tally.add(&all, &set, cause);
        }
        account.finish(points.len(), num_seeds);
        let is_right = judge.report(diagnostics);
        if let (true, true, Some(rule)) = (is_right, points.is_empty(), self.excludes.first()) {
            let message = "these conditions together exclude every point";
            diagnostics.push(
                Diagnostic::error("sweep", message)
                    .at(self.conditions[*rule].text.span)
                    .help("correct one of them, or remove it"),
            );
            return None;
        }
        if is_right && !points.is_empty() {
            tally.report(diagnostics);
        }
        is_right.then_some((points, account))
    }

    /// The option of each axis at a place of the product; the last factor varies fastest.
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

    /// What a trial is called.
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
            format!(
                "{}~{}",
                &id[..MAX_LEN - 9],
                &crate::data::sha256_hex(id.as_bytes())[..8]
            )
        }
    }
}
