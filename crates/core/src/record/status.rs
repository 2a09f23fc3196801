//! The state of a plan in a results folder.

use std::collections::BTreeSet;
use std::io;

use serde_json::Value as Json;

use super::{
    Begun, Changed, Checkpoints, ExperimentFolder, ResumePoint, RunFolder, RunRecord, changed,
    in_parallel, is_damaged, is_guard, is_other_format, remedy,
};
use crate::event::Outcome;
use crate::plan::RunPlan;
use crate::show::plain_io_error;
use crate::spec::section::Choice;

/// The remaining work for one run.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// Nothing exists.
    New,
    /// It is completed.
    Completed,
    /// It was started, and resumes from a checkpoint of this step; 0 for none.
    Begun {
        /// Optimizer updates that need not be repeated.
        step: usize,
    },
    /// It was trained for fewer epochs, and is extended from a checkpoint of this step.
    Shorter {
        /// Its previous number of epochs.
        epochs: usize,
        /// Optimizer updates that need not be repeated; 0 for none.
        step: usize,
    },
    /// The search that it is part of ended it after this epoch. It is resumed if the search or the user asks for more.
    Pruned {
        /// The last epoch that was trained.
        epoch: usize,
    },
    /// It failed, and is retried.
    Failed {
        /// The class of the failure.
        class: String,
    },
    /// The folder contains different work under the same name; it is rerun.
    Different {
        /// The keys that differ, with recorded and current value, and why it cannot continue.
        reasons: Vec<String>,
    },
    /// The folder's files were damaged or changed; it is moved aside, and the run is trained again.
    Damaged {
        /// What is wrong with which file.
        reason: String,
    },
    /// The folder's files cannot be read here or now, or the run cannot be trained here and would replace them; it is
    /// skipped.
    Unreadable {
        /// Why.
        reason: String,
        /// The remedy.
        remedy: &'static str,
    },
}

impl Status {
    /// The remaining work, as text.
    pub fn to_do(&self) -> String {
        match self {
            Status::New => "new".into(),
            Status::Completed => "done".into(),
            Status::Begun { step: 0 } => "to start".into(),
            Status::Begun { step } => format!("to resume at step {step}"),
            Status::Shorter { epochs, step } => {
                format!("to extend from {epochs} epochs, at step {step}")
            }
            Status::Pruned { epoch } => format!("pruned after epoch {epoch}"),
            Status::Failed { class } => format!("failed ({class}), to retry"),
            Status::Different { reasons } => format!("to rerun: {}", reasons.join("; ")),
            Status::Damaged { reason } => format!("to rerun: {reason}"),
            Status::Unreadable { reason, .. } => format!("to leave alone: {reason}"),
        }
    }
}

/// Inspects one run's folder. An error is about what another version wrote, or a path that is not a folder: problems
/// with the files of one run are part of its status.
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

/// Inspects the folders of runs, in their order, like [`status`].
pub fn statuses(
    runs: &[&RunPlan],
    folder: &ExperimentFolder,
    begun: &Begun,
) -> Vec<io::Result<Status>> {
    in_parallel(runs, |run| {
        if begun.may_have(&run.id) {
            status(run, &folder.run(&run.id)).map(|status| kept(run, status))
        } else {
            Ok(Status::New)
        }
    })
}

/// A run that cannot be trained here replaces nothing.
fn kept(run: &RunPlan, status: Status) -> Status {
    let replaced = match &status {
        Status::Different { .. } => "results of other settings",
        Status::Shorter { .. } => "a completed run of fewer epochs",
        Status::Damaged { .. } => "damaged files",
        _ => return status,
    };
    match &run.skip {
        None => status,
        Some(reason) => Status::Unreadable {
            reason: format!("it cannot be trained here ({reason}), and its folder has {replaced}"),
            remedy: "train it where its device is, or set another `experiment.name`",
        },
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
        Some(Outcome::Pruned { epoch, .. }) => Status::Pruned { epoch: *epoch },
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

/// A run with another fingerprint may be the beginning of the plan's.
fn of_other_work(there: &RunPlan, plan: &RunPlan, folder: &RunFolder) -> Status {
    let (before, now) = (there.train.epochs, plan.train.epochs);
    let mut reasons = differences(there, plan);
    if there.format < plan.format {
        let reason = "it was written by an earlier version, whose records have no checksums";
        reasons.insert(0, reason.into());
    }
    if before < now {
        match plan.goes_on_from(&there.fingerprint, before, there.num_steps()) {
            Ok(()) => {
                // Unreadable files are reported together with the events.
                let record = RunRecord::read_for(folder, there).unwrap_or_default();
                return Status::Shorter {
                    epochs: before,
                    step: resume_point(plan, folder, &record).step,
                };
            }
            // If more than the length differs, that is reason enough.
            Err(reason) if reasons.len() <= 1 => reasons.push(reason.to_string()),
            Err(_) => {}
        }
    }
    if reasons.is_empty() {
        // Such as a run with groups, whose fingerprint contained the patterns.
        reasons.push(
            "it was written by an earlier version of runner, which identified it differently"
                .into(),
        );
    }
    Status::Different { reasons }
}

/// The ids of runs that exist in the folder but not in the plan.
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

/// The differing settings that affect numbers, as text; limits and paths are omitted.
fn differences(there: &RunPlan, now: &RunPlan) -> Vec<String> {
    let word = |value: Option<Json>| value.map_or("nothing".to_owned(), |value| value.to_string());
    let is_there = |value: &Option<Json>| value.as_ref().is_some_and(|value| !value.is_null());
    let keys = changed(there, now).into_iter();
    // Of a table that appears, its keys are listed.
    let keys = keys.filter(|changed| is_there(&changed.then) || is_there(&changed.now));
    keys.filter(|changed| !is_guard(&changed.key))
        .map(|Changed { key, then, now }| format!("`{key}` was {}, is {}", word(then), word(now)))
        .chain(there.network.change(&now.network))
        .chain(there.change_of_groups(now))
        .collect()
}
