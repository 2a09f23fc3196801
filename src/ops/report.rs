//! The report of an experiment.

use std::path::PathBuf;

use super::Sink;
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{
    ExperimentFolder, OTHER_FORMAT_REMEDY, PLAN_REMEDY, is_other_format, is_unwritable,
};
use runner_core::show::plain_io_error;
use runner_report::report::{self, Report};

/// The experiment to report on.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// The folder of an experiment.
    pub folder: PathBuf,
}

impl ReportOptions {
    /// The experiment in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }
}

/// Builds the report of an experiment from its records, and writes it into its folder as `report.json`, `report.csv`,
/// `report.md` and `report.html`. Returns `None` if the folder does not contain an experiment.
///
/// # Errors
///
/// [`Error::Refused`] if the records cannot be read or the report cannot be written.
///
/// ```
/// use burn_runner::ops::{self, ReportOptions};
///
/// let folder = tempfile::tempdir().unwrap();
/// let report = ops::report(&ReportOptions::new(folder.path()), &ops::quiet)?;
/// assert!(report.is_none(), "there is no plan");
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn report(options: &ReportOptions, _: &Sink<'_>) -> Result<Option<Report>, Error> {
    let folder = ExperimentFolder(options.folder.clone());
    report::write(&folder).map_err(|e| {
        let message = format!(
            "cannot report on `{}`: {}",
            options.folder.display(),
            plain_io_error(&e)
        );
        let diagnostic = Diagnostic::error("results", message);
        Error::refused(
            diagnostic.help(match (is_other_format(&e), is_unwritable(&e)) {
                (true, _) => OTHER_FORMAT_REMEDY,
                (_, true) => "make it writable, or move away what is in its place",
                _ => PLAN_REMEDY,
            }),
        )
    })
}
