//! What a results folder already holds of a plan.

use std::collections::BTreeSet;
use std::io;

use serde_json::Value as Json;

use super::{
    Changed, Checkpoints, ExperimentFolder, ResumePoint, RunFolder, RunRecord, changed, is_damaged,
    is_guard, is_other_format, remedy,
};
use crate::event::Outcome;
use crate::plan::RunPlan;
use crate::spec::document::plain_io_error;
use crate::spec::section::Choice;

/// What is left to do for one run.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// Nothing is there.
    New,
    /// It is completed.
    Completed,
    /// It was begun, and goes on from a checkpoint of this step; 0 for none.
    Begun {
        /// Optimizer updates that need not be made again.
        step: usize,
    },
    /// It was made for fewer epochs, and goes on from a checkpoint of this step to more.
    Shorter {
        /// Epochs that it was made for.
        epochs: usize,
        /// Optimizer updates that need not be made again; 0 for none.
        step: usize,
    },
    /// It failed, and is tried again.
    Failed {
        /// The kind of failure.
        class: String,
    },
    /// The folder holds a run of the same name that is other work; it is made anew.
    Different {
        /// The keys that differ, with the value there and the value now, and why it cannot go on.
        reasons: Vec<String>,
    },
    /// The folder's files are not what was written to them; it is moved aside, and the run is trained again.
    Damaged {
        /// What is wrong with which file.
        reason: String,
    },
    /// The folder's files cannot be read here or now; the run is left alone.
    Unreadable {
        /// Why.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
}

impl Status {
    /// What is to be done, in words.
    pub fn to_do(&self) -> String {
        match self {
            Status::New => "new".into(),
            Status::Completed => "done".into(),
            Status::Begun { step: 0 } => "to begin anew".into(),
            Status::Begun { step } => format!("to resume at step {step}"),
            Status::Shorter { epochs, step } => {
                format!("to extend from {epochs} epochs, at step {step}")
            }
            Status::Failed { class } => format!("failed ({class}), to retry"),
            Status::Different { reasons } => format!("to rerun: {}", reasons.join("; ")),
            Status::Damaged { reason } => format!("to rerun: {reason}"),
            Status::Unreadable { reason, .. } => format!("to leave alone: {reason}"),
        }
    }
}

/// Looks at one run's folder. An error is of what another version wrote, or of a path that leads to no folder: what is
/// wrong with the files of one run is its status.
pub fn status(plan: &RunPlan, folder: &RunFolder) -> io::Result<Status> {
    match look(plan, folder) {
        Err(e) if is_other_format(&e) || e.kind() == io::ErrorKind::NotADirectory => Err(e),
        Err(e) if is_damaged(&e) => Ok(Status::Damaged {
            reason: plain_io_error(&e),
        }),
        Err(e) => Ok(Status::Unreadable {
            reason: plain_io_error(&e),
            remedy: remedy(&e),
        }),
        looked => looked,
    }
}

fn look(plan: &RunPlan, folder: &RunFolder) -> io::Result<Status> {
    if !folder.holds(plan)? {
        return Ok(match folder.read_plan()? {
            Some(there) => of_other_work(&there, plan, folder),
            None => Status::New,
        });
    }
    let record = RunRecord::read_for(folder, plan)?;
    Ok(match &record.outcome {
        Some(Outcome::Completed) => Status::Completed,
        Some(Outcome::Failed { class, .. }) => Status::Failed {
            class: class.name().to_owned(),
        },
        _ => match resume_point(plan, folder, &record).step {
            0 if record.started.is_none() => Status::New,
            step => Status::Begun { step },
        },
    })
}

/// Where the run of a folder resumes as it is planned now. Whether the data is still the same is seen when it is read.
pub fn resume_point(plan: &RunPlan, folder: &RunFolder, record: &RunRecord) -> ResumePoint {
    ResumePoint::of(&Checkpoints {
        folder,
        plan,
        adjustments: &record.attempts.adjustments,
        data_digests: None,
    })
}

/// A run of another fingerprint may be the beginning of the plan's.
fn of_other_work(there: &RunPlan, plan: &RunPlan, folder: &RunFolder) -> Status {
    let (before, now) = (there.train.epochs, plan.train.epochs);
    let mut reasons = differences(there, plan);
    if there.format < plan.format {
        let reason = "it was made by an earlier version, whose records have no checksums";
        reasons.insert(0, reason.into());
    }
    if before < now {
        match plan.goes_on_from(&there.fingerprint, before, there.num_steps()) {
            Ok(()) => {
                // What cannot be read is told where its events are.
                let record = RunRecord::read_for(folder, there).unwrap_or_default();
                return Status::Shorter {
                    epochs: before,
                    step: resume_point(plan, folder, &record).step,
                };
            }
            // Where more than the length differs, that is reason enough.
            Err(reason) if reasons.len() <= 1 => reasons.push(reason.to_string()),
            Err(_) => {}
        }
    }
    if reasons.is_empty() {
        // Such as a run with groups, of which the fingerprint had the patterns.
        reasons
            .push("an earlier version of runner made it, and identified it in another way".into());
    }
    Status::Different { reasons }
}

/// The ids of runs that the folder holds and the plan does not.
pub fn leftovers<'a>(
    planned: impl Iterator<Item = &'a str>,
    folder: &ExperimentFolder,
) -> Vec<String> {
    let ids: BTreeSet<&str> = planned.collect();
    let planned = |id: &String| ids.contains(id.as_str());
    folder
        .run_ids()
        .into_iter()
        .filter(|id| !planned(id))
        .collect()
}

/// What decides the numbers and differs, in words; what only guards a run is left out.
fn differences(there: &RunPlan, now: &RunPlan) -> Vec<String> {
    let word = |value: Option<Json>| value.map_or("nothing".to_owned(), |value| value.to_string());
    let keys = changed(there, now).into_iter();
    keys.filter(|changed| !is_guard(&changed.key))
        .map(|Changed { key, then, now }| format!("`{key}` was {}, is {}", word(then), word(now)))
        .chain(there.network.change(&now.network))
        .chain(there.change_of_groups(now))
        .collect()
}
