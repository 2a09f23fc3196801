//! In how many pieces a step is computed, over the steps of a run.

use super::RunPlan;
use crate::spec::adjustment::{Adjustment, Change};

/// The micro-batch size by optimizer update: an adjustment applies from its step on.
#[derive(Clone, Debug, PartialEq)]
pub struct PieceSizes(Vec<(usize, usize)>);

impl PieceSizes {
    /// The sizes of a planned run, with its adjustments.
    pub fn new(planned: &RunPlan, adjustments: &[Adjustment]) -> Self {
        let changes = adjustments.iter().filter_map(|a| match a.change {
            Change::MicroBatchSize(size) => Some((a.from_step, size)),
            _ => None,
        });
        let first = (0, planned.train.micro_batch_size);
        Self([first].into_iter().chain(changes).collect())
    }

    /// For the update after `step` updates.
    pub fn at(&self, step: usize) -> usize {
        let mut made = self.0.iter().filter(|(from, _)| *from <= step);
        made.next_back().map_or(1, |(_, size)| *size)
    }
}

impl RunPlan {
    /// The items of each piece of at most `size` in a step of an epoch, numbered from 0.
    pub fn pieces(&self, step: usize, size: usize) -> impl Iterator<Item = usize> + use<> {
        let first = step * self.train.batch_size;
        let num = self
            .train
            .batch_size
            .min(self.data.num_train.saturating_sub(first));
        (0..num).step_by(size).map(move |at| size.min(num - at))
    }
}
