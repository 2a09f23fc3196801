//! The file system, as far as data is read from it: that of the system, or in a browser, which has none, files in memory.

pub mod memory;

use std::path::Path;

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub use memory::{File, FileType, Map, Metadata, canonicalize, map, metadata, open, read_dir};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use {
    memmap2::Mmap as Map,
    std::fs::{File, FileType, Metadata, canonicalize, metadata, read_dir},
    system::{map, open},
};

/// Whether the files are in memory: nothing can be written, and there are no times.
pub const IS_MEMORY: bool = cfg!(all(target_family = "wasm", target_os = "unknown"));

/// Whether there is a file, or a link to one.
pub fn is_file(path: &Path) -> bool {
    metadata(path).is_ok_and(|there| there.is_file())
}

/// Whether there is a folder, or a link to one.
pub fn is_dir(path: &Path) -> bool {
    metadata(path).is_ok_and(|there| there.is_dir())
}

/// The folder of a path; that of a bare name is the working directory.
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Whether there is anything.
pub fn exists(path: &Path) -> bool {
    metadata(path).is_ok()
}

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod system {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::path::Path;

    use memmap2::Mmap;

    /// Opens for reading, without waiting for a pipe.
    pub fn open(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        }
        options.open(path)
    }

    /// Maps a file into memory.
    ///
    /// # Safety
    /// A file that is truncated while it is mapped ends the process.
    pub unsafe fn map(file: &File) -> io::Result<Mmap> {
        // SAFETY: the caller guarantees it.
        unsafe { Mmap::map(file) }
    }
}
