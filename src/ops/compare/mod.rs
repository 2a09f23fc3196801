//! Compares trials of experiments, runs and saved reports with a baseline.

mod sources;

use super::{Progress, Sink};
use crate::error::Error;
use runner_core::diagnostic::{Diagnostic, Wrong};
use runner_report::report::compare::{self, Comparison, Question};

/// What is compared, and how.
#[derive(Clone, Debug)]
pub struct Compare {
    /// Folders of experiments or of runs, results folders, saved `report.json` files, or patterns of such paths.
    pub what: Vec<String>,
    /// The baseline, the metric and the significance level.
    pub question: Question,
}

/// Compares trials with a baseline. The sink receives skipped sources as [`Progress::Step`].
///
/// # Errors
///
/// [`Error::Refused`] if no source can be read, or the question names something that does not exist.
///
/// ```
/// use burn_runner::ops::{self, Compare};
/// use burn_runner::report::compare::Question;
///
/// let options = Compare {
///     what: vec!["results/nothing".into()],
///     question: Question {
///         value: None,
///         baseline: None,
///         alpha: 0.05,
///         pivot: None,
///         pareto: None,
///     },
/// };
/// let error = ops::compare(&options, &ops::quiet).unwrap_err();
/// assert_eq!(error.to_string(), "there is no `results/nothing`");
/// ```
pub fn compare(options: &Compare, sink: &Sink<'_>) -> Result<Comparison, Error> {
    let sources =
        sources::read(&options.what, |word| sink(Progress::Step(word))).map_err(refused)?;
    compare::compare(&sources, &options.question).map_err(refused)
}

fn refused(Wrong { message, help }: Wrong) -> Error {
    let diagnostic = Diagnostic::error("compare", message);
    Error::refused(if help.is_empty() {
        diagnostic
    } else {
        diagnostic.help(help)
    })
}
