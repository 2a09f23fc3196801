//! Checkpoints: Burn's three files of a step, completed by a fourth that is written last.
//!
//! Burn saves the weights, the optimizer and the schedule on three threads, each file separately. The sidecar contains
//! the rest (position in the run, sums of the epoch in progress, history) with the sha256 of all three; a set without a
//! sidecar, or with a wrong sum, is not a checkpoint. Older sets are removed only after a newer one is complete.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::fs;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use burn::store::ModuleRecord;
use burn::train::checkpoint::{
    Checkpoint, Checkpointer, CheckpointerError, CheckpointingAction, CheckpointingStrategy,
    FileCheckpointer,
};
use burn::train::metric::store::EventStoreClient;

use super::fault::{Fault, Phase};
use super::{Emit, Job};
use runner_core::event::{Adjustment, Event, Metrics};
use runner_core::plan::RunPlan;
use runner_core::record::{
    self, BadCheckpoint, CHECKPOINT_PARTS, ResumePoint, RunFolder, Sidecar, part_sum,
    write_json_synced,
};
use runner_network::state::State;

/// The checkpoints of a run: those being written, and those on disk.
pub struct Checkpoints {
    plan: RunPlan,
    folder: RunFolder,
    data_digests: BTreeMap<String, String>,
    /// The adjustments so far: a checkpoint with a different past does not belong to this run.
    adjustments: Vec<Adjustment>,
    emit: Emit,
    fault: Option<Fault>,
    /// States whose files are being written, with the number of finished files.
    pending: Mutex<BTreeMap<usize, (State, usize)>>,
    /// Notified when a step is no longer pending.
    ended: Condvar,
    /// Sets on disk, so that their sidecars, which grow with the history, are not read after each epoch.
    known: Mutex<BTreeMap<usize, Standing>>,
}

/// What decides how long a set is kept.
struct Standing {
    /// The step of the best set when it was written.
    best: Option<usize>,
    /// The metrics of the epoch that it ends, if they include the objective.
    end: Option<Metrics>,
}

/// The result of [`Checkpoints::newest`].
#[derive(Debug, Default)]
pub struct Found {
    /// The step and state of the newest good checkpoint.
    pub state: Option<(usize, State)>,
    /// Newer checkpoints that were skipped, and why.
    pub rejected: Vec<String>,
}

/// Why a checkpoint cannot be written, or its weights not be read.
#[derive(Debug)]
pub enum NotSaved {
    /// It does not belong to this run, or is incomplete.
    Bad(BadCheckpoint),
    /// Its sidecar cannot be written.
    Io(io::Error),
    /// Its state cannot be written as JSON.
    State(serde_json::Error),
    /// Burn cannot read its weights.
    Weights(String),
}

impl fmt::Display for NotSaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bad(reason) => write!(f, "{reason}"),
            Self::Io(e) => write!(f, "{e}"),
            Self::State(e) => write!(f, "{e}"),
            Self::Weights(reason) => f.write_str(reason),
        }
    }
}

impl From<BadCheckpoint> for NotSaved {
    fn from(reason: BadCheckpoint) -> Self {
        Self::Bad(reason)
    }
}

impl From<io::Error> for NotSaved {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<serde_json::Error> for NotSaved {
    fn from(error: serde_json::Error) -> Self {
        Self::State(error)
    }
}

fn state_of(sidecar: Sidecar) -> Result<State, BadCheckpoint> {
    serde_json::from_value(sidecar.state).map_err(BadCheckpoint::Damaged)
}

impl Checkpoints {
    /// The checkpoints of a job's run.
    pub fn new(job: &Job, data_digests: &BTreeMap<String, String>) -> Self {
        Self {
            plan: job.planned.clone(),
            folder: job.folder.clone(),
            data_digests: data_digests.clone(),
            adjustments: job.adjustments.clone(),
            emit: job.emit.clone(),
            fault: job.fault.clone(),
            pending: Mutex::default(),
            ended: Condvar::new(),
            known: Mutex::default(),
        }
    }

    /// Finds the newest checkpoint that is complete and belongs to this plan and data.
    pub fn newest(&self) -> Found {
        let point = ResumePoint::of(&self.ours());
        let mut rejected: Vec<String> = point.rejected.iter().map(ToString::to_string).collect();
        let state = point.sidecar.map(state_of).transpose();
        let state = state.unwrap_or_else(|reason| {
            rejected.push(format!("checkpoint {}: {reason}", point.step));
            None
        });
        Found {
            state: state.map(|state| (point.step, state)),
            rejected,
        }
    }

    /// What a checkpoint must belong to.
    fn ours(&self) -> record::Checkpoints<'_> {
        record::Checkpoints {
            folder: &self.folder,
            plan: &self.plan,
            adjustments: &self.adjustments,
            data_digests: Some(&self.data_digests),
        }
    }

    /// The weights of a good checkpoint.
    pub fn weights(&self, step: usize) -> Result<ModuleRecord, NotSaved> {
        self.ours().read(step)?;
        let path = self.folder.checkpoint_part("model", step);
        ModuleRecord::load(path).map_err(|e| NotSaved::Weights(e.to_string()))
    }

    /// Removes partial files that a kill left: files that belong to no complete set.
    pub fn remove_fragments(&self) {
        let steps = self.folder.checkpoint_steps();
        let complete = |name: &str| {
            let step = name.rsplit_once('-').map(|(_, rest)| rest);
            let step = step.and_then(|s| s.strip_suffix(".bpk").or(s.strip_suffix(".json")));
            step.and_then(|s| s.parse().ok())
                .is_some_and(|step| steps.contains(&step))
        };
        let entries = fs::read_dir(self.folder.checkpoints());
        for entry in entries.into_iter().flatten().flatten() {
            if !complete(&entry.file_name().to_string_lossy()) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Announces that the three files of a step are about to be written.
    pub fn expect(&self, step: usize, state: State) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.insert(step, (state, 0));
    }

    /// Records that one file of a step is on disk; the last of three completes the set.
    fn saved(&self, step: usize) -> Result<(), NotSaved> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, num_done)) = pending.get_mut(&step) else {
            return Ok(());
        };
        *num_done += 1;
        if *num_done < CHECKPOINT_PARTS.len() {
            Fault::reach(self.fault.as_ref(), Phase::Checkpointing(step));
            return Ok(());
        }
        drop(pending);
        let state = self.end(step).unwrap_or_default();
        let [model, optimizer, scheduler] =
            CHECKPOINT_PARTS.map(|part| part_sum(&self.folder, part, step));
        let sums = [model?, optimizer?, scheduler?];
        let said = serde_json::to_value(&state)?;
        let sidecar = Sidecar::new(&self.plan, &self.data_digests, sums, said);
        self.write_sidecar(step, &sidecar, &state)
    }

    /// Stops waiting for the files of a step, and returns its state.
    fn end(&self, step: usize) -> Option<State> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = pending.remove(&step);
        self.ended.notify_all();
        ended.map(|(state, _)| state)
    }

    /// Waits until the three files of a step are on disk, or cannot be written.
    pub fn wait(&self, step: usize) {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let _ended = self
            .ended
            .wait_while(pending, |pending| pending.contains_key(&step));
    }

    /// Updates the state of a step's set, if the set is on disk and has the current weights.
    pub fn restate(&self, step: usize, state: State) -> Result<(), NotSaved> {
        let sidecar = Sidecar::read(&self.folder, step)?;
        let sidecar = sidecar.restated(&self.plan, serde_json::to_value(&state)?);
        self.write_sidecar(step, &sidecar, &state)
    }

    fn write_sidecar(&self, step: usize, sidecar: &Sidecar, state: &State) -> Result<(), NotSaved> {
        let path = self.folder.checkpoint_json(step);
        write_json_synced(&path, sidecar)?;
        self.known().insert(step, self.standing(state));
        self.prune(step);
        let epoch = state.epochs_done + (state.steps_in_epoch > 0) as usize;
        (self.emit)(Event::CheckpointSaved { step, epoch });
        Ok(())
    }

    fn standing(&self, state: &State) -> Standing {
        let is_whole = state.steps_in_epoch == 0;
        let last = state.history.last().filter(|_| is_whole);
        let objective = self.plan.objective.name();
        let last = last.filter(|last| last.metrics.contains_key(&objective));
        Standing {
            best: state.best.map(|best| best.step),
            end: last.map(|last| last.metrics.clone()),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<usize, Standing>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes all but the newest sets, the best one of each, without which a set is useless, and the best ones
    /// overall. A file that cannot be removed is not a failure.
    fn prune(&self, step: usize) {
        let mut steps = self.folder.checkpoint_steps();
        // Later ones were skipped when the run resumed from an earlier one, and no longer count.
        steps.retain(|other| *other <= step);
        let spec = &self.plan.checkpoint;
        let (newest, older) = steps.split_at(spec.keep_last.min(steps.len()));
        if older.is_empty() {
            return;
        }
        let mut known = self.known();
        known.retain(|at, _| steps.contains(at));
        for at in &steps {
            let Entry::Vacant(unknown) = known.entry(*at) else {
                continue;
            };
            let sidecar = Sidecar::read(&self.folder, *at);
            if let Ok(state) = sidecar.and_then(state_of) {
                unknown.insert(self.standing(&state));
            }
        }
        let best_of = |step: &usize| known.get(step)?.best;
        let mut kept: Vec<usize> = newest.iter().filter_map(best_of).collect();
        let mut ends: Vec<(usize, &Metrics)> = known
            .iter()
            .filter_map(|(step, standing)| Some((*step, standing.end.as_ref()?)))
            .collect();
        // Steps are distinct, so that one of two ends is always preferred.
        ends.sort_by(|(at, a), (other, b)| {
            let is_first = match at.cmp(other) {
                Ordering::Greater => self.plan.prefers_later(a, b),
                Ordering::Less => !self.plan.prefers_later(b, a),
                Ordering::Equal => return Ordering::Equal,
            };
            if is_first {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        });
        kept.extend(ends.iter().take(spec.keep_best).map(|(step, _)| *step));
        for step in older.iter().filter(|step| !kept.contains(step)) {
            self.remove(*step);
        }
    }

    /// Removes a set. A file that cannot be removed is not a failure.
    pub fn remove(&self, step: usize) {
        // The sidecar is removed first, so that no set looks complete while it is being removed.
        let _ = fs::remove_file(self.folder.checkpoint_json(step));
        for part in CHECKPOINT_PARTS {
            let _ = fs::remove_file(self.folder.checkpoint_part(part, step));
        }
    }

    /// Burn's checkpointers of the three files.
    pub fn parts(self: &Arc<Self>) -> [Part; 3] {
        CHECKPOINT_PARTS.map(|part| Part {
            file: FileCheckpointer::new(self.folder.checkpoints(), part),
            checkpoints: self.clone(),
        })
    }
}

/// Burn's checkpointer of one file, which notifies the set when the file is on disk. Its number is a step where Burn
/// means an epoch.
pub struct Part {
    file: FileCheckpointer,
    checkpoints: Arc<Checkpoints>,
}

/// Ends the wait for a step whose files cannot be written, also after a panic.
struct Unwritten<'a>(&'a Checkpoints, usize);

impl Drop for Unwritten<'_> {
    fn drop(&mut self) {
        let Self(checkpoints, step) = self;
        checkpoints.end(*step);
    }
}

impl<R: Checkpoint> Checkpointer<R> for Part {
    fn save(&self, step: usize, record: R) -> Result<(), CheckpointerError> {
        let unwritten = Unwritten(&self.checkpoints, step);
        // Burn returns when the file and its folder are on disk, and the three threads of a step sync concurrently: the
        // sidecar follows.
        self.file.save(step, record)?;
        self.checkpoints
            .saved(step)
            .map_err(|e| CheckpointerError::Unknown(e.to_string()))?;
        std::mem::forget(unwritten);
        Ok(())
    }

    fn restore(&self, step: usize) -> Result<R, CheckpointerError> {
        self.file.restore(step)
    }

    fn delete(&self, _: usize) -> Result<(), CheckpointerError> {
        Ok(())
    }
}

/// The training loop decides when to save; Burn's strategy always agrees.
pub struct Always;

impl CheckpointingStrategy for Always {
    fn checkpointing(&mut self, _: usize, _: &EventStoreClient) -> Vec<CheckpointingAction> {
        vec![CheckpointingAction::Save]
    }
}
