//! The data of a run for packing: whether it is available, whether it is the run's, and whether it is included.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Bundle, PackData};
use crate::error::Error;
use crate::ops::{Progress, Sink};
use runner_core::data::origin::{self, Root};
use runner_core::data::{self, DataError};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::plan::RunPlan;
use runner_core::record::capsule::{DataHere, DataRoot};
use runner_core::record::{RunFolder, RunRecord};

/// More data files than this are not listed individually if they are not packed, and not packed unless requested: the
/// list would exceed the limit of a capsule.
const MAX_LISTED: usize = 80_000;

/// Checks the data's files: they must be those that the run was trained on.
pub(super) fn data_here(
    options: &Bundle,
    folder: &RunFolder,
    plan: &RunPlan,
    record: &RunRecord,
    sink: &Sink<'_>,
) -> Result<DataHere, Error> {
    if plan.data.roots().is_empty() {
        return Ok(DataHere::default());
    }
    let watch = |done, total| sink(Progress::Advanced("reading data", done, total));
    let measured = origin::measure(&plan.data, &watch).and_then(|roots| {
        refuse_changed(folder, plan, record, &roots)?;
        Ok(roots)
    });
    let roots = match measured {
        Ok(roots) => roots,
        Err(error) if options.data == PackData::Never => {
            return Ok(DataHere {
                roots: plan.data.roots().iter().map(DataRoot::of).collect(),
                is_packed: false,
                note: Some(error.message),
            });
        }
        Err(error) => {
            let help = "restore the original data, or exclude it with `--data never`";
            let error = DataError {
                helps: vec![help.into()],
                ..error
            };
            return Err(Error::refused(error.to_diagnostic()));
        }
    };
    let mut data = DataHere {
        roots: roots.iter().map(DataRoot::of).collect(),
        is_packed: false,
        note: None,
    };
    let num_files: usize = data.roots.iter().map(|root| root.num_files).sum();
    let bytes: u64 = data.roots.iter().map(|root| root.bytes).sum();
    data.is_packed = match options.data {
        PackData::Always => true,
        PackData::Never => false,
        PackData::Auto => bytes <= options.max_data && num_files <= MAX_LISTED,
    };
    if data.is_packed {
        refuse_links(&roots).map_err(Error::Refused)?;
    } else if num_files > MAX_LISTED {
        data.roots.iter_mut().for_each(|root| root.files.clear());
    }
    Ok(data)
}

/// A capsule with different data than the run's would be worthless.
fn refuse_changed(
    folder: &RunFolder,
    plan: &RunPlan,
    record: &RunRecord,
    roots: &[Root],
) -> Result<(), DataError> {
    let is_same = match (origin::is_as_planned(&plan.data, roots)?, &record.started) {
        (Some(is_same), _) => is_same,
        // If the plan does not contain a digest, the items do.
        (None, Some(started)) => {
            data::load(&plan.data, &|_, _| {})?.digests == started.data_digests
        }
        (None, None) => true,
    };
    if is_same {
        return Ok(());
    }
    let paths = roots.iter().flat_map(|root| {
        root.files.iter().map(|file| {
            if root.is_folder {
                root.path.join(&file.name)
            } else {
                root.path.clone()
            }
        })
    });
    let mut paths: Vec<PathBuf> = paths.collect();
    if let [path] = paths.as_slice() {
        let message = format!("`{}` changed since the run was trained", path.display());
        return Err(DataError::new(message));
    }
    // Sums of single files are not recorded, but times may reveal which one it was.
    let num = paths.len();
    let modified = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    if let Some(made) = modified(&folder.environment_json()) {
        paths.retain(|path| modified(path).is_some_and(|at| at > made));
    }
    let mut error = DataError::new(format!(
        "the {} of the data changed since the run was trained",
        counted(num, "file")
    ));
    for path in paths.iter().take(5) {
        error = error.note(format!("`{}` is newer than the run", path.display()));
    }
    let first = roots.first().map(|root| root.path.display().to_string());
    if paths.is_empty() || paths.len() == num {
        Err(error.note(format!("they belong to `{}`", first.unwrap_or_default())))
    } else {
        Err(error)
    }
}

/// Links to folders are packed as their targets. If the target is another folder of the data, such as masks among
/// images, it would become two.
fn refuse_links(roots: &[Root]) -> Result<(), Box<Diagnostic>> {
    let Some((link, root)) = origin::linked_root(roots) else {
        return Ok(());
    };
    let message = format!(
        "`{}` is a link to `{}`, the `{}` of the data",
        link.display(),
        root.path.display(),
        root.key
    );
    let diagnostic = Diagnostic::error("data", message)
        .note("a capsule contains no links, and would contain the same files twice")
        .help("replace the link with the folder itself, or exclude the data with `--data never`");
    Err(Box::new(diagnostic))
}
