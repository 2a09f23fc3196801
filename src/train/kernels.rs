//! The kernels that CubeCL selected by timing. They are hidden state: the same plan may use other kernels on another
//! day, and so round differently.
//!
//! The runs of an experiment share a folder of selections: what one has timed, the others reuse. CubeCL keeps them
//! there in a database, and writes a line for each selection when it is made. The digest covers the selections, without
//! times.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value as Json;

use runner_core::data::sha256_hex;
use runner_core::event::Kernels;
use runner_core::spec::plain_file;

/// The selections in chronological order, in CubeCL's format.
const CHOICES: &str = "choices.jsonl";

/// Makes CubeCL keep its selections in a folder, and reuse existing ones; must be called before anything is computed.
/// The user's settings in a `cubecl.toml` are kept.
#[cfg(feature = "_tuned")]
pub fn keep_in(folder: &Path) {
    use cubecl::config::cache::CacheConfig;
    use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    config.environment.path = CacheConfig::Directory(folder.to_owned());
    config.autotune.decisions.file = Some(folder.join(CHOICES));
    if !CubeClRuntimeConfig::try_set(config) {
        tracing::warn!("CubeCL was already configured: its kernel selections are not recorded");
    }
}

/// This device does not select kernels by timing.
#[cfg(not(feature = "_tuned"))]
pub fn keep_in(_: &Path) {}

/// The kernels that were selected in a folder; `None` if none was.
pub fn chosen(folder: &Path) -> Option<Kernels> {
    let text = plain_file::read_text(&folder.join(CHOICES)).ok()?;
    let choices: BTreeSet<(String, String)> = text.lines().filter_map(choice).collect();
    let lines = choices.iter().map(|(key, name)| format!("{key} {name}\n"));
    let digest = sha256_hex(lines.collect::<String>().as_bytes());
    let short = |(key, name): &(String, String)| {
        let key = sha256_hex(key.as_bytes());
        (key[..16].to_owned(), name.clone())
    };
    (!choices.is_empty()).then(|| Kernels {
        num: choices.len(),
        digest,
        choices: choices.iter().map(short).collect(),
    })
}

/// A selection, from a line of CubeCL's: its key, and the name of the candidate. A partial line after a kill is
/// ignored.
fn choice(line: &str) -> Option<(String, String)> {
    let decision: Json = serde_json::from_str(line).ok()?;
    let outcomes = decision["results"].as_array()?.iter();
    let mut measured = outcomes.filter_map(|result| result["outcome"].get("Ok"));
    let fastest = measured.find(|outcome| outcome["index"] == decision["fastest_index"])?;
    Some((decision["key"].to_string(), fastest["name"].to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn line(key: &str, name: &str, nanos: u32) -> String {
        let outcome = |index: u32, name: &str| {
            format!(
                "{{\"outcome\":{{\"Ok\":{{\"name\":\"{name}\",\"index\":{index},\"computation\":{{\"nanos\":{nanos}}}}}}}}}"
            )
        };
        let skipped = "{\"outcome\":{\"Err\":{\"Skip\":{\"name\":\"slow\"}}}}";
        format!(
            "{{\"key\":{{\"m\":\"{key}\"}},\"fastest_index\":1,\"results\":[{},{},{skipped}]}}\n",
            outcome(1, name),
            outcome(0, "other")
        )
    }

    fn digest(lines: &[String]) -> Option<Kernels> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(CHOICES), lines.concat()).unwrap();
        chosen(folder.path())
    }

    #[test]
    fn a_digest_is_of_what_was_chosen_and_of_nothing_else() {
        let (a, b) = (line("64", "tiled", 5), line("128", "simple", 7));
        let first = digest(&[a.clone(), b.clone()]).unwrap();
        assert_eq!((first.num, first.choices.len()), (2, 2));
        let again = [
            b.clone(),
            line("64", "tiled", 9),
            a.clone(),
            a[..20].to_owned(),
        ];
        assert_eq!(digest(&again), Some(first.clone()));
        let other = digest(&[line("64", "simple", 5), b]).unwrap();
        assert_eq!(other.num, 2);
        assert_ne!(other.digest, first.digest);
        let differ = other.differing(&first);
        assert_eq!(differ, (1, 2));
        assert_eq!(digest(&[]), None);
    }
}
