//! An experiment as one file.

use std::path::PathBuf;

use super::{Experiment, Sink, default_name, document_so_far, open};
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::plan;
use runner_core::spec::document::Document;
use runner_core::spec::render;

/// The experiment to render.
#[derive(Clone, Debug, Default)]
pub struct Render {
    /// The experiment file.
    pub experiment: Experiment,
    /// The trial, such as `learning_rate=0.01`; by default the whole experiment with its sweep.
    pub trial: Option<String>,
    /// The parent folder of the experiments' folders, with the trials that a search has suggested so far; without it, only
    /// those of its first round are known.
    pub results: Option<PathBuf>,
    /// Whether to include keys that are not set, with their defaults.
    pub defaults: bool,
}

impl Render {
    /// The whole experiment, with the keys that are set.
    pub fn new(experiment: Experiment) -> Self {
        Self {
            experiment,
            ..Self::default()
        }
    }
}

/// An experiment as one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The text, in TOML.
    pub text: String,
}

/// Renders an experiment as one file with its layers, references and edits resolved, and with the origin of each value
/// as a comment.
///
/// # Errors
///
/// [`Error::Experiment`] if the file cannot be read or the trial does not exist; [`Error::Refused`] if the folder
/// contains another search.
///
/// ```
/// use burn_runner::ops::{self, Experiment, Render};
///
/// let mut options = Render::new(Experiment::new("experiments/iris_csv.toml"));
/// options.experiment.set.push("train.epochs=3".into());
/// let rendered = ops::render(&options, &ops::quiet)?;
/// assert!(rendered.text.contains("# --set"));
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn render(options: &Render, _: &Sink<'_>) -> Result<Rendered, Error> {
    let mut document = open(&options.experiment)?;
    if let (Some(_), Some(results)) = (&options.trial, &options.results) {
        document = document_so_far(&options.experiment, document, results)?;
    }
    refuse_fork(&document, options.trial.as_deref())?;
    let (mut root, axes) = plan::put_together(&document, options.trial.as_deref(), None)
        .map_err(|diagnostics| Error::experiment(&document.sources, diagnostics))?;
    if options.defaults {
        let axes = if options.trial.is_some() {
            &[]
        } else {
            axes.as_slice()
        };
        root = render::with_defaults(&root, axes);
    }
    let name = default_name(&options.experiment.path);
    Ok(Rendered {
        text: render::render(&document, &root, &axes, &name),
    })
}

/// A trial that begins as a copy of another one cannot be trained by a file of its own.
fn refuse_fork(document: &Document, trial: Option<&str>) -> Result<(), Error> {
    let known = document.suggestions.as_deref().unwrap_or_default();
    let mut of_trial = known
        .iter()
        .filter(|known| Some(known.trial.as_str()) == trial);
    let Some(fork) = of_trial.next().and_then(|known| known.fork) else {
        return Ok(());
    };
    let from = known.get(fork.from).map_or("", |known| &known.trial);
    let message = format!(
        "trial `{}` is not trained by a file of its own: it begins as a copy of `{from}` after epoch {}",
        trial.unwrap_or_default(),
        fork.epochs
    );
    let diagnostic = Diagnostic::error("usage", message);
    Err(Error::refused(diagnostic.help(
        "render the whole experiment, without `--trial`: its report has the schedule that was found",
    )))
}
