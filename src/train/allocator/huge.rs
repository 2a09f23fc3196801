//! Huge pages for large blocks, on Linux.
//!
//! Gathering rows of kept items, and reading weights, misses the table of pages at nearly each row of 4 KiB: with pages
//! of 2 MiB, an epoch of a small MLP takes an eighth less. The system's own choice would also give them to memory that is
//! used in small parts, which multiplies the memory of a small run; so `mimalloc` turns it off for workers
//! (`MIMALLOC_ALLOW_THP`), and large blocks alone ask for it.

use std::sync::atomic::{AtomicBool, Ordering};

/// The size of a huge page.
const PAGE: usize = 2 << 20;

/// The smallest block: wherever it begins, there is a whole page in it.
const SMALLEST: usize = 2 * PAGE;

static ARE_ALLOWED: AtomicBool = AtomicBool::new(false);

/// Lets large blocks of this process have huge pages, if the system gives them only where they are asked for.
#[cfg(target_os = "linux")]
pub fn allow() {
    use runner_core::spec::plain_file;
    use std::path::Path;

    /// `PR_THP_DISABLE_EXCEPT_ADVISED`, since Linux 6.18.
    const EXCEPT_ADVISED: libc::c_ulong = 2;
    const OFF: libc::c_ulong = 0;
    const ON: libc::c_ulong = 1;
    // SAFETY: the call takes numbers. An older system refuses the flag.
    let disable = |is_off: libc::c_ulong, flags: libc::c_ulong| unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, is_off, flags, OFF, OFF) == 0
    };
    let on_request = || {
        let mode = Path::new("/sys/kernel/mm/transparent_hugepage/enabled");
        plain_file::read_text(mode).is_ok_and(|modes| modes.contains("[madvise]"))
    };
    let are_allowed = disable(ON, EXCEPT_ADVISED) || on_request() && disable(OFF, OFF);
    ARE_ALLOWED.store(are_allowed, Ordering::Relaxed);
}

/// No other system is asked.
#[cfg(not(target_os = "linux"))]
pub fn allow() {}

/// Asks for huge pages for the whole ones in a new block.
pub fn ask(block: *mut u8, size: usize) {
    advise(block.expose_provenance(), size, true);
}

/// Whoever gets the pages of a freed block next uses small ones.
pub fn forget(address: usize, size: usize) {
    advise(address, size, false);
}

#[cfg(target_os = "linux")]
fn advise(address: usize, size: usize, is_huge: bool) {
    if size < SMALLEST || address == 0 || !ARE_ALLOWED.load(Ordering::Relaxed) {
        return;
    }
    let (start, end) = (
        address.next_multiple_of(PAGE),
        (address + size) / PAGE * PAGE,
    );
    let advice = if is_huge {
        libc::MADV_HUGEPAGE
    } else {
        libc::MADV_NOHUGEPAGE
    };
    if start < end {
        // SAFETY: the pages are in a block that is not used by anyone else, and keep their content. Advice that is not
        // taken changes nothing.
        unsafe {
            libc::madvise(
                std::ptr::with_exposed_provenance_mut(start),
                end - start,
                advice,
            );
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: usize, size: usize, _: bool) {
    let _ = size < SMALLEST && ARE_ALLOWED.load(Ordering::Relaxed);
}
