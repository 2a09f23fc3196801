//! `[memory]`: what a run may hold, and what is done about one that does not fit.

use serde::{Deserialize, Serialize};

use super::kind::{Bytes, Kind};
use super::section::{Section, by_name, choices};

/// The `[memory]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct MemorySpec {
    /// The most that a run may hold: its process where it computes on the host, else the device's pool.
    pub limit: Option<Bytes>,
    /// What stays free for others of the memory that the run's device has, beside the limit too.
    pub reserve: Bytes,
    /// What is done about a run that does not fit, in order; nothing when it is empty.
    pub on_exceed: Vec<OnExceed>,
}

choices! {
    /// What is done about a run that does not fit into memory.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum OnExceed {
        Refuse "refuse" "It fails as `out_of_memory`, before it starts where that can be told.",
        Accumulate "accumulate" "Half as many items are computed at a time, down to one; an update is made of the same items as before.",
        Checkpoint "checkpoint" "The backward pass computes cheap outputs anew instead of keeping them, as `train.gradient_checkpointing` does.",
        NextDevice "next_device" "It goes on on the next best device that is there, as `backend.device = \"auto\"` orders them.",
    }
}

impl MemorySpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let names: Vec<String> = s
            .field(
                "on_exceed",
                Kind::one_or_many(Kind::of_choice::<OnExceed>()),
                "What is done about a run that does not fit, by its forecast before it starts or by what it holds: each as often as it helps, in this order.",
            )
            .or(vec!["refuse".to_owned()]);
        let rungs: Vec<OnExceed> = names.iter().filter_map(|name| by_name(name)).collect();
        Self {
            limit: s
                .field(
                    "limit",
                    Kind::Bytes,
                    "The most memory that a run may hold, as its process on the CPU and as the device's pool on a GPU; a run that cannot fit is refused, and one above it is ended as `out_of_memory`.",
                )
                .optional(),
            reserve: s
                .field(
                    "reserve",
                    Kind::Bytes,
                    "The memory of the device that stays free for others.",
                )
                .or(Bytes(0)),
            on_exceed: match rungs.as_slice() {
                [OnExceed::Refuse] => Vec::new(),
                _ => rungs,
            },
        }
    }
}
