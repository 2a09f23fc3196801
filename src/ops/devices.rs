//! The devices of this machine in this build. Drivers crash occasionally, so each is queried in a separate process.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

use super::Program;
use crate::train::device;
use runner_core::plan::inventory::{Inventory, Listed};
use runner_core::record::{PATIENCE, answer};
use runner_core::spec::backend::Backend;
use runner_core::spec::section::Choice;

/// The devices of this machine in this build.
///
/// ```
/// use burn_runner::ops::{self, Program};
///
/// let devices = ops::devices(&Program::default());
/// let flex = devices.found().find(|(name, _)| name.backend.is_host());
/// assert!(flex.is_some(), "the processor is always there");
/// ```
pub fn devices(program: &Program) -> Inventory {
    let backends = Backend::ALL.iter();
    let each = backends.flat_map(|(backend, _, _)| devices_of(*backend, program).0);
    Inventory(each.collect())
}

/// The devices of one backend. A backend without a driver is queried in this process, and so are all backends if there
/// is no program.
///
/// ```
/// use burn_runner::ops::{self, Program};
/// use burn_runner::spec::backend::FLEX;
///
/// let devices = ops::devices_of(FLEX.backend, &Program::default());
/// assert_eq!(devices.found().next().unwrap().0, FLEX);
/// ```
pub fn devices_of(backend: Backend, program: &Program) -> Inventory {
    let Some(path) = &program.path else {
        return device::list(backend);
    };
    if backend.is_host() || !backend.is_compiled() {
        return device::list(backend);
    }
    ask(backend, path).unwrap_or_else(|reason| {
        let remedy = "update the device's driver, or choose another device";
        Inventory::missing(backend, reason.to_string(), remedy.into())
    })
}

/// Why the devices of a backend are unknown.
enum NoAnswer {
    NotStarted(io::Error),
    Late,
    Crashed(ExitStatus),
    Unreadable(serde_json::Error),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(e) => write!(f, "its devices cannot be listed: {e}"),
            Self::Late => write!(
                f,
                "its driver did not list its devices within {} s",
                PATIENCE.as_secs()
            ),
            Self::Crashed(status) => {
                write!(f, "its driver crashed while listing its devices ({status})")
            }
            Self::Unreadable(e) => {
                write!(f, "the device list of its driver cannot be read: {e}")
            }
        }
    }
}

fn ask(backend: Backend, program: &Path) -> Result<Inventory, NoAnswer> {
    let mut command = Command::new(program);
    command.args(["devices", "--json", "--backend", backend.name()]);
    let (status, lines) = answer(command, PATIENCE)
        .map_err(NoAnswer::NotStarted)?
        .ok_or(NoAnswer::Late)?;
    if !status.success() {
        return Err(NoAnswer::Crashed(status));
    }
    let listed = lines.lines().map(serde_json::from_str);
    let listed: Result<Vec<Listed>, _> = listed.collect();
    listed.map(Inventory).map_err(NoAnswer::Unreadable)
}
