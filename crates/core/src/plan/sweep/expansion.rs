//! The trials of an expanded sweep: their files and values, and what varies between them.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::axis::{Axis, Form};
use super::{Account, Point, types};
use crate::diagnostic::{Diagnostic, Span};
use crate::plan::{ForkPlan, RunPlan};
use crate::spec::document::{Table, Value};
use crate::spec::reference::depending;
use crate::spec::search::Suggestion;

/// An expanded sweep.
#[derive(Debug)]
pub struct Expansion {
    pub(super) base: Table,
    pub(super) axes: Vec<Axis>,
    /// The trials in order.
    pub points: Vec<Point>,
    /// What happened to the points that are not trials.
    pub account: Account,
    /// The suggestions of a search, each with its trial.
    pub suggestions: Vec<Suggestion>,
}

impl Expansion {
    /// Whether nothing varies.
    pub fn is_plain(&self) -> bool {
        self.axes.is_empty()
    }

    /// The varied keys.
    pub fn keys(&self) -> Vec<String> {
        self.axes.iter().map(|axis| axis.key.clone()).collect()
    }

    /// Further keys that differ between trials: those inside of varied tables, and those whose expressions use varied
    /// ones.
    pub fn depending(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.axes.iter().flat_map(Axis::inner_keys).collect();
        let varied = [self.keys(), keys.clone()].concat();
        keys.extend(depending(&self.base, &varied));
        keys
    }

    /// All keys that differ between trials.
    pub fn varied(&self) -> Vec<String> {
        [self.keys(), self.depending()].concat()
    }

    /// Where a varied key is written, or the first one that a key depends on.
    pub fn span_of(&self, key: &str) -> Option<Span> {
        let sets = |axis: &&Axis| {
            let own = [vec![axis.key.clone()], axis.inner_keys()].concat();
            own.iter()
                .chain(&depending(&self.base, &own))
                .any(|of| of == key)
        };
        self.axes.iter().find(sets).map(|axis| axis.key_span)
    }

    /// The file of a trial: the document without its sweep, with the values of the trial.
    pub fn tree(&self, point: &Point) -> Table {
        let mut root = self.base.clone();
        // First, so that a key that an axis sets for a type without it is refused.
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

    /// Lets the runs of a trial begin as copies of those with the same seeds of an earlier trial, if a population was
    /// trained to it.
    ///
    /// # Errors
    ///
    /// If the earlier trial does not have such a run.
    pub(in crate::plan) fn copy(
        &self,
        trial: &str,
        earlier: &[RunPlan],
        runs: &mut [RunPlan],
    ) -> Result<(), Box<Diagnostic>> {
        let mut known = self.suggestions.iter();
        let Some(fork) = known
            .find(|known| known.trial == trial)
            .and_then(|known| known.fork)
        else {
            return Ok(());
        };
        let source = self.suggestions.get(fork.from).map(|known| &known.trial);
        for run in runs {
            let is_source =
                |other: &&RunPlan| Some(&other.trial) == source && other.seed == run.seed;
            let Some(source) = earlier.iter().find(is_source) else {
                let message = format!("trial `{trial}` is a copy of one that does not exist");
                let wrong = Diagnostic::error("sweep", message);
                return Err(Box::new(wrong.help(
                    "use another `experiment.name`: the recorded search was changed",
                )));
            };
            run.fork = Some(ForkPlan {
                run: source.id.clone(),
                fingerprint: source.fingerprint.clone(),
                epoch: fork.epochs,
            });
            run.fingerprint = run.clone().with_fingerprint().fingerprint;
        }
        Ok(())
    }

    /// The notice about keys that trials of some types do not have. `line` formats a place.
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

    /// The remedy if an axis sets a key that the trial's type does not have.
    pub fn remedy_at(&self, span: Span) -> Option<String> {
        let axis = self.axes.iter().find(|axis| axis.key_span == span)?;
        let (table, _) = axis.key.rsplit_once('.')?;
        let kind = format!("{table}.type");
        let types = self.axes.iter().find(|axis| axis.key == kind)?;
        let first = types.settings.iter().flatten().next()?;
        let name = first.node.value.to_toml().replace('"', "'");
        Some(format!(
            "set it only for types that have it: `{{ values = […], when = \"{kind} == {name}\" }}`"
        ))
    }

    /// The keys of the axes with their places.
    pub fn placed_keys(&self) -> impl Iterator<Item = (&str, Span)> {
        self.axes
            .iter()
            .map(|axis| (axis.key.as_str(), axis.key_span))
    }

    /// The values that a trial sets, by key.
    pub fn values(&self, point: &Point) -> Map<String, Json> {
        let axes = self.axes.iter().zip(&point.set);
        let values = axes.filter_map(|(axis, option)| {
            let setting = axis.settings[(*option)? as usize].as_ref()?;
            Some((axis.key.clone(), setting.node.value.to_json()))
        });
        values.collect()
    }

    /// The sampled value of a trial at a place of the file, as text.
    pub fn drawn_at(&self, point: &Point, span: Span) -> Option<String> {
        let mut axes = self.axes.iter().zip(&point.set);
        axes.find_map(|(axis, option)| {
            let setting = axis.settings[(*option)? as usize].as_ref()?;
            (axis.form == Form::Random && setting.node.span == span).then(|| {
                let value = setting.node.value.to_toml();
                format!(
                    "{value} was sampled for `{}` from this distribution",
                    axis.key
                )
            })
        })
    }
}
