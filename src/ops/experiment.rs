//! From an experiment file and its edits to a plan.

use std::path::{Path, PathBuf};

use super::{Program, Progress, Sink, devices, prior};
use crate::error::Error;
use runner_core::data::{self, Folders};
use runner_core::diagnostic::{Diagnostic, Diagnostics, Sources};
pub use runner_core::plan::default_name;
use runner_core::plan::{Plan, Planning, RunPlan};
use runner_core::record::cache_folder;
use runner_core::spec::data::DataSpec;
use runner_core::spec::document::Document;
use runner_exchange::init::Finder;

/// An experiment file with its edits.
#[derive(Clone, Debug, Default)]
pub struct Experiment {
    /// The file.
    pub path: PathBuf,
    /// The text, if it is not to be read from the file, which then need not exist: its path is the name in messages,
    /// and the start of relative paths.
    pub text: Option<String>,
    /// Edits such as `optimizer.learning_rate=1e-2`, as `--set` takes them.
    pub set: Vec<String>,
    /// The program that trains its runs, and asks drivers for their devices.
    pub program: Program,
}

impl Experiment {
    /// An unprocessed file, for inspection.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            ..Self::default()
        }
    }
}

/// A planned experiment.
#[derive(Debug)]
pub struct Planned {
    /// The planned text, with the positions of its keys.
    pub document: Document,
    /// All runs.
    pub plan: Plan,
    /// The warnings, which the sink has received too.
    pub warnings: Diagnostics,
}

/// Reads, checks and plans an experiment file; nothing is downloaded or written. Missing data that could be downloaded
/// is assumed to have its published content.
///
/// # Errors
///
/// [`Error::Experiment`] with everything that is wrong with the file.
///
/// ```
/// use burn_runner::ops::{self, Experiment};
/// let mut experiment = Experiment::new("experiments/iris_csv.toml");
/// experiment.set.push("experiment.seeds=[1, 2]".into());
/// let planned = ops::plan(&experiment, &ops::quiet)?;
/// assert_eq!(planned.plan.runs.len(), 6);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn plan(experiment: &Experiment, sink: &Sink<'_>) -> Result<Planned, Error> {
    plan_by(experiment, false, sink)
}

/// Like [`plan()`], but downloads missing data.
///
/// # Errors
///
/// Like [`plan()`]; a failed download is one of the diagnostics.
///
/// ```
/// use burn_runner::ops::{self, Experiment};
///
/// let iris = Experiment::new("experiments/iris_csv.toml");
/// assert_eq!(ops::plan_with_data(&iris, &ops::quiet)?.plan.experiment, "iris_csv");
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn plan_with_data(experiment: &Experiment, sink: &Sink<'_>) -> Result<Planned, Error> {
    plan_by(experiment, true, sink)
}

fn plan_by(experiment: &Experiment, download: bool, sink: &Sink<'_>) -> Result<Planned, Error> {
    plan_opened(experiment, open(experiment)?, download, sink)
}

/// Plans an experiment file that was read, like [`plan()`].
pub(crate) fn plan_opened(
    experiment: &Experiment,
    mut document: Document,
    download: bool,
    sink: &Sink<'_>,
) -> Result<Planned, Error> {
    if document.prior.is_none() {
        let prior = prior::read(experiment.path.parent(), &document);
        document.prior = prior.map_err(|wrong| Error::experiment(&document.sources, wrong))?;
    }
    let (plan, warnings) = plan_document(experiment, &document, download, sink)
        .map_err(|diagnostics| Error::experiment(&document.sources, diagnostics))?;
    if !warnings.0.is_empty() {
        sink(Progress::Warnings(&document.sources, &warnings));
    }
    for notice in &plan.notices {
        sink(Progress::Note(notice));
    }
    Ok(Planned {
        document,
        plan,
        warnings,
    })
}

/// Plans an experiment file that was read. Returns warnings besides the plan.
pub(crate) fn plan_document(
    experiment: &Experiment,
    document: &Document,
    download: bool,
    sink: &Sink<'_>,
) -> Result<(Plan, Diagnostics), Diagnostics> {
    by_planning(experiment, download, sink, |planning| {
        planning.plan(document)
    })
}

/// Calls a function with what plans an experiment file, and keeps what it found for the next time that it is asked.
pub(crate) fn by_planning<R>(
    experiment: &Experiment,
    download: bool,
    sink: &Sink<'_>,
    by: impl FnOnce(&mut Planning<'_>) -> R,
) -> R {
    let name = default_name(&experiment.path);
    let folders = Folders {
        base: experiment
            .path
            .parent()
            .unwrap_or(Path::new("."))
            .to_owned(),
        cache: cache_folder(),
    };
    let watch = |done, total| sink(Progress::Advanced("reading data", done, total));
    let mut locate = |spec: &DataSpec| {
        let mut progress =
            |file: &str, received, total| sink(Progress::Downloaded(file, received, total));
        let progress: data::DownloadProgress<'_> = &mut progress;
        data::locate(spec, &folders, download.then_some(progress), &watch)
    };
    let mut finder = Finder::new(&folders);
    let devices = || devices(&experiment.program);
    by(&mut Planning::new(
        &name,
        &mut locate,
        &mut finder,
        &devices,
    ))
}

/// Reads an experiment file with its edits; environment variables are looked up.
///
/// # Errors
///
/// [`Error::Experiment`] if it cannot be read, is not TOML, or an edit is invalid.
///
/// ```
/// use burn_runner::ops::{self, Experiment};
///
/// let document = ops::open(&Experiment::new("experiments/iris_csv.toml"))?;
/// assert!(document.root.at("data.type").is_some());
///
/// let written = Experiment {
///     text: Some("[data]\ntype = \"iris\"\n".into()),
///     ..Experiment::new("my_iris.toml")
/// };
/// assert!(ops::open(&written)?.root.at("data.type").is_some());
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn open(experiment: &Experiment) -> Result<Document, Error> {
    let wrong = |(sources, diagnostics): (Sources, Diagnostics)| Error::Experiment {
        sources,
        diagnostics,
    };
    let read = match &experiment.text {
        Some(text) => {
            let name = experiment.path.display().to_string();
            Document::compose(&name, text, experiment.path.parent())
        }
        None => Document::read(&experiment.path),
    };
    let mut document = read.map_err(wrong)?;
    let mut diagnostics = Diagnostics::default();
    for assignment in &experiment.set {
        if let Err(diagnostic) = document.set(assignment) {
            diagnostics.push(*diagnostic);
        }
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "`${env:…}` is looked up here alone"
    )]
    document.look_up(&|name| std::env::var(name).ok());
    if diagnostics.has_errors() {
        Err(wrong((document.sources, diagnostics)))
    } else {
        Ok(document)
    }
}

/// The first run of a trial, or of the first trial.
///
/// # Errors
///
/// [`Error::Refused`] if the trial does not exist.
///
/// ```
/// use burn_runner::ops::{self, Experiment};
///
/// let plan = ops::plan(&Experiment::new("experiments/iris_csv.toml"), &ops::quiet)?.plan;
/// assert_eq!(ops::trial(&plan, None)?.id, plan.runs[0].id);
/// assert!(ops::trial(&plan, Some("nothing")).is_err());
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn trial<'a>(plan: &'a Plan, wanted: Option<&str>) -> Result<&'a RunPlan, Error> {
    let mut runs = plan.runs.iter();
    let found = runs.find(|run| wanted.is_none_or(|trial| run.trial == trial));
    found.ok_or_else(|| {
        let message = format!("there is no trial `{}`", wanted.unwrap_or_default());
        let diagnostic = Diagnostic::error("usage", message);
        Error::refused(
            diagnostic
                .help("`runner plan` shows the runs; the name of a trial is the part before `-s`"),
        )
    })
}
