//! The texts that an experiment was read from, and places in them.

use std::ops::Range;
use std::path::PathBuf;

/// A byte range in one of the texts that an experiment was read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Index into [`Sources`].
    pub source: u16,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// The reference that inserted the text here, if any: the text may be wrong only in this place.
    pub via: Option<Use>,
}

/// The byte range of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Use {
    /// Index into [`Sources`].
    pub source: u16,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A range of bytes of a source.
    pub fn of(source: u16, bytes: Range<usize>) -> Self {
        Self {
            source,
            start: bytes.start as u32,
            end: bytes.end as u32,
            via: None,
        }
    }

    /// The same place, reached through the reference at `reference`.
    pub fn used_at(self, reference: Span) -> Self {
        let Span {
            source, start, end, ..
        } = reference;
        let via = Some(Use { source, start, end });
        Self { via, ..self }
    }

    /// The reference that inserted the text here, if any.
    pub fn use_span(self) -> Option<Span> {
        let Use { source, start, end } = self.via?;
        Some(Span {
            source,
            start,
            end,
            via: None,
        })
    }
}

/// A text and the name that messages give it.
#[derive(Clone, Debug)]
pub struct Source {
    /// A path as the user typed it, or the flag that the text came from.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// The text that includes this one with `extends`.
    pub extended_by: Option<u16>,
    /// The folder that its relative paths start from, relative to the folder of the first text.
    pub folder: PathBuf,
    /// Tables that inherit nothing from the tables below them in other files, together with those.
    pub restarts: Vec<(Span, Span)>,
}

/// The texts that spans point into, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct Sources(pub Vec<Source>);

impl Sources {
    /// Adds a text and returns its index.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> u16 {
        self.0.push(Source {
            name: name.into(),
            text: text.into(),
            extended_by: None,
            folder: PathBuf::new(),
            restarts: Vec::new(),
        });
        (self.0.len() - 1) as u16
    }

    /// The text at a place; empty where there is none.
    pub fn text(&self, span: Span) -> &str {
        let source = self.0.get(span.source as usize);
        source.map_or("", |source| &source.text[range(span, &source.text)])
    }

    /// A place as `file:line`, or only the name for a source that is not a file.
    pub fn line(&self, span: Span) -> String {
        let Some(source) = self.0.get(span.source as usize) else {
            return String::new();
        };
        let before = &source.text[..range(span, &source.text).start];
        if source.name.starts_with("--") {
            source.name.clone()
        } else {
            format!("{}:{}", source.name, 1 + before.matches('\n').count())
        }
    }

    /// The note about a table that inherits nothing.
    pub(super) fn restart(&self, table: Span) -> Option<String> {
        let source = self.0.get(table.source as usize)?;
        let (_, below) = source.restarts.iter().find(|(anew, _)| *anew == table)?;
        let below = self.line(*below);
        Some(format!(
            "the table at {below} has another `type`, so none of its keys are inherited"
        ))
    }

    /// How a text was included: the chain of files that extend it, from the first one.
    pub fn chain(&self, source: u16) -> Option<String> {
        let mut names = Vec::new();
        let mut next = Some(source);
        while let Some(at) = next {
            let source = self.0.get(at as usize)?;
            names.push(format!("`{}`", source.name));
            next = source.extended_by;
        }
        names.reverse();
        let [first, second, rest @ ..] = names.as_slice() else {
            return None;
        };
        let rest: String = rest
            .iter()
            .map(|name| format!(", which extends {name}"))
            .collect();
        Some(format!("{first} extends {second}{rest}"))
    }
}

/// The span as a range within the text and at character boundaries, whatever a parser reported.
pub(super) fn range(span: Span, text: &str) -> std::ops::Range<usize> {
    let clamp = |at: u32| {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (clamp(span.start), clamp(span.end));
    start..end.max(start)
}
