//! Experiments: checked, planned and trained.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use burn_runner::Error;
use burn_runner::diagnostic::{Diagnostics, Sources};
use burn_runner::dispatch::{Cancel, Reason, Urgency};
use burn_runner::ops::{self, Experiment, Program, Progress, Retry, Run, RunOutcome, Stopped};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

use crate::border::{self, Failure, caught, compute, exception, wrong};

const CANCEL: &std::ffi::CStr = c"burn_runner.cancel";

/// How often Python's signals are looked at while runs are trained.
const TICK: Duration = Duration::from_millis(50);

/// `version() -> str`
pub fn version(py: Python<'_>, _: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    Ok(border::text(py, env!("CARGO_PKG_VERSION")))
}

/// `use_program(path)`: the build that records name.
pub fn use_program(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (path,): (String,) = args.extract()?;
    burn_runner::record::use_program(path.as_ref());
    Ok(py.None())
}

/// `toml(json) -> str`: a table.
pub fn toml(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (text,): (String,) = args.extract()?;
    let written = compute(py, || {
        let table: toml::Table = parse(&text)?;
        toml::to_string(&table).map_err(|e| wrong(e.to_string(), "use TOML's types of values"))
    })?;
    Ok(border::text(py, &written))
}

/// `toml_value(json) -> str`: a value on one line.
pub fn toml_value(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (text,): (String,) = args.extract()?;
    let written = compute(py, || Ok(parse::<toml::Value>(&text)?.to_string()))?;
    Ok(border::text(py, &written))
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let help = "TOML has texts, numbers, booleans, lists and tables";
    serde_json::from_str(text)
        .map_err(|e| wrong(format!("it cannot be written as TOML: {e}"), help))
}

/// From `(path, text or None, edits, program or None)`.
fn experiment_of(args: &Bound<'_, PyTuple>) -> PyResult<Experiment> {
    type Given = (String, Option<String>, Vec<String>, Option<String>);
    let (path, text, set, program): Given = args.extract()?;
    Ok(Experiment {
        path: path.into(),
        text,
        set,
        program: Program {
            path: border::path(program),
            arguments: Vec::new(),
        },
    })
}

/// `check(path, text, edits, program) -> json`: all diagnostics.
pub fn check(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let experiment = experiment_of(args)?;
    let found = compute(py, || match ops::plan(&experiment, &ops::quiet) {
        Ok(planned) => Ok(planned.warnings.to_json(&planned.document.sources)),
        Err(Error::Experiment {
            sources,
            diagnostics,
        }) => Ok(diagnostics.to_json(&sources)),
        Err(other) => Err(other.into()),
    })?;
    Ok(border::text(py, &found.to_string()))
}

/// `plan(path, text, edits, program) -> json`: the plan, with warnings.
pub fn plan(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let experiment = experiment_of(args)?;
    let planned = compute(py, || {
        let planned = ops::plan(&experiment, &ops::quiet)?;
        Ok(json!({
            "plan": planned.plan,
            "steps": planned.plan.runs.iter().map(|run| run.num_steps()).collect::<Vec<_>>(),
            "warnings": planned.warnings.to_json(&planned.document.sources),
        }))
    })?;
    Ok(border::text(py, &planned.to_string()))
}

/// `cancel() -> capsule`, which `run` takes.
pub fn cancel(py: Python<'_>, _: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    border::keep(py, Cancel::default(), CANCEL)
}

/// `cancel_now(capsule, at_once)`: runs save a checkpoint and stop, or are killed.
pub fn cancel_now(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (capsule, at_once): (Bound<'_, PyAny>, bool) = args.extract()?;
    let cancel: Cancel = border::kept(&capsule, CANCEL)?;
    py.detach(|| stop(&cancel, at_once));
    Ok(py.None())
}

fn stop(cancel: &Cancel, at_once: bool) {
    let urgency = if at_once {
        Urgency::AtOnce
    } else {
        Urgency::Graceful
    };
    cancel.cancel(urgency, Reason::User);
}

/// The options of `run`, without the experiment.
#[derive(Deserialize)]
struct Asked {
    results: String,
    jobs: Option<usize>,
    only: Vec<String>,
    retry: Vec<String>,
    until_decided: bool,
    wait: bool,
}

/// `run((path, text, edits, program), options as json, cancel, on_event) -> json`: trains, and calls `on_event` with
/// JSON in the calling thread, where signals are handled too.
pub fn run(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (experiment, options, cancel, on_event): (
        Bound<'_, PyTuple>,
        String,
        Bound<'_, PyAny>,
        Bound<'_, PyAny>,
    ) = args.extract()?;
    let cancel: Cancel = border::kept(&cancel, CANCEL)?;
    let asked: Asked = compute(py, || parse(&options))?;
    let retry = asked.retry.iter().map(|name| {
        let message = format!("`{name}` is neither `failed` nor a class of failures");
        let help = "use `failed`, or a class such as `out_of_memory`";
        name.parse::<Retry>().map_err(|_| wrong(message, help))
    });
    let retry = retry.collect::<Result<Vec<_>, _>>();
    let options = Run {
        results: asked.results.into(),
        jobs: asked.jobs,
        only: asked.only,
        retry: retry.map_err(|failure| exception(py, failure))?,
        until_decided: asked.until_decided,
        wait: asked.wait,
        cancel: cancel.clone(),
        ..Run::new(experiment_of(&experiment)?)
    };
    let (sender, receiver) = mpsc::channel::<Json>();
    let receiver = Mutex::new(receiver);
    let receive = || {
        let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.recv_timeout(TICK)
    };
    let worker = std::thread::Builder::new().name("burn_runner.run".into());
    let worker = worker.spawn(move || {
        let sender = sender;
        // Not the pool of other computations, which are not to wait for a thread of this one.
        let pool = border::pool()?;
        let run = || Ok(outcome_json(&ops::run(&options, &|it| send(&sender, it))?));
        caught(|| pool.install(run))
    })?;
    let mut raised: Option<PyErr> = None;
    let mut num_interrupts = 0;
    loop {
        let received = py.detach(receive);
        let called = match &received {
            Ok(event) if raised.is_none() => on_event.call1((event.to_string(),)).map(drop),
            Err(RecvTimeoutError::Disconnected) => break,
            _ => Ok(()),
        };
        // A signal may arrive while Python computes, or while this thread waits.
        let Err(error) = called.and_then(|()| py.check_signals()) else {
            continue;
        };
        let is_interrupt = error.is_instance_of::<PyKeyboardInterrupt>(py);
        num_interrupts += usize::from(is_interrupt);
        if num_interrupts > 1 || !is_interrupt {
            raised = Some(error);
        }
        py.detach(|| stop(&cancel, num_interrupts > 1));
    }
    let ended = py.detach(|| worker.join());
    if let Some(error) = raised {
        return Err(error);
    }
    let ended = ended.unwrap_or_else(|_| Err(Failure::Panic("the thread of the runs".into())));
    let outcome = ended.map_err(|failure| exception(py, failure))?;
    Ok(border::text(py, &outcome.to_string()))
}

/// Sends what Python may want to know. Nobody receives it if Python has raised an exception, which is no matter.
fn send(sender: &Sender<Json>, progress: Progress<'_>) {
    let said = |kind: &str, text: &str| json!({ "event": kind, "text": text });
    let event = match progress {
        Progress::Step(text) => said("step", text),
        Progress::Note(text) => said("note", text),
        Progress::Waiting(text) => said("waiting", text),
        Progress::Warnings(sources, found) => {
            json!({ "event": "warnings", "diagnostics": found.to_json(sources) })
        }
        Progress::Warning(one) => {
            let found = Diagnostics(vec![one.clone()]).to_json(&Sources::default());
            json!({ "event": "warnings", "diagnostics": found })
        }
        Progress::Prepared(prepared) => json!({
            "event": "prepared",
            "folder": prepared.folder.0,
            "num_planned": prepared.num_planned,
            "num_to_do": prepared.num_to_do,
            "num_completed": prepared.num_completed,
        }),
        Progress::Training(training) => {
            let runs = training.runs.iter().zip(training.steps);
            let runs = runs.map(
                |(run, step)| json!({ "run": run.id, "num_steps": run.num_steps(), "step": step }),
            );
            json!({
                "event": "training",
                "experiment": training.experiment,
                "jobs": training.jobs,
                "runs": runs.collect::<Vec<_>>(),
            })
        }
        Progress::Event { plan, event, .. } => {
            let mut all = Map::new();
            all.insert("run".into(), json!(plan.id));
            if let Ok(Json::Object(event)) = serde_json::to_value(event) {
                all.extend(event);
            }
            Json::Object(all)
        }
        _ => return,
    };
    let _ = sender.send(event);
}

fn outcome_json(outcome: &RunOutcome) -> Json {
    let stopped = outcome.stopped.as_ref().map(|stopped| match stopped {
        Stopped::WhileMeasuring | Stopped::User => "user",
        Stopped::TimeLimit(_) => "time limit",
        Stopped::Failure { .. } => "failure",
        Stopped::NotRecorded => "not recorded",
        Stopped::Submitted(_) => "submitted",
    });
    let failure = outcome.failure.as_ref().map(|error| error.render(false));
    json!({
        "folder": outcome.folder.0,
        "exit_code": outcome.exit_code(),
        "num_left": outcome.num_left(),
        "selected": outcome.selected,
        "stopped": stopped,
        "failure": failure,
        "report": outcome.report,
    })
}
