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
