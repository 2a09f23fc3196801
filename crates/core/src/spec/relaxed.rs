//! Relaxes the schema for composed files: what a file may leave to others, and where it may refer to a key instead of a
//! value.
//!
//! Works on the finished schema, so that declarations of keys need not consider it.

use serde_json::{Map, Value as Json, json};

/// Moves required keys to a condition at the root: a file that extends others may omit what they set. Lists are never
/// merged, so the requirements of their items stay.
pub(super) fn relax_required(root: &mut Json) {
    let required = take_required(root);
    root["if"] = json!({ "not": { "required": ["extends"] } });
    root["then"] = required.unwrap_or(json!({}));
}

/// Removes the `required` of a table and its subtables, as a separate schema.
fn take_required(schema: &mut Json) -> Option<Json> {
    if let Some(branches) = schema.as_object_mut()?.remove("oneOf") {
        return take_from_branches(schema, branches);
    }
    let mut taken = Map::new();
    if let Some(required) = schema.as_object_mut()?.remove("required") {
        taken.insert("required".into(), required);
    }
    let mut properties = Map::new();
    for (key, inner) in properties_of(schema) {
        if let Some(required) = take_required(inner) {
            properties.insert(key.clone(), required);
        }
    }
    if !properties.is_empty() {
        taken.insert("properties".into(), properties.into());
    }
    (!taken.is_empty()).then(|| taken.into())
}

fn properties_of(schema: &mut Json) -> impl Iterator<Item = (&String, &mut Json)> {
    let properties = schema.get_mut("properties").and_then(Json::as_object_mut);
    properties.into_iter().flatten()
}

/// The branches of a table with a `type`: if it is not set, any of them may apply.
fn take_from_branches(schema: &mut Json, mut branches: Json) -> Option<Json> {
    let mut conditions = Vec::new();
    for branch in branches.as_array_mut().into_iter().flatten() {
        let constant = branch["properties"]["type"]["const"].clone();
        let Some(mut required) = take_required(branch) else {
            continue;
        };
        let keys = required.get_mut("required").and_then(Json::as_array_mut);
        let is_named = keys.is_some_and(|keys| {
            let num = keys.len();
            keys.retain(|key| key != "type");
            keys.len() < num
        });
        let mut condition = json!({ "properties": { "type": { "const": constant } } });
        if is_named {
            condition["required"] = json!(["type"]);
        }
        if required["required"].as_array().is_some_and(Vec::is_empty)
            && let Some(required) = required.as_object_mut()
        {
            required.remove("required");
        }
        if required
            .as_object()
            .is_some_and(|required| !required.is_empty())
        {
            conditions.push(json!({ "if": condition, "then": required }));
        }
    }
    let has_default = branches.as_array().is_some_and(|all| {
        all.iter()
            .any(|b| !b["properties"]["type"]["default"].is_null())
    });
    schema["anyOf"] = branches;
    let mut taken = Map::new();
    if !has_default {
        taken.insert("required".into(), json!(["type"]));
    }
    if !conditions.is_empty() {
        taken.insert("allOf".into(), conditions.into());
    }
    (!taken.is_empty()).then(|| taken.into())
}

/// Allows every value to be a reference, keeping the checks of other values.
pub(super) fn allow_references(schema: &mut Json) {
    for (key, inner) in properties_of(schema) {
        // These are read before references are resolved.
        if !["extends", "values", "sweep", "search"].contains(&key.as_str()) {
            allow_reference(inner);
        }
    }
}

const PATTERN: &str = "\\$\\{";

fn allow_reference(schema: &mut Json) {
    if schema.get("const").is_some() {
        return;
    }
    if let Some(items) = schema.get_mut("items") {
        allow_reference(items);
    }
    allow_references(schema);
    let reference = json!({ "$ref": "#/definitions/reference" });
    for key in ["anyOf", "oneOf"] {
        if let Some(branches) = schema.get_mut(key).and_then(Json::as_array_mut) {
            let is_typed = branches
                .iter()
                .any(|b| b["properties"]["type"].get("const").is_some());
            branches.iter_mut().for_each(allow_references);
            branches.push(reference.clone());
            if is_typed {
                branches.push(json!({
                    "type": "object",
                    "properties": { "type": reference },
                    "required": ["type"],
                }));
            }
            return;
        }
    }
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    for key in ["enum", "$ref"] {
        if let Some(value) = object.remove(key) {
            let mut own = Map::new();
            if let Some(kind) = object.remove("type") {
                own.insert("type".into(), kind);
            }
            own.insert(key.into(), value);
            object.insert("anyOf".into(), json!([own, reference]));
            return;
        }
    }
    let pattern = object
        .get("pattern")
        .and_then(Json::as_str)
        .map(str::to_owned);
    match object.get("type").and_then(Json::as_str) {
        Some("string") => {
            if let Some(pattern) = pattern {
                object.insert("pattern".into(), format!("{pattern}|{PATTERN}").into());
            }
        }
        Some(kind) => {
            // A pattern does not apply to values that are not text.
            let kinds = json!([kind, "string"]);
            object.insert("type".into(), kinds);
            object.insert("pattern".into(), PATTERN.into());
        }
        None => {}
    }
}
