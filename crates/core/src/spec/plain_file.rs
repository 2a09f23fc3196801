//! Files named by an experiment, opened so that no name can block or exhaust the memory.

use std::io::{self, Read};
use std::path::Path;

use crate::disk::{self, File, FileType, Metadata};

/// Opens a regular file. A folder, a device, a pipe or a socket is refused without being read: reading one may block
/// forever, never end, or have side effects.
pub fn open(path: &Path) -> io::Result<File> {
    // Before it is opened, since even opening a device can have effects.
    check(&disk::metadata(path)?)?;
    // It may have become a pipe in between, and some files of /proc block on reading.
    let file = disk::open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// The content of a regular file of any size: for files that runner wrote, or that are copied as they are.
pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// As [`read_whole`], of UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Refuses a pipe, a device or a socket before it is written to: opening a pipe without a reader would block.
pub fn refuse_special(path: &Path) -> io::Result<()> {
    match disk::metadata(path) {
        Ok(there) if !there.is_dir() => check(&there),
        _ => Ok(()),
    }
}

/// The content of a regular file; `None` if it has more than `most` bytes, whatever size it claims to have.
pub fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Whether something is a regular file; the error says what it is instead.
pub fn check(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let what = special(&kind);
    let reason = format!("it is {what}; only regular files are read");
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

#[cfg(unix)]
fn special(kind: &FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "a special file"
    }
}

#[cfg(not(unix))]
fn special(_: &FileType) -> &'static str {
    "a special file"
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_counts_by_the_bytes_that_it_gives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, [0; 100]).unwrap();
        assert_eq!(read(&path, 100).unwrap().unwrap().len(), 100);
        assert_eq!(read(&path, 99).unwrap(), None);
        assert!(open(folder.path()).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_no_regular_file_is_neither_read_nor_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
        // SAFETY: the name is a string that ends in a zero byte.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [
            &fifo,
            &socket,
            Path::new("/dev/zero"),
            Path::new("/dev/stdin"),
        ] {
            let reason = open(path).unwrap_err().to_string();
            assert!(reason.contains("only regular files are read"), "{reason}");
        }
        // A file that claims to be empty but is not.
        assert_eq!(read(Path::new("/proc/self/status"), 10).unwrap(), None);
    }
}
