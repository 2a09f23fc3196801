//! `[limits]`: how long a run and the whole experiment may take.

use std::time::Duration;

use super::kind::Kind;
use super::section::Section;

/// The `[limits]` table. Both count within one `runner run`: the same command again begins anew.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitsSpec {
    /// The time that a run may take over all its attempts.
    pub run: Option<Duration>,
    /// The time after which the experiment stops.
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
                    "How long a run may take in one `runner run`, retries and waits included; one above it saves a checkpoint and is ended as `timeout`.",
                )
                .optional(),
            experiment: s
                .field(
                    "experiment",
                    kind,
                    "How long one `runner run` may train; then running runs save a checkpoint and stop, and no run is started.",
                )
                .optional(),
        }
    }
}
