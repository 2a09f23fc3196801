//! Values as TOML and as JSON.

use super::{Table, Value};

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

/// A text of the command line as TOML: itself if it is a TOML value, otherwise a string.
pub fn bare_to_toml(text: &str) -> String {
    let parsed = toml::from_str::<toml::Table>(&format!("v = {text}"));
    if parsed.is_ok_and(|table| table.len() == 1) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

pub(super) fn quoted(text: &str) -> String {
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
