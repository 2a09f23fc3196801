//! Unpacking an untrusted capsule to a folder: completely and as its manifest says, or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::CapsuleError;
use super::extract::extract;
use super::opened::{Capsule, in_archive, read_back};
use crate::show::plain_io_error;

/// Unpacks a capsule into a new or empty folder, up to the allowed or default size. After a refusal nothing of it is
/// left on disk.
pub fn unpack(
    archive: &Path,
    into: &Path,
    max_bytes: Option<u64>,
) -> Result<Capsule, CapsuleError> {
    let into = std::path::absolute(into).map_err(|e| unwritable(into, &e))?;
    let is_taken = match fs::read_dir(&into) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(unwritable(&into, &e)),
        Ok(mut entries) => entries.next().is_some(),
    };
    if is_taken {
        let message = format!("`{}` is not empty", into.display());
        return Err(CapsuleError::new(
            message,
            "use a folder that does not exist yet",
        ));
    }
    // Into an existing folder, so that none has to be removed after a refusal.
    let mut near = into.parent().unwrap_or(&into);
    while let (false, Some(parent)) = (near.is_dir(), near.parent()) {
        near = parent;
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".capsule-");
    #[cfg(unix)]
    {
        // With the permissions of the user's other folders.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o777));
    }
    let unpacked = builder
        .tempdir_in(near)
        .map_err(|e| unwritable(&into, &e))?;
    let manifest =
        extract(archive, unpacked.path(), max_bytes).map_err(|e| in_archive(archive, e))?;
    let (plan, lineage, siblings) =
        read_back(&manifest, unpacked.path()).map_err(|e| in_archive(archive, e))?;
    let settle = || -> io::Result<PathBuf> {
        if let Some(parent) = into.parent() {
            fs::create_dir_all(parent)?;
        }
        if into.is_dir() {
            // Only removes an empty one.
            fs::remove_dir(&into)?;
        }
        fs::rename(unpacked.path(), &into)?;
        fs::canonicalize(&into)
    };
    let place = settle().map_err(|e| unwritable(&into, &e))?;
    Ok(Capsule::in_folder(
        manifest,
        siblings,
        (plan, lineage),
        &place,
    ))
}

fn unwritable(into: &Path, error: &io::Error) -> CapsuleError {
    let reason = plain_io_error(error);
    CapsuleError::new(
        format!("cannot unpack into `{}`: {reason}", into.display()),
        "use a folder that you have permission to write to",
    )
}
