//! Values on their way from their source to their use.

use crate::diagnostic::Span;
use crate::spec::document::{Entry, Node, Table, Value};
use crate::spec::template::{Part, escaped, is_template, parts};

/// Whether names without a dot are parameters there.
pub(super) fn is_in_layers(path: &str) -> bool {
    path.starts_with("model.layers") || path.starts_with("model.blocks")
}

/// A value inserted by a reference.
pub(super) fn reached(node: Node, reference: Span) -> Node {
    let value = match node.value {
        Value::Array(items) => {
            let items = items.into_iter().map(|item| reached(item, reference));
            Value::Array(items.collect())
        }
        Value::Table(table) => {
            let entries = table.entries.into_iter().map(|entry| Entry {
                key: entry.key,
                key_span: entry.key_span.used_at(reference),
                node: reached(entry.node, reference),
            });
            let entries = entries.collect();
            Value::Table(Table { entries })
        }
        other => other,
    };
    let span = node.span.used_at(reference);
    Node { span, value }
}

/// A value in the form of a text that is parsed again.
pub(super) fn escape(node: Node) -> Node {
    each_text(node, &|text| escaped(&text))
}

/// A value in its parsed form.
pub(super) fn unescape(node: Node) -> Node {
    each_text(node, &|text| match parts(&text) {
        Some(parts) if is_template(&text) => {
            let parts = parts.into_iter().map(|part| match part {
                Part::Text(text) => text,
                _ => "${",
            });
            parts.collect()
        }
        _ => text,
    })
}

fn each_text(node: Node, change: &dyn Fn(String) -> String) -> Node {
    let span = node.span;
    let value = match node.value {
        Value::Str(text) => Value::Str(change(text)),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| each_text(item, change));
            Value::Array(items.collect())
        }
        Value::Table(table) => {
            let entries = table.entries.into_iter().map(|entry| Entry {
                key: entry.key,
                key_span: entry.key_span,
                node: each_text(entry.node, change),
            });
            let entries = entries.collect();
            Value::Table(Table { entries })
        }
        other => other,
    };
    Node { span, value }
}

/// Whether a value contains anything unresolved.
pub(super) fn has_expression(node: &Node) -> bool {
    match &node.value {
        Value::Str(text) => parts(text)
            .is_none_or(|parts| parts.iter().any(|part| matches!(part, Part::Expression(_)))),
        Value::Array(items) => items.iter().any(has_expression),
        Value::Table(table) => table.entries.iter().any(|e| has_expression(&e.node)),
        _ => false,
    }
}

pub(super) fn has_template(node: &Node) -> bool {
    match &node.value {
        Value::Str(text) => is_template(text),
        Value::Array(items) => items.iter().any(has_template),
        Value::Table(table) => table.entries.iter().any(|entry| has_template(&entry.node)),
        _ => false,
    }
}

/// The number of values, where a long text counts as several.
pub(in crate::spec) fn size(node: &Node) -> usize {
    match &node.value {
        Value::Str(text) => 1 + text.len() / 8,
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Table(table) => 1 + table.entries.iter().map(|e| size(&e.node)).sum::<usize>(),
        _ => 1,
    }
}

pub(super) fn head(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
