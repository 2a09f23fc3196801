//! What people say of runs: tags and notes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::{Deserialize, Serialize};

use super::{ExperimentFolder, Look, RunEntry, format, unwritable, write_json};
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

    /// Writes the labels of runs, without those that say nothing.
    pub fn write_labels(&self, mut labels: Labels) -> io::Result<()> {
        labels.retain(|_, label| !label.is_empty());
        let path = self.labels_json();
        let file = File {
            format: FORMAT,
            runs: labels,
        };
        write_json(&path, &file).map_err(|e| unwritable(&path, e))
    }
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
