//! The hardware of runs, and how much of it each is expected to use.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::admission::Claim;
use runner_core::event::Change;
use runner_core::plan::inventory::{DeviceKind, HOST, Inventory};
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
    /// Whether a run can use any GPU that is equal to that of its device.
    pub has_any_gpu: bool,
}

/// The environment variable and its value with which a process sees one GPU only.
pub type Visible = (&'static str, String);

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
            has_any_gpu: false,
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
            cards: self.cards(plan.device),
            bytes: expected.bytes,
            is_measured: expected.is_measured(),
            reserve: plan.memory_reserve_bytes,
        }
    }

    fn card(&self, device: DeviceName) -> &str {
        let known = self.inventory.found().find(|(known, _)| *known == device);
        known.map_or(HOST, |(_, found)| found.memory_of())
    }

    /// The hardware that runs on a device can use: that of the device first.
    pub fn cards(&self, device: DeviceName) -> Vec<String> {
        let own = self.card(device).to_owned();
        let others = self.equal_gpus(device).map(|(_, card)| card.to_owned());
        let others: Vec<String> = others.filter(|card| *card != own).collect();
        [own].into_iter().chain(others).collect()
    }

    /// What a process needs to use this hardware by the name of the device, if that is not where the name leads anyway.
    #[expect(
        clippy::disallowed_methods,
        reason = "devices were counted among those that this variable shows"
    )]
    pub(super) fn visible(&self, device: DeviceName, card: &str) -> Option<Visible> {
        let variable = device.visibility()?;
        let (at, _) = self.equal_gpus(device).find(|(_, of)| *of == card)?;
        let seen = std::env::var(variable).ok();
        let seen =
            seen.and_then(|seen| Some(seen.split(',').nth(at.index.into())?.trim().to_owned()));
        let value = seen.filter(|name| !name.is_empty());
        Some((variable, value.unwrap_or_else(|| at.index.to_string())))
    }

    /// The GPUs that any run on a device can use, if so.
    fn equal_gpus(&self, device: DeviceName) -> impl Iterator<Item = (DeviceName, &str)> {
        let all = || self.inventory.found();
        let own = all().find(|(known, found)| {
            let is_shared = self.has_any_gpu && device.visibility().is_some();
            is_shared && *known == device && found.kind == DeviceKind::Gpu
        });
        let equal = own.into_iter().flat_map(move |(_, own)| {
            all().filter(move |(known, found)| {
                let is_equal = found.name == own.name && found.memory_bytes == own.memory_bytes;
                known.backend == device.backend && is_equal
            })
        });
        equal.map(|(known, found)| (known, found.card.as_str()))
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
