//! Values of keys that are not set.

use serde_json::Value as Json;

use super::NOWHERE;
use crate::spec::document::{Entry, Node, Table, Value};
use crate::spec::section::{KeyDoc, Shape};

/// The tree with the keys that are not set but have a default; they are rendered as comments. Tables whose type an axis
/// sets are left as they are.
pub fn with_defaults(root: &Table, axes: &[String]) -> Table {
    let mut root = root.clone();
    add_defaults(&mut root, crate::spec::describe(), "", axes);
    root
}

fn add_defaults(table: &mut Table, keys: &[KeyDoc], path: &str, axes: &[String]) {
    let kind = match path {
        "" => "type".to_owned(),
        _ => format!("{path}.type"),
    };
    if axes.iter().any(|axis| *axis == kind || axis == path) {
        return;
    }
    for doc in keys {
        let inner = match path {
            "" => doc.key.to_owned(),
            _ => format!("{path}.{}", doc.key),
        };
        match &doc.shape {
            Shape::Variants(variants) => {
                add_default(table, doc);
                let name = table.get(doc.key).map(|entry| entry.node.value.to_json());
                let variant = variants.iter().find(|v| name == Some(v.name.into()));
                if let Some(variant) = variant {
                    add_defaults(table, &variant.keys, path, axes);
                }
            }
            Shape::Table(keys) => {
                let found = table.entries.iter_mut().find(|entry| entry.key == doc.key);
                match found.map(|entry| &mut entry.node.value) {
                    Some(Value::Table(table)) => add_defaults(table, keys, &inner, axes),
                    Some(_) => {}
                    None if doc.is_optional => {}
                    None => {
                        let mut added = Table::default();
                        add_defaults(&mut added, keys, &inner, axes);
                        if !added.entries.is_empty() {
                            table.entries.push(Entry {
                                key: doc.key.to_owned(),
                                key_span: NOWHERE,
                                node: Node {
                                    span: NOWHERE,
                                    value: Value::Table(added),
                                },
                            });
                        }
                    }
                }
            }
            // List items are on one line each, without room for defaults.
            Shape::Tables(_) => {}
            _ => add_default(table, doc),
        }
    }
}

fn add_default(table: &mut Table, doc: &KeyDoc) {
    let value = doc.default.as_ref().and_then(from_json);
    if let (Some(value), None) = (value, table.get(doc.key)) {
        table.entries.push(Entry {
            key: doc.key.to_owned(),
            key_span: NOWHERE,
            node: Node {
                span: NOWHERE,
                value,
            },
        });
    }
}

fn from_json(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Float(number.as_f64()?),
        },
        Json::String(text) => Value::Str(text.clone()),
        Json::Array(items) => {
            let items = items.iter().map(|item| {
                let value = from_json(item)?;
                Some(Node {
                    span: NOWHERE,
                    value,
                })
            });
            Value::Array(items.collect::<Option<_>>()?)
        }
        Json::Null | Json::Object(_) => return None,
    })
}
