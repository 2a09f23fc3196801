//! How far trials are from meeting the constraints of a search.

use super::{RunEntry, RunRecord};
use crate::event::{Epoch, Outcome};
use crate::plan::RunPlan;
use crate::spec::constraint::{Constraint, Count, Quantity, total};
use crate::spec::traded::{Cost, Traded};

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

impl RunRecord {
    /// How far the runs of a trial are from meeting constraints after each epoch that all of them have, as a search that
    /// prunes is shown it: by what was measured up to there. Runs that have ended keep what they had in their last epoch.
    /// Infinite where a number is not known.
    pub fn violations_by_epoch<'a>(
        constraints: impl IntoIterator<Item = &'a Constraint> + Clone,
        runs: &[(&RunPlan, &Self)],
    ) -> Vec<f64> {
        let is_open = |record: &Self| !matches!(record.outcome, Some(Outcome::Completed));
        let ends = runs.iter().map(|(_, record)| record.epochs.len());
        let open = runs.iter().filter(|(_, record)| is_open(record));
        let end = open.map(|(_, record)| record.epochs.len()).min();
        let end = end.or(ends.max()).unwrap_or(0);
        let best: Vec<Vec<&Epoch>> = runs
            .iter()
            .map(|(plan, record)| record.best_epochs_so_far(plan))
            .collect();
        let violation = |at: usize| {
            let mean = |quantity: Quantity| {
                let each = runs.iter().zip(&best).map(|((plan, record), best)| {
                    let at = at.min(record.epochs.len().checked_sub(1)?);
                    let value = measured_at(quantity, plan, best[at], &record.epochs[at])?;
                    Some(value).filter(|value| value.is_finite())
                });
                RunEntry::mean(each)
            };
            let constraints = constraints.clone().into_iter();
            let each = constraints.map(|constraint| constraint.violation(&mean));
            total(&each.collect::<Vec<_>>())
        };
        (0..end).map(violation).collect()
    }
}

/// What was measured up to an epoch, of which another one may be the best so far; none of what depends on the speed of a
/// machine, and of the number of epochs, which is the same for all.
fn measured_at(quantity: Quantity, plan: &RunPlan, best: &Epoch, last: &Epoch) -> Option<f64> {
    match quantity {
        Quantity::Reached(Traded::Metric(metric)) => best.metrics.get(&metric.name()).copied(),
        Quantity::Last(metric) => last.metrics.get(&metric.name()).copied(),
        Quantity::Reached(Traded::Cost(Cost::Parameters)) => {
            Some(plan.network.num_parameters as f64)
        }
        Quantity::Count(Count::BestEpoch) => Some(best.epoch as f64),
        Quantity::Reached(Traded::Cost(Cost::EpochSecs | Cost::WallSecs | Cost::MemoryBytes))
        | Quantity::Count(Count::Epochs) => None,
    }
}
