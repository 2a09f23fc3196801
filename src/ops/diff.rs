//! What differs between two runs, or between the runs of two experiments.

use std::path::{Path, PathBuf};

use super::Sink;
use crate::error::Error;
use crate::train::weight_distances;
use runner_core::diagnostic::{Diagnostic, Reason, counted};
use runner_core::record::{ExperimentFolder, RunFolder, capsule, commits_between};
use runner_core::reproduce::WeightDistance;
use runner_core::show::plain_io_error;
use runner_report::diff::{Diff, Side};

/// What is compared.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// The folder of a run, of an experiment, or a capsule.
    pub a: PathBuf,
    /// The other side of the comparison, of the same kind.
    pub b: PathBuf,
    /// The maximum unpacked size of a capsule in bytes; 200 times its packed size by default.
    pub max_unpacked: Option<u64>,
}

impl DiffOptions {
    /// Two paths.
    pub fn new(a: impl Into<PathBuf>, b: impl Into<PathBuf>) -> Self {
        Self {
            a: a.into(),
            b: b.into(),
            max_unpacked: None,
        }
    }
}

/// What differs.
#[derive(Debug)]
pub enum Differences {
    /// The differences between two runs.
    Runs(Box<Diff>),
    /// The differences between the runs of two experiments, paired by id; weights are compared by their digests only.
    Experiments(Vec<Pair>),
}

/// The runs with one id in two experiments.
#[derive(Debug)]
pub struct Pair {
    /// The id.
    pub run: String,
    /// In which experiments it is.
    pub found: In,
}

/// In which of two experiments a run is.
#[derive(Debug)]
pub enum In {
    /// In both, with the differences.
    Both(Box<Diff>),
    /// Only in the first, whose folder this is.
    A(PathBuf),
    /// Only in the second, whose folder this is.
    B(PathBuf),
}

impl Differences {
    /// Whether everything was compared and is equal.
    pub fn is_equal(&self) -> bool {
        match self {
            Self::Runs(diff) => diff.is_equal,
            Self::Experiments(pairs) => pairs.iter().all(Pair::is_equal),
        }
    }
}

impl Pair {
    /// Whether both experiments have the run and it is equal in both.
    pub fn is_equal(&self) -> bool {
        matches!(&self.found, In::Both(diff) if diff.is_equal)
    }
}

/// What a path refers to.
enum Found {
    /// A run, and the folder that it was unpacked to, if any.
    Run(Box<Side>, Option<tempfile::TempDir>),
    Experiment(ExperimentFolder),
}

/// Compares two runs or two experiments.
///
/// # Errors
///
/// [`Error::Refused`] if a path is neither, or the two are of different kinds.
///
/// ```
/// use burn_runner::ops::{self, DiffOptions};
///
/// let error = ops::diff(&DiffOptions::new("src", "src"), &ops::quiet).unwrap_err();
/// assert!(error.to_string().starts_with("`src` is neither the folder of a run"));
/// ```
pub fn diff(options: &DiffOptions, _: &Sink<'_>) -> Result<Differences, Error> {
    match (find(&options.a, options)?, find(&options.b, options)?) {
        (Found::Run(a, _at), Found::Run(b, _bt)) => {
            let mut diff = Diff::of(&a, &b, || distances(&a, &b));
            if let Some(range) = commits(&a, &b) {
                diff.code_note = Some(range);
            }
            Ok(Differences::Runs(Box::new(diff)))
        }
        (Found::Experiment(a), Found::Experiment(b)) => Ok(Differences::Experiments(pairs(&a, &b))),
        _ => {
            let message = format!(
                "of `{}` and `{}`, one is a run and the other an experiment",
                options.a.display(),
                options.b.display()
            );
            let help = "use two runs or two experiments; the runs of an experiment are in its folder `runs`";
            Err(Error::refused(
                Diagnostic::error("usage", message).help(help),
            ))
        }
    }
}

fn find(path: &Path, options: &DiffOptions) -> Result<Found, Error> {
    let name = path.display().to_string();
    let run = RunFolder(path.to_owned());
    if path.is_file() {
        let place = tempfile::tempdir().map_err(|e| {
            let message = format!("`{name}` cannot be unpacked: {}", plain_io_error(&e));
            Error::refused(Diagnostic::error("results", message))
        })?;
        let capsule = capsule::unpack(path, &place.path().join("run"), options.max_unpacked)
            .map_err(|e| Error::capsule(&e))?;
        let side = Side::read(name, capsule.folder);
        return Ok(Found::Run(Box::new(side), Some(place)));
    }
    if run.run_toml().exists() || run.is_yet_to_begin() {
        return Ok(Found::Run(Box::new(Side::read(name, run)), None));
    }
    let experiment = ExperimentFolder(path.to_owned());
    if experiment.plan_json().exists() {
        return Ok(Found::Experiment(experiment));
    }
    let message =
        format!("`{name}` is neither the folder of a run nor of an experiment nor a capsule");
    let help = "use a folder such as `results/mnist_sweep/runs/base-s1`; `runner list` shows them";
    Err(Error::refused(
        Diagnostic::error("results", message).help(help),
    ))
}

/// The distances of final weights by parameter.
fn distances(a: &Side, b: &Side) -> Result<Vec<WeightDistance>, Reason> {
    let plans = (
        a.plan.as_ref().map_err(Reason::clone)?,
        b.plan.as_ref().map_err(Reason::clone)?,
    );
    a.check_weights()?;
    b.check_weights()?;
    let [file_a, file_b] = [a, b].map(|side| side.folder.model("final"));
    weight_distances((&file_a, plans.0), (&file_b, plans.1))
}

/// The commits between the two, if the repository here has both.
fn commits(a: &Side, b: &Side) -> Option<String> {
    let commit = |side: &Side| side.environment.as_ref().ok()?.git_commit.clone();
    let (a, b) = (commit(a)?, commit(b)?);
    if a == b {
        return None;
    }
    let count = |from: &str, to: &str| commits_between(Path::new("."), from, to);
    let (ahead, behind) = (count(&a, &b)?, count(&b, &a)?);
    let short = |commit: &str| commit.chars().take(10).collect::<String>();
    let range = format!("{}..{}", short(&a), short(&b));
    Some(match behind {
        0 => format!("git log {range}: {}", counted(ahead, "commit")),
        _ => format!(
            "git log {range}: {}, and {} that only a has",
            counted(ahead, "commit"),
            counted(behind, "commit")
        ),
    })
}

/// The runs of two experiments in pairs of one id.
fn pairs(a: &ExperimentFolder, b: &ExperimentFolder) -> Vec<Pair> {
    let (of_a, of_b) = (a.run_ids(), b.run_ids());
    let mut ids: Vec<_> = of_a.iter().chain(&of_b).collect();
    ids.sort();
    ids.dedup();
    let side = |folder: &ExperimentFolder, id: &str| {
        let run = folder.run(id);
        Side::read(run.0.display().to_string(), run)
    };
    let pair = |id: &String| Pair {
        run: id.clone(),
        found: match (of_a.contains(id), of_b.contains(id)) {
            (true, false) => In::A(a.0.clone()),
            (false, _) => In::B(b.0.clone()),
            (true, true) => {
                let diff = Diff::of(&side(a, id), &side(b, id), || Ok(Vec::new()));
                In::Both(Box::new(diff))
            }
        },
    };
    ids.into_iter().map(pair).collect()
}
