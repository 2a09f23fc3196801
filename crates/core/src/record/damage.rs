//! Files that are damaged, as opposed to files that cannot be read just now, and what to do about each.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file that does not hold what was written to it.
#[derive(Debug)]
pub struct Damaged {
    path: PathBuf,
    reason: String,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is damaged: {}", self.path.display(), self.reason)
    }
}

impl Error for Damaged {}

/// An error about a damaged file.
pub(super) fn damaged(path: &Path, reason: impl fmt::Display) -> io::Error {
    let (path, reason) = (path.to_owned(), reason.to_string());
    io::Error::other(Damaged { path, reason })
}

/// Whether what was read is not what was written: trying again or fixing a permission does not help. A folder in the
/// place of a file counts as damage, too.
pub fn is_damaged(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(|inner| inner.is::<Damaged>())
        || matches!(
            error.kind(),
            io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory
        )
}

/// What to do about a run whose files are damaged.
pub const RUN_REMEDY: &str = "restore the file from a backup or a capsule; or let `runner run` move the run's folder to `replaced/` and train the run again";

/// What to do about a run whose files cannot be read by this user, or by anyone just now.
pub const ACCESS_REMEDY: &str = "nothing is wrong with the run itself: make its folder and files readable and writable for you, then run the command again";

/// What to do about a run whose files the disk does not give.
pub const DISK_REMEDY: &str =
    "check the disk or the network share that the folder is on, then run the command again";

/// What to do about a run whose folder is none.
pub const PATH_REMEDY: &str = "a file stands where a folder is needed: move it away";

/// What to do about a run that cannot be read, by what is wrong. Only damage is a reason to give a run up.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotADirectory => PATH_REMEDY,
        _ if is_damaged(error) => RUN_REMEDY,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ACCESS_REMEDY,
        _ => DISK_REMEDY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_damage_is_a_reason_to_give_a_run_up() {
        let path = Path::new("run.toml");
        assert_eq!(remedy(&damaged(path, "it is empty")), RUN_REMEDY);
        for kind in [
            io::ErrorKind::PermissionDenied,
            io::ErrorKind::StorageFull,
            io::ErrorKind::TimedOut,
            io::ErrorKind::Other,
        ] {
            let remedy = remedy(&io::Error::from(kind));
            assert!(!remedy.contains("replaced"), "{kind}: {remedy}");
            assert!(!remedy.contains("delete"), "{kind}: {remedy}");
        }
        // EIO has no kind of its own.
        assert_eq!(remedy(&io::Error::from_raw_os_error(5)), DISK_REMEDY);
    }
}
