//! Temporary folders. A killed process leaves its own, which the next one removes.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

use runner_core::record::{ExperimentFolder, Lock, Locked, cache_folder};

/// A folder that is removed when this is dropped.
pub(crate) struct Scratch {
    /// Marks its process as alive; dropped before the folder.
    _lock: Option<Lock>,
    folder: TempDir,
}

impl Scratch {
    /// A new folder in the user's cache folder, or in the system's temporary folder if that is not writable.
    pub(crate) fn new() -> io::Result<Self> {
        Self::below(&cache_folder().join("tried")).or_else(|_| {
            Ok(Self {
                _lock: None,
                folder: tempfile::tempdir()?,
            })
        })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn below(all: &Path) -> io::Result<Self> {
        fs::create_dir_all(all)?;
        // Held until the new folder has its own lock, so that it is not taken for a leftover.
        let _all = ExperimentFolder(all.to_owned()).wait_for_lock()?;
        for entry in fs::read_dir(all)?.flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let of_nobody = || {
                let lock = ExperimentFolder(entry.path()).lock();
                matches!(lock, Ok(Locked::Taken(_)))
            };
            if is_folder && of_nobody() {
                // Whatever cannot be removed now is tried again next time.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let folder = TempDir::new_in(all)?;
        let lock = match ExperimentFolder(folder.path().to_owned()).lock()? {
            Locked::Taken(lock) => Some(lock),
            Locked::Busy(_) => None,
        };
        Ok(Self {
            _lock: lock,
            folder,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dead_processes_left_is_removed_and_nothing_else() {
        let all = tempfile::tempdir().unwrap();
        let left = all.path().join("left");
        fs::create_dir_all(left.join("run")).unwrap();
        let one = Scratch::below(all.path()).unwrap();
        assert!(!left.exists());
        let two = Scratch::below(all.path()).unwrap();
        assert!(one.path().is_dir() && two.path().is_dir());
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists());
    }
}
