//! The memory that this process holds, as the operating system counts it.

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// Bytes of memory that this process holds and that no file could give back; 0 where the system does
/// not say. Pages of mapped files, such as the data's, are left out where the system tells them apart:
/// it drops them when it needs room.
pub fn held_bytes() -> u64 {
    if let Some(bytes) = private_bytes() {
        return bytes;
    }
    let pid = Pid::from_u32(std::process::id());
    let Ok(mut system) = System::new() else {
        return 0;
    };
    let kind = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
    system.process(pid).map_or(0, |process| process.memory())
}

/// What Linux counts as memory of the process alone.
fn private_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = |key: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some((kib("RssAnon:")? + kib("RssShmem:")?) << 10)
}
