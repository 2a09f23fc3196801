//! The folder of a run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::damage::damaged;
use super::log::{self, Log, RunHead};
use super::{
    Environment, Lock, Locked, SealState, Summary, format, lock, name, seal, seal_state, sync_file,
    sync_files, sync_folder, unwritable, write_whole,
};
use crate::disk::File;
use crate::event::{Event, Progress};
use crate::plan::RunPlan;
use crate::spec::plain_file;

/// The maximum size of a transforms file in bytes: vocabularies and names of classes.
const MAX_TRANSFORMS: u64 = 1 << 30;

/// The folder of one run.
#[derive(Clone, Debug)]
pub struct RunFolder(pub PathBuf);

impl RunFolder {
    /// The run, resolved.
    pub fn run_toml(&self) -> PathBuf {
        self.0.join("run.toml")
    }

    /// The run's environment.
    pub fn environment_json(&self) -> PathBuf {
        self.0.join("environment.json")
    }

    /// The fitted transforms.
    pub fn transforms_json(&self) -> PathBuf {
        self.0.join("transforms.json")
    }

    /// The content of [`Self::transforms_json`]; empty if it is too large.
    pub fn read_transforms(&self) -> io::Result<Vec<u8>> {
        let text = plain_file::read(&self.transforms_json(), MAX_TRANSFORMS)?;
        Ok(text.unwrap_or_default())
    }

    /// What happened.
    pub fn events_jsonl(&self) -> PathBuf {
        self.0.join("events.jsonl")
    }

    /// The run's progress while it trains.
    pub fn progress_json(&self) -> PathBuf {
        self.0.join("progress.json")
    }

    /// One line per epoch.
    pub fn metrics_csv(&self) -> PathBuf {
        self.0.join("metrics.csv")
    }

    /// The outcome.
    pub fn summary_json(&self) -> PathBuf {
        self.0.join("summary.json")
    }

    /// The evaluation of the best weights.
    pub fn evaluation_json(&self) -> PathBuf {
        self.0.join("evaluation.json")
    }

    /// The distributions of the weights.
    pub fn weights_json(&self) -> PathBuf {
        self.0.join("weights.json")
    }

    /// The predictions that are written when the training ends.
    pub fn predictions(&self) -> PathBuf {
        self.0.join("predictions")
    }

    /// Pictures of what a generator makes after each epoch.
    pub fn samples(&self) -> PathBuf {
        self.0.join("samples")
    }

    /// The picture of an epoch.
    pub fn sample(&self, epoch: usize) -> PathBuf {
        self.samples().join(format!("epoch-{epoch}.png"))
    }

    /// The epochs with a picture, in order.
    pub fn sampled_epochs(&self) -> Vec<usize> {
        let mut epochs = self.numbered(&self.samples(), "epoch-", ".png");
        epochs.sort_unstable();
        epochs
    }

    /// The numbers of the files of a folder whose names begin and end with some texts.
    fn numbered(&self, folder: &Path, start: &str, end: &str) -> Vec<usize> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let number = |name: String| name.strip_prefix(start)?.strip_suffix(end)?.parse().ok();
        names.filter_map(number).collect()
    }

    /// The worker's log.
    pub fn run_log(&self) -> PathBuf {
        self.0.join("run.log")
    }

    /// The trace that reproductions are compared with.
    pub fn trace(&self) -> PathBuf {
        self.0.join("trace")
    }

    /// The checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.0.join("checkpoints")
    }

    /// The file that makes the checkpoint of a step complete.
    pub fn checkpoint_json(&self, step: usize) -> PathBuf {
        self.checkpoints().join(format!("checkpoint-{step}.json"))
    }

    /// One of the three files of a checkpoint.
    pub fn checkpoint_part(&self, part: &str, step: usize) -> PathBuf {
        self.checkpoints().join(format!("{part}-{step}.bpk"))
    }

    /// Saved weights: `initial`, `final`, `best`, `ema`, `swa` or `teacher`.
    pub fn model(&self, name: &str) -> PathBuf {
        self.0.join("model").join(format!("{name}.bpk"))
    }

    /// Takes the folder's lock, if it is free: the worker of a killed runner may still be saving its checkpoint.
    pub fn try_lock(&self) -> io::Result<Locked> {
        Lock::take(&self.0)
    }

    /// Whether a worker has the run.
    pub fn is_in_use(&self) -> bool {
        lock::is_held(&self.0)
    }

    /// Shares the folder's lock with other readers until the returned file is dropped; `None` if a worker has it. The
    /// folder may be read-only.
    pub fn lock_to_read(&self) -> io::Result<Option<File>> {
        let lock = self.0.join(".lock");
        let file = match plain_file::open(&lock) {
            // There was never a worker: the plan file serves as the lock.
            Err(e) if e.kind() == io::ErrorKind::NotFound => plain_file::open(&self.run_toml())?,
            other => other?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(e)) => Err(e),
        }
    }

    /// The last written progress of the run; valid only while it is training.
    pub fn read_progress(&self) -> Option<Progress> {
        let text = plain_file::read_whole(&self.progress_json()).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Whether a worker has the run. Only checks the lock: an unreadable folder has none.
    pub fn is_trained(&self) -> bool {
        matches!(self.lock_to_read(), Ok(None))
    }

    /// Writes the run so that a worker can read it back.
    pub fn write_plan(&self, plan: &RunPlan) -> io::Result<()> {
        self.check_links()?;
        let path = self.run_toml();
        let text = run_toml(plan)?;
        write_whole(&path, text.as_bytes()).map_err(|e| unwritable(&path, e))
    }

    /// Whether the folder contains this plan: one with the same fingerprint, if any. A folder with events but without a
    /// run, or with the events of another run, is damaged.
    pub(crate) fn holds(&self, plan: &RunPlan) -> io::Result<bool> {
        // Parsing a plan takes much longer than writing it, and most are unchanged.
        let path = self.run_toml();
        match format::read(&path)? {
            None if self.events_jsonl().exists() => Err(damaged(&path, "it is missing")),
            None => Ok(false),
            Some(text) if run_toml(plan).is_ok_and(|ours| ours == text) => Ok(true),
            Some(text) => {
                let there: RunPlan = format::parse_toml(&path, &text)?;
                if there.id != plan.id {
                    let reason = format!("it belongs to run `{}`, not to `{}`", there.id, plan.id);
                    return Err(damaged(&path, reason));
                }
                name::check_run(&path, &there)?;
                Ok(there.fingerprint == plan.fingerprint)
            }
        }
    }

    /// Reads the run, if the folder has one. Refuses one that was changed after it was written.
    pub fn read_plan(&self) -> io::Result<Option<RunPlan>> {
        let path = self.run_toml();
        let plan = format::read_toml(&path)?;
        if let Some(plan) = &plan {
            name::check_run(&path, plan)?;
        }
        Ok(plan)
    }

    /// Reads the run, if the folder has one, even if it was changed, together with its state.
    pub fn read_plan_as_is(&self) -> io::Result<Option<(RunPlan, SealState)>> {
        let path = self.run_toml();
        let Some(text) = format::read(&path)? else {
            return Ok(None);
        };
        let (plan, format) = format::parse_unsealed(&path, &text)?;
        name::check_run(&path, &plan)?;
        Ok(Some((plan, seal_state(&text, format))))
    }

    /// Whether the run, if there is one, is in the format that this program reads.
    pub fn check_format(&self) -> io::Result<()> {
        format::check_toml(&self.run_toml())
    }

    /// Reads the run's environment; `None` if it has not started.
    pub fn read_environment(&self) -> io::Result<Option<Environment>> {
        format::read_json_of(&self.environment_json(), self.format()?)
    }

    /// Reads the outcome; `None` if there is none.
    pub fn read_summary(&self) -> io::Result<Option<Summary>> {
        format::read_json(&self.summary_json())
    }

    /// The format of the run; the current one if there is no run.
    fn format(&self) -> io::Result<u32> {
        let head = RunHead::read(self)?;
        Ok(head.map_or(crate::plan::FORMAT, |head| head.format))
    }

    /// Removes the outcome, which is outdated once the run continues.
    pub fn remove_summary(&self) -> io::Result<()> {
        match fs::remove_file(self.summary_json()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(unwritable(&self.summary_json(), e))
            }
            _ => Ok(()),
        }
    }

    /// The step numbers of complete checkpoints, newest first.
    pub fn checkpoint_steps(&self) -> Vec<usize> {
        let mut steps = self.numbered(&self.checkpoints(), "checkpoint-", ".json");
        steps.sort_unstable_by(|a, b| b.cmp(a));
        steps
    }

    /// Appends an event with its time.
    pub fn append_event(&self, event: &Event) -> io::Result<()> {
        self.append(event)
            .map_err(|e| unwritable(&self.events_jsonl(), e))
    }

    fn append(&self, event: &Event) -> io::Result<()> {
        log::append(self, event)
    }

    /// Returns when everything that happened so far is on disk.
    pub fn sync_events(&self) -> io::Result<()> {
        let path = self.events_jsonl();
        sync_file(&path).map_err(|e| unwritable(&path, e))
    }

    /// Returns when the initial files of a run are on disk, including the entries of their folders.
    pub fn sync_begun(&self) -> io::Result<()> {
        let sync = || -> io::Result<()> {
            let files = [
                self.run_toml(),
                self.environment_json(),
                self.events_jsonl(),
            ];
            sync_files(&files)?;
            sync_folder(&self.0)?;
            self.0.parent().map_or(Ok(()), sync_folder)
        };
        sync().map_err(|e| unwritable(&self.0, e))
    }

    /// Reads the events with their times, in milliseconds since 1970. A partial line that a kill left at the end is
    /// ignored; any other changed line is damage, and so are the events of another run.
    pub fn read_events(&self) -> io::Result<Vec<(u64, Event)>> {
        let log = Log::read(self)?;
        if !log.events.is_empty()
            && let Some(run) = RunHead::read(self)?
        {
            log.check_is_of(self, &run)?;
        }
        Ok(log.events)
    }

    /// Writes all events at once, with their times. For benchmarks and tests with synthetic runs.
    #[doc(hidden)]
    pub fn write_events(&self, events: &[(u64, Event)]) -> io::Result<()> {
        write_whole(&self.events_jsonl(), log::text_in(self, events)?.as_bytes())
    }
}

/// The text of a run's `run.toml`.
pub(super) fn run_toml(plan: &RunPlan) -> io::Result<String> {
    let head =
        "# A resolved run, written by runner. `runner exec` and `runner report` read it.\n\n";
    let text = toml::to_string(plan).map_err(io::Error::other)?;
    let text = format!("{head}{text}");
    // Runs of earlier versions are also identified by their text.
    let is_sealed = plan.format >= seal::FIRST_SEALED;
    Ok(if is_sealed { seal::toml(text) } else { text })
}
