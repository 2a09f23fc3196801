//! What tells, without reading it, that a file is still the one that was read.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A file's size in bytes, when it was modified and when its entry was changed, in nanoseconds since 1970, and its
/// device and inode. A program can set the first time back (`cp -p`, `touch -d`), but not the second one, and a file
/// that is renamed over another one is another inode. What the system does not have is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp(u64, i64, i64, u64, u64);

/// Nanoseconds within which two changes of a file may carry one time: a file that was changed so shortly before it was
/// read may have been changed again without a trace. Some file systems count in steps of 2 s. Git calls this racy.
const RACY_NS: i64 = 2_000_000_000;

/// Nanoseconds after which a page that was written through a memory map is clean again, with a margin.
const MAPPED_NS: i64 = 60_000_000_000;

/// Whether the file system of a path is known to set the time of an entry at each change. In memory (tmpfs) a mapped
/// page is never clean, and images, networks and FAT have times that repeat.
#[cfg(target_os = "linux")]
pub fn keeps_times(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;

    // bcachefs, btrfs, ext2 to ext4, f2fs, overlayfs, XFS, ZFS: `statfs(2)`.
    const KNOWN: [i128; 7] = [
        0xca45_1a4e,
        0x9123_683e,
        0xef53,
        0xf2f5_2010,
        0x794c_7630,
        0x5846_5342,
        0x2fc1_2fc1,
    ];
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    let mut there = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends with a zero, and the buffer is of the call's type; it is read only when it was filled.
    let kind = unsafe {
        if libc::statfs(path.as_ptr(), there.as_mut_ptr()) != 0 {
            return false;
        }
        i128::from(there.assume_init().f_type)
    };
    KNOWN.contains(&(kind & 0xffff_ffff))
}

/// Whether the file system of a path is known to set the time of an entry at each change.
#[cfg(not(target_os = "linux"))]
pub fn keeps_times(_: &Path) -> bool {
    true
}

impl Stamp {
    /// The stamp of a file; `None` when it is not there.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let metadata = match fs::metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        #[cfg(unix)]
        let (changed, device, inode) = {
            use std::os::unix::fs::MetadataExt;
            let changed = metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec();
            (changed, metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let (changed, device, inode) = (0, 0, 0);
        let modified = metadata.modified().map_or(0, nanos);
        Ok(Some(Self(metadata.len(), modified, changed, device, inode)))
    }

    /// Whether the file was last changed so long before this time that a later change would show.
    pub fn is_settled_at(&self, time_ns: i64) -> bool {
        self.1.max(self.2) < time_ns - RACY_NS
    }

    /// The same for a file that others may have mapped into memory: Linux sets its times at the first write to a clean
    /// page only, and cleans pages after 30 s.
    pub fn is_settled_for_maps_at(&self, time_ns: i64) -> bool {
        self.1.max(self.2) < time_ns - MAPPED_NS
    }

    /// Whether a settled stamp that stays the same proves that the content does: a time that no program can set back
    /// is part of it.
    pub fn is_proof(&self) -> bool {
        self.2 != 0
    }
}

/// Nanoseconds since 1970; negative before.
pub fn nanos(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos() as i64,
        Err(before) => -(before.duration().as_nanos() as i64),
    }
}
