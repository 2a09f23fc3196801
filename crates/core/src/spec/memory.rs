//! `[memory]`: memory limits, and remedies for a run that does not fit.

use serde::{Deserialize, Serialize};

use super::kind::{Bytes, Kind};
use super::section::{Section, by_name, choices};

/// The `[memory]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct MemorySpec {
    /// The memory limit of a run: of its process if it computes on the host, otherwise of the device's pool.
    pub limit: Option<Bytes>,
    /// Device memory left free for other programs, in addition to the limit.
    pub reserve: Bytes,
    /// Remedies for a run that does not fit, in order; empty for none.
    pub on_exceed: Vec<OnExceed>,
}

choices! {
    /// A remedy for a run that does not fit into memory.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OnExceed {
        Refuse "refuse" "The run fails as `out_of_memory`, before it starts where this can be predicted.",
        Accumulate "accumulate" "Halves the number of items computed at a time, down to one; each update still uses the same items.",
        Checkpoint "checkpoint" "The backward pass recomputes cheap outputs instead of keeping them, as `train.gradient_checkpointing` does.",
        NextDevice "next_device" "Moves the run to the next best available device, in the order of `backend.device = \"auto\"`.",
    }
}

impl MemorySpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let names: Vec<String> = s
            .field(
                "on_exceed",
                Kind::one_or_many(Kind::of_choice::<OnExceed>()),
                "Remedies for a run that does not fit, according to its forecast before it starts or its measured memory: each is applied as often as it helps, in this order.",
            )
            .or(vec!["refuse".to_owned()]);
        let rungs: Vec<OnExceed> = names.iter().filter_map(|name| by_name(name)).collect();
        Self {
            limit: s
                .field(
                    "limit",
                    Kind::Bytes,
                    "The most memory a run may use: of its process on the CPU, of the device's pool on a GPU. A run that cannot fit is refused, and one that exceeds the limit ends as `out_of_memory`.",
                )
                .optional(),
            reserve: s
                .field(
                    "reserve",
                    Kind::Bytes,
                    "Device memory to leave free for other programs.",
                )
                .or(Bytes(0)),
            on_exceed: match rungs.as_slice() {
                [OnExceed::Refuse] => Vec::new(),
                _ => rungs,
            },
        }
    }
}
