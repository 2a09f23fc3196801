//! The locks of the results tree. The system's lock decides who writes; the text in the file only names the holder, and
//! may be that of a runner that was killed long ago.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sysinfo::System;

use super::refuse_links;
use crate::spec::plain_file;

/// The holder of a lock, according to its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// When it took the lock, RFC 3339.
    pub since: String,
    /// Its command line.
    pub command: String,
}

/// Whether a lock could not be taken because the file system has none.
pub fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(libc::ENOLCK) {
        return true;
    }
    error.kind() == io::ErrorKind::Unsupported
}

/// A lock that is held until this is dropped.
pub struct Lock(File);

/// The result of requesting a lock.
pub enum Locked {
    /// This process has it now.
    Taken(Lock),
    /// Another process has it; which one, if its file says so.
    Busy(Option<Holder>),
}

/// A holder needs some time between taking a lock and writing its name, during which the file names the previous one.
const NAMING: Duration = Duration::from_millis(100);

/// The lock of a folder; that of its labels has a file of its own, since a run that is under way can be tagged.
const LOCK: &str = ".lock";
const LABELS: &str = ".labels.lock";

fn open(folder: &Path, name: &str) -> io::Result<File> {
    refuse_links(folder, &[name])?;
    plain_file::refuse_special(&folder.join(name))?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    options.open(folder.join(name))
}

/// Waits until no other process changes the labels of a folder, and keeps others waiting until the file is dropped.
pub(super) fn wait_for_labels(folder: &Path) -> io::Result<File> {
    let file = open(folder, LABELS)?;
    file.lock()?;
    Ok(file)
}

/// Whether a process has the lock of a folder. The check shares the lock for a moment; taking it is therefore tried
/// twice.
pub(super) fn is_held(folder: &Path) -> bool {
    let path = folder.join(LOCK);
    let Ok(file) = plain_file::open(&path) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock))
}

impl Holder {
    /// This process.
    pub fn here() -> Self {
        let words = std::env::args_os();
        let words: Vec<_> = words.map(|w| w.to_string_lossy().into_owned()).collect();
        Self {
            pid: std::process::id(),
            host: System::host_name().unwrap_or_default(),
            since: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: words.join(" "),
        }
    }

    fn read(mut file: &File) -> Option<Self> {
        let mut text = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        toml::from_str(&text).ok()
    }
}

/// Whether there is a process of this number on this machine.
#[cfg(unix)]
pub fn process_exists(id: u32) -> bool {
    // SAFETY: without a signal, only looks whether one could be sent.
    let sent = libc::pid_t::try_from(id).is_ok_and(|id| unsafe { libc::kill(id, 0) } == 0);
    sent || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Whether there is a process of this number on this machine: elsewhere that is not asked.
#[cfg(not(unix))]
pub fn process_exists(_: u32) -> bool {
    true
}

impl Lock {
    /// Takes the lock of a folder, if it is free.
    pub(super) fn take(folder: &Path) -> io::Result<Locked> {
        fs::create_dir_all(folder)?;
        let file = open(folder, LOCK)?;
        match file.try_lock() {
            Ok(()) => Ok(Locked::Taken(Self::named(file))),
            Err(fs::TryLockError::WouldBlock) => {
                std::thread::sleep(NAMING);
                // It may have been a process that only checked the lock.
                match file.try_lock() {
                    Ok(()) => Ok(Locked::Taken(Self::named(file))),
                    Err(fs::TryLockError::WouldBlock) => Ok(Locked::Busy(Holder::read(&file))),
                    Err(fs::TryLockError::Error(e)) => Err(e),
                }
            }
            Err(fs::TryLockError::Error(e)) => Err(e),
        }
    }

    /// Takes the lock of a folder as soon as it is free.
    pub(super) fn wait_for(folder: &Path) -> io::Result<Self> {
        let file = open(folder, LOCK)?;
        file.lock()?;
        Ok(Self::named(file))
    }

    /// A holder that cannot be named still has the lock.
    fn named(file: File) -> Self {
        let text = toml::to_string(&Holder::here()).unwrap_or_default();
        let write = |mut file: &File| -> io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(text.as_bytes())
        };
        if let Err(e) = write(&file) {
            tracing::warn!("the lock cannot be created: {e}");
        }
        Self(file)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A previous holder must not be named.
        let _ = self.0.set_len(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_its_holder_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        // A leftover of a killed runner.
        fs::write(
            &path,
            "pid = 1\nhost = \"gone\"\nsince = \"2020\"\ncommand = \"old\"\n",
        )
        .unwrap();
        let Ok(Locked::Taken(lock)) = Lock::take(folder.path()) else {
            panic!("it is free")
        };
        let Ok(Locked::Busy(Some(holder))) = Lock::take(folder.path()) else {
            panic!("it is held")
        };
        assert_eq!(
            (holder.pid, holder.host),
            (std::process::id(), Holder::here().host)
        );
        assert!(is_held(folder.path()));
        drop(lock);
        assert!(!is_held(folder.path()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        assert!(matches!(Lock::take(folder.path()), Ok(Locked::Taken(_))));
    }
}
