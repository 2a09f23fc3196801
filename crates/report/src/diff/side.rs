//! One of two runs that are compared.

use runner_core::event::Outcome;
use runner_core::plan::RunPlan;
use runner_core::record::{Environment, RunFolder, RunRecord, Trace};
use runner_core::spec::document::plain_io_error;

/// A run as far as it can be read. An error is a phrase, and keeps the rest from nobody.
#[derive(Clone, Debug)]
pub struct Side {
    /// What it is called in messages.
    pub name: String,
    /// Its folder.
    pub folder: RunFolder,
    /// What was to be done.
    pub plan: Result<RunPlan, String>,
    /// What happened.
    pub record: Result<RunRecord, String>,
    /// Where.
    pub environment: Result<Environment, String>,
    /// Step by step.
    pub trace: Result<Trace, String>,
}

impl Side {
    /// Reads a run's folder.
    pub fn read(name: String, folder: RunFolder) -> Self {
        let absent = |file: &str| format!("{name} has no {file}");
        let plan = folder.read_plan().map_err(|e| plain_io_error(&e));
        let environment = folder.read_environment().map_err(|e| plain_io_error(&e));
        let record = match &plan {
            Ok(Some(plan)) => RunRecord::read_for(&folder, plan),
            _ => RunRecord::read(&folder),
        };
        let record = record.map_err(|e| plain_io_error(&e));
        // A trace that its record does not confirm is not compared.
        let trace = match &record {
            Ok(record) => Trace::read_recorded(&folder, record),
            Err(_) => Trace::read(&folder),
        };
        Self {
            plan: plan.and_then(|plan| plan.ok_or_else(|| absent("run.toml"))),
            record,
            environment: environment.and_then(|there| {
                there.ok_or_else(|| absent("environment.json: it has not begun"))
            }),
            trace: trace.map_err(|e| plain_io_error(&e)),
            folder,
            name,
        }
    }

    /// Refuses final weights that are not those that the run ended with.
    pub fn check_weights(&self) -> Result<(), String> {
        let record = self.record.as_ref().map_err(String::clone)?;
        let checked = self.folder.check_file(record, "model/final.bpk");
        checked.map_err(|e| plain_io_error(&e))
    }

    /// The word for how it ended, or how far it is.
    pub fn outcome(&self) -> &'static str {
        let Ok(record) = &self.record else {
            return "unreadable";
        };
        match (&record.outcome, &record.started) {
            (Some(outcome), _) => Outcome::word(outcome),
            (None, Some(_)) => "incomplete",
            (None, None) => "not started",
        }
    }
}
