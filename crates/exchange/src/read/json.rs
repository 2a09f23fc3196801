//! Weights as JSON: an object of nested lists of numbers by name.

use std::fmt;
use std::path::Path;

use runner_core::data::DataError;
use runner_core::show::show_bytes;
use runner_core::spec::plain_file;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use super::{Entry, Source, damaged, entry_of, unreadable};
use crate::tensors::{NamedTensor, Tensors};

/// The maximum size of a file: JSON is several times as large as its content.
const MAX_BYTES: u64 = 1 << 30;
/// The keys that are searched for tensors by default.
const STATES: [&str; 2] = ["state_dict", "weights"];

/// The content of a file; lists of numbers are flattened while they are read.
enum Tree {
    Object(Vec<(String, Tree)>),
    Numbers {
        shape: Vec<usize>,
        values: Vec<f64>,
    },
    /// A text, `true`, `null`.
    Other,
}

/// Opens a file; all of it is read.
pub fn open(path: &Path, key: Option<&str>) -> Result<(Vec<Entry>, Source), DataError> {
    let bytes = plain_file::read(path, MAX_BYTES).map_err(|e| unreadable(path, &e))?;
    let Some(bytes) = bytes else {
        let reason = format!("it has more than {}", show_bytes(MAX_BYTES));
        return Err(damaged(path, reason).help("save such weights as safetensors"));
    };
    let tree: Tree = serde_json::from_slice(&bytes).map_err(|e| {
        damaged(
            path,
            format!("it is not a JSON object with lists of numbers: {e}"),
        )
        .help("write an object with a nested list of numbers for each name")
    })?;
    let tree = below(path, tree, key)?;
    let mut tensors = Tensors::new();
    collect(path, String::new(), tree, &mut tensors)?;
    let entries = tensors.iter().map(entry_of).collect();
    Ok((entries, Source::Memory(tensors)))
}

/// The value below a key, or below the key that `runner export` uses.
fn below(path: &Path, tree: Tree, key: Option<&str>) -> Result<Tree, DataError> {
    let keys: Vec<&str> = match key {
        Some(key) => key.split('.').collect(),
        None => STATES
            .into_iter()
            .find(|state| has(&tree, state))
            .into_iter()
            .collect(),
    };
    let mut tree = tree;
    for part in keys {
        let inner = match tree {
            Tree::Object(items) => items.into_iter().find(|(name, _)| name == part),
            _ => None,
        };
        let Some((_, inner)) = inner else {
            let message = format!("`{}` has no key `{}`", path.display(), key.unwrap_or(part));
            return Err(DataError::new(message)
                .help("set the key that contains the weights, or remove `top_level_key`")
                .key("init.top_level_key"));
        };
        tree = inner;
    }
    Ok(tree)
}

fn has(tree: &Tree, key: &str) -> bool {
    let Tree::Object(items) = tree else {
        return false;
    };
    let mut items = items.iter();
    items.any(|(name, inner)| name == key && matches!(inner, Tree::Object(_)))
}

fn collect(path: &Path, name: String, tree: Tree, tensors: &mut Tensors) -> Result<(), DataError> {
    match tree {
        Tree::Other => Ok(()),
        Tree::Object(items) => items.into_iter().try_for_each(|(key, inner)| {
            let inner_name = if name.is_empty() {
                key
            } else {
                format!("{name}.{key}")
            };
            collect(path, inner_name, inner, tensors)
        }),
        Tree::Numbers { shape, values } => {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            let tensor = NamedTensor::new(name, shape, crate::tensors::Dtype::F64, bytes.collect());
            let pushed = tensor.and_then(|tensor| tensors.push(tensor));
            pushed.map_err(|e| damaged(path, e))
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Numbers {
            shape: Vec::new(),
            values: vec![value],
        })
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Tree, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Tree, E> {
        self.visit_f64(value as f64)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<Tree, E> {
        Ok(Tree::Other)
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut inner: Option<Vec<usize>> = None;
        let (mut num, mut all, mut is_other) = (0, Vec::new(), false);
        while let Some(item) = items.next_element::<Tree>()? {
            num += 1;
            let Tree::Numbers { shape, values } = item else {
                is_other = true;
                continue;
            };
            if inner.as_ref().is_some_and(|inner| *inner != shape) {
                return Err(serde::de::Error::custom(
                    "nested lists have different lengths",
                ));
            }
            inner = Some(shape);
            all.extend(values);
        }
        // A list of other values may be a description.
        if is_other {
            return Ok(Tree::Other);
        }
        let shape = [&[num], inner.unwrap_or_default().as_slice()].concat();
        Ok(Tree::Numbers { shape, values: all })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_entry()? {
            all.push(item);
        }
        Ok(Tree::Object(all))
    }
}
