//! How far the trials of a search are from meeting its constraints.

use std::collections::BTreeMap;

use runner_core::record::{Index, RunEntry, State};
use runner_core::spec::constraint::total;

/// The violations of the trials of an experiment, if it is a search with constraints.
pub struct Violations<'a>(BTreeMap<&'a str, f64>);

impl<'a> Violations<'a> {
    /// Those of means over the completed runs of each trial; runs of earlier settings and runs that confirm trials do
    /// not count.
    pub fn of(index: &'a Index) -> Self {
        let search = index.plan.search.as_ref();
        let constraints = search.map_or(&[][..], |search| &search.constraints);
        let mut completed: BTreeMap<&str, Vec<&RunEntry>> = BTreeMap::new();
        if !constraints.is_empty() {
            for run in index.runs.iter().filter(|run| counts(index, run)) {
                completed.entry(&run.trial).or_default().push(run);
            }
        }
        let violation = |runs: Vec<&RunEntry>| total(&RunEntry::violations(constraints, &runs));
        let trials = completed.into_iter();
        Self(
            trials
                .map(|(trial, runs)| (trial, violation(runs)))
                .collect(),
        )
    }

    /// That of the trial of a completed run; none if it is not known.
    pub fn of_run(&self, index: &Index, run: &RunEntry) -> Option<f64> {
        let violation = self.0.get(run.trial.as_str()).copied()?;
        (counts(index, run) && violation.is_finite()).then_some(violation)
    }
}

/// Whether a run decides whether its trial meets the constraints.
fn counts(index: &Index, run: &RunEntry) -> bool {
    run.state == State::Completed && run.generation.number == 0 && !index.plan.confirms(run.seed)
}
