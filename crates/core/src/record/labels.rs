//! What people say of runs: tags and notes.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;

use serde::{Deserialize, Serialize};

use super::{ExperimentFolder, Look, RunEntry, format, lock, unwritable, write_json};
use crate::plan::FORMAT;

/// The tags and the note of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Its tags.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Its note, in lines.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Labels by run, as `<id>@<fingerprint>`: a run that is replaced keeps its own.
pub type Labels = BTreeMap<String, Label>;

/// `labels.json`.
#[derive(Serialize, Deserialize)]
struct File {
    format: u32,
    runs: Labels,
}

impl Label {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.note.is_empty()
    }

    /// Its tags, separated by commas.
    pub fn tags_in_words(&self) -> String {
        let tags: Vec<&str> = self.tags.iter().map(String::as_str).collect();
        tags.join(",")
    }
}

impl ExperimentFolder {
    /// The labels of runs.
    pub fn read_labels(&self) -> io::Result<Labels> {
        let file: Option<File> = format::read_json(&self.labels_json())?;
        Ok(file.map_or_else(Labels::new, |file| file.runs))
    }

    /// Keeps the label of a run that becomes other work: one that is extended is the same run with another fingerprint.
    pub fn keep_label(&self, id: &str, before: &str, after: &str) -> io::Result<()> {
        let [before, after] = [before, after].map(|fingerprint| Look::name_of(id, fingerprint));
        if !self.read_labels()?.contains_key(&before) {
            return Ok(());
        }
        let kept = self.change_labels::<(), Infallible>(|labels| {
            if let Some(label) = labels.remove(&before) {
                labels.insert(after, label);
            }
            Ok(())
        });
        kept.map_err(|error| match error {
            LabelError::Read(e) | LabelError::Write(e) => e,
            LabelError::Refused(never) => match never {},
        })
    }

    /// Changes the labels of runs, one process after the other; those that say nothing are not kept. Nothing is written
    /// if the change is refused.
    pub fn change_labels<T, E>(
        &self,
        change: impl FnOnce(&mut Labels) -> Result<T, E>,
    ) -> Result<T, LabelError<E>> {
        let lock = lock::wait_for_labels(&self.0).map_err(LabelError::Write)?;
        let mut labels = self.read_labels().map_err(LabelError::Read)?;
        let made = change(&mut labels).map_err(LabelError::Refused)?;
        labels.retain(|_, label| !label.is_empty());
        let path = self.labels_json();
        let file = File {
            format: FORMAT,
            runs: labels,
        };
        let written = write_json(&path, &file).map_err(|e| unwritable(&path, e));
        drop(lock);
        written.map(|()| made).map_err(LabelError::Write)
    }
}

/// Why labels were not changed.
#[derive(Debug)]
pub enum LabelError<E> {
    /// The file cannot be read.
    Read(io::Error),
    /// The change is refused.
    Refused(E),
    /// The file cannot be written.
    Write(io::Error),
}

/// Gives runs their labels.
pub(super) fn attach<'a>(labels: &Labels, runs: impl Iterator<Item = &'a mut RunEntry>) {
    if labels.is_empty() {
        return;
    }
    for run in runs {
        if let Some(label) = labels.get(&Look::name(run)) {
            run.label = label.clone();
        }
    }
}
