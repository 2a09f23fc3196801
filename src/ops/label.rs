//! Tags and notes of runs.

use std::path::{Path, PathBuf};

use super::Sink;
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{ExperimentFolder, LABELS_REMEDY, Label, LabelError, Look, RunFolder};
use runner_core::show::plain_io_error;

/// Longer tags are no tags.
const MAX_TAG: usize = 64;

/// Longer notes are documents.
const MAX_NOTE: usize = 10_000;

/// A change of what is said of a run.
#[derive(Clone, Debug)]
pub struct LabelRun {
    /// The folder of the run, also one that was replaced.
    pub run: PathBuf,
    /// The change.
    pub change: LabelChange,
}

/// What is said of a run from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelChange {
    /// Nothing changes.
    Show,
    /// It gets these tags.
    AddTags(Vec<String>),
    /// It loses these tags, or all of them.
    RemoveTags(Vec<String>),
    /// Its note gets another line.
    AddNote(String),
    /// It has no note.
    RemoveNote,
}

/// Changes the tags or the note of a run, and returns them.
///
/// # Errors
///
/// [`Error::Refused`] if the folder is not that of a run, a tag is not one word, or a run does not have a tag that is to be removed.
///
/// ```
/// use burn_runner::ops::{self, LabelChange, LabelRun};
///
/// let options = LabelRun {
///     run: "src".into(),
///     change: LabelChange::AddTags(vec!["final".into()]),
/// };
/// assert!(ops::label_run(&options, &ops::quiet).is_err());
/// ```
pub fn label_run(options: &LabelRun, _: &Sink<'_>) -> Result<Label, Error> {
    let unreadable = |e: &std::io::Error| {
        let message = format!(
            "cannot label `{}`: {}",
            options.run.display(),
            plain_io_error(e)
        );
        Error::refused(Diagnostic::error("results", message).help(LABELS_REMEDY))
    };
    let (folder, name) = find(&options.run)?;
    if options.change == LabelChange::Show {
        let mut labels = folder.read_labels().map_err(|e| unreadable(&e))?;
        return Ok(labels.remove(&name).unwrap_or_default());
    }
    let changed = folder.change_labels(|labels| {
        let label = labels.entry(name).or_default();
        apply(&options.change, label).map(|()| label.clone())
    });
    changed.map_err(|error| match error {
        LabelError::Read(e) => unreadable(&e),
        LabelError::Refused(error) => error,
        LabelError::Write(e) => Error::unwritable(&folder.labels_json(), &e),
    })
}

fn apply(change: &LabelChange, label: &mut Label) -> Result<(), Error> {
    match change {
        LabelChange::Show => {}
        LabelChange::AddTags(tags) => {
            tags.iter().try_for_each(|tag| check_tag(tag))?;
            label.tags.extend(tags.iter().cloned());
        }
        LabelChange::RemoveTags(tags) if tags.is_empty() => label.tags.clear(),
        LabelChange::RemoveTags(tags) => {
            if let Some(missing) = tags.iter().find(|tag| !label.tags.contains(*tag)) {
                let there = if label.tags.is_empty() {
                    "it has none".to_owned()
                } else {
                    format!("its tags are {}", label.tags_in_words())
                };
                return Err(refused(&format!("the run has no tag `{missing}`"), &there));
            }
            label.tags.retain(|tag| !tags.contains(tag));
        }
        LabelChange::AddNote(text) => {
            let is_empty = label.note.is_empty();
            let line = if is_empty { "" } else { "\n" };
            label.note.push_str(&format!("{line}{}", text.trim()));
            if label.note.len() > MAX_NOTE {
                let message = format!("a note has at most {MAX_NOTE} bytes");
                return Err(refused(&message, "`--remove` deletes the present one"));
            }
        }
        LabelChange::RemoveNote => label.note.clear(),
    }
    Ok(())
}

fn check_tag(tag: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:/".contains(c);
    if !tag.is_empty() && tag.len() <= MAX_TAG && tag.chars().all(is_plain) {
        return Ok(());
    }
    Err(refused(
        &format!("`{tag}` is not a tag"),
        &format!(
            "a tag is one word of at most {MAX_TAG} bytes: letters, digits and `-_.:/`; `runner note` takes sentences"
        ),
    ))
}

fn refused(message: &str, help: &str) -> Error {
    Error::refused(Diagnostic::error("usage", message.to_owned()).help(help.to_owned()))
}

/// The experiment of a run's folder, and the name that its label has.
fn find(run: &Path) -> Result<(ExperimentFolder, String), Error> {
    let none = || {
        refused(
            &format!("`{}` is not the folder of a run", run.display()),
            "use a folder such as `results/mnist_sweep/runs/base-s1`; `runner list` shows the runs",
        )
    };
    let folder = ExperimentFolder::of_run(run).ok_or_else(none)?;
    let there = RunFolder(run.to_owned());
    let plan = there
        .read_planned()
        .map_err(|e| Error::unreadable(&e, &there))?
        .ok_or_else(none)?;
    Ok((folder, Look::name_of(&plan.id, &plan.fingerprint)))
}
