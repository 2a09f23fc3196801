//! Kinds as JSON Schema.

use serde_json::{Value as Json, json};

use super::{Kind, duration};
use crate::spec::metric::{Metric, ObjectiveSplit};
use crate::spec::section::Choice;

impl Kind {
    /// The JSON Schema (draft 7) of the value.
    pub fn schema(&self) -> Json {
        match self {
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Int(min, i64::MAX) => json!({ "type": "integer", "minimum": min }),
            Kind::Int(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
            Kind::Float {
                min,
                open_min,
                max,
                open_max,
            } => {
                let mut schema = json!({ "type": "number" });
                if min.is_finite() {
                    let key = if *open_min {
                        "exclusiveMinimum"
                    } else {
                        "minimum"
                    };
                    schema[key] = json!(min);
                }
                if max.is_finite() {
                    let key = if *open_max {
                        "exclusiveMaximum"
                    } else {
                        "maximum"
                    };
                    schema[key] = json!(max);
                }
                schema
            }
            Kind::AnyText => json!({ "type": "string" }),
            Kind::Regex => json!({ "type": "string", "format": "regex" }),
            Kind::Text | Kind::Path | Kind::Pattern => json!({ "type": "string", "minLength": 1 }),
            Kind::OneOf(names) => {
                let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
                json!({ "type": "string", "enum": names })
            }
            Kind::Indexed(names) => {
                let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
                json!({ "type": "string", "pattern": format!("^({})(:[0-9]+)?$", names.join("|")) })
            }
            Kind::Slug => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]*$" }),
            Kind::Objective => {
                let names: Vec<_> = Metric::all().into_iter().map(|(_, name, _)| name).collect();
                let splits: Vec<_> = ObjectiveSplit::ALL
                    .iter()
                    .map(|(_, name, _)| *name)
                    .collect();
                let splits = splits.join("|");
                // Between the two, the name of a term of `[[losses]]`.
                let names = names.join("|");
                let pattern = format!("^({splits})/([A-Za-z0-9._-]+/)?({names})$");
                json!({ "type": "string", "pattern": pattern })
            }
            Kind::Bytes => json!({
                "type": "string",
                "pattern": "^[0-9]+(\\.[0-9]+)? ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$"
            }),
            Kind::Duration { .. } => json!({ "type": "string", "pattern": duration::PATTERN }),
            Kind::List {
                item,
                min_items,
                unique,
            } => json!({
                "type": "array",
                "items": item.schema(),
                "minItems": min_items,
                "uniqueItems": unique,
            }),
            Kind::Tuple { item, len } => json!({
                "type": "array",
                "items": item.schema(),
                "minItems": len,
                "maxItems": len,
            }),
            Kind::Either(first, second) => json!({ "anyOf": [first.schema(), second.schema()] }),
        }
    }
}
