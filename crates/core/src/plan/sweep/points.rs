//! Spaces with hardly any points: fewer than a search has trials, or with axes that no point sets.

use std::collections::BTreeSet;

use super::search::Search;
use crate::diagnostic::{Diagnostic, counted};

/// Points of the space that are looked at.
const NUM_SAMPLES: usize = 256;

/// With more different points among them than this, there are probably others.
const MOST_COUNTED: usize = NUM_SAMPLES / 8;

impl Search<'_> {
    /// What the space does not have. Nothing is said about one in which no point was found, which is refused.
    pub(super) fn lack_of_points(&self) -> Vec<Diagnostic> {
        let Some(samples) = self.samples(NUM_SAMPLES) else {
            return Vec::new();
        };
        let is_set = |key: &str| samples.iter().any(|point| point.values.contains_key(key));
        let unset = self.axes().filter(|axis| !is_set(&axis.key));
        let unset = unset.filter_map(|axis| {
            let when = axis.when.as_ref()?;
            let message = format!(
                "no point of the search has `{}`: its condition was false at all {NUM_SAMPLES} that were sampled",
                axis.key
            );
            let warning = Diagnostic::warning("search", message).at(when.span);
            Some(warning.help("correct the condition, or remove the axis"))
        });
        let mut found: Vec<Diagnostic> = unset.collect();
        let points = samples.iter().map(|point| format!("{:?}", point.values));
        let num_points = points.collect::<BTreeSet<_>>().len();
        let population = self.population().map(|population| population.size);
        let wanted = self.spec.num_trials.or(population).unwrap_or(2);
        if num_points < wanted.min(MOST_COUNTED) {
            let message = format!(
                "the search has {}, but {NUM_SAMPLES} samples of its space are only {}",
                counted(wanted, "trial"),
                counted(num_points, "different point")
            );
            let key = if population.is_some() {
                "search.prune.population"
            } else {
                "search.num_trials"
            };
            let span = self.document.root.at(key).map(|entry| entry.node.span);
            let warning = Diagnostic::warning("search", message);
            let warning = warning
                .at(span.unwrap_or(self.spec.span))
                .note("a point that was tried is not trained again");
            found
                .push(warning.help(
                    "add axes or values, or use `[sweep.grid]`, which tries each point once",
                ));
        }
        found
    }
}
