//! A varied key with its values, and the labels of both in run ids.

use std::collections::{BTreeMap, BTreeSet};

use super::types::Narrowed;
use crate::data::sha256_hex;
use crate::diagnostic::Span;
use crate::spec::document::{Node, Table, Value};
use crate::spec::portable::folded;
use crate::spec::section::joined;
use crate::spec::sweep::Text;

/// The table of the file that contains an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `[sweep.grid]`
    Grid,
    /// `[sweep.zip]`
    Zip,
    /// `[[sweep.list]]`
    List,
    /// `[sweep.random]`
    Random,
}

/// A varied key as written, before the others are known.
#[derive(Clone, Debug)]
pub struct Column {
    /// The dotted key.
    pub key: String,
    /// Its place.
    pub key_span: Span,
    /// Its table.
    pub form: Form,
    /// Its factor.
    pub factor: usize,
    /// Its condition.
    pub when: Option<Text>,
    /// Its value for each option of the factor; none if the option does not set the key.
    pub nodes: Vec<Option<Node>>,
}

/// A varied key.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The dotted key.
    pub key: String,
    /// Its place.
    pub key_span: Span,
    /// Its table.
    pub form: Form,
    /// Its factor.
    pub factor: usize,
    /// The index of its condition.
    pub when: Option<usize>,
    /// The label of the key in run ids.
    label: String,
    /// The labels of its values in run ids.
    value_labels: Vec<String>,
    /// One for each option of the factor; none if the option does not set the key.
    pub settings: Vec<Option<Setting>>,
    /// Keys of the file that not all types have, if the axis is over a `type`.
    pub narrowed: Vec<Narrowed>,
}

/// A value of an axis.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The value and its place.
    pub node: Node,
    /// Equal for equal values of the axis; 0 for the value in the file.
    pub id: u32,
    /// Its index in the labels: equal for equal values of the axis.
    pub label: u32,
}

impl Axis {
    /// `key=value`, as in run ids.
    pub fn show(&self, option: usize) -> Option<String> {
        let setting = self.settings[option].as_ref()?;
        let value = &self.value_labels[setting.label as usize];
        Some(format!("{}={value}", self.label))
    }

    /// The keys inside of its tables that differ between them.
    pub fn inner_keys(&self) -> Vec<String> {
        let mut seen: BTreeMap<String, BTreeMap<u32, String>> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        for setting in self.settings.iter().flatten() {
            ids.insert(setting.id);
            let mut see = |key: &str, value: &Value| {
                let by_id = seen.entry(key.to_owned()).or_default();
                by_id.insert(setting.id, text_of(value));
            };
            if let Value::Table(table) = &setting.node.value {
                leaves(&self.key, table, &mut see);
            }
        }
        let differs = |by_id: &BTreeMap<u32, String>| {
            by_id.len() < ids.len() || by_id.values().collect::<BTreeSet<_>>().len() > 1
        };
        let differing = seen.into_iter().filter(|(_, by_id)| differs(by_id));
        differing.map(|(key, _)| key).collect()
    }

    /// Whether every option sets the key unconditionally.
    pub fn is_always_set(&self) -> bool {
        self.when.is_none() && self.settings.iter().all(Option::is_some)
    }
}

/// Assigns labels and ids to columns; `base` is the file without its sweep.
pub fn axes(columns: Vec<Column>, base: &Table) -> Vec<Axis> {
    let keys: Vec<_> = columns.iter().map(|column| column.key.clone()).collect();
    let mut labels: Vec<_> = keys.iter().map(|key| key_label(key, &keys)).collect();
    for at in 0..labels.len() {
        if labels[..at].contains(&labels[at]) {
            labels[at] = sanitize(&keys[at]);
        }
    }
    let named = columns.into_iter().zip(labels);
    named
        .map(|(column, label)| axis(column, label, base))
        .collect()
}

fn axis(column: Column, label: String, base: &Table) -> Axis {
    let written = base.at(&column.key).map(|entry| text_of(&entry.node.value));
    let mut known: BTreeMap<String, u32> = BTreeMap::new();
    let mut distinct: Vec<Node> = Vec::new();
    let settings = column.nodes.into_iter().map(|node| {
        let node = node?;
        let text = text_of(&node.value);
        let is_written = written.as_ref() == Some(&text);
        let label = *known.entry(text).or_insert_with(|| {
            distinct.push(node.clone());
            distinct.len() as u32 - 1
        });
        let id = if is_written { 0 } else { label + 1 };
        Some(Setting { node, id, label })
    });
    Axis {
        settings: settings.collect(),
        value_labels: value_labels(&distinct),
        key: column.key,
        key_span: column.key_span,
        form: column.form,
        factor: column.factor,
        when: None,
        label,
        narrowed: Vec::new(),
    }
}

/// Calls `see` with each value below a table that is not a table, with its dotted key.
fn leaves(above: &str, table: &Table, see: &mut dyn FnMut(&str, &Value)) {
    for entry in &table.entries {
        let key = joined(above, &entry.key);
        match &entry.node.value {
            Value::Table(inner) => leaves(&key, inner, see),
            value => see(&key, value),
        }
    }
}

/// Equal for values that mean the same, however they are written: `1` is `1.0`.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Float(v) if v.fract() == 0.0 && v.abs() < 1e15 => (*v as i64).to_string(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|n| text_of(&n.value)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Table(table) => {
            let mut entries: Vec<_> = table
                .entries
                .iter()
                .map(|e| format!("{:?}={}", e.key, text_of(&e.node.value)))
                .collect();
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
        other => other.to_toml(),
    }
}

/// The shortest suffix of a dotted key that no other axis shares; `optimizer.type` becomes `optimizer`.
fn key_label(key: &str, keys: &[String]) -> String {
    let short = |key: &str| key.strip_suffix(".type").unwrap_or(key).to_owned();
    let own = short(key);
    let segments: Vec<_> = own.split('.').collect();
    let suffix_of = |num: usize| segments[segments.len() - num..].join(".");
    let shared = |suffix: &str| {
        let ends = |other: &String| {
            let other = short(other);
            other == suffix || other.ends_with(&format!(".{suffix}"))
        };
        keys.iter().filter(|other| ends(other)).count() > 1
    };
    let num = (1..=segments.len()).find(|num| !shared(&suffix_of(*num)));
    sanitize(&suffix_of(num.unwrap_or(segments.len())))
}

/// Different labels for different values, in upper and lower case too. Each depends on its value, and not on its place:
/// a run is found again by its name after a value was added. Of values with one label, the first has it unchanged.
fn value_labels(values: &[Node]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let labels = values.iter().map(|node| {
        let mut label = value_label(&node.value);
        while label.is_empty() || !taken.insert(folded(&label)) {
            label = format!("{label}.{}", digest(&node.value));
        }
        label
    });
    labels.collect()
}

fn value_label(value: &Value) -> String {
    match value {
        // For an expression, its content.
        Value::Str(text) => sanitize(&text.replace("${", "").replace([' ', '}'], "")),
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|n| value_label(&n.value)).collect();
            items.join("x")
        }
        Value::Table(table) => table_label(table, value),
        other => sanitize(&other.to_toml()),
    }
}

/// The type of a table and its other entries, `adamw+weight_decay=0.1`, in an order that does not depend on how they
/// are written.
fn table_label(table: &Table, value: &Value) -> String {
    /// Bytes, of which a name has few.
    const MAX_LEN: usize = 64;
    let mut kind = None;
    let mut parts = Vec::new();
    for entry in &table.entries {
        let label = value_label(&entry.node.value);
        match &entry.node.value {
            Value::Str(_) if entry.key == "type" => kind = Some(label),
            _ => parts.push(format!("{}={label}", sanitize(&entry.key))),
        }
    }
    parts.sort();
    let all: Vec<_> = kind.clone().into_iter().chain(parts).collect();
    let label = all.join("+");
    if label.len() <= MAX_LEN {
        return label;
    }
    format!(
        "{}.{}",
        kind.unwrap_or_else(|| "table".into()),
        digest(value)
    )
}

fn digest(value: &Value) -> String {
    sha256_hex(text_of(value).as_bytes())[..6].to_owned()
}

/// Keeps characters that are safe in folder names on every system: letters and digits of all languages among them.
fn sanitize(text: &str) -> String {
    let keep = |c: char| {
        if c.is_alphanumeric() || "._+-".contains(c) {
            c
        } else {
            '-'
        }
    };
    text.chars().map(keep).collect()
}
