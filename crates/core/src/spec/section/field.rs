//! A requested key: what happens if it is not set, or its value is invalid.

use serde_json::Value as Json;

use super::{KeyDoc, Mode, Section, Shape};
use crate::diagnostic::Diagnostic;
use crate::spec::kind::{Kind, Scalar};

/// A requested key.
pub struct Field<'s, 'a, T> {
    pub(super) section: &'s mut Section<'a>,
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    pub(super) doc: &'static str,
    pub(super) marker: std::marker::PhantomData<T>,
}

impl<T: Scalar> Field<'_, '_, T> {
    /// The value, or `default` if it is not set.
    pub fn or(self, default: T) -> T {
        let shown = default.to_json();
        self.take(Some(shown), false).unwrap_or(default)
    }

    /// The value, if it is set.
    pub fn optional(self) -> Option<T> {
        self.take(None, false)
    }

    /// The value, which is required.
    pub fn required(self) -> T {
        self.take(None, true).unwrap_or_else(T::stand_in)
    }

    pub(super) fn take(self, default: Option<Json>, required: bool) -> Option<T> {
        if let Mode::Read { table, .. } = &self.section.mode {
            // Most values are valid or not set, and a sweep reads very many: no text is formatted for those.
            match table.and_then(|table| table.get(self.key)) {
                Some(entry) if self.kind.check("", &entry.node).is_empty() => {
                    return Some(T::from_value(&entry.node.value));
                }
                None if !required => return None,
                _ => {}
            }
        }
        let path = self.section.path_of(self.key);
        let place = self.section.place();
        match &mut self.section.mode {
            Mode::Describe(keys) => {
                keys.push(KeyDoc {
                    key: self.key,
                    doc: self.doc,
                    shape: Shape::Scalar(self.kind),
                    default,
                    required,
                    is_optional: false,
                });
                None
            }
            Mode::Read {
                table,
                span,
                findings,
                silent,
            } => match table.and_then(|t| t.get(self.key)) {
                Some(entry) => {
                    let wrong = self.kind.check_as(&path, &entry.node, default.as_ref());
                    wrong.into_iter().for_each(|d| findings.diagnostics.push(d));
                    findings.poisoned.push(path);
                    None
                }
                None if required && !*silent => {
                    let message = format!("missing key `{}` in {place}", self.key);
                    let missing = Diagnostic::error("missing-key", message)
                        .at(*span)
                        .label(format!("`{}` must be set here", self.key))
                        .help(format!("add `{} = …`, {}", self.key, self.kind.expected()));
                    findings.refuse(path, missing);
                    None
                }
                None => None,
            },
        }
    }
}
