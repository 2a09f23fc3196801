//! Submissions: the runs that were handed to a cluster, by job, and what the cluster last said about the jobs.
//!
//! ```text
//! launch/
//!   <key>.json         a submission: its runs by job, how they were submitted, the ids of the jobs
//!   <key>.runs.jsonl   the plans of its runs, until it is over (`submitted.rs`)
//!   <key>.sh           the script of its jobs
//!   <key>.status.json  what the cluster last said; written by whoever asks
//!   <key>.cancelled    why no further run of it starts
//!   <key>/             the output of its jobs
//!   submitter/         which command may plan and submit runs (`lease.rs`)
//!   leases/<run>/      which process may write to a run (`lease.rs`)
//!   fenced/<run>@…     folders of runs whose process was believed dead, and may have written to them since
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::format::of_another_version;
use super::lease::{Tenant, write_record};
use super::{ExperimentFolder, RunEntry, State, damage::damaged, name, unwritable, write_whole};
use crate::plan::Plan;
use crate::spec::launch::LaunchSpec;
use crate::spec::plain_file;

/// The version of the records of submissions.
const FORMAT: u32 = 1;

/// The runs that one command handed to a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    /// The version of this format.
    pub format: u32,
    /// Its name, which no other submission has.
    pub key: String,
    /// When, in milliseconds since 1970 by the clock of the machine that submitted.
    pub time_ms: u64,
    /// That machine.
    pub host: String,
    /// How.
    pub launch: LaunchSpec,
    /// The plan without its runs.
    pub plan: Plan,
    /// The program that trains.
    pub program: PathBuf,
    /// The arguments of every worker.
    pub arguments: Vec<String>,
    /// The experiment file.
    pub spec: PathBuf,
    /// A failure to provoke, for tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The runs of each job.
    pub elements: Vec<Vec<String>>,
    /// Where the plan of each run begins in the file that has them; empty in submissions of earlier versions, whose runs
    /// had a folder when they were submitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<u64>,
    /// Where a search ends its runs, as their workers are told; others are trained to their end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pauses: BTreeMap<String, String>,
    /// The jobs of the cluster; empty while it is being submitted.
    #[serde(default)]
    pub jobs: Vec<Job>,
    /// Whether each of its runs was dealt with: nothing of it is queued or runs.
    #[serde(default)]
    pub is_over: bool,
}

/// A job of a cluster, or an array of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// The first element of the submission that it has.
    pub first: usize,
    /// How many it has.
    pub count: usize,
}

/// What a cluster says about an element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum JobState {
    /// It waits.
    Queued {
        /// Why, in the cluster's words; empty if it gives no reason.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// It runs.
    Running,
    /// It has ended.
    Ended {
        /// How, in the cluster's words; empty if it does not say.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        how: String,
    },
}

/// What a cluster said about a submission.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobStates {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// By element; those that are missing are unknown.
    pub elements: BTreeMap<usize, JobState>,
}

#[derive(Deserialize)]
struct Head {
    format: u32,
}

impl Submission {
    /// The version of records that this program writes.
    pub const FORMAT: u32 = FORMAT;

    /// The element of a run.
    pub fn element_of(&self, run: &str) -> Option<usize> {
        self.elements
            .iter()
            .position(|runs| runs.iter().any(|it| it == run))
    }

    /// The number of runs.
    pub fn num_runs(&self) -> usize {
        self.elements.iter().map(Vec::len).sum()
    }

    /// The id of an element's job, as the cluster names it.
    pub fn job_of(&self, element: usize) -> Option<String> {
        let holds = |job: &&Job| (job.first..job.first + job.count).contains(&element);
        let job = self.jobs.iter().find(holds)?;
        Some(if self.is_array() {
            format!("{}_{}", job.id, element - job.first)
        } else {
            job.id.clone()
        })
    }

    /// Whether a process is its submitter, whose jobs have no ids yet.
    pub fn is_of(&self, tenant: &Tenant) -> bool {
        self.host == tenant.host && self.key.ends_with(&format!("-{:x}", tenant.pid))
    }

    /// Whether its jobs are elements of arrays.
    pub fn is_array(&self) -> bool {
        match &self.launch.system {
            crate::spec::launch::System::Command(commands) => commands.index.is_some(),
            _ => true,
        }
    }
}

impl ExperimentFolder {
    /// The record of a submission.
    pub fn submission_json(&self, key: &str) -> PathBuf {
        self.launch().join(format!("{key}.json"))
    }

    /// The script of a submission's jobs.
    pub fn submission_script(&self, key: &str) -> PathBuf {
        self.launch().join(format!("{key}.sh"))
    }

    /// The folder of the output of a submission's jobs.
    pub fn submission_logs(&self, key: &str) -> PathBuf {
        self.launch().join(key)
    }

    fn status_json(&self, key: &str) -> PathBuf {
        self.launch().join(format!("{key}.status.json"))
    }

    fn cancelled(&self, key: &str) -> PathBuf {
        self.launch().join(format!("{key}.cancelled"))
    }

    /// Writes a submission.
    pub fn write_submission(&self, submission: &Submission) -> io::Result<()> {
        write_record(&self.submission_json(&submission.key), submission)
    }

    /// Reads a submission. One that another version wrote is an error that says so.
    pub fn read_submission(&self, key: &str) -> io::Result<Submission> {
        let path = self.submission_json(key);
        let text =
            plain_file::read_text(&path).map_err(|e| super::format::unreadable(&path, &e))?;
        let invalid = |e: serde_json::Error| damaged(&path, e.to_string());
        let head: Head = serde_json::from_str(&text).map_err(invalid)?;
        if head.format != FORMAT {
            let wrote = format!(
                "was written in format {}; this runner reads format {FORMAT}",
                head.format
            );
            return Err(of_another_version(&path, wrote));
        }
        let submission: Submission = serde_json::from_str(&text).map_err(invalid)?;
        name::check(&path, "submission", &submission.key)?;
        for run in submission.elements.iter().flatten() {
            name::check(&path, "run", run)?;
        }
        Ok(submission)
    }

    /// All submissions, oldest first. Those that cannot be read are errors.
    pub fn submissions(&self) -> Vec<io::Result<Submission>> {
        let entries = fs::read_dir(self.launch()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let keys = names.filter_map(|name| {
            let key = name.strip_suffix(".json")?;
            (!key.contains('.')).then(|| key.to_owned())
        });
        let mut all: Vec<_> = keys.map(|key| self.read_submission(&key)).collect();
        all.sort_by_key(|read| read.as_ref().map_or(0, |it| it.time_ms));
        all
    }

    /// The submissions of which something may be queued or running, oldest first.
    pub fn open_submissions(&self) -> Vec<Submission> {
        let all = self.submissions().into_iter().flatten();
        all.filter(|submission| !submission.is_over).collect()
    }

    /// What the cluster last said about a submission.
    pub fn read_job_states(&self, key: &str) -> Option<JobStates> {
        let text = plain_file::read_whole(&self.status_json(key)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Keeps what the cluster says about a submission.
    pub fn write_job_states(&self, key: &str, states: &JobStates) -> io::Result<()> {
        write_record(&self.status_json(key), states)
    }

    /// Lets no further run of a submission start; active ones save a checkpoint and stop.
    pub fn cancel_submission(&self, key: &str, reason: &str) -> io::Result<()> {
        let path = self.cancelled(key);
        write_whole(&path, reason.as_bytes()).map_err(|e| unwritable(&path, e))
    }

    /// Why no further run of a submission starts, if so.
    pub fn why_cancelled(&self, key: &str) -> Option<String> {
        match plain_file::read_text(&self.cancelled(key)) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => Some(e.to_string()),
            Ok(reason) => Some(reason),
        }
    }

    /// Gives runs that were handed to a cluster their state there, from what it last said.
    pub(super) fn attach_jobs(&self, runs: &mut [RunEntry]) {
        if !self.launch().is_dir() {
            return;
        }
        let mut places: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        let open = self.open_submissions();
        for (at, submission) in open.iter().enumerate() {
            for (element, ids) in submission.elements.iter().enumerate() {
                places.extend(ids.iter().map(|id| (id.clone(), (at, element))));
            }
        }
        let states: Vec<Option<JobStates>> = open
            .iter()
            .map(|submission| self.read_job_states(&submission.key))
            .collect();
        for run in runs {
            let Some((at, element)) = places.get(&run.id) else {
                continue;
            };
            let (submission, states) = (&open[*at], &states[*at]);
            let state = states.as_ref().and_then(|it| it.elements.get(element));
            self.attach_job(run, submission, *element, state);
        }
    }

    fn attach_job(
        &self,
        run: &mut RunEntry,
        submission: &Submission,
        element: usize,
        state: Option<&JobState>,
    ) {
        if matches!(run.state, State::Completed | State::Skipped) || run.state.is_unreadable() {
            return;
        }
        // Only of runs that have begun, of which there are few at a time.
        let held = match run.state {
            State::NotStarted => None,
            _ => self.held(&run.id).ok().flatten(),
        };
        let is_its = held.as_ref().is_some_and(|held| {
            let tenant = held.tenant.as_ref();
            tenant.is_some_and(|it| it.submission == submission.key && it.element == element)
        });
        let is_free = held.as_ref().is_none_or(|held| held.is_released);
        let job = submission.job_of(element);
        let job = job.map_or_else(|| "a job".to_owned(), |job| format!("job {job}"));
        match state {
            // Submitted just now.
            None => run.queue(State::Queued, job),
            Some(JobState::Queued { reason }) => {
                let state = if is_its {
                    State::Requeued
                } else {
                    State::Queued
                };
                let reason = match reason.as_str() {
                    "" | "None" => String::new(),
                    reason => format!(" ({reason})"),
                };
                run.queue(state, format!("{job}{reason}"));
            }
            Some(JobState::Running) if is_its && !is_free => run.state = State::Running,
            // It comes after others of its job; one that has failed there stays so.
            Some(JobState::Running) if !is_its => run.queue(State::Queued, job),
            Some(JobState::Running) => {}
            Some(JobState::Ended { how }) => {
                let how = match how.as_str() {
                    "" => "has ended".to_owned(),
                    how => format!("ended as {how}"),
                };
                if !matches!(run.state, State::Failed | State::Pruned) {
                    run.message = format!("{job} {how}");
                }
            }
        }
    }
}

impl RunEntry {
    fn queue(&mut self, state: State, job: String) {
        self.state = state;
        self.failure = None;
        self.message = job;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_out_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = ExperimentFolder(folder.path().to_owned());
        fs::create_dir_all(experiment.launch()).unwrap();
        let write = |text: &str| fs::write(experiment.submission_json("k"), text).unwrap();
        write("{\"format\": 99}");
        let error = experiment.read_submission("k").unwrap_err();
        assert!(super::super::is_other_format(&error), "{error}");
        write("{\"format\": 1, \"key\": 3}");
        let error = experiment.read_submission("k").unwrap_err();
        assert!(super::super::is_damaged(&error), "{error}");
        assert!(experiment.open_submissions().is_empty());
    }
}
