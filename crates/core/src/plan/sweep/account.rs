//! What happened to every point of a sweep, for users who miss a trial.

use serde::Serialize;

use super::Factor;
use super::axis::Axis;
use crate::diagnostic::Span;
use crate::spec::sweep::Text;

/// The number of points, and what was dropped by which rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Account {
    /// The factors of the product with their options.
    pub factors: Vec<(String, usize)>,
    /// Points of the product.
    pub num_points: usize,
    /// Points that satisfy a condition of `exclude`, by the first such condition.
    pub excluded: Vec<Dropped>,
    /// Points equal to earlier ones, by the conditions that make them equal.
    pub merged: Vec<Dropped>,
    /// Points beyond the limit.
    pub cut: Vec<Dropped>,
    /// Trials without a key of the file, since their type does not have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub narrowed: Vec<Dropped>,
    /// The remaining trials.
    pub num_trials: usize,
    /// Runs of each trial.
    pub num_seeds: usize,
    /// All runs.
    pub num_runs: usize,
}

/// Points that one rule dropped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dropped {
    /// The rule, as written or as text.
    pub rule: String,
    /// Its place.
    #[serde(skip)]
    pub span: Option<Span>,
    /// How many.
    pub num: usize,
    /// The first of them.
    pub first: String,
}

impl Account {
    /// Of a sweep with `num_points` points.
    pub(super) fn new(factors: &[Factor], num_points: usize) -> Self {
        let factors = factors.iter().map(|f| (f.name.clone(), f.num));
        Self {
            factors: factors.collect(),
            num_points,
            ..Self::default()
        }
    }

    pub(super) fn excluded(&mut self, rule: &Text, point: impl FnOnce() -> String) {
        count(&mut self.excluded, &rule.source, Some(rule.span), point);
    }

    /// `rules` are the `when` conditions that are false at the point.
    pub(super) fn merged(&mut self, rules: &[&Text], point: impl FnOnce() -> String) {
        let (rule, span) = match rules {
            [] => ("equal to an earlier point".to_owned(), None),
            several => {
                let sources: Vec<_> = several.iter().map(|t| t.source.as_str()).collect();
                let rule = format!(
                    "equal to an earlier point where not {}",
                    sources.join(", and not ")
                );
                (rule, Some(several[0].span))
            }
        };
        count(&mut self.merged, &rule, span, point);
    }

    pub(super) fn cut(&mut self, limit: usize, span: Span, point: impl FnOnce() -> String) {
        let rule = format!("the first {limit} are kept");
        count(&mut self.cut, &rule, Some(span), point);
    }

    pub(super) fn narrowed(&mut self, axes: &[Axis], set: &[Option<u32>], id: &str) {
        for (axis, option) in axes.iter().zip(set) {
            let left_out = option.iter().flat_map(|option| axis.left_out(*option));
            for narrowed in left_out {
                let rule = format!(
                    "without `{}`, which belongs to {}",
                    narrowed.key,
                    narrowed.having.join(", ")
                );
                count(&mut self.narrowed, &rule, Some(narrowed.span), || {
                    id.to_owned()
                });
            }
        }
    }

    pub(super) fn finish(&mut self, num_trials: usize, num_seeds: usize) {
        // As in the file.
        self.excluded.sort_by_key(|rule| rule.span);
        self.num_trials = num_trials;
        self.num_seeds = num_seeds;
        self.num_runs = num_trials * num_seeds;
    }
}

fn count(
    dropped: &mut Vec<Dropped>,
    rule: &str,
    span: Option<Span>,
    point: impl FnOnce() -> String,
) {
    match dropped
        .iter_mut()
        .find(|d| d.span == span && d.rule == rule)
    {
        Some(known) => known.num += 1,
        None => dropped.push(Dropped {
            rule: rule.to_owned(),
            span,
            num: 1,
            first: point(),
        }),
    }
}
