//! Leases: which process of a cluster may write to a run, where the locks of the file system cannot be trusted.
//!
//! A lease is a numbered file, `launch/leases/<run>/<number>`; `launch/submitter/<number>` is that of the command that
//! plans and submits runs. Taking a run means to create the next number; a file
//! server lets only one process create it. The holder rewrites `<number>.beat` regularly. Others watch whether it
//! changes, for a time by their own clock, so clocks need not agree.
//!
//! A holder that is believed dead may still be alive, and a check before a write proves nothing at the moment of the
//! write. So whoever takes a run from a holder that has not released it moves the run's folder aside, and puts a copy in
//! its place. Each holder accesses its folder through an open directory rather than by name: a late writer writes to
//! the folder that was moved, which nobody reads. The name of the moved folder contains the number of the inode, so of
//! several processes that move folders, each can only move the one that it has seen.
//!
//! Assumed of the file system: the creation of a file that must not exist, and renaming, are atomic; a file that is
//! opened after another machine has closed it has its content; an open directory stays the same one when it is renamed.
//! NFS guarantees these since version 3. Its locks are not used.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::unfinished::TEMPORARY;
use super::{ExperimentFolder, unwritable, write_json};
use crate::spec::plain_file;

/// How often a holder shows that it is alive.
pub const BEAT: Duration = Duration::from_secs(5);

/// A holder that has not shown itself for so long is believed dead. Being wrong costs work, but no result.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// Interval between two looks at a holder.
const TICK: Duration = Duration::from_secs(1);

/// What the beat of a released lease contains.
const RELEASED: &str = "released";

/// The holder of a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// The key of the submission; empty for a process outside of one.
    pub submission: String,
    /// The number of the job in the submission.
    pub element: usize,
    /// The job's id.
    pub job: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
}

/// A lease, held until it is released.
#[derive(Debug)]
pub struct Lease {
    experiment: ExperimentFolder,
    /// Where its numbers are.
    place: PathBuf,
    /// The run; empty if it is about submitting.
    run: String,
    number: u64,
}

/// The result of requesting a lease.
#[derive(Debug)]
pub enum Leased {
    /// This process has it now.
    Taken(Lease),
    /// Another process has it, or has taken it in the meantime.
    Busy(Option<Tenant>),
}

/// The result of creating the next lease.
enum Created {
    /// It exists, and whether the one before was released.
    New(Lease, bool),
    /// The holder of the one before is alive.
    Not(Option<Tenant>),
}

/// The newest lease of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its number.
    pub number: u64,
    /// Its holder, if it could write its name.
    pub tenant: Option<Tenant>,
    /// Whether the holder has released it.
    pub is_released: bool,
}

/// How to find out whether a holder is alive.
pub struct Alive<'a> {
    /// Whether it is known to have ended.
    pub has_ended: &'a dyn Fn(&Tenant) -> bool,
    /// Waits; returns whether to go on.
    pub pause: &'a dyn Fn(Duration) -> bool,
}

impl ExperimentFolder {
    /// What belongs to jobs of a cluster.
    pub fn launch(&self) -> PathBuf {
        self.0.join("launch")
    }

    fn leases(&self, run: &str) -> PathBuf {
        self.launch().join("leases").join(run)
    }

    /// The runs that were ever leased.
    pub fn leased_runs(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.launch().join("leases"));
        let names = entries.into_iter().flatten().flatten();
        names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }

    /// The newest lease of a run, if there was ever one.
    pub fn held(&self, run: &str) -> io::Result<Option<Held>> {
        held(&self.leases(run))
    }

    /// The newest right to submit runs, if there was ever one.
    pub fn submitter(&self) -> io::Result<Option<Held>> {
        held(&self.launch().join("submitter"))
    }

    /// Takes a run, as soon as it is certain or likely that no other process has it.
    pub fn lease(&self, run: &str, tenant: &Tenant, alive: &Alive<'_>) -> io::Result<Leased> {
        let place = self.leases(run);
        let (lease, was_released) = match self.take(place, run, tenant, alive)? {
            Created::New(lease, was_released) => (lease, was_released),
            Created::Not(holder) => return Ok(Leased::Busy(holder)),
        };
        if !was_released && !lease.put_a_copy()? {
            return Ok(Leased::Busy(None));
        }
        lease.forget_earlier();
        Ok(Leased::Taken(lease))
    }

    /// Takes the right to submit runs: of several commands on different machines, one plans and submits at a time, also
    /// without locks. If a holder was wrongly believed dead, runs are submitted twice, and the second job of each ends.
    pub fn lease_submitting(&self, tenant: &Tenant, alive: &Alive<'_>) -> io::Result<Leased> {
        let place = self.launch().join("submitter");
        let lease = match self.take(place, "", tenant, alive)? {
            Created::New(lease, _) => lease,
            Created::Not(holder) => return Ok(Leased::Busy(holder)),
        };
        if !lease.is_current()? {
            return Ok(Leased::Busy(None));
        }
        lease.forget_earlier();
        Ok(Leased::Taken(lease))
    }

    /// Creates the next lease, once the one before was released or its holder seems dead.
    fn take(
        &self,
        place: PathBuf,
        run: &str,
        tenant: &Tenant,
        alive: &Alive<'_>,
    ) -> io::Result<Created> {
        fs::create_dir_all(&place).map_err(|e| unwritable(&place, e))?;
        loop {
            let held = held(&place)?;
            let is_free = held.as_ref().is_none_or(|held| held.is_released);
            if let Some(held) = held.as_ref().filter(|held| !held.is_released) {
                let has_ended = held.tenant.as_ref().is_some_and(|it| (alive.has_ended)(it));
                if !has_ended && !is_silent(&place, held.number, alive.pause) {
                    return Ok(Created::Not(held.tenant.clone()));
                }
            }
            let number = held.as_ref().map_or(0, |held| held.number) + 1;
            let path = place.join(number.to_string());
            let created = OpenOptions::new().write(true).create_new(true).open(&path);
            let mut file = match created {
                // Another process was faster; network file systems may show its file later.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                    if (alive.pause)(TICK) {
                        continue;
                    }
                    return Ok(Created::Not(None));
                }
                other => other.map_err(|e| unwritable(&path, e))?,
            };
            file.write_all(serde_json::to_string(tenant)?.as_bytes())?;
            drop(file);
            let lease = Lease {
                experiment: self.clone(),
                place,
                run: run.to_owned(),
                number,
            };
            lease.beat(0)?;
            return Ok(Created::New(lease, is_free));
        }
    }
}

impl Lease {
    /// Whether no other process has taken the run. Must be checked after the run's folder was opened.
    pub fn is_current(&self) -> io::Result<bool> {
        Ok(newest(&self.place)? == Some(self.number))
    }

    /// Shows that the holder is alive, with another number each time.
    pub fn beat(&self, count: u64) -> io::Result<()> {
        self.write_beat(&count.to_string())
    }

    /// Releases it: nothing of this process writes there any more.
    pub fn release(self) -> io::Result<()> {
        self.write_beat(RELEASED)
    }

    fn write_beat(&self, text: &str) -> io::Result<()> {
        let path = self.place.join(format!("{}.beat", self.number));
        fs::write(&path, text).map_err(|e| unwritable(&path, e))
    }

    /// Removes the files of earlier leases, and copies that were not put in place: only the newest counts.
    fn forget_earlier(&self) {
        if !self.run.is_empty() {
            for (number, copy) in numbered(&self.experiment.launch().join("stage"), &self.run) {
                if number < self.number {
                    let _ = fs::remove_dir_all(copy);
                }
            }
        }
        let entries = fs::read_dir(&self.place).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let number = name.strip_suffix(".beat").unwrap_or(&name).parse::<u64>();
            if number.is_ok_and(|number| number < self.number) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Moves the run's folder aside, and puts a copy in its place; returns whether the lease is still the newest.
    fn put_a_copy(&self) -> io::Result<bool> {
        let live = self.experiment.run(&self.run).0;
        let launch = self.experiment.launch();
        let (stage, fenced) = (launch.join("stage"), launch.join("fenced"));
        fs::create_dir_all(&fenced).map_err(|e| unwritable(&fenced, e))?;
        let copy = stage.join(format!("{}@{}", self.run, self.number));
        loop {
            let copied = copy_folder(&live, &copy);
            if !self.is_current()? {
                return Ok(false);
            }
            match copied {
                Err(e) if e.kind() == ErrorKind::NotFound && !live.exists() => {
                    if copy.exists() {
                        fs::remove_dir_all(&copy)?;
                    }
                    match self.moved() {
                        // Whoever moved it was killed before its copy was put in place, or is about to do so.
                        Some(moved) => copy_folder(&moved, &copy)?,
                        // The holder has not begun the run. If it does so now, its folder is moved as well.
                        None => fs::create_dir_all(&copy).map_err(|e| unwritable(&copy, e))?,
                    }
                    let runs = self.experiment.runs();
                    fs::create_dir_all(&runs).map_err(|e| unwritable(&runs, e))?;
                }
                // It was being moved while it was copied.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                other => other?,
            }
            break;
        }
        self.replace(&live, &copy, &fenced)
    }

    /// Of the folders of the run that were moved aside, the one in which most has happened.
    fn moved(&self) -> Option<PathBuf> {
        let moved = numbered(&self.experiment.launch().join("fenced"), &self.run);
        let events = |(_, folder): &(u64, PathBuf)| {
            let events = fs::metadata(folder.join("events.jsonl"));
            events.map_or(0, |data| data.len())
        };
        let (_, folder) = moved.into_iter().max_by_key(events)?;
        Some(folder)
    }

    /// Moves the run's folder aside, and a copy in its place; returns whether the lease is still the newest.
    fn replace(&self, live: &Path, copy: &Path, fenced: &Path) -> io::Result<bool> {
        loop {
            if let Some(inode) = inode(live) {
                let aside = fenced.join(format!("{}@{inode}", self.run));
                match fs::rename(live, &aside) {
                    Err(e) if !is_taken(&e) && e.kind() != ErrorKind::NotFound => {
                        return Err(unwritable(live, e));
                    }
                    // Otherwise another process has moved it, and has put its own in its place.
                    _ => {}
                }
            }
            if !self.is_current()? {
                return Ok(false);
            }
            match fs::rename(copy, live) {
                Ok(()) => return Ok(true),
                Err(e) if is_taken(&e) => {}
                Err(e) => return Err(unwritable(live, e)),
            }
        }
    }
}

/// The folders `<run>@<number>` in a folder, with their numbers.
fn numbered(folder: &Path, run: &str) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of_run = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let (of, number) = name.rsplit_once('@')?;
        (of == run).then_some(())?;
        Some((number.parse().ok()?, entry.path()))
    });
    of_run.collect()
}

/// The newest lease at a place, if there was ever one.
fn held(place: &Path) -> io::Result<Option<Held>> {
    let Some(number) = newest(place)? else {
        return Ok(None);
    };
    let text = plain_file::read_text(&place.join(number.to_string())).ok();
    Ok(Some(Held {
        number,
        tenant: text.and_then(|text| serde_json::from_str(&text).ok()),
        is_released: beat(place, number).as_deref() == Some(RELEASED),
    }))
}

/// Writes the record of a cluster's jobs.
pub(super) fn write_record<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    write_json(path, value).map_err(|e| unwritable(path, e))
}

/// Whether a folder was not renamed because there is one with content.
fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
    )
}

/// The highest number of a run's leases.
fn newest(place: &Path) -> io::Result<Option<u64>> {
    let entries = match fs::read_dir(place) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut newest = None;
    for entry in entries {
        let number = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        newest = newest.max(number);
    }
    Ok(newest)
}

fn beat(place: &Path, number: u64) -> Option<String> {
    plain_file::read_text(&place.join(format!("{number}.beat"))).ok()
}

/// Whether a holder does not show itself for [`PATIENCE`].
fn is_silent(place: &Path, number: u64, pause: &dyn Fn(Duration) -> bool) -> bool {
    let first = beat(place, number);
    for _ in 0..PATIENCE.as_secs() / TICK.as_secs() {
        if !pause(TICK) {
            return false;
        }
        match beat(place, number) {
            Some(now) if now == RELEASED => return true,
            now if now != first => return false,
            _ => {}
        }
    }
    true
}

#[cfg(unix)]
fn inode(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    Some(fs::symlink_metadata(folder).ok()?.ino())
}

/// Elsewhere jobs of clusters do not run.
#[cfg(not(unix))]
fn inode(folder: &Path) -> Option<u64> {
    fs::symlink_metadata(folder).ok().map(|_| 0)
}

/// Copies the files of a run. What changes in the meantime is as after a kill: a partial last event is cut off, and a
/// checkpoint with a wrong checksum is skipped.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to).map_err(|e| unwritable(to, e))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let text = name.to_string_lossy();
        if text == ".lock" || text == "progress.json" || text.starts_with(TEMPORARY) {
            continue;
        }
        let kind = entry.file_type()?;
        let (source, target) = (entry.path(), to.join(&name));
        let copied = if kind.is_dir() {
            copy_folder(&source, &target)
        } else if kind.is_file() {
            fs::copy(&source, &target).map(drop)
        } else {
            Ok(())
        };
        match copied {
            // The other writer has just removed it.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
