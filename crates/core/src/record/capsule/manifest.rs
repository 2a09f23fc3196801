//! `capsule.json`: the content of a capsule, and the checks for a foreign manifest.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::super::name::{is_plain, plain, shown, wrong};
use super::super::seal::{self, SealState};
use super::{CapsuleError, FORMAT, MANIFEST, MAX_FILES, RUN_TOML, SIBLINGS};
use crate::data::origin::Root;
use crate::show::show_bytes;

/// The maximum size in bytes of a file that is read as a whole when a capsule is opened.
const MAX_READ: u64 = 64 << 20;

/// The content of a capsule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this format.
    pub format: u32,
    /// The version of the program that created the capsule.
    pub runner_version: String,
    /// The experiment of the run.
    pub experiment: String,
    /// The run's id.
    pub run: String,
    /// `completed`, `failed`, `interrupted`, `skipped`, or `incomplete` if the run has not ended.
    pub outcome: String,
    /// The data of the run.
    pub data: DataManifest,
    /// All other files, sorted by path.
    pub files: Vec<FileSum>,
}

/// A file of a capsule, or of data outside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileSum {
    /// Its path in the capsule; for data outside, its name in the root's folder.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// sha256 of its content.
    pub sha256: String,
}

/// The data of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataManifest {
    /// The data set's name in experiment files.
    pub dataset: String,
    /// What is needed in addition to the capsule.
    pub needs: Needs,
    /// sha256 of the content of the files and of how they are read, if the plan contains it.
    pub content_digest: Option<String>,
    /// sha256 of each split's items, as used by the run; empty if it never started.
    pub split_digests: BTreeMap<String, String>,
    /// The files and folders that the plan names.
    pub roots: Vec<DataRoot>,
    /// Why sizes and sums of files outside are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What is needed in addition to a capsule to train its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Needs {
    /// Nothing: the data is embedded or generated.
    Nothing,
    /// Nothing: the data is in the capsule.
    Packed,
    /// The files of the data, which are not in the capsule.
    Files,
}

/// A file or folder that the data is read from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataRoot {
    /// The key of the experiment file: `path`, `valid_path`, `target_path` …; `folder` for MNIST.
    pub key: String,
    /// Its position in that key's list, from 1.
    pub number: usize,
    /// Where it was.
    pub original: String,
    /// Whether it stands for the files in it.
    pub is_folder: bool,
    /// The number of its files.
    pub num_files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Its place in the capsule: a path of `files`, or the prefix of its files' paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packed: Option<String>,
    /// Its files, if they are not in the capsule and not too many to list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileSum>,
}

impl DataRoot {
    /// A root with the sums of its files, as they were measured.
    pub fn of(root: &Root) -> Self {
        let files = root.files.iter().map(|file| FileSum {
            path: file.name.clone(),
            bytes: file.bytes,
            sha256: file.sha256.clone(),
        });
        Self {
            key: root.key.to_owned(),
            number: root.number,
            original: root.path.to_string_lossy().into_owned(),
            is_folder: root.is_folder,
            num_files: root.files.len(),
            bytes: root.files.iter().map(|file| file.bytes).sum(),
            packed: None,
            files: files.collect(),
        }
    }
}

impl Manifest {
    /// The total size of all files in bytes.
    pub fn unpacked_bytes(&self) -> u64 {
        let sizes = self.files.iter().map(|file| file.bytes);
        sizes.fold(0, u64::saturating_add)
    }
}

impl DataManifest {
    /// Files and bytes of the data; a file that two roots share counts for each.
    pub fn size(&self) -> (usize, u64) {
        let roots = self.roots.iter();
        roots.fold((0, 0), |(files, bytes), root| {
            (
                files.saturating_add(root.num_files),
                bytes.saturating_add(root.bytes),
            )
        })
    }
}

#[derive(Deserialize)]
struct Head {
    format: u32,
}

impl Manifest {
    /// Reads a manifest and checks its consistency.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, CapsuleError> {
        let damaged = |e: serde_json::Error| {
            let reason = e.to_string();
            let (reason, _) = reason.split_once(" at line").unwrap_or((&reason, ""));
            CapsuleError::new(format!("`capsule.json` is damaged: {reason}"), DAMAGED)
        };
        let text = String::from_utf8_lossy(bytes);
        if seal::seal_state(&text, 0) == SealState::Edited {
            let message = format!("`{MANIFEST}` was changed after it was written");
            return Err(CapsuleError::new(message, DAMAGED));
        }
        let head: Head = serde_json::from_slice(bytes).map_err(damaged)?;
        if head.format != FORMAT {
            let message = format!(
                "the capsule has format {}; this runner reads format {FORMAT}",
                head.format
            );
            return Err(CapsuleError::new(
                message,
                "use the version of runner that created it, or a newer one",
            ));
        }
        let mut manifest: Self = serde_json::from_slice(bytes).map_err(damaged)?;
        manifest.check()?;
        manifest.make_plain();
        Ok(manifest)
    }

    /// Text for display is made printable.
    fn make_plain(&mut self) {
        let notes = [&mut self.runner_version].into_iter();
        let notes = notes.chain(&mut self.data.note);
        notes.for_each(|text| *text = plain(text, 1000));
        for root in &mut self.data.roots {
            root.original = plain(&root.original, 4096);
            for file in &mut root.files {
                file.path = plain(&file.path, 1024);
            }
        }
    }

    fn check(&self) -> Result<(), CapsuleError> {
        if self.files.len() > MAX_FILES {
            let message = format!("the capsule lists {} files", self.files.len());
            return Err(
                CapsuleError::new(message, HOSTILE).note(format!("the limit is {MAX_FILES}"))
            );
        }
        let mut paths = BTreeSet::new();
        for file in &self.files {
            check_file(file)?;
            if !paths.insert(file.path.as_str()) {
                let message = format!("`capsule.json` lists {} twice", shown(&file.path));
                return Err(CapsuleError::new(message, HOSTILE));
            }
        }
        for file in &self.files {
            let ends = file.path.match_indices('/').map(|(at, _)| at);
            let mut above = ends.map(|at| &file.path[..at]);
            if let Some(above) = above.find(|above| paths.contains(above)) {
                let message = format!(
                    "`capsule.json` lists {} as both a file and a folder",
                    shown(above)
                );
                return Err(CapsuleError::new(message, HOSTILE));
            }
        }
        if let Some(missing) = [RUN_TOML, SIBLINGS].iter().find(|p| !paths.contains(*p)) {
            let message = format!("`capsule.json` does not list `{missing}`");
            return Err(CapsuleError::new(message, DAMAGED));
        }
        for (what, name) in [("experiment", &self.experiment), ("run", &self.run)] {
            if !is_plain(name) {
                let message = format!("{} is not a valid name of the {what}", shown(name));
                return Err(CapsuleError::new(message, HOSTILE));
            }
        }
        if !OUTCOMES.contains(&self.outcome.as_str()) {
            let message = format!("{} is not an outcome of a run", shown(&self.outcome));
            return Err(CapsuleError::new(message, HOSTILE));
        }
        let roots = &self.data.roots;
        let num_packed = roots.iter().filter(|root| root.packed.is_some()).count();
        let is_so = match self.data.needs {
            Needs::Nothing => roots.is_empty(),
            Needs::Packed => !roots.is_empty() && num_packed == roots.len(),
            Needs::Files => !roots.is_empty() && num_packed == 0,
        };
        if !is_so {
            let message = "`capsule.json` contradicts itself about the location of the data";
            return Err(CapsuleError::new(message, HOSTILE));
        }
        roots.iter().try_for_each(|root| check_root(root, &paths))
    }
}

/// The possible outcomes of a run.
const OUTCOMES: [&str; 6] = [
    "completed",
    "failed",
    "interrupted",
    "pruned",
    "skipped",
    super::INCOMPLETE,
];

/// The remedy for a capsule that does not come from `runner bundle`.
pub const HOSTILE: &str =
    "`runner bundle` never creates such a capsule: do not use it, and ask where it comes from";
/// The remedy for an incomplete capsule.
pub const DAMAGED: &str = "copy or download the capsule again, or ask for a new one";

fn check_file(file: &FileSum) -> Result<(), CapsuleError> {
    let refuse = |why: &str| {
        let message = format!("`capsule.json` lists {}, which {why}", shown(&file.path));
        Err(CapsuleError::new(message, HOSTILE))
    };
    if let Some(why) = wrong(&file.path) {
        return refuse(&why);
    }
    if !(file.path == SIBLINGS || file.path.starts_with("run/") || file.path.starts_with("data/")) {
        return refuse("belongs neither to the run nor to its data");
    }
    let is_read =
        [RUN_TOML, SIBLINGS].contains(&file.path.as_str()) || file.path.starts_with("run/lineage/");
    if is_read && file.bytes > MAX_READ {
        return refuse(&format!("is larger than {}", show_bytes(MAX_READ)));
    }
    let is_digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if file.sha256.len() != 64 || !file.sha256.bytes().all(is_digit) {
        return refuse("has no sha256");
    }
    Ok(())
}

/// Packed data must be where the manifest says.
fn check_root(root: &DataRoot, paths: &BTreeSet<&str>) -> Result<(), CapsuleError> {
    let Some(packed) = &root.packed else {
        return Ok(());
    };
    let is_there = if root.is_folder {
        let start = format!("{packed}/");
        let mut from = paths.range(start.as_str()..);
        from.next().is_some_and(|path| path.starts_with(&start))
    } else {
        paths.contains(packed.as_str())
    };
    if is_there && packed.starts_with("data/") && wrong(packed).is_none() {
        return Ok(());
    }
    let message = format!(
        "`capsule.json` says that `{}` {} of the data is {}, but does not list it",
        shown(&root.key).trim_matches('`'),
        root.number,
        shown(packed)
    );
    Err(CapsuleError::new(message, DAMAGED))
}
