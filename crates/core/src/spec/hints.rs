//! The probable meaning of a wrong or missing key, from the existing keys.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::document::{Table, Value};
use super::model::decode_layer;
use super::remedy;
use super::section::{KeyDoc, Shape, Variant};

/// The required keys of a table, with an example value each.
pub fn required_keys(path: &str) -> String {
    let keys = super::describe();
    let Some(Shape::Table(inner)) = keys
        .iter()
        .find(|doc| doc.key == path)
        .map(|doc| &doc.shape)
    else {
        return "its keys".into();
    };
    let is_type = |doc: &&KeyDoc| matches!(doc.shape, Shape::Variants(_));
    let required = inner
        .iter()
        .filter(|doc| doc.required || is_type(doc))
        .map(|doc| match &doc.shape {
            Shape::Scalar(kind) => {
                let example =
                    kind.example_for(&format!("{path}.{}", doc.key), doc.default.as_ref());
                format!("`{} = {example}`", doc.key)
            }
            Shape::Variants(variants) => {
                let names: Vec<_> = variants.iter().map(|v| format!("\"{}\"", v.name)).collect();
                format!("`{} = …` ({})", doc.key, names.join(", "))
            }
            _ => format!("`{}`", doc.key),
        });
    required.collect::<Vec<_>>().join(" and ")
}

/// The known path that another one probably means, even if its last key is a term of other tools.
pub fn nearest_path<'a>(
    path: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'a str> {
    let theirs = path.rsplit_once('.').and_then(|(table, key)| {
        let mut ours = remedy::ours_for_key(table, key);
        ours.find_map(|ours| {
            known.clone().find(|known| {
                let rest = known.strip_prefix(table);
                rest.and_then(|rest| rest.strip_prefix('.')) == Some(ours)
            })
        })
    });
    theirs.or_else(|| crate::diagnostic::nearest(path, known))
}

/// The values of `type` with which a table has a key.
pub fn types_with(path: &str, key: &str) -> Vec<&'static str> {
    let mut keys = super::describe();
    for name in path.split('.') {
        let name = name.split('[').next().unwrap_or(name);
        let found = keys.iter().find(|doc| doc.key == name);
        let Some(Shape::Table(inner) | Shape::Tables(inner)) = found.map(|doc| &doc.shape) else {
            return Vec::new();
        };
        keys = inner;
    }
    let variants = keys.iter().filter_map(|doc| match &doc.shape {
        Shape::Variants(variants) => Some(variants),
        _ => None,
    });
    let has_key = |variant: &&Variant| variant.keys.iter().any(|doc| doc.key == key);
    let found = variants.flatten().filter(has_key);
    found.map(|variant| variant.name).collect()
}

/// The table that a key belongs to, if some table of the experiment file has it.
pub fn home_of(key: &str) -> Option<String> {
    fn find(keys: &[KeyDoc], path: &str, wanted: &str) -> Option<String> {
        for doc in keys {
            if doc.key == wanted && wanted != "type" {
                return Some(path.to_owned());
            }
            let inner = if path.is_empty() {
                doc.key.to_owned()
            } else {
                format!("{path}.{}", doc.key)
            };
            let found = match &doc.shape {
                Shape::Table(keys) => find(keys, &inner, wanted),
                Shape::Variants(all) => all.iter().find_map(|v| find(&v.keys, path, wanted)),
                // A key of many tables is ambiguous.
                Shape::Scalar(_)
                | Shape::Tables(_)
                | Shape::Axes
                | Shape::Distributions
                | Shape::Trials
                | Shape::Values
                | Shape::Free
                | Shape::Layers
                | Shape::Blocks => None,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
    // A word such as `epochs` rarely means the budget of a search.
    let is_search = |doc: &&KeyDoc| doc.key == "search";
    let (search, others): (Vec<_>, Vec<_>) = super::describe().iter().partition(is_search);
    let found = |docs: Vec<&KeyDoc>| {
        docs.into_iter()
            .find_map(|doc| find(std::slice::from_ref(doc), "", key))
    };
    found(others).or_else(|| found(search))
}

/// The dotted paths of all keys outside lists, including tables.
pub fn key_paths() -> Vec<String> {
    fn collect(keys: &[KeyDoc], prefix: &str, paths: &mut Vec<String>) {
        for doc in keys {
            let path = if prefix.is_empty() {
                doc.key.to_owned()
            } else {
                format!("{prefix}.{}", doc.key)
            };
            match &doc.shape {
                Shape::Table(keys) => collect(keys, &path, paths),
                Shape::Variants(all) => all.iter().for_each(|v| collect(&v.keys, prefix, paths)),
                _ => {}
            }
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    collect(super::describe(), "", &mut paths);
    paths
}

/// The default of the key at a dotted path, as TOML, if it does not depend on a `type`.
pub fn default_of(path: &str) -> Option<String> {
    fn collect(keys: &[KeyDoc], path: &str, found: &mut Vec<String>) {
        let (head, rest) = match path.split_once('.') {
            None => (path, None),
            Some((head, rest)) => (head, Some(rest)),
        };
        for doc in keys {
            match (&doc.shape, rest) {
                (Shape::Table(inner), Some(rest)) if doc.key == head => collect(inner, rest, found),
                (Shape::Variants(_) | Shape::Scalar(_), None) if doc.key == head => {
                    found.extend(doc.default.as_ref().map(Json::to_string));
                }
                (Shape::Variants(all), _) => all.iter().for_each(|v| collect(&v.keys, path, found)),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    collect(super::describe(), path, &mut found);
    found.dedup();
    match found.as_slice() {
        [default] => Some(default.clone()),
        _ => None,
    }
}

/// The keys of a table with a `type`.
pub struct TypeKeys {
    common: Vec<String>,
    by_type: BTreeMap<String, Vec<String>>,
}

impl TypeKeys {
    /// Whether the type exists.
    pub fn is_type(&self, name: &str) -> bool {
        self.by_type.contains_key(name)
    }

    /// The types.
    pub fn names(&self) -> Vec<&str> {
        self.by_type.keys().map(String::as_str).collect()
    }

    /// Whether a type has a key.
    pub fn has(&self, name: &str, key: &str) -> bool {
        let own = self.by_type.get(name).into_iter().flatten();
        self.common.iter().chain(own).any(|known| known == key)
    }

    fn of(keys: &[KeyDoc]) -> Option<Self> {
        let names = |keys: &[KeyDoc]| keys.iter().map(|doc| doc.key.to_owned()).collect();
        let variants = keys.iter().find_map(|doc| match &doc.shape {
            Shape::Variants(variants) => Some(variants),
            _ => None,
        })?;
        let by_type = variants.iter().map(|v| (v.name.to_owned(), names(&v.keys)));
        Some(Self {
            common: names(keys),
            by_type: by_type.collect(),
        })
    }
}

/// The keys of each type of the table at a dotted path, with list items by index; `None` for a table without a `type`
/// that determines its keys. The blocks of `root` are layer types.
pub fn keys_of_types(path: &str, root: &Table) -> Option<TypeKeys> {
    let parts: Vec<&str> = path.split('.').collect();
    // Lists of layers may be nested.
    let is_list = |at: &usize| parts[0] == "model" && parts[*at] == "layers";
    let Some(at) = (0..parts.len()).rfind(is_list) else {
        return TypeKeys::of(keys_below(super::describe(), &parts)?);
    };
    let layer = super::section::describe(decode_layer);
    let below = keys_below(&layer, parts.get(at + 2..)?)?;
    let mut keys = TypeKeys::of(below)?;
    if parts.len() == at + 2 {
        keys.common.push("for_each".into());
        keys.by_type
            .insert("sequence".into(), vec!["layers".into()]);
        if let Some(Value::Table(blocks)) = root.value_at("model.blocks") {
            for block in &blocks.entries {
                let parameters = match &block.node.value {
                    Value::Table(table) => table.value_at("parameters"),
                    _ => None,
                };
                let names = match parameters {
                    Some(Value::Table(table)) => {
                        table.entries.iter().map(|e| e.key.clone()).collect()
                    }
                    _ => Vec::new(),
                };
                keys.by_type.insert(block.key.clone(), names);
            }
        }
    }
    Some(keys)
}

/// The keys of the table at a path, through whichever type has it.
fn keys_below<'a>(keys: &'a [KeyDoc], path: &[&str]) -> Option<&'a [KeyDoc]> {
    let Some((head, rest)) = path.split_first() else {
        return Some(keys);
    };
    keys.iter().find_map(|doc| match &doc.shape {
        Shape::Table(inner) if doc.key == *head => keys_below(inner, rest),
        // The index of an item comes next.
        Shape::Tables(inner) if doc.key == *head => keys_below(inner, rest.get(1..)?),
        Shape::Variants(variants) => variants.iter().find_map(|v| keys_below(&v.keys, path)),
        _ => None,
    })
}
