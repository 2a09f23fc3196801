//! One of two runs that are compared.

use crate::event::Outcome;
use crate::plan::RunPlan;
use crate::record::{Environment, RunFolder, RunRecord, Trace};
use crate::spec::document::plain_io_error;

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
        Self {
            plan: plan.and_then(|plan| plan.ok_or_else(|| absent("run.toml"))),
            record: RunRecord::read(&folder).map_err(|e| plain_io_error(&e)),
            environment: environment.and_then(|there| {
                there.ok_or_else(|| absent("environment.json: it has not begun"))
            }),
            trace: Trace::read(&folder).map_err(|e| plain_io_error(&e)),
            folder,
            name,
        }
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
