//! The experiment file as a tree of values with their source places.
//!
//! Knows TOML but nothing about experiments. The text is parsed once; every later message points back into it. Files
//! that it extends, `--set` and sweep points are layers of this tree, so that a value from them is reported where the
//! user wrote it.

mod file;
mod parse;
mod table;
mod write;

use crate::diagnostic::Span;
pub use file::Document;
pub(crate) use file::MAX_PARTS;
pub(super) use parse::parse_table;
pub(super) use table::item_at;
pub(crate) use table::{is_inside, touch};
pub use write::{bare_to_toml, key_to_toml};

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

impl Value {
    /// An array of floats that is in no file.
    pub fn floats(numbers: &[f64]) -> Self {
        let nodes = numbers.iter().map(|number| Node {
            span: Span::default(),
            value: Self::Float(*number),
        });
        Self::Array(nodes.collect())
    }
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

impl Entry {
    /// Whether the value is an inline table, rather than keys on separate lines.
    pub fn is_inline(&self) -> bool {
        // A table of dotted keys has the place of its key, whereas that of `[a.table]` begins before it.
        matches!(self.node.value, Value::Table(_)) && self.node.span.start > self.key_span.start
    }
}
