//! `runner plan`: the runs of an experiment file.

use std::path::Path;

use super::check::say_prospect;
use super::output::Output;
use super::tell::Teller;
use super::{OK, SpecArgs, weights};
use crate::ops::{self, Consequence, Excess, OutlookOptions};
use runner_core::diagnostic::{counted, grouped};
use runner_core::plan::{Expected, Plan, RunPlan};
use runner_core::record::Status;
use runner_core::show::show_bytes;
use runner_core::spec::section::Choice;
use runner_core::table::{Columns, fit};
use runner_report::console::Mode;
use runner_report::report::value_text;

/// `runner plan`
pub fn plan(args: &SpecArgs, json: bool, results: &Path, output: &mut Output) -> u8 {
    if json {
        let teller = Teller::new(Mode::Normal);
        let plan = match ops::plan(&args.experiment(), &|progress| teller.tell(progress)) {
            Ok(planned) => planned.plan,
            Err(error) => return output.fail(&error),
        };
        output.print(&serde_json::to_string_pretty(&plan).unwrap_or_default());
        output.say(&counted(plan.runs.len(), "run"));
        return OK;
    }
    let options = OutlookOptions {
        experiment: args.experiment(),
        results: results.to_owned(),
    };
    let teller = Teller::new(Mode::Normal);
    let outlook = match ops::outlook(&options, &|progress| teller.tell(progress)) {
        Ok(outlook) => outlook,
        Err(error) => return output.fail(&error),
    };
    drop(teller);
    let plan = &outlook.planned.plan;
    let to_do = outlook.statuses.map(|statuses| to_do(plan, &statuses));
    output.print(&plan_table(plan, &outlook.expected, to_do));
    let excesses = outlook.excesses.iter().map(remark);
    let remarks = excesses.chain(outlook.other_builds);
    remarks.for_each(|remark| output.say(&remark));
    for table in first_weights(plan) {
        output.say(&table);
    }
    output.say(&counted(plan.runs.len(), "run"));
    say_search(plan, output);
    say_prospect(outlook.prospect.as_ref(), output);
    OK
}

/// Which trials of a search are known.
pub(super) fn say_search(plan: &Plan, output: &mut Output) {
    let Some(search) = &plan.search else {
        return;
    };
    let num = search.suggestions.len();
    let more = match search.num_trials {
        Some(most) if most <= num => return,
        Some(most) => format!("the first {num} of {most} trials"),
        None => format!("the first {}", counted(num, "trial")),
    };
    let method = search.method.name();
    output.say(&format!(
        "search `{method}`: these are {more}; the others are suggested while these are trained"
    ));
}

/// What the runs of a plan take from files of weights, and their teachers, each once.
fn first_weights(plan: &Plan) -> Vec<String> {
    let mut tables: Vec<String> = Vec::new();
    for init in plan.runs.iter().filter_map(|run| run.init.as_ref()) {
        let table = weights::table(init, false);
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    for teacher in plan.runs.iter().filter_map(|run| run.teacher.as_ref()) {
        let text = format!(
            "teacher from {}: {} parameters",
            teacher.weights.path.display(),
            grouped(teacher.network.num_parameters)
        );
        if !tables.contains(&text) {
            tables.push(text);
        }
    }
    tables
}

/// The remaining work of each run, in words.
fn to_do(plan: &Plan, statuses: &[Status]) -> Vec<String> {
    let runs = plan.runs.iter().zip(statuses);
    let words = runs.map(|(run, status)| {
        if run.skip.is_some() && *status != Status::Completed {
            "to skip".to_owned()
        } else {
            status.to_do()
        }
    });
    words.collect()
}

/// What will happen to runs that are forecast not to fit.
fn remark(excess: &Excess) -> String {
    let first = format!(
        "note: `{}` is forecast to need {}, but {}",
        excess.run,
        show_bytes(excess.bytes),
        excess.room.in_words()
    );
    let becomes = match excess.consequence {
        Consequence::Adjusted => "will be changed according to `memory.on_exceed`",
        Consequence::Refused => "will be refused",
        Consequence::Uncertain => "may not fit: its memory is counted, not measured",
        Consequence::Tried => "may just fit: it is trained, and ended if it exceeds that",
    };
    match excess.num_runs {
        1 => format!("{first}: it {becomes}"),
        num => format!("{first}: it {becomes}, and so will {} more", num - 1),
    }
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
            format!("{} {}", run.device, run.precision.name()),
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
