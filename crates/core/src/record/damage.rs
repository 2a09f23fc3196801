//! Damaged files, as opposed to files that are temporarily unreadable, with a remedy for each.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::entry::{OTHER_FORMAT_REMEDY, PLAN_REMEDY};
use super::format::is_other_format;

/// A file whose content is not what was written.
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

/// Whether the content is not what was written: retrying or fixing a permission does not help. A folder in the place of
/// a file also counts as damage.
pub fn is_damaged(error: &io::Error) -> bool {
    has_damaged_content(error)
        || matches!(
            error.kind(),
            io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory
        )
}

/// The same without a folder in the place of a file.
pub fn has_damaged_content(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(|inner| inner.is::<Damaged>())
}

/// The remedy for a run whose files are damaged.
pub const RUN_REMEDY: &str = "restore the file from a backup or a capsule, or let `runner run` move the run's folder to `replaced/` and train the run again";

/// The remedy for a damaged file of a completed run that `runner run` does not read, such as its weights.
const FILE_REMEDY: &str = "restore the file from a backup or a capsule, or delete the run's folder and run the experiment again, which trains this run anew";

/// The remedy for damaged tags and notes.
pub const LABELS_REMEDY: &str = "`labels.json` beside `plan.json` has all tags and notes: restore it, or remove it to start without any";

/// The remedy for a run whose files this user, or anyone at the moment, cannot read.
pub const ACCESS_REMEDY: &str = "the run itself is intact: make its folder and files readable and writable for you, then run the command again";

/// The remedy for a run whose files cause I/O errors.
pub const DISK_REMEDY: &str =
    "check the disk or the network share that contains the folder, then run the command again";

/// The remedy for a run whose folder is not a folder.
pub const PATH_REMEDY: &str = "a file is in the place of a folder: move it elsewhere";

/// The remedy for an unreadable run, by cause. Only damage is a reason to give a run up.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotADirectory => PATH_REMEDY,
        _ if is_damaged(error) => RUN_REMEDY,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ACCESS_REMEDY,
        _ => DISK_REMEDY,
    }
}

/// The remedy for an experiment with a file that cannot be used, by the file.
pub fn experiment_remedy(error: &io::Error) -> &'static str {
    let inner = error.get_ref();
    let damaged = inner.and_then(|inner| inner.downcast_ref::<Damaged>());
    let name = damaged.and_then(|damaged| damaged.path.file_name()?.to_str());
    match name {
        _ if is_other_format(error) => OTHER_FORMAT_REMEDY,
        Some("labels.json") => LABELS_REMEDY,
        Some("looks.json") => {
            "restore it, or remove it: what was looked at before is then not counted in the verdicts"
        }
        _ => PLAN_REMEDY,
    }
}

/// The same for a file of a completed run that `runner run` does not read.
pub fn file_remedy(error: &io::Error) -> &'static str {
    if is_damaged(error) {
        FILE_REMEDY
    } else {
        remedy(error)
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
        // EIO has no `ErrorKind` of its own.
        assert_eq!(remedy(&io::Error::from_raw_os_error(5)), DISK_REMEDY);
    }
}
