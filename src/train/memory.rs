//! Memory of a run: sampled while it trains, and compared with its limit.
//!
//! The relevant number is that of the place where the run computes: of the process on the host, whose allocator
//! replaces the pool, otherwise the bytes reserved in the device's pool. GPU memory in use by all processes is recorded
//! in addition. A thread samples the pool every 100 ms, which waits for earlier work without affecting it, and the
//! process every 10 ms. On the host it leaves that out while the allocator's peak stays where it is: reading
//! `/proc/self/status` takes a hundredth of such an interval, from a training that uses all processors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use burn::tensor::Device;
use burn::train::Interrupter;
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

use super::allocator::{give_back, living};
use super::device;
use runner_core::event::{FailureClass, MemoryPeak, Outcome, PoolUsage};
use runner_core::plan::{Room, RunPlan};
use runner_core::show::show_bytes;
use runner_core::spec::plain_file;

/// Sampling interval of the process.
const TICK: Duration = Duration::from_millis(10);

/// Intervals per sample of the pool, and from a new peak of the allocator until its pages were used.
const TICKS_PER_POOL: u32 = 10;

/// How long a run may take to notice that it exceeded its limit: a longer step may use all the memory there is.
const REACTION: Duration = Duration::from_secs(2);

/// Measures the memory of one run.
pub struct Meter {
    room: Option<Room>,
    /// The remedy if it exceeds its limit; empty if its plan has further remedies.
    help: String,
    on_host: bool,
    seen: Mutex<Seen>,
    /// Whether the training knows that the limit was exceeded.
    has_reacted: AtomicBool,
    /// Whether a thread has claimed to report the outcome.
    has_ended: AtomicBool,
}

#[derive(Default)]
struct Seen {
    peak: MemoryPeak,
    /// The memory when the limit was exceeded.
    over_limit: Option<u64>,
    /// The device with the pool.
    device: Option<Device>,
    /// The address of its GPU, if any.
    card: Option<String>,
}

impl Meter {
    /// Measures a run, with a limit if there is one.
    pub fn new(plan: &RunPlan, room: Option<Room>) -> Self {
        let help = match (room, plan.relief()) {
            (Some(room), None) => format!(
                "; {}: `runner memory` shows what fits",
                plan.without_relief(room.remedy())
            ),
            _ => String::new(),
        };
        Self {
            room,
            help,
            on_host: plan.device.backend.is_host(),
            seen: Mutex::default(),
            has_reacted: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Samples from a thread until [`Meter::end`]. If the limit is exceeded, the training is stopped; if it has not
    /// noticed 2 s later, `end` receives the outcome and must end the process.
    pub fn start(
        self: &Arc<Self>,
        interrupter: Interrupter,
        end: impl FnOnce(Outcome) + Send + 'static,
    ) {
        let meter = self.clone();
        thread::spawn(move || {
            let mut passed: Option<Instant> = None;
            let (mut peak, mut rises_until) = (None, 0);
            for tick in 0u32.. {
                if meter.has_ended.load(Ordering::Acquire) {
                    return;
                }
                let at_pool = tick.is_multiple_of(TICKS_PER_POOL);
                let before = std::mem::replace(&mut peak, meter.peak_of_blocks());
                if before != peak {
                    rises_until = tick.saturating_add(TICKS_PER_POOL);
                }
                if at_pool || peak.is_none() || tick < rises_until {
                    meter.look(at_pool);
                }
                if meter.over_limit().is_some() {
                    let passed = *passed.get_or_insert_with(|| {
                        interrupter.stop(Some("the memory limit was exceeded"));
                        Instant::now()
                    });
                    let has_reacted = meter.has_reacted.load(Ordering::Acquire);
                    if !has_reacted && passed.elapsed() > REACTION && meter.end() {
                        return end(meter.outcome().unwrap_or(Outcome::Interrupted));
                    }
                }
                thread::sleep(TICK);
            }
        });
    }

    /// The peak that the allocator counts, if that is what the run uses.
    fn peak_of_blocks(&self) -> Option<u64> {
        let living = living().filter(|_| self.on_host);
        living.map(|living| living.peak_bytes)
    }

    /// The device whose pool is measured, once it is open. For devices on the host, only the process is measured.
    pub fn watch(&self, device: &Device) {
        if !self.on_host {
            let mut seen = self.seen();
            seen.device = Some(device.clone());
            seen.card = device::address(device);
        }
    }

    /// The current memory: of the process, and of the pool if it is measured.
    pub fn look(&self, at_pool: bool) -> MemoryPeak {
        let (device, card) = if at_pool {
            // A single guard: a second one would deadlock.
            let seen = self.seen();
            (seen.device.clone(), seen.card.clone())
        } else {
            (None, None)
        };
        let usage = device.and_then(|device| device.memory_pool_usage());
        let mut process_bytes = held_bytes();
        if self.on_host && self.room.is_some_and(|room| process_bytes > room.bytes) {
            // Memory that is only kept for speed is not part of what a run needs.
            give_back();
            process_bytes = held_bytes();
        }
        let pool = if self.on_host {
            living().map(|living| PoolUsage {
                in_use_bytes: living.bytes,
                reserved_bytes: process_bytes,
                num_allocations: living.blocks,
            })
        } else {
            usage.map(|usage| PoolUsage {
                in_use_bytes: usage.bytes_in_use,
                reserved_bytes: usage.bytes_reserved,
                num_allocations: usage.number_allocs,
            })
        };
        let now = MemoryPeak {
            process_bytes,
            pool,
            card_bytes: card.and_then(|address| device::used_bytes(&address)),
        };
        let mut seen = self.seen();
        seen.peak = seen.peak.max(now);
        let counts = if self.on_host {
            Some(now.process_bytes)
        } else {
            now.pool.map(|pool| pool.reserved_bytes)
        };
        if let (Some(room), Some(held)) = (self.room, counts)
            && held > room.bytes
        {
            seen.over_limit = seen.over_limit.max(Some(held));
        }
        now
    }

    /// The peak so far.
    pub fn peak(&self) -> MemoryPeak {
        let mut peak = self.seen().peak;
        if let (true, Some(pool), Some(living)) = (self.on_host, &mut peak.pool, living()) {
            pool.in_use_bytes = living.peak_bytes;
        }
        peak
    }

    /// The peak above the limit, if it was exceeded.
    pub fn over_limit(&self) -> Option<u64> {
        self.seen().over_limit
    }

    /// The training has stopped, and knows why: saving may take its time.
    pub fn acknowledge(&self) {
        if self.over_limit().is_some() {
            self.has_reacted.store(true, Ordering::Release);
        }
    }

    /// The outcome of a run that exceeded its limit.
    pub fn outcome(&self) -> Option<Outcome> {
        let (held, room) = (self.over_limit()?, self.room?);
        let what = if self.on_host {
            "the process used"
        } else {
            "the device's pool reserved"
        };
        let message = format!(
            "{what} {}, but {}{}",
            show_bytes(held),
            room.in_words(),
            self.help
        );
        Some(Outcome::failed(FailureClass::OutOfMemory, message))
    }

    /// Ends the sampling; returns whether the caller is the first, who reports the outcome.
    pub fn end(&self) -> bool {
        !self.has_ended.swap(true, Ordering::AcqRel)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an error of a backend means that memory ran out. These are the words of CubeCL ("out of device memory", "an
/// out-of-memory error"), of wgpu ("not enough memory"), of drivers, of the system and of Rust, whose collections have
/// a capacity that overflows if a size is absurd.
pub fn is_out_of_memory(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = [
        "out of memory",
        "out-of-memory",
        "outofmemory",
        "out_of_memory",
        "out of device memory",
        "not enough memory",
        "cannot allocate memory",
        "can't allocate buffer",
        "memory allocation of",
        "memory allocation failed",
        "capacity overflow",
    ];
    words.iter().any(|word| text.contains(word))
}

/// Bytes of memory of this process that no file could restore; 0 if unknown. Pages of mapped files, such as the data's,
/// are excluded if the system distinguishes them: it drops them when it needs memory.
fn held_bytes() -> u64 {
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

/// What Linux counts as private memory of the process.
fn private_bytes() -> Option<u64> {
    let status = plain_file::read_text(std::path::Path::new("/proc/self/status")).ok()?;
    let kib = |key: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some((kib("RssAnon:")? + kib("RssShmem:")?) << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_out_of_memory_is_known_by_its_words() {
        for text in [
            "out of device memory allocating 1024 bytes",
            "An out-of-memory error happened during launch",
            "wgpu error: Out of Memory",
            "Not enough memory left.",
            "CUDA_ERROR_OUT_OF_MEMORY",
            "Cannot allocate memory (os error 12)",
            "capacity overflow (alloc/src/raw_vec/mod.rs:28)",
            "memory allocation failed because the memory allocator returned an error",
        ] {
            assert!(is_out_of_memory(text), "{text}");
        }
        for text in ["device lost", "index out of bounds", "memory mapped"] {
            assert!(!is_out_of_memory(text), "{text}");
        }
    }
}
