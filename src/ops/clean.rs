//! Removal of runs of earlier settings.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Sink, tree};
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{ExperimentFolder, Locked, State, remove_temporary};
use runner_core::show::plain_io_error;

/// What is to be removed, and whether it is.
#[derive(Clone, Debug)]
pub struct Clean {
    /// The folder of an experiment, or a results folder.
    pub folder: PathBuf,
    /// Generations of settings that are kept, that of the plan included.
    pub keep: usize,
    /// Whether anything is removed, or only reported.
    pub is_removing: bool,
}

/// What was removed, or would be.
#[derive(Clone, Debug, Default)]
pub struct Cleaned {
    /// Runs that were or would be removed.
    pub removed: Vec<Removed>,
    /// Runs of generations that are too old, which are kept, each with the reason.
    pub kept: Vec<(PathBuf, &'static str)>,
    /// Files and folders that killed processes began, which were or would be removed.
    pub unfinished: Vec<PathBuf>,
}

/// A run that is removed.
#[derive(Clone, Debug)]
pub struct Removed {
    /// Its folder.
    pub folder: PathBuf,
    /// What its settings were instead of the planned ones.
    pub changed: String,
    /// The size of its files in bytes.
    pub bytes: u64,
}

/// Removes runs of earlier settings, and what killed processes began. Runs of the plan are never removed, and neither are tagged ones nor those that can be
/// resumed.
///
/// # Errors
///
/// [`Error::Refused`] if there is no experiment, one is in use, or its records cannot be read.
///
/// ```
/// use burn_runner::ops::{self, Clean};
///
/// let options = Clean {
///     folder: "src".into(),
///     keep: 3,
///     is_removing: false,
/// };
/// assert!(ops::clean(&options, &ops::quiet).is_err());
/// ```
pub fn clean(options: &Clean, _: &Sink<'_>) -> Result<Cleaned, Error> {
    let mut cleaned = Cleaned::default();
    for folder in tree::experiments(&options.folder)? {
        clean_one(&folder, options, &mut cleaned)?;
    }
    Ok(cleaned)
}

fn clean_one(
    folder: &ExperimentFolder,
    options: &Clean,
    cleaned: &mut Cleaned,
) -> Result<(), Error> {
    let refused = |what: &str, help: &str| {
        let message = format!("cannot clean `{}`: {what}", folder.0.display());
        Error::refused(Diagnostic::error("results", message).help(help.to_owned()))
    };
    let unreadable = |e: std::io::Error| {
        let help = "restore the file; nothing was removed from this experiment";
        refused(&plain_io_error(&e), help)
    };
    // What a `runner run` is about to replace or to resume is not removed under its hands.
    let lock = if options.is_removing {
        match folder.lock().map_err(unreadable)? {
            Locked::Taken(lock) => Some(lock),
            Locked::Busy(_) => {
                let help = "wait until it has ended";
                return Err(refused("a `runner run` writes there", help));
            }
        }
    } else {
        None
    };
    folder.check_links().map_err(unreadable)?;
    let unfinished = folder.unfinished();
    if options.is_removing {
        unfinished.iter().for_each(|path| remove_temporary(path));
    }
    cleaned.unfinished.extend(unfinished);
    let Some(plan) = folder.read_plan().map_err(unreadable)? else {
        return Ok(());
    };
    let labels = folder.read_labels().map_err(unreadable)?;
    let earlier = folder.earlier(&plan);
    let numbers: BTreeSet<usize> = earlier
        .iter()
        .map(|run| run.entry.generation.number)
        .collect();
    let num_kept = options.keep.saturating_sub(1);
    let newest: BTreeSet<usize> = numbers.iter().rev().take(num_kept).copied().collect();
    for run in earlier {
        if newest.contains(&run.entry.generation.number) {
            continue;
        }
        let path = run.folder.0.clone();
        let name = runner_core::record::Look::name(&run.entry);
        let reason = match run.entry.state {
            _ if labels
                .get(&name)
                .is_some_and(|label| !label.tags.is_empty()) =>
            {
                Some("tagged")
            }
            State::Running => Some("running"),
            State::Queued | State::Requeued => Some("queued"),
            State::Interrupted | State::Incomplete => Some("can be resumed"),
            _ if run.folder.is_in_use() => Some("in use"),
            // Of what cannot be read, nothing is known.
            state if state.is_unreadable() => Some("cannot be read"),
            _ => None,
        };
        if let Some(reason) = reason {
            cleaned.kept.push((path, reason));
            continue;
        }
        let removed = Removed {
            bytes: size(&path),
            changed: run.entry.generation.changed,
            folder: path,
        };
        if options.is_removing {
            remove(&removed.folder)?;
        }
        cleaned.removed.push(removed);
    }
    drop(lock);
    Ok(())
}

/// Removes the folder of a run, or the link to one.
fn remove(path: &Path) -> Result<(), Error> {
    let data = fs::symlink_metadata(path);
    let removed = data.and_then(|data| {
        if data.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
    });
    removed.map_err(|e| Error::unwritable(path, &e))
}

/// The size of all files below a folder; links count as nothing.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => size(&entry.path()),
        Ok(data) if data.is_file() => data.len(),
        _ => 0,
    });
    sizes.sum()
}
