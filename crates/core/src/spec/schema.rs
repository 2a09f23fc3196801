//! The JSON Schema (draft 7) of the experiment file, for editors.

use serde_json::{Map, Value as Json, json};

use super::model::decode_layer;
use super::model::layer;
use super::relaxed::{allow_references, relax_required};
use super::section::{self, KeyDoc, Shape, Variant};
use super::sweep::{describe_distribution, describe_long_axis};

/// The schema as it is committed, with a final newline.
pub fn experiment_schema() -> String {
    let mut schema = table_schema(super::describe(), "An experiment for `runner`.");
    let object = schema
        .as_object_mut()
        .expect("a table's schema is an object");
    object.insert(
        "$schema".into(),
        "http://json-schema.org/draft-07/schema#".into(),
    );
    object.insert("title".into(), "runner experiment".into());
    let mut layer = table_schema(&section::describe(decode_layer), "A layer.");
    let mut initializer = share_initializer(&mut layer);
    for definition in [&mut layer, &mut initializer] {
        for branch in definition["oneOf"].as_array_mut().into_iter().flatten() {
            allow_references(branch);
        }
    }
    let definitions = json!({
        "initializer": initializer,
        "layer": layer_schema(layer),
        "reference": {
            "description": "`${path.to.key}`, or an expression over keys.",
            "type": "string",
            "pattern": "\\$\\{",
        },
    });
    object.insert("definitions".into(), definitions);
    relax_required(&mut schema);
    allow_references(&mut schema);
    say_what_is_open(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).expect("a JSON value serializes");
    text.push('\n');
    text
}

/// Sets for every part that describes tables whether they may contain other keys. Draft 7 allows them by default,
/// whereas Tombi does not.
fn say_what_is_open(schema: &mut Json) {
    const NESTED: [&str; 6] = ["items", "additionalProperties", "not", "if", "then", "else"];
    let Json::Object(keywords) = schema else {
        return;
    };
    let speaks = ["properties", "required", "not", "allOf"];
    let is_of_tables = speaks.iter().any(|keyword| keywords.contains_key(*keyword))
        || keywords.get("type") == Some(&"object".into());
    if is_of_tables && !keywords.contains_key("additionalProperties") {
        keywords.insert("additionalProperties".into(), true.into());
    }
    for (keyword, rule) in keywords.iter_mut() {
        match (keyword.as_str(), rule) {
            ("properties" | "definitions", Json::Object(all)) => {
                all.values_mut().for_each(say_what_is_open);
            }
            ("anyOf" | "oneOf" | "allOf", Json::Array(all)) => {
                all.iter_mut().for_each(say_what_is_open);
            }
            (keyword, rule) if NESTED.contains(&keyword) => say_what_is_open(rule),
            _ => {}
        }
    }
}

fn table_schema(keys: &[KeyDoc], doc: &str) -> Json {
    let variants = keys.iter().find_map(|key| match &key.shape {
        Shape::Variants(variants) => Some((key, variants)),
        _ => None,
    });
    let Some((type_key, variants)) = variants else {
        return object_schema(keys, doc, Map::new());
    };
    let plain: Vec<_> = keys
        .iter()
        .filter(|key| key.key != type_key.key)
        .cloned()
        .collect();
    let branch = |variant: &Variant| {
        let mut keys = plain.clone();
        keys.extend(variant.keys.iter().cloned());
        let mut first = Map::new();
        let mut constant = json!({ "const": variant.name, "description": variant.doc });
        if type_key.default.as_ref().is_some_and(|d| d == variant.name) {
            constant["default"] = json!(variant.name);
        }
        first.insert(type_key.key.into(), constant);
        let mut schema = object_schema(&keys, variant.doc, first);
        let is_default = type_key.default.as_ref().is_some_and(|d| d == variant.name);
        if !is_default {
            let mut required = vec![json!(type_key.key)];
            if let Some(Json::Array(more)) = schema.get("required") {
                required.extend(more.iter().cloned());
            }
            schema["required"] = required.into();
        }
        schema
    };
    let branches: Vec<_> = variants.iter().map(branch).collect();
    json!({ "description": doc, "oneOf": branches })
}

fn object_schema(keys: &[KeyDoc], doc: &str, mut properties: Map<String, Json>) -> Json {
    let mut required = Vec::new();
    for key in keys {
        let mut schema = match &key.shape {
            Shape::Scalar(kind) => kind.schema(),
            Shape::Table(inner) => table_schema(inner, key.doc),
            Shape::Tables(inner) => {
                let items = table_schema(inner, key.doc);
                json!({ "type": "array", "minItems": key.required as u8, "items": items })
            }
            Shape::Axes => axes_schema(),
            Shape::Distributions => distributions_schema(),
            Shape::Trials => {
                json!({ "type": "array", "minItems": 1, "items": { "type": "object" } })
            }
            Shape::Values => json!({ "type": "array", "minItems": 1 }),
            Shape::Layers => {
                json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/definitions/layer" } })
            }
            Shape::Blocks => blocks_schema(),
            Shape::Free => json!({ "type": "object" }),
            Shape::Variants(_) => continue,
        };
        schema["description"] = key.doc.into();
        if let Some(default) = &key.default {
            schema["default"] = default.clone();
        }
        properties.insert(key.key.into(), schema);
        if key.required {
            required.push(json!(key.key));
        }
    }
    let mut schema = json!({
        "description": doc,
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

/// Every layer with weights has the same `initializer`, which is defined once.
fn share_initializer(layer: &mut Json) -> Json {
    let mut shared = Json::Null;
    for branch in layer["oneOf"].as_array_mut().into_iter().flatten() {
        if let Some(initializer) = branch["properties"].get_mut("initializer") {
            shared = std::mem::replace(initializer, json!({ "$ref": "#/definitions/initializer" }));
        }
    }
    shared
}

/// A layer of a known type, a `sequence`, or a use of a block. Inside those, values may be `${…}`.
fn layer_schema(mut layer: Json) -> Json {
    let known: Vec<_> = layer::types().collect();
    let group = json!({
        "description": "A `sequence` of layers, or a block of `[model.blocks]`.",
        "type": "object",
        "properties": { "type": { "type": "string", "not": { "enum": known } } },
        "required": ["type"],
    });
    // Its keys are described at every type.
    let again = json!({
        "description": "An earlier layer or block, computed again with the same weights.",
        "type": "object",
        "properties": { "share": { "type": "string" } },
        "required": ["share"],
        "not": { "required": ["type"] },
    });
    if let Some(branches) = layer["oneOf"].as_array_mut() {
        branches.extend([group, again]);
    }
    layer
}

fn blocks_schema() -> Json {
    let layers = json!({
        "type": "array",
        "items": { "type": "object", "anyOf": [{ "required": ["type"] }, { "required": ["share"] }] },
    });
    json!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": false,
            "required": ["layers"],
            "properties": {
                "inputs": { "type": "array", "items": { "type": "string" }, "minItems": 1 },
                "parameters": { "type": "object" },
                "layers": layers,
            },
        }
    })
}

/// Axes are lists under dotted or nested keys, or lists with a condition.
fn axes_schema() -> Json {
    json!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                { "type": "array", "minItems": 1 },
                table_schema(&describe_long_axis(), "An axis with a condition."),
                nested_schema(),
            ]
        }
    })
}

/// Distributions under dotted or nested keys.
fn distributions_schema() -> Json {
    json!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                table_schema(&describe_distribution(), "A distribution to sample from."),
                { "type": "object", "additionalProperties": { "type": "object" } },
            ]
        }
    })
}

/// The characters of an unquoted part of a dotted key.
fn nested_schema() -> Json {
    let inner = json!({ "anyOf": [{ "type": "array", "minItems": 1 }, { "type": "object" }] });
    json!({ "type": "object", "additionalProperties": inner })
}
