//! The one place that writes what happens: takes events in, keeps the records up to date on disk.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

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
    progress_written: Vec<Option<Instant>>,
}

/// How often it is written where a run is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

impl Collector {
    /// Records runs, each from what its folder already holds.
    pub fn new(runs: Vec<(RunPlan, RunFolder)>, environment: Environment) -> io::Result<Self> {
        let read = |(plan, folder): (RunPlan, RunFolder)| -> io::Result<Recorded> {
            folder.check_links()?;
            let record = RunRecord::read_for(&folder, &plan)?;
            Ok(Recorded {
                plan,
                folder,
                record,
            })
        };
        Ok(Self {
            progress_written: vec![None; runs.len()],
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
        if let Event::Progressed(progress) = event {
            let written = &mut self.progress_written[run];
            if written.is_none_or(|written| written.elapsed() >= PROGRESS_INTERVAL) {
                *written = Some(Instant::now());
                // No part of the record: a run does not end because nobody can watch it.
                let _ = write_json(&folder.progress_json(), progress);
            }
            return Ok(());
        }
        folder.append_event(event)?;
        record.apply(event);
        match event {
            Event::RunStarted(started) => {
                // Of the attempt before, or of a runner that was killed.
                let _ = fs::remove_file(folder.progress_json());
                let path = folder.environment_json();
                let mut environment = self.environment.of_run(plan, started);
                // What cannot be read says nothing of where the run was begun.
                if started.resumed_step > 0
                    && let Ok(Some(before)) = folder.read_environment()
                {
                    environment = environment.resumed_from(before);
                }
                write_json(&path, &environment).map_err(|e| unwritable(&path, e))?;
                folder.sync_begun()
            }
            // The checkpoint is on the disk, and the events before it have to be as well.
            Event::CheckpointSaved { .. } => folder.sync_events(),
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
            // A checkpoint is of this run only with the adjustments that led to it.
            Event::RunRetried { .. } | Event::RunAdjusted { .. } => {
                folder.sync_events()?;
                folder.remove_summary()
            }
            Event::RunFinished { .. } => {
                let _ = fs::remove_file(folder.progress_json());
                // Before the summary, which must not say more than the events do.
                folder.sync_events()?;
                record.write_metrics(folder)?;
                record.write_summary(folder, plan)
            }
            _ => Ok(()),
        }
    }
}
