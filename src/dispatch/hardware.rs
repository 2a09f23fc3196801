//! What runs are computed on, and how much of it each is expected to take.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::admission::Claim;
use runner_core::event::Change;
use runner_core::plan::inventory::{HOST, Inventory};
use runner_core::plan::{Basis, Expected, Room, RunPlan};
use runner_core::spec::backend::DeviceName;
use runner_core::spec::kind::show_bytes;

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
            basis: Basis::Counted,
        };
        Self {
            inventory: Inventory::default(),
            capacities: BTreeMap::new(),
            expect: Arc::new(move |_| nothing),
        }
    }

    /// What a run is expected to hold.
    pub(super) fn expected(&self, plan: &RunPlan) -> Expected {
        (self.expect)(plan)
    }

    /// What a run takes, as it is after its adjustments.
    pub(super) fn claim(&self, plan: &RunPlan) -> Claim {
        let expected = self.expected(plan);
        Claim {
            card: self.card(plan.device).to_owned(),
            bytes: expected.bytes,
            is_measured: expected.is_measured(),
            reserve: plan.memory_reserve_bytes,
        }
    }

    fn card(&self, device: DeviceName) -> &str {
        let known = self.inventory.found().find(|(known, _)| *known == device);
        known.map_or(HOST, |(_, found)| found.memory_of())
    }

    /// How much a run may hold here, as far as that is known.
    pub fn room(&self, plan: &RunPlan) -> Option<Room> {
        plan.room(self.capacities.get(self.card(plan.device)).copied())
    }

    /// Why a run is not expected to fit, if it is not. A forecast that rests on no measurement may be too high,
    /// and is believed only where something can be changed.
    pub(super) fn misfit(&self, plan: &RunPlan) -> Option<Misfit> {
        let expected = self.expected(plan);
        let room = self.room(plan)?;
        (expected.bytes > room.bytes).then(|| Misfit {
            is_certain: expected.at_least().is_some_and(|least| least > room.bytes),
            change: plan.relief(),
            reason: format!(
                "it is forecast to hold {}, and {}",
                show_bytes(expected.bytes),
                room.in_words()
            ),
            help: plan.without_relief(room.remedy()),
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
    /// What to do about it where nothing can be changed.
    pub help: String,
}
