//! The destination of an export: written completely or not at all, and never over existing files without permission.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::write_whole_by;
use runner_core::show::plain_io_error;

use super::{ExportError, failed};

fn refused(message: String, help: &str) -> Error {
    Error::refused(Diagnostic::error("usage", message).help(help))
}

/// Refuses a destination that already exists, or whose folder does not exist.
fn check(path: &Path, force: bool) -> Result<(), Error> {
    let shown = path.display();
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if path.file_name().is_none() {
        return Err(refused(
            format!("`{shown}` is not the name of a file or folder to write"),
            "use a path such as `exported/model.onnx`",
        ));
    }
    if !parent.is_dir() {
        let parent = parent.display();
        let message = format!("cannot write `{shown}`: there is no folder `{parent}`");
        return Err(refused(message, "create it, or choose another path"));
    }
    match fs::symlink_metadata(path) {
        Ok(_) if !force => Err(refused(
            format!("`{shown}` exists"),
            "choose another path, or pass `--force` to replace it",
        )),
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(refused(
            format!("cannot write `{shown}`: {}", plain_io_error(&e)),
            "choose another path",
        )),
    }
}

/// A file to write.
pub struct File<'a>(&'a Path);

impl<'a> File<'a> {
    /// Refuses to replace a file without `force`, and a folder, device or pipe in any case.
    pub fn new(path: &'a Path, force: bool) -> Result<Self, Error> {
        check(path, force)?;
        // A link is replaced, and its target is kept.
        let other = fs::symlink_metadata(path).is_ok_and(|m| !m.is_file() && !m.is_symlink());
        if other {
            let shown = path.display();
            return Err(refused(
                format!("`{shown}` is not a file"),
                "choose a file; `--force` replaces an existing one",
            ));
        }
        Ok(Self(path))
    }

    /// Writes it under a temporary name and renames it.
    pub fn write(
        &self,
        write: impl FnOnce(&mut BufWriter<&fs::File>) -> Result<(), ExportError>,
    ) -> Result<(), Error> {
        let mut reason = None;
        let written = write_whole_by(self.0, |file| match write(file) {
            Ok(()) => Ok(()),
            Err(ExportError::Io(e)) => Err(e),
            Err(other) => {
                reason = Some(other);
                Err(io::Error::other("refused"))
            }
        });
        match (reason, written) {
            (Some(reason), _) => Err(failed(self.0, &reason)),
            (None, Err(e)) => Err(failed(self.0, &ExportError::Io(e))),
            (None, Ok(())) => Ok(()),
        }
    }
}

/// The files of an exported folder, and those that running it creates.
pub const FILES: [&str; 4] = [
    "model.py",
    "weights.safetensors",
    "example.json",
    "__pycache__",
];

/// A folder to write.
pub struct Folder<'a>(&'a Path);

impl<'a> Folder<'a> {
    /// Refuses an existing folder or, with `force`, one with files that no export wrote.
    pub fn new(path: &'a Path, force: bool) -> Result<Self, Error> {
        check(path, force)?;
        if fs::symlink_metadata(path).is_err() {
            return Ok(Self(path));
        }
        let shown = path.display();
        let foreign =
            |reason: String| refused(reason, "choose another folder; it is created if necessary");
        let entries =
            fs::read_dir(path).map_err(|_| foreign(format!("`{shown}` is not a folder")))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !FILES.iter().any(|file| name == *file) {
                let name = Path::new(&name).display();
                return Err(foreign(format!(
                    "`{shown}` contains `{name}`, which is not part of an export, so it is not replaced"
                )));
            }
        }
        Ok(Self(path))
    }

    /// Writes files into a new folder that replaces the old one.
    pub fn write(&self, files: &[(&str, &[u8])]) -> io::Result<()> {
        let parent = match self.0.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut private = tempfile::Builder::new();
        private.prefix(".new-");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Temporary folders are private; the final one has the permissions of the `umask`.
            private.permissions(fs::Permissions::from_mode(0o777));
        }
        let new = private.tempdir_in(parent)?;
        for (name, bytes) in files {
            let mut file = fs::File::create_new(new.path().join(name))?;
            file.write_all(bytes)?;
        }
        let old = self.set_aside(parent)?;
        fs::rename(new.path(), self.0)?;
        // The new folder has the name, so the old one is removed.
        let _ = new.keep();
        drop(old);
        Ok(())
    }

    /// Moves the existing folder into a temporary one.
    fn set_aside(&self, parent: &Path) -> io::Result<Option<(tempfile::TempDir, PathBuf)>> {
        if fs::symlink_metadata(self.0).is_err() {
            return Ok(None);
        }
        let aside = tempfile::Builder::new()
            .prefix(".old-")
            .tempdir_in(parent)?;
        let place = aside.path().join("folder");
        fs::rename(self.0, &place)?;
        Ok(Some((aside, place)))
    }
}
