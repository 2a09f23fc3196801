//! From the text of a file to its tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Entry, Node, Table, Value};
use crate::diagnostic::{Diagnostic, Diagnostics, Span, grouped};
use crate::spec::remedy;

/// A table with more keys was not written by a person, and key lookups would take forever.
const MAX_KEYS: usize = 4096;

/// Whether a line sets several dotted keys at once, as an axis can, without quoting them.
fn keys_at_once(text: &str, line: usize) -> bool {
    let line = text.lines().nth(line).unwrap_or_default();
    // Also in braces, as in `zip = { a.b, a.c = … }`.
    let inner = line.split_once('{').map_or(line, |(_, inner)| inner);
    let keys = inner.split_once('=').map_or("", |(keys, _)| keys);
    let is_key = |key: &str| {
        let key = key.trim();
        key.contains('.')
            && key
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    keys.contains(',') && keys.split(',').all(is_key)
}

/// Parses a text. The first syntax error of each line is kept, at most three in total, because later ones are mostly
/// consequences.
pub(in crate::spec) fn parse_table(
    text: &str,
    source: u16,
    diagnostics: &mut Diagnostics,
) -> Table {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut lines_seen = Vec::new();
    for error in errors {
        let range = error.span().unwrap_or(0..0);
        let line = text[..range.start.min(text.len())].matches('\n').count();
        if lines_seen.contains(&line) || lines_seen.len() == 3 {
            continue;
        }
        lines_seen.push(line);
        let span = to_span(source, range);
        let message = format!("not valid TOML: {}", error.message().trim());
        let is_duplicate = message.contains("duplicate key");
        let help = if is_duplicate {
            "a key or table stands only once in a file: remove one of the two, or merge the tables"
                .to_owned()
        } else if keys_at_once(text, line) {
            "quote the name of an axis over several keys: `\"train.batch_size, train.epochs\" = [[32, 10], [64, 20]]`".to_owned()
        } else {
            let written = text.lines().nth(line).unwrap_or_default();
            remedy::for_syntax(written).unwrap_or_else(|| {
                "strings need quotes and tables are written `[name]`; see https://toml.io for the syntax"
                    .into()
            })
        };
        diagnostics.push(Diagnostic::error("syntax", message).at(span).help(help));
        if is_duplicate {
            // The keys of a second table are duplicates of those of the first.
            break;
        }
    }
    let mut converter = Converter {
        source,
        diagnostics,
    };
    converter.table(root.get_ref())
}

fn to_span(source: u16, range: std::ops::Range<usize>) -> Span {
    Span {
        source,
        start: range.start as u32,
        end: range.end as u32,
        via: None,
    }
}

struct Converter<'a> {
    source: u16,
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
                    .at(to_span(self.source, key.span()))
                    .help(
                        "is this a data file? List data files under `[data]` of an experiment file",
                    ),
            );
        }
        let entries = table.iter().take(MAX_KEYS).map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: to_span(self.source, key.span()),
            node: self.node(value),
        });
        Table {
            entries: entries.collect(),
        }
    }

    fn node(&mut self, value: &Spanned<DeValue<'_>>) -> Node {
        let span = to_span(self.source, value.span());
        let value = match value.get_ref() {
            DeValue::Boolean(v) => Value::Bool(*v),
            DeValue::String(v) => Value::Str(v.to_string()),
            DeValue::Datetime(v) => Value::Datetime(v.to_string()),
            DeValue::Array(items) => Value::Array(items.iter().map(|v| self.node(v)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
            DeValue::Integer(v) => match i64::from_str_radix(v.as_str(), v.radix()) {
                Ok(v) => Value::Int(v),
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
