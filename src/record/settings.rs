//! The settings of a run as keys with values, and what differs between those of two runs.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::plan::RunPlan;

/// Values by key, such as `optimizer.learning_rate`.
pub type Settings = BTreeMap<String, Json>;

/// A key whose value differs; `None` where there is no such key.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The key.
    pub key: String,
    /// Its value there.
    pub then: Option<Json>,
    /// Its value now.
    pub now: Option<Json>,
}

/// What follows from other keys, or is a name.
const DERIVED: [&str; 11] = [
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
];

/// What changes no number of a run that comes to its end.
const GUARDS: [&str; 6] = [
    "memory_",
    "time_limit_secs",
    "on_failure",
    "on_exceed",
    "data.folder",
    "data.cache",
];

/// The settings of a run, without what follows from others. The network is laid out from the model's settings, which a
/// resolved run does not hold any more.
pub fn settings(plan: &RunPlan) -> Settings {
    let mut settings = Settings::new();
    let json = serde_json::to_value(plan).unwrap_or_default();
    flatten(json, String::new(), &mut settings);
    settings.retain(|key, _| !DERIVED.iter().any(|start| key.starts_with(start)));
    settings
}

/// Whether a key only guards a run: limits, retries, places of files.
pub fn is_guard(key: &str) -> bool {
    GUARDS.iter().any(|start| key.starts_with(start))
}

/// The keys whose values differ, sorted.
pub fn changed(then: &RunPlan, now: &RunPlan) -> Vec<Changed> {
    let (mut then, mut now) = (settings(then), settings(now));
    let keys: std::collections::BTreeSet<_> = then.keys().chain(now.keys()).cloned().collect();
    let pairs = keys.into_iter().map(|key| Changed {
        then: then.remove(&key),
        now: now.remove(&key),
        key,
    });
    pairs
        .filter(|changed| changed.then != changed.now)
        .collect()
}

fn flatten(value: Json, path: String, leaves: &mut Settings) {
    match value {
        Json::Object(map) => {
            for (key, value) in map {
                let inner = match path.is_empty() {
                    true => key,
                    false => format!("{path}.{key}"),
                };
                flatten(value, inner, leaves);
            }
        }
        other => {
            leaves.insert(path, other);
        }
    }
}
