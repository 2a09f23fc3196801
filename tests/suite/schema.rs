//! The schema and `check` agree on valid files.

use std::fs;

use burn_runner::spec::document::Document;
use burn_runner::spec::schema::experiment_schema;
use serde_json::Value as Json;

use super::support::{diagnostics, root, tree};

/// Errors in the form of a file, and not in the combination of its values.
const STRUCTURE: [&str; 5] = [
    "unknown-key",
    "unknown-type",
    "missing-key",
    "missing-table",
    "wrong-type",
];

/// What only an expansion shows: axes may be nested tables, values of axes are checked like other keys, blocks and
/// references by their results, conditions as a separate language, and what a search needs of itself or of other tables.
const BEYOND: [&str; 9] = [
    "attention_rotary_length",
    "attention_rotary_long",
    "axis_",
    "block_",
    "exclude_",
    "reference_",
    "layers_size_forgotten",
    "random_",
    "search_with",
];

/// Whether a schema accepts a file. It supports the keywords of draft 7 that the schema uses; another one is an error
/// here. (The crate jsonschema would build Burn a second time: it enables features of shared crates.)
pub fn accepts(schema: &Json, instance: &Json) -> bool {
    takes(schema, schema, instance)
}

fn takes(root: &Json, schema: &Json, value: &Json) -> bool {
    let Json::Object(keywords) = schema else {
        return schema != &Json::Bool(false);
    };
    let number = |json: &Json| json.as_f64().unwrap();
    let all = |list: &Json, test: &dyn Fn(&Json) -> bool| -> usize {
        list.as_array().unwrap().iter().filter(|s| test(s)).count()
    };
    let fits = |s: &Json| takes(root, s, value);
    keywords
        .iter()
        .all(|(keyword, rule)| match keyword.as_str() {
            "$schema" | "title" | "description" | "default" | "definitions" => true,
            "pattern" => value.as_str().is_none_or(|text| {
                let pattern = regex::Regex::new(rule.as_str().unwrap()).unwrap();
                pattern.is_match(text)
            }),
            "$ref" => {
                let path = rule.as_str().unwrap().trim_start_matches('#');
                takes(root, root.pointer(path).unwrap(), value)
            }
            "type" => match rule {
                Json::Array(types) => types.iter().any(|t| is_of(t.as_str().unwrap(), value)),
                one => is_of(one.as_str().unwrap(), value),
            },
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "not" => !fits(rule),
            "if" => {
                let branch = if fits(rule) { "then" } else { "else" };
                keywords.get(branch).is_none_or(fits)
            }
            "then" | "else" => true,
            "allOf" => all(rule, &fits) == rule.as_array().unwrap().len(),
            "anyOf" => all(rule, &fits) > 0,
            "oneOf" => all(rule, &fits) == 1,
            "minimum" => value.as_f64().is_none_or(|v| v >= number(rule)),
            "maximum" => value.as_f64().is_none_or(|v| v <= number(rule)),
            "exclusiveMinimum" => value.as_f64().is_none_or(|v| v > number(rule)),
            "exclusiveMaximum" => value.as_f64().is_none_or(|v| v < number(rule)),
            "minLength" => value
                .as_str()
                .is_none_or(|v| v.chars().count() as f64 >= number(rule)),
            "minItems" => value
                .as_array()
                .is_none_or(|v| v.len() as f64 >= number(rule)),
            "maxItems" => value
                .as_array()
                .is_none_or(|v| v.len() as f64 <= number(rule)),
            "uniqueItems" => {
                rule == &Json::Bool(false)
                    || value.as_array().is_none_or(|items| {
                        let mut seen = items.iter().enumerate();
                        seen.all(|(at, item)| !items[..at].contains(item))
                    })
            }
            "items" => value
                .as_array()
                .is_none_or(|items| items.iter().all(|item| takes(root, rule, item))),
            "required" => value.as_object().is_none_or(|table| {
                let mut keys = rule.as_array().unwrap().iter();
                keys.all(|key| table.contains_key(key.as_str().unwrap()))
            }),
            "properties" => value.as_object().is_none_or(|table| {
                let mut keys = table.iter();
                keys.all(|(key, value)| rule.get(key).is_none_or(|rule| takes(root, rule, value)))
            }),
            "additionalProperties" => value.as_object().is_none_or(|table| {
                let known = keywords.get("properties").and_then(Json::as_object);
                let mut others = table
                    .iter()
                    .filter(|(key, _)| known.is_none_or(|known| !known.contains_key(*key)));
                others.all(|(_, value)| takes(root, rule, value))
            }),
            other => panic!("the schema uses `{other}`, which this test does not know"),
        })
}

fn is_of(name: &str, value: &Json) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the schema uses the type `{other}`"),
    }
}

/// The experiment files of a folder and, where they are sorted by rule, of the folders in it.
fn files(folder: &str) -> Vec<std::path::PathBuf> {
    let folder = root().join(folder);
    let mut files: Vec<_> = tree(&folder)
        .into_iter()
        .map(|path| folder.join(path))
        .collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files
}

#[test]
fn the_schema_refuses_what_check_refuses_for_structure() {
    let schema: Json = serde_json::from_str(&experiment_schema()).unwrap();
    let mut disagree = Vec::new();
    for path in files("tests/bad") {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (Ok(instance), Ok(_)) = (toml::from_str::<Json>(&text), Document::parse(&name, &text))
        else {
            continue;
        };
        let wrong = diagnostics(&name, &text);
        if BEYOND.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let structure = wrong.iter().find(|d| STRUCTURE.contains(&d.code));
        if let Some(diagnostic) = structure
            && accepts(&schema, &instance)
        {
            disagree.push(format!("{name}: {}", diagnostic.message));
        }
    }
    assert!(
        disagree.is_empty(),
        "the schema accepts:\n{}",
        disagree.join("\n")
    );
}

#[test]
fn the_schema_takes_the_shipped_experiments() {
    let schema: Json = serde_json::from_str(&experiment_schema()).unwrap();
    for path in files("experiments") {
        let instance: Json = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert!(accepts(&schema, &instance), "{}", path.display());
    }
}
