//! The program's allocator, which counts what is alive of large blocks.
//!
//! What the system counts as a process's memory contains what an allocator keeps for reuse, and that
//! rises for many epochs before it levels out. Living blocks tell at once whether memory grows. Blocks
//! below 4 KiB are not counted: they are many, and tensors are none of them.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, Ordering};

use mimalloc::MiMalloc;

/// The smallest block that is counted.
const COUNTED: usize = 4096;

static BYTES: AtomicU64 = AtomicU64::new(0);
static PEAK_BYTES: AtomicU64 = AtomicU64::new(0);
static BLOCKS: AtomicU64 = AtomicU64::new(0);

/// `mimalloc`, since Burn's CPU backend allocates large buffers at every step: it keeps them at hand, which
/// makes an epoch of a small network more than twice as fast.
pub struct Allocator;

/// Living blocks of 4 KiB and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Living {
    /// Their bytes.
    pub bytes: u64,
    /// The most bytes that there were at a time.
    pub peak_bytes: u64,
    /// Their number.
    pub blocks: u64,
}

/// What is alive; none where the program has another allocator, as tests have.
pub fn living() -> Option<Living> {
    let living = Living {
        bytes: BYTES.load(Ordering::Relaxed),
        peak_bytes: PEAK_BYTES.load(Ordering::Relaxed),
        blocks: BLOCKS.load(Ordering::Relaxed),
    };
    (living.peak_bytes > 0).then_some(living)
}

fn add(size: usize) {
    if size >= COUNTED {
        let size = size as u64;
        let bytes = BYTES.fetch_add(size, Ordering::Relaxed) + size;
        PEAK_BYTES.fetch_max(bytes, Ordering::Relaxed);
        BLOCKS.fetch_add(1, Ordering::Relaxed);
    }
}

fn remove(size: usize) {
    if size >= COUNTED {
        BYTES.fetch_sub(size as u64, Ordering::Relaxed);
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to `MiMalloc` as it is, which upholds the contract; counting touches no block.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that are asked for here.
        let block = unsafe { MiMalloc.alloc(layout) };
        if !block.is_null() {
            add(layout.size());
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let block = unsafe { MiMalloc.alloc_zeroed(layout) };
        if !block.is_null() {
            add(layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        remove(layout.size());
        // SAFETY: as above; the block is one of `MiMalloc`'s.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        let moved = unsafe { MiMalloc.realloc(block, layout, new_size) };
        if !moved.is_null() {
            remove(layout.size());
            add(new_size);
        }
        moved
    }
}
