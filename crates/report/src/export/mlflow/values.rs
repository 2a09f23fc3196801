//! The values of a run in MLflow's formats and limits.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::export::Exported;
use crate::report::value_text;
use runner_core::event::Outcome;
use runner_core::record::{Environment, settings};

/// Characters of a parameter's or a tag's value.
const MAX_VALUE: usize = 6000;
/// Characters of a key.
const MAX_KEY: usize = 250;

/// The tag with a run's id.
pub const RUN: &str = "runner.run";
/// The tag with its fingerprint.
pub const FINGERPRINT: &str = "runner.fingerprint";

/// Information about a run in addition to its settings.
pub fn tags(run: &Exported, environment: Option<&Environment>) -> BTreeMap<String, String> {
    let plan = &run.plan;
    let mut tags = BTreeMap::from([
        (RUN.to_owned(), plan.id.clone()),
        (FINGERPRINT.to_owned(), plan.fingerprint.clone()),
        ("runner.trial".to_owned(), plan.trial.clone()),
        ("runner.outcome".to_owned(), run.outcome().to_owned()),
    ]);
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            tags.insert(key.to_owned(), cut(value));
        }
    };
    if let Some(Outcome::Failed { class, message, .. }) = &run.record.outcome {
        let class = runner_core::spec::section::Choice::name(*class);
        add("runner.failure", Some(format!("{class}: {message}")));
    }
    let adjustments = run.record.attempts.adjustments.iter();
    let adjustments: Vec<_> = adjustments.map(ToString::to_string).collect();
    add("runner.adjustments", Some(adjustments.join(", ")));
    let worker = environment.and_then(|e| e.worker.as_ref());
    add("runner.device_name", worker.map(|w| w.device_name.clone()));
    add("runner.host", environment.map(|e| e.host.clone()));
    let commit = environment.and_then(|e| e.git_commit.clone());
    add("mlflow.source.git.commit", commit);
    tags
}

/// The settings, and those axes that are part of the planned network.
pub fn params(run: &Exported) -> BTreeMap<String, String> {
    let mut settings = settings(&run.plan);
    for (key, value) in &run.plan.axes {
        settings.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let known = settings.into_iter().filter(|(_, value)| !value.is_null());
    known
        .map(|(key, value)| (name(&key), cut(value_text(&value))))
        .collect()
}

/// A key with the characters that MLflow accepts.
pub fn name(key: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || "_-. /".contains(c);
    let plain = key.chars().map(|c| if keep(c) { c } else { '_' });
    plain.take(MAX_KEY).collect()
}

/// A value within the server's limit, with a mark if it is truncated.
pub fn cut(value: String) -> String {
    match value.char_indices().nth(MAX_VALUE - 1) {
        Some((at, _)) if value[at..].chars().count() > 1 => format!("{}…", &value[..at]),
        _ => value,
    }
}

/// Numbers that JSON does not have are texts, as in Protocol Buffers' JSON.
pub fn number(value: f64) -> Json {
    match value {
        _ if value.is_finite() => json!(value),
        _ if value.is_nan() => json!("NaN"),
        _ if value > 0.0 => json!("Infinity"),
        _ => json!("-Infinity"),
    }
}

/// Tags in the server's format.
pub fn pairs(tags: &BTreeMap<String, String>) -> Json {
    let pairs = tags.iter();
    pairs
        .map(|(key, value)| json!({ "key": key, "value": value }))
        .collect()
}

/// A text; a number as text, since servers write 64-bit numbers either way.
pub fn text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        other => value_text(other),
    }
}
