//! `runner list`: the runs of a results folder.

use std::path::Path;

use comfy_table::{ContentArrangement, Table, presets};

use super::experiment::refuse;
use super::output::Output;
use super::{FAILED, OK};
use crate::diagnostic::Diagnostic;
use crate::record::{ExperimentFolder, RunRecord, is_other_format};
use crate::report::short_number;
use crate::spec::document::plain_io_error;

/// Lists the runs of one experiment's folder, or of every experiment in a results folder.
pub fn list(folder: &Path, json: bool, output: &mut Output) -> u8 {
    let experiments = ExperimentFolder::all(folder);
    if experiments.is_empty() {
        return none_there(folder, output);
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(Output::width());
    table.set_header([
        "experiment",
        "run",
        "outcome",
        "objective",
        "epochs",
        "seconds",
    ]);
    let mut code = OK;
    for experiment in experiments {
        let runs = match experiment.read_plan() {
            Ok(Some(plan)) => plan.runs,
            Ok(None) => continue,
            Err(e) => {
                code = pass_over(&experiment.0, &e, code, output);
                continue;
            }
        };
        for run in runs {
            let folder = experiment.run(&run.id);
            let record = match RunRecord::read_for(&folder, &run) {
                Ok(record) => record,
                Err(e) => {
                    code = pass_over(&folder.0, &e, code, output);
                    continue;
                }
            };
            let outcome = match (&record.outcome, &record.started) {
                (Some(outcome), _) => outcome.word(),
                (None, Some(_)) => "incomplete",
                (None, None) => "not started",
            };
            let name = run.objective.name();
            let value = record
                .best_epoch(&run)
                .and_then(|epoch| epoch.metrics.get(&name).copied());
            if json {
                let line = serde_json::json!({
                    "experiment": run.experiment,
                    "run": run.id,
                    "outcome": outcome,
                    "objective": name,
                    "value": value,
                    "epochs": record.epochs.len(),
                    "wall_secs": record.wall_secs,
                });
                output.print(&line.to_string());
                continue;
            }
            table.add_row([
                run.experiment.clone(),
                run.id.clone(),
                outcome.to_owned(),
                value.map_or("-".into(), |value| {
                    format!("{name} {}", short_number(value))
                }),
                format!("{}/{}", record.epochs.len(), run.train.epochs),
                format!("{:.1}", record.wall_secs),
            ]);
        }
    }
    if !json && !table.is_empty() {
        output.print(&table.trim_fmt());
    }
    code
}

/// Refuses a folder without experiments.
pub(super) fn none_there(folder: &Path, output: &mut Output) -> u8 {
    let message = format!("there are no experiments in `{}`", folder.display());
    let diagnostic = Diagnostic::error("results", message);
    let help = "give a results folder, or make one with `runner run`";
    refuse(diagnostic.help(help), output)
}

/// Says that an experiment or a run is left out, and returns the exit code: what is damaged is a failure,
/// what another version wrote is none.
pub(super) fn pass_over(
    folder: &Path,
    error: &std::io::Error,
    code: u8,
    output: &mut Output,
) -> u8 {
    output.say(&format!(
        "passed over {}: {}",
        folder.display(),
        plain_io_error(error)
    ));
    if is_other_format(error) { code } else { FAILED }
}
