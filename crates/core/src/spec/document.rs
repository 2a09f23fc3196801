//! The experiment file as a tree of values with their source places.
//!
//! Knows TOML but nothing about experiments. The text is parsed once; every later message points back into it. Files
//! that it extends, `--set` and sweep points are layers of this tree, so that a value from them is reported where the
//! user wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{extends, reference, remedy};
use crate::diagnostic::{Diagnostic, Diagnostics, Sources, Span, grouped};

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where.
    pub span: Span,
    /// What.
    pub value: Value,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float, including `nan` and `inf`.
    Float(f64),
    /// A string.
    Str(String),
    /// A date or time, which no key accepts.
    Datetime(String),
    /// An array.
    Array(Vec<Node>),
    /// A table.
    Table(Table),
}

/// The entries of a table in file order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key as written, unquoted.
    pub key: String,
    /// The place of the key.
    pub key_span: Span,
    /// Its value.
    pub node: Node,
}

impl Value {
    /// The type's name with its article, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Str(_) => "a string",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }

    /// The value as one line of TOML.
    pub fn to_toml(&self) -> String {
        match self {
            Value::Bool(v) => v.to_string(),
            Value::Int(v) => v.to_string(),
            Value::Float(v) => format!("{v:?}").to_lowercase(),
            Value::Str(v) => quoted(v),
            Value::Datetime(v) => v.clone(),
            Value::Array(items) => {
                let items: Vec<_> = items.iter().map(|n| n.value.to_toml()).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Table(table) if table.entries.is_empty() => "{}".into(),
            Value::Table(table) => {
                let entries = table.entries.iter();
                let entries: Vec<_> = entries
                    .map(|e| format!("{} = {}", key_to_toml(&e.key), e.node.value.to_toml()))
                    .collect();
                format!("{{ {} }}", entries.join(", "))
            }
        }
    }

    /// The value as JSON; `nan` and infinities become their names.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Bool(v) => (*v).into(),
            Value::Int(v) => (*v).into(),
            Value::Float(v) if v.is_finite() => (*v).into(),
            Value::Float(v) => v.to_string().into(),
            Value::Str(v) | Value::Datetime(v) => v.as_str().into(),
            Value::Array(items) => items.iter().map(|n| n.value.to_json()).collect(),
            Value::Table(table) => {
                let entries = table.entries.iter();
                let map: serde_json::Map<_, _> = entries
                    .map(|e| (e.key.clone(), e.node.value.to_json()))
                    .collect();
                map.into()
            }
        }
    }
}

impl Entry {
    /// Whether the value is an inline table, rather than keys on separate lines.
    pub fn is_inline(&self) -> bool {
        // A table of dotted keys has the place of its key, whereas that of `[a.table]` begins before it.
        matches!(self.node.value, Value::Table(_)) && self.node.span.start > self.key_span.start
    }
}

/// A key as TOML: quoted if necessary.
pub fn key_to_toml(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

impl Table {
    /// The table as one line of TOML, with dotted keys for everything that was not an inline table: the two differ in a
    /// trial of `[[sweep.list]]`.
    pub fn to_dotted_toml(&self) -> String {
        fn collect(table: &Table, above: &str, lines: &mut Vec<String>) {
            for entry in &table.entries {
                let key = format!("{above}{}", key_to_toml(&entry.key));
                match &entry.node.value {
                    Value::Table(inner) if !entry.is_inline() && !inner.entries.is_empty() => {
                        collect(inner, &format!("{key}."), lines);
                    }
                    value => lines.push(format!("{key} = {}", value.to_toml())),
                }
            }
        }
        let mut lines = Vec::new();
        collect(self, "", &mut lines);
        if lines.is_empty() {
            "{}".into()
        } else {
            format!("{{ {} }}", lines.join(", "))
        }
    }

    /// The entry of `key`.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    /// The entry at a dotted path. In a list of tables a segment is the index of an item from 0, or its `name`.
    pub fn at(&self, path: &str) -> Option<&Entry> {
        let (head, rest) = match path.split_once('.') {
            None => return self.get(path),
            Some(parts) => parts,
        };
        match &self.get(head)?.node.value {
            Value::Table(table) => table.at(rest),
            Value::Array(items) => {
                let (item, rest) = rest.split_once('.')?;
                match &items.get(item_at(items, item)?)?.value {
                    Value::Table(table) => table.at(rest),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The place of the value at a dotted path, or of its key for a table. A segment may end in the index of a list
    /// item: `groups[1]`.
    pub fn span_at(&self, path: &str) -> Option<Span> {
        let (head, rest) = match path.split_once('.') {
            None => (path, None),
            Some((head, rest)) => (head, Some(rest)),
        };
        let (key, at) = match head.strip_suffix(']').and_then(|head| head.split_once('[')) {
            None => (head, None),
            Some((key, at)) => (key, Some(at.parse::<usize>().ok()?)),
        };
        let entry = self.get(key)?;
        let node = match (at, &entry.node.value) {
            (None, _) => &entry.node,
            (Some(at), Value::Array(items)) => items.get(at)?,
            // A value that may be written without a list is its only item.
            (Some(_), _) => &entry.node,
        };
        match (rest, &node.value) {
            (Some(rest), Value::Table(table)) => table.span_at(rest),
            (Some(rest), Value::Array(items)) => {
                let (item, rest) = rest.split_once('.')?;
                match &items.get(item_at(items, item)?)?.value {
                    Value::Table(table) => table.span_at(rest),
                    _ => None,
                }
            }
            (Some(_), _) => None,
            (None, Value::Table(_)) if at.is_none() => Some(entry.key_span),
            (None, _) => Some(node.span),
        }
    }

    /// The missing list item of a dotted path, with the existing ones.
    pub fn missing_item(&self, path: &str) -> Option<(String, Vec<String>)> {
        let (head, rest) = path.split_once('.')?;
        match &self.get(head)?.node.value {
            Value::Table(table) => table.missing_item(rest),
            Value::Array(items) => {
                let (item, rest) = rest.split_once('.').unwrap_or((rest, ""));
                let Some(at) = item_at(items, item) else {
                    let name = |(at, node): (usize, &Node)| match &node.value {
                        Value::Table(table) => match table.get("name").map(|e| &e.node.value) {
                            Some(Value::Str(name)) => name.clone(),
                            _ => at.to_string(),
                        },
                        _ => at.to_string(),
                    };
                    let names = items.iter().enumerate().map(name);
                    return Some((item.to_owned(), names.collect()));
                };
                match &items[at].value {
                    Value::Table(table) => table.missing_item(rest),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The same path with list items by index.
    pub fn numbered(&self, path: &str) -> String {
        let Some((head, rest)) = path.split_once('.') else {
            return path.to_owned();
        };
        let rest = match self.get(head).map(|entry| &entry.node.value) {
            Some(Value::Table(table)) => table.numbered(rest),
            Some(Value::Array(items)) => {
                let (item, behind) = rest.split_once('.').unwrap_or((rest, ""));
                match item_at(items, item).map(|at| (at, &items[at].value)) {
                    Some((at, Value::Table(table))) if !behind.is_empty() => {
                        format!("{at}.{}", table.numbered(behind))
                    }
                    Some((at, _)) if behind.is_empty() => at.to_string(),
                    _ => rest.to_owned(),
                }
            }
            _ => rest.to_owned(),
        };
        format!("{head}.{rest}")
    }

    /// The value at a dotted path, which may end at a list item.
    pub fn value_at(&self, path: &str) -> Option<&Value> {
        let (head, rest) = match path.split_once('.') {
            None => (path, None),
            Some((head, rest)) => (head, Some(rest)),
        };
        match (&self.get(head)?.node.value, rest) {
            (value, None) => Some(value),
            (Value::Table(table), Some(rest)) => table.value_at(rest),
            (Value::Array(items), Some(rest)) => {
                let (item, rest) = match rest.split_once('.') {
                    None => (rest, None),
                    Some((item, rest)) => (item, Some(rest)),
                };
                match (&items.get(item_at(items, item)?)?.value, rest) {
                    (value, None) => Some(value),
                    (Value::Table(table), Some(rest)) => table.value_at(rest),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Removes the entry at a dotted path, if it exists.
    pub fn remove(&mut self, path: &str) {
        let Some((head, rest)) = path.split_once('.') else {
            return self.entries.retain(|entry| entry.key != path);
        };
        let entry = self.entries.iter_mut().find(|entry| entry.key == head);
        match entry.map(|entry| &mut entry.node.value) {
            Some(Value::Table(table)) => table.remove(rest),
            Some(Value::Array(items)) => {
                if let Some((item, rest)) = rest.split_once('.')
                    && let Some(at) = item_at(items, item)
                    && let Value::Table(table) = &mut items[at].value
                {
                    table.remove(rest);
                }
            }
            _ => {}
        }
    }

    /// Sets `node` at a dotted path, creating tables as needed. Anything in the way that is not a table is replaced.
    /// The keys get `key_span`.
    pub fn set(&mut self, path: &str, key_span: Span, node: Node) {
        // A key with dots in it, as axes have.
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == path) {
            entry.key_span = key_span;
            entry.node = node;
            return;
        }
        let (head, rest) = match path.split_once('.') {
            None => (path, None),
            Some((head, rest)) => (head, Some(rest)),
        };
        // A quoted key may contain dots, as the keys of axes do.
        let quoted = |e: &Entry| {
            let rest = path.strip_prefix(e.key.as_str());
            e.key.contains('.') && rest.is_some_and(|r| r.is_empty() || r.starts_with('.'))
        };
        let (at, rest) = match self.entries.iter().position(quoted) {
            Some(at) => (Some(at), path.get(self.entries[at].key.len() + 1..)),
            None => (self.entries.iter().position(|e| e.key == head), rest),
        };
        let at = match at {
            Some(at) => at,
            None => {
                self.entries.push(Entry {
                    key: head.to_owned(),
                    key_span,
                    node: Node {
                        span: key_span,
                        value: Value::Table(Table::default()),
                    },
                });
                self.entries.len() - 1
            }
        };
        let entry = &mut self.entries[at];
        let Some(rest) = rest else {
            entry.key_span = key_span;
            entry.node = node;
            return;
        };
        if let (Value::Array(items), Some((item, rest))) =
            (&mut entry.node.value, rest.split_once('.'))
            && let Some(at) = item_at(items, item)
            && let Value::Table(table) = &mut items[at].value
        {
            return table.set(rest, key_span, node);
        }
        if let Value::Array(items) = &mut entry.node.value
            && let Some(at) = item_at(items, rest)
        {
            items[at] = node;
            return;
        }
        if !matches!(entry.node.value, Value::Table(_)) {
            entry.node = Node {
                span: key_span,
                value: Value::Table(Table::default()),
            };
        }
        if let Value::Table(table) = &mut entry.node.value {
            table.set(rest, key_span, node);
        }
    }
}

/// The position of an item in a list of tables, by its index or its `name`.
pub(super) fn item_at(items: &[Node], item: &str) -> Option<usize> {
    let is_named = |node: &Node| match &node.value {
        Value::Table(table) => {
            table.get("name").map(|entry| &entry.node.value) == Some(&Value::Str(item.to_owned()))
        }
        _ => false,
    };
    let number = item.parse().ok().filter(|at| *at < items.len());
    number.or_else(|| items.iter().position(is_named))
}

/// A table with more keys was not written by a person, and key lookups would take forever.
const MAX_KEYS: usize = 4096;

/// A dotted key with more parts is meaningless.
pub(crate) const MAX_PARTS: usize = 64;

/// An experiment file, read and parsed, with the edits of `--set`.
#[derive(Clone, Debug)]
pub struct Document {
    /// The texts that spans point into; the first is the file.
    pub sources: Sources,
    /// The root table.
    pub root: Table,
    /// The edits, as the user wrote them.
    pub overrides: Vec<String>,
    /// The environment variables that it uses; `None` for those that are not set.
    pub environment: BTreeMap<String, Option<String>>,
}

impl Document {
    /// Reads and parses a file and those that it extends. `path` is as the user wrote it, for messages.
    pub fn read(path: &Path) -> Result<Self, (Sources, Diagnostics)> {
        let name = path.display().to_string();
        let text = match extends::read_text(path) {
            Ok(text) => text,
            Err(reason) => {
                let diagnostic = reason.diagnostic(&name).help(reason.help());
                return Err((Sources::default(), Diagnostics(vec![diagnostic])));
            }
        };
        Self::compose(&name, &text, path.parent())
    }

    /// Parses a text that does not extend others.
    pub fn parse(name: &str, text: &str) -> Result<Self, (Sources, Diagnostics)> {
        Self::compose(name, text, None)
    }

    /// Parses a text, and reads the files that it extends, relative to `folder`.
    pub fn compose(
        name: &str,
        text: &str,
        folder: Option<&Path>,
    ) -> Result<Self, (Sources, Diagnostics)> {
        let (sources, root) = extends::compose(name, text, folder)?;
        Ok(Self {
            sources,
            root,
            overrides: Vec::new(),
            environment: BTreeMap::new(),
        })
    }

    /// Looks up the environment variables that the document uses. The caller decides whether a document may see the
    /// environment; without this, no variable is set.
    pub fn look_up(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        let mut names = BTreeSet::new();
        reference::environment_names(&self.root, &mut names);
        let looked_up = names.into_iter().map(|name| {
            let value = variable(&name);
            (name, value)
        });
        self.environment = looked_up.collect();
    }

    /// Applies one `--set key=value`. The value is TOML; a bare word is read as a string.
    pub fn set(&mut self, assignment: &str) -> Result<(), Box<Diagnostic>> {
        let usage = "use `--set key=value`, for example `--set optimizer.learning_rate=1e-2`";
        let refuse = |message| Box::new(Diagnostic::error("bad-override", message).help(usage));
        let Some((key, value)) = assignment.split_once('=') else {
            let message = format!("`--set {assignment}` has no `=`");
            return Err(refuse(message));
        };
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() || key.split('.').any(str::is_empty) {
            let message = format!("`--set {assignment}` names no key");
            return Err(refuse(message));
        }
        if key.split('.').count() > MAX_PARTS {
            let message = format!("the key of `--set` has more than {MAX_PARTS} parts");
            return Err(refuse(message));
        }
        if key.split('.').next() == Some("extends") {
            let message =
                format!("`--set {assignment}` has no effect: the files have already been read");
            let help = "set `extends` in the file, or create a small file that extends others";
            return Err(Box::new(
                Diagnostic::error("bad-override", message).help(help),
            ));
        }
        let parses = |value: &str| {
            let parsed = toml::from_str::<toml::Table>(&format!("v = {value}"));
            parsed.is_ok_and(|table| table.len() == 1)
        };
        if let Some((item, names)) = self.root.missing_item(key) {
            let message = format!("`--set {assignment}`: the list has no item `{item}`");
            let help = format!(
                "its items are {}, by name or number from 0",
                names.join(", ")
            );
            return Err(Box::new(
                Diagnostic::error("bad-override", message).help(help),
            ));
        }
        let value = if parses(value) {
            value.to_owned()
        } else {
            quoted(value)
        };
        if !parses(&value) {
            let message = format!("the value of `--set {assignment}` is not a TOML value");
            return Err(refuse(message));
        }
        let text = format!("{key} = {value}");
        let source = self.sources.add("--set", &text);
        let key_span = Span {
            source,
            start: 0,
            end: key.len() as u32,
            via: None,
        };
        let offset = key.len() as u32 + 3;
        let parsed = parse_table(&format!("v = {value}"), source, &mut Diagnostics::default());
        if let Some(entry) = parsed.entries.into_iter().next() {
            let mut node = entry.node;
            shift(&mut node, offset as i64 - 4);
            self.root.set(key, key_span, node);
        }
        self.overrides.push(assignment.to_owned());
        Ok(())
    }
}

fn shift(node: &mut Node, by: i64) {
    node.span.start = (node.span.start as i64 + by) as u32;
    node.span.end = (node.span.end as i64 + by) as u32;
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|n| shift(n, by)),
        Value::Table(table) => table.entries.iter_mut().for_each(|e| {
            e.key_span.start = (e.key_span.start as i64 + by) as u32;
            e.key_span.end = (e.key_span.end as i64 + by) as u32;
            shift(&mut e.node, by);
        }),
        _ => {}
    }
}

/// An operating-system error without the number that `std` appends.
pub fn plain_io_error(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_lowercase(),
        None => text,
    }
}

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
pub(super) fn parse_table(text: &str, source: u16, diagnostics: &mut Diagnostics) -> Table {
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
        let help = if keys_at_once(text, line) {
            "quote the name of an axis over several keys: `\"train.batch_size, train.epochs\" = [[32, 10], [64, 20]]`".to_owned()
        } else {
            let written = text.lines().nth(line).unwrap_or_default();
            remedy::for_syntax(written).unwrap_or_else(|| {
                "strings need quotes and tables are written `[name]`; see https://toml.io for the syntax"
                    .into()
            })
        };
        diagnostics.push(Diagnostic::error("syntax", message).at(span).help(help));
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
