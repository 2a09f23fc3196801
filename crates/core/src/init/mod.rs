//! `runner init`: a first experiment file for data that somebody has.
//!
//! [`look`] finds out what a path holds, by the readers that runs use; [`Found::starter`] is a pure function
//! from that to the text of an experiment file with every line explained. What is guessed is said, so that
//! a wrong guess is easily mended.

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

/// What a path holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How it is read.
    pub kind: DataKind,
    /// The path as the experiment file is to name it.
    pub path: String,
    /// Further keys of `[data]` that reading takes.
    pub keys: Vec<Line>,
    /// What has to be said of single columns, below their names.
    pub said: Vec<(String, Vec<Line>)>,
    /// The columns, measured.
    pub columns: Vec<ColumnProfile>,
    /// Items that there are.
    pub num_items: usize,
    /// What is most likely a mistake in the data.
    pub warnings: Vec<DataError>,
}

/// What the user asks for, and where the file will stand.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wishes {
    /// What is to be learned; guessed when not asked for.
    pub task: Option<TaskKind>,
    /// The schema's path from the experiment file, where it is near.
    pub schema: Option<String>,
    /// The experiment file as commands name it.
    pub file: String,
}

/// A key with its value as TOML, and what it means in plain words.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    key: String,
    value: String,
    meaning: String,
}

impl Line {
    /// A line with a value that is TOML already.
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

/// Names as TOML: one alone, several as a list.
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
