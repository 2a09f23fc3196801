//! NVIDIA's GPUs, as reported by the library of its driver (NVML). It is opened if it is available.

use std::sync::OnceLock;

use nvml_wrapper::Nvml;

/// Driver and memory of the GPU at a PCI address; none if NVIDIA's driver has no such GPU.
pub fn card(address: &str) -> Option<(String, u64)> {
    card_of(library()?, address)
}

/// Bytes in use on the GPU at a PCI address, by all processes. The share of this process is not queried: in a container
/// the driver knows it by another process id.
pub fn used_bytes(address: &str) -> Option<u64> {
    used_bytes_of(library()?, address)
}

fn library() -> Option<&'static Nvml> {
    static LIBRARY: OnceLock<Option<Nvml>> = OnceLock::new();
    LIBRARY.get_or_init(|| Nvml::init().ok()).as_ref()
}

fn card_of(library: &Nvml, address: &str) -> Option<(String, u64)> {
    let memory = library.device_by_pci_bus_id(address).ok()?.memory_info();
    let driver = library.sys_driver_version().ok()?;
    Some((format!("NVIDIA {driver}"), memory.ok()?.total))
}

fn used_bytes_of(library: &Nvml, address: &str) -> Option<u64> {
    let card = library.device_by_pci_bus_id(address).ok()?;
    card.memory_info().ok().map(|memory| memory.used)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    /// A library with one GPU, as NVIDIA's headers describe it.
    const STAND_IN: &str = r#"
#include <string.h>
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "a stand-in's error"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { strncpy(text, "999.1", size); return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **card) {
    *card = (void *)1;
    return strcmp(address, "0000:01:00.0") ? 6 : 0;
}
int nvmlDeviceGetMemoryInfo_v2(void *card, Memory *memory) {
    memory->total = 8ull << 30; memory->reserved = 1 << 20; memory->used = 3 << 20; memory->free = 1 << 20;
    return 0;
}
"#;

    #[test]
    fn a_card_is_asked_for_by_its_address() {
        let folder = tempfile::tempdir().unwrap();
        let (source, path) = (folder.path().join("nvml.c"), folder.path().join("nvml.so"));
        std::fs::write(&source, STAND_IN).unwrap();
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-o"])
            .args([&path, &source]);
        assert!(compiler.status().unwrap().success());
        let library = Nvml::builder().lib_path(path.as_os_str()).init().unwrap();
        let there = "0000:01:00.0";
        let card = card_of(&library, there);
        assert_eq!(card, Some(("NVIDIA 999.1".to_owned(), 8 << 30)));
        assert_eq!(used_bytes_of(&library, there), Some(3 << 20));
        assert_eq!(card_of(&library, "0000:02:00.0"), None);
        assert_eq!(used_bytes_of(&library, "0000:02:00.0"), None);
    }
}
