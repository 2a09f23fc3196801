//! The device of a trial on this machine, or why there is none.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::Devices;
use super::inventory::{Inventory, Missing};
use super::relief::Relief;
use crate::check::Point;
use crate::diagnostic::Diagnostic;
use crate::spec::backend::{DeviceName, FLEX};
use crate::spec::section::Findings;

/// The devices of this machine, listed on first use.
pub struct Machine<'a> {
    ask: Devices<'a>,
    inventory: OnceCell<Inventory>,
    /// The device behind `auto`.
    chosen: BTreeSet<String>,
}

/// The device of a trial.
pub struct Place {
    /// The device.
    pub device: DeviceName,
    /// Why its runs are skipped, if they are.
    pub skip: Option<String>,
    /// The remedies if its runs do not fit.
    pub on_exceed: Relief,
}

impl Default for Place {
    fn default() -> Self {
        Self {
            device: FLEX,
            skip: None,
            on_exceed: Relief::default(),
        }
    }
}

impl<'a> Machine<'a> {
    /// Nothing is listed yet.
    pub fn new(ask: Devices<'a>) -> Self {
        Self {
            ask,
            inventory: OnceCell::new(),
            chosen: BTreeSet::new(),
        }
    }

    /// The device of a trial's runs.
    pub fn place(&mut self, point: &Point<'_>, findings: &mut Findings) -> Place {
        let backend = &point.spec.backend;
        let (device, skip) = self.device(point, findings);
        if backend.device.is_none() {
            self.chosen.insert(format!("`{device}`"));
        }
        Place {
            device,
            on_exceed: Relief::new(
                &point.spec.memory.on_exceed,
                (device, backend.precision),
                || self.inventory(),
            ),
            skip,
        }
    }

    /// The device of a trial, and why its runs are skipped. An unavailable one is a warning, or an error if it is
    /// required.
    fn device(&self, point: &Point<'_>, findings: &mut Findings) -> (DeviceName, Option<String>) {
        let backend = &point.spec.backend;
        // The host's processor supports all precisions; a second one is refused by a rule.
        let is_host =
            |device: DeviceName| device == FLEX || (device.backend.is_host() && device.index > 0);
        if backend.device.is_some_and(is_host) && FLEX.backend.is_compiled() {
            return (FLEX, None);
        }
        let inventory = self.inventory();
        let best = || inventory.preferred(backend.precision).next();
        let device = backend.device.or_else(best).unwrap_or(FLEX);
        let Err(Missing { reason, remedy }) = inventory.look_up(device, backend.precision) else {
            return (device, None);
        };
        let reason = format!("the device `{device}` cannot be used: {reason}");
        let (diagnostic, note) = if backend.required {
            (
                Diagnostic::error("device", reason.clone()),
                "`backend.required` is true",
            )
        } else {
            (
                Diagnostic::warning("device", reason.clone()),
                "its runs are skipped; set `backend.required = true` to make this an error",
            )
        };
        let diagnostic = diagnostic.at(point.span("backend.device")).note(note);
        findings.diagnostics.push(diagnostic.help(remedy.clone()));
        (device, Some(format!("{reason}; {remedy}")))
    }

    /// Notices for the reader: the device behind `auto`.
    pub fn notice(&self) -> Option<String> {
        let chosen: Vec<&str> = self.chosen.iter().map(String::as_str).collect();
        (!chosen.is_empty()).then(|| {
            let chosen = chosen.join(" or ");
            format!("`backend.device = \"auto\"` is {chosen} on this machine")
        })
    }

    fn inventory(&self) -> &Inventory {
        self.inventory.get_or_init(self.ask)
    }
}
