//! Writing whole files, and errors that name the file.

use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

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

/// Writes a value as JSON, whole.
pub fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write_whole(path, json_text(value)?.as_bytes())
}

/// A value as it stands in a file of JSON.
pub(super) fn json_text(value: &impl Serialize) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    text.push('\n');
    Ok(text)
}
