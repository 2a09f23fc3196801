//! The hardware of runs, and how much of it each is expected to use.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::admission::Claim;
use runner_core::event::Change;
use runner_core::plan::inventory::{HOST, Inventory};
use runner_core::plan::{Basis, Expected, Room, RunPlan};
use runner_core::show::show_bytes;
use runner_core::spec::backend::DeviceName;

/// The hardware of this machine, as far as runs need it.
#[derive(Clone)]
pub struct Hardware {
    /// The devices; for unavailable ones, the host's memory is used.
    pub inventory: Inventory,
    /// Memory of each GPU and of the host in bytes, if known.
    pub capacities: BTreeMap<String, u64>,
    /// Forecasts a run.
    pub expect: Arc<dyn Fn(&RunPlan) -> Expected + Send + Sync>,
}

impl Hardware {
    /// Unknown hardware, where every run is expected to fit.
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

    /// The expected memory of a run.
    pub(super) fn expected(&self, plan: &RunPlan) -> Expected {
        (self.expect)(plan)
    }

    /// The demand of a run after its adjustments.
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

    /// The memory available to a run here, if known.
    pub fn room(&self, plan: &RunPlan) -> Option<Room> {
        plan.room(self.capacities.get(self.card(plan.device)).copied())
    }

    /// Why a run is not expected to fit, if it is not. A forecast without a measurement may be too high, and only
    /// counts if something can be changed.
    pub(super) fn misfit(&self, plan: &RunPlan) -> Option<Misfit> {
        let expected = self.expected(plan);
        let room = self.room(plan)?;
        (expected.bytes > room.bytes).then(|| Misfit {
            is_certain: expected.at_least().is_some_and(|least| least > room.bytes),
            change: plan.relief(),
            reason: format!(
                "it is forecast to need {}, but {}",
                show_bytes(expected.bytes),
                room.in_words()
            ),
            help: plan.without_relief(room.remedy()),
        })
    }
}

/// A run that is not expected to fit.
pub(super) struct Misfit {
    /// Whether measurements of such runs prove that it cannot fit.
    pub is_certain: bool,
    /// The possible changes.
    pub change: Option<Change>,
    /// The reason, as text.
    pub reason: String,
    /// The remedy if nothing can be changed.
    pub help: String,
}
