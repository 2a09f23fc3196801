//! Searches on a cluster whose command is killed, and several arrays that share a limit of concurrent jobs.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::Value as Json;

use super::edit::Edit;
use super::search::suggestions;
use super::slurm::{Cluster, LAUNCH, SEEDS};
use super::support::{IRIS, completed, numbers, read_json, runner, texts};

const SEARCH: &str = r#"
[search]
type = "nsga2"
num_trials = 26
parallel = 3
objectives = ["parameters"]

[sweep.random.axes]
model.hidden = { type = "choice", values = [[2], [4], [8], [16]] }
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 1.0 }
"#;

fn num_ended(folder: &Path) -> usize {
    let runs = fs::read_dir(folder.join("results/spec/runs"));
    let runs = runs.into_iter().flatten().flatten();
    runs.filter(|run| run.path().join("summary.json").exists())
        .count()
}

fn started(cluster: &Cluster) -> Child {
    let mut command = runner(cluster.path());
    let command = cluster.with_programs(&mut command);
    let command = command.args(["run", "spec.toml", "--quiet"]);
    command.stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_search_whose_command_is_killed_goes_on_with_the_same_trials() {
    let local = completed(&format!("{IRIS}{SEARCH}"), &[]);
    // A round is one job.
    let launch = LAUNCH.edit("max_running = 6", "runs_per_job = 20");
    let cluster = Cluster::new(&format!("{IRIS}{SEARCH}{launch}"));
    cluster.starts_jobs();
    // In the first round, and in the second one.
    for num in [4, 21] {
        let mut command = started(&cluster);
        while num_ended(cluster.path()) < num {
            assert!(
                command.try_wait().unwrap().is_none(),
                "it waits for its jobs"
            );
            std::thread::yield_now();
        }
        if num == 4 {
            // Another one at the same time changes nothing.
            let (code, _, said) = cluster.run(&["run", "spec.toml"]);
            assert_eq!(code, 2, "{said}");
            assert!(said.contains("another `runner run`"), "{said}");
        }
        command.kill().unwrap();
        command.wait().unwrap();
    }
    let said = cluster.go(&["run", "spec.toml"]);
    assert!(said.contains("26 of 26"), "{said}");
    assert_eq!(suggestions(local.path()), suggestions(cluster.path()));
    assert_eq!(numbers(local.path()), numbers(cluster.path()));
    // No run was trained twice.
    let runs = fs::read_dir(cluster.path().join("results/spec/runs")).unwrap();
    for run in runs.flatten() {
        let events = fs::read_to_string(run.path().join("events.jsonl")).unwrap();
        assert_eq!(events.matches("\"run_started\"").count(), 1, "{events}");
    }
}

#[test]
fn arrays_beyond_the_limit_of_jobs_wait_for_others() {
    let launch = LAUNCH.edit("max_running = 6", "max_running = 1");
    let cluster = Cluster::new(&format!("{IRIS}{SEEDS}{launch}"));
    cluster.go(&["run", "spec.toml"]);
    let arguments = fs::read_to_string(cluster.path().join("arguments")).unwrap();
    // The cluster accepts arrays of two.
    let wanted = ["--array=0-1%1", "--array=0-0%1", "--dependency=afterany:1"];
    for argument in wanted {
        assert!(arguments.lines().any(|it| it == argument), "{arguments}");
    }
    assert_eq!(arguments.matches("--dependency").count(), 1);
}

#[test]
fn gpus_that_no_run_uses_are_told() {
    let cluster = Cluster::new(&format!("{IRIS}{LAUNCH}"));
    let mut command = runner(cluster.path());
    let output = command.args(["check", "spec.toml"]).output().unwrap();
    let (code, _, said) = texts(&output);
    assert_eq!(code, 0, "{said}");
    let wanted = "jobs request 1 GPU, and all runs train on `flex`, which uses none";
    assert!(said.contains(wanted), "{said}");
    let mut command = runner(cluster.path());
    let set = ["--set", "launch={ gpus = 1 }"];
    let output = command
        .args(["check", "spec.toml"])
        .args(set)
        .output()
        .unwrap();
    let (_, _, said) = texts(&output);
    let wanted = "all runs train on `flex`, for which `gpus` has no effect";
    assert!(said.contains(wanted), "{said}");
}

/// The records of submissions, oldest first.
fn submissions(folder: &Path) -> Vec<(PathBuf, Json)> {
    let names = fs::read_dir(folder.join("results/spec/launch")).unwrap();
    let paths = names.map(|entry| entry.unwrap().path());
    let records = paths.filter(|path| {
        let name = path.to_string_lossy();
        name.ends_with(".json") && !name.ends_with(".status.json")
    });
    let mut all: Vec<_> = records
        .map(|path| (path.clone(), read_json(&path)))
        .collect();
    all.sort_by_key(|(_, record)| record["time_ms"].as_u64());
    all
}

#[test]
fn a_full_queue_takes_what_fits_and_the_rest_later() {
    let text = format!("{IRIS}{SEEDS}");
    let local = completed(&text, &[]);
    let cluster = Cluster::new(&format!("{text}{LAUNCH}"));
    let refused = "echo sbatch: error: QOSMaxSubmitJobPerUserLimit >&2; exit 1";
    let full = format!("\n[ -e id-1 ] && [ ! -e is_open ] && {{ {refused}; }}\nid=1\n");
    let sbatch = cluster.program("sbatch");
    let script = fs::read_to_string(&sbatch).unwrap();
    fs::write(&sbatch, script.edit("\nid=1\n", &full)).unwrap();
    let (code, _, said) = cluster.run(&["run", "spec.toml"]);
    assert_eq!(code, 1, "{said}");
    let wanted = "the cluster accepted 2 of 3 runs: sbatch: error: QOSMaxSubmitJobPerUserLimit";
    assert!(said.contains(wanted), "{said}");
    assert!(said.contains("when the queue has room"), "{said}");
    // The machine that submitted has a clock that is ahead.
    let (path, record) = submissions(cluster.path()).pop().unwrap();
    let (now, ahead) = (record["time_ms"].to_string(), 4_102_444_800_000_u64);
    let record = fs::read_to_string(&path).unwrap();
    fs::write(&path, record.edit(&now, &ahead.to_string())).unwrap();
    fs::write(cluster.path().join("is_open"), "").unwrap();
    let said = cluster.go(&["run", "spec.toml"]);
    assert!(said.contains("2 runs already queued or running"), "{said}");
    assert!(said.contains("submitted 1 run in 1 job"), "{said}");
    let all = submissions(cluster.path());
    assert_eq!((all.len(), all[0].1["time_ms"].as_u64()), (2, Some(ahead)));
    cluster.execute();
    let said = cluster.go(&["run", "spec.toml"]);
    assert!(said.contains("3 of 3 runs completed"), "{said}");
    assert_eq!(numbers(local.path()), numbers(cluster.path()));
}
