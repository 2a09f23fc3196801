//! The one place that writes what happens: takes events in, keeps the records up to date on disk.

use std::io;

use super::{Environment, RunFolder, RunRecord, unwritable, write_json};
use crate::event::Event;
use crate::plan::RunPlan;

/// A run that is being recorded.
pub struct Recorded {
    /// The run.
    pub plan: RunPlan,
    /// Its folder.
    pub folder: RunFolder,
    /// What happened so far.
    pub record: RunRecord,
}

/// The runs that are being recorded.
pub struct Collector {
    /// In the order in which they were dispatched.
    pub runs: Vec<Recorded>,
    environment: Environment,
}

impl Collector {
    /// Records runs, each from what its folder already holds.
    pub fn new(runs: Vec<(RunPlan, RunFolder)>, environment: Environment) -> io::Result<Self> {
        let read = |(plan, folder): (RunPlan, RunFolder)| -> io::Result<Recorded> {
            let record = RunRecord::read(&folder)?;
            Ok(Recorded {
                plan,
                folder,
                record,
            })
        };
        Ok(Self {
            runs: runs.into_iter().map(read).collect::<io::Result<_>>()?,
            environment,
        })
    }

    /// Takes in an event of a run.
    pub fn take(&mut self, run: usize, event: &Event) -> io::Result<()> {
        let Recorded {
            plan,
            folder,
            record,
        } = &mut self.runs[run];
        if matches!(event, Event::Progressed(_)) {
            return Ok(());
        }
        folder.append_event(event)?;
        record.apply(event);
        match event {
            Event::RunStarted(started) => {
                let path = folder.environment_json();
                write_json(&path, &self.environment.of_run(plan, started))
                    .map_err(|e| unwritable(&path, e))
            }
            Event::KernelsChosen(kernels) => {
                let Some(mut environment) = folder.read_environment()? else {
                    return Ok(());
                };
                if let Some(worker) = &mut environment.worker {
                    worker.kernels = Some(kernels.clone());
                }
                let path = folder.environment_json();
                write_json(&path, &environment).map_err(|e| unwritable(&path, e))
            }
            Event::EpochFinished(_) => record.write_metrics(folder),
            Event::RunRetried { .. } | Event::RunAdjusted { .. } => folder.remove_summary(),
            Event::RunFinished { .. } => {
                record.write_metrics(folder)?;
                record.write_summary(folder, plan)
            }
            _ => Ok(()),
        }
    }
}
