//! `[on_failure]`: how each class of failure is handled.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::section::{Choice, Section, choices};

choices! {
    /// Classes of failure.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FailureClass {
        Panic "panic" "The program panicked.",
        OutOfMemory "out_of_memory" "`memory.limit` was exceeded, or the device ran out of memory.",
        DeviceLost "device_lost" "The device cannot be used, or is no longer available.",
        NotFinite "not_finite" "A loss or metric became infinite or NaN.",
        Timeout "timeout" "`limits.run` was exceeded, or the time limit of a cluster's job.",
        Killed "killed" "The process was killed from outside.",
        NodeFailure "node_failure" "The machine of a cluster's job failed.",
        Cancelled "cancelled" "A cluster's job was cancelled by someone else.",
        Data "data" "The data cannot be read, or has changed.",
        Disk "disk" "A file could not be written.",
        Internal "internal" "Anything else.",
    }
}

choices! {
    /// What happens after a run has failed and is not retried.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Then {
        Skip "skip" "The other runs continue.",
        Stop "stop" "No further run starts; active runs save a checkpoint and stop.",
    }
}

/// How a class of failure is handled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailurePolicy {
    /// How many times the run is retried.
    pub retries: u32,
    /// Delay in seconds before the first retry; doubled for each further one.
    pub backoff_secs: f64,
    /// What happens when no retry is left.
    pub then: Then,
    /// Factor of the learning rate at each retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learning_rate_factor: Option<f64>,
}

/// The `[on_failure]` table: the classes that are set. For any other class, a run fails at once, and the others
/// continue.
pub type OnFailure = BTreeMap<FailureClass, FailurePolicy>;

/// The maximum delay before a retry, unless the first one is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

pub(super) fn decode(s: &mut Section<'_>) -> OnFailure {
    let classes = FailureClass::ALL.iter();
    let written = classes.filter_map(|&(class, name, doc)| {
        let policy = s.optional_table(name, doc, |s| FailurePolicy::decode(s, class))?;
        Some((class, policy))
    });
    written.collect()
}

impl FailurePolicy {
    fn decode(s: &mut Section<'_>, class: FailureClass) -> Self {
        let retries: u64 = s
            .field(
                "retries",
                Kind::Int(0, 100),
                "How many times the run is retried, each time from its newest checkpoint.",
            )
            .or(0);
        let backoff: Duration = s
            .field(
                "backoff",
                Kind::Duration { allows_zero: true },
                "Delay before the first retry; doubled for each further one, up to an hour.",
            )
            .or(Duration::from_secs(1));
        let then = s.choice("then", "What happens when no retry is left.", Then::Skip);
        let learning_rate_factor = match class {
            FailureClass::NotFinite => s
                .field(
                    "learning_rate_factor",
                    Kind::Float {
                        min: 0.0,
                        open_min: true,
                        max: 1.0,
                        open_max: true,
                    },
                    "Factor that multiplies the learning rate at each retry, from the checkpoint at which the run resumes.",
                )
                .optional(),
            _ => None,
        };
        Self {
            retries: retries as u32,
            backoff_secs: backoff.as_secs_f64(),
            then,
            learning_rate_factor,
        }
    }

    /// The delay before a retry that follows `num_before` others.
    pub fn wait(&self, num_before: u32) -> Duration {
        let doubled = self.backoff_secs * 2f64.powi(num_before.min(64) as i32);
        let longest = LONGEST_WAIT.as_secs_f64().max(self.backoff_secs);
        Duration::try_from_secs_f64(doubled.min(longest)).unwrap_or(LONGEST_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_an_hour() {
        let policy = |backoff_secs| FailurePolicy {
            retries: 100,
            backoff_secs,
            then: Then::Skip,
            learning_rate_factor: None,
        };
        let waits = |policy: FailurePolicy| [0, 1, 2, 99].map(|n| policy.wait(n).as_secs_f64());
        assert_eq!(waits(policy(5.0)), [5.0, 10.0, 20.0, 3600.0]);
        assert_eq!(waits(policy(0.0)), [0.0; 4]);
        assert_eq!(waits(policy(7200.0)), [7200.0; 4], "as it is written");
    }
}
