//! `runner list`: the runs of a results folder.

use std::fs;
use std::path::Path;

use comfy_table::{ContentArrangement, Table, presets};

use super::experiment::refuse;
use super::output::Output;
use super::{FAILED, OK};
use crate::diagnostic::Diagnostic;
use crate::record::{ExperimentFolder, RunRecord};
use crate::report::short_number;
use crate::spec::document::plain_io_error;

/// Lists the runs of one experiment's folder, or of every experiment in a results folder.
pub fn list(folder: &Path, json: bool, output: &mut Output) -> u8 {
    let mut experiments = vec![ExperimentFolder(folder.to_owned())];
    if !experiments[0].plan_json().exists() {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        experiments = entries
            .map(|entry| ExperimentFolder(entry.path()))
            .collect();
        experiments.retain(|experiment| experiment.plan_json().exists());
        experiments.sort_by(|a, b| a.0.cmp(&b.0));
    }
    if experiments.is_empty() {
        let message = format!("there are no experiments in `{}`", folder.display());
        let diagnostic = Diagnostic::error("results", message);
        return refuse(
            diagnostic.help("give a results folder, or make one with `runner run`"),
            output,
        );
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
                code = disk(&experiment.plan_json(), &e, output);
                continue;
            }
        };
        for run in runs {
            let folder = experiment.run(&run.id);
            let record = match RunRecord::read(&folder) {
                Ok(record) => record,
                Err(e) => {
                    code = disk(&folder.events_jsonl(), &e, output);
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

/// Says that a file cannot be read.
fn disk(path: &Path, error: &std::io::Error, output: &mut Output) -> u8 {
    let message = format!(
        "cannot read `{}`: {}",
        path.display(),
        plain_io_error(error)
    );
    let help = "`runner run` on the experiment again rewrites what is derived";
    refuse(Diagnostic::error("results", message).help(help), output);
    FAILED
}
