//! The origin of a run's valid split: how far metrics measured on it generalize.

use serde::{Deserialize, Serialize};

use super::RunPlan;
use crate::data::Dataset;
use crate::spec::data::SplitOrder;

/// Which items are the valid split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum HeldOut {
    /// It was not recorded.
    #[default]
    Unknown,
    /// They were chosen at random.
    Drawn {
        /// By the seed of the split.
        seed: u64,
    },
    /// They were chosen at random for each run, by `data.split.seed = "run"`.
    DrawnForRun {
        /// By the seed of the run.
        seed: u64,
    },
    /// They come last in the order of the items.
    InOrder,
    /// They come from separate files.
    Given,
}

impl RunPlan {
    /// The origin of the valid split.
    pub fn held_out(&self) -> HeldOut {
        let split = &self.data.split;
        match &self.data.dataset {
            Dataset::Files { files, .. } if !files.valid_path.is_empty() => HeldOut::Given,
            _ if split.order == SplitOrder::Time => HeldOut::InOrder,
            _ if split.by_run => HeldOut::DrawnForRun { seed: split.seed },
            _ => HeldOut::Drawn { seed: split.seed },
        }
    }
}
