//! How far trials are from meeting the constraints of a search.

use super::RunEntry;
use crate::spec::constraint::{Constraint, Count, Quantity};

impl RunEntry {
    /// A finite number of the run; none if it was not measured.
    fn measured(&self, quantity: Quantity) -> Option<f64> {
        let value = match quantity {
            Quantity::Reached(traded) => self.reached(traded),
            Quantity::Last(_) => self.metrics.get(&quantity.name()).copied(),
            Quantity::Count(Count::Epochs) => Some(self.epochs as f64),
            Quantity::Count(Count::BestEpoch) => self.best_epoch.map(|epoch| epoch as f64),
        };
        value.filter(|value| value.is_finite())
    }

    /// The mean over the runs of a trial; none if one of them did not measure it, or there are none.
    pub fn mean_measured(quantity: Quantity, runs: &[&Self]) -> Option<f64> {
        Self::mean(runs.iter().map(|run| run.measured(quantity)))
    }

    /// For each constraint, how far the means over the runs of a trial are from meeting it; none if that is not known.
    pub fn violations<'a>(
        constraints: impl IntoIterator<Item = &'a Constraint>,
        runs: &[&Self],
    ) -> Vec<Option<f64>> {
        let mean = |quantity: Quantity| Self::mean_measured(quantity, runs);
        let constraints = constraints.into_iter();
        constraints
            .map(|constraint| constraint.violation(&mean))
            .collect()
    }
}
