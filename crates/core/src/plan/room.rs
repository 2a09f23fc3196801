//! The memory available to a run: the single source for plans, budgets, and admission.

use super::RunPlan;
use crate::show::show_bytes;

/// The memory available to a run, and what determines it.
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
    /// The memory of its device, and how much of it stays free for other programs.
    Device { there: u64, reserve: u64 },
}

impl RunPlan {
    /// The smaller of its limit and of its device's memory minus the reserve; none if neither is known. `there` are the
    /// total or free bytes of the device.
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
        // If they are equal, the limit is what the user knows.
        limit
            .into_iter()
            .chain(of_device)
            .min_by_key(|room| room.bytes)
    }
}

impl Room {
    /// A description, as the second half of a sentence.
    pub fn in_words(&self) -> String {
        match self.bound {
            Bound::Limit => format!("`memory.limit` is {}", show_bytes(self.bytes)),
            Bound::Device { there, reserve: 0 } => format!("{} are available", show_bytes(there)),
            Bound::Device { there, reserve } if reserve >= there => format!(
                "`memory.reserve` keeps {} free, more than the {} that are available",
                show_bytes(reserve),
                show_bytes(there)
            ),
            Bound::Device { there, reserve } => format!(
                "{} are available, of which `memory.reserve` keeps {} free",
                show_bytes(there),
                show_bytes(reserve)
            ),
        }
    }

    /// The key of the file that it depends on; the model if there is no other.
    pub fn key(&self) -> &'static str {
        match self.bound {
            Bound::Limit => "memory.limit",
            Bound::Device { reserve: 0, .. } => "model",
            Bound::Device { .. } => "memory.reserve",
        }
    }

    /// How to get more memory.
    pub fn remedy(&self) -> &'static str {
        match self.bound {
            Bound::Limit => "raise `memory.limit`",
            Bound::Device { reserve: 0, .. } => "close other programs that use memory",
            Bound::Device { .. } => "lower `memory.reserve`",
        }
    }
}
