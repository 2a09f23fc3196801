//! Runs as jobs of a cluster, which the shell stands in for here; `.ci/slurm` does the same with SLURM.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use super::edit::Edit;
use super::search::suggestions;
use super::support::processes::signal;
use super::support::{IRIS, SLOW, completed, folder_with, numbers, run, runner, summary};

/// A cluster that executes each job at once.
const AT_ONCE: &str = r#"
[launch]
type = "command"
submit = "sh {script} >{log} 2>&1 || true; echo job {element}"
status = "true {job}"
runs_per_job = 2
"#;

/// A cluster that starts no job.
const FULL: &str = r#"
[launch]
type = "command"
submit = "test -f {script} && echo your job is 7"
status = "echo queued {job}"
cancel = "echo {job} >>cancelled"
"#;

const SEEDS: &str = "\n[experiment]\nseeds = [1, 2, 3]\n";

fn states(folder: &Path) -> Vec<String> {
    let (code, rows, stderr) = run(folder, &["list", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let rows = rows
        .lines()
        .map(|row| serde_json::from_str::<Json>(row).unwrap());
    rows.map(|row| row["outcome"].as_str().unwrap().to_owned())
        .collect()
}

/// How many runs the submissions of a folder have, each counted as often as it was submitted.
pub(super) fn runs_of_submissions(folder: &Path) -> usize {
    let launch = fs::read_dir(folder.join("results/spec/launch")).unwrap();
    let paths = launch.map(|entry| entry.unwrap().path());
    let records = paths.filter(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".json") && !name.ends_with(".status.json")
    });
    let counts = records.map(|path| {
        let record: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let elements = record["elements"].as_array().unwrap();
        let runs = elements.iter().map(|runs| runs.as_array().unwrap().len());
        runs.sum::<usize>()
    });
    counts.sum()
}

/// The key of the only submission of a folder.
fn key(folder: &Path) -> String {
    let launch = folder.join("results/spec/launch");
    let names = fs::read_dir(launch).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_record = |name: &String| name.ends_with(".json") && !name.ends_with(".status.json");
    let name = names.find(is_record).unwrap();
    name.strip_suffix(".json").unwrap().to_owned()
}

/// A job of the only submission, by another path than that of its results folder.
fn job(folder: &Path, tree: &str) -> Command {
    let mut command = runner(folder);
    command.args(["work", tree, &key(folder), "0"]);
    command
}

#[test]
fn jobs_give_the_numbers_of_a_local_run() {
    let text = format!("{IRIS}{SEEDS}");
    let local = completed(&text, &[]);
    let folder = folder_with(&format!("{text}{AT_ONCE}"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("submitted 3 runs in 2 jobs"), "{stderr}");
    assert_eq!(states(folder.path()), ["completed"; 3]);
    assert_eq!(numbers(local.path()), numbers(folder.path()));
    // Nothing is missing: nothing is submitted, and there is a report.
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("3 of 3 runs completed"), "{stderr}");
    assert!(!stderr.contains("submitted"), "{stderr}");
}

#[test]
fn a_search_ends_trials_early_in_jobs_as_it_does_here() {
    let search = r#"
[search]
type = "tpe"
num_trials = 6
prune = { type = "asha", factor = 2 }

[sweep.random.axes]
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 0.3 }
"#;
    let text = format!("{}\n{search}", IRIS.edit("epochs = 3", "epochs = 4"));
    let local = folder_with(&text);
    let folder = folder_with(&format!("{text}{AT_ONCE}"));
    for folder in [&local, &folder] {
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
        assert_eq!(code, 0, "{stderr}");
    }
    let states = states(folder.path());
    let num_pruned = states.iter().filter(|state| *state == "pruned").count();
    assert!((1..6).contains(&num_pruned), "{states:?}");
    assert_eq!(numbers(local.path()), numbers(folder.path()));
    let submitted = folder.path().join("results/spec/launch");
    assert!(submitted.is_dir());
}

#[test]
fn a_population_is_trained_in_jobs_as_it_is_here() {
    let search = r#"
[search]
type = "sobol"
prune = { type = "pbt", population = 4, interval = 2 }
confirm = { trials = 1, seeds = 2 }

[sweep.random.axes]
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 0.3 }
"#;
    let text = format!("{}\n{search}", IRIS.edit("epochs = 3", "epochs = 6"));
    let local = folder_with(&text);
    let folder = folder_with(&format!("{text}{AT_ONCE}"));
    for folder in [&local, &folder] {
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
        assert_eq!(code, 0, "{stderr}");
    }
    let [ours, theirs] = [&folder, &local].map(|folder| suggestions(folder.path()));
    assert_eq!(ours, theirs);
    assert!(
        ours.iter().any(|known| !known["fork"].is_null()),
        "{ours:?}"
    );
    assert_eq!(numbers(local.path()), numbers(folder.path()));
    assert!(folder.path().join("results/spec/launch").is_dir());
}

#[test]
fn what_is_queued_is_not_submitted_again_and_can_be_cancelled() {
    let folder = folder_with(&format!("{IRIS}{SEEDS}{FULL}"));
    let go = |arguments: &[&str]| run(folder.path(), arguments);
    let (code, _, stderr) = go(&["run", "spec.toml", "--only", "*-s1"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        states(folder.path()),
        ["queued", "not started", "not started"]
    );
    let (code, _, stderr) = go(&["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("1 run already queued or running"),
        "{stderr}"
    );
    assert!(stderr.contains("submitted 2 runs in 2 jobs"), "{stderr}");
    let (_, board, _) = go(&["watch", "--once"]);
    assert_eq!(board.matches("  queued").count(), 3, "{board}");
    let (code, _, stderr) = go(&["run", "spec.toml", "--launch", "local"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("runner cancel results/spec"), "{stderr}");
    let (code, _, stderr) = go(&["cancel"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("cancelled 3 queued jobs and 0 running jobs"),
        "{stderr}"
    );
    let told = fs::read_to_string(folder.path().join("cancelled")).unwrap();
    assert_eq!(told, "7\n7\n7\n");
    // Nothing is in the way of training here, and a job that starts after all does nothing.
    let (code, _, stderr) = go(&["run", "spec.toml", "--launch", "local"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_refusal_has_the_words_of_the_cluster() {
    let refusing = r#"
[launch]
type = "command"
submit = "test -f {script}; echo invalid partition: nowhere >&2; false"
"#;
    let folder = folder_with(&format!("{IRIS}{refusing}"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("invalid partition: nowhere"), "{stderr}");
    assert_eq!(states(folder.path()), ["not started"]);
    // Nothing is in the way of training here.
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--launch", "local"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_submission_of_another_version_is_said_to_be_one() {
    let folder = folder_with(&format!("{IRIS}{FULL}"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let path = format!("results/spec/launch/{}.json", key(folder.path()));
    let path = folder.path().join(path);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.edit_first("\"format\": 1", "\"format\": 99")).unwrap();
    let output = job(folder.path(), "results/spec").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("was written in format 99"), "{stderr}");
}

#[test]
fn a_job_that_was_killed_is_a_failure_that_is_resumed() {
    let straight = completed(SLOW, &[]);
    let gone = FULL.edit("echo queued", "true");
    let folder = folder_with(&format!("{SLOW}{gone}"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let mut child = job(folder.path(), "results/spec")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until_epoch(folder.path(), 3);
    signal("-KILL", child.id());
    child.wait().unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--launch", "local"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("base-s1 failed (killed)"), "{stderr}");
    assert!(stderr.contains("1 retried after a failure"), "{stderr}");
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

#[test]
fn a_late_writer_loses_without_harm() {
    let straight = completed(SLOW, &[]);
    let folder = folder_with(&format!("{SLOW}{FULL}"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    // Two machines see the tree under different paths.
    std::os::unix::fs::symlink(folder.path().join("results"), folder.path().join("mount")).unwrap();
    let mut late = job(folder.path(), "results/spec");
    let mut late = late
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until_epoch(folder.path(), 3);
    // Its machine is cut off, and the cluster starts the job elsewhere.
    let workers = children(late.id());
    workers
        .iter()
        .chain([&late.id()])
        .for_each(|id| signal("-STOP", *id));
    let output = job(folder.path(), "mount/spec").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let completed = numbers(folder.path());
    assert_eq!(numbers(straight.path()), completed);
    let events = fs::read(folder.path().join("results/spec/runs/base-s1/events.jsonl")).unwrap();
    // The machine is back.
    workers
        .iter()
        .chain([&late.id()])
        .for_each(|id| signal("-CONT", *id));
    late.wait().unwrap();
    assert_eq!(numbers(folder.path()), completed);
    let now = fs::read(folder.path().join("results/spec/runs/base-s1/events.jsonl")).unwrap();
    assert!(events == now, "the late writer has written");
    assert_eq!(summary(folder.path(), "base-s1")["outcome"], "completed");
    let (code, rows, stderr) = run(folder.path(), &["report", "results/spec"]);
    assert_eq!(code, 0, "{rows}{stderr}");
}

#[test]
fn a_job_trains_what_was_submitted_whatever_is_planned_since() {
    let before = completed(IRIS, &[]);
    let folder = folder_with(&format!("{IRIS}{FULL}"));
    let go = |arguments: &[&str]| run(folder.path(), arguments);
    let (code, _, stderr) = go(&["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let tree = folder.path().join("results/spec");
    // Very many runs would need as many folders.
    assert!(!tree.join("runs").exists());
    let (code, _, stderr) = go(&["tag", "results/spec/runs/base-s1", "paper"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = go(&["predict", "results/spec/runs/base-s1", "--split", "valid"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("has not begun"), "{stderr}");
    let other = "optimizer.learning_rate=0.02";
    let (code, _, stderr) = go(&["run", "spec.toml", "--set", other]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("already queued"), "{stderr}");
    let plan = fs::read_to_string(tree.join("plan.json")).unwrap();
    assert!(plan.contains("0.02"), "{plan}");
    let output = job(folder.path(), "results/spec").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(numbers(before.path()), numbers(folder.path()));
    // The record of the run is that of a run of this machine.
    let [here, there] = [before.path(), folder.path()].map(|folder| {
        fs::read_to_string(folder.join("results/spec/runs/base-s1/run.toml")).unwrap()
    });
    assert_eq!(here, there);
}

#[test]
fn damaged_plans_of_a_submission_are_not_trained() {
    let folder = folder_with(&format!("{IRIS}{FULL}"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let path = format!("results/spec/launch/{}.runs.jsonl", key(folder.path()));
    let path = folder.path().join(path);
    let plans = fs::read_to_string(&path).unwrap();
    for (damaged, says) in [
        (plans.edit("0.01", "0.02"), "its seal does not match"),
        (plans[..plans.len() / 2].to_owned(), "damaged"),
    ] {
        fs::write(&path, damaged).unwrap();
        let output = job(folder.path(), "results/spec").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
    }
    assert_eq!(states(folder.path()), ["queued"]);
}

/// The processes that a process has started.
fn children(id: u32) -> Vec<u32> {
    let path = format!("/proc/{id}/task/{id}/children");
    let of_main = fs::read_to_string(path).unwrap_or_default();
    let tasks = fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let texts = tasks.map(|task| {
        let path = task.unwrap().path().join("children");
        fs::read_to_string(path).unwrap_or_default()
    });
    let text: String = texts.chain([of_main]).collect();
    let mut all: Vec<u32> = text
        .split_whitespace()
        .filter_map(|it| it.parse().ok())
        .collect();
    all.sort_unstable();
    all.dedup();
    assert!(!all.is_empty(), "no worker");
    all
}

/// Waits until the run has an epoch: another process trains it.
pub(super) fn until_epoch(folder: &Path, epoch: usize) {
    let path = folder.join("results/spec/runs/base-s1/events.jsonl");
    let wanted = format!("\"epoch\":{epoch},");
    loop {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if text
            .lines()
            .any(|line| line.contains("epoch_finished") && line.contains(&wanted))
        {
            return;
        }
        std::thread::yield_now();
    }
}
