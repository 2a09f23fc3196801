//! Probable mistakes in how files are read, with the keys that fix them.

use serde::{Deserialize, Serialize};

use super::DataError;
use crate::spec::data::ColumnType;

/// Something odd that was found while files were read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Oddity {
    /// The affected columns, which matter only if one of them is used; empty if it affects the files.
    pub columns: Vec<String>,
    /// What is odd.
    pub message: String,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// What to do about it.
    pub helps: Vec<String>,
    /// Whether a run with these columns would probably learn from wrong values.
    pub is_refused: bool,
    /// The keys that fix it, if they are clear.
    pub fix: Fix,
}

/// Keys of `[data]` and `[[data.columns]]` that read the files correctly.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fix {
    /// `decimal`
    pub decimal: Option<char>,
    /// `thousands`
    pub thousands: Option<char>,
    /// `strip`
    pub strip: Vec<String>,
    /// `skip_rows_after_header`
    pub skip_rows_after_header: usize,
    /// `skip_footer`
    pub skip_footer: usize,
    /// `type` of the columns.
    pub kind: Option<ColumnType>,
    /// `date_format` of the columns.
    pub date_format: Option<String>,
    /// `missing_values` of the columns.
    pub missing_values: Vec<String>,
}

impl Oddity {
    /// Something odd about some columns.
    pub fn new(columns: Vec<String>, message: impl Into<String>) -> Self {
        Self {
            columns,
            message: message.into(),
            ..Self::default()
        }
    }

    /// Adds a fact that explains it.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.helps.push(help.into());
        self
    }

    /// As an error or a warning.
    pub fn error(&self) -> DataError {
        DataError {
            message: self.message.clone(),
            notes: self.notes.clone(),
            helps: self.helps.clone(),
            key: "data.path".to_owned(),
        }
    }

    /// Whether it matters to a user of some columns.
    pub fn is_about(&self, uses: &mut dyn FnMut(&str) -> bool) -> bool {
        self.columns.is_empty() || self.columns.iter().any(|column| uses(column))
    }
}
