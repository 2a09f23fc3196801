//! The experiments below a folder, and which parts are unreadable.

use std::io;
use std::path::Path;

use super::{Progress, Sink};
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{ExperimentFolder, PLAN_REMEDY, is_other_format};
use runner_core::show::plain_io_error;

/// The experiment of a folder, or those in it; a folder without any is an error.
pub(crate) fn experiments(folder: &Path) -> Result<Vec<ExperimentFolder>, Error> {
    let experiments = ExperimentFolder::all(folder);
    if experiments.is_empty() {
        Err(none_there(folder))
    } else {
        Ok(experiments)
    }
}

/// The error for a folder without experiments.
pub(crate) fn none_there(folder: &Path) -> Error {
    let message = format!("`{}` contains no experiments", folder.display());
    let diagnostic = Diagnostic::error("results", message);
    Error::refused(diagnostic.help("use a results folder, or create one with `runner run`"))
}

/// Reports that an experiment is skipped, with a remedy; returns whether that is a failure: damage is one, another
/// version is not.
pub(crate) fn pass_over_experiment(folder: &Path, error: &io::Error, sink: &Sink<'_>) -> bool {
    let is_failure = pass_over(folder, error, sink);
    if is_failure {
        sink(Progress::Step(&format!("  help: {PLAN_REMEDY}")));
    }
    is_failure
}

/// Reports that an experiment or a run is skipped; returns whether that is a failure: damage is one, another version is
/// not.
pub(crate) fn pass_over(folder: &Path, error: &io::Error, sink: &Sink<'_>) -> bool {
    sink(Progress::Step(&format!(
        "skipped {}: {}",
        folder.display(),
        plain_io_error(error)
    )));
    !is_other_format(error)
}
