//! The folder of a run through an open directory, so that it stays the same folder when it is renamed.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use runner_core::record::RunFolder;

/// An open folder, inherited by the processes that this one starts.
pub(super) struct Anchor {
    /// Keeps the number valid.
    _opened: File,
    /// The folder, by the number of the open directory.
    pub(super) folder: RunFolder,
}

impl Anchor {
    #[cfg(target_os = "linux")]
    pub(super) fn open(folder: &RunFolder) -> io::Result<Self> {
        use std::os::fd::AsRawFd;

        #[expect(clippy::disallowed_methods, reason = "a folder")]
        let opened = File::open(&folder.0)?;
        let number = opened.as_raw_fd();
        // SAFETY: changes only a flag of a descriptor that is open during the call.
        if unsafe { libc::fcntl(number, libc::F_SETFD, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let path = PathBuf::from(format!("/proc/self/fd/{number}"));
        Ok(Self {
            _opened: opened,
            folder: RunFolder(path),
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn open(folder: &RunFolder) -> io::Result<Self> {
        let _ = (folder, PathBuf::new(), File::options());
        let reason = "jobs of a cluster can only train on Linux";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }
}
