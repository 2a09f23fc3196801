//! Tables below a table, and lists of tables.

use super::{Findings, KeyDoc, Mode, Section, Shape, read_at, run_section};
use crate::diagnostic::Diagnostic;
use crate::spec::document::{Entry, Node, Table, Value};
use crate::spec::hints::{keys_of_types, required_keys};
use crate::spec::remedy;

impl Section<'_> {
    /// A list of tables, `[[…]]`, whose keys `decode` requests; empty if it is not set.
    pub fn tables<T>(
        &mut self,
        key: &'static str,
        doc: &'static str,
        required: bool,
        decode: impl Fn(&mut Section<'_>) -> T,
    ) -> Vec<T> {
        self.known.push(key);
        let path = self.path_of(key);
        let place = self.place();
        let (entry, span, findings, silent) = match &mut self.mode {
            Mode::Describe(keys) => {
                let tables = |inner| Shape::Tables(inner);
                let header = (key, doc, required);
                return vec![describe_table(keys, header, path, tables, decode)];
            }
            Mode::Read {
                table,
                span,
                findings,
                silent,
            } => (table.and_then(|t| t.get(key)), span, findings, silent),
        };
        let help =
            format!("add `[[{path}]]` on a separate line for each table, with its keys below");
        let items = match entry {
            Some(entry) => items(entry, &path, required),
            None if required && !*silent => {
                let message = format!("missing `[[{path}]]` in {place}");
                Err(Box::new(
                    Diagnostic::error("missing-table", message).at(*span),
                ))
            }
            None => Ok(&[][..]),
        };
        match items {
            Ok(items) => decode_items(items, &path, &help, findings, decode),
            Err(wrong) => {
                findings.refuse(path, wrong.help(help));
                Vec::new()
            }
        }
    }

    /// A table whose keys `decode` requests. If it is not set, neither are its keys.
    pub fn table<T>(
        &mut self,
        key: &'static str,
        doc: &'static str,
        required: bool,
        decode: impl Fn(&mut Section<'_>) -> T,
    ) -> T {
        self.known.push(key);
        let path = self.path_of(key);
        match &mut self.mode {
            Mode::Describe(keys) => {
                let table = |inner| Shape::Table(inner);
                describe_table(keys, (key, doc, required), path, table, decode)
            }
            Mode::Read {
                table,
                findings,
                silent,
                span,
            } => {
                let entry = table.and_then(|t| t.get(key));
                let (inner, inner_span, inner_silent) = match entry.map(|e| (&e.node.value, e)) {
                    Some((Value::Table(inner), entry)) => (Some(inner), entry.key_span, *silent),
                    Some((other, entry)) => {
                        let message = format!("`{path}` must be a table, found {}", other.kind());
                        // Its parent may be written in braces, where it cannot have a header.
                        let is_within = path.contains(['[', '.']);
                        let help = match (remedy::for_scalar(&path, other), is_within) {
                            (Some(help), _) => help,
                            (None, true) => format!("use a table: `{key} = {{ … }}`"),
                            (None, false) => {
                                let keys = keys_for(&path, other);
                                format!("add `[{path}]` on a separate line, {keys}")
                            }
                        };
                        let wrong = Diagnostic::error("wrong-type", message);
                        findings.refuse(path.clone(), wrong.at(entry.node.span).help(help));
                        (None, entry.key_span, true)
                    }
                    None => {
                        if required && !*silent {
                            let keys = required_keys(&path);
                            let help =
                                format!("add a line `[{path}]`, and below it at least {keys}");
                            let message = format!("missing table `[{path}]`");
                            let missing = Diagnostic::error("missing-table", message);
                            findings.refuse(path.clone(), missing.at(*span).help(help));
                        }
                        (None, *span, required || *silent)
                    }
                };
                let mode = Mode::Read {
                    table: inner,
                    span: inner_span,
                    findings,
                    silent: inner_silent,
                };
                run_section(path, mode, decode)
            }
        }
    }

    /// A table that may be absent.
    pub fn optional_table<T>(
        &mut self,
        key: &'static str,
        doc: &'static str,
        decode: impl Fn(&mut Section<'_>) -> T,
    ) -> Option<T> {
        if self.is_written(key) {
            let value = self.table(key, doc, false, decode);
            if let Mode::Describe(keys) = &mut self.mode
                && let Some(doc) = keys.last_mut()
            {
                doc.is_optional = true;
            }
            Some(value)
        } else {
            self.known.push(key);
            None
        }
    }
}

/// Describes a table, or the tables of a list, among the keys of the one above.
fn describe_table<T>(
    keys: &mut Vec<KeyDoc>,
    (key, doc, required): (&'static str, &'static str, bool),
    path: String,
    shape: impl Fn(Vec<KeyDoc>) -> Shape,
    decode: impl Fn(&mut Section<'_>) -> T,
) -> T {
    let mut inner = Vec::new();
    let value = run_section(path, Mode::Describe(&mut inner), decode);
    keys.push(KeyDoc {
        key,
        doc,
        shape: shape(inner),
        default: None,
        required,
        is_optional: false,
    });
    value
}

/// What to write below the header of a table that was set to a name, such as `optimizer = "adam"`.
fn keys_for(path: &str, value: &Value) -> String {
    let types = keys_of_types(path, &Table::default());
    match (value, types) {
        (Value::Str(name), Some(types)) if types.is_type(name) => {
            format!("with `type = \"{name}\"` below it")
        }
        (Value::Str(name), Some(types)) => {
            match remedy::ours_for_value(&format!("{path}.type"), name, &types.names()) {
                Some(ours) => format!("with `type = \"{ours}\"` below it"),
                None => "with its `type` and other keys below it".to_owned(),
            }
        }
        _ => "with its keys below it".to_owned(),
    }
}

/// The items of a list of tables, or why it has none.
fn items<'t>(entry: &'t Entry, path: &str, required: bool) -> Result<&'t [Node], Box<Diagnostic>> {
    match &entry.node.value {
        Value::Array(items) if required && items.is_empty() => {
            let empty = Diagnostic::error("out-of-range", format!("`{path}` is empty"));
            Err(Box::new(empty.at(entry.node.span)))
        }
        Value::Array(items) => Ok(items),
        other => {
            let message = format!("`{path}` must be a list of tables, found {}", other.kind());
            let at = match other {
                Value::Table(_) => entry.key_span,
                _ => entry.node.span,
            };
            Err(Box::new(Diagnostic::error("wrong-type", message).at(at)))
        }
    }
}

fn decode_items<T>(
    items: &[Node],
    path: &str,
    help: &str,
    findings: &mut Findings,
    decode: impl Fn(&mut Section<'_>) -> T,
) -> Vec<T> {
    let mut decoded = Vec::new();
    for (at, node) in items.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let Value::Table(inner) = &node.value else {
            let message = format!("`{path}` must be a table, found {}", node.value.kind());
            let wrong = Diagnostic::error("wrong-type", message).at(node.span);
            findings.refuse(path, wrong.help(help));
            continue;
        };
        let num_before = findings.diagnostics.num_found();
        decoded.push(read_at(inner, path.clone(), node.span, findings, &decode));
        if findings.diagnostics.num_found() > num_before {
            // An item without a misspelled key would be refused a second time.
            findings.poisoned.push(path);
        }
    }
    decoded
}
