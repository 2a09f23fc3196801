//! `[limits]`: time limits of a run and of the whole experiment.

use std::time::Duration;

use super::kind::Kind;
use super::section::Section;

/// The `[limits]` table. Both count within one `runner run`: running the command again starts from zero.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitsSpec {
    /// The time limit of a run over all its attempts.
    pub run: Option<Duration>,
    /// The time limit of the experiment.
    pub experiment: Option<Duration>,
}

impl LimitsSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let kind = Kind::Duration { allows_zero: false };
        Self {
            run: s
                .field(
                    "run",
                    kind.clone(),
                    "The most time a run may take in one `runner run`, including retries and delays; a run that exceeds it saves a checkpoint and ends as `timeout`.",
                )
                .optional(),
            experiment: s
                .field(
                    "experiment",
                    kind,
                    "The most time one `runner run` may train; after it, active runs save a checkpoint and stop, and no new run starts.",
                )
                .optional(),
        }
    }
}
