//! From a path and `--set` to a plan, with every refusal shown.

use super::output::Output;
use super::tell::Teller;
use super::{SpecArgs, WRONG};
use crate::ops;
use runner_core::diagnostic::{Diagnostic, Diagnostics, Sources};
use runner_core::plan::{Plan, RunPlan};
use runner_core::spec::document::Document;
use runner_report::console::Mode;

/// Reads, checks and plans an experiment file. With `download`, missing data is downloaded. If it returns an exit code,
/// the error was already shown.
pub fn plan(
    args: &SpecArgs,
    download: Option<Mode>,
    output: &mut Output,
) -> Result<(Document, Plan), u8> {
    let teller = Teller::new(download.unwrap_or(Mode::Normal));
    let sink = |progress: ops::Progress<'_>| teller.tell(progress);
    let planned = if download.is_some() {
        ops::plan_with_data(&args.experiment(), &sink)
    } else {
        ops::plan(&args.experiment(), &sink)
    };
    drop(teller);
    match planned {
        Ok(planned) => {
            output.has_warned |= planned.has_warnings;
            Ok((planned.document, planned.plan))
        }
        Err(error) => Err(output.fail(&error)),
    }
}

/// The first run of a trial, or of the first trial. If it returns an exit code, the error was already shown.
pub fn trial<'a>(
    plan: &'a Plan,
    wanted: Option<&str>,
    output: &mut Output,
) -> Result<&'a RunPlan, u8> {
    ops::trial(plan, wanted).map_err(|error| output.fail(&error))
}

/// Reads an experiment file with its edits. If it returns an exit code, the error was already shown.
pub fn open(args: &SpecArgs, output: &mut Output) -> Result<Document, u8> {
    ops::open(&args.experiment()).map_err(|error| output.fail(&error))
}

/// Shows errors with their places, and returns the exit code.
pub fn show(sources: &Sources, diagnostics: &Diagnostics, output: &mut Output) -> u8 {
    output.show(&diagnostics.render(sources, Output::color()));
    WRONG
}

/// Shows an error without a place in a text.
pub fn refuse(diagnostic: Diagnostic, output: &mut Output) -> u8 {
    output.refuse(diagnostic)
}
