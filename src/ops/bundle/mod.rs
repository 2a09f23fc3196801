//! A run packed into a capsule: one file that it can be reproduced from elsewhere.

mod data;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Progress, Sink};
use crate::error::Error;
use crate::model::yet_to_begin;
use runner_core::diagnostic::Diagnostic;
use runner_core::event::Outcome;
use runner_core::plan::RunPlan;
use runner_core::record::capsule::{self, Packed, Packing};
use runner_core::record::{ExperimentFolder, RunFolder, RunRecord, file_remedy, remedy};
use runner_core::show::plain_io_error;

/// The default maximum size of packed data.
const MAX_DATA: u64 = 64 << 20;

/// Whether the data's files are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackData {
    /// If they are not larger than [`Bundle::max_data`].
    Auto,
    /// Whatever their size.
    Always,
    /// Not at all.
    Never,
}

/// What is packed, and into which file.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The folder of a run.
    pub run: PathBuf,
    /// The file; by default the names of the experiment and the run with `.capsule.tar.zst`, in the current folder.
    pub out: Option<PathBuf>,
    /// Whether the data's files are packed.
    pub data: PackData,
    /// The maximum size of data in bytes that [`PackData::Auto`] packs.
    pub max_data: u64,
    /// Whether an existing file is overwritten.
    pub force: bool,
}

impl Bundle {
    /// The run of a folder, with its data up to 64 MiB.
    pub fn new(run: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            out: None,
            data: PackData::Auto,
            max_data: MAX_DATA,
            force: false,
        }
    }
}

/// A written capsule.
#[derive(Debug)]
pub struct Bundled {
    /// The file.
    pub out: PathBuf,
    /// Its content.
    pub packed: Packed,
    /// The outcome of the run; none if it has not ended.
    pub outcome: Option<Outcome>,
    /// Other seeds of the trial whose numbers are included.
    pub num_siblings: usize,
    /// Why the numbers of some seeds are not included, one sentence each.
    pub unread: Vec<String>,
}

/// The runs that a run begins as copies of, without which a capsule cannot be reproduced.
fn lineage(folder: &RunFolder, plan: &RunPlan) -> Result<Vec<RunPlan>, Error> {
    folder.read_lineage(plan).map_err(|e| {
        let diagnostic = Diagnostic::error("results", plain_io_error(&e));
        Error::refused(diagnostic.help(
            "share the experiment file, which trains all of the population again; `runner export` shares the weights",
        ))
    })
}

/// Packs a run into a capsule.
///
/// # Errors
///
/// [`Error::Refused`] if the run does not exist or is still being trained, its record or its data was changed, or the file
/// cannot be written.
///
/// ```
/// use burn_runner::ops::{self, Bundle};
///
/// let error = ops::bundle(&Bundle::new("results/nothing"), &ops::quiet).unwrap_err();
/// assert_eq!(error.to_string(), "the folder `results/nothing` does not exist");
/// ```
pub fn bundle(options: &Bundle, sink: &Sink<'_>) -> Result<Bundled, Error> {
    let folder = RunFolder(options.run.clone());
    let results = |e: io::Error| {
        Error::refused(Diagnostic::error("results", plain_io_error(&e)).help(remedy(&e)))
    };
    let plan = if options.run.is_dir() {
        folder.read_plan().map_err(results)?
    } else {
        None
    };
    let Some(plan) = plan else {
        let answer = yet_to_begin(&options.run);
        return Err(Error::refused(
            answer.unwrap_or_else(|| no_run(&options.run)),
        ));
    };
    let lineage = lineage(&folder, &plan)?;
    let out = match &options.out {
        Some(out) => out.clone(),
        None => PathBuf::from(capsule::default_name(&plan)),
    };
    refuse_out(&out, options.force)?;
    let Some(_lock) = folder.lock_to_read().map_err(results)? else {
        let message = format!("`{}` is being trained", options.run.display());
        let diagnostic = Diagnostic::error("results", message);
        return Err(Error::refused(
            diagnostic.help("wait until it has finished"),
        ));
    };
    let record = RunRecord::read_for(&folder, &plan).map_err(results)?;
    // A capsule that cannot be reproduced is useless, and nobody could tell why. Edited files are no longer read.
    folder.read_summary().map_err(results)?;
    folder.read_environment().map_err(results)?;
    if let Some(changed) = folder.changed_files(&record).into_iter().next() {
        let diagnostic = Diagnostic::error("results", plain_io_error(&changed));
        return Err(Error::refused(diagnostic.help(file_remedy(&changed))));
    }
    let data = data::data_here(options, &folder, &plan, &record, sink)?;
    let (siblings, unread) = capsule::siblings(&folder, &plan);
    let packing = Packing {
        folder: &folder,
        plan: &plan,
        lineage: &lineage,
        record: &record,
        siblings: &siblings,
        data,
    };
    let watch = |done, total| sink(Progress::Advanced("packing", done, total));
    let packed =
        capsule::pack(packing, &out, options.force, &watch).map_err(|e| Error::capsule(&e))?;
    Ok(Bundled {
        out,
        packed,
        num_siblings: siblings.len(),
        outcome: record.outcome,
        unread,
    })
}

/// Problems with the capsule's file are reported before anything is read.
fn refuse_out(out: &Path, force: bool) -> Result<(), Error> {
    let folder = out.parent().unwrap_or(Path::new(""));
    let (message, help) = if out.is_dir() {
        let message = format!("`{}` is a folder", out.display());
        (message, "choose a file to write with `--out`")
    } else if !force && out.exists() {
        let message = format!("`{}` already exists", out.display());
        let help = "use another file with `--out`, or overwrite it with `--force`";
        (message, help)
    } else if !folder.as_os_str().is_empty() && !folder.is_dir() {
        let message = format!("there is no folder `{}`", folder.display());
        (
            message,
            "create it first, or choose another file with `--out`",
        )
    } else {
        return Ok(());
    };
    Err(Error::refused(
        Diagnostic::error("results", message).help(help),
    ))
}

/// A folder that is not a run: what it is instead, if known.
fn no_run(folder: &Path) -> Diagnostic {
    let shown = folder.display();
    let error = |what: &str| Diagnostic::error("results", format!("`{shown}` is {what}"));
    if !folder.exists() {
        let message = format!("the folder `{shown}` does not exist");
        return Diagnostic::error("results", message)
            .help("`runner list` shows the runs of a results folder");
    }
    if folder.is_file() {
        return error("a file, not the folder of a run")
            .help("use the folder that contains `run.toml`");
    }
    let is_experiment = |folder: &Path| ExperimentFolder(folder.to_owned()).plan_json().exists();
    let around = fs::canonicalize(folder)
        .ok()
        .filter(|f| f.ends_with("runs"));
    let around = around.as_deref().and_then(Path::parent);
    if is_experiment(folder) || around.is_some_and(is_experiment) {
        let (experiment, runs) = if is_experiment(folder) {
            (folder, folder.join("runs"))
        } else {
            (around.unwrap_or(folder), folder.to_owned())
        };
        let ids = ExperimentFolder(experiment.to_owned()).run_ids();
        let mut error = error("the folder of an experiment, but a capsule contains a single run");
        for id in ids.iter().take(10) {
            error = error.help(format!("runner bundle {}", runs.join(id).display()));
        }
        return match ids.len() {
            0 => error.help("it has no runs: train it first"),
            num if num > 10 => error.note(format!("it has {num} runs; the first 10 are listed")),
            _ => error,
        };
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    if entries
        .map(|entry| entry.path())
        .any(|path| is_experiment(&path))
    {
        return error("a folder of experiments, but a capsule contains a single run")
            .help(format!("`runner list {shown}` shows their runs"));
    }
    error("not the folder of a run: it has no run.toml")
        .help("use a folder such as `results/mnist_sweep/runs/hidden=64-s1`; `runner list` shows the runs")
}
