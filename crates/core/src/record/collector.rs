//! The only writer of what happens: receives events, and keeps the records on disk up to date.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::{Environment, RunFolder, RunRecord, in_parallel, unwritable, write_json};
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
    /// In order of dispatch.
    pub runs: Vec<Recorded>,
    environment: Environment,
    progress_written: Vec<Option<Instant>>,
}

/// How often the progress of a run is written.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

impl Collector {
    /// Records runs, continuing from the content of their folders. Those that have none begin.
    pub fn new(runs: Vec<(RunPlan, RunFolder)>, environment: Environment) -> io::Result<Self> {
        // A file server takes some milliseconds for each.
        let records = in_parallel(&runs, |(plan, folder)| -> io::Result<RunRecord> {
            folder.check_links()?;
            folder.begin(plan)?;
            RunRecord::read_for(folder, plan)
        });
        let recorded = runs.into_iter().zip(records);
        let recorded = recorded.map(|((plan, folder), record)| {
            Ok(Recorded {
                plan,
                folder,
                record: record?,
            })
        });
        let runs: Vec<Recorded> = recorded.collect::<io::Result<_>>()?;
        Ok(Self {
            progress_written: vec![None; runs.len()],
            runs,
            environment,
        })
    }

    /// Receives an event of a run.
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
                // Not part of the record: a run does not fail because its progress cannot be shown.
                let _ = write_json(&folder.progress_json(), progress);
            }
            return Ok(());
        }
        folder.append_event(event)?;
        record.apply(event);
        match event {
            Event::RunStarted(started) => {
                // From the previous attempt, or from a runner that was killed.
                let _ = fs::remove_file(folder.progress_json());
                let path = folder.environment_json();
                let mut environment = self.environment.of_run(plan, started);
                // An unreadable file does not say where the run was started.
                if started.resumed_step > 0
                    && let Ok(Some(before)) = folder.read_environment()
                {
                    environment = environment.resumed_from(before);
                }
                write_json(&path, &environment).map_err(|e| unwritable(&path, e))?;
                folder.sync_begun()
            }
            // The checkpoint is on disk, so the events before it must be as well.
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
            // A checkpoint belongs to this run only with the adjustments that led to it.
            Event::RunRetried { .. } | Event::RunAdjusted { .. } => {
                folder.sync_events()?;
                folder.remove_summary()
            }
            Event::RunFinished { .. } => {
                let _ = fs::remove_file(folder.progress_json());
                // Before the summary, which must not contain more than the events.
                folder.sync_events()?;
                record.write_metrics(folder)?;
                record.write_summary(folder, plan)
            }
            _ => Ok(()),
        }
    }
}
