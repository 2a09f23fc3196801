//! What runs are computed on, and how much of it each is expected to take.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::admission::{Claim, HOST};
use crate::event::Change;
use crate::plan::inventory::Inventory;
use crate::plan::{Expected, RunPlan};
use crate::spec::backend::DeviceName;
use crate::spec::kind::show_bytes;

/// How far a calibrated forecast may be off.
const CALIBRATION_ERROR: f64 = 0.15;

/// The hardware of this machine, as far as runs need it.
#[derive(Clone)]
pub struct Hardware {
    /// The devices; of those that are not here, the host's memory is taken.
    pub inventory: Inventory,
    /// Bytes of each card and of the host, where they are known.
    pub capacities: BTreeMap<String, u64>,
    /// Forecasts a run.
    pub expect: Arc<dyn Fn(&RunPlan) -> Expected + Send + Sync>,
}

impl Hardware {
    /// Hardware that nothing is known of, and no run expected not to fit.
    pub fn unknown() -> Self {
        let nothing = Expected {
            bytes: 0,
            is_calibrated: false,
        };
        Self {
            inventory: Inventory::default(),
            capacities: BTreeMap::new(),
            expect: Arc::new(move |_| nothing),
        }
    }

    /// What a run takes, as it is after its adjustments.
    pub(super) fn claim(&self, plan: &RunPlan) -> Claim {
        let expected = (self.expect)(plan);
        Claim {
            card: self.card(plan.device),
            bytes: expected.bytes,
            is_measured: expected.is_calibrated,
        }
    }

    fn card(&self, device: DeviceName) -> String {
        let known = self.inventory.found().find(|(known, _)| *known == device);
        known.map_or(HOST.to_owned(), |(_, found)| found.card.clone())
    }

    /// Why a run is not expected to fit, if it is not. A forecast that rests on no measurement may be too high,
    /// and is believed only where something can be changed.
    pub(super) fn misfit(&self, plan: &RunPlan) -> Option<Misfit> {
        let expected = (self.expect)(plan);
        let capacity = || {
            let all = self.capacities.get(&self.card(plan.device))?;
            Some(all.saturating_sub(plan.memory_reserve_bytes))
        };
        let (room, what) = match plan.memory_limit_bytes {
            Some(limit) => (limit, "`memory.limit` is"),
            None => (capacity()?, "there are"),
        };
        let at_least = (expected.bytes as f64 * (1.0 - CALIBRATION_ERROR)) as u64;
        (expected.bytes > room).then(|| Misfit {
            is_certain: expected.is_calibrated && at_least > room,
            change: plan.relief(),
            reason: format!(
                "it is forecast to hold {}, and {what} {}",
                show_bytes(expected.bytes),
                show_bytes(room)
            ),
        })
    }
}

/// A run that is not expected to fit.
pub(super) struct Misfit {
    /// Whether it cannot fit by what was measured of such runs.
    pub is_certain: bool,
    /// What can be changed about it.
    pub change: Option<Change>,
    /// Why, in words.
    pub reason: String,
}
