//! Values of axes without any trial: such an axis looks as if the value were tried.

use std::collections::BTreeMap;

use super::Sweep;
use super::axis::Form;
use crate::diagnostic::{Diagnostic, Diagnostics, counted};

/// What removed a value from a point, or the point from the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The `when` of the axis, by its index.
    When(usize),
    /// A condition of `exclude`, by its index.
    Excluded(usize),
    /// The point sets the same values as an earlier one.
    Merged,
    /// `limit`.
    Cut,
}

/// Counts for every value of every axis its remaining trials, and what removed the others.
pub struct Tally<'a> {
    sweep: &'a Sweep,
    /// For each axis and each of its values.
    values: Vec<Vec<Count>>,
}

#[derive(Clone, Default)]
struct Count {
    num_trials: usize,
    lost: BTreeMap<Cause, usize>,
}

impl<'a> Tally<'a> {
    /// Nothing is counted yet.
    pub fn new(sweep: &'a Sweep) -> Self {
        let values = sweep.axes.iter().map(|axis| {
            let labels = axis.settings.iter().flatten().map(|setting| setting.label);
            vec![Count::default(); labels.max().map_or(0, |most| most as usize + 1)]
        });
        let values = values.collect();
        Self { sweep, values }
    }

    /// Counts a point: its options before and after `when`, and what removed it from the sweep.
    pub fn add(&mut self, all: &[Option<u32>], set: &[Option<u32>], cause: Option<Cause>) {
        for (at, axis) in self.sweep.axes.iter().enumerate() {
            let option = all[at].and_then(|option| axis.settings[option as usize].as_ref());
            let Some(setting) = option else { continue };
            let when = axis.when.filter(|_| set[at].is_none()).map(Cause::When);
            let count = &mut self.values[at][setting.label as usize];
            match when.or(cause) {
                None => count.num_trials += 1,
                Some(cause) => *count.lost.entry(cause).or_default() += 1,
            }
        }
    }

    /// Warns of values without any trial, grouping those of an axis with the same cause.
    pub fn report(&self, diagnostics: &mut Diagnostics) {
        for at in 0..self.values.len() {
            let mut by_cause: BTreeMap<Vec<Cause>, Vec<usize>> = BTreeMap::new();
            for (label, count) in self.values[at].iter().enumerate() {
                if count.num_trials == 0 && !count.lost.is_empty() && self.is_said(at, label) {
                    let causes = count.lost.keys().copied().collect();
                    by_cause.entry(causes).or_default().push(label);
                }
            }
            for (causes, labels) in by_cause {
                let is_never_set = labels.len() == self.values[at].len()
                    && causes.iter().all(|cause| matches!(cause, Cause::When(_)));
                // Already reported about the condition.
                if !is_never_set {
                    let warning = self.warning(at, &causes, &labels);
                    diagnostics.push(warning);
                }
            }
        }
    }

    /// Whether a person chose the value: one that was sampled once was not.
    fn is_said(&self, axis: usize, label: usize) -> bool {
        let axis = &self.sweep.axes[axis];
        let settings = axis.settings.iter().flatten();
        let num = settings
            .filter(|setting| setting.label as usize == label)
            .count();
        axis.form != Form::Random || num > 1
    }

    fn warning(&self, at: usize, causes: &[Cause], labels: &[usize]) -> Diagnostic {
        const SHOWN: usize = 5;
        let axis = &self.sweep.axes[at];
        let node = |label: &usize| {
            let mut settings = axis.settings.iter().flatten();
            let found = settings.find(|setting| setting.label as usize == *label);
            found.map(|setting| &setting.node)
        };
        let nodes: Vec<_> = labels.iter().filter_map(node).collect();
        let shown: Vec<_> = nodes
            .iter()
            .take(SHOWN)
            .map(|node| node.value.to_toml())
            .collect();
        let values = match nodes.len().saturating_sub(SHOWN) {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        };
        let message = format!("no trial has `{}` = {values}", axis.key);
        let mut diagnostic = Diagnostic::warning("sweep", message);
        diagnostic.span = nodes.first().map(|node| node.span);
        for cause in causes {
            let lost = labels
                .iter()
                .map(|label| self.values[at][*label].lost.get(cause));
            let num = counted(lost.flatten().sum(), "point");
            diagnostic = match cause {
                Cause::When(rule) => diagnostic.related(
                    self.sweep.conditions[*rule].text.span,
                    format!("is false at {num}"),
                ),
                Cause::Excluded(rule) => diagnostic.related(
                    self.sweep.conditions[*rule].text.span,
                    format!("excludes {num}"),
                ),
                Cause::Merged => diagnostic.note(format!(
                    "at {num}, an earlier point or the file already sets the same values"
                )),
                Cause::Cut => {
                    let (limit, span) = self.sweep.limit.unwrap_or_default();
                    diagnostic.related(
                        span,
                        format!("keeps the first {limit}, and drops {num} with this value"),
                    )
                }
            };
        }
        diagnostic.help(match causes {
            [Cause::Cut] => {
                "raise `limit`, or list this axis last: the last one varies fastest".to_owned()
            }
            [Cause::Merged] => "remove the value: its trials already exist".to_owned(),
            _ => {
                "to keep these trials, correct the condition; otherwise remove the value from the axis"
                    .to_owned()
            }
        })
    }
}
