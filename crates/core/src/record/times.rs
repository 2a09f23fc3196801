//! When things happened in a run. No number is computed from it; other programs use it for plots.

use std::collections::BTreeMap;

use crate::event::Event;

/// Times in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// When the training started at its first step.
    pub started: Option<u64>,
    /// When its newest attempt started.
    pub attempt: Option<u64>,
    /// When each epoch ended.
    pub epochs: BTreeMap<usize, u64>,
    /// When each split was evaluated, and the epoch of the weights.
    pub evaluations: BTreeMap<String, (usize, u64)>,
    /// When its newest attempt ended; `None` if it has not.
    pub ended: Option<u64>,
}

impl Times {
    /// Applies an event.
    pub fn apply(&mut self, time_ms: u64, event: &Event) {
        match event {
            Event::RunStarted(started) => {
                if started.resumed_step == 0 || self.started.is_none() {
                    self.started = Some(time_ms);
                }
                self.attempt = Some(time_ms);
                self.ended = None;
            }
            Event::EpochFinished(epoch) => {
                self.epochs.insert(epoch.epoch, time_ms);
            }
            Event::SplitEvaluated { split, epoch, .. } => {
                self.evaluations.insert(split.clone(), (*epoch, time_ms));
            }
            Event::RunFinished { .. } => self.ended = Some(time_ms),
            _ => {}
        }
    }
}
