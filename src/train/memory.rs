//! The memory that this process holds, as the operating system counts it.

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// Resident bytes of this process; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    let pid = Pid::from_u32(std::process::id());
    let Ok(mut system) = System::new() else {
        return 0;
    };
    let kind = ProcessRefreshKind::nothing().with_memory();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
    system.process(pid).map_or(0, |process| process.memory())
}
