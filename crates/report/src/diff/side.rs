//! One of two runs that are compared.

use std::io;

use runner_core::diagnostic::Reason;
use runner_core::event::Outcome;
use runner_core::plan::RunPlan;
use runner_core::record::{Environment, RunFolder, RunRecord, Trace};
use runner_core::show::plain_io_error;

/// A run as far as it is readable. An error is a phrase, and does not prevent reading the rest.
#[derive(Clone, Debug)]
pub struct Side {
    /// Its name in messages.
    pub name: String,
    /// Its folder.
    pub folder: RunFolder,
    /// Its plan.
    pub plan: Result<RunPlan, Reason>,
    /// What happened.
    pub record: Result<RunRecord, Reason>,
    /// Where.
    pub environment: Result<Environment, Reason>,
    /// Step by step.
    pub trace: Result<Trace, Reason>,
}

impl Side {
    /// Reads a run's folder.
    pub fn read(name: String, folder: RunFolder) -> Self {
        let absent = |file: &str| Reason(format!("{name} has no {file}"));
        let plan = folder.read_planned().map_err(unreadable);
        let environment = folder.read_environment().map_err(unreadable);
        let record = match &plan {
            Ok(Some(plan)) => RunRecord::read_for(&folder, plan),
            _ => RunRecord::read(&folder),
        };
        let record = record.map_err(unreadable);
        // A trace that does not match its record is not compared.
        let trace = match &record {
            Ok(record) => Trace::read_recorded(&folder, record),
            Err(_) => Trace::read(&folder),
        };
        Self {
            plan: plan.and_then(|plan| plan.ok_or_else(|| absent("run.toml"))),
            record,
            environment: environment.and_then(|there| {
                there.ok_or_else(|| absent("environment.json: the run has not started"))
            }),
            trace: trace.map_err(unreadable),
            folder,
            name,
        }
    }

    /// Refuses final weights that do not match the record.
    pub fn check_weights(&self) -> Result<(), Reason> {
        let record = self.record.as_ref().map_err(Reason::clone)?;
        let checked = self.folder.check_file(record, "model/final.bpk");
        checked.map_err(unreadable)
    }

    /// The word for its outcome or state.
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

fn unreadable(error: io::Error) -> Reason {
    Reason(plain_io_error(&error))
}
