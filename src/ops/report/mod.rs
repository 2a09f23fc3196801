//! The report of an experiment.

mod template;

use std::path::{Path, PathBuf};

use super::tree::pass_over_lost;
use super::{Sink, refresh_jobs};
use crate::error::{Error, is_full};
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{ExperimentFolder, experiment_remedy, is_unwritable};
use runner_core::show::plain_io_error;
use runner_report::report::{self, Report};
pub use template::Template;

/// The experiment to report on.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// The folder of an experiment.
    pub folder: PathBuf,
    /// The template of `report.html`; by default the built-in one.
    pub template: Option<Template>,
}

impl ReportOptions {
    /// The experiment in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            template: None,
        }
    }
}

/// Builds the report of an experiment from its records, and writes it into its folder as `report.json`, `report.csv`,
/// `report.md` and `report.html`. Returns `None` if the folder does not contain an experiment.
///
/// # Errors
///
/// [`Error::Refused`] if the records cannot be read or the report cannot be written, [`Error::Experiment`] if the template
/// is invalid.
///
/// ```
/// use burn_runner::ops::{self, ReportOptions};
///
/// let folder = tempfile::tempdir().unwrap();
/// let report = ops::report(&ReportOptions::new(folder.path()), &ops::quiet)?;
/// assert!(report.is_none(), "there is no plan");
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn report(options: &ReportOptions, sink: &Sink<'_>) -> Result<Option<Report>, Error> {
    let folder = ExperimentFolder(options.folder.clone());
    refresh_jobs(&folder, sink);
    let report = report::write(&folder).map_err(|e| {
        let message = format!(
            "cannot report on `{}`: {}",
            options.folder.display(),
            plain_io_error(&e)
        );
        let diagnostic = Diagnostic::error("results", message);
        Error::refused(diagnostic.help(match is_unwritable(&e) {
            true if is_full(&e) => "free some space on this disk",
            true => "make it writable, or move away what is in its place",
            false => experiment_remedy(&e),
        }))
    })?;
    if let (Some(report), Some(template)) = (&report, &options.template) {
        template.write(report, &folder)?;
    }
    Ok(report)
}

/// The folders of experiments to report on: the given folder, or those in it.
///
/// # Errors
///
/// [`Error::Refused`] if there is none.
///
/// ```
/// use burn_runner::ops;
///
/// let error = ops::report_folders("src".as_ref(), &ops::quiet).unwrap_err();
/// assert!(error.to_string().starts_with("`src` is not the folder of an experiment"));
/// ```
pub fn report_folders(folder: &Path, sink: &Sink<'_>) -> Result<Vec<ExperimentFolder>, Error> {
    let experiments = ExperimentFolder::all(folder);
    if !experiments.is_empty() {
        pass_over_lost(folder, sink);
        return Ok(experiments);
    }
    let message = format!(
        "`{}` is not the folder of an experiment, and contains none: there is no plan.json",
        folder.display()
    );
    let help = "use a folder such as `results/mnist_sweep`, or a results folder; `runner list` shows the existing ones";
    Err(Error::refused(
        Diagnostic::error("results", message).help(help),
    ))
}
