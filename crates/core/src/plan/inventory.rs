//! The devices of a machine, as data: the available ones, and for the others the reason and a remedy.

use serde::{Deserialize, Serialize};

use crate::spec::backend::{Backend, DeviceName, Precision};
use crate::spec::section::Choice;

/// The hardware that stands for the host's memory.
pub const HOST: &str = "host";

/// Every backend that runner knows, with its devices, if any.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory(pub Vec<Listed>);

/// A device, or a backend without one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// The name in the experiment file.
    pub device: DeviceName,
    /// Its availability.
    #[serde(flatten)]
    pub state: State,
}

/// Whether a device is available.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Available.
    Found(Found),
    /// Not available.
    Missing(Missing),
}

/// An available device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The device's own name.
    pub name: String,
    /// The driver with its version, if known.
    pub driver: Option<String>,
    /// Bytes of its memory, if known.
    pub memory_bytes: Option<u64>,
    /// The precisions that it supports.
    pub precisions: Vec<Precision>,
    /// Its kind.
    pub kind: DeviceKind,
    /// The hardware behind it: devices with equal text are one GPU, seen through different backends.
    pub card: String,
}

impl Found {
    /// The hardware whose memory its runs use: its GPU, or the host for devices on the host's processor.
    pub fn memory_of(&self) -> &str {
        match self.kind {
            DeviceKind::Host | DeviceKind::Software => HOST,
            DeviceKind::Gpu => &self.card,
        }
    }
}

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// The host's processor.
    Host,
    /// A separate GPU.
    Gpu,
    /// A driver that emulates a GPU on the host's processor.
    Software,
}

/// A device that is not available, or does not support what is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Why.
    pub reason: String,
    /// The remedy.
    pub remedy: String,
}

/// The order of preference of `auto`: GPUs before the host's processor, a vendor's interface before a common one.
/// Software drivers are only used when named explicitly.
const PREFERRED: [Backend; 7] = [
    Backend::Cuda,
    Backend::Rocm,
    Backend::Metal,
    Backend::Vulkan,
    Backend::Wgpu,
    Backend::Flex,
    Backend::Cpu,
];

impl Inventory {
    /// For a backend without a device.
    pub fn missing(backend: Backend, reason: String, remedy: String) -> Self {
        Self(vec![Listed {
            device: DeviceName { backend, index: 0 },
            state: State::Missing(Missing { reason, remedy }),
        }])
    }

    /// The available devices.
    pub fn found(&self) -> impl Iterator<Item = (DeviceName, &Found)> {
        self.0.iter().filter_map(|listed| match &listed.state {
            State::Found(found) => Some((listed.device, found)),
            State::Missing(_) => None,
        })
    }

    /// The device of this name that supports a precision, or why there is none.
    pub fn look_up(&self, device: DeviceName, precision: Precision) -> Result<&Found, Missing> {
        let of_backend = || {
            let all = self.0.iter();
            all.filter(|listed| listed.device.backend == device.backend)
        };
        let name = device.backend.name();
        let Some(listed) = of_backend().find(|listed| listed.device == device) else {
            let missing = of_backend().find_map(|listed| match &listed.state {
                State::Missing(missing) => Some(missing.clone()),
                State::Found(_) => None,
            });
            let last = of_backend().count().saturating_sub(1);
            return Err(missing.unwrap_or(Missing {
                reason: format!("`{name}` has no device with this index; the last one is {last}"),
                remedy: "use the name of a device that `runner devices` lists".into(),
            }));
        };
        match &listed.state {
            State::Missing(missing) => Err(missing.clone()),
            State::Found(found) if found.precisions.contains(&precision) => Ok(found),
            State::Found(found) => {
                let names = found.precisions.iter().map(|precision| precision.name());
                Err(Missing {
                    reason: format!("{} does not support {}", found.name, precision.name()),
                    remedy: format!(
                        "choose another `backend.precision`; it supports {}",
                        names.collect::<Vec<_>>().join(", ")
                    ),
                })
            }
        }
    }

    /// The devices that support a precision, in the order of preference of `auto`.
    pub fn preferred(&self, precision: Precision) -> impl Iterator<Item = DeviceName> {
        let usable = |(_, found): &(DeviceName, &Found)| {
            found.kind != DeviceKind::Software && found.precisions.contains(&precision)
        };
        let mut devices: Vec<DeviceName> =
            self.found().filter(usable).map(|(name, _)| name).collect();
        let place = |device: &DeviceName| PREFERRED.iter().position(|b| *b == device.backend);
        devices.sort_by_key(|device| (place(device), device.index));
        devices.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str) -> DeviceName {
        name.parse().unwrap()
    }

    fn found(name: &str, kind: DeviceKind, precisions: &[Precision]) -> Listed {
        Listed {
            device: device(name),
            state: State::Found(Found {
                name: format!("the {name}"),
                driver: None,
                memory_bytes: None,
                precisions: precisions.to_vec(),
                kind,
                card: name.into(),
            }),
        }
    }

    #[test]
    fn auto_takes_cards_then_the_host_and_never_software() {
        let f32 = &[Precision::F32];
        let all = [
            found("flex", DeviceKind::Host, &[Precision::F32, Precision::F64]),
            found("wgpu", DeviceKind::Software, f32),
            found("wgpu:1", DeviceKind::Gpu, f32),
            found("cuda:1", DeviceKind::Gpu, f32),
            found("cuda", DeviceKind::Gpu, f32),
        ];
        let names = |inventory: &Inventory, precision| {
            let names = inventory.preferred(precision);
            names.map(|name| name.to_string()).collect::<Vec<_>>()
        };
        let inventory = Inventory(all.to_vec());
        let expected = ["cuda", "cuda:1", "wgpu:1", "flex"];
        assert_eq!(names(&inventory, Precision::F32), expected);
        assert_eq!(names(&inventory, Precision::F64), ["flex"]);
        let inventory = Inventory(all[..2].to_vec());
        assert_eq!(names(&inventory, Precision::F32), ["flex"]);
    }

    #[test]
    fn what_is_not_there_is_told_with_a_remedy() {
        let missing = |name: &str| Listed {
            device: device(name),
            state: State::Missing(Missing {
                reason: "no adapter".into(),
                remedy: "install a driver".into(),
            }),
        };
        let inventory = Inventory(vec![
            found("wgpu", DeviceKind::Gpu, &[Precision::F32]),
            missing("cuda"),
        ]);
        let told = |name: &str, precision| match inventory.look_up(device(name), precision) {
            Ok(found) => found.name.clone(),
            Err(missing) => format!("{}; {}", missing.reason, missing.remedy),
        };
        assert_eq!(told("wgpu", Precision::F32), "the wgpu");
        insta::assert_snapshot!([
            told("wgpu", Precision::Bf16),
            told("wgpu:3", Precision::F32),
            told("cuda:2", Precision::F32),
        ].join("\n"), @r"
        the wgpu does not support bf16; choose another `backend.precision`; it supports f32
        `wgpu` has no device with this index; the last one is 0; use the name of a device that `runner devices` lists
        no adapter; install a driver
        ");
    }
}
