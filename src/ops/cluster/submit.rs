//! Hands runs to a cluster.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Refusal, commands, slurm};
use crate::error::Error;
use crate::ops::{Progress, Run, Sink};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::plan::{Plan, RunPlan, quoted};
use runner_core::record::{
    ExperimentFolder, Job, Submission, unix_millis, unwritable, write_whole,
};
use runner_core::spec::launch::{LaunchSpec, System, SystemKind};

/// Where the runs of a plan are trained: as the file says, or as the command does.
pub(in crate::ops) fn launch_of(options: &Run, plan: &Plan) -> Result<LaunchSpec, Error> {
    let Some(kind) = options.launch else {
        return Ok(plan.launch.clone());
    };
    plan.launch.on(kind).ok_or_else(|| {
        let message = "`--launch command` needs the commands of the cluster";
        let diagnostic = Diagnostic::error("usage", message);
        Error::refused(diagnostic.help(
            "add `[launch]` with `type = \"command\"` and `submit = \"qsub {script}\"` to the experiment file",
        ))
    })
}

/// Refuses a system whose programs are not on this machine.
pub(in crate::ops) fn refuse_without_programs(launch: &LaunchSpec) -> Result<(), Error> {
    match launch.system {
        System::Slurm(_) => slurm::find().map_err(|refusal| missing(&refusal)),
        System::Command(_) | System::Local(_) => Ok(()),
    }
}

/// Runs to hand to a cluster.
pub(in crate::ops) struct Request<'a> {
    pub(in crate::ops) options: &'a Run,
    pub(in crate::ops) folder: &'a ExperimentFolder,
    pub(in crate::ops) plan: &'a Plan,
    pub(in crate::ops) launch: LaunchSpec,
    /// Where a search ends runs.
    pub(in crate::ops) pauses: &'a BTreeMap<String, String>,
    /// The ids of the runs.
    pub(in crate::ops) runs: Vec<String>,
}

/// Submits jobs for runs. Those that the cluster does not accept are not started, and nothing is changed about them.
pub(in crate::ops) fn submit(request: Request<'_>, sink: &Sink<'_>) -> Result<usize, Error> {
    let mut submission = planned(&request)?;
    let folder = std::path::absolute(&request.folder.0);
    let folder = ExperimentFolder(folder.unwrap_or_else(|_| request.folder.0.clone()));
    write(&folder, &mut submission, request.plan)
        .map_err(|e| Error::unwritable_results(&folder.launch(), &e))?;
    let mut refusal = None;
    for at in 0..submission.jobs.len() {
        match submit_job(&folder, &submission, at) {
            Ok(id) => submission.jobs[at].id = id,
            Err(e) => {
                refusal = Some(e);
                break;
            }
        }
    }
    submission.jobs.retain(|job| !job.id.is_empty());
    let num_elements = submission.jobs.iter().map(|job| job.count).sum();
    submission.elements.truncate(num_elements);
    let num_runs = submission.num_runs();
    submission.is_over = num_runs == 0;
    folder
        .write_submission(&submission)
        .map_err(|e| Error::unwritable_results(&folder.launch(), &e))?;
    if submission.is_over {
        folder.forget_submitted(&submission.key);
    }
    let ids: Vec<&str> = submission.jobs.iter().map(|job| job.id.as_str()).collect();
    let shown = match ids.as_slice() {
        [] => String::new(),
        [one] => format!(" as job {one}"),
        [first, .., last] => format!(" as jobs {first} to {last}"),
    };
    if num_runs > 0 {
        sink(Progress::Step(&format!(
            "submitted {} in {}{shown}",
            counted(num_runs, "run"),
            counted(num_elements, "job")
        )));
    }
    match refusal {
        None => Ok(num_runs),
        Some(refusal) => Err(refused(&refusal, &submission, num_runs, request.runs.len())),
    }
}

fn refused(refusal: &Refusal, submission: &Submission, done: usize, of: usize) -> Error {
    if refusal.is_missing {
        return missing(refusal);
    }
    let message = if done == 0 {
        format!("the cluster accepted no job: {}", refusal.words)
    } else {
        format!(
            "the cluster accepted {done} of {}: {}",
            counted(of, "run"),
            refusal.words
        )
    };
    let diagnostic = Diagnostic::error("launch", message);
    Error::failed(diagnostic.help(remedy(&refusal.words, submission.launch.kind())))
}

/// What helps against a refusal, by the words of SLURM or of other clusters.
fn remedy(words: &str, kind: SystemKind) -> &'static str {
    // The longer ones first: a time limit that is too long is no lack of room.
    const REMEDIES: [(&[&str], &str); 5] = [
        (
            &["time limit is invalid"],
            "set a shorter `launch.time`; `sinfo -o '%P %l'` shows the limits of the partitions",
        ),
        (
            &["Invalid account", "InvalidAccount"],
            "correct `launch.account` and `launch.partition`; `sacctmgr show associations user=$USER` shows what you may use",
        ),
        (
            &[
                "node configuration is not available",
                "Requested node config",
            ],
            "no machine of the partition has so much: lower `launch.gpus`, `launch.cpus` or `launch.memory`, or set another `launch.partition`",
        ),
        (
            &[
                "Unable to contact",
                "Connection refused",
                "timed out",
                "no answer within",
            ],
            "the controller does not answer: run the command again later; only missing runs are submitted",
        ),
        (
            &["unable to accept", "limit", "Limit", "QOSMax", "AssocMax"],
            "run the command again when the queue has room: only missing runs are submitted; or let jobs train several runs with `launch.runs_per_job`",
        ),
    ];
    let mut known = REMEDIES.iter();
    let known = known.find(|(all, _)| all.iter().any(|word| words.contains(word)));
    match (known, kind) {
        (Some((_, help)), _) => help,
        (None, SystemKind::Slurm) => {
            "correct `[launch]`; `sinfo` shows the partitions of the cluster"
        }
        (None, _) => "correct `launch.submit`",
    }
}

fn missing(refusal: &Refusal) -> Error {
    let message = format!("the program `{}` was not found", refusal.program);
    Error::refused(
        Diagnostic::error("launch", message)
            .note("`[launch]` of type \"slurm\" submits the runs with the programs of SLURM")
            .help("run the command on a login node of the cluster, or train here with `--launch local`"),
    )
}

/// The submission of some runs, before it is submitted.
fn planned(request: &Request<'_>) -> Result<Submission, Error> {
    let launch = request.launch.clone();
    let size = launch.runs_per_job.unwrap_or(1);
    let elements: Vec<Vec<String>> = request.runs.chunks(size).map(<[String]>::to_vec).collect();
    let per_job = match &launch.system {
        System::Slurm(_) => slurm::array_size(),
        System::Command(commands) if commands.index.is_some() => elements.len(),
        System::Command(_) | System::Local(_) => 1,
    };
    let starts = (0..elements.len()).step_by(per_job.max(1));
    let jobs = starts.map(|first| Job {
        id: String::new(),
        first,
        count: per_job.min(elements.len() - first),
    });
    let runs = request.runs.iter();
    let pauses = runs.filter_map(|run| request.pauses.get_key_value(run));
    let program = &request.options.experiment.program;
    // After all others, also those of machines whose clocks are ahead: the newest one of a run counts.
    let earlier = request.folder.submissions().into_iter().flatten();
    let newest = earlier.map(|it| it.time_ms).max().unwrap_or(0);
    let time_ms = unix_millis().max(newest + 1);
    Ok(Submission {
        format: Submission::FORMAT,
        key: format!("{time_ms:x}-{:x}", std::process::id()),
        time_ms,
        host: runner_core::record::Holder::here().host,
        launch,
        plan: Plan {
            search: None,
            ..request.plan.without_runs()
        },
        program: absolute(program.find()?),
        arguments: program.arguments.clone(),
        spec: request.options.experiment.path.clone(),
        fault: request.options.inject_fault.clone(),
        jobs: jobs.collect(),
        pauses: pauses
            .map(|(run, pause)| (run.clone(), pause.clone()))
            .collect(),
        elements,
        places: Vec::new(),
        is_over: false,
    })
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Writes the record, the plans and the script before the first job can start.
fn write(
    folder: &ExperimentFolder,
    submission: &mut Submission,
    plan: &Plan,
) -> std::io::Result<()> {
    let logs = folder.submission_logs(&submission.key);
    std::fs::create_dir_all(&logs).map_err(|e| unwritable(&logs, e))?;
    let all = plan.runs.iter().map(|run| (run.id.as_str(), run));
    let all: BTreeMap<&str, &RunPlan> = all.collect();
    let runs = submission.elements.iter().flatten();
    let runs: Vec<&RunPlan> = runs
        .filter_map(|run| all.get(run.as_str()).copied())
        .collect();
    submission.places = folder.write_submitted(&submission.key, &runs)?;
    folder.write_submission(submission)?;
    for job in &submission.jobs {
        if job.first > 0 && submission.is_array() {
            break;
        }
        let path = script_of(folder, submission, job);
        let text = script(folder, submission, job.first)?;
        write_whole(&path, text.as_bytes()).map_err(|e| unwritable(&path, e))?;
    }
    Ok(())
}

/// Arrays share a script; other jobs have one each, next to their output.
fn script_of(folder: &ExperimentFolder, submission: &Submission, job: &Job) -> PathBuf {
    if submission.is_array() {
        folder.submission_script(&submission.key)
    } else {
        let logs = folder.submission_logs(&submission.key);
        logs.join(format!("{}.sh", job.first))
    }
}

fn script(
    folder: &ExperimentFolder,
    submission: &Submission,
    element: usize,
) -> std::io::Result<String> {
    let quoted = |path: &Path| quoted(&path.display().to_string());
    let mut start = "#!/bin/sh\nset -e\n".to_owned();
    for command in &submission.launch.setup {
        start += &format!("{command}\n");
    }
    start += &format!("cd {}\n", quoted(&std::env::current_dir()?));
    start += &format!("exec {} work", quoted(&submission.program));
    for argument in &submission.arguments {
        start += &format!(" {}", runner_core::plan::quoted(argument));
    }
    start += &format!(" {} {} ", quoted(&folder.0), submission.key);
    Ok(match &submission.launch.system {
        System::Command(commands) => commands::script(&start, commands, element),
        _ => slurm::script(&start),
    })
}

fn submit_job(
    folder: &ExperimentFolder,
    submission: &Submission,
    at: usize,
) -> Result<String, Refusal> {
    let job = &submission.jobs[at];
    let script = script_of(folder, submission, job);
    let logs = folder.submission_logs(&submission.key);
    match &submission.launch.system {
        System::Command(commands) => commands::submit(submission, commands, job, &script, &logs),
        System::Slurm(slurm) => slurm::submit(submission, slurm, job, &script, &logs),
        System::Local(_) => Ok(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_remedy_of_its_words() {
        let remedy = |words: &str| remedy(words, SystemKind::Slurm);
        // Of SLURM 22.05 and 23.11.
        for (words, has) in [
            (
                "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)",
                "`launch.time`",
            ),
            (
                "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
                "when the queue has room",
            ),
            (
                "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
                "when the queue has room",
            ),
            (
                "sbatch: error: QOSMaxSubmitJobPerUserLimit",
                "when the queue has room",
            ),
            (
                "Batch job submission failed: Invalid account or account/partition combination specified",
                "`launch.account`",
            ),
            (
                "Batch job submission failed: Requested node configuration is not available",
                "`launch.gpus`",
            ),
            (
                "Batch job submission failed: Unable to contact slurm controller (connect failure)",
                "run the command again later",
            ),
            ("invalid partition specified: nowhere", "`sinfo`"),
        ] {
            assert!(remedy(words).contains(has), "{words}: {}", remedy(words));
        }
    }
}
