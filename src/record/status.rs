//! What a results folder already holds of a plan.

use std::collections::BTreeSet;
use std::io;

use serde_json::Value as Json;

use super::{Changed, ExperimentFolder, RunFolder, RunRecord, changed, is_guard};
use crate::event::Outcome;
use crate::plan::RunPlan;
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
        }
    }
}

/// Looks at one run's folder.
pub fn status(plan: &RunPlan, folder: &RunFolder) -> io::Result<Status> {
    let Some(there) = folder.read_plan()? else {
        return Ok(Status::New);
    };
    let step = folder.checkpoint_steps().first().copied().unwrap_or(0);
    if there.fingerprint != plan.fingerprint {
        return Ok(of_other_work(&there, plan, step));
    }
    let record = RunRecord::read(folder)?;
    Ok(match record.outcome {
        Some(Outcome::Completed) => Status::Completed,
        Some(Outcome::Failed { class, .. }) => Status::Failed {
            class: class.name().to_owned(),
        },
        _ if record.started.is_none() && step == 0 => Status::New,
        _ => Status::Begun { step },
    })
}

/// A run of another fingerprint may be the beginning of the plan's.
fn of_other_work(there: &RunPlan, plan: &RunPlan, step: usize) -> Status {
    let (before, now) = (there.train.epochs, plan.train.epochs);
    let mut reasons = differences(there, plan);
    if before < now {
        match plan.goes_on_from(&there.fingerprint, before, there.num_steps()) {
            Ok(()) => {
                return Status::Shorter {
                    epochs: before,
                    step,
                };
            }
            // Where more than the length differs, that is reason enough.
            Err(reason) if reasons.len() <= 1 => reasons.push(reason),
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
