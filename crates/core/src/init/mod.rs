//! `runner init`: a first experiment file for the user's data.
//!
//! [`look`] inspects a path with the readers that runs use; [`Found::starter`] is a pure function from the findings to
//! the text of an experiment file with a comment on every line. Guesses are labeled, so that a wrong one is easy to
//! fix.

mod guess;
mod look;
mod mend;
mod pictures;
mod write;

pub use look::look;
pub use write::starter_on_iris;

use crate::data::DataError;
use crate::data::profile::ColumnProfile;
use crate::spec::data::DataKind;
use crate::spec::task::TaskKind;

/// The content of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its format.
    pub kind: DataKind,
    /// The path for the experiment file.
    pub path: String,
    /// Further keys of `[data]` that reading needs.
    pub keys: Vec<Line>,
    /// Settings of single columns, below their names.
    pub said: Vec<(String, Vec<Line>)>,
    /// The columns, measured.
    pub columns: Vec<ColumnProfile>,
    /// Number of items.
    pub num_items: usize,
    /// Probable mistakes in the data.
    pub warnings: Vec<DataError>,
}

/// The user's request, and the location of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// The task; inferred if not given.
    pub task: Option<TaskKind>,
    /// The path of the schema from the experiment file, if it is nearby.
    pub schema: Option<String>,
    /// The experiment file in commands.
    pub file: String,
}

/// A key with its value as TOML, and a plain description.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    key: String,
    value: String,
    meaning: String,
}

impl Line {
    /// A line with a value that is already TOML.
    pub fn new(
        key: impl Into<String>,
        value: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            meaning: meaning.into(),
        }
    }

    /// A line with a text.
    pub fn text(key: impl Into<String>, text: &str, meaning: impl Into<String>) -> Self {
        Self::new(key, quoted(text), meaning)
    }
}

/// A text as TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Names as TOML: a single string, or a list.
fn quoted_all(names: &[String]) -> String {
    match names {
        [name] => quoted(name),
        _ => {
            let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
            format!("[{}]", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
