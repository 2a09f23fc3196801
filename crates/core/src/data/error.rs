//! What is wrong with data.

use crate::diagnostic::Diagnostic;

/// A data set that cannot be used, described for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct DataError {
    /// What is wrong.
    pub message: String,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// What to do about it.
    pub helps: Vec<String>,
    /// The key of the experiment file that causes it, `data.type` if empty.
    pub key: String,
}

impl DataError {
    /// An error with only a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            notes: Vec::new(),
            helps: Vec::new(),
            key: String::new(),
        }
    }

    /// Sets the key of the experiment file that causes it.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// Sets the key that causes it, unless it is already known.
    pub fn or_key(self, key: &str) -> Self {
        if self.key.is_empty() {
            self.key(key)
        } else {
            self
        }
    }

    /// Adds what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.helps.push(help.into());
        self
    }

    /// Adds the content of another error, so that both are reported at once.
    pub fn and(mut self, other: Self) -> Self {
        self.notes.push(format!("also, {}", other.message));
        self.notes.extend(other.notes);
        self.helps.extend(other.helps);
        self
    }

    /// Adds a fact that explains it.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The error as a diagnostic without a place.
    pub fn to_diagnostic(&self) -> Diagnostic {
        Diagnostic {
            notes: self.notes.clone(),
            helps: self.helps.clone(),
            ..Diagnostic::error("data", self.message.clone())
        }
    }
}

impl std::fmt::Display for DataError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        let mut more = self.notes.iter().chain(&self.helps);
        more.try_for_each(|line| write!(f, "; {line}"))
    }
}
