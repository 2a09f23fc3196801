//! `runner list`: the runs of a results folder.

use std::path::{Path, PathBuf};

use super::experiment::refuse;
use super::output::Output;
use super::{FAILED, ListArgs, OK};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::record::{
    ExperimentFolder, Index, PLAN_REMEDY, State, is_other_format, unix_millis,
};
use runner_core::spec::document::plain_io_error;
use runner_report::report::list::{Form, Query, list as answer};

/// Lists the runs of one experiment's folder, or of every experiment in a results folder.
pub fn list(args: &ListArgs, output: &mut Output) -> u8 {
    let experiments = ExperimentFolder::all(&args.folder);
    let without_plan = without_plan(&args.folder);
    if experiments.is_empty() && without_plan.is_empty() {
        return none_there(&args.folder, output);
    }
    let mut code = OK;
    for folder in without_plan {
        output.say(&format!(
            "skipped {}: it has runs and no plan.json",
            folder.display()
        ));
        output.say(&format!("  help: {PLAN_REMEDY}"));
        code = FAILED;
    }
    let mut indexes = Vec::new();
    for experiment in experiments {
        match Index::read(&experiment) {
            Ok(Some(index)) => {
                code = pass_over_runs(&experiment, &index, code, output);
                indexes.push(index);
            }
            Ok(None) => {}
            Err(e) => code = pass_over_experiment(&experiment.0, &e, code, output),
        }
    }
    let query = Query {
        filter: args.filter.clone(),
        sort: args.sort.clone(),
        is_reversed: args.reverse,
        columns: args.columns.clone(),
        group: args.group.clone(),
        limit: args.limit,
    };
    let form = match (args.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Table {
            width: Output::table_width(),
        },
    };
    match answer(&indexes, &query, form, unix_millis()) {
        Ok(listed) => {
            if !listed.text.is_empty() {
                output.print(&listed.text);
            }
            if let (true, Some(filter)) = (listed.text.is_empty(), &args.filter) {
                let num: usize = indexes.iter().map(|index| index.runs.len()).sum();
                output.say(&format!(
                    "no run matches `{filter}`, of {}",
                    counted(num, "run")
                ));
            }
            listed.notes.iter().for_each(|note| output.say(note));
            code
        }
        Err((message, help)) => {
            let refusal = Diagnostic::error("list", message);
            refuse(refusal.help(help), output)
        }
    }
}

/// Refuses a folder without experiments.
pub(super) fn none_there(folder: &Path, output: &mut Output) -> u8 {
    let message = format!("`{}` contains no experiments", folder.display());
    let diagnostic = Diagnostic::error("results", message);
    let help = "use a results folder, or create one with `runner run`";
    refuse(diagnostic.help(help), output)
}

/// The folders that have runs and no plan: the one that is given, or those in it, sorted.
fn without_plan(results: &Path) -> Vec<PathBuf> {
    let has_lost_it = |path: &PathBuf| {
        let folder = ExperimentFolder(path.clone());
        let run = folder.run("run").0;
        run.parent().is_some_and(Path::is_dir) && !folder.plan_json().exists()
    };
    let given = results.to_owned();
    if has_lost_it(&given) {
        return vec![given];
    }
    let entries = std::fs::read_dir(results).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    all.retain(has_lost_it);
    all.sort();
    all
}

/// Reports which runs of an experiment are skipped, and returns the exit code.
fn pass_over_runs(
    experiment: &ExperimentFolder,
    index: &Index,
    code: u8,
    output: &mut Output,
) -> u8 {
    let left_out = index.runs.iter().filter(|run| run.state.is_unreadable());
    let mut code = code;
    for run in left_out {
        let folder = experiment.run(&run.id).0;
        output.say(&format!("skipped {}: {}", folder.display(), run.message));
        if run.state == State::Unreadable {
            code = FAILED;
        }
    }
    code
}

/// Reports that an experiment is skipped, with a remedy, and returns the exit code: damage is a failure, another
/// version is not.
pub(super) fn pass_over_experiment(
    folder: &Path,
    error: &std::io::Error,
    code: u8,
    output: &mut Output,
) -> u8 {
    let code = pass_over(folder, error, code, output);
    if !is_other_format(error) {
        output.say(&format!("  help: {PLAN_REMEDY}"));
    }
    code
}

/// Reports that an experiment or a run is skipped, and returns the exit code: damage is a failure, another version is
/// not.
pub(super) fn pass_over(
    folder: &Path,
    error: &std::io::Error,
    code: u8,
    output: &mut Output,
) -> u8 {
    output.say(&format!(
        "skipped {}: {}",
        folder.display(),
        plain_io_error(error)
    ));
    if is_other_format(error) { code } else { FAILED }
}
