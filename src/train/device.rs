//! Burn's devices by the names of the experiment file. The one place that may depend on what was
//! compiled in.

use burn::tensor::{Device, FloatDType};

use crate::spec::backend::{Backend, DeviceName, Precision};
use crate::spec::section::Choice;

/// What `runner devices` says of one backend.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The name in the experiment file.
    pub name: String,
    /// The device's own name, or why it is not there and what to do about it.
    pub state: Result<String, String>,
    /// The precisions that it computes in.
    pub precisions: Vec<&'static str>,
}

/// Every backend that runner knows, with the devices of those in this build.
pub fn list() -> Vec<Listed> {
    let mut listed = Vec::new();
    for (backend, name, _) in Backend::ALL {
        let absent = |reason: String| Listed {
            name: (*name).to_owned(),
            state: Err(reason),
            precisions: Vec::new(),
        };
        if !backend.is_compiled() {
            listed.push(absent(format!(
                "not in this build: build with `--features {name}`"
            )));
            continue;
        }
        let devices = quietly(|| enumerate(*backend)).unwrap_or_default();
        if devices.is_empty() {
            listed.push(absent("no adapter found: is its driver installed?".into()));
        }
        for (index, device) in devices.into_iter().enumerate() {
            let name = DeviceName {
                backend: *backend,
                index: index as u16,
            };
            let supported = Precision::ALL
                .iter()
                .filter(|(p, _, _)| supports(&device, *p));
            listed.push(Listed {
                name: name.to_string(),
                state: Ok(describe(*backend, &device)),
                precisions: supported.map(|(_, name, _)| *name).collect(),
            });
        }
    }
    listed
}

/// The precisions that a device computes in; none when it is not there.
pub fn precisions(name: DeviceName) -> Vec<Precision> {
    let devices = quietly(|| enumerate(name.backend)).unwrap_or_default();
    let device = devices.into_iter().nth(name.index.into());
    let all = Precision::ALL.iter().map(|(precision, _, _)| *precision);
    all.filter(|precision| device.as_ref().is_some_and(|d| supports(d, *precision)))
        .collect()
}

/// Opens a device in a precision for this process. The error is a phrase with a remedy.
pub fn open(name: DeviceName, precision: Precision) -> Result<Device, String> {
    let devices = quietly(|| enumerate(name.backend))
        .map_err(|reason| format!("the device `{name}` cannot be opened: {reason}"))?;
    let num = devices.len();
    let mut device = devices
        .into_iter()
        .nth(name.index as usize)
        .ok_or_else(|| match num {
            0 => format!(
                "there is no `{}` device on this machine; `runner devices` lists what there is",
                name.backend.name()
            ),
            _ => format!(
                "there is no device `{name}`; the last one is `{}:{}`",
                name.backend.name(),
                num - 1
            ),
        })?;
    if !supports(&device, precision) {
        return Err(format!(
            "the device `{name}` does not compute in {}; `runner devices` lists what it computes in",
            precision.name()
        ));
    }
    // A process can set this once, and need not where it is so anyway.
    if device.settings().float_dtype != dtype(precision) {
        device.configure(dtype(precision)).map_err(|e| {
            format!(
                "the device `{name}` cannot be set to {}: {e}",
                precision.name()
            )
        })?;
    }
    Ok(device)
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

fn supports(device: &Device, precision: Precision) -> bool {
    device.supports_dtype(dtype(precision))
}

/// Drivers may panic when they are asked for their devices; that is an answer too.
fn quietly<T>(ask: impl FnOnce() -> T + std::panic::UnwindSafe) -> Result<T, String> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let answer = std::panic::catch_unwind(ask);
    std::panic::set_hook(hook);
    answer.map_err(|payload| super::panic_text(&*payload))
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
