//! From a path and `--set` to a plan, with every refusal shown.

use std::path::{Path, PathBuf};

use super::devices::inventory;
use super::output::Output;
use super::{SpecArgs, WRONG};
use runner_core::data::{self, Folders};
use runner_core::diagnostic::{Diagnostic, Diagnostics, Sources};
use runner_core::plan::{self, Plan, RunPlan};
use runner_core::spec::document::Document;
use runner_core::spec::portable::is_reserved;
use runner_report::console::{Fetching, Mode};

/// Reads, checks and plans an experiment file. With `download`, missing data is fetched. A refusal was
/// shown when the exit code comes back.
pub fn plan(
    args: &SpecArgs,
    download: Option<Mode>,
    output: &mut Output,
) -> Result<(Document, Plan), u8> {
    let document = open(args, output)?;
    match try_plan(&args.spec, &document, download) {
        Ok((plan, warnings)) => {
            if !warnings.0.is_empty() {
                output.has_warned = true;
                output.show(&warnings.render(&document.sources, Output::color()));
            }
            for notice in &plan.notices {
                output.say(&format!("note: {notice}"));
            }
            Ok((document, plan))
        }
        Err(diagnostics) => Err(show(&document.sources, &diagnostics, output)),
    }
}

/// Plans what was read from a path. Nothing is shown but progress.
pub fn try_plan(
    path: &Path,
    document: &Document,
    download: Option<Mode>,
) -> Result<(Plan, Diagnostics), Diagnostics> {
    let name = default_name(path);
    let folders = Folders {
        base: path.parent().unwrap_or(Path::new(".")).to_owned(),
        cache: cache_folder(),
    };
    let decoding = Fetching::decoding(download.unwrap_or(Mode::Normal));
    let watch = |done, total| decoding.show("reading data", done, Some(total));
    let mut locate = |spec: &runner_core::spec::data::DataSpec| match download {
        None => data::locate(spec, &folders, None, &watch),
        Some(mode) => {
            let bar = Fetching::download(mode);
            let mut progress = |file: &str, received, total| bar.show(file, received, total);
            data::locate(spec, &folders, Some(&mut progress), &watch)
        }
    };
    plan::plan(document, &name, &mut locate, &inventory)
}

/// Where this program keeps what it can make anew.
pub fn cache_folder() -> PathBuf {
    dirs::cache_dir()
        .unwrap_or_else(std::env::temp_dir)
        .join("burn-runner")
}

/// The first run of a trial, or of the first trial. A refusal was shown when the exit code comes back.
pub fn trial<'a>(
    plan: &'a Plan,
    wanted: Option<&str>,
    output: &mut Output,
) -> Result<&'a RunPlan, u8> {
    let mut runs = plan.runs.iter();
    let found = runs.find(|run| wanted.is_none_or(|trial| run.trial == trial));
    found.ok_or_else(|| {
        let message = format!("there is no trial `{}`", wanted.unwrap_or_default());
        let diagnostic = Diagnostic::error("usage", message);
        refuse(
            diagnostic.help("`runner plan` shows the runs; a trial is what stands before `-s`"),
            output,
        )
    })
}

/// What an experiment is called that does not name itself.
pub fn default_name(path: &Path) -> String {
    let stem = path.file_stem();
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    folder_name(&stem.unwrap_or_default())
}

/// Reads an experiment file with its edits. A refusal was shown when the exit code comes back.
pub fn open(args: &SpecArgs, output: &mut Output) -> Result<Document, u8> {
    read(args).map_err(|(sources, diagnostics)| show(&sources, &diagnostics, output))
}

/// Reads an experiment file with its edits. What is wrong comes back with the texts that it points into.
pub fn read(args: &SpecArgs) -> Result<Document, (Sources, Diagnostics)> {
    let mut document = Document::read(&args.spec)?;
    let mut diagnostics = Diagnostics::default();
    for assignment in &args.set {
        if let Err(diagnostic) = document.set(assignment) {
            diagnostics.push(*diagnostic);
        }
    }
    document.look_up(&|name| std::env::var(name).ok());
    if diagnostics.has_errors() {
        Err((document.sources, diagnostics))
    } else {
        Ok(document)
    }
}

/// Shows refusals with their places, and returns the exit code.
pub fn show(sources: &Sources, diagnostics: &Diagnostics, output: &mut Output) -> u8 {
    output.show(&diagnostics.render(sources, Output::color()));
    WRONG
}

/// Shows a refusal that has no place in a text.
pub fn refuse(diagnostic: Diagnostic, output: &mut Output) -> u8 {
    output.show(&diagnostic.render(&Sources::default(), Output::color()));
    WRONG
}

/// A file's name as a folder's name.
fn folder_name(stem: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = stem.trim_start_matches('.').chars().map(keep).collect();
    let name = name.trim_end_matches('.');
    match name {
        "" => "experiment".into(),
        _ if is_reserved(name) => format!("{name}_"),
        _ => name.to_owned(),
    }
}
