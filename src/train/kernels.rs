//! The kernels that CubeCL selected by timing. They are hidden state: the same plan may use other kernels on another
//! day, and so round differently.
//!
//! The runs of an experiment share a folder of selections: what one has timed, the others reuse. CubeCL keeps them
//! there in a database, next to the compiled kernels, and writes a line for each selection when it is made. The digest
//! covers the selections, without times.
//!
//! An experiment begins with the selections of earlier ones on this machine, since timing twenty candidates for each
//! shape takes minutes on a GPU: a run adds its own to the machine's when it ends. What does not train uses a database
//! of its own, which begins with them too.

use std::collections::BTreeSet;
#[cfg(feature = "_tuned")]
use std::fs;
use std::path::Path;
#[cfg(feature = "_tuned")]
use std::path::PathBuf;

use serde_json::Value as Json;

use runner_core::data::sha256_hex;
use runner_core::event::Kernels;
#[cfg(feature = "_tuned")]
use runner_core::record::{cache_folder, write_whole};
use runner_core::spec::plain_file;

/// The selections in chronological order, in CubeCL's format.
const CHOICES: &str = "choices.jsonl";

/// Those of the machine, in CubeCL's format for selections that are passed on.
#[cfg(feature = "_tuned")]
const SHARED: &str = "selections.db";

/// CubeCL's name for selections, as opposed to compiled kernels.
#[cfg(feature = "_tuned")]
const SELECTIONS: &str = "autotune";

/// Makes CubeCL keep its selections and compiled kernels in a folder, and reuse existing ones; must be called before
/// anything is computed. The user's settings in a `cubecl.toml` are kept.
#[cfg(feature = "_tuned")]
pub fn keep_in(folder: &Path) {
    if !are_kept_in(folder) {
        tracing::warn!("CubeCL was already configured: its kernel selections are not recorded");
    }
}

/// The same in a folder of this machine, unless something else was set before.
#[cfg(feature = "_tuned")]
pub fn keep_on_machine() {
    are_kept_in(&machine().join("predicting"));
}

/// The folder of this machine's selections.
#[cfg(feature = "_tuned")]
fn machine() -> PathBuf {
    cache_folder().join("kernels")
}

/// Whether CubeCL keeps its state in this folder from now on, which begins with the machine's selections: it can be
/// told once.
#[cfg(feature = "_tuned")]
fn are_kept_in(folder: &Path) -> bool {
    use cubecl::config::cache::CacheConfig;
    use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
    let mut config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    config.environment.path = CacheConfig::Directory(folder.to_owned());
    config.autotune.decisions.file = Some(folder.join(CHOICES));
    config.compilation.cache = true;
    let is_new = !folder.join(CHOICES).exists();
    let is_set = CubeClRuntimeConfig::try_set(config);
    if is_set && is_new {
        take(&machine(), folder);
    }
    is_set
}

/// Adds the machine's selections to those of a folder, which lacks any.
#[cfg(feature = "_tuned")]
fn take(machine: &Path, folder: &Path) {
    let shared = machine.join(SHARED);
    if !shared.is_file() {
        return;
    }
    match cubecl::bundle::SqliteBundle::open(&shared) {
        Ok(bundle) => {
            let report = cubecl::bundle::import(&bundle);
            tracing::info!(
                imported = report.imported,
                "kernel selections of this machine"
            );
        }
        Err(e) => return tracing::warn!("{}: {e}", shared.display()),
    }
    let copied = fs::create_dir_all(folder)
        .and_then(|()| fs::copy(machine.join(CHOICES), folder.join(CHOICES)));
    if let Err(e) = copied {
        tracing::warn!("the list of kernel selections cannot be copied: {e}");
    }
}

/// Adds the selections of a folder to the machine's. A failure only costs time later.
#[cfg(feature = "_tuned")]
pub fn pass_on(folder: &Path) {
    let machine = machine();
    let lines = |folder: &Path| -> BTreeSet<String> {
        let text = plain_file::read_text(&folder.join(CHOICES)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    let (known, ours) = (lines(&machine), lines(folder));
    let new: Vec<&String> = ours.difference(&known).collect();
    if new.is_empty() {
        return;
    }
    let shared = machine.join(SHARED);
    let sources = [shared.as_path(), folder];
    let sources = sources.into_iter().filter(|path| path.exists());
    let options = cubecl::bundle::ExportOptions {
        name: "runner".into(),
        namespaces: vec![SELECTIONS.into()],
        ..Default::default()
    };
    let exported = cubecl::bundle::export(&sources.collect::<Vec<_>>(), &shared, &options);
    if let Err(e) = exported {
        return tracing::warn!("kernel selections cannot be passed on: {e}");
    }
    let all = known.iter().chain(new);
    let all: String = all.map(|line| format!("{line}\n")).collect();
    if let Err(e) = write_whole(&machine.join(CHOICES), all.as_bytes()) {
        tracing::warn!("the list of kernel selections cannot be passed on: {e}");
    }
}

/// This device does not select kernels by timing.
#[cfg(not(feature = "_tuned"))]
pub fn keep_in(_: &Path) {}

/// This device does not select kernels by timing.
#[cfg(not(feature = "_tuned"))]
pub fn keep_on_machine() {}

/// This device does not select kernels by timing.
#[cfg(not(feature = "_tuned"))]
pub fn pass_on(_: &Path) {}

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
