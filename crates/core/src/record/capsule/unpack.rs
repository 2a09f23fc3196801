//! From a capsule of anyone to a folder: whole and as its manifest says, or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::name::{is_plain, plain, shown};
use super::extract::{below, extract};
use super::manifest::{DAMAGED, HOSTILE, Manifest};
use super::reduced::expanded;
use super::siblings::Sibling;
use super::{CapsuleError, MANIFEST, RUN_TOML, SIBLINGS};
use crate::plan::{self, RunPlan};
use crate::record::RunFolder;
use crate::spec::document::plain_io_error;

/// A capsule that was unpacked.
#[derive(Clone, Debug)]
pub struct Capsule {
    /// What it holds.
    pub manifest: Manifest,
    /// The other seeds of the trial.
    pub siblings: Vec<Sibling>,
    /// The run as it was.
    pub folder: RunFolder,
    /// The run; its data is read from what was unpacked, or from where it was when it is not packed. Decoded
    /// data is kept beside the run in any case.
    pub plan: RunPlan,
}

/// Unpacks a capsule into a folder that is not there yet, or is empty, up to as many bytes as are allowed, or are usual
/// for its size. After a refusal nothing of it is left on disk.
pub fn unpack(
    archive: &Path,
    into: &Path,
    max_bytes: Option<u64>,
) -> Result<Capsule, CapsuleError> {
    let into = std::path::absolute(into).map_err(|e| unwritable(into, &e))?;
    let is_taken = match fs::read_dir(&into) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(unwritable(&into, &e)),
        Ok(mut entries) => entries.next().is_some(),
    };
    if is_taken {
        let message = format!("`{}` is not empty", into.display());
        return Err(CapsuleError::new(
            message,
            "name a folder that is not there yet",
        ));
    }
    // In a folder that is there already, so that none has to be removed after a refusal.
    let mut near = into.parent().unwrap_or(&into);
    while let (false, Some(parent)) = (near.is_dir(), near.parent()) {
        near = parent;
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".capsule-");
    #[cfg(unix)]
    {
        // As readable as the user's other folders.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o777));
    }
    let unpacked = builder
        .tempdir_in(near)
        .map_err(|e| unwritable(&into, &e))?;
    let manifest =
        extract(archive, unpacked.path(), max_bytes).map_err(|e| in_archive(archive, e))?;
    let (plan, siblings) =
        read_back(&manifest, unpacked.path()).map_err(|e| in_archive(archive, e))?;
    let settle = || -> io::Result<PathBuf> {
        if let Some(parent) = into.parent() {
            fs::create_dir_all(parent)?;
        }
        if into.is_dir() {
            // Only an empty one goes.
            fs::remove_dir(&into)?;
        }
        fs::rename(unpacked.path(), &into)?;
        fs::canonicalize(&into)
    };
    let place = settle().map_err(|e| unwritable(&into, &e))?;
    let roots = &manifest.data.roots;
    let place_of = |key: &str, number: usize| {
        let root = roots.iter().find(|r| r.key == key && r.number == number)?;
        match &root.packed {
            Some(packed) => Some(below(&place, packed)),
            None => expanded(&root.original),
        }
    };
    let plan = RunPlan {
        data: plan.data.relocated(&place_of, &place.join("cache")),
        ..plan
    };
    Ok(Capsule {
        manifest,
        siblings,
        folder: RunFolder(place.join("run")),
        plan,
    })
}

/// Reads the run and the other seeds, which have to go with the manifest.
fn read_back(manifest: &Manifest, into: &Path) -> Result<(RunPlan, Vec<Sibling>), CapsuleError> {
    let text = |name: &str| {
        fs::read_to_string(below(into, name)).map_err(|e| {
            let message = format!("`{name}` cannot be read: {}", plain_io_error(&e));
            CapsuleError::new(message, DAMAGED)
        })
    };
    let other = "use the version of runner that made it, or have it made anew";
    let plan: RunPlan = toml::from_str(&text(RUN_TOML)?).map_err(|e| {
        let message = format!("`{RUN_TOML}` is no run of this runner: {}", e.message());
        CapsuleError::new(message, other)
    })?;
    if !(plan::OLDEST_FORMAT..=plan::FORMAT).contains(&plan.format) {
        let message = format!(
            "`{RUN_TOML}` is of format {}, and this runner reads formats {} to {}",
            plan.format,
            plan::OLDEST_FORMAT,
            plan::FORMAT
        );
        return Err(CapsuleError::new(message, other));
    }
    if !is_plain(&plan.trial) {
        let message = format!("the name of the trial, {}, is no name", shown(&plan.trial));
        return Err(CapsuleError::new(message, HOSTILE));
    }
    let mut siblings: Vec<Sibling> = serde_json::from_str(&text(SIBLINGS)?).map_err(|e| {
        let message = format!("`{SIBLINGS}` is damaged: {e}");
        CapsuleError::new(message, DAMAGED)
    })?;
    for sibling in &mut siblings {
        sibling.run = plain(&sibling.run, 1024);
        sibling.device = plain(&sibling.device, 1024);
    }
    let is_of_it = |(key, number, is_folder): (&str, usize, bool)| {
        let mut roots = manifest.data.roots.iter();
        roots.any(|r| r.key == key && r.number == number && r.is_folder == is_folder)
    };
    let roots = plan.data.roots();
    let differs = [
        ("run", manifest.run != plan.id),
        ("experiment", manifest.experiment != plan.experiment),
        (
            "data set",
            manifest.data.dataset != plan.data.dataset.name(),
        ),
        (
            "digest of the data",
            manifest.data.content_digest.as_deref() != plan.data.content_digest(),
        ),
        (
            "files of the data",
            roots.len() != manifest.data.roots.len()
                || !roots
                    .iter()
                    .all(|r| is_of_it((r.key, r.number, r.is_folder))),
        ),
    ];
    if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
        let message = format!("the {what} of `{RUN_TOML}` and of `{MANIFEST}` differ");
        return Err(CapsuleError::new(message, HOSTILE));
    }
    Ok((plan, siblings))
}

fn in_archive(archive: &Path, error: CapsuleError) -> CapsuleError {
    CapsuleError {
        // Readers put what they read into their messages.
        message: format!("`{}`: {}", archive.display(), plain(&error.message, 1000)),
        ..error
    }
}

fn unwritable(into: &Path, error: &io::Error) -> CapsuleError {
    let reason = plain_io_error(error);
    CapsuleError::new(
        format!("cannot unpack into `{}`: {reason}", into.display()),
        "name a folder that you may write to",
    )
}
