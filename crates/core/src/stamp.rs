//! Detects, without reading it, whether a file is still the one that was read.

use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::disk;

/// A file's size in bytes, modification time and change time in nanoseconds since 1970, device and inode. A program can
/// reset the modification time (`cp -p`, `touch -d`), but not the change time, and a file that is renamed over another
/// has another inode. Values that the system does not provide are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp(u64, i64, i64, u64, u64);

/// Nanoseconds within which two changes of a file may have the same time stamp: a file changed so shortly before it was
/// read may have changed again unnoticed. Some file systems have a resolution of 2 s. Git calls this racy.
const RACY_NS: i64 = 2_000_000_000;

/// Nanoseconds after which a page that was written through a memory map is clean again, with a margin.
const MAPPED_NS: i64 = 60_000_000_000;

/// Whether the file system of a path is known to update an entry's time at each change. On tmpfs a mapped page is never
/// clean, and images, networks and FAT have times that repeat.
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
    // SAFETY: the path ends with a zero, and the buffer has the type of the call; it is only read after it was filled.
    let kind = unsafe {
        if libc::statfs(path.as_ptr(), there.as_mut_ptr()) != 0 {
            return false;
        }
        i128::from(there.assume_init().f_type)
    };
    KNOWN.contains(&(kind & 0xffff_ffff))
}

/// Whether the file system of a path is known to update an entry's time at each change.
#[cfg(not(target_os = "linux"))]
pub fn keeps_times(_: &Path) -> bool {
    true
}

impl Stamp {
    /// The stamp of a file; `None` if it does not exist.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let metadata = match disk::metadata(path) {
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

    /// Whether the file was last changed long enough before this time that a later change would be visible.
    pub fn is_settled_at(&self, time_ns: i64) -> bool {
        self.1.max(self.2) < time_ns - RACY_NS
    }

    /// The same for a file that others may have mapped into memory: Linux updates its times only at the first write to
    /// a clean page, and cleans pages after 30 s.
    pub fn is_settled_for_maps_at(&self, time_ns: i64) -> bool {
        self.1.max(self.2) < time_ns - MAPPED_NS
    }

    /// Whether an unchanged, settled stamp proves that the content is unchanged: it then contains a time that no
    /// program can reset.
    pub fn is_proof(&self) -> bool {
        self.2 != 0
    }
}

/// The time of the clock in nanoseconds since 1970; 0 where files are in memory, without times.
pub fn now() -> i64 {
    if disk::IS_MEMORY {
        return 0;
    }
    nanos(SystemTime::now())
}

/// Nanoseconds since 1970; negative before.
pub fn nanos(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos() as i64,
        Err(before) => -(before.duration().as_nanos() as i64),
    }
}
