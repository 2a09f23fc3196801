//! Burn's devices by the names of the experiment file. The only place that depends on the compiled backends.

mod card;
#[cfg(all(feature = "_tuned", any(target_os = "linux", windows)))]
mod nvml;

use burn::tensor::{Device, FloatDType};

pub use card::{address, used_bytes};

use super::allocator::keep_large_blocks;
use runner_core::diagnostic::Reason;
use runner_core::plan::inventory::{Found, Inventory, Listed, State};
use runner_core::spec::backend::{Backend, DeviceName, FLEX, Precision};
use runner_core::spec::section::Choice;

/// The devices of one backend, queried in this process: a driver that crashes ends the process.
pub fn list(backend: Backend) -> Inventory {
    let name = backend.name();
    if !backend.is_compiled() {
        return Inventory::missing(
            backend,
            "it is not in this build".into(),
            match backend {
                Backend::Cpu => format!(
                    "use `flex` for this processor; for CubeCL's own kernels, rebuild: cargo run --release --features {name} -- …"
                ),
                _ => format!("rebuild with it: cargo run --release --features {name} -- …"),
            },
        );
    }
    let asked = quietly(|| {
        let devices = enumerate(backend).into_iter();
        let listed = devices.enumerate().map(|(index, device)| Listed {
            device: DeviceName {
                backend,
                index: index as u16,
            },
            state: State::Found(look_at(backend, &device)),
        });
        listed.collect::<Vec<_>>()
    });
    match asked {
        Ok(listed) if listed.is_empty() => Inventory::missing(
            backend,
            "this machine has no adapter for it, or no driver".into(),
            card::remedy(backend).into(),
        ),
        Ok(listed) => Inventory(listed),
        Err(Reason(reason)) => Inventory::missing(backend, reason, card::remedy(backend).into()),
    }
}

fn look_at(backend: Backend, device: &Device) -> Found {
    let precisions = Precision::ALL.iter();
    let supported = precisions.filter(|(precision, _, _)| supports(backend, device, *precision));
    let name = describe(backend, device);
    let card = card::behind(backend, device, &name);
    Found {
        precisions: supported.map(|(precision, _, _)| *precision).collect(),
        driver: card.driver,
        memory_bytes: card.memory_bytes,
        kind: card.kind,
        card: card.id,
        name,
    }
}

/// Opens a device with a precision for this process, which keeps large blocks from now on. The error has a
/// remedy.
pub fn open(name: DeviceName, precision: Precision) -> Result<Device, Reason> {
    keep_large_blocks();
    if name != FLEX {
        super::kernels::keep_on_machine();
    }
    let devices = quietly(|| enumerate(name.backend))
        .map_err(|reason| format!("the device `{name}` cannot be opened: {reason}"))?;
    let num = devices.len();
    let mut device = devices
        .into_iter()
        .nth(name.index as usize)
        .ok_or_else(|| match num {
            0 => format!(
                "there is no `{}` device on this machine; `runner devices` lists the available ones",
                name.backend.name()
            ),
            _ => format!(
                "the device `{name}` does not exist; the last one is `{}:{}`",
                name.backend.name(),
                num - 1
            ),
        })?;
    if !supports(name.backend, &device, precision) {
        return Err(Reason(format!(
            "the device `{name}` does not support {}; `runner devices` lists the supported precisions",
            precision.name()
        )));
    }
    // A process can set this once, and need not if it is already the default.
    if device.settings().float_dtype != dtype(precision) {
        device.configure(dtype(precision)).map_err(|e| {
            tracing::debug!("{name}: {e}");
            format!(
                "the device `{name}` already computes in another precision in this process, and cannot change to {}: use runs of one precision in a command",
                precision.name()
            )
        })?;
    }
    Ok(device)
}

/// The device on which initial weights are sampled for runs of `name`, if it differs from `name`.
pub fn canonical(name: DeviceName, precision: Precision) -> Result<Option<Device>, Reason> {
    if FLEX.backend.is_compiled() && name != FLEX {
        open(FLEX, precision).map(Some)
    } else {
        Ok(None)
    }
}

/// The device's own name.
pub fn describe(backend: Backend, device: &Device) -> String {
    #[cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm", feature = "cpu"))]
    if !matches!(backend, Backend::Flex)
        && let Some(identity) = device.identity()
    {
        return identity.name.to_string();
    }
    match backend {
        Backend::Flex => "host CPU, pure-Rust kernels".into(),
        _ => format!("{device:?}"),
    }
}

fn dtype(precision: Precision) -> FloatDType {
    match precision {
        Precision::F64 => FloatDType::F64,
        Precision::F32 => FloatDType::F32,
        Precision::F16 => FloatDType::F16,
        Precision::Bf16 => FloatDType::BF16,
    }
}

/// Whether a device supports a precision as networks need it: shaders have no 64-bit exponential or logarithm, and
/// drivers return arbitrary values for them (cubecl#1316, wgpu#6087).
fn supports(backend: Backend, device: &Device, precision: Precision) -> bool {
    let is_by_shaders = matches!(backend, Backend::Wgpu | Backend::Vulkan | Backend::Metal);
    !(is_by_shaders && precision == Precision::F64) && device.supports_dtype(dtype(precision))
}

/// Drivers may panic when listing their devices; that counts as none.
pub fn quietly<T>(ask: impl FnOnce() -> T) -> Result<T, Reason> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask));
    std::panic::set_hook(hook);
    answer.map_err(|payload| Reason(super::panic_text(&*payload)))
}

fn enumerate(backend: Backend) -> Vec<Device> {
    #[allow(unused_imports)]
    use burn::tensor::DeviceType;
    match backend {
        #[cfg(feature = "flex")]
        Backend::Flex => Device::enumerate(DeviceType::Flex).into_vec(),
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => Device::enumerate(DeviceType::Wgpu).into_vec(),
        #[cfg(feature = "vulkan")]
        Backend::Vulkan => Device::enumerate(DeviceType::Vulkan).into_vec(),
        #[cfg(feature = "metal")]
        Backend::Metal => Device::enumerate(DeviceType::Metal).into_vec(),
        #[cfg(feature = "cuda")]
        Backend::Cuda => Device::enumerate(DeviceType::Cuda).into_vec(),
        #[cfg(feature = "rocm")]
        Backend::Rocm => Device::enumerate(DeviceType::Rocm).into_vec(),
        #[cfg(feature = "cpu")]
        Backend::Cpu => Device::enumerate(DeviceType::Cpu).into_vec(),
        #[allow(unreachable_patterns)]
        _ => Vec::new(),
    }
}
