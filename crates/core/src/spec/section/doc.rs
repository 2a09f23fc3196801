//! Keys as the schema and the reference show them.

use serde_json::Value as Json;

use crate::spec::kind::Kind;

/// A key as the schema shows it.
#[derive(Clone, Debug)]
pub struct KeyDoc {
    /// The key.
    pub key: &'static str,
    /// Its meaning.
    pub doc: &'static str,
    /// Its content.
    pub shape: Shape,
    /// Its default.
    pub default: Option<Json>,
    /// Whether it is required.
    pub required: bool,
    /// Whether a table that is not set is absent, rather than one of defaults.
    pub is_optional: bool,
}

/// The content of a key.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A value or a list of values.
    Scalar(Kind),
    /// A table.
    Table(Vec<KeyDoc>),
    /// A list of tables.
    Tables(Vec<KeyDoc>),
    /// The `type` key of a table, with the keys that each type adds to it.
    Variants(Vec<Variant>),
    /// A table whose keys are dotted paths of other keys and whose values are lists for them.
    Axes,
    /// A table whose keys are dotted paths of other keys and whose values are distributions.
    Distributions,
    /// A list of tables of dotted paths with a value each.
    Trials,
    /// A list of values of any type.
    Values,
    /// A list of layers.
    Layers,
    /// Tables of layers by name.
    Blocks,
    /// A table of any keys.
    Free,
}

/// One type of a table with a `type` key.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The value of the `type` key.
    pub name: &'static str,
    /// Its meaning.
    pub doc: &'static str,
    /// The keys it adds.
    pub keys: Vec<KeyDoc>,
}

/// The path of a key in the table at `above`, which is empty for the file itself.
pub fn joined(above: &str, key: &str) -> String {
    if above.is_empty() {
        key.to_owned()
    } else {
        format!("{above}.{key}")
    }
}
