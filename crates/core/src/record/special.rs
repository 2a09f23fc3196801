//! Pipes and devices in the place of a record's files: a results tree may come from anyone, and reading one of these
//! never ends.

use std::fs;
use std::io;
use std::path::Path;

/// Refuses what is there and is neither a file nor a folder; folders are refused where they are read.
pub fn refuse(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if !there.is_file() && !there.is_dir() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a pipe or a device, not a file",
        )),
        _ => Ok(()),
    }
}
