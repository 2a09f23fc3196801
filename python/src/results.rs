//! Results: lists, reports, comparisons and tables of runs.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use burn_runner::export::Exported;
use burn_runner::ops::{self, Compare, List, Progress};
use burn_runner::record::{ExperimentFolder, RunFolder, RunRecord, Trace, remedy};
use burn_runner::report::compare::Question;
use burn_runner::report::list::{Form, Query};
use burn_runner::report::{self, in_words};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::border::{self, Failure, compute, wrong};
use crate::tables::{Table, keep};

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot read `{}`: {error}", path.display());
    wrong(message, remedy(error))
}

fn no_run(path: &Path) -> Failure {
    let message = format!("`{}` is not the folder of a run", path.display());
    wrong(message, "use a folder such as `results/iris/runs/base-s1`")
}

#[derive(Deserialize)]
struct Asked {
    filter: Option<String>,
    sort: Option<String>,
    columns: Vec<String>,
    group: Option<String>,
    limit: Option<usize>,
    all: bool,
}

/// `runs(folder, query as json) -> (rows as JSON lines, notes)`
pub fn runs(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (folder, query): (String, String) = args.extract()?;
    let (text, notes) = compute(py, || {
        let asked: Asked = serde_json::from_str(&query).map_err(|e| {
            wrong(
                format!("the query is invalid: {e}"),
                "see `help(Results.runs)`",
            )
        })?;
        let notes = Mutex::new(Vec::new());
        let options = List {
            folder: folder.into(),
            query: Query {
                filter: asked.filter,
                sort: asked.sort,
                columns: asked.columns,
                group: asked.group,
                limit: asked.limit,
                ..Query::default()
            },
            all: asked.all,
            form: Form::Json,
        };
        let listing = ops::list(&options, &|progress| {
            if let (Progress::Step(text), Ok(mut notes)) = (progress, notes.lock()) {
                notes.push(text.to_owned());
            }
        })?;
        let mut notes = notes.into_inner().unwrap_or_default();
        notes.extend(listing.listed.notes);
        Ok((listing.listed.text, notes))
    })?;
    Ok((text, notes).into_pyobject(py)?.into_any().unbind())
}

/// `experiments(folder) -> list of folders`
pub fn experiments(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (folder,): (String,) = args.extract()?;
    let all = compute(py, || {
        let all = ExperimentFolder::all(folder.as_ref()).into_iter();
        Ok(all
            .map(|experiment| experiment.0.display().to_string())
            .collect::<Vec<_>>())
    })?;
    Ok(all.into_pyobject(py)?.into_any().unbind())
}

/// `report(folder) -> json`: the report with each verdict in words, its Markdown, and its page.
pub fn report(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (folder,): (String,) = args.extract()?;
    let report = compute(py, || {
        let folder = ExperimentFolder(folder.into());
        let report = report::read(&folder).map_err(|e| unreadable(&folder.0, &e))?;
        let report = report.ok_or_else(|| {
            let message = format!("`{}` contains no experiment", folder.0.display());
            wrong(
                message,
                "use the folder of an experiment, such as `results/iris`",
            )
        })?;
        let verdicts = report.trials.iter().map(|trial| trial.verdict.as_ref());
        let page = report::html(&report, None).unwrap_or_default();
        Ok(json!({
            "report": report,
            "verdicts": verdicts.map(|verdict| verdict.map(in_words)).collect::<Vec<_>>(),
            "markdown": report::markdown(&report),
            "html": page,
        }))
    })?;
    Ok(border::text(py, &report.to_string()))
}

/// `compare(sources, value, baseline, alpha, pareto) -> json`
pub fn compare(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    type Given = (
        Vec<String>,
        Option<String>,
        Option<String>,
        f64,
        Option<(String, String)>,
    );
    let (what, value, baseline, alpha, pareto): Given = args.extract()?;
    let compared = compute(py, || {
        if !(alpha > 0.0 && alpha < 1.0) {
            let help = "it is a probability between 0 and 1, such as 0.05";
            return Err(wrong(format!("`alpha` is {alpha}"), help));
        }
        let notes = Mutex::new(Vec::new());
        let question = Question {
            value,
            baseline,
            alpha,
            pivot: None,
            pareto,
        };
        let comparison = ops::compare(&Compare { what, question }, &|progress| {
            if let (Progress::Step(text), Ok(mut notes)) = (progress, notes.lock()) {
                notes.push(text.to_owned());
            }
        })?;
        let trials = comparison.trials.iter();
        let verdicts = trials.map(|trial| trial.verdict.as_ref().map(in_words));
        Ok(json!({
            "comparison": comparison,
            "verdicts": verdicts.collect::<Vec<_>>(),
            "notes": notes.into_inner().unwrap_or_default(),
            "text": report::compare::plain(&comparison, 100),
        }))
    })?;
    Ok(border::text(py, &compared.to_string()))
}

/// `run_plan(folder) -> json`
pub fn run_plan(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (folder,): (String,) = args.extract()?;
    let plan = compute(py, || {
        let folder = RunFolder(folder.into());
        let plan = folder
            .read_planned()
            .map_err(|e| unreadable(&folder.0, &e))?;
        let plan = plan.ok_or_else(|| no_run(&folder.0))?;
        let record = RunRecord::read_for(&folder, &plan).map_err(|e| unreadable(&folder.0, &e))?;
        Ok(json!({ "plan": plan, "summary": record.summary(&plan) }))
    })?;
    Ok(border::text(py, &plan.to_string()))
}

/// `losses(folder) -> float64 block`: the loss of each step of a run.
pub fn losses(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (folder,): (String,) = args.extract()?;
    let losses = compute(py, || {
        let folder = RunFolder(folder.into());
        let plan = folder.read_plan().map_err(|e| unreadable(&folder.0, &e))?;
        let plan = plan.ok_or_else(|| no_run(&folder.0))?;
        let record = RunRecord::read_for(&folder, &plan).map_err(|e| unreadable(&folder.0, &e))?;
        let trace = Trace::read_recorded(&folder, &record);
        Ok(trace.map_err(|e| unreadable(&folder.0, &e))?.losses)
    })?;
    Ok(border::numbers(py, &losses))
}

/// `table(folder, "epochs" or "steps", [(experiment, run)]) -> table`: rows of the named runs.
pub fn table(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (folder, rows, wanted): (String, String, Vec<(String, String)>) = args.extract()?;
    let table = compute(py, || {
        let wanted: BTreeSet<(String, String)> = wanted.into_iter().collect();
        let with_losses = rows == "steps";
        let mut runs = Vec::new();
        for experiment in ExperimentFolder::all(folder.as_ref()) {
            let read = |e: io::Error| unreadable(&experiment.0, &e);
            let Some(plan) = experiment.read_plan().map_err(read)? else {
                continue;
            };
            for run in plan.runs {
                if wanted.contains(&(run.experiment.clone(), run.id.clone())) {
                    let exported = Exported::read(&experiment, run, with_losses);
                    runs.push(exported.map_err(read)?);
                }
            }
        }
        Ok(of_rows(&runs, with_losses))
    })?;
    keep(py, table)
}

/// `run_table(folder, "epochs" or "steps") -> table`: rows of the run in a folder.
pub fn run_table(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (folder, rows): (String, String) = args.extract()?;
    let table = compute(py, || {
        let folder = RunFolder(folder.into());
        let read = |e: io::Error| unreadable(&folder.0, &e);
        let plan = folder.read_planned().map_err(read)?;
        let plan = plan.ok_or_else(|| no_run(&folder.0))?;
        let with_losses = rows == "steps";
        let run = Exported::read_in(folder.clone(), plan, with_losses).map_err(read)?;
        Ok(of_rows(&[run], with_losses))
    })?;
    keep(py, table)
}

fn of_rows(runs: &[Exported], are_steps: bool) -> Table {
    if are_steps {
        of_steps(runs)
    } else {
        of_epochs(runs)
    }
}

/// What every row says about its run.
fn about(runs: &[Exported]) -> Vec<(String, Vec<Json>)> {
    let each = |value: fn(&Exported) -> Json| runs.iter().map(value).collect::<Vec<Json>>();
    let mut columns = vec![
        (
            "experiment".to_owned(),
            each(|run| json!(run.plan.experiment)),
        ),
        ("trial".to_owned(), each(|run| json!(run.plan.trial))),
        ("run".to_owned(), each(|run| json!(run.plan.id))),
        ("seed".to_owned(), each(|run| json!(run.plan.seed))),
    ];
    let mut axes: Vec<&String> = Vec::new();
    for axis in runs.iter().flat_map(|run| run.plan.axes.keys()) {
        if !axes.contains(&axis) {
            axes.push(axis);
        }
    }
    for axis in axes {
        let value = |run: &Exported| run.plan.axes.get(axis).cloned().unwrap_or(Json::Null);
        columns.push((axis.clone(), runs.iter().map(value).collect()));
    }
    columns
}

fn of_steps(runs: &[Exported]) -> Table {
    let nums: Vec<usize> = runs.iter().map(|run| run.losses.len()).collect();
    let mut table = Table::repeating(about(runs), &nums);
    let steps = nums.iter().flat_map(|num| 1..=*num as i64);
    table.push_whole("step", steps.collect());
    table.push_numbers(
        "loss",
        runs.iter().flat_map(|run| run.losses.iter().copied()),
    );
    table
}

fn of_epochs(runs: &[Exported]) -> Table {
    let nums: Vec<usize> = runs.iter().map(|run| run.record.epochs.len()).collect();
    let mut table = Table::repeating(about(runs), &nums);
    let epochs = || runs.iter().flat_map(|run| &run.record.epochs);
    table.push_whole("epoch", epochs().map(|epoch| epoch.epoch as i64).collect());
    table.push_whole("step", epochs().map(|epoch| epoch.step as i64).collect());
    table.push_numbers("train_secs", epochs().map(|epoch| epoch.train_secs));
    table.push_numbers("valid_secs", epochs().map(|epoch| epoch.valid_secs));
    let names: BTreeSet<&String> = epochs().flat_map(|epoch| epoch.metrics.keys()).collect();
    for name in names {
        let value = |metrics: &std::collections::BTreeMap<String, f64>| metrics.get(name).copied();
        table.push_some(name, epochs().map(|epoch| value(&epoch.metrics)).collect());
    }
    table
}
