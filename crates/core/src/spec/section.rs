//! A single declaration of a table's keys, used for two purposes.
//!
//! Each spec type has one `decode` function that requests its keys from a [`Section`]. With a document the section
//! reads, checks and reports; without one it records the keys, and the JSON Schema is generated from that record. So
//! the checker and the schema cannot disagree, and every default is defined once.

mod axes;
mod choice;
mod doc;
mod field;
mod tables;
mod unknown;

use super::document::{Entry, Node, Table, Value};
use super::kind::{Kind, Scalar};
use crate::diagnostic::{Diagnostic, Diagnostics, Span};

pub(super) use axes::collect_axes;
pub(super) use choice::choices;
pub use choice::{Choice, Types, by_name};
pub(crate) use doc::joined;
pub use doc::{KeyDoc, Shape, Variant};
pub use field::Field;

/// The findings of reading a document.
#[derive(Debug, Default)]
pub struct Findings {
    /// The messages.
    pub diagnostics: Diagnostics,
    /// Paths whose values are invalid and were replaced by a placeholder: rules that need them are not run.
    pub poisoned: Vec<String>,
}

impl Findings {
    /// Whether the value at `path`, or one above or below it, is a placeholder.
    pub fn is_poisoned(&self, path: &str) -> bool {
        let under = |a: &str, b: &str| {
            a.is_empty() || a == b || (b.starts_with(a) && b".[".contains(&b.as_bytes()[a.len()]))
        };
        let mut poisoned = self.poisoned.iter();
        poisoned.any(|p| under(p, path) || under(path, p))
    }

    /// Reports that the value at `path` is invalid, and marks it as a placeholder. One that is a placeholder already is
    /// not missing.
    pub fn refuse(&mut self, path: impl Into<String>, diagnostic: Diagnostic) {
        let path = path.into();
        if diagnostic.code != "missing-key" || !self.is_poisoned(&path) {
            self.diagnostics.push(diagnostic);
        }
        self.poisoned.push(path);
    }
}

/// A table of the experiment file while it is being decoded.
pub struct Section<'a> {
    path: String,
    /// What messages append to the path, such as the type of the table.
    remark: String,
    mode: Mode<'a>,
    known: Vec<&'static str>,
}

enum Mode<'a> {
    Read {
        table: Option<&'a Table>,
        span: Span,
        findings: &'a mut Findings,
        /// A placeholder for a table that was already reported.
        silent: bool,
    },
    Describe(&'a mut Vec<KeyDoc>),
}

/// Decodes the root table of a document.
pub fn read<T>(root: &Table, findings: &mut Findings, decode: impl Fn(&mut Section<'_>) -> T) -> T {
    let mode = Mode::Read {
        table: Some(root),
        span: Span::default(),
        findings,
        silent: false,
    };
    run_section(String::new(), mode, decode)
}

/// Decodes a table at `path`; `span` is where a missing key is reported.
pub fn read_at<T>(
    table: &Table,
    path: String,
    span: Span,
    findings: &mut Findings,
    decode: impl Fn(&mut Section<'_>) -> T,
) -> T {
    let mode = Mode::Read {
        table: Some(table),
        span,
        findings,
        silent: false,
    };
    run_section(path, mode, decode)
}

/// Records the keys that `decode` requests.
pub fn describe<T>(decode: impl Fn(&mut Section<'_>) -> T) -> Vec<KeyDoc> {
    let mut keys = Vec::new();
    run_section(String::new(), Mode::Describe(&mut keys), decode);
    keys
}

fn run_section<T>(path: String, mode: Mode<'_>, decode: impl Fn(&mut Section<'_>) -> T) -> T {
    let mut section = Section {
        path,
        remark: String::new(),
        mode,
        known: Vec::new(),
    };
    let value = decode(&mut section);
    section.refuse_unknown_keys();
    value
}

impl<'a> Section<'a> {
    /// Requests a value; the returned [`Field`] determines what happens if it is not set.
    pub fn field<T: Scalar>(
        &mut self,
        key: &'static str,
        kind: Kind,
        doc: &'static str,
    ) -> Field<'_, 'a, T> {
        self.known.push(key);
        Field {
            section: self,
            key,
            kind,
            doc,
            marker: std::marker::PhantomData,
        }
    }

    /// One of a fixed set of names, with `default` if it is not set.
    pub fn choice<T: Choice>(&mut self, key: &'static str, doc: &'static str, default: T) -> T {
        let name: String = self
            .field(key, Kind::of_choice::<T>(), doc)
            .or(default.name().to_owned());
        by_name(&name).unwrap_or(default)
    }

    /// Whether the key is set; always true in the schema.
    pub fn is_written(&self, key: &str) -> bool {
        match &self.mode {
            Mode::Describe(_) => true,
            Mode::Read { table, .. } => table.is_some_and(|t| t.get(key).is_some()),
        }
    }

    /// The value of a key of one of its tables, before that is decoded.
    pub(crate) fn written_in(&self, table: &str, key: &str) -> Option<&Value> {
        let Mode::Read { table: root, .. } = &self.mode else {
            return None;
        };
        match &root.as_ref()?.get(table)?.node.value {
            Value::Table(inner) => Some(&inner.get(key)?.node.value),
            _ => None,
        }
    }

    /// Marks a key as handled elsewhere.
    pub fn known(&mut self, key: &'static str) {
        self.known.push(key);
    }

    /// The place of a key's value.
    pub fn written_at(&self, key: &str) -> Option<Span> {
        match &self.mode {
            Mode::Describe(_) => None,
            Mode::Read { table, .. } => Some(table.as_ref()?.get(key)?.node.span),
        }
    }

    /// The value of a key with its place, or `default`.
    pub fn argument(
        &mut self,
        key: &'static str,
        kind: Kind,
        doc: &'static str,
        default: &Node,
    ) -> Node {
        let read = self
            .field::<Value>(key, kind, doc)
            .take(Some(default.value.to_json()), false);
        match (&self.mode, read) {
            (Mode::Read { table, .. }, Some(_)) => {
                let entry = table.and_then(|t| t.get(key));
                entry.map_or_else(|| default.clone(), |entry| entry.node.clone())
            }
            _ => default.clone(),
        }
    }

    /// The entry of a key that is decoded elsewhere.
    pub fn raw(&mut self, key: &'static str, doc: &'static str, shape: Shape) -> Option<Entry> {
        self.known.push(key);
        match &mut self.mode {
            Mode::Describe(keys) => {
                keys.push(KeyDoc {
                    key,
                    doc,
                    shape,
                    default: None,
                    required: false,
                    is_optional: false,
                });
                None
            }
            Mode::Read { table, .. } => table.and_then(|t| t.get(key)).cloned(),
        }
    }

    /// The place of this table and the destination of its findings; `None` if there is nothing to read, or if the table
    /// was already refused.
    pub fn reading(&mut self) -> Option<(Span, &mut Findings)> {
        match &mut self.mode {
            Mode::Read {
                span,
                findings,
                silent: false,
                ..
            } => Some((*span, findings)),
            _ => None,
        }
    }

    /// Whether the value of a key was refused.
    pub fn is_refused(&self, key: &str) -> bool {
        match &self.mode {
            Mode::Describe(_) => false,
            Mode::Read { findings, .. } => findings.is_poisoned(&self.path_of(key)),
        }
    }

    /// Refuses the value of a key for other reasons than its kind.
    pub fn refuse(&mut self, key: &str, diagnostic: Diagnostic) {
        let path = self.path_of(key);
        if let Some((_, findings)) = self.reading() {
            findings.refuse(path, diagnostic);
        }
    }

    /// Refuses a key that is set without effect: `why`, such as "without `rotary`", and what to set `instead`.
    pub(crate) fn refuse_unused(&mut self, key: &str, why: &str, instead: &str) {
        if let Some(at) = self.written_at(key) {
            let message = format!("`{key}` has no effect {why}");
            let wrong = Diagnostic::error("contradiction", message).at(at);
            self.refuse(key, wrong.help(format!("set {instead}, or remove `{key}`")));
        }
    }

    /// The `type` key of this table: `decode` requests the keys that the type adds. Without a `default` the key is
    /// required.
    pub fn variant<T: Types, O>(
        &mut self,
        doc: &'static str,
        default: Option<T>,
        decode: impl Fn(&mut Section<'_>, T) -> O,
    ) -> O {
        const KEY: &str = "type";
        let all = T::all();
        let default_name = default.and_then(|default| {
            let found = all.iter().find(|(value, _, _)| *value == default);
            found.map(|(_, name, _)| *name)
        });
        if let Mode::Describe(keys) = &mut self.mode {
            let mut variants = Vec::new();
            let mut first = None;
            for &(value, name, doc) in &all {
                let mut inner = Vec::new();
                let mode = Mode::Describe(&mut inner);
                let decoded = run_section(self.path.clone(), mode, |s| decode(s, value));
                first.get_or_insert(decoded);
                variants.push(Variant {
                    name,
                    doc,
                    keys: inner,
                });
            }
            keys.push(KeyDoc {
                key: KEY,
                doc,
                shape: Shape::Variants(variants),
                default: default_name.map(Into::into),
                required: default.is_none(),
                is_optional: false,
            });
            return first.expect("a choice has at least one value");
        }
        if default.is_none() && self.refuse_other_word_for_type() {
            return decode(self, all[0].0);
        }
        let field = self.field::<String>(KEY, Kind::of_types::<T>(), doc);
        let name = match default_name {
            // An invalid name does not select the default.
            Some(default) => match field.take(None, false) {
                None if !self.is_written(KEY) => default.to_owned(),
                name => name.unwrap_or_default(),
            },
            None => field.required(),
        };
        match all.iter().find(|(_, known, _)| *known == name) {
            Some((value, _, _)) => {
                self.remark = format!(" (type `{name}`)");
                decode(self, *value)
            }
            None => {
                // The type is wrong, so the other keys cannot be checked.
                if let Mode::Read { table, silent, .. } = &mut self.mode {
                    (*table, *silent) = (None, true);
                }
                decode(self, all[0].0)
            }
        }
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn place(&self) -> String {
        if self.path.is_empty() {
            "the experiment file".into()
        } else {
            format!("`{}`{}", self.path, self.remark)
        }
    }
}
