//! The attempts at a run: how often it was retried, and what was changed for that. Folded only from events, so that a
//! runner that was killed in between gives the same result.

use std::collections::BTreeMap;

use super::{Adjustment, Event, FailureClass, Outcome};

/// The attempts at a run so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempts {
    /// The changes, in order. Also after a restart of a run that had failed for good: its checkpoints contain them.
    pub adjustments: Vec<Adjustment>,
    /// Optimizer updates up to the newest checkpoint.
    pub checkpoint_step: usize,
    /// The class of the failure that ended the newest attempt without a retry.
    pub failed: Option<FailureClass>,
    /// Retries since the run was last started, by the class of the preceding failure.
    retries: BTreeMap<FailureClass, u32>,
}

impl Attempts {
    /// For a run that only has these adjustments.
    pub fn adjusted(adjustments: &[Adjustment]) -> Self {
        Self {
            adjustments: adjustments.to_vec(),
            ..Self::default()
        }
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::RunStarted(started) => {
                self.begin_anew();
                self.checkpoint_step = started.resumed_step;
            }
            Event::CheckpointSaved { step, .. } => self.checkpoint_step = *step,
            Event::CheckpointDropped { newest, .. } => self.checkpoint_step = *newest,
            Event::RunRetried {
                class, adjustment, ..
            } => {
                self.failed = None;
                *self.retries.entry(*class).or_default() += 1;
                self.adjustments.extend(*adjustment);
            }
            Event::RunAdjusted { adjustment, .. } => {
                self.failed = None;
                self.adjustments.push(*adjustment);
            }
            Event::RunFinished { outcome, .. } => {
                self.begin_anew();
                if let Outcome::Failed { class, .. } = outcome {
                    self.failed = Some(*class);
                }
            }
            _ => {}
        }
    }

    /// Retries after failures of a class.
    pub fn num_retries(&self, class: FailureClass) -> u32 {
        self.retries.get(&class).copied().unwrap_or(0)
    }

    /// An attempt after a failure that is not a retry was started by the user, and has all retries.
    fn begin_anew(&mut self) {
        if self.failed.take().is_some() {
            self.retries.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(outcome: Outcome) -> Event {
        Event::RunFinished {
            outcome,
            wall_secs: 1.0,
            weights_digest: String::new(),
        }
    }

    fn retried(class: FailureClass, adjustment: Option<Adjustment>) -> Event {
        Event::RunRetried {
            attempt: 1,
            class,
            after_secs: 0.0,
            adjustment,
        }
    }

    #[test]
    fn retries_count_until_the_user_begins_again() {
        let class = FailureClass::Killed;
        let failed = || finished(Outcome::failed(class, "gone"));
        let mut attempts = Attempts::default();
        let mut apply = |event: Event| {
            attempts.apply(&event);
            (attempts.num_retries(class), attempts.failed)
        };
        assert_eq!(apply(failed()), (0, Some(class)));
        assert_eq!(apply(retried(class, None)), (1, None));
        // Stopped by the user, or by a kill of the runner: the same attempt continues.
        assert_eq!(apply(finished(Outcome::Interrupted)), (1, None));
        assert_eq!(apply(failed()), (1, Some(class)));
        assert_eq!(apply(retried(class, None)), (2, None));
        assert_eq!(apply(failed()), (2, Some(class)));
        // Without a retry in between, the user has restarted it.
        assert_eq!(apply(failed()), (0, Some(class)));
    }

    #[test]
    fn a_retry_goes_on_from_the_newest_checkpoint() {
        let mut attempts = Attempts::default();
        let adjustment = "6:learning_rate_factor=0.5".parse().ok();
        attempts.apply(&Event::CheckpointSaved { step: 6, epoch: 1 });
        attempts.apply(&finished(Outcome::failed(FailureClass::NotFinite, "nan")));
        attempts.apply(&retried(FailureClass::NotFinite, adjustment));
        assert_eq!(attempts.checkpoint_step, 6);
        assert_eq!(attempts.adjustments, Vec::from_iter(adjustment));
    }
}
