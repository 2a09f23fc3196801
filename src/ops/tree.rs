//! The experiments below a folder, and which parts are unreadable.

use std::io;
use std::path::{Path, PathBuf};

use super::{Progress, Sink};
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{ExperimentFolder, PLAN_REMEDY, experiment_remedy, is_other_format};
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

/// The error for a folder without experiments, or with such as have no plan.
pub(crate) fn none_there(folder: &Path) -> Error {
    if let Some(message) = lost_plan(folder) {
        return Error::refused(Diagnostic::error("results", message).help(PLAN_REMEDY));
    }
    let message = format!("`{}` contains no experiments", folder.display());
    let diagnostic = Diagnostic::error("results", message);
    Error::refused(diagnostic.help("use a results folder, or create one with `runner run`"))
}

/// Reports that an experiment is skipped, with a remedy; returns whether that is a failure: damage is one, another
/// version is not.
pub(crate) fn pass_over_experiment(folder: &Path, error: &io::Error, sink: &Sink<'_>) -> bool {
    let is_failure = pass_over(folder, error, sink);
    if is_failure {
        let help = experiment_remedy(error);
        sink(Progress::Step(&format!("  help: {help}")));
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

/// The folders that have runs but no plan: the given one, or those in it, sorted.
fn without_plan(results: &Path) -> Vec<PathBuf> {
    let has_lost_it = |path: &PathBuf| {
        let folder = ExperimentFolder(path.clone());
        let run = folder.run("run").0;
        run.parent().is_some_and(Path::is_dir) && !folder.plan_json().exists()
    };
    let given = results.to_owned();
    if has_lost_it(&given) {
        return vec![given];
    }
    let entries = std::fs::read_dir(results).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    all.retain(has_lost_it);
    all.sort();
    all
}

/// The message about the first of those, if there are any.
pub(crate) fn lost_plan(results: &Path) -> Option<String> {
    let lost = without_plan(results).into_iter().next()?;
    Some(format!("`{}` has runs and no plan.json", lost.display()))
}

/// Reports the folders that have runs but no plan as skipped; returns whether there are any.
pub(crate) fn pass_over_lost(results: &Path, sink: &Sink<'_>) -> bool {
    let lost = without_plan(results);
    for folder in &lost {
        sink(Progress::Step(&format!(
            "skipped {}: it has runs and no plan.json",
            folder.display()
        )));
        sink(Progress::Step(&format!("  help: {PLAN_REMEDY}")));
    }
    !lost.is_empty()
}
