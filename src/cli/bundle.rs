//! `runner bundle`: packs a run into a capsule.

mod data;

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::json;

use super::experiment::refuse;
use super::output::Output;
use super::{BundleArgs, OK};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::event::Outcome;
use runner_core::record::capsule::{self, CapsuleError, DataManifest, Needs, Packed, Packing};
use runner_core::record::{ExperimentFolder, RunFolder, RunRecord, remedy};
use runner_core::spec::document::plain_io_error;
use runner_core::spec::kind::{parse_bytes, show_bytes};
use runner_core::spec::section::Choice;
use runner_report::console::{Fetching, Mode};

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
    let results = |e: std::io::Error| {
        Box::new(Diagnostic::error("results", plain_io_error(&e)).help(remedy(&e)))
    };
    let plan = if args.run.is_dir() {
        folder.read_plan().map_err(results)?
    } else {
        None
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
    let record = RunRecord::read_for(&folder, &plan).map_err(results)?;
    // A capsule that cannot be reproduced is of no use, and nobody could tell why.
    if let Some(changed) = folder.changed_files(&record).into_iter().next() {
        return Err(results(changed));
    }
    let data = data::data_here(args, &folder, &plan, &record)?;
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
        let (experiment, runs) = if is_experiment(folder) {
            (folder, folder.join("runs"))
        } else {
            (around.unwrap_or(folder), folder.to_owned())
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

/// A capsule's refusal.
pub fn shown(error: &CapsuleError) -> Box<Diagnostic> {
    Box::new(Diagnostic {
        notes: error.notes.clone(),
        helps: error.helps.clone(),
        ..Diagnostic::error("results", error.message.clone())
    })
}

/// What a capsule leaves out of what could say who made it, and what it cannot leave out, since the numbers depend on it
/// or are it.
fn facts(data: &DataManifest) -> (Vec<&'static str>, Vec<&'static str>) {
    let mut left_out = vec!["the name of this machine"];
    let mut left_in = vec![
        "operating system, processor, memory and devices",
        "versions and the git commit",
        "times",
        "names of the experiment, its trials and classes",
    ];
    match data.needs {
        Needs::Nothing => {}
        Needs::Packed => {
            left_out.push("where the data and the cache were");
            left_in.push("the data with the names of its files");
        }
        Needs::Files => {
            left_out.push("where the cache was");
            left_in.push("where the data is, below `~` where that is your home folder");
        }
    }
    (left_out, left_in)
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
    let unpacked = manifest.unpacked_bytes();
    let (data_files, data_bytes) = data.size();
    let files = format!(
        "{} of {}",
        counted(data_files, "file"),
        show_bytes(data_bytes)
    );
    let (left_out, left_in) = facts(data);
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
            "left_in": left_in,
            "still_named": packed.still_named,
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
    output.say(&format!("left out: {}", left_out.join(", ")));
    output.say(&format!("left in: {}", left_in.join(", ")));
    for sentence in &packed.still_named {
        output.say(&format!("note: {sentence}"));
    }
    if unpacked > capsule::usual_limit(packed.bytes) {
        output.say(&format!(
            "note: it is unpacked to more than 200 times its size; who reproduces the run has to allow for that with `--max-unpacked {}MiB`",
            unpacked.div_ceil(1 << 20)
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
