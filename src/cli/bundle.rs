//! `runner bundle`: packs a run into a capsule.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::json;

use super::experiment::refuse;
use super::output::Output;
use super::{BundleArgs, OK};
use crate::console::{Fetching, Mode};
use crate::data::origin::{self, Root};
use crate::data::{self, DataError};
use crate::diagnostic::{Diagnostic, counted};
use crate::event::Outcome;
use crate::plan::RunPlan;
use crate::record::capsule::{
    self, CapsuleError, DataHere, DataRoot, FileSum, Needs, Packed, Packing,
};
use crate::record::{ExperimentFolder, RunFolder, RunRecord};
use crate::spec::document::plain_io_error;
use crate::spec::kind::{parse_bytes, show_bytes};

/// Whether the data's files are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PackData {
    /// While they are not larger than `--max-data`
    Auto,
    /// Whatever their size
    Always,
    /// Not at all
    Never,
}

/// More files of data than these are not listed one by one where they are not packed, and not packed
/// unless asked for: the list would be larger than a capsule's may be.
const MAX_LISTED: usize = 80_000;

/// A size as files write it.
pub fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "write a size such as 512MiB or 4GiB".into())
}

/// `runner bundle`
pub fn bundle(args: &BundleArgs, output: &mut Output) -> u8 {
    match pack(args, output) {
        Ok(()) => OK,
        Err(diagnostic) => refuse(*diagnostic, output),
    }
}

fn pack(args: &BundleArgs, output: &mut Output) -> Result<(), Box<Diagnostic>> {
    let folder = RunFolder(args.run.clone());
    let results =
        |e: std::io::Error| Box::new(Diagnostic::error("results", plain_io_error(&e)).help(REMAKE));
    let plan = match args.run.is_dir() {
        true => folder.read_plan().map_err(results)?,
        false => None,
    };
    let Some(plan) = plan else {
        return Err(Box::new(no_run(&args.run)));
    };
    let out = match &args.out {
        Some(out) => out.clone(),
        None => PathBuf::from(capsule::default_name(&plan)),
    };
    refuse_out(&out, args.force)?;
    let Some(_lock) = folder.lock_to_read().map_err(results)? else {
        let message = format!("`{}` is being trained", args.run.display());
        let diagnostic = Diagnostic::error("results", message);
        return Err(Box::new(diagnostic.help("wait until it has ended")));
    };
    let record = RunRecord::read(&folder).map_err(results)?;
    let data = data_here(args, &folder, &plan, &record)?;
    let (siblings, unread) = capsule::siblings(&folder, &plan);
    let packing = Packing {
        folder: &folder,
        plan: &plan,
        record: &record,
        siblings: &siblings,
        data,
    };
    let bar = Fetching::decoding(Mode::Normal);
    let watch = |done, total| bar.show("packing", done, Some(total));
    let packed = capsule::pack(packing, &out, args.force, &watch).map_err(|e| shown(&e))?;
    for sentence in &unread {
        output.say(&format!("note: {sentence}"));
    }
    tell(&out, &packed, &record, siblings.len(), args.json, output);
    Ok(())
}

const REMAKE: &str = "`runner run` on the experiment makes the run's files anew";

/// What is in the way of the capsule's file is said before anything is read.
fn refuse_out(out: &Path, force: bool) -> Result<(), Box<Diagnostic>> {
    let folder = out.parent().unwrap_or(Path::new(""));
    let (message, help) = if out.is_dir() {
        let message = format!("`{}` is a folder", out.display());
        (message, "name the file to write with `--out`")
    } else if !force && out.exists() {
        let message = format!("`{}` is there already", out.display());
        let help = "name another file with `--out`, or write over it with `--force`";
        (message, help)
    } else if !folder.as_os_str().is_empty() && !folder.is_dir() {
        let message = format!("there is no folder `{}`", folder.display());
        (message, "make it first, or name another file with `--out`")
    } else {
        return Ok(());
    };
    Err(Box::new(Diagnostic::error("results", message).help(help)))
}

/// A folder that is no run: which one is, where that can be told.
fn no_run(folder: &Path) -> Diagnostic {
    let shown = folder.display();
    let error = |what: &str| Diagnostic::error("results", format!("`{shown}` is {what}"));
    if !folder.exists() {
        let message = format!("there is no folder `{shown}`");
        return Diagnostic::error("results", message)
            .help("`runner list` shows the runs of a results folder");
    }
    if folder.is_file() {
        return error("a file, not the folder of a run")
            .help("name the folder that `run.toml` is in");
    }
    let is_experiment = |folder: &Path| ExperimentFolder(folder.to_owned()).plan_json().exists();
    let around = fs::canonicalize(folder)
        .ok()
        .filter(|f| f.ends_with("runs"));
    let around = around.as_deref().and_then(Path::parent);
    if is_experiment(folder) || around.is_some_and(is_experiment) {
        let (experiment, runs) = match is_experiment(folder) {
            true => (folder, folder.join("runs")),
            false => (around.unwrap_or(folder), folder.to_owned()),
        };
        let ids = ExperimentFolder(experiment.to_owned()).run_ids();
        let mut error = error("the folder of an experiment, and a capsule holds one run");
        for id in ids.iter().take(10) {
            error = error.help(format!("runner bundle {}", runs.join(id).display()));
        }
        return match ids.len() {
            0 => error.help("train it first: it has no runs"),
            num if num > 10 => error.note(format!("it has {num} runs; the first 10 are named")),
            _ => error,
        };
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    if entries
        .map(|entry| entry.path())
        .any(|path| is_experiment(&path))
    {
        return error("a folder of experiments, and a capsule holds one run")
            .help(format!("`runner list {shown}` shows their runs"));
    }
    error("not the folder of a run: it has no run.toml")
        .help("give a folder such as `results/mnist_sweep/runs/hidden=64-s1`; `runner list` shows the runs")
}

/// Looks at the data's files: they have to be those that the run was trained on.
fn data_here(
    args: &BundleArgs,
    folder: &RunFolder,
    plan: &RunPlan,
    record: &RunRecord,
) -> Result<DataHere, Box<Diagnostic>> {
    if plan.data.roots().is_empty() {
        return Ok(DataHere::default());
    }
    let bar = Fetching::decoding(Mode::Normal);
    let watch = |done, total| bar.show("reading data", done, Some(total));
    let measured = origin::measure(&plan.data, &watch).and_then(|roots| {
        refuse_changed(folder, plan, record, &roots)?;
        Ok(roots)
    });
    let roots = match measured {
        Ok(roots) => roots,
        Err(error) if args.data == PackData::Never => {
            return Ok(DataHere {
                roots: plan.data.roots().iter().map(data_root).collect(),
                is_packed: false,
                note: Some(error.message),
            });
        }
        Err(error) => {
            let help = "bring the data back as it was, or leave it out with `--data never`";
            let error = DataError {
                helps: vec![help.into()],
                ..error
            };
            return Err(Box::new(error.to_diagnostic()));
        }
    };
    let mut data = DataHere {
        roots: roots.iter().map(data_root).collect(),
        is_packed: false,
        note: None,
    };
    let num_files: usize = data.roots.iter().map(|root| root.num_files).sum();
    let bytes: u64 = data.roots.iter().map(|root| root.bytes).sum();
    data.is_packed = match args.data {
        PackData::Always => true,
        PackData::Never => false,
        PackData::Auto => bytes <= args.max_data && num_files <= MAX_LISTED,
    };
    if data.is_packed {
        refuse_links(&roots)?;
    } else if num_files > MAX_LISTED {
        data.roots.iter_mut().for_each(|root| root.files.clear());
    }
    Ok(data)
}

fn data_root(root: &Root) -> DataRoot {
    let files = root.files.iter().map(|file| FileSum {
        path: file.name.clone(),
        bytes: file.bytes,
        sha256: file.sha256.clone(),
    });
    DataRoot {
        key: root.key.to_owned(),
        number: root.number,
        original: root.path.to_string_lossy().into_owned(),
        is_folder: root.is_folder,
        num_files: root.files.len(),
        bytes: root.files.iter().map(|file| file.bytes).sum(),
        packed: None,
        files: files.collect(),
    }
}

/// A capsule with other data than the run's would be worthless.
fn refuse_changed(
    folder: &RunFolder,
    plan: &RunPlan,
    record: &RunRecord,
    roots: &[Root],
) -> Result<(), DataError> {
    let is_same = match (origin::is_as_planned(&plan.data, roots)?, &record.started) {
        (Some(is_same), _) => is_same,
        // What the plan does not say, the items do.
        (None, Some(started)) => {
            data::load(&plan.data, &|_, _| {})?.digests == started.data_digests
        }
        (None, None) => true,
    };
    if is_same {
        return Ok(());
    }
    let paths = roots.iter().flat_map(|root| {
        root.files.iter().map(|file| match root.is_folder {
            true => root.path.join(&file.name),
            false => root.path.clone(),
        })
    });
    let mut paths: Vec<PathBuf> = paths.collect();
    if let [path] = paths.as_slice() {
        let message = format!("`{}` changed since the run was made", path.display());
        return Err(DataError::new(message));
    }
    // Sums of single files are not recorded, but times may tell which one it was.
    let num = paths.len();
    let modified = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    if let Some(made) = modified(&folder.environment_json()) {
        paths.retain(|path| modified(path).is_some_and(|at| at > made));
    }
    let mut error = DataError::new(format!(
        "the {} of the data changed since the run was made",
        counted(num, "file")
    ));
    for path in paths.iter().take(5) {
        error = error.note(format!("`{}` is newer than the run", path.display()));
    }
    let first = roots.first().map(|root| root.path.display().to_string());
    match paths.is_empty() || paths.len() == num {
        true => Err(error.note(format!("they are those of `{}`", first.unwrap_or_default()))),
        false => Err(error),
    }
}

/// What stands behind a link is read as part of the folder, and the data's digest does not see it: as a
/// plain folder it would be other data.
fn refuse_links(roots: &[Root]) -> Result<(), Box<Diagnostic>> {
    for root in roots.iter().filter(|root| root.is_folder) {
        let link = origin::linked_folder(&root.path).map_err(|e| Box::new(e.to_diagnostic()))?;
        if let Some(link) = link {
            let message = format!("`{}` is a link to a folder", link.display());
            let diagnostic = Diagnostic::error("data", message)
                .help("a capsule cannot hold it: leave the data out with `--data never`");
            return Err(Box::new(diagnostic));
        }
    }
    Ok(())
}

fn shown(error: &CapsuleError) -> Box<Diagnostic> {
    Box::new(Diagnostic {
        notes: error.notes.clone(),
        helps: error.helps.clone(),
        ..Diagnostic::error("results", error.message.clone())
    })
}

/// Says what was packed, and what the receiver needs.
fn tell(
    out: &Path,
    packed: &Packed,
    record: &RunRecord,
    num_siblings: usize,
    json: bool,
    output: &mut Output,
) {
    let manifest = &packed.manifest;
    let (data, num_files) = (&manifest.data, manifest.files.len());
    let unpacked: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let (data_files, data_bytes) = data.size();
    let files = format!(
        "{} of {}",
        counted(data_files, "file"),
        show_bytes(data_bytes)
    );
    if json {
        let roots = data.roots.iter().map(|root| {
            json!({
                "key": root.key,
                "number": root.number,
                "original": root.original,
                "packed": root.packed,
                "files": root.num_files,
                "bytes": root.bytes,
            })
        });
        let roots: Vec<_> = roots.collect();
        let object = json!({
            "capsule": out.to_string_lossy(),
            "bytes": packed.bytes,
            "files": num_files,
            "unpacked_bytes": unpacked,
            "experiment": manifest.experiment,
            "run": manifest.run,
            "outcome": manifest.outcome,
            "siblings": num_siblings,
            "data": {
                "dataset": data.dataset,
                "needs": data.needs,
                "files": data_files,
                "bytes": data_bytes,
                "content_digest": data.content_digest,
                "roots": roots,
                "note": data.note,
            },
        });
        output.print(&object.to_string());
        return;
    }
    output.say(&format!(
        "packed {} of {} into {}",
        counted(num_files, "file"),
        show_bytes(unpacked),
        show_bytes(packed.bytes)
    ));
    output.say(&match data.needs {
        Needs::Nothing => format!(
            "data: `{}`, which is inside runner; nothing else is needed",
            data.dataset
        ),
        Needs::Packed => format!(
            "data: `{}`, {files}, inside; nothing else is needed",
            data.dataset
        ),
        Needs::Files => format!(
            "data: `{}` is not inside; who reproduces the run needs these files:",
            data.dataset
        ),
    });
    if data.needs == Needs::Files {
        for root in &data.roots {
            let size = match data.note {
                Some(_) => String::new(),
                None => format!(
                    ": {} of {}",
                    counted(root.num_files, "file"),
                    show_bytes(root.bytes)
                ),
            };
            output.say(&format!("  `{}` {}{size}", root.key, root.original));
        }
    }
    if let Some(note) = &data.note {
        output.say(&format!(
            "note: {note}; the capsule says what the data was by its digest alone"
        ));
    }
    if num_siblings > 0 {
        let runs = counted(num_siblings, "other seed");
        output.say(&format!(
            "seeds: the numbers of {runs} of the trial are inside"
        ));
    }
    match &record.outcome {
        Some(Outcome::Completed) => {}
        Some(Outcome::Failed { class, .. }) => output.say(&format!(
            "note: the run failed ({}); the capsule shows how, and has no final numbers to compare with",
            class.name()
        )),
        other => output.say(&format!(
            "note: the run is {}; the capsule has no final numbers to compare with",
            other.as_ref().map_or("incomplete", |outcome| outcome.word())
        )),
    }
    output.print(&out.display().to_string());
}
