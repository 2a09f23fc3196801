//! Writing whole files, and errors that name the file.

use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

use super::seal;
use crate::spec::document::plain_io_error;

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

/// An error about writing a file that names the file; one that does already stays as it is.
pub fn unwritable(path: &Path, error: io::Error) -> io::Error {
    if is_unwritable(&error) {
        return error;
    }
    let path = path.to_owned();
    let reason = plain_io_error(&error);
    io::Error::new(error.kind(), Unwritable { path, reason })
}

/// Whether an error is about writing a file, and names it.
pub fn is_unwritable(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(|inner| inner.is::<Unwritable>())
}

/// Writes a file whole: under another name first, then renamed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole_by(path, |file| file.write_all(bytes))
}

/// As [`write_whole`], and returns when the file and its entry in the folder are on the disk, so that a loss of power
/// leaves the old or the new one, too.
pub fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole_by(path, |file| {
        file.write_all(bytes)?;
        file.flush()?;
        file.get_ref().sync_all()
    })?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// Returns when the entries of a folder are on the disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file; renames are in the file system's journal.
    #[cfg(unix)]
    {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        accept_no_sync(File::open(folder)?.sync_all())
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(())
    }
}

/// Returns when a file that another program or library wrote is on the disk.
pub fn sync_file(path: &Path) -> io::Result<()> {
    // A file that is only read cannot be synced on Windows.
    let file = File::options().read(true).append(true).open(path)?;
    file.sync_all()
}

/// As [`sync_file`], of several files at once: a file system writes what is asked for together in one go.
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

/// Some network file systems have no syncing of folders; that is no failure of the run.
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

/// As [`write_whole`], piece by piece.
pub fn write_whole_by(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let file = readable_file(".new-", folder)?;
    let mut buffered = BufWriter::new(file.as_file());
    write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// A file under a name of its own that is to be renamed. Temporary files are private by default; results are as readable
/// as the user's other files, as the `umask` says.
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

/// Writes a value as sealed JSON, whole.
pub fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_whole(path, json_text(value)?.as_bytes())
}

/// As [`write_json`], and returns when it is on the disk.
pub fn write_json_synced(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_synced(path, json_text(value)?.as_bytes())
}

/// A value as it stands in a file of JSON, with its seal.
pub(super) fn json_text(value: &impl Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    text.push('\n');
    Ok(seal::json(text))
}
