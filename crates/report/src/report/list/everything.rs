//! Everything that is known of a run, as JSON. Its settings are written from where they are: an experiment has thousands of
//! runs, which share most of them.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as Json;

use super::Run;
use super::names::{FEW, OWN};

impl Serialize for Run<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_map(None)?;
        for name in OWN {
            match name {
                "objective" => {
                    all.serialize_entry(name, &self.index.plan.objective.name())?;
                    all.serialize_entry("value", &self.value(name))?;
                }
                "age" => all.serialize_entry("age_secs", &self.age_secs())?,
                _ => all.serialize_entry(name, &self.value(name))?,
            }
        }
        for name in FEW {
            if let Some(value) = self.value(name) {
                all.serialize_entry(name, &value)?;
            }
        }
        all.serialize_entry("metrics", &self.entry.metrics)?;
        all.serialize_entry("axes", &self.entry.axes)?;
        let settings = Merged(&self.index.settings, &self.entry.settings);
        all.serialize_entry("settings", &settings)?;
        all.end()
    }
}

/// The settings that all runs share, and those of one, which differ; sorted.
struct Merged<'a>(&'a BTreeMap<String, Json>, &'a BTreeMap<String, Json>);

impl Serialize for Merged<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut own = self.1.iter().peekable();
        let mut all = serializer.serialize_map(None)?;
        for (key, value) in self.0 {
            while let Some((key, value)) = own.next_if(|(own, _)| *own < key) {
                all.serialize_entry(key, value)?;
            }
            if own.peek().is_none_or(|(own, _)| *own != key) {
                all.serialize_entry(key, value)?;
            }
        }
        for (key, value) in own {
            all.serialize_entry(key, value)?;
        }
        all.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_of_a_run_come_before_shared_ones() {
        let settings = |json: Json| serde_json::from_value(json).unwrap();
        let shared = settings(json!({"b": 1, "d": 1, "f": 1}));
        let own = settings(json!({"a": 2, "d": 2, "e": 2, "g": 2}));
        let text = serde_json::to_string(&Merged(&shared, &own)).unwrap();
        assert_eq!(text, r#"{"a":2,"b":1,"d":2,"e":2,"f":1,"g":2}"#);
    }
}
