//! The files of a run in addition to its events: weights and their distributions, trace, evaluation, transforms,
//! predictions, pictures of generated items. The last events of a run contain their digests (`files_recorded`), and
//! every reader compares them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::damage::damaged;
use super::unfinished::is_scratch;
use super::{RunFolder, RunRecord, sync_files, sync_folder};
use crate::hash::sha256_of;
use crate::spec::plain_file;

/// The files in the run's folder itself that have a digest.
const FILES: [&str; 3] = ["transforms.json", "evaluation.json", "weights.json"];
/// The folders whose files have one.
const FOLDERS: [&str; 4] = ["model", "predictions", "samples", "trace"];

/// The other files in it that nothing can restore.
const ORIGINALS: [&str; 3] = ["run.toml", "events.jsonl", "environment.json"];

impl RunFolder {
    /// The run that would be damaged if a file were replaced.
    pub fn with_file(path: &Path) -> Option<Self> {
        let folder = path.parent()?.canonicalize().ok()?;
        let name = path.file_name()?.to_str()?;
        let is_run = |folder: &Path| {
            ORIGINALS[..2]
                .iter()
                .all(|name| folder.join(name).is_file())
        };
        if is_run(&folder) && (FILES.contains(&name) || ORIGINALS.contains(&name)) {
            return Some(Self(folder));
        }
        let inside = folder.file_name()?.to_str()?;
        let is_kept = FOLDERS.contains(&inside) || inside == "checkpoints";
        let run = folder.parent().filter(|run| is_kept && is_run(run))?;
        Some(Self(run.to_owned()))
    }

    /// The sha256 of each of the run's files, by path in the folder, once all of them are on disk.
    pub fn digest_files(&self) -> io::Result<BTreeMap<String, String>> {
        let mut names: Vec<String> = FILES.map(str::to_owned).to_vec();
        for folder in FOLDERS {
            let entries = match fs::read_dir(self.0.join(folder)) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            for entry in entries {
                let name = entry?.file_name().to_string_lossy().into_owned();
                // Files that begin with a dot are still being written.
                if !name.starts_with('.') && !is_scratch(&name) {
                    names.push(format!("{folder}/{name}"));
                }
            }
        }
        names.retain(|name| self.0.join(name).is_file());
        let paths: Vec<_> = names.iter().map(|name| self.0.join(name)).collect();
        sync_files(&paths)?;
        for folder in FOLDERS {
            match sync_folder(&self.0.join(folder)) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        let digest =
            |(name, path): (String, PathBuf)| Ok((name, sha256_of(plain_file::open(&path)?)?));
        names.into_iter().zip(paths).map(digest).collect()
    }

    /// Refuses one of the run's files that changed since the run ended: `model/best.bpk`, `trace/losses.f64`, … Nothing
    /// is known or refused for a run that has not ended, or that ended before digests were recorded.
    pub fn check_file(&self, record: &RunRecord, name: &str) -> io::Result<()> {
        if record.files.is_empty() {
            return Ok(());
        }
        let path = self.0.join(name);
        let is_same = match (record.files.get(name), digest(&path)?) {
            (None, None) => true,
            (Some(_), None) => return Err(damaged(&path, "it is missing")),
            (then, now) => then == now.as_ref(),
        };
        if is_same {
            return Ok(());
        }
        let reason =
            "it was changed after the run ended (its sha256 does not match the recorded one)";
        Err(damaged(&path, reason))
    }

    /// What is wrong with each of the run's recorded files that changed since the run ended.
    pub fn changed_files(&self, record: &RunRecord) -> Vec<io::Error> {
        let names = record.files.keys();
        names
            .filter_map(|name| self.check_file(record, name).err())
            .collect()
    }
}

fn digest(path: &Path) -> io::Result<Option<String>> {
    match plain_file::open(path).and_then(sha256_of) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_changed_removed_or_added_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder(place.path().to_owned());
        for inner in FOLDERS {
            fs::create_dir(folder.0.join(inner)).unwrap();
        }
        fs::write(folder.model("final"), "weights").unwrap();
        fs::write(folder.trace().join("losses.f64"), "losses").unwrap();
        fs::write(folder.transforms_json(), "{}").unwrap();
        let record = RunRecord {
            files: folder.digest_files().unwrap(),
            ..RunRecord::default()
        };
        let names: Vec<_> = record.files.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["model/final.bpk", "trace/losses.f64", "transforms.json"]
        );
        assert!(folder.changed_files(&record).is_empty());
        fs::write(folder.model("final"), "weighty").unwrap();
        fs::remove_file(folder.transforms_json()).unwrap();
        fs::write(folder.evaluation_json(), "{}").unwrap();
        let said = |name: &str| folder.check_file(&record, name).map_err(|e| e.to_string());
        assert!(
            said("model/final.bpk")
                .unwrap_err()
                .contains("it was changed")
        );
        assert!(
            said("transforms.json")
                .unwrap_err()
                .contains("it is missing")
        );
        assert!(
            said("evaluation.json")
                .unwrap_err()
                .contains("it was changed")
        );
        assert_eq!(said("trace/losses.f64"), Ok(()));
        assert_eq!(folder.changed_files(&record).len(), 2);
        assert_eq!(
            folder
                .check_file(&RunRecord::default(), "model/final.bpk")
                .ok(),
            Some(())
        );
    }
}
