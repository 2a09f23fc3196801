//! Where a run resumes: a plan, a board and the worker itself all get the same answer.
//!
//! A checkpoint consists of three files of Burn and a sidecar that is written last, with the sha256 of all three. It is
//! valid only if all of it is unchanged, and belongs to this plan, its data and the adjustments so far.

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::RunFolder;
use crate::event::Adjustment;
use crate::hash::{sha256_hex, sha256_of};
use crate::plan::{FORMAT, RunPlan};
use crate::spec::plain_file;

/// The files of a checkpoint except its sidecar.
pub const CHECKPOINT_PARTS: [&str; 3] = ["model", "optimizer", "scheduler"];

/// The maximum size of a sidecar in bytes: it contains the history of a training.
const MAX_SIDECAR: u64 = 1 << 30;

/// The key of a sidecar's own sum.
const STATE: &str = "state";

/// `checkpoint-<step>.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sidecar {
    format: u32,
    fingerprint: String,
    /// Epochs of its plan.
    epochs: usize,
    data_digests: BTreeMap<String, String>,
    sha256: BTreeMap<String, String>,
    /// The state that training needs to resume, in addition to the three files.
    pub state: Json,
}

/// The position within training.
#[derive(Deserialize)]
struct Position {
    epochs_done: usize,
    steps_in_epoch: usize,
    best: Option<Best>,
    #[serde(default)]
    adjustments: Vec<Adjustment>,
}

#[derive(Deserialize)]
struct Best {
    step: usize,
}

impl Sidecar {
    /// The sidecar of files with these sums, in the order of [`CHECKPOINT_PARTS`].
    pub fn new(
        plan: &RunPlan,
        data_digests: &BTreeMap<String, String>,
        sums: [String; 3],
        state: Json,
    ) -> Self {
        let parts = CHECKPOINT_PARTS.iter().map(|part| (*part).to_owned());
        let mut sidecar = Self {
            format: FORMAT,
            fingerprint: plan.fingerprint.clone(),
            epochs: plan.train.epochs,
            data_digests: data_digests.clone(),
            sha256: parts.zip(sums).collect(),
            state,
        };
        sidecar.seal();
        sidecar
    }

    /// The same files with another state. They may have been written for fewer epochs.
    pub fn restated(mut self, plan: &RunPlan, state: Json) -> Self {
        self.state = state;
        self.fingerprint = plan.fingerprint.clone();
        self.epochs = plan.train.epochs;
        self.seal();
        self
    }

    /// Reads a sidecar without checking what it belongs to.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is invalid.
    pub fn read(folder: &RunFolder, step: usize) -> Result<Self, BadCheckpoint> {
        let text = plain_file::read(&folder.checkpoint_json(step), MAX_SIDECAR)
            .map_err(BadCheckpoint::Unreadable)?
            .ok_or(BadCheckpoint::TooLarge)?;
        serde_json::from_slice(&text).map_err(BadCheckpoint::Damaged)
    }

    fn seal(&mut self) {
        self.sha256.insert(STATE.to_owned(), self.state_sum());
    }

    /// sha256 of its other content.
    fn state_sum(&self) -> String {
        let said = (
            &self.fingerprint,
            self.epochs,
            &self.data_digests,
            &self.state,
        );
        sha256_hex(&serde_json::to_vec(&said).unwrap_or_default())
    }
}

/// What a checkpoint must belong to.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoints<'a> {
    /// The run's folder.
    pub folder: &'a RunFolder,
    /// The run as currently planned.
    pub plan: &'a RunPlan,
    /// The adjustments so far: a checkpoint with a different past does not belong to this run.
    pub adjustments: &'a [Adjustment],
    /// The digests of the data, if it was read.
    pub data_digests: Option<&'a BTreeMap<String, String>>,
}

/// Where a run resumes.
#[derive(Debug, Default)]
pub struct ResumePoint {
    /// Optimizer updates that need not be repeated; 0 if it starts from the beginning.
    pub step: usize,
    /// The checkpoint; none if it starts from the beginning.
    pub sidecar: Option<Sidecar>,
    /// Newer checkpoints that were skipped, and why.
    pub rejected: Vec<Rejected>,
}

/// A checkpoint that was skipped.
#[derive(Debug)]
pub struct Rejected {
    /// Its updates.
    pub step: usize,
    /// Why.
    pub reason: BadCheckpoint,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "checkpoint {}: {}", self.step, self.reason)
    }
}

impl ResumePoint {
    /// The newest checkpoint that is complete and belongs to the run.
    pub fn of(checkpoints: &Checkpoints<'_>) -> Self {
        let mut found = Self::default();
        let first = checkpoints.plan.first_step();
        let steps = checkpoints.folder.checkpoint_steps().into_iter();
        // What it took over from before it began is only there for its best epoch.
        for step in steps.filter(|step| *step >= first) {
            match checkpoints.read_with_best(step) {
                Ok(sidecar) => {
                    found.step = step;
                    found.sidecar = Some(sidecar);
                    break;
                }
                Err(reason) => found.rejected.push(Rejected { step, reason }),
            }
        }
        found
    }
}

impl Checkpoints<'_> {
    fn read_with_best(&self, step: usize) -> Result<Sidecar, BadCheckpoint> {
        self.with_best(step).map(|(sidecar, _)| sidecar)
    }

    /// The checkpoint of a step, and that of its best epoch if it is another one: it is only valid together with these
    /// weights, with which the run ends.
    pub(super) fn with_best(
        &self,
        step: usize,
    ) -> Result<(Sidecar, Option<(usize, Sidecar)>), BadCheckpoint> {
        let (sidecar, position) = self.check(step)?;
        let Some(best) = position.best.filter(|best| best.step != step) else {
            return Ok((sidecar, None));
        };
        let wrong = |reason| BadCheckpoint::Best(best.step, Box::new(reason));
        let (of_best, _) = self.check(best.step).map_err(wrong)?;
        Ok((sidecar, Some((best.step, of_best))))
    }

    /// The checkpoint of a step, if it is complete and belongs to the run.
    ///
    /// # Errors
    ///
    /// Why it is not.
    pub fn read(&self, step: usize) -> Result<Sidecar, BadCheckpoint> {
        self.check(step).map(|(sidecar, _)| sidecar)
    }

    fn check(&self, step: usize) -> Result<(Sidecar, Position), BadCheckpoint> {
        let sidecar = Sidecar::read(self.folder, step)?;
        if sidecar.format != FORMAT {
            return Err(BadCheckpoint::OtherFormat(sidecar.format));
        }
        let is_ours = sidecar.fingerprint == self.plan.fingerprint
            || self
                .plan
                .goes_on_from(&sidecar.fingerprint, sidecar.epochs, step)
                .is_ok();
        if !is_ours {
            return Err(BadCheckpoint::OtherPlan);
        }
        if self
            .data_digests
            .is_some_and(|digests| *digests != sidecar.data_digests)
        {
            return Err(BadCheckpoint::OtherData);
        }
        let position: Position =
            Position::deserialize(&sidecar.state).map_err(BadCheckpoint::Damaged)?;
        let before = |all: &[Adjustment]| -> Vec<Adjustment> {
            let mut before = all.to_vec();
            before.retain(|adjustment| adjustment.from_step < step);
            before
        };
        if before(&position.adjustments) != before(self.adjustments) {
            return Err(BadCheckpoint::OtherPast);
        }
        if sidecar.sha256.get(STATE) != Some(&sidecar.state_sum()) {
            return Err(BadCheckpoint::WrongSidecar);
        }
        let at = position.epochs_done.checked_mul(self.plan.steps_per_epoch);
        if at.and_then(|at| at.checked_add(position.steps_in_epoch)) != Some(step) {
            return Err(BadCheckpoint::OtherStep);
        }
        for part in CHECKPOINT_PARTS {
            if sidecar.sha256.get(part) != Some(&part_sum(self.folder, part, step)?) {
                return Err(BadCheckpoint::WrongPart(part, step));
            }
        }
        Ok((sidecar, position))
    }
}

/// The sha256 of a file of a checkpoint.
///
/// # Errors
///
/// If it cannot be read.
pub fn part_sum(
    folder: &RunFolder,
    part: &'static str,
    step: usize,
) -> Result<String, BadCheckpoint> {
    plain_file::open(&folder.checkpoint_part(part, step))
        .and_then(sha256_of)
        .map_err(|e| BadCheckpoint::UnreadablePart(part, step, e))
}

/// Why a checkpoint cannot be used for a run.
#[derive(Debug)]
pub enum BadCheckpoint {
    /// Its sidecar cannot be read.
    Unreadable(io::Error),
    /// Its sidecar is too large.
    TooLarge,
    /// The content of its sidecar is invalid.
    Damaged(serde_json::Error),
    /// It was written by another version.
    OtherFormat(u32),
    /// It belongs to another plan.
    OtherPlan,
    /// The run was trained on different data.
    OtherData,
    /// The run was adjusted differently before it.
    OtherPast,
    /// Its sidecar was changed.
    WrongSidecar,
    /// Its sidecar belongs to another step.
    OtherStep,
    /// A file was changed.
    WrongPart(&'static str, usize),
    /// A file cannot be read.
    UnreadablePart(&'static str, usize, io::Error),
    /// The checkpoint of its best epoch cannot be used.
    Best(usize, Box<BadCheckpoint>),
}

impl fmt::Display for BadCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(e) => write!(f, "{e}"),
            Self::TooLarge => f.write_str("its sidecar is too large"),
            Self::Damaged(e) => write!(f, "its sidecar is damaged: {e}"),
            Self::OtherFormat(format) => {
                write!(f, "its format is {format}, and this runner reads {FORMAT}")
            }
            Self::OtherPlan => f.write_str("it belongs to another plan"),
            Self::OtherData => f.write_str("the data changed since it was written"),
            Self::OtherPast => f.write_str("the run was adjusted differently before it"),
            Self::WrongSidecar => f.write_str("the sha256 sum of its sidecar is wrong"),
            Self::OtherStep => f.write_str("its sidecar belongs to another step"),
            Self::WrongPart(part, step) => {
                write!(f, "the sha256 sum of {part}-{step}.bpk is wrong")
            }
            Self::UnreadablePart(part, step, e) => {
                write!(f, "{part}-{step}.bpk cannot be read: {e}")
            }
            Self::Best(step, reason) => {
                write!(f, "its best epoch's checkpoint {step}: {reason}")
            }
        }
    }
}

impl std::error::Error for BadCheckpoint {}
