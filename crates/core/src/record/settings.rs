//! The settings of a run as keys with values, and the differences between two runs.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::plan::RunPlan;

/// Values by key, such as `optimizer.learning_rate`.
pub type Settings = BTreeMap<String, Json>;

/// A key whose value differs; `None` if the key does not exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The key.
    pub key: String,
    /// Its recorded value.
    pub then: Option<Json>,
    /// Its current value.
    pub now: Option<Json>,
}

/// Keys that are derived from others, or are names.
const DERIVED: [&str; 14] = [
    "id",
    "trial",
    "fingerprint",
    "format",
    "network",
    "experiment",
    "axes",
    "skip",
    "steps_per_epoch",
    "forecast",
    "least_memory",
    "init.tensors",
    "teacher.network",
    "teacher.weights.tensors",
];

/// Keys that do not affect the numbers of a completed run.
const GUARDS: [&str; 8] = [
    "memory.",
    "limits.run",
    "on_failure",
    "data.folder",
    "data.cache",
    "init.path",
    "strategy.teacher.weights.path",
    "predictions.",
];

/// Keys of a resolved run with another name in the experiment file, including those inside tables.
const NAMES: [(&str, &str); 10] = [
    ("device", "backend.device"),
    ("precision", "backend.precision"),
    ("kernels", "backend.kernels"),
    ("arithmetic", "backend.arithmetic"),
    ("memory_limit_bytes", "memory.limit"),
    ("memory_reserve_bytes", "memory.reserve"),
    ("on_exceed", "memory.on_exceed"),
    ("time_limit_secs", "limits.run"),
    ("objective", "objective.metric"),
    ("teacher", "strategy.teacher"),
];

/// The settings of a run by the keys of the experiment file, without derived ones. The network is planned from the
/// model's settings, which a resolved run no longer contains.
pub fn settings(plan: &RunPlan) -> Settings {
    let mut settings = Settings::new();
    let mut json = serde_json::to_value(plan).unwrap_or_default();
    json["losses"] = by_name(json["losses"].take());
    flatten(json, String::new(), &mut settings);
    settings.retain(|key, _| !DERIVED.iter().any(|start| key.starts_with(start)));
    let named = settings.into_iter();
    named.map(|(key, value)| (as_written(key), value)).collect()
}

/// A list of tables as a table of them, by their names.
fn by_name(tables: Json) -> Json {
    let Json::Array(tables) = tables else {
        return Json::Object(Map::new());
    };
    let named = tables.into_iter().filter_map(|mut table| {
        let fields = table.as_object_mut()?;
        let name = fields.remove("name")?;
        Some((name.as_str()?.to_owned(), table))
    });
    Json::Object(named.collect())
}

/// The name of a key in an experiment file.
fn as_written(key: String) -> String {
    let (head, rest) = match key.split_once('.') {
        Some((head, rest)) => (head, Some(rest)),
        None => (key.as_str(), None),
    };
    match (NAMES.iter().find(|(ours, _)| *ours == head), rest) {
        (Some((_, name)), Some(rest)) => format!("{name}.{rest}"),
        (Some((_, name)), None) => (*name).to_owned(),
        (None, _) => key,
    }
}

/// Whether a key only limits or locates a run: limits, retries, paths.
pub fn is_guard(key: &str) -> bool {
    GUARDS.iter().any(|start| key.starts_with(start))
}

/// The keys whose values differ, sorted.
pub fn changed(then: &RunPlan, now: &RunPlan) -> Vec<Changed> {
    let (then_axes, now_axes) = (&then.axes, &now.axes);
    let (mut then, mut now) = (settings(then), settings(now));
    let keys: std::collections::BTreeSet<_> = then.keys().chain(now.keys()).cloned().collect();
    // A plan omits defaults, which an axis may still set.
    let pairs = keys.into_iter().map(|key| Changed {
        then: then.remove(&key).or_else(|| then_axes.get(&key).cloned()),
        now: now.remove(&key).or_else(|| now_axes.get(&key).cloned()),
        key,
    });
    pairs
        .filter(|changed| changed.then != changed.now)
        .collect()
}

pub(super) fn flatten(value: Json, path: String, leaves: &mut Settings) {
    match value {
        Json::Object(map) => {
            for (key, value) in map {
                let inner = if path.is_empty() {
                    key
                } else {
                    format!("{path}.{key}")
                };
                flatten(value, inner, leaves);
            }
        }
        other => {
            leaves.insert(path, other);
        }
    }
}
