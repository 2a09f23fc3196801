//! `runner check`: every mistake of an experiment file at once, and what its seeds can show.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use super::experiment::plan as plan_experiment;
use super::output::Output;
use super::{CheckArgs, OK, SpecArgs, WRONG};
use crate::error::Error;
use crate::ops::{self, Planned};
use runner_core::diagnostic::{Diagnostic, Severity, Sources, counted};
use runner_core::plan::Plan;
use runner_core::record::Index;
use runner_report::report::Prospect;

/// `runner check`
pub fn check(args: &CheckArgs, output: &mut Output) -> u8 {
    if args.json {
        return check_as_json(&args.spec, output);
    }
    match plan_experiment(&args.spec) {
        Ok(Planned { plan, .. }) => {
            output.say(&format!(
                "{}: no errors; {}, {}",
                args.spec.spec.display(),
                counted(num_trials(&plan), "trial"),
                counted(plan.runs.len(), "run")
            ));
            say_prospect(&plan, None, output);
            OK
        }
        Err(error) => output.fail(&error),
    }
}

/// The problems of a file, and what its seeds can show, for programs.
fn check_as_json(args: &SpecArgs, output: &mut Output) -> u8 {
    let warnings = Mutex::new(Vec::new());
    let sink = |progress: ops::Progress<'_>| {
        if let ops::Progress::Warnings(sources, found) = progress {
            let mut warnings = warnings.lock().unwrap_or_else(PoisonError::into_inner);
            warnings.extend(found.0.iter().map(|found| as_json(found, sources)));
        }
    };
    let (plan, mut diagnostics) = match ops::plan(&args.experiment(), &sink) {
        Ok(planned) => (Some(planned.plan), Vec::new()),
        Err(Error::Experiment {
            sources,
            diagnostics,
        }) => {
            let found = diagnostics.0.iter();
            (None, found.map(|found| as_json(found, &sources)).collect())
        }
        Err(error) => return output.fail(&error),
    };
    diagnostics.extend(
        warnings
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner),
    );
    let object = json!({
        "file": args.spec.display().to_string(),
        "valid": plan.is_some(),
        "trials": plan.as_ref().map(num_trials),
        "runs": plan.as_ref().map(|plan| plan.runs.len()),
        "verdicts": plan.as_ref().and_then(|plan| Prospect::of(plan, None)),
        "diagnostics": diagnostics,
    });
    output.print(&serde_json::to_string_pretty(&object).unwrap_or_default());
    if plan.is_some() { OK } else { WRONG }
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

fn num_trials(plan: &Plan) -> usize {
    let trials = plan.runs.iter().map(|run| &run.trial);
    trials.collect::<BTreeSet<_>>().len()
}

/// What the seeds of a plan can show.
pub(super) fn say_prospect(plan: &Plan, index: Option<&Index>, output: &mut Output) {
    if let Some(prospect) = Prospect::of(plan, index) {
        for line in prospect.in_words() {
            output.say(&format!("verdicts: {line}"));
        }
    }
}
