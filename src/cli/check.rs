//! `runner check`: every mistake of an experiment file at once, and what its seeds can show.

use serde_json::json;

use super::output::Output;
use super::plan::say_search;
use super::tell::Teller;
use super::{CheckArgs, OK, SpecArgs, WRONG};
use crate::error::Error;
use crate::ops::{self, Check, Checked};
use runner_core::diagnostic::{Diagnostic, Diagnostics, Severity, Sources, counted};
use runner_report::console::Mode;
use runner_report::report::Prospect;

/// `runner check`
pub fn check(args: &CheckArgs, output: &mut Output) -> u8 {
    let options = Check::new(args.spec.experiment());
    if args.json {
        return match ops::check(&options, &ops::quiet) {
            Ok(checked) => {
                let planned = &checked.planned;
                let found = listed(&planned.warnings, &planned.document.sources);
                print_json(&args.spec, Some(&checked), found, output);
                OK
            }
            Err(Error::Experiment {
                sources,
                diagnostics,
            }) => {
                print_json(&args.spec, None, listed(&diagnostics, &sources), output);
                WRONG
            }
            Err(error) => output.fail(&error),
        };
    }
    let teller = Teller::new(Mode::Normal);
    match ops::check(&options, &|progress| teller.tell(progress)) {
        Ok(checked) => {
            output.say(&format!(
                "{}: no errors; {}, {}",
                args.spec.spec.display(),
                counted(checked.num_trials(), "trial"),
                counted(checked.planned.plan.runs.len(), "run")
            ));
            say_search(&checked.planned.plan, output);
            say_prospect(checked.prospect.as_ref(), output);
            OK
        }
        Err(error) => output.fail(&error),
    }
}

/// The problems of a file, and what its seeds can show, for programs.
fn print_json(
    args: &SpecArgs,
    checked: Option<&Checked>,
    diagnostics: Vec<serde_json::Value>,
    output: &mut Output,
) {
    let object = json!({
        "file": args.spec.display().to_string(),
        "valid": checked.is_some(),
        "trials": checked.map(Checked::num_trials),
        "runs": checked.map(|checked| checked.planned.plan.runs.len()),
        "verdicts": checked.and_then(|checked| checked.prospect),
        "diagnostics": diagnostics,
    });
    output.print(&serde_json::to_string_pretty(&object).unwrap_or_default());
}

fn listed(diagnostics: &Diagnostics, sources: &Sources) -> Vec<serde_json::Value> {
    let all = diagnostics.0.iter();
    all.map(|found| as_json(found, sources)).collect()
}

fn as_json(diagnostic: &Diagnostic, sources: &Sources) -> serde_json::Value {
    json!({
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "code": diagnostic.code,
        "message": diagnostic.message,
        "place": diagnostic.span.map(|span| sources.line(span)),
        "notes": diagnostic.notes,
        "helps": diagnostic.helps,
    })
}

/// What the seeds of a plan can show.
pub(super) fn say_prospect(prospect: Option<&Prospect>, output: &mut Output) {
    if let Some(prospect) = prospect {
        for line in prospect.in_words() {
            output.say(&format!("verdicts: {line}"));
        }
    }
}
