//! `runner tag`, `runner note` and `runner clean`: what is said of runs, and which earlier ones are kept.

use std::path::PathBuf;

use clap::Args;

use super::OK;
use super::output::Output;
use crate::ops::{self, Clean, LabelChange, LabelRun};
use runner_core::diagnostic::counted;
use runner_core::record::Label;
use runner_core::show::show_bytes;

#[derive(Args)]
pub struct TagArgs {
    /// The folder of a run, such as `results/mnist_sweep/runs/base-s1`
    run: PathBuf,
    /// Tags of one word each; without any, the present ones are shown
    names: Vec<String>,
    /// Remove these tags, or all of them
    #[arg(long)]
    remove: bool,
}

#[derive(Args)]
pub struct NoteArgs {
    /// The folder of a run, such as `results/mnist_sweep/runs/base-s1`
    run: PathBuf,
    /// A line to add to its note; without it, the note is shown
    text: Option<String>,
    /// Remove the note
    #[arg(long, conflicts_with = "text")]
    remove: bool,
}

#[derive(Args)]
pub struct CleanArgs {
    /// The folder of an experiment, or a results folder
    #[arg(default_value = "results")]
    folder: PathBuf,
    /// Generations of settings to keep, the present one included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// Remove what is shown; without it, nothing is removed
    #[arg(long)]
    yes: bool,
}

/// Changes or shows the tags of a run.
pub fn tag(args: &TagArgs, output: &mut Output) -> u8 {
    let change = match (args.remove, args.names.is_empty()) {
        (true, _) => LabelChange::RemoveTags(args.names.clone()),
        (false, true) => LabelChange::Show,
        (false, false) => LabelChange::AddTags(args.names.clone()),
    };
    label(&args.run, change, output, |label| {
        if label.tags.is_empty() {
            "no tags".into()
        } else {
            label.tags_in_words()
        }
    })
}

/// Changes or shows the note of a run.
pub fn note(args: &NoteArgs, output: &mut Output) -> u8 {
    let change = match (args.remove, &args.text) {
        (true, _) => LabelChange::RemoveNote,
        (false, None) => LabelChange::Show,
        (false, Some(text)) => LabelChange::AddNote(text.clone()),
    };
    label(&args.run, change, output, |label| {
        if label.note.is_empty() {
            "no note".into()
        } else {
            label.note
        }
    })
}

fn label(
    run: &std::path::Path,
    change: LabelChange,
    output: &mut Output,
    text: impl Fn(Label) -> String,
) -> u8 {
    let options = LabelRun {
        run: run.to_owned(),
        change,
    };
    match ops::label_run(&options, &ops::quiet) {
        Ok(label) => {
            output.print(&text(label));
            OK
        }
        Err(error) => output.fail(&error),
    }
}

/// Removes runs of earlier settings, or shows which would be removed.
pub fn clean(args: &CleanArgs, output: &mut Output) -> u8 {
    let options = Clean {
        folder: args.folder.clone(),
        keep: args.keep as usize,
        is_removing: args.yes,
    };
    let cleaned = match ops::clean(&options, &ops::quiet) {
        Ok(cleaned) => cleaned,
        Err(error) => return output.fail(&error),
    };
    for run in &cleaned.removed {
        let (folder, bytes) = (run.folder.display(), show_bytes(run.bytes));
        output.print(&format!("{folder}  {bytes}  {}", run.changed));
    }
    for (folder, reason) in &cleaned.kept {
        output.say(&format!("kept {}: {reason}", folder.display()));
    }
    let bytes = cleaned.removed.iter().map(|run| run.bytes).sum();
    let runs = counted(cleaned.removed.len(), "run");
    let bytes = show_bytes(bytes);
    let mut what = Vec::new();
    if !cleaned.removed.is_empty() {
        what.push(format!("{runs}, {bytes}"));
    }
    if !cleaned.unfinished.is_empty() {
        let files = counted(cleaned.unfinished.len(), "unfinished file");
        what.push(format!("{files} of processes that were killed"));
    }
    let what = what.join(", and ");
    output.say(&match (what.is_empty(), args.yes) {
        (true, _) => "nothing to remove".to_owned(),
        (false, true) => format!("removed {what}"),
        (false, false) => format!("would remove {what}; `--yes` removes them"),
    });
    OK
}
