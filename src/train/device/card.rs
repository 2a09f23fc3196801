//! The hardware behind a device: its GPU, driver and memory.
//!
//! Burn only distinguishes and names GPUs. The driver and the memory come from the system: NVIDIA's library for its
//! GPUs, sysfs for others, the graphics interface for names of drivers.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;

use runner_core::plan::inventory::{DeviceKind, HOST};
use runner_core::record::total_memory;
use runner_core::spec::backend::Backend;
use runner_core::spec::plain_file;

/// The hardware behind a device.
pub struct Card {
    /// Equal for the same GPU, whichever backend sees it.
    pub id: String,
    /// Its kind.
    pub kind: DeviceKind,
    /// Its driver with the version.
    pub driver: Option<String>,
    /// Bytes of its memory.
    pub memory_bytes: Option<u64>,
}

/// The remedy if a backend has no device.
pub fn remedy(backend: Backend) -> &'static str {
    match backend {
        Backend::Flex | Backend::Cpu => "build runner for this processor",
        Backend::Wgpu | Backend::Vulkan => {
            "install the GPU's Vulkan driver; without a GPU, Mesa's lavapipe (Debian: mesa-vulkan-drivers)"
        }
        Backend::Metal => "Metal is only available on macOS: choose `wgpu` or `vulkan`",
        Backend::Cuda => "install NVIDIA's driver, and check that `nvidia-smi` lists the GPU",
        Backend::Rocm => "install AMD's ROCm, and check that `rocminfo` lists the GPU",
    }
}

/// The hardware behind a device of this name.
pub fn behind(backend: Backend, device: &Device, name: &str) -> Card {
    if backend.is_host() {
        return Card {
            id: HOST.into(),
            kind: DeviceKind::Host,
            driver: None,
            memory_bytes: Some(total_memory()).filter(|bytes| *bytes > 0),
        };
    }
    let driver = graphics_driver(backend, name);
    let Some(address) = address(device) else {
        return Card {
            id: name.to_owned(),
            kind: DeviceKind::Software,
            driver,
            memory_bytes: Some(total_memory()).filter(|bytes| *bytes > 0),
        };
    };
    let (own_driver, memory_bytes) = driver_and_memory(&address).unzip();
    Card {
        kind: DeviceKind::Gpu,
        driver: driver.or(own_driver),
        memory_bytes,
        id: address,
    }
}

/// The address of the GPU; none if it is not a GPU. The same through every backend of a system.
pub fn address(device: &Device) -> Option<String> {
    #[cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm", feature = "cpu"))]
    {
        let physical = device.identity()?.physical?;
        let pci = physical.pci_address.map(|address| address.to_string());
        let luid = physical.luid.map(|luid| format!("{:?}", luid.bytes()));
        let registry = physical.registry_entry_id.map(|id| id.get().to_string());
        // A GPU without an address is only identified by its backend's numbering.
        return Some(
            pci.or(luid)
                .or(registry)
                .unwrap_or_else(|| format!("{device:?}")),
        );
    }
    #[allow(unreachable_code)]
    {
        let _ = device;
        None
    }
}

/// Bytes in use on the GPU behind a device, by all processes; none if its driver does not report it.
pub fn used_bytes(address: &str) -> Option<u64> {
    #[cfg(all(feature = "_tuned", any(target_os = "linux", windows)))]
    if let Some(bytes) = super::nvml::used_bytes(address) {
        return Some(bytes);
    }
    sysfs_bytes(address, "mem_info_vram_used")
}

/// Driver and memory of a GPU at a PCI address.
fn driver_and_memory(address: &str) -> Option<(String, u64)> {
    #[cfg(all(feature = "_tuned", any(target_os = "linux", windows)))]
    if let Some(card) = super::nvml::card(address) {
        return Some(card);
    }
    let memory = sysfs_bytes(address, "mem_info_vram_total")?;
    let driver = fs::read_link(sysfs(address).join("driver")).ok()?;
    let driver = driver.file_name()?.to_string_lossy().into_owned();
    Some((driver, memory))
}

/// What Linux' drivers report about a GPU: those for AMD report its memory.
fn sysfs(address: &str) -> PathBuf {
    Path::new("/sys/bus/pci/devices").join(address)
}

fn sysfs_bytes(address: &str, file: &str) -> Option<u64> {
    let text = plain_file::read_text(&sysfs(address).join(file)).ok()?;
    text.trim().parse().ok()
}

/// The driver of an adapter of this name, as named by the graphics interface.
#[cfg(feature = "wgpu")]
fn graphics_driver(backend: Backend, name: &str) -> Option<String> {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    if !matches!(backend, Backend::Wgpu | Backend::Vulkan | Backend::Metal) {
        return None;
    }
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapters = pin!(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
    // Outside of browsers the answer is available at once.
    let Poll::Ready(adapters) = adapters.poll(&mut Context::from_waker(Waker::noop())) else {
        return None;
    };
    let infos = adapters.iter().map(|adapter| adapter.get_info());
    let info = infos.into_iter().find(|info| info.name == name)?;
    let words = [info.driver, info.driver_info].join(" ");
    Some(words.trim().to_owned()).filter(|words| !words.is_empty())
}

#[cfg(not(feature = "wgpu"))]
fn graphics_driver(_: Backend, _: &str) -> Option<String> {
    None
}
