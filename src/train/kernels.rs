//! Which kernels CubeCL chose by timing them. They are hidden state: the same plan computes with other kernels on another day,
//! and so with other roundings.
//!
//! CubeCL writes a line for each choice to `kernels.jsonl` in the run's folder. What is digested at the end is what was
//! chosen for what, without times.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value as Json;

use crate::data::sha256_hex;
use crate::record::RunFolder;

/// Has CubeCL write its choices into the folder of the run; before anything is computed. A sink that the user set in a
/// `cubecl.toml` stays, and then there is no digest.
#[cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm", feature = "cpu"))]
pub fn watch(folder: &RunFolder) {
    use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    let file = &mut config.autotune.decisions.file;
    if file.is_none() {
        *file = Some(folder.kernels_jsonl());
    }
    if !CubeClRuntimeConfig::try_set(config) {
        tracing::warn!("CubeCL was configured before: its choices of kernels are not recorded");
    }
}

/// Nothing here chooses kernels by their times.
#[cfg(not(any(feature = "wgpu", feature = "cuda", feature = "rocm", feature = "cpu")))]
pub fn watch(_: &RunFolder) {}

/// How many kernels were chosen for the run, in all attempts at it, and a digest of the choices; `None` when none was.
pub fn chosen(folder: &RunFolder) -> Option<(usize, String)> {
    let text = fs::read_to_string(folder.kernels_jsonl()).ok()?;
    let choices: BTreeSet<String> = text.lines().filter_map(choice).collect();
    let lines: String = choices.iter().map(|choice| format!("{choice}\n")).collect();
    (!choices.is_empty()).then(|| (choices.len(), sha256_hex(lines.as_bytes())))
}

/// What was chosen, by a line of CubeCL's: its key, and the name of the candidate. A line that a kill left torn says
/// nothing.
fn choice(line: &str) -> Option<String> {
    let decision: Json = serde_json::from_str(line).ok()?;
    let outcomes = decision["results"].as_array()?.iter();
    let mut measured = outcomes.filter_map(|result| result["outcome"].get("Ok"));
    let fastest = measured.find(|outcome| outcome["index"] == decision["fastest_index"])?;
    Some(format!("{} {}", decision["key"], fastest["name"]))
}

#[cfg(test)]
mod tests {
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

    fn digest(lines: &[String]) -> Option<(usize, String)> {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder(folder.path().to_owned());
        fs::write(run.kernels_jsonl(), lines.concat()).unwrap();
        chosen(&run)
    }

    #[test]
    fn a_digest_is_of_what_was_chosen_and_of_nothing_else() {
        let (a, b) = (line("64", "tiled", 5), line("128", "simple", 7));
        let first = digest(&[a.clone(), b.clone()]).unwrap();
        assert_eq!(first.0, 2);
        let again = [
            b.clone(),
            line("64", "tiled", 9),
            a.clone(),
            a[..20].to_owned(),
        ];
        assert_eq!(digest(&again), Some(first.clone()));
        let other = digest(&[line("64", "simple", 5), b]).unwrap();
        assert_eq!(other.0, 2);
        assert_ne!(other, first);
        assert_eq!(digest(&[]), None);
    }
}
