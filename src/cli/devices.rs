//! `runner devices`, and the devices of this machine for whoever plans.
//!
//! Drivers crash now and then, so each is asked in a process of its own.

use std::process::Command;

use comfy_table::{ContentArrangement, Table, presets};

use super::OK;
use super::output::Output;
use crate::train::device;
use runner_core::plan::inventory::{DeviceKind, Found, Inventory, Listed, Missing, State};
use runner_core::record::{PATIENCE, answer};
use runner_core::spec::backend::{Backend, DeviceName};
use runner_core::spec::kind::show_bytes;
use runner_core::spec::section::{Choice, by_name};

/// The devices of this machine, through this build.
pub fn inventory() -> Inventory {
    let backends = Backend::ALL.iter();
    let each = backends.flat_map(|(backend, _, _)| devices_of(*backend).0);
    Inventory(each.collect())
}

/// Those of one backend. What has no driver is asked here.
pub fn devices_of(backend: Backend) -> Inventory {
    if backend.is_host() || !backend.is_compiled() {
        return device::list(backend);
    }
    ask(backend).unwrap_or_else(|reason| {
        let remedy = "update the device's driver, or choose another device";
        Inventory::missing(backend, reason, remedy.into())
    })
}

fn ask(backend: Backend) -> Result<Inventory, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.args(["devices", "--json", "--backend", backend.name()]);
    let (status, lines) = answer(command, PATIENCE)
        .map_err(|e| format!("its devices cannot be asked for: {e}"))?
        .ok_or_else(|| {
            let secs = PATIENCE.as_secs();
            format!("its driver did not answer within {secs} s when it was asked for its devices")
        })?;
    if !status.success() {
        return Err(format!(
            "its driver crashed when it was asked for its devices ({status})"
        ));
    }
    let listed = lines.lines().map(serde_json::from_str);
    let listed: Result<Vec<Listed>, _> = listed.collect();
    listed
        .map(Inventory)
        .map_err(|e| format!("what its driver said of its devices cannot be read: {e}"))
}

/// A backend by its name.
pub fn backend(name: &str) -> Result<Backend, String> {
    by_name(name).ok_or_else(|| format!("there is no backend `{name}`"))
}

/// `runner devices`. With a backend, that one alone and in this process.
pub fn devices(json: bool, backend: Option<Backend>, output: &mut Output) -> u8 {
    let inventory = match backend {
        Some(backend) => device::list(backend),
        None => inventory(),
    };
    if json {
        for listed in &inventory.0 {
            output.print(&serde_json::to_string(listed).unwrap_or_default());
        }
        return OK;
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(Output::width());
    table.set_header(["device", "name", "driver", "memory", "precisions"]);
    for (device, found) in inventory.found() {
        table.add_row(row(device, found, &inventory));
    }
    output.print(&table.trim_fmt());
    let missing = inventory.0.iter().filter_map(|listed| match &listed.state {
        State::Missing(missing) => Some((listed.device, missing)),
        State::Found(_) => None,
    });
    let mut lines = vec![String::new(), "not there:".to_owned()];
    for (device, Missing { reason, remedy }) in missing {
        lines.push(format!(" {:<7} {reason}; {remedy}", device.to_string()));
    }
    if lines.len() > 2 {
        output.print(&lines.join("\n"));
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
        name.push_str(&format!(", the same card as {}", others.join(", ")));
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
