//! SLURM: `sbatch`, `squeue`, `scontrol`, `sacct` and `scancel`. Their output for programs is parsed, since their JSON
//! changes between versions.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::{Refusal, ask};
use runner_core::record::{Job, JobState, Submission};
use runner_core::spec::launch::Slurm;

/// The size of arrays if the cluster does not say.
const ARRAY: usize = 1001;

/// The states of SLURM in which a job waits, and in which it runs; in any other one it has ended.
const WAITING: [&str; 7] = [
    "PENDING",
    "CONFIGURING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
];
const RUNNING: [&str; 7] = [
    "RUNNING",
    "COMPLETING",
    "SUSPENDED",
    "STOPPED",
    "RESIZING",
    "SIGNALING",
    "STAGE_OUT",
];

/// Whether its programs are on this machine. An error is that they are missing.
pub(super) fn find() -> Result<(), Refusal> {
    let mut command = Command::new("sbatch");
    command.arg("--version");
    match ask(command) {
        Err(refusal) if refusal.is_missing => Err(refusal),
        _ => Ok(()),
    }
}

/// The largest number of elements of an array.
pub(super) fn array_size() -> usize {
    let mut command = Command::new("scontrol");
    command.args(["show", "config"]);
    let config = ask(command).unwrap_or_default();
    let size = config.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "MaxArraySize").then(|| value.trim().parse().ok())?
    });
    size.filter(|size| *size > 0).unwrap_or(ARRAY)
}

/// The name of an array.
fn name(submission: &Submission, first: usize) -> String {
    format!("{}.{}.{first}", submission.plan.experiment, submission.key)
}

/// Submits an array; returns its id.
pub(super) fn submit(
    submission: &Submission,
    slurm: &Slurm,
    job: &Job,
    script: &Path,
    logs: &Path,
) -> Result<String, Refusal> {
    if logs.to_string_lossy().contains('\\') {
        return Err(Refusal {
            program: "sbatch".into(),
            words: format!(
                "takes the backslash of `{}` for a sign that its logs have no pattern; use a folder without one, with `--results DIR`",
                logs.display()
            ),
            is_missing: false,
        });
    }
    let mut command = Command::new("sbatch");
    command.args(arguments(submission, slurm, job));
    // A percent sign of the path is no pattern.
    let logs = logs.display().to_string().replace('%', "%%");
    command.arg(format!("--output={logs}/%A_%a.log"));
    command.arg(script).arg(job.first.to_string());
    let printed = ask(command)?;
    // `ID` or `ID;CLUSTER`.
    let id = printed.trim().split(';').next().unwrap_or_default();
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Refusal {
            program: "sbatch".into(),
            words: format!("printed `{}` instead of the id of a job", printed.trim()),
            is_missing: false,
        });
    }
    Ok(id.to_owned())
}

fn arguments(submission: &Submission, slurm: &Slurm, job: &Job) -> Vec<String> {
    let num_arrays = submission.jobs.len().max(1);
    let after = slurm.max_running.and_then(|most| {
        // Each array runs one job at least, so of more arrays than that, the others wait for their end.
        let at = submission
            .jobs
            .iter()
            .position(|it| it.first == job.first)?;
        Some(submission.jobs.get(at.checked_sub(most)?)?.id.clone())
    });
    let at_once = slurm.max_running.map_or(String::new(), |most| {
        format!("%{}", (most / num_arrays).max(1))
    });
    let mut arguments = vec![
        "--parsable".to_owned(),
        "--requeue".to_owned(),
        "--open-mode=append".to_owned(),
        format!("--job-name={}", name(submission, job.first)),
        format!("--array=0-{}{at_once}", job.count - 1),
        format!("--signal=B:USR1@{}", slurm.grace.as_secs()),
    ];
    let mut add = |name: &str, value: Option<String>| {
        arguments.extend(value.map(|value| format!("--{name}={value}")));
    };
    add("dependency", after.map(|id| format!("afterany:{id}")));
    add("partition", slurm.partition.clone());
    add("account", slurm.account.clone());
    add("time", slurm.time.map(minutes));
    add("cpus-per-task", slurm.cpus.map(|num| num.to_string()));
    add("gpus", slurm.gpus.map(|num| num.to_string()));
    let mebibytes = slurm.memory_bytes.map(|bytes| bytes.div_ceil(1 << 20));
    add("mem", mebibytes.map(|num| format!("{num}M")));
    arguments.extend(slurm.arguments.iter().cloned());
    arguments
}

/// SLURM counts time limits in minutes.
fn minutes(time: Duration) -> String {
    Slurm::minutes(time).to_string()
}

/// The states of elements, and the id of each array, by its first element.
type Queue = (BTreeMap<usize, JobState>, BTreeMap<usize, String>);

/// The elements that wait or run, with the id of each array that is there.
pub(super) fn queue(submission: &Submission) -> Result<Queue, Refusal> {
    let names = submission
        .jobs
        .iter()
        .map(|job| name(submission, job.first));
    let names: Vec<String> = names.collect();
    let mut command = Command::new("squeue");
    command.args(["-h", "-r", "-o", "%j|%F|%K|%T|%r"]);
    command.arg(format!("--name={}", names.join(",")));
    Ok(parse_queue(&ask(command)?))
}

/// Parses lines `NAME|ARRAY|ELEMENT|STATE|REASON`.
fn parse_queue(text: &str) -> Queue {
    let (mut states, mut ids) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        let mut cells = line.splitn(5, '|').map(str::trim);
        let mut next = || cells.next().unwrap_or_default();
        let (name, id, element, state, reason) = (next(), next(), next(), next(), next());
        let first = name
            .rsplit('.')
            .next()
            .and_then(|it| it.parse::<usize>().ok());
        let (Some(first), Ok(element)) = (first, element.parse::<usize>()) else {
            continue;
        };
        ids.insert(first, id.to_owned());
        let state = if WAITING.contains(&state) {
            JobState::Queued {
                reason: reason.to_owned(),
            }
        } else if RUNNING.contains(&state) {
            JobState::Running
        } else {
            JobState::Ended {
                how: state.to_owned(),
            }
        };
        states.insert(first + element, state);
    }
    (states, ids)
}

/// How the elements of arrays ended: according to the accounting, or else to the controller, which forgets jobs after
/// some minutes.
pub(super) fn endings(submission: &Submission) -> BTreeMap<usize, String> {
    let known = submission.jobs.iter().filter(|job| !job.id.is_empty());
    let ids: Vec<&str> = known.clone().map(|job| job.id.as_str()).collect();
    let mut endings = BTreeMap::new();
    for job in known {
        let mut command = Command::new("scontrol");
        command.args(["show", "job", &job.id, "-o"]);
        if let Ok(text) = ask(command) {
            endings.extend(parse_jobs(&text).map(|(at, how)| (job.first + at, how)));
        }
    }
    let mut command = Command::new("sacct");
    command.args(["-X", "-n", "-P", "-o", "JobID,State", "-j", &ids.join(",")]);
    if let Ok(text) = ask(command) {
        for (id, at, how) in parse_accounts(&text) {
            let job = submission.jobs.iter().find(|job| job.id == id);
            endings.extend(job.map(|job| (job.first + at, how)));
        }
    }
    endings
}

/// Parses the lines of `scontrol show job -o`: element and state of those that have ended.
fn parse_jobs(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().filter_map(|line| {
        let value = |key: &str| {
            let mut words = line.split_whitespace();
            words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        let state = value("JobState")?;
        let is_over = !WAITING.contains(&state) && !RUNNING.contains(&state);
        let element = value("ArrayTaskId")?.parse().ok()?;
        is_over.then(|| (element, state.to_owned()))
    })
}

/// Parses lines `ARRAY_ELEMENT|STATE` of `sacct`: `CANCELLED by 1000` is a state with its cause.
fn parse_accounts(text: &str) -> Vec<(String, usize, String)> {
    let lines = text.lines().filter_map(|line| {
        let (id, state) = line.split_once('|')?;
        let (array, element) = id.split_once('_')?;
        let word = state.split_whitespace().next()?;
        let is_over = !WAITING.contains(&word) && !RUNNING.contains(&word);
        let element = element.parse().ok()?;
        is_over.then(|| (array.to_owned(), element, state.trim().to_owned()))
    });
    lines.collect()
}

/// Cancels what is queued or runs of a submission.
pub(super) fn cancel(submission: &Submission) -> Result<(), Refusal> {
    for job in &submission.jobs {
        let mut command = Command::new("scancel");
        if job.id.is_empty() {
            command.arg(format!("--name={}", name(submission, job.first)));
        } else {
            command.arg(&job.id);
        }
        ask(command)?;
    }
    Ok(())
}

/// Queues a job again. To be called by the job itself.
pub(super) fn requeue(job: &str) -> Result<(), Refusal> {
    let mut command = Command::new("scontrol");
    command.args(["requeue", job]);
    ask(command).map(drop)
}

/// The script of the jobs. Its argument is the first element of the array.
pub(super) fn script(start: &str) -> String {
    let mut script = start.to_owned();
    // The shell is replaced, since signals are only sent to the first process.
    let _ = writeln!(
        script,
        "\"$(($1 + SLURM_ARRAY_TASK_ID))\" --job \"${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}\""
    );
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_parsed() {
        // Of SLURM 22.05, with a dot in the name of the experiment.
        let text = "\
            a.b.k3y.0|17|0|RUNNING|None\n\
            a.b.k3y.0|17|2|PENDING|Resources\n\
            a.b.k3y.1000|18|1|PENDING|BeginTime\n\
            a.b.k3y.0|17|3|COMPLETED|None\n\
            slurm_load_jobs error\n";
        let (states, ids) = parse_queue(text);
        let queued = |reason: &str| JobState::Queued {
            reason: reason.into(),
        };
        assert_eq!(states[&0], JobState::Running);
        assert_eq!(states[&2], queued("Resources"));
        assert_eq!(states[&1001], queued("BeginTime"));
        let ended = JobState::Ended {
            how: "COMPLETED".into(),
        };
        assert_eq!((&states[&3], states.len()), (&ended, 4));
        assert_eq!(ids, [(0, "17".to_owned()), (1000, "18".to_owned())].into());
    }

    #[test]
    fn endings_are_parsed() {
        let jobs = "JobId=12 ArrayJobId=9 ArrayTaskId=3 JobName=x JobState=NODE_FAIL Reason=NodeDown\n\
            JobId=13 ArrayJobId=9 ArrayTaskId=4 JobName=x JobState=RUNNING Reason=None\n\
            JobId=9 ArrayJobId=9 ArrayTaskId=5-9 JobName=x JobState=PENDING Reason=None\n";
        let jobs: Vec<_> = parse_jobs(jobs).collect();
        assert_eq!(jobs, [(3, "NODE_FAIL".to_owned())]);
        let accounts = parse_accounts("9_3|CANCELLED by 1000\n9_4|RUNNING\n9_[5-9]|PENDING\n");
        let cancelled = "CANCELLED by 1000".to_owned();
        assert_eq!(accounts, [("9".to_owned(), 3, cancelled)]);
    }

    #[test]
    fn time_limits_are_whole_minutes() {
        let minutes = |secs| minutes(Duration::from_secs(secs));
        assert_eq!([minutes(1), minutes(60), minutes(61)], ["1", "1", "2"]);
    }
}
