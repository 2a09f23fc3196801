//! `runner plan`: the runs of an experiment file.

use std::path::Path;

use super::check::say_prospect;
use super::experiment::plan as plan_experiment;
use super::output::Output;
use super::tell::Teller;
use super::{OK, SpecArgs, weights};
use crate::ops::{self, OutlookOptions};
use runner_core::diagnostic::counted;
use runner_core::plan::{Basis, Expected, Plan, RunPlan};
use runner_core::record::{ExperimentFolder, Index, Status, total_memory};
use runner_core::show::show_bytes;
use runner_report::console::Mode;
use runner_report::report::{Columns, fit, value_text};

/// `runner plan`
pub fn plan(args: &SpecArgs, json: bool, results: &Path, output: &mut Output) -> u8 {
    if json {
        let plan = match plan_experiment(args) {
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
    let remarks = remarks(&outlook.expected).into_iter();
    let remarks = remarks.chain(outlook.other_builds);
    remarks.for_each(|remark| output.say(&remark));
    for table in first_weights(plan) {
        output.say(&table);
    }
    output.say(&counted(plan.runs.len(), "run"));
    let folder = ExperimentFolder(results.join(&plan.experiment));
    // A folder that cannot be read was refused above.
    let index = Index::read(&folder).ok().flatten();
    say_prospect(plan, index.as_ref(), output);
    OK
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
