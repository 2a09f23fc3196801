//! Writing files at once, and errors with the name of the file.

use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

use super::seal;
use super::unfinished::temporary_prefix;
use crate::show::plain_io_error;

/// A file that cannot be written.
#[derive(Debug)]
pub struct Unwritable {
    path: PathBuf,
    reason: String,
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write `{}`: {}", self.path.display(), self.reason)
    }
}

impl Error for Unwritable {}

/// An error about writing a file, with its name; unchanged if it already has one.
pub fn unwritable(path: &Path, error: io::Error) -> io::Error {
    if is_unwritable(&error) {
        return error;
    }
    let path = path.to_owned();
    let reason = plain_io_error(&error);
    io::Error::new(error.kind(), Unwritable { path, reason })
}

/// Whether an error is about writing a file, with its name.
pub fn is_unwritable(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(|inner| inner.is::<Unwritable>())
}

/// Writes a file atomically: under a temporary name first, then renamed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole_by(path, |file| file.write_all(bytes))
}

/// Like [`write_whole`], but returns when the file and its folder entry are on disk, so that a power failure also
/// leaves the old or the new one.
pub fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole_by(path, |file| {
        file.write_all(bytes)?;
        file.flush()?;
        file.get_ref().sync_all()
    })?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// Returns when the entries of a folder are on disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file; renames are journaled by the file system.
    #[cfg(unix)]
    {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        #[expect(clippy::disallowed_methods, reason = "a folder")]
        let folder = File::open(folder)?;
        accept_no_sync(folder.sync_all())
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(())
    }
}

/// Returns when a file that another program or library wrote is on disk.
pub fn sync_file(path: &Path) -> io::Result<()> {
    // A file that is open for reading only cannot be synced on Windows.
    let file = File::options().read(true).append(true).open(path)?;
    file.sync_all()
}

/// Like [`sync_file`], for several files at once: a file system writes concurrent requests together.
pub fn sync_files(paths: &[PathBuf]) -> io::Result<()> {
    std::thread::scope(|scope| {
        let syncs: Vec<_> = paths
            .iter()
            .map(|path| scope.spawn(move || sync_file(path)))
            .collect();
        syncs.into_iter().try_for_each(|sync| {
            let panicked = |_| io::Error::other("the thread that syncs a file panicked");
            sync.join().map_err(panicked)?
        })
    })
}

/// Some network file systems cannot sync folders; that is not a failure of the run.
#[cfg(unix)]
fn accept_no_sync(synced: io::Result<()>) -> io::Result<()> {
    match synced {
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

/// Like [`write_whole`], piece by piece.
pub fn write_whole_by(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let file = readable_file(&temporary_prefix(), folder)?;
    let mut buffered = BufWriter::new(file.as_file());
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// A temporary file to be renamed. Temporary files are private by default; results have the permissions of the user's
/// other files, according to the `umask`.
pub fn readable_file(prefix: &str, folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Writes a value as sealed JSON, atomically.
pub fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_whole(path, json_text(value)?.as_bytes())
}

/// Like [`write_json`], but returns when it is on disk.
pub fn write_json_synced(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_synced(path, json_text(value)?.as_bytes())
}

/// The content of a JSON file for a value, with its seal.
pub(super) fn json_text(value: &impl Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    text.push('\n');
    Ok(seal::json(text))
}
