//! Records in the formats of other programs: TensorBoard's event files, an MLflow server, plain tables.
//!
//! Only knows the results tree; no device, no environment variable, and nothing about training.

pub mod mlflow;
mod points;
mod proto;
pub mod table;
pub mod tensorboard;

use std::io;

use runner_core::plan::RunPlan;
use runner_core::record::{ExperimentFolder, RunFolder, RunRecord, Times, Trace};

pub use points::{Point, points};

/// A run as it is on disk.
#[derive(Clone, Debug)]
pub struct Exported {
    /// Its plan.
    pub plan: RunPlan,
    /// Its folder.
    pub folder: RunFolder,
    /// What happened.
    pub record: RunRecord,
    /// When.
    pub times: Times,
    /// The loss of each step, if requested.
    pub losses: Vec<f64>,
}

impl Exported {
    /// Reads a run of an experiment, with the losses of its steps on request; one that has not started, or whose folder
    /// contains other work, has an empty record.
    pub fn read(
        experiment: &ExperimentFolder,
        plan: RunPlan,
        with_losses: bool,
    ) -> io::Result<Self> {
        Self::read_in(experiment.run(&plan.id), plan, with_losses)
    }

    /// The same of a run in any folder.
    pub fn read_in(folder: RunFolder, plan: RunPlan, with_losses: bool) -> io::Result<Self> {
        let (mut record, mut times) = (RunRecord::default(), Times::default());
        let mut losses = Vec::new();
        let there = folder.read_plan()?;
        if there.is_some_and(|there| there.fingerprint == plan.fingerprint) {
            record = RunRecord::read_for(&folder, &plan)?;
            for (time_ms, event) in folder.read_events()? {
                times.apply(time_ms, &event);
            }
            if with_losses {
                losses = Trace::read_recorded(&folder, &record)?.losses;
            }
        }
        Ok(Self {
            plan,
            folder,
            record,
            times,
            losses,
        })
    }

    /// The word for the run's outcome or state.
    pub fn outcome(&self) -> &'static str {
        match (&self.record.outcome, &self.record.started) {
            (Some(outcome), _) => outcome.word(),
            (None, Some(_)) => "incomplete",
            (None, None) => "not started",
        }
    }
}
