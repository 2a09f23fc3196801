//! Pipes and devices in the place of a record's files: a results tree may come from anyone, and reading one of these
//! never ends.

use std::fs;
use std::io;
use std::path::Path;

/// Refuses anything but a file or a folder; folders are refused by the reader.
pub fn refuse(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if !there.is_file() && !there.is_dir() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a pipe or a device instead of a regular file",
        )),
        _ => Ok(()),
    }
}
