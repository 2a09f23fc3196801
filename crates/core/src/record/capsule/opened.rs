//! The content of a capsule that was unpacked, on disk or in memory.

use std::path::Path;
#[cfg(feature = "native")]
use std::path::PathBuf;

use super::super::name::{is_plain, plain, shown};
use super::archive::below;
use super::manifest::{DAMAGED, HOSTILE, Manifest};
use super::siblings::Sibling;
use super::{CapsuleError, MANIFEST, RUN_TOML, SIBLINGS};
use crate::plan::{self, RunPlan};
use crate::record::RunFolder;
use crate::show::plain_io_error;
use crate::spec::plain_file;

/// A capsule that was unpacked.
#[derive(Clone, Debug)]
pub struct Capsule {
    /// Its content.
    pub manifest: Manifest,
    /// The other seeds of the trial.
    pub siblings: Vec<Sibling>,
    /// The original run.
    pub folder: RunFolder,
    /// The run; its data is read from the unpacked files, or from its original place if it is not packed. Decoded data
    /// is always cached next to the run.
    pub plan: RunPlan,
    /// The runs that it begins as copies of, the oldest first, with data from the same places.
    pub lineage: Vec<RunPlan>,
}

impl Capsule {
    /// The capsule whose files are in a folder.
    pub(super) fn in_folder(
        manifest: Manifest,
        siblings: Vec<Sibling>,
        (plan, lineage): (RunPlan, Vec<RunPlan>),
        place: &Path,
    ) -> Self {
        let roots = &manifest.data.roots;
        let place_of = |key: &str, number: usize| {
            let root = roots.iter().find(|r| r.key == key && r.number == number)?;
            match &root.packed {
                Some(packed) => Some(below(place, packed)),
                None => expanded(&root.original),
            }
        };
        let relocated = |plan: RunPlan| RunPlan {
            data: plan.data.relocated(&place_of, &place.join("cache")),
            ..plan
        };
        let plan = relocated(plan);
        let lineage = lineage.into_iter().map(relocated).collect();
        Self {
            manifest,
            siblings,
            folder: RunFolder(place.join("run")),
            plan,
            lineage,
        }
    }
}

#[cfg(feature = "native")]
fn expanded(original: &str) -> Option<PathBuf> {
    super::reduced::expanded(original)
}

/// In a browser, nobody has a home folder.
#[cfg(not(feature = "native"))]
fn expanded(_: &str) -> Option<std::path::PathBuf> {
    None
}

/// What is read of a capsule: the run, what it begins as copies of, and the other seeds.
type Content = (RunPlan, Vec<RunPlan>, Vec<Sibling>);

/// Reads the run and the other seeds, which must match the manifest.
pub(super) fn read_back(manifest: &Manifest, into: &Path) -> Result<Content, CapsuleError> {
    let text = |name: &str| {
        plain_file::read_text(&below(into, name)).map_err(|e| {
            let message = format!("`{name}` cannot be read: {}", plain_io_error(&e));
            CapsuleError::new(message, DAMAGED)
        })
    };
    let other = "use the version of runner that created it, or ask for a new one";
    let plan: RunPlan = toml::from_str(&text(RUN_TOML)?).map_err(|e| {
        let message = format!("`{RUN_TOML}` is not a run of this runner: {}", e.message());
        CapsuleError::new(message, other)
    })?;
    if !(plan::OLDEST_FORMAT..=plan::FORMAT).contains(&plan.format) {
        let message = format!(
            "`{RUN_TOML}` has format {}; this runner reads formats {} to {}",
            plan.format,
            plan::OLDEST_FORMAT,
            plan::FORMAT
        );
        return Err(CapsuleError::new(message, other));
    }
    if !is_plain(&plan.trial) {
        let message = format!("{} is not a valid name of a trial", shown(&plan.trial));
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
    let has_its_roots = |run: &RunPlan| {
        let roots = run.data.roots();
        let mut named = roots.iter().map(|r| (r.key, r.number, r.is_folder));
        roots.len() == manifest.data.roots.len() && named.all(is_of_it)
    };
    let lineage = RunFolder(into.join("run")).read_lineage(&plan);
    let lineage = lineage.map_err(|e| CapsuleError::new(plain_io_error(&e), HOSTILE))?;
    let is_on_other_data = |before: &RunPlan| {
        before.data.content_digest() != plan.data.content_digest() || !has_its_roots(before)
    };
    if let Some(other) = lineage.iter().find(|before| is_on_other_data(before)) {
        let message = format!(
            "{}, which the run begins as a copy of, has other data",
            shown(&other.id)
        );
        return Err(CapsuleError::new(message, HOSTILE));
    }
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
        ("files of the data", !has_its_roots(&plan)),
    ];
    if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
        let message = format!("the {what} differs between `{RUN_TOML}` and `{MANIFEST}`");
        return Err(CapsuleError::new(message, HOSTILE));
    }
    Ok((plan, lineage, siblings))
}

/// An error about the capsule in a file.
pub(super) fn in_archive(archive: &Path, error: CapsuleError) -> CapsuleError {
    CapsuleError {
        // Parsers quote their input in messages.
        message: format!("`{}`: {}", archive.display(), plain(&error.message, 1000)),
        ..error
    }
}
