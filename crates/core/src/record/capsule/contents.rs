//! What a capsule contains in addition to the files of its run, whether those are on disk or in memory.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::super::name::{shown, wrong};
use super::super::seal;
use super::manifest::{DataManifest, DataRoot, FileSum, Manifest, Needs};
use super::siblings::Sibling;
use super::{CapsuleError, FORMAT, INCOMPLETE, MAX_FILES, MAX_MANIFEST, SIBLINGS};
use crate::hash::sha256_hex;
use crate::plan::RunPlan;
use crate::record::RunRecord;
use crate::show::show_bytes;

/// The data of a run on this machine.
#[derive(Clone, Debug, Default)]
pub struct DataHere {
    /// Its roots; `packed` is still empty.
    pub roots: Vec<DataRoot>,
    /// Whether it goes into the capsule.
    pub is_packed: bool,
    /// Why sizes and sums of its files are unknown.
    pub note: Option<String>,
}

/// What the manifest says about the data, of which nothing is packed yet.
pub(super) fn data(plan: &RunPlan, record: &RunRecord, here: &DataHere) -> DataManifest {
    let started = record.started.as_ref();
    DataManifest {
        dataset: plan.data.dataset.name().to_owned(),
        needs: match (here.roots.is_empty(), here.is_packed) {
            (true, _) => Needs::Nothing,
            (false, true) => Needs::Packed,
            (false, false) => Needs::Files,
        },
        content_digest: plan.data.content_digest().map(str::to_owned),
        split_digests: started
            .map_or_else(Default::default, |started| started.data_digests.clone()),
        roots: here.roots.clone(),
        note: here.note.clone(),
    }
}

/// The manifest, and its text.
pub(super) fn manifest(
    plan: &RunPlan,
    record: &RunRecord,
    data: DataManifest,
    files: Vec<FileSum>,
) -> Result<(Manifest, Vec<u8>), CapsuleError> {
    let outcome = record.outcome.as_ref();
    let num_files = files.len();
    let manifest = Manifest {
        format: FORMAT,
        runner_version: env!("CARGO_PKG_VERSION").into(),
        experiment: plan.experiment.clone(),
        run: plan.id.clone(),
        outcome: outcome.map_or(INCOMPLETE, |o| o.word()).to_owned(),
        data,
        files,
    };
    let head = sealed(json(&manifest)?);
    if head.len() as u64 > MAX_MANIFEST || num_files > MAX_FILES {
        let message = format!("{num_files} files are too many for a capsule");
        return Err(
            CapsuleError::new(message, "exclude the data with `--data never`").note(format!(
                "their list is {}; the limit is {}",
                show_bytes(head.len() as u64),
                show_bytes(MAX_MANIFEST)
            )),
        );
    }
    Ok((manifest, head))
}

/// The other seeds as a file of the capsule.
pub(super) fn siblings(siblings: &[Sibling]) -> Result<(Vec<u8>, FileSum), CapsuleError> {
    let bytes = json(&siblings)?;
    let sum = sum(SIBLINGS, &bytes);
    Ok((bytes, sum))
}

/// The sum of bytes under a path.
pub(super) fn sum(path: &str, bytes: &[u8]) -> FileSum {
    FileSum {
        path: path.to_owned(),
        bytes: bytes.len() as u64,
        sha256: sha256_hex(bytes),
    }
}

/// The place of a root in the capsule.
pub(super) fn place(root: &DataRoot, roots: &[DataRoot]) -> String {
    let path = Path::new(&root.original);
    let around = roots.iter().filter(|other| {
        if other.is_folder {
            path.starts_with(&other.original)
        } else {
            other.original == root.original
        }
    });
    let outermost = around.min_by_key(|other| Path::new(&other.original).components().count());
    let outermost = outermost.unwrap_or(root);
    let mut place = format!("data/{}/{}", outermost.key, outermost.number);
    let inner = if outermost.is_folder {
        path.strip_prefix(&outermost.original).unwrap_or(path)
    } else {
        Path::new(path.file_name().unwrap_or_default())
    };
    for part in inner {
        place.push('/');
        place.push_str(&part.to_string_lossy());
    }
    place
}

/// The path of a file of a root in the capsule, and where it is; `place` is that of the root.
///
/// # Errors
/// If a capsule cannot have the path.
pub(super) fn located(
    root: &DataRoot,
    place: &str,
    file: &FileSum,
) -> Result<(String, PathBuf), CapsuleError> {
    let original = Path::new(&root.original);
    let (path, source) = if root.is_folder {
        (format!("{place}/{}", file.path), original.join(&file.path))
    } else {
        (place.to_owned(), original.to_owned())
    };
    match wrong(&path) {
        Some(why) => Err(odd_name(&source, &why)),
        None => Ok((path, source)),
    }
}

/// The manifest is the only part of a capsule whose sum is not in the manifest.
fn sealed(bytes: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) => seal::json(text).into_bytes(),
        Err(e) => e.into_bytes(),
    }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, CapsuleError> {
    let mut bytes = serde_json::to_vec(value).map_err(|e| {
        CapsuleError::new(
            format!("the capsule's list cannot be written: {e}"),
            "report this together with the run's folder",
        )
    })?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A file whose name a capsule cannot have.
pub(super) fn odd_name(path: &Path, why: &str) -> CapsuleError {
    let message = format!("{} {why}", shown(&path.to_string_lossy()));
    CapsuleError::new(
        message,
        "it cannot be stored in a capsule: rename it and train again, or exclude the data with `--data never`",
    )
}
