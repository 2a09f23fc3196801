//! The results tree on disk. This module owns every path in it.
//!
//! ```text
//! results/<experiment>/
//!   experiment.toml        byte copy of the input
//!   resolved.toml          the input put together, if it has more layers than one
//!   plan.json              every run, resolved
//!   kernels/               on CubeCL's backends: the kernels that were chosen by their times, for all runs
//!   .lock                  held by the `runner run` that writes here, whom it names
//!   runs/<trial>-s<seed>/
//!     .lock                held by the worker
//!     run.toml             the run, resolved and self-contained
//!     environment.json     versions, host, device, data digests, clock
//!     transforms.json      how items become numbers: what was measured on the train split
//!     events.jsonl         what happened, append-only: the source of truth
//!     progress.json        while it is trained: where it is, for those who watch; no part of the record
//!     metrics.csv          one line for each epoch, derived
//!     summary.json         the outcome, derived; absent while the run is incomplete
//!     evaluation.json      what the best weights get wrong on the valid split: confusions, mistakes, residuals
//!     run.log              the worker's log
//!     trace/               losses.f64 and digests.csv: the loss of each update, the weights' digests
//!     checkpoints/         model-<step>.bpk, optimizer-<step>.bpk, scheduler-<step>.bpk, and
//!                          checkpoint-<step>.json, which makes the three of them complete
//!     model/               initial.bpk, final.bpk, best.bpk by the objective, and ema.bpk if weights are averaged
//!   replaced/<run>@<fingerprint>/   runs that were other work under the same name
//!   report.html report.md report.csv report.json
//!   tensorboard/<run>/       TensorBoard's event files, once they are asked for
//! ```
//!
//! A file that is not appended to is written under another name and renamed, so that a kill at any moment leaves the
//! old or the new one. Files that numbers are read from reveal later changes: files written whole end with a seal
//! (`seal.rs`), each event has a sum over everything before it (`log.rs`), and the last events of a run contain the
//! digests of its other files (`files.rs`).

mod answer;
mod build;
mod calibrations;
#[cfg(feature = "native")]
pub mod capsule;
mod collector;
mod damage;
mod entry;
mod environment;
pub mod evaluation;
mod files;
mod fold;
mod format;
mod git;
mod index;
mod links;
mod lock;
mod log;
mod name;
mod resume;
mod seal;
mod settings;
mod status;
mod tail;
mod times;
mod trace;
mod write;
mod written;

pub use answer::{PATIENCE, answer};
pub use build::{known_build, look_at_this_build, take_known_build, this_build};
pub use calibrations::Calibrations;
pub use collector::{Collector, Recorded};
pub use damage::{is_damaged, remedy};
pub use entry::{DataUsed, MemoryUse, OTHER_FORMAT_REMEDY, PLAN_REMEDY, RunEntry, State};
pub use environment::{Environment, KERNELS, available_memory, total_memory};
pub use fold::{RunRecord, Summary};
pub use format::is_other_format;
pub use git::commits_between;
pub use index::Index;
pub use links::refuse_links;
pub use lock::{Holder, Lock, Locked};
pub use resume::{
    BadCheckpoint, CHECKPOINT_PARTS, Checkpoints, Rejected, ResumePoint, Sidecar, part_sum,
};
pub use seal::{SealState, check_seal, json as sealed_json, seal_state};
pub use settings::{Changed, Settings, changed, is_guard, settings};
pub use status::{Status, leftovers, resume_point, status};
pub use tail::{News, Tail};
pub use times::Times;
pub use trace::{Digests, OPTIMIZER, TRACE_FILES, Trace, TraceSums, TraceWriter};
pub use write::{
    is_unwritable, sync_file, sync_files, sync_folder, unwritable, write_json, write_json_synced,
    write_synced, write_whole, write_whole_by,
};

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::event::{Event, Progress};
use crate::plan::{Plan, RunPlan, quoted};
use crate::spec::plain_file;
use damage::damaged;
use log::{Log, RunHead};

/// The folder of one experiment.
#[derive(Clone, Debug, Default)]
pub struct ExperimentFolder(pub PathBuf);

/// The folder of one run.
#[derive(Clone, Debug)]
pub struct RunFolder(pub PathBuf);

impl ExperimentFolder {
    /// The experiments of a path, sorted: the folder of one, or those in a results folder.
    pub fn all(path: &Path) -> Vec<Self> {
        let one = Self(path.to_owned());
        if one.plan_json().exists() {
            return vec![one];
        }
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut all: Vec<_> = entries.map(|entry| Self(entry.path())).collect();
        all.retain(|experiment| experiment.plan_json().exists());
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// The copy of the input.
    pub fn experiment_toml(&self) -> PathBuf {
        self.0.join("experiment.toml")
    }

    /// The input with the files that it extends, its edits and its environment variables.
    pub fn resolved_toml(&self) -> PathBuf {
        self.0.join("resolved.toml")
    }

    /// Every run, resolved.
    pub fn plan_json(&self) -> PathBuf {
        self.0.join("plan.json")
    }

    /// The state of plan and runs, cached for later reads.
    pub fn index_jsonl(&self) -> PathBuf {
        self.0.join(".index.jsonl")
    }

    /// The kernels that CubeCL selected by timing, for all runs.
    pub fn kernels(&self) -> PathBuf {
        self.0.join("kernels")
    }

    /// A report, by file extension.
    pub fn report(&self, extension: &str) -> PathBuf {
        self.0.join(format!("report.{extension}"))
    }

    /// TensorBoard's event files, one folder per run.
    pub fn tensorboard(&self) -> PathBuf {
        self.0.join("tensorboard")
    }

    /// The folder of a run.
    pub fn run(&self, id: &str) -> RunFolder {
        RunFolder(self.0.join("runs").join(id))
    }

    /// Moves the content of a run's folder aside, since another run of that name will be created, and returns the new
    /// place.
    pub fn replace(&self, id: &str) -> io::Result<PathBuf> {
        self.check_links()?;
        let there = self.run(id);
        let plan = there.read_plan().ok().flatten();
        let fingerprint = plan.map_or("unknown".into(), |plan| plan.fingerprint);
        let aside = self.0.join("replaced");
        fs::create_dir_all(&aside)?;
        let name = format!("{id}@{}", &fingerprint[..8.min(fingerprint.len())]);
        let mut place = aside.join(&name);
        for number in 2.. {
            if !place.exists() {
                break;
            }
            place = aside.join(format!("{name}.{number}"));
        }
        fs::rename(&there.0, &place)?;
        Ok(place)
    }

    /// The ids of the runs with a folder, sorted.
    pub fn run_ids(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.join("runs"))
            .into_iter()
            .flatten()
            .flatten();
        let folders = entries.filter(|entry| entry.path().is_dir());
        let mut ids: Vec<_> = folders
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        ids.sort();
        ids
    }

    /// Reads the plan, if the folder has one.
    pub fn read_plan(&self) -> io::Result<Option<Plan>> {
        let path = self.plan_json();
        let plan = format::read_json(&path)?;
        if let Some(plan) = &plan {
            name::check_plan(&path, plan)?;
        }
        Ok(plan)
    }

    /// The command that continues the experiment of a plan in this folder.
    pub fn command(&self, plan: &Plan) -> String {
        let command = plan.command();
        let results = self.0.parent().map(|path| path.to_string_lossy());
        match results.as_deref() {
            None | Some("results") => command,
            Some("") => command + " --results .",
            Some(path) => format!("{command} --results {}", quoted(path)),
        }
    }

    /// Takes the folder's lock, if it is free.
    pub fn lock(&self) -> io::Result<Locked> {
        Lock::take(&self.0)
    }

    /// Whether a `runner run` writes to the folder.
    pub fn is_in_use(&self) -> bool {
        lock::is_held(&self.0)
    }

    /// Takes the folder's lock as soon as it is free.
    pub fn wait_for_lock(&self) -> io::Result<Lock> {
        Lock::wait_for(&self.0)
    }
}

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

    /// Saved weights: `initial`, `final`, `best` or `ema`.
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
        let entries = fs::read_dir(self.checkpoints())
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut steps: Vec<usize> = names
            .filter_map(|name| {
                name.strip_prefix("checkpoint-")?
                    .strip_suffix(".json")?
                    .parse()
                    .ok()
            })
            .collect();
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
        write_whole(&self.events_jsonl(), log::text_of(self, events)?.as_bytes())
    }
}

/// Gives a file a correct seal, or a log correct sums, for its current content. For tests that change files on purpose.
#[doc(hidden)]
pub fn reseal(path: &Path) -> io::Result<()> {
    let text = plain_file::read_text(path)?;
    let text = match path.extension() {
        Some(extension) if extension == "jsonl" => log::renewed(&text),
        _ => seal::renewed(&text),
    };
    fs::write(path, text)
}

/// The text of a run's `run.toml`.
fn run_toml(plan: &RunPlan) -> io::Result<String> {
    let head =
        "# A resolved run, written by runner. `runner exec` and `runner report` read it.\n\n";
    let text = toml::to_string(plan).map_err(io::Error::other)?;
    let text = format!("{head}{text}");
    // Runs of earlier versions are also identified by their text.
    let is_sealed = plan.format >= seal::FIRST_SEALED;
    Ok(if is_sealed { seal::toml(text) } else { text })
}

/// Milliseconds since 1970.
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
