//! The destination of what an operation writes: written completely or not at all, and never over existing files without
//! permission.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{RunFolder, remove_unfinished_in, temporary_prefix, write_whole_by};
use runner_core::show::{plain_io_error, write_remedy};

fn refused(message: String, help: &str) -> Error {
    Error::refused(Diagnostic::error("usage", message).help(help))
}

/// The folder of a destination.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Refuses a destination that already exists, or whose folder does not exist. `fits` refuses what is there if it is not
/// replaced in any case.
fn check(
    path: &Path,
    force: bool,
    fits: impl FnOnce(&fs::Metadata) -> Result<(), Error>,
) -> Result<(), Error> {
    let shown = path.display();
    let parent = parent_of(path);
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
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => {
            return Err(refused(
                format!("cannot write `{shown}`: {}", plain_io_error(&e)),
                "choose another path",
            ));
        }
    };
    fits(&there)?;
    if let Some(RunFolder(run)) = RunFolder::with_file(path) {
        return Err(refused(
            format!(
                "`{shown}` is a file of the run `{}`, which would be damaged",
                run.file_name().unwrap_or_default().display()
            ),
            "choose another path",
        ));
    }
    if !force {
        return Err(refused(
            format!("`{shown}` exists"),
            "choose another path, or pass `--force` to replace it",
        ));
    }
    Ok(())
}

/// Refuses a destination that is what is read, or a folder around it, since it would be replaced.
pub fn apart<'a>(out: &Path, read: impl IntoIterator<Item = &'a Path>) -> Result<(), Error> {
    let Ok(out_there) = out.canonicalize() else {
        return Ok(());
    };
    let read = read.into_iter().filter_map(|path| path.canonicalize().ok());
    for path in read {
        if path.starts_with(&out_there) {
            let verb = if path == out_there { "is" } else { "contains" };
            let message = format!("`{}` {verb} data that this command reads", out.display());
            return Err(refused(message, "choose another path"));
        }
    }
    Ok(())
}

/// A file to write.
pub struct File<'a>(&'a Path);

impl<'a> File<'a> {
    /// Refuses to replace a file without `force`, and a folder, device or pipe in any case.
    pub fn new(path: &'a Path, force: bool) -> Result<Self, Error> {
        let shown = path.display();
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            let message = format!("`{shown}` names a folder, and a file is written");
            return Err(refused(message, "remove the `/` at its end"));
        }
        check(path, force, |there| {
            // A link is replaced, and its target is kept.
            if there.is_file() || there.is_symlink() {
                return Ok(());
            }
            let message = format!("`{shown}` is not a file");
            Err(refused(message, "choose another path"))
        })?;
        Ok(Self(path))
    }

    /// Where it will be.
    pub fn path(&self) -> &'a Path {
        self.0
    }

    /// Writes it, in the same way.
    pub fn whole(&self, bytes: &[u8]) -> Result<(), Error> {
        self.write(|file| file.write_all(bytes).map_err(|e| unwritten(self.0, &e)))
    }

    /// Writes it under a temporary name and renames it.
    pub fn write<T>(
        &self,
        write: impl FnOnce(&mut BufWriter<&fs::File>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        remove_unfinished_in(parent_of(self.0));
        let mut outcome = None;
        let written = write_whole_by(self.0, |file| {
            let made = outcome.insert(write(file));
            made.as_ref()
                .map(|_| ())
                .map_err(|_| io::Error::other("refused"))
        });
        match (outcome, written) {
            (Some(Ok(made)), Ok(())) => Ok(made),
            (Some(Err(error)), _) => Err(error),
            (_, written) => Err(unwritten(self.0, &written.err().unwrap_or_else(not_begun))),
        }
    }
}

fn not_begun() -> io::Error {
    io::Error::other("nothing was written")
}

/// The error of a disk on which a file or folder cannot be written.
pub fn unwritten(path: &Path, error: &io::Error) -> Error {
    let message = format!(
        "cannot write `{}`: {}",
        path.display(),
        plain_io_error(error)
    );
    Error::failed(Diagnostic::error("output", message).help(write_remedy(error)))
}

/// A folder to write.
pub struct Folder<'a>(&'a Path);

impl<'a> Folder<'a> {
    /// Refuses a folder with files that are not by their names `own`, those of an earlier call, and without `force` any
    /// existing one.
    pub fn new(path: &'a Path, force: bool, own: impl Fn(&OsStr) -> bool) -> Result<Self, Error> {
        let shown = path.display();
        let foreign =
            |reason: String| refused(reason, "choose another folder; it is created if necessary");
        check(path, force, |_| {
            let entries =
                fs::read_dir(path).map_err(|_| foreign(format!("`{shown}` is not a folder")))?;
            for entry in entries.flatten() {
                let name = entry.file_name();
                if !own(&name) {
                    let name = Path::new(&name).display();
                    return Err(foreign(format!(
                        "`{shown}` contains `{name}`, which this command did not write, so it is not replaced"
                    )));
                }
            }
            Ok(())
        })?;
        Ok(Self(path))
    }

    /// Fills a new folder, which replaces the old one.
    pub fn write<T>(&self, fill: impl FnOnce(&Path) -> Result<T, Error>) -> Result<T, Error> {
        let parent = parent_of(self.0);
        let unwritten = |e: io::Error| unwritten(self.0, &e);
        remove_unfinished_in(parent);
        let mut private = tempfile::Builder::new();
        let prefix = temporary_prefix();
        private.prefix(&prefix);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Temporary folders are private; the final one has the permissions of the `umask`.
            private.permissions(fs::Permissions::from_mode(0o777));
        }
        let new = private.tempdir_in(parent).map_err(unwritten)?;
        let made = fill(new.path())?;
        let old = self.set_aside(parent).map_err(unwritten)?;
        fs::rename(new.path(), self.0).map_err(unwritten)?;
        // The new folder has the name, so the old one is removed.
        let _ = new.keep();
        drop(old);
        Ok(made)
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
