//! Located messages to the user: what is wrong, where, why, and what to do about it.
//!
//! Knows texts and byte ranges, but not what the texts mean. Rendering is deterministic, so that snapshots can pin
//! every message.

mod circle;
mod count;
mod json;
mod list;
mod nearest;
mod place;
mod printable;
mod reason;
mod render;
mod wrong;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

pub use circle::circle;
pub use count::{counted, grouped};
pub use list::Diagnostics;
pub use nearest::nearest;
pub use place::{Source, Sources, Span, Use};
pub use printable::{is_odd, masked, printable, printable_in_color, printable_lines};
pub use reason::Reason;
pub use wrong::Wrong;

/// Whether a diagnostic stops the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The experiment is refused.
    Error,
    /// The experiment runs, but the user should know about it.
    Warning,
}

/// One message to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it stops the experiment.
    pub severity: Severity,
    /// The rule that emitted it, for example `unknown-key`.
    pub code: &'static str,
    /// What is wrong, as a lowercase phrase.
    pub message: String,
    /// Where; `None` if it has no place in a text.
    pub span: Option<Span>,
    /// A label for the marked text, shown next to the mark.
    pub label: String,
    /// Other places that belong to the message.
    pub related: Vec<(Span, String)>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// What to do about it.
    pub helps: Vec<String>,
    /// Hashes of messages of the same rule that were omitted after this one, so that each counts once.
    pub left_out: BTreeSet<u64>,
}

impl Diagnostic {
    /// An error without a place; [`Diagnostic::at`] gives it one.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span: None,
            label: String::new(),
            related: Vec::new(),
            notes: Vec::new(),
            helps: Vec::new(),
            left_out: BTreeSet::new(),
        }
    }

    /// Whether another message says the same about the same place.
    fn is_same(&self, other: &Self) -> bool {
        self.span == other.span && self.code == other.code && self.message == other.message
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.span, self.code, &self.message).hash(&mut hasher);
        hasher.finish()
    }

    /// The note about the messages that were omitted after this one.
    fn rest(&self) -> Option<String> {
        let num = self.left_out.len();
        (num > 0).then(|| format!("and {} more like this", grouped(num as u64)))
    }

    /// A warning without a place.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, message)
        }
    }

    /// Points at `span`.
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Labels the marked text.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Points at another place that belongs to the message.
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }

    /// Adds a fact that explains the message.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.helps.push(help.into());
        self
    }
}
