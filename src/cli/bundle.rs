//! `runner bundle`: packs a run into a capsule.

use clap::ValueEnum;
use serde_json::json;

use super::output::Output;
use super::tell::Teller;
use super::{BundleArgs, OK};
use crate::ops::{self, Bundle, Bundled, PackData};
use runner_core::diagnostic::{Reason, counted};
use runner_core::event::Outcome;
use runner_core::record::capsule::{self, DataManifest, Needs};
use runner_core::show::show_bytes;
use runner_core::spec::kind::parse_bytes;
use runner_core::spec::section::Choice;
use runner_report::console::Mode;

/// Whether the data's files are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PackDataArg {
    /// If they are not larger than `--max-data`
    Auto,
    /// Whatever their size
    Always,
    /// Never
    Never,
}

impl From<PackDataArg> for PackData {
    fn from(data: PackDataArg) -> Self {
        match data {
            PackDataArg::Auto => PackData::Auto,
            PackDataArg::Always => PackData::Always,
            PackDataArg::Never => PackData::Never,
        }
    }
}

/// A size in the format of experiment files.
pub fn size(text: &str) -> Result<u64, Reason> {
    parse_bytes(text).ok_or_else(|| "use a size such as 512MiB or 4GiB".into())
}

/// `runner bundle`
pub fn bundle(args: &BundleArgs, output: &mut Output) -> u8 {
    let options = Bundle {
        run: args.run.clone(),
        out: args.out.clone(),
        data: args.data.into(),
        max_data: args.max_data,
        force: args.force,
    };
    let teller = Teller::new(Mode::Normal);
    let bundled = ops::bundle(&options, &|progress| teller.tell(progress));
    drop(teller);
    match bundled {
        Ok(bundled) => {
            for sentence in &bundled.unread {
                output.say(&format!("note: {sentence}"));
            }
            if args.json {
                output.print(&as_json(&bundled).to_string());
            } else {
                tell(&bundled, output);
            }
            OK
        }
        Err(error) => output.fail(&error),
    }
}

/// What a capsule omits because it could identify its author, and what it cannot omit, since it is or affects the
/// numbers.
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

/// What was packed, as JSON.
fn as_json(bundled: &Bundled) -> serde_json::Value {
    let packed = &bundled.packed;
    let manifest = &packed.manifest;
    let data = &manifest.data;
    let (data_files, data_bytes) = data.size();
    let (_, left_in) = facts(data);
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
    json!({
        "capsule": bundled.out.to_string_lossy(),
        "bytes": packed.bytes,
        "files": manifest.files.len(),
        "unpacked_bytes": manifest.unpacked_bytes(),
        "experiment": manifest.experiment,
        "run": manifest.run,
        "outcome": manifest.outcome,
        "siblings": bundled.num_siblings,
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
    })
}

/// Reports what was packed, and what the recipient needs.
fn tell(bundled: &Bundled, output: &mut Output) {
    let packed = &bundled.packed;
    let manifest = &packed.manifest;
    let unpacked = manifest.unpacked_bytes();
    output.say(&format!(
        "packed {} of {} into {}",
        counted(manifest.files.len(), "file"),
        show_bytes(unpacked),
        show_bytes(packed.bytes)
    ));
    tell_data(&manifest.data, output);
    let (left_out, left_in) = facts(&manifest.data);
    output.say(&format!("left out: {}", left_out.join(", ")));
    output.say(&format!("left in: {}", left_in.join(", ")));
    for sentence in &packed.still_named {
        output.say(&format!("note: {sentence}"));
    }
    if unpacked > capsule::usual_limit(packed.bytes) {
        output.say(&format!(
            "note: it unpacks to more than 200 times its size; to reproduce the run, allow that with `--max-unpacked {}MiB`",
            unpacked.div_ceil(1 << 20)
        ));
    }
    if bundled.num_siblings > 0 {
        let runs = counted(bundled.num_siblings, "other seed");
        output.say(&format!(
            "seeds: the metrics of {runs} of the trial are included"
        ));
    }
    match &bundled.outcome {
        Some(Outcome::Completed) => {}
        Some(Outcome::Failed { class, .. }) => output.say(&format!(
            "note: the run failed ({}); the capsule shows how, but has no final numbers to compare with",
            class.name()
        )),
        other => output.say(&format!(
            "note: the run is {}; the capsule has no final numbers to compare with",
            other.as_ref().map_or("incomplete", |outcome| outcome.word())
        )),
    }
    output.print(&bundled.out.display().to_string());
}

/// Reports which of the data's files the recipient needs.
fn tell_data(data: &DataManifest, output: &mut Output) {
    let (num_files, bytes) = data.size();
    let files = format!("{} of {}", counted(num_files, "file"), show_bytes(bytes));
    output.say(&match data.needs {
        Needs::Nothing => format!(
            "data: `{}`, which is embedded in runner; nothing else is needed",
            data.dataset
        ),
        Needs::Packed => format!(
            "data: `{}`, {files}, included; nothing else is needed",
            data.dataset
        ),
        Needs::Files => format!(
            "data: `{}` is not included; to reproduce the run, these files are needed:",
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
            "note: {note}; the capsule only identifies the data by its digest"
        ));
    }
}
