//! The read-only verbs: `check`, `plan`, `report`, `schema`.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::experiment::{plan as plan_experiment, refuse};
use super::output::Output;
use super::tell::this_program;
use super::{CheckArgs, FAILED, OK, SpecArgs, WRONG, template, weights};
use crate::error::Error;
use crate::ops::{self, calibrations, other_builds};
use runner_core::diagnostic::{Diagnostic, Severity, Sources, counted};
use runner_core::plan::{Basis, Expected, Plan, RunPlan};
use runner_core::record::{
    ExperimentFolder, Index, OTHER_FORMAT_REMEDY, PLAN_REMEDY, RunRecord, Status, is_other_format,
    is_unwritable, remedy, sealed_json, status, total_memory, write_whole,
};
use runner_core::spec::document::plain_io_error;
use runner_core::spec::kind::show_bytes;
use runner_core::spec::schema::experiment_schema;
use runner_report::report::{self as reports, Columns, fit, value_text};
use serde_json::json;

/// `runner check`
pub fn check(args: &CheckArgs, output: &mut Output) -> u8 {
    if args.json {
        return check_as_json(&args.spec, output);
    }
    match plan_experiment(&args.spec, None, output) {
        Ok((_, plan)) => {
            output.say(&format!(
                "{}: no errors; {}, {}",
                args.spec.spec.display(),
                counted(num_trials(&plan), "trial"),
                counted(plan.runs.len(), "run")
            ));
            say_prospect(&plan, None, output);
            OK
        }
        Err(code) => code,
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
        "verdicts": plan.as_ref().and_then(|plan| reports::Prospect::of(plan, None)),
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
    trials.collect::<std::collections::BTreeSet<_>>().len()
}

/// `runner plan`
pub fn plan(args: &SpecArgs, json: bool, results: &Path, output: &mut Output) -> u8 {
    let plan = match plan_experiment(args, None, output) {
        Ok((_, plan)) => plan,
        Err(code) => return code,
    };
    if json {
        output.print(&serde_json::to_string_pretty(&plan).unwrap_or_default())
    } else {
        match to_do(&plan, &ExperimentFolder(results.join(&plan.experiment))) {
            Ok((to_do, notes)) => {
                let calibrations = calibrations(&this_program(None));
                let folder = ExperimentFolder(results.join(&plan.experiment));
                let expected = plan.runs.iter().map(|run| {
                    let run = as_it_goes_on(run, &folder);
                    let expected = calibrations.expected(&run, None);
                    (run, expected)
                });
                let expected: Vec<(RunPlan, Expected)> = expected.collect();
                output.print(&plan_table(&plan, &expected, to_do));
                let remarks = remarks(&expected).into_iter();
                remarks.chain(notes).for_each(|remark| output.say(&remark));
            }
            Err(error) => {
                let diagnostic = Diagnostic::error("results", plain_io_error(&error));
                let help = if is_other_format(&error) {
                    OTHER_FORMAT_REMEDY
                } else {
                    remedy(&error)
                };
                return refuse(diagnostic.help(help), output);
            }
        }
    }
    if !json {
        for table in first_weights(&plan) {
            output.say(&table);
        }
    }
    output.say(&counted(plan.runs.len(), "run"));
    if !json {
        let folder = ExperimentFolder(results.join(&plan.experiment));
        // A folder that cannot be read was refused above.
        let index = Index::read(&folder).ok().flatten();
        say_prospect(&plan, index.as_ref(), output);
    }
    OK
}

/// What the seeds of a plan can show.
fn say_prospect(plan: &Plan, index: Option<&Index>, output: &mut Output) {
    if let Some(prospect) = reports::Prospect::of(plan, index) {
        for line in prospect.in_words() {
            output.say(&format!("verdicts: {line}"));
        }
    }
}

/// What the runs of a plan take from files of weights, each table once.
fn first_weights(plan: &Plan) -> Vec<String> {
    let mut tables: Vec<String> = Vec::new();
    for init in plan.runs.iter().filter_map(|run| run.init.as_ref()) {
        let table = weights::table(init, false);
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    tables
}

/// The remaining work of each run, according to a results folder; empty if there is no such folder and nothing is
/// skipped. Includes the note about runs of other builds.
fn to_do(
    plan: &Plan,
    folder: &ExperimentFolder,
) -> std::io::Result<(Option<Vec<String>>, Vec<String>)> {
    let runs = plan.runs.iter();
    if !folder.plan_json().exists() && runs.clone().all(|run| run.skip.is_none()) {
        return Ok((None, Vec::new()));
    }
    let statuses = runs.clone().map(|run| status(run, &folder.run(&run.id)));
    let statuses: Vec<Status> = statuses.collect::<std::io::Result<_>>()?;
    let to_do = runs.clone().zip(&statuses).map(|(run, status)| {
        if run.skip.is_some() && *status != Status::Completed {
            "to skip".to_owned()
        } else {
            status.to_do()
        }
    });
    let to_do = to_do.collect();
    Ok((Some(to_do), other_builds(folder, runs.zip(&statuses))))
}

/// A run with its adjustments, if it will be resumed.
fn as_it_goes_on(run: &RunPlan, folder: &ExperimentFolder) -> RunPlan {
    let folder = folder.run(&run.id);
    if !folder.events_jsonl().exists() {
        return run.clone();
    }
    // Unreadable runs are reported with their status.
    let record = RunRecord::read_for(&folder, run).unwrap_or_default();
    run.adjusted(&record.attempts.adjustments)
}

/// What will happen to runs that are forecast not to fit, as far as known: compared with their limits, and on the host
/// with its memory.
fn remarks(expected: &[(RunPlan, Expected)]) -> Vec<String> {
    let there = Some(total_memory()).filter(|bytes| *bytes > 0);
    let mut remarks: Vec<(&str, usize, String)> = Vec::new();
    for (run, expected) in expected {
        let room = run.room(there.filter(|_| run.device.backend.is_host()));
        let Some(room) = room.filter(|room| expected.bytes > room.bytes) else {
            continue;
        };
        let is_certain = expected.at_least().is_some_and(|least| least > room.bytes);
        let becomes = match (run.relief(), is_certain) {
            (Some(_), _) => "will be changed according to `memory.on_exceed`",
            (None, true) => "will be refused",
            (None, false) if expected.basis == Basis::Counted => {
                "may not fit: its memory is counted, not measured"
            }
            (None, false) => "may just fit: it is tried, and ended if it exceeds that",
        };
        match remarks.iter_mut().find(|(known, _, _)| *known == becomes) {
            Some((_, num, _)) => *num += 1,
            None => {
                let held = show_bytes(expected.bytes);
                let first = format!(
                    "`{}` is forecast to need {held}, but {}",
                    run.id,
                    room.in_words()
                );
                remarks.push((becomes, 1, first));
            }
        }
    }
    let remarks = remarks.into_iter().map(|(becomes, num, first)| match num {
        1 => format!("note: {first}: it {becomes}"),
        _ => format!("note: {first}: it {becomes}, and so will {} more", num - 1),
    });
    remarks.collect()
}

/// The runs of a plan, one line each if there is room.
fn plan_table(plan: &Plan, expected: &[(RunPlan, Expected)], to_do: Option<Vec<String>>) -> String {
    let mut head = vec!["run".to_owned()];
    head.extend(plan.axes.iter().cloned());
    head.extend(["seed", "device", "parameters", "steps", "memory"].map(str::to_owned));
    head.extend(to_do.iter().map(|_| "to do".to_owned()));
    let mut to_do = to_do.into_iter().flatten();
    let mut any_calibrated = false;
    let row = |(run, expected): &(RunPlan, Expected)| {
        let mut row = vec![run.id.clone()];
        let value = |key: &String| run.axes.get(key).map_or(String::new(), value_text);
        row.extend(plan.axes.iter().map(value));
        let mark = if expected.is_measured() { "*" } else { "" };
        any_calibrated |= expected.is_measured();
        row.extend([
            run.seed.to_string(),
            format!(
                "{} {}",
                run.device,
                runner_core::spec::section::Choice::name(run.precision)
            ),
            run.network.num_parameters.to_string(),
            run.num_steps().to_string(),
            format!("{}{mark}", show_bytes(expected.bytes)),
        ]);
        row.extend(to_do.next());
        row
    };
    let rows = expected.iter().map(row).collect();
    // The name of a run contains the values of the axes and the seed.
    let named = plan.axes.iter().map(String::as_str).chain(["seed"]);
    let least: Vec<&str> = named
        .chain(["parameters", "steps", "device", "memory"])
        .collect();
    let fitted = fit(Columns { head, rows }, Output::table_width(), &least);
    if any_calibrated {
        format!("{}\n* as measured on this machine", fitted.text)
    } else {
        fitted.text
    }
}

/// `runner report`
pub fn report(folder: &Path, json: bool, template: Option<&Path>, output: &mut Output) -> u8 {
    let template = template.map(|path| Ok((path, template::read(path, output)?)));
    let template = match template.transpose() {
        Ok(template) => template,
        Err(code) => return code,
    };
    let experiments = ExperimentFolder::all(folder);
    if experiments.is_empty() {
        let message = format!(
            "`{}` is not the folder of an experiment, and contains none: there is no plan.json",
            folder.display()
        );
        let diagnostic = Diagnostic::error("results", message);
        return refuse(
            diagnostic.help("use a folder such as `results/mnist_sweep`, or a results folder; `runner list` shows the existing ones"),
            output,
        );
    }
    let is_one = experiments[0].0 == folder;
    let codes = experiments.iter().enumerate().map(|(at, experiment)| {
        if !is_one && !json {
            let space = if at > 0 { "\n" } else { "" };
            output.print(&format!("{space}{}", experiment.0.display()));
        }
        report_on(experiment, is_one, json, template.as_ref(), output)
    });
    codes.max().unwrap_or(OK)
}

/// Reports on one experiment.
fn report_on(
    experiment: &ExperimentFolder,
    is_one: bool,
    json: bool,
    template: Option<&(&Path, String)>,
    output: &mut Output,
) -> u8 {
    let folder = &experiment.0;
    let report = match reports::write(experiment) {
        Ok(Some(report)) => report,
        // It was removed just now.
        Ok(None) => return OK,
        Err(e) => {
            let message = format!(
                "cannot report on `{}`: {}",
                folder.display(),
                plain_io_error(&e)
            );
            let mut diagnostic = Diagnostic::error("results", message);
            diagnostic = diagnostic.help(match (is_other_format(&e), is_unwritable(&e)) {
                (true, _) => OTHER_FORMAT_REMEDY,
                (_, true) => "make it writable, or move away what is in its place",
                _ => PLAN_REMEDY,
            });
            return refuse(diagnostic, output);
        }
    };
    if let Some((path, text)) = template
        && let Err(code) = template::write(&report, experiment, path, text, output)
    {
        return code;
    }
    match json {
        true if is_one => {
            print_sealed(serde_json::to_string_pretty(&report), output);
        }
        true => print_sealed(serde_json::to_string(&report), output),
        false => {
            for notice in &report.notices {
                output.say(&format!("note: {notice}"));
            }
            output.print(&reports::table(&report, Output::width()));
            reports::footnotes(&report)
                .into_iter()
                .for_each(|note| output.say(&note));
            for problem in report.problems.iter().filter(|p| p.outcome.is_unreadable()) {
                output.say(&format!("skipped: {}: {}", problem.run, problem.message));
            }
        }
    }
    output.say(&format!(
        "{} of {} runs completed; {}",
        report.num_completed,
        report.num_runs,
        experiment.report("html").display()
    ));
    OK
}

/// Prints a report as in its file, so that saved ones can be compared.
fn print_sealed(text: serde_json::Result<String>, output: &mut Output) {
    let text = sealed_json(text.unwrap_or_default() + "\n");
    output.print(text.trim_end());
}

/// `runner schema`
pub fn schema(path: &Path, output: &mut Output) -> u8 {
    let schema = experiment_schema();
    if path == Path::new("-") {
        output.print(&schema);
        return OK;
    }
    match write_whole(path, schema.as_bytes()) {
        Ok(()) => {
            output.say(&format!("wrote {}", path.display()));
            OK
        }
        Err(e) => {
            let message = format!("cannot write `{}`: {}", path.display(), plain_io_error(&e));
            refuse(Diagnostic::error("results", message), output);
            if e.kind() == std::io::ErrorKind::NotFound {
                WRONG
            } else {
                FAILED
            }
        }
    }
}
