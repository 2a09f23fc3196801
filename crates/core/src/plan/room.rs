//! How much memory a run may take: the one answer for plans, sheets, and what is started.

use super::RunPlan;
use crate::spec::kind::show_bytes;

/// The most that a run may hold, and what sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes.
    pub bytes: u64,
    bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// `memory.limit`.
    Limit,
    /// What its device has, and how much of that stays free for others.
    Device { there: u64, reserve: u64 },
}

impl RunPlan {
    /// The smaller of its limit and of what its device has but for what stays free for others; none where neither
    /// is known. `there` are the bytes that the device has, or has free.
    pub fn room(&self, there: Option<u64>) -> Option<Room> {
        let reserve = self.memory_reserve_bytes;
        let of_device = there.map(|there| Room {
            bytes: there.saturating_sub(reserve),
            bound: Bound::Device { there, reserve },
        });
        let limit = self.memory_limit_bytes.map(|bytes| Room {
            bytes,
            bound: Bound::Limit,
        });
        // Of equals the limit is what the user knows.
        limit
            .into_iter()
            .chain(of_device)
            .min_by_key(|room| room.bytes)
    }
}

impl Room {
    /// What it is, as the second half of a sentence.
    pub fn in_words(&self) -> String {
        match self.bound {
            Bound::Limit => format!("`memory.limit` is {}", show_bytes(self.bytes)),
            Bound::Device { there, reserve: 0 } => format!("there are {}", show_bytes(there)),
            Bound::Device { there, reserve } if reserve >= there => format!(
                "`memory.reserve` keeps {} free, more than the {} that can be had",
                show_bytes(reserve),
                show_bytes(there)
            ),
            Bound::Device { there, reserve } => format!(
                "there are {}, of which `memory.reserve` keeps {} free",
                show_bytes(there),
                show_bytes(reserve)
            ),
        }
    }

    /// The key of the file that it depends on; the model where it is all that there is.
    pub fn key(&self) -> &'static str {
        match self.bound {
            Bound::Limit => "memory.limit",
            Bound::Device { reserve: 0, .. } => "model",
            Bound::Device { .. } => "memory.reserve",
        }
    }

    /// How to get more of it.
    pub fn remedy(&self) -> &'static str {
        match self.bound {
            Bound::Limit => "raise `memory.limit`",
            Bound::Device { reserve: 0, .. } => "end what else takes memory",
            Bound::Device { .. } => "lower `memory.reserve`",
        }
    }
}
