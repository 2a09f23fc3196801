//! What runs reached in the further objectives of a search.

use super::RunEntry;
use crate::spec::traded::{Cost, Traded};

impl RunEntry {
    /// What the run reached; none if it was not measured.
    pub fn reached(&self, traded: Traded) -> Option<f64> {
        let value = match traded {
            Traded::Metric(metric) => self.metrics.get(&metric.name()).copied(),
            Traded::Cost(Cost::Parameters) => Some(self.num_parameters as f64),
            Traded::Cost(Cost::EpochSecs) => self.epoch_secs,
            Traded::Cost(Cost::WallSecs) => Some(self.wall_secs),
            Traded::Cost(Cost::MemoryBytes) => {
                self.memory.map(|memory| memory.measured.bytes() as f64)
            }
        };
        value.filter(|value| value.is_finite())
    }

    /// The mean that the runs of a trial reached; none if not all of them were measured, or there are none.
    pub fn mean_reached<'a>(traded: Traded, runs: impl Iterator<Item = &'a Self>) -> Option<f64> {
        Self::mean(runs.map(|run| run.reached(traded)))
    }

    /// The mean of some values; none if one is missing, or there are none.
    pub(super) fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
        let values: Option<Vec<f64>> = values.collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The means that the runs of a trial reached, lower is better; none if not all of them are known.
    pub fn costs_reached(
        objectives: impl IntoIterator<Item = Traded>,
        runs: &[&Self],
    ) -> Option<Vec<f64>> {
        let cost = |traded: Traded| {
            let mean = Self::mean_reached(traded, runs.iter().copied())?;
            Some(if traded.is_better(1.0, 0.0) {
                -mean
            } else {
                mean
            })
        };
        objectives.into_iter().map(cost).collect()
    }
}
