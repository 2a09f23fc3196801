//! `runner devices`.

use super::OK;
use super::output::Output;
use super::tell::this_program;
use crate::ops;
use crate::train::device;
use runner_core::diagnostic::Reason;
use runner_core::plan::inventory::{DeviceKind, Found, Inventory, Missing, State};
use runner_core::show::show_bytes;
use runner_core::spec::backend::{Backend, DeviceName};
use runner_core::spec::section::{Choice, by_name};
use runner_core::table::{Columns, fit_sentences};

/// A backend by its name.
pub fn backend(name: &str) -> Result<Backend, Reason> {
    by_name(name).ok_or_else(|| Reason(format!("the backend `{name}` does not exist")))
}

/// `runner devices`. With a backend, only that one and in this process.
pub fn devices(json: bool, backend: Option<Backend>, output: &mut Output) -> u8 {
    let inventory = match backend {
        Some(backend) => device::list(backend),
        None => ops::devices(&this_program(None)),
    };
    if json {
        for listed in &inventory.0 {
            output.print(&serde_json::to_string(listed).unwrap_or_default());
        }
        return OK;
    }
    let mut table = Columns::named(["device", "name", "driver", "memory", "precisions"]);
    for (device, found) in inventory.found() {
        table.rows.push(row(device, found, &inventory));
    }
    output.print(&fit_sentences(table, Output::width(), &[]));
    let missing = inventory.0.iter().filter_map(|listed| match &listed.state {
        State::Missing(missing) => Some((listed.device, missing)),
        State::Found(_) => None,
    });
    let mut lines = vec![String::new(), "not available:".to_owned()];
    for (device, Missing { reason, remedy }) in missing {
        lines.push(format!(" {:<7} {reason}; {remedy}", device.to_string()));
    }
    if lines.len() > 2 {
        output.print_fitted(&lines.join("\n"));
    }
    OK
}

fn row(device: DeviceName, found: &Found, inventory: &Inventory) -> Vec<String> {
    let mut name = found.name.clone();
    if found.kind == DeviceKind::Software {
        name.push_str(", a software driver");
    }
    let same_card = |(other, of_other): &(DeviceName, &Found)| {
        found.kind == DeviceKind::Gpu && of_other.card == found.card && *other != device
    };
    let others: Vec<String> = inventory
        .found()
        .filter(same_card)
        .map(|(other, _)| format!("`{other}`"))
        .collect();
    if !others.is_empty() {
        name.push_str(&format!(", the same GPU as {}", others.join(", ")));
    }
    let precisions: Vec<&str> = found.precisions.iter().map(|p| p.name()).collect();
    vec![
        device.to_string(),
        name,
        found.driver.clone().unwrap_or("-".into()),
        found.memory_bytes.map_or("-".into(), show_bytes),
        precisions.join(" "),
    ]
}
