//! Files and folders that a process began under a temporary name, and could not rename because it was killed. Their names
//! contain the machine and the process, so that those of processes that are at work are not removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use super::lock::process_exists;
use super::write::readable_file;
use super::{ExperimentFolder, RunFolder};
use crate::disk;
use crate::hash::sha256_hex;
use crate::spec::plain_file;

/// How all of these names begin.
pub(super) const TEMPORARY: &str = ".new-";

/// Whether a process of another machine is at work is not known: none writes for so long without a change.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// How the names of temporary files of this process begin.
pub fn temporary_prefix() -> String {
    // A page has no processes, and asking for its number panics there.
    let process = if disk::IS_MEMORY {
        0
    } else {
        std::process::id()
    };
    format!("{TEMPORARY}{}-{process}-", machine())
}

/// This machine since it was started; in a container, this container.
fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let host = sysinfo::System::host_name().unwrap_or_default();
        let started = plain_file::read_text(Path::new("/proc/sys/kernel/random/boot_id"));
        let started = started.unwrap_or_default();
        // The processes of a container have numbers of their own.
        let numbers = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let all = format!("{host}\n{started}\n{}", numbers.display());
        sha256_hex(all.as_bytes())[..8].to_owned()
    })
}

/// Whether a name is that of a file of weights which Burn began to write: `best.bpk.604-36.tmp`.
pub(super) fn is_scratch(name: &str) -> bool {
    let number = name.strip_suffix(".tmp").and_then(|rest| {
        let (_, number) = rest.rsplit_once(".bpk.")?;
        number.split_once('-')
    });
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    number.is_some_and(|(process, count)| is_number(process) && is_number(count))
}

impl RunFolder {
    /// Removes files of weights that a killed process began to write, other than those of checkpoints. Only for the
    /// process that holds the lock of the run: no other one writes them.
    pub fn remove_scratch(&self) {
        let entries = fs::read_dir(self.0.join("model")).into_iter();
        for entry in entries.flatten().flatten() {
            if is_scratch(&entry.file_name().to_string_lossy()) {
                // A file that cannot be removed is not recorded.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The process of this machine that a temporary name is of, if it is of one.
fn process_of(name: &str) -> Option<u32> {
    let mut parts = name.strip_prefix(TEMPORARY)?.split('-');
    let is_here = parts.next() == Some(machine());
    let process = parts.next()?.parse().ok();
    let is_ours = is_here && parts.next().is_some() && parts.next().is_none();
    process.filter(|_| is_ours)
}

/// The files and folders in a folder whose names are temporary.
fn temporary(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_temporary = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        name.to_str()
            .is_some_and(|name| name.starts_with(TEMPORARY))
    };
    let entries = entries.filter(is_temporary);
    entries.map(|entry| entry.path()).collect()
}

/// Those whose process has ended, as far as that is known.
fn of_nobody(folder: &Path) -> Vec<PathBuf> {
    let mut now = None;
    let mut all = temporary(folder);
    all.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if process_of(&name).is_some_and(|process| !process_exists(process)) {
            return true;
        }
        // Of another machine, or of a process with the same number.
        let now = now.get_or_insert_with(|| time_of(folder).ok());
        let changed = fs::symlink_metadata(path).and_then(|data| data.modified());
        let age = now.zip(changed.ok());
        let age = age.and_then(|(now, changed)| now.duration_since(changed).ok());
        age.is_some_and(|age| age > ABANDONED)
    });
    all
}

/// The time by the clock of the file system, with which that of a file can be compared.
fn time_of(folder: &Path) -> io::Result<SystemTime> {
    let file = readable_file(&temporary_prefix(), folder)?;
    file.as_file().metadata()?.modified()
}

/// Removes a temporary file or folder; what cannot be removed is tried again next time.
pub fn remove_temporary(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|data| data.is_dir());
    let removed = if is_folder {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    if let Err(e) = removed {
        tracing::info!("`{}` is not removed: {e}", path.display());
    }
}

/// Removes what killed processes began in a folder, and not in those below it.
pub fn remove_unfinished_in(folder: &Path) {
    of_nobody(folder)
        .iter()
        .for_each(|path| remove_temporary(path));
}

impl ExperimentFolder {
    /// Removes what killed processes began in this folder, except in those of its runs.
    pub fn remove_unfinished(&self) {
        remove_unfinished_in(&self.0);
        remove_unfinished_in(&self.launch());
    }

    /// What killed processes began in this folder, and in those of all its runs, also of earlier settings.
    pub fn unfinished(&self) -> Vec<PathBuf> {
        let mut found = of_nobody(&self.0);
        found.extend(of_nobody(&self.launch()));
        for runs in ["runs", "replaced"] {
            let runs = fs::read_dir(self.0.join(runs));
            for run in runs.into_iter().flatten().flatten() {
                // Not through a link out of the folder.
                if run.file_type().is_ok_and(|kind| kind.is_dir()) {
                    let folders = RunFolder(run.path()).folders();
                    found.extend(folders.iter().flat_map(|folder| of_nobody(folder)));
                }
            }
        }
        found
    }
}

impl RunFolder {
    /// The folders in which its files are begun: its own, and those in it, below which there are none.
    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        // Not through a link out of the folder.
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let inner = inner.map(|entry| entry.path());
        [self.0.clone()].into_iter().chain(inner).collect()
    }

    /// Removes what killed processes began in it.
    pub(super) fn remove_unfinished(&self) {
        let folders = self.folders();
        folders
            .iter()
            .for_each(|folder| remove_unfinished_in(folder));
    }

    /// Removes everything that was begun in it, by whichever process: to be called by the only one that may write there.
    pub fn remove_all_unfinished(&self) {
        let begun = self.folders();
        let begun = begun.iter().flat_map(|folder| temporary(folder));
        begun.for_each(|path| remove_temporary(&path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of a process that has ended.
    fn ended() -> u32 {
        let program = std::env::current_exe().unwrap();
        let mut child = std::process::Command::new(program);
        let child = child.arg("--help").stdout(std::process::Stdio::null());
        let mut child = child.spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn only_what_processes_of_the_past_began_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = ExperimentFolder(folder.path().join("x"));
        let run = experiment.run("a-s1");
        let write = |path: PathBuf| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "half").unwrap();
            path
        };
        let of = |process: u32| format!("{TEMPORARY}{}-{process}-aB3dE6", machine());
        let (gone, here) = (of(ended()), of(std::process::id()));
        let there = format!("{TEMPORARY}00000000-1-aB3dE6");
        // As an earlier version named them.
        let earlier = format!("{TEMPORARY}aB3dE6");
        let old = write(run.0.join(&there));
        let long_ago = SystemTime::now() - 2 * ABANDONED;
        let file = fs::File::options().write(true).open(&old).unwrap();
        file.set_modified(long_ago).unwrap();
        drop(file);
        let mut removed = vec![old];
        let mut kept = vec![write(run.0.join("run.toml"))];
        let inner = run.checkpoints();
        for place in [
            &experiment.0,
            &experiment.launch(),
            &run.0,
            &inner,
            &run.samples(),
        ] {
            removed.push(write(place.join(&gone)));
            kept.push(write(place.join(&here)));
            kept.push(write(place.join(&earlier)));
        }
        kept.push(write(inner.join(&there)));
        let mut found = experiment.unfinished();
        found.sort();
        removed.sort();
        assert_eq!(found, removed);
        experiment.remove_unfinished();
        run.remove_unfinished();
        assert!(removed.iter().all(|path| !path.exists()), "{removed:?}");
        assert!(kept.iter().all(|path| path.exists()), "{kept:?}");
        // What this process begins has a name that it knows as its own.
        let begun = readable_file(&temporary_prefix(), &run.0).unwrap();
        let name = begun.path().file_name().unwrap().to_string_lossy();
        assert_eq!(process_of(&name), Some(std::process::id()));
        drop(begun);
        // The only writer of a run need not ask.
        run.remove_all_unfinished();
        assert!(run.run_toml().exists());
        assert!(temporary(&run.0).is_empty() && temporary(&inner).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_removed_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let away = folder.path().join("away");
        let run = ExperimentFolder(folder.path().join("x")).run("a-s1");
        fs::create_dir_all(&run.0).unwrap();
        fs::create_dir(&away).unwrap();
        let theirs = away.join(format!("{TEMPORARY}aB3dE6"));
        fs::write(&theirs, "").unwrap();
        std::os::unix::fs::symlink(&away, run.checkpoints()).unwrap();
        run.remove_all_unfinished();
        assert!(theirs.exists());
    }
}
