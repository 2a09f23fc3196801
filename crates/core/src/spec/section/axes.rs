//! Tables of axes: dotted paths, or nested tables, with what varies at their ends.

use super::{Section, Shape};
use crate::diagnostic::Diagnostic;
use crate::spec::document::{Entry, Table, Value};

impl Section<'_> {
    /// The entries of a table of axes: dotted paths, or nested tables, that end in a value that is not a table, or in a
    /// table that `is_axis`.
    pub fn axes(
        &mut self,
        key: &'static str,
        doc: &'static str,
        shape: Shape,
        example: &str,
        is_axis: impl Fn(&Entry, &Table) -> bool,
    ) -> Vec<(String, Entry)> {
        let path = self.path_of(key);
        let Some(entry) = self.raw(key, doc, shape) else {
            return Vec::new();
        };
        let mut axes = Vec::new();
        match (&entry.node.value, self.reading()) {
            (Value::Table(table), _) => collect_axes(table, "", &is_axis, &mut axes),
            (other, Some((_, findings))) => {
                let message = format!("`{path}` must be a table of axes, found {}", other.kind());
                let help = format!("add `[{path}]`, with lines such as `{example}` below it");
                let wrong = Diagnostic::error("wrong-type", message).at(entry.node.span);
                findings.refuse(path, wrong.help(help));
            }
            _ => {}
        }
        axes
    }
}

/// The entries below a table, by their path from it: tables are walked into unless they are axes.
pub(in crate::spec) fn collect_axes(
    table: &Table,
    prefix: &str,
    is_axis: &dyn Fn(&Entry, &Table) -> bool,
    axes: &mut Vec<(String, Entry)>,
) {
    for entry in &table.entries {
        let path = if prefix.is_empty() {
            entry.key.clone()
        } else {
            format!("{prefix}.{}", entry.key)
        };
        match &entry.node.value {
            Value::Table(inner) if !is_axis(entry, inner) => {
                collect_axes(inner, &path, is_axis, axes)
            }
            _ => axes.push((path, entry.clone())),
        }
    }
}
