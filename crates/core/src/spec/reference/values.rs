//! Which values are used.

use std::collections::BTreeSet;

use super::joined;
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::SWEEP_TABLES;
use crate::spec::document::{Document, Node, Table, Value, touch};
use crate::spec::expression::names_in;
use crate::spec::template::{Part, is_template, parts};

/// Removes unused entries of `[values]`.
pub fn drop_unused_values(root: &mut Table) {
    let used = used_names(root);
    let Some(at) = root.entries.iter().position(|entry| entry.key == "values") else {
        return;
    };
    if let Value::Table(values) = &mut root.entries[at].node.value {
        keep_used(values, "values", &used);
        if values.entries.is_empty() {
            root.entries.remove(at);
        }
    }
}

fn keep_used(table: &mut Table, above: &str, used: &BTreeSet<String>) {
    table.entries.retain_mut(|entry| {
        let path = joined(above, &entry.key);
        if is_reached(&path, used) {
            return true;
        }
        let is_below = is_entered(&path, used);
        if let Value::Table(inner) = &mut entry.node.value {
            keep_used(inner, &path, used);
        }
        is_below
    });
}

/// Warns about unused values, also those that only axes set. Those in a file that others extend may be used elsewhere.
pub fn unused_values<'a>(
    document: &Document,
    axes: impl Iterator<Item = (&'a str, Span)>,
) -> Vec<Diagnostic> {
    let root = &document.root;
    let used = used_names(root);
    let is_unused = |key: &str| !is_reached(key, &used) && !is_entered(key, &used);
    let of_axes = axes
        .filter(|(key, _)| key.starts_with("values.") && root.at(key).is_none() && is_unused(key));
    let mut warnings: Vec<Diagnostic> = of_axes.map(|(key, span)| never_used(key, span)).collect();
    let Some(Value::Table(values)) = root.get("values").map(|entry| &entry.node.value) else {
        return warnings;
    };
    let is_base = |span: Span| {
        let source = document.sources.0.get(span.source as usize);
        source.is_some_and(|source| source.extended_by.is_some())
    };
    warn_of_unused(values, "values", &used, &is_base, &mut warnings);
    warnings
}

fn warn_of_unused(
    table: &Table,
    above: &str,
    used: &BTreeSet<String>,
    is_base: &dyn Fn(Span) -> bool,
    warnings: &mut Vec<Diagnostic>,
) {
    for entry in &table.entries {
        let path = joined(above, &entry.key);
        if is_reached(&path, used) || is_base(entry.key_span) {
            continue;
        }
        match &entry.node.value {
            Value::Table(inner) => warn_of_unused(inner, &path, used, is_base, warnings),
            _ if is_entered(&path, used) => {}
            _ => warnings.push(never_used(&path, entry.key_span)),
        }
    }
}

fn never_used(path: &str, span: Span) -> Diagnostic {
    Diagnostic::warning("unused-value", format!("`{path}` is never used"))
        .at(span)
        .help(format!(
            "use `\"${{{path}}}\"` where it is needed, or remove it"
        ))
}

/// Whether a name is that of a key, or of a table around it.
fn is_reached(path: &str, used: &BTreeSet<String>) -> bool {
    let ends = path.match_indices('.').map(|(at, _)| at);
    ends.chain([path.len()])
        .any(|end| used.contains(&path[..end]))
}

/// Whether a name is that of a key inside a table.
fn is_entered(path: &str, used: &BTreeSet<String>) -> bool {
    let inside = format!("{path}.");
    let next = used.range(inside.clone()..).next();
    next.is_some_and(|name| name.starts_with(&inside))
}

/// The keys that take their values from some keys by expressions, also through others: with an axis over `values.width`,
/// those that contain `${values.width}`.
pub fn depending(root: &Table, on: &[String]) -> Vec<String> {
    let mut named: Vec<(String, Vec<String>)> = Vec::new();
    let mut see = |key: &str, inner: &str| {
        let names = names_in(inner).into_iter().map(str::to_owned);
        named.push((key.to_owned(), names.collect()));
    };
    let entries = root.entries.iter();
    for entry in entries.filter(|entry| !SWEEP_TABLES.contains(&entry.key.as_str())) {
        expressions_of(&entry.key, &entry.node, &mut see);
    }
    let mut found: Vec<String> = Vec::new();
    loop {
        let num = found.len();
        for (key, names) in &named {
            let uses = |of: &String| names.iter().any(|name| touch(name, of));
            if !found.contains(key) && !on.contains(key) && on.iter().chain(&found).any(uses) {
                found.push(key.clone());
            }
        }
        if found.len() == num {
            return found;
        }
    }
}

/// The names in all expressions of a tree.
fn used_names(root: &Table) -> BTreeSet<String> {
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut see = |inner: &str| used.extend(names_in(inner).into_iter().map(str::to_owned));
    expressions(root, &mut see);
    // Conditions of a sweep are expressions without `${`.
    if let Some(Value::Table(sweep)) = root.get("sweep").map(|entry| &entry.node.value) {
        bare_texts(sweep, &mut see);
    }
    used
}

/// Calls `see` with every `${…}` below a table.
pub(super) fn expressions(table: &Table, see: &mut dyn FnMut(&str)) {
    for entry in &table.entries {
        expressions_of(&entry.key, &entry.node, &mut |_, inner| see(inner));
    }
}

/// Calls `see` with the key and the text of every `${…}` at or below a key.
fn expressions_of(key: &str, node: &Node, see: &mut dyn FnMut(&str, &str)) {
    match &node.value {
        Value::Str(text) => {
            for part in parts(text).unwrap_or_default() {
                if let Part::Expression(inner) = part {
                    see(key, inner);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                expressions_of(&format!("{key}[{at}]"), item, see);
            }
        }
        Value::Table(table) => {
            for entry in &table.entries {
                expressions_of(&joined(key, &entry.key), &entry.node, see);
            }
        }
        _ => {}
    }
}

fn bare_texts(table: &Table, see: &mut dyn FnMut(&str)) {
    fn inside(node: &Node, see: &mut dyn FnMut(&str)) {
        match &node.value {
            Value::Str(text) if !is_template(text) => see(text),
            Value::Array(items) => items.iter().for_each(|item| inside(item, see)),
            Value::Table(table) => bare_texts(table, see),
            _ => {}
        }
    }
    table
        .entries
        .iter()
        .for_each(|entry| inside(&entry.node, see));
}
