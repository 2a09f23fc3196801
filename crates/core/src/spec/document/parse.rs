//! From the text of a file to its tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Entry, Node, Table, Value};
use crate::diagnostic::{Diagnostic, Diagnostics, Span, grouped};
use crate::spec::syntax;

/// A table with more keys was not written by a person, and key lookups would take forever.
const MAX_KEYS: usize = 4096;

/// Parses a text; what is not TOML is left out of the tree, and reported.
pub(in crate::spec) fn parse_table(
    text: &str,
    source: u16,
    diagnostics: &mut Diagnostics,
) -> Table {
    let (root, errors) = DeTable::parse_recoverable(text);
    for wrong in syntax::diagnostics(text, source, &errors) {
        diagnostics.push(wrong);
    }
    let mut converter = Converter {
        source,
        is_toml: errors.is_empty(),
        diagnostics,
    };
    converter.table(root.get_ref())
}

struct Converter<'a> {
    source: u16,
    /// Otherwise, the parser has reported numbers that it cannot read.
    is_toml: bool,
    diagnostics: &'a mut Diagnostics,
}

impl Converter<'_> {
    fn table(&mut self, table: &DeTable<'_>) -> Table {
        if let Some((key, _)) = table.iter().nth(MAX_KEYS) {
            let message = format!(
                "a table has {} keys; the limit is {}",
                grouped(table.len() as u64),
                grouped(MAX_KEYS as u64)
            );
            self.diagnostics.push(
                Diagnostic::error("out-of-range", message)
                    .at(Span::of(self.source, key.span()))
                    .help(
                        "is this a data file? List data files under `[data]` of an experiment file",
                    ),
            );
        }
        let entries = table.iter().take(MAX_KEYS).map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: Span::of(self.source, key.span()),
            node: self.node(value),
        });
        Table {
            entries: entries.collect(),
        }
    }

    fn node(&mut self, value: &Spanned<DeValue<'_>>) -> Node {
        let span = Span::of(self.source, value.span());
        let value = match value.get_ref() {
            DeValue::Boolean(v) => Value::Bool(*v),
            DeValue::String(v) => Value::Str(v.to_string()),
            DeValue::Datetime(v) => Value::Datetime(v.to_string()),
            DeValue::Array(items) => Value::Array(items.iter().map(|v| self.node(v)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
            DeValue::Integer(v) => match i64::from_str_radix(v.as_str(), v.radix()) {
                Ok(v) => Value::Int(v),
                Err(_) if !self.is_toml => Value::Int(0),
                Err(_) => {
                    let message = format!("`{}` does not fit a 64-bit integer", v.as_str());
                    let help = "use a number below 9.2e18";
                    self.diagnostics
                        .push(Diagnostic::error("syntax", message).at(span).help(help));
                    Value::Int(0)
                }
            },
            DeValue::Float(v) => match v.as_str().parse() {
                Ok(v) => Value::Float(v),
                Err(_) if !self.is_toml => Value::Float(0.0),
                Err(_) => {
                    let message = format!("`{}` is not a number", v.as_str());
                    self.diagnostics
                        .push(Diagnostic::error("syntax", message).at(span));
                    Value::Float(0.0)
                }
            },
        };
        Node { span, value }
    }
}
