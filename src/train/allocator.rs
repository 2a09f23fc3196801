//! The program's allocator, which counts live large blocks and keeps some freed ones.
//!
//! The system's memory count of a process includes what an allocator keeps for reuse, which rises for many epochs
//! before it levels out. Live blocks show at once whether memory grows. Blocks below 4 KiB are not counted: they are
//! many, and none of them are tensors.

mod huge;
mod kept;

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mimalloc::MiMalloc;

pub use huge::allow as allow_huge_pages;
use kept::{Kept, LARGE, rounded};

/// The smallest block that is counted.
const COUNTED: usize = 4096;

/// The alignment of large blocks: what `gemm` requests, which is at least that of cache lines.
const ALIGNMENT: usize = 128;

/// The size from which `mimalloc` gives a block separate pages, which are returned to the system with it: smaller ones
/// share pages, which are returned when all of them are free. Untouched pages of a block use no memory, only addresses
/// (and on Windows, which commits memory for all, some of its commit limit).
const ALONE: usize = (512 << 10) + 4096;

/// The fraction of the peak of live memory that may be kept in addition. With a quarter, a training step of a DenseNet
/// requests a third of its blocks from the system; with the whole, its peak is a fifth higher.
const SLACK: u64 = 2;

static BYTES: AtomicU64 = AtomicU64::new(0);
static PEAK_BYTES: AtomicU64 = AtomicU64::new(0);
static BLOCKS: AtomicU64 = AtomicU64::new(0);
/// The peak of live bytes since blocks are kept.
static PEAK_KEEPING: AtomicU64 = AtomicU64::new(0);
static KEPT: Mutex<Kept> = Mutex::new(Kept::new());
static IS_KEEPING: AtomicBool = AtomicBool::new(false);

/// `mimalloc`, which workers configure to return pages at once (`MIMALLOC_PURGE_DELAY`), with kept large blocks in
/// front of it: Burn's CPU backend requests the same ones at every step.
pub struct Allocator;

/// Live blocks of 4 KiB and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Living {
    /// Their bytes.
    pub bytes: u64,
    /// Peak bytes.
    pub peak_bytes: u64,
    /// Their number.
    pub blocks: u64,
}

/// The live memory; none if the program has another allocator.
pub fn living() -> Option<Living> {
    let living = Living {
        bytes: BYTES.load(Ordering::Relaxed),
        peak_bytes: PEAK_BYTES.load(Ordering::Relaxed),
        blocks: BLOCKS.load(Ordering::Relaxed),
    };
    (living.peak_bytes > 0).then_some(living)
}

/// Keeps large blocks from now on: for a training, which requests the same ones repeatedly. Blocks for loading data are
/// not needed again, and a waiting process should keep nothing.
pub fn keep_large_blocks() {
    if !IS_KEEPING.swap(true, Ordering::Relaxed) {
        PEAK_KEEPING.store(BYTES.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Returns kept blocks to the system.
pub fn give_back() {
    kept().shrink_to(0, free);
}

fn is_keeping() -> bool {
    IS_KEEPING.load(Ordering::Relaxed)
}

fn add(size: usize) {
    if size >= COUNTED {
        let size = size as u64;
        let bytes = BYTES.fetch_add(size, Ordering::Relaxed) + size;
        PEAK_BYTES.fetch_max(bytes, Ordering::Relaxed);
        PEAK_KEEPING.fetch_max(bytes, Ordering::Relaxed);
        BLOCKS.fetch_add(1, Ordering::Relaxed);
    }
}

fn remove(size: usize) {
    if size >= COUNTED {
        BYTES.fetch_sub(size as u64, Ordering::Relaxed);
        BLOCKS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The layout under which a block is kept; none if a general allocator works as well.
fn kept_layout(layout: Layout) -> Option<Layout> {
    let is_kept = layout.size() >= LARGE && layout.align() <= ALIGNMENT;
    let size = is_kept.then(|| rounded(layout.size()))?;
    Layout::from_size_align(size, ALIGNMENT).ok()
}

/// The layout of a block that is kept as `large`.
fn made(large: Layout) -> Layout {
    Layout::from_size_align(large.size().max(ALONE), ALIGNMENT).unwrap_or(large)
}

fn kept() -> MutexGuard<'static, Kept> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frees kept blocks beyond the allowed amount for the live memory plus `more` bytes.
fn shrink(kept: &mut Kept, more: usize) {
    let living = BYTES.load(Ordering::Relaxed) + more as u64;
    let peak = PEAK_KEEPING.load(Ordering::Relaxed).max(living);
    kept.shrink_to(peak + peak / SLACK - living, free);
}

fn free(address: usize, size: usize) {
    huge::forget(address, size);
    // SAFETY: kept blocks were allocated by `MiMalloc` with this layout, and nothing else uses them.
    unsafe {
        let layout = Layout::from_size_align_unchecked(size, ALIGNMENT);
        MiMalloc.dealloc(std::ptr::with_exposed_provenance_mut(address), made(layout));
    }
}

/// A kept block, if there is one, otherwise makes room for a new one.
fn take(layout: Layout) -> Option<*mut u8> {
    if !is_keeping() {
        return None;
    }
    let mut kept = kept();
    let address = kept.take(layout.size());
    if address.is_none() {
        shrink(&mut kept, layout.size());
    }
    address.map(std::ptr::with_exposed_provenance_mut)
}

// SAFETY: every block comes from `MiMalloc`, allocated for the requested layout or a larger one with the same rounding,
// which upholds the contract. A kept block has no owner until it is taken, once. Counting touches no block.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let large = kept_layout(layout);
        let new = || {
            // SAFETY: the caller guarantees what is required here.
            let block = unsafe { MiMalloc.alloc(large.map_or(layout, made)) };
            if large.is_some() {
                huge::ask(block, layout.size());
            }
            block
        };
        let mut block = large.and_then(take).unwrap_or_else(new);
        if block.is_null() && is_keeping() {
            give_back();
            block = new();
        }
        if !block.is_null() {
            add(layout.size());
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // `mimalloc` would fill the added bytes too.
        if kept_layout(layout).is_some_and(|large| is_keeping() || large != made(large)) {
            // SAFETY: as above; the block has these bytes.
            unsafe {
                let block = self.alloc(layout);
                if !block.is_null() {
                    block.write_bytes(0, layout.size());
                }
                return block;
            }
        }
        // SAFETY: as above; large blocks are allocated with their own layout.
        let block = unsafe { MiMalloc.alloc_zeroed(kept_layout(layout).unwrap_or(layout)) };
        if !block.is_null() {
            if kept_layout(layout).is_some() {
                huge::ask(block, layout.size());
            }
            add(layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        remove(layout.size());
        match kept_layout(layout) {
            Some(large) if is_keeping() => {
                let mut kept = kept();
                kept.put(block.expose_provenance(), large.size(), free);
                shrink(&mut kept, 0);
            }
            Some(large) => free(block.expose_provenance(), large.size()),
            // SAFETY: as above; the block comes from `MiMalloc`.
            None => unsafe { MiMalloc.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the new size is valid.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let made = (kept_layout(layout), kept_layout(new_layout));
        let moved = match made {
            // SAFETY: as above.
            (None, None) => unsafe { MiMalloc.realloc(block, layout, new_size) },
            (Some(old), Some(new)) if old == new => block,
            _ => {
                // SAFETY: as `realloc` does by default; both blocks have at least the bytes that are copied.
                unsafe {
                    let moved = self.alloc(new_layout);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(new_size));
                        self.dealloc(block, layout);
                    }
                    return moved;
                }
            }
        };
        if !moved.is_null() {
            remove(layout.size());
            add(new_size);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn blocks_hold_what_was_written_while_they_grow_and_shrink() {
        let sizes = [
            100,
            LARGE - 1,
            LARGE,
            LARGE + 1,
            3 * LARGE,
            1 << 20,
            70_000,
            50,
        ];
        for align in [1, ALIGNMENT, 4096] {
            let mut size = 64;
            // SAFETY: each block is used within its size, and freed once with its own layout.
            unsafe {
                let mut block = Allocator.alloc(layout(size, align));
                let written: Vec<u8> = (0..50).collect();
                block.copy_from_nonoverlapping(written.as_ptr(), written.len());
                for new in sizes {
                    block = Allocator.realloc(block, layout(size, align), new);
                    size = new;
                    block.add(size - 1).write(7);
                    assert!(block.addr().is_multiple_of(align));
                    assert_eq!(std::slice::from_raw_parts(block, 49), &written[..49]);
                }
                Allocator.dealloc(block, layout(size, align));
            }
        }
    }

    #[test]
    fn a_block_that_was_kept_is_zeroed_where_zeros_are_asked_for() {
        keep_large_blocks();
        let large = layout(5 * LARGE + 3, 8);
        // SAFETY: as above.
        unsafe {
            let block = Allocator.alloc(large);
            block.write_bytes(1, large.size());
            Allocator.dealloc(block, large);
            let again = Allocator.alloc_zeroed(large);
            assert_eq!(block, again);
            let bytes = std::slice::from_raw_parts(again, large.size());
            assert!(bytes.iter().all(|byte| *byte == 0));
            Allocator.dealloc(again, large);
        }
    }
}
