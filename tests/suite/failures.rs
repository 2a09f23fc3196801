//! Failures: what is retried, adjusted, abandoned and stopped, without losing anything.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use serde_json::Value as Json;

use super::edit::Edit;
use super::support::processes::{signal, started_until};
use super::support::{IRIS, SLOW, completed, folder_with, goes_on, numbers, run, runner, summary};

/// Finite for an epoch, and then NaN until the learning rate is 1e-30 of the one in the file: by powers of 2, so that
/// no digit is lost.
pub const DIVERGES: &str = r#"
[data]
type = "iris"

[model]
type = "mlp"
hidden = [16]

[optimizer]
type = "sgd"
learning_rate = 1.2676506002282294e30

[scheduler]
type = "sequence"

[[scheduler.stages]]
type = "constant"
fraction = 6.162975822039155e-33
epochs = 1

[[scheduler.stages]]
type = "constant"

[train]
epochs = 4
batch_size = 16

[on_failure.not_finite]
retries = 3
backoff = "0s"
learning_rate_factor = 5.551115123125783e-17
"#;

fn events(folder: &Path, run: &str) -> Vec<Json> {
    let path = folder.join("results/spec/runs").join(run);
    let text = fs::read_to_string(path.join("events.jsonl")).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.map(Result::unwrap).collect()
}

fn num_events(folder: &Path, run: &str, name: &str) -> usize {
    let events = events(folder, run);
    events.iter().filter(|e| e["event"] == name).count()
}

/// Starts `runner run --json` and reads its events until one contains `wanted`.
fn start_until(
    folder: &Path,
    arguments: &[&str],
    wanted: &str,
) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut command = runner(folder);
    command.args(["run", "spec.toml", "--json"]).args(arguments);
    started_until(command.stderr(Stdio::piped()), wanted)
}

fn stderr_of(mut child: Child) -> (Option<i32>, String) {
    let stderr = child.stderr.take().unwrap();
    let text = std::io::read_to_string(stderr).unwrap();
    (child.wait().unwrap().code(), text)
}

/// The processes that a process has started.
#[cfg(target_os = "linux")]
fn workers(of: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ids = entries.filter_map(|e| e.file_name().to_string_lossy().parse::<u32>().ok());
    let is_child = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The name in parentheses may contain anything.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1) == Some(&of.to_string())
    };
    ids.filter(is_child).collect()
}

#[test]
fn a_panic_is_retried_as_often_as_the_file_says() {
    let spec = format!("{IRIS}\n[on_failure.panic]\nretries = 2\nbackoff = \"10ms\"\n");
    let folder = folder_with(&spec);
    let fault = ["run", "spec.toml", "--inject-fault", "*@2"];
    let (code, _, stderr) = run(folder.path(), &fault);
    assert_eq!(code, 1, "{stderr}");
    for line in [
        "base-s1: retry 1 of 2 after `panic` in 10ms",
        "base-s1: retry 2 of 2 after `panic` in 20ms",
    ] {
        assert!(stderr.contains(line), "{stderr}");
    }
    assert_eq!(num_events(folder.path(), "base-s1", "run_started"), 3);
    assert_eq!(
        summary(folder.path(), "base-s1")["failure"]["class"],
        "panic"
    );
    // Running the command again grants all retries again.
    let (_, _, stderr) = run(folder.path(), &fault);
    assert!(stderr.contains("retry 2 of 2"), "{stderr}");
    assert_eq!(num_events(folder.path(), "base-s1", "run_started"), 6);
    goes_on(folder.path());
    let straight = completed(IRIS, &[]);
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
    assert!(summary(folder.path(), "base-s1")["adjustments"].is_null());
}

#[test]
fn weights_that_are_beyond_help_are_not_gone_on_from() {
    // The first update makes weights so large that the next loss is NaN, and they are saved before it is noticed. Rate and
    // factor are 2^80 and 2^-87.
    let sgd = format!(
        "{}\n[checkpoint]\nevery_steps = 1\n",
        IRIS.edit("adam", "sgd")
    );
    let spec = sgd.edit("1e-2", "1.2089258196146292e24");
    let folder = folder_with(&format!(
        "{spec}\n[on_failure.not_finite]\nretries = 3\nlearning_rate_factor = 6.462348535570529e-27\n"
    ));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let retry = "retry 1 of 3 after `not_finite` in 1s, with the learning rate times 6.462348535570529e-27 from the start";
    assert!(stderr.contains(retry), "{stderr}");
    assert!(!stderr.contains("retry 2"), "{stderr}");
    // Nothing is left of the weights that were saved: the numbers are those of a run at 2^-7.
    let plain = completed(&sgd.edit("1e-2", "0.0078125"), &[]);
    assert_eq!(numbers(plain.path()), numbers(folder.path()));
    assert_eq!(
        summary(folder.path(), "base-s1")["adjustments"][0]["from_step"],
        0
    );
}

#[test]
fn other_classes_are_not_retried() {
    let spec = format!("{IRIS}\n[on_failure.killed]\nretries = 2\n");
    let folder = folder_with(&spec);
    let (code, _, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--inject-fault", "*@2"],
    );
    assert_eq!(code, 1, "{stderr}");
    assert!(!stderr.contains("retry"), "{stderr}");
}

#[test]
fn a_loss_that_is_no_number_is_retried_with_a_smaller_learning_rate() {
    let folder = folder_with(DIVERGES);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let adjusted = "with the learning rate times 5.551115123125783e-17 from step 8";
    let retry = format!("base-s1: retry 1 of 3 after `not_finite` now, {adjusted}");
    assert!(stderr.contains(&retry), "{stderr}");
    assert!(stderr.contains("* includes runs that were adjusted"));
    // Two factors are 2^-108: the rate of the first epoch by half.
    let metrics = fs::read_to_string(folder.path().join("results/spec/runs/base-s1/metrics.csv"));
    let rates = metrics.unwrap();
    let rates: Vec<_> = rates
        .lines()
        .skip(1)
        .map(|l| l.split(',').nth(2).unwrap())
        .collect();
    assert_eq!(
        rates,
        ["0.0078125", "0.00390625", "0.00390625", "0.00390625"]
    );
    let summary = summary(folder.path(), "base-s1");
    assert_eq!(summary["adjustments"].as_array().unwrap().len(), 2);
    assert_eq!(summary["adjustments"][0]["from_step"], 8);
    // The same as an explicit schedule.
    let written = DIVERGES
        .edit("1.2676506002282294e30", "0.0078125")
        .edit("6.162975822039155e-33", "1.0")
        .edit(
            "type = \"constant\"\n\n[train]",
            "type = \"constant\"\nfraction = 0.5\n\n[train]",
        );
    let written = completed(&written, &[]);
    assert_eq!(numbers(written.path()), numbers(folder.path()));
    let report = folder.path().join("results/spec/report.md");
    let report = fs::read_to_string(report).unwrap();
    for line in [
        "| 1 | base  | 1* |".to_owned(),
        "\\* In `base`, 1 of 1 runs were not trained as planned".to_owned(),
        format!("- `base-s1` did not run as planned, but {adjusted}"),
    ] {
        assert!(report.contains(&line), "{report}");
    }
}

/// A folder whose runner was killed while it waited for a retry.
fn killed_before_a_retry() -> tempfile::TempDir {
    let folder = folder_with(&DIVERGES.edit("\"0s\"", "\"60s\""));
    let (mut child, lines) = start_until(folder.path(), &[], "run_retried");
    child.kill().unwrap();
    child.wait().unwrap();
    lines.for_each(drop);
    folder
}

#[test]
fn adjustments_and_retries_survive_a_killed_runner() {
    let straight = completed(DIVERGES, &[]);
    let folder = killed_before_a_retry();
    fs::write(folder.path().join("spec.toml"), DIVERGES).unwrap();
    let stderr = goes_on(folder.path());
    assert!(stderr.contains("retry 2 of 3"), "{stderr}");
    assert!(!stderr.contains("retry 1 of 3"), "{stderr}");
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
    assert_eq!(
        summary(straight.path(), "base-s1")["adjustments"],
        summary(folder.path(), "base-s1")["adjustments"]
    );
}

#[test]
fn a_failure_whose_retry_a_kill_prevented_is_retried_at_once() {
    let straight = completed(DIVERGES, &[]);
    let folder = killed_before_a_retry();
    // As if it had been killed just before it recorded the retry.
    let path = folder.path().join("results/spec/runs/base-s1/events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let kept = text.lines().filter(|line| !line.contains("run_retried"));
    fs::write(
        &path,
        kept.map(|line| format!("{line}\n")).collect::<String>(),
    )
    .unwrap();
    burn_runner::record::reseal(&path).unwrap();
    // Long enough to show that the delay is not repeated.
    let patient = DIVERGES.edit("\"0s\"", "\"1s\"");
    fs::write(folder.path().join("spec.toml"), patient).unwrap();
    let stderr = goes_on(folder.path());
    assert!(
        stderr.contains("retry 1 of 3 after `not_finite` now"),
        "{stderr}"
    );
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

#[test]
fn a_checkpoint_of_another_past_is_not_used() {
    let folder = completed(DIVERGES, &[]);
    // Without the adjustments in the record, the newest checkpoint belongs to another run.
    let run_folder = folder.path().join("results/spec/runs/base-s1");
    let path = run_folder.join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let first = text.lines().take(4).map(|line| format!("{line}\n"));
    fs::write(&path, first.collect::<String>()).unwrap();
    // As a runner that was killed there would have left it.
    fs::remove_file(run_folder.join("summary.json")).unwrap();
    let straight = completed(DIVERGES, &[]);
    let stderr = goes_on(folder.path());
    assert!(
        stderr.contains("the run was adjusted differently before it"),
        "{stderr}"
    );
    assert_eq!(numbers(straight.path())[0].1, numbers(folder.path())[0].1);
}

#[test]
fn an_experiment_can_stop_at_the_first_failure() {
    let spec =
        format!("[experiment]\nseeds = [1, 2, 3]\n{IRIS}\n[on_failure.panic]\nthen = \"stop\"\n");
    let folder = folder_with(&spec);
    let (code, _, stderr) = run(
        folder.path(),
        &[
            "run",
            "spec.toml",
            "--jobs",
            "1",
            "--inject-fault",
            "*-s1@1",
        ],
    );
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("stopped because `base-s1` failed, as `on_failure.panic.then` is \"stop\": 3 runs left; to continue: runner run"),
        "{stderr}"
    );
    assert!(
        !folder
            .path()
            .join("results/spec/runs/base-s2/events.jsonl")
            .exists()
    );
    goes_on(folder.path());
}

/// A kill while weights are written leaves a file under a temporary name, which is none of the run's.
#[cfg(unix)]
#[test]
fn what_a_kill_left_of_weights_is_removed() {
    let folder = folder_with(IRIS);
    let arguments = [
        "run",
        "spec.toml",
        "--quiet",
        "--inject-fault",
        "*@training:20=kill",
    ];
    let (code, ..) = run(folder.path(), &arguments);
    assert_eq!(code, 1);
    let place = folder.path().join("results/spec/runs/base-s1");
    let left = [
        "model/final.bpk.604-36.tmp",
        "checkpoints/model-9.bpk.604-2.tmp",
    ];
    for name in left {
        fs::write(place.join(name), "half").unwrap();
    }
    goes_on(folder.path());
    assert!(!left.iter().any(|name| place.join(name).exists()));
    let events = fs::read_to_string(place.join("events.jsonl")).unwrap();
    assert!(events.contains("model/final.bpk") && !events.contains("bpk.604"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_worker_is_retried_to_the_same_numbers() {
    let straight = completed(SLOW, &[]);
    let spec = format!("{SLOW}\n[on_failure.killed]\nretries = 2\nbackoff = \"0s\"\n");
    let folder = folder_with(&spec);
    let (child, mut lines) = start_until(folder.path(), &[], "\"epoch\":2,");
    for wanted in ["run_started", ""] {
        let workers = workers(child.id());
        assert_eq!(workers.len(), 1);
        signal("-KILL", workers[0]);
        assert!(lines.any(|line| line.contains(wanted)), "no {wanted}");
    }
    lines.for_each(drop);
    let (code, stderr) = stderr_of(child);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("failed (killed): the worker was killed by signal 9 (SIGKILL)"),
        "{stderr}"
    );
    assert_eq!(num_events(folder.path(), "base-s1", "run_retried"), 2);
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_summary_names_the_signal() {
    let folder = folder_with(SLOW);
    let (child, lines) = start_until(folder.path(), &[], "\"epoch\":1,");
    signal("-TERM", workers(child.id())[0]);
    lines.for_each(drop);
    assert_eq!(stderr_of(child).0, Some(1));
    let failure = &summary(folder.path(), "base-s1")["failure"];
    assert_eq!(failure["class"], "killed");
    assert_eq!(failure["signal"], 15);
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("signal 15 (SIGTERM)"), "{message}");
    // `--retry` selects it by its class.
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--retry", "killed"]);
    assert_eq!(code, 0, "{stderr}");
}

/// A run that no machine completes within its limit.
fn long() -> String {
    SLOW.edit("epochs = 40", "epochs = 200")
}

#[test]
fn a_run_that_passes_its_limit_goes_on_with_the_next_command() {
    let long = long();
    let straight = completed(&long, &[]);
    let folder = folder_with(&format!("{long}\n[limits]\nrun = \"700ms\"\n"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 1, "{stderr}");
    let failure = &summary(folder.path(), "base-s1")["failure"];
    assert_eq!(failure["class"], "timeout");
    let message = failure["message"].as_str().unwrap();
    assert!(
        message.starts_with("the run exceeded its limit of 700ms (`limits.run`)")
            && message.contains("raise the limit, and run the command again"),
        "{message}"
    );
    // A limit is not part of the plan's fingerprint.
    fs::write(folder.path().join("spec.toml"), &long).unwrap();
    goes_on(folder.path());
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_that_hangs_is_killed_when_its_time_is_over() {
    let folder = folder_with(&format!("{SLOW}\n[limits]\nrun = \"4s\"\n"));
    let (child, lines) = start_until(folder.path(), &[], "\"epoch\":1,");
    let worker = workers(child.id())[0];
    signal("-STOP", worker);
    lines.for_each(drop);
    let (code, stderr) = stderr_of(child);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(!Path::new(&format!("/proc/{worker}")).exists());
    assert_eq!(
        summary(folder.path(), "base-s1")["failure"]["class"],
        "timeout"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_that_hangs_is_killed_by_the_second_interrupt() {
    let folder = folder_with(SLOW);
    let (child, lines) = start_until(folder.path(), &[], "\"epoch\":1,");
    let worker = workers(child.id())[0];
    signal("-STOP", worker);
    let started = Instant::now();
    signal("-INT", child.id());
    std::thread::sleep(std::time::Duration::from_millis(300));
    signal("-INT", child.id());
    lines.for_each(drop);
    let (code, stderr) = stderr_of(child);
    assert_eq!(code, Some(130), "{stderr}");
    assert!(started.elapsed().as_secs() < 8);
    assert!(!Path::new(&format!("/proc/{worker}")).exists());
    assert_eq!(summary(folder.path(), "base-s1")["outcome"], "interrupted");
}

#[test]
fn an_experiment_that_passes_its_limit_stops_and_goes_on_later() {
    let seeds = format!("[experiment]\nseeds = [1, 2]\n{}", long());
    let straight = completed(&seeds, &["--jobs", "1"]);
    let folder = folder_with(&format!("{seeds}\n[limits]\nexperiment = \"300ms\"\n"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--jobs", "1"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("the experiment exceeded its limit of 300ms (`limits.experiment`): 2 runs left; to continue: runner run"),
        "{stderr}"
    );
    assert_eq!(summary(folder.path(), "base-s1")["outcome"], "interrupted");
    assert!(
        !folder
            .path()
            .join("results/spec/runs/base-s2/events.jsonl")
            .exists()
    );
    fs::write(folder.path().join("spec.toml"), seeds).unwrap();
    goes_on(folder.path());
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

#[test]
fn only_failed_runs_are_done_with_retry() {
    let spec = format!("[experiment]\nseeds = [1, 2, 3]\n{IRIS}");
    let folder = folder_with(&spec);
    let retry = |class: &str| run(folder.path(), &["run", "spec.toml", "--retry", class]);
    let (code, _, stderr) = retry("failed");
    assert_eq!(code, 2);
    assert!(stderr.contains("of the runs, 3 not started"), "{stderr}");
    let fault = [
        "--only",
        "*-s1",
        "--only",
        "*-s2",
        "--inject-fault",
        "*-s2@1",
    ];
    run(folder.path(), &[&["run", "spec.toml"], &fault[..]].concat());
    let (code, _, stderr) = retry("timeout");
    assert_eq!(code, 2);
    insta::assert_snapshot!(stderr);
    let (code, _, stderr) = retry("panic");
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("1 of 3 runs to do, 2 excluded by --retry, 1 retried after a failure"),
        "{stderr}"
    );
    assert!(
        !folder
            .path()
            .join("results/spec/runs/base-s3/events.jsonl")
            .exists()
    );
    let (code, _, stderr) = retry("oom");
    assert_eq!(code, 2);
    assert!(
        stderr.contains("use `failed`, `pruned`, or a class of failure: panic, "),
        "{stderr}"
    );
}

#[test]
fn a_second_runner_names_the_first_or_waits_for_it() {
    let folder = folder_with(SLOW);
    let (first, lines) = start_until(folder.path(), &[], "\"epoch\":1,");
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 2, "{stderr}");
    let who = format!("it is process {} on host `", first.id());
    assert!(stderr.contains(&who), "{stderr}");
    assert!(stderr.contains(" run spec.toml --json\n"), "{stderr}");
    assert!(stderr.contains("wait for it: add `--wait`"), "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--wait"]);
    assert_eq!(code, 0, "{stderr}");
    let waiting = format!(
        "waiting: another `runner run` is writing to `results/spec` (process {} on host `",
        first.id()
    );
    assert!(stderr.contains(&waiting), "{stderr}");
    assert!(stderr.contains("0 of 1 runs to do"), "{stderr}");
    lines.for_each(drop);
    assert_eq!(stderr_of(first).0, Some(0));
}

#[test]
fn the_name_of_a_killed_runner_misleads_nobody() {
    let folder = folder_with(SLOW);
    let (mut first, lines) = start_until(folder.path(), &[], "\"epoch\":1,");
    first.kill().unwrap();
    first.wait().unwrap();
    lines.for_each(drop);
    let lock = folder.path().join("results/spec/.lock");
    let text = fs::read_to_string(&lock).unwrap();
    assert!(text.contains(&format!("pid = {}\n", first.id())), "{text}");
    goes_on(folder.path());
    assert_eq!(fs::read_to_string(&lock).unwrap(), "", "nobody has it");
}

#[test]
fn a_limit_that_no_run_can_pass_is_told() {
    let limits = "\n[limits]\nrun = \"3h\"\nexperiment = \"2h\"\n";
    let folder = folder_with(&format!("{IRIS}{limits}"));
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let warning =
        "`limits.run` is 3h, but the experiment stops after 2h: no run can exceed its limit";
    assert!(stderr.contains(warning), "{stderr}");
}

#[test]
fn a_timeout_can_stop_the_experiment() {
    let spec = format!(
        "[experiment]\nseeds = [1, 2]\n{}\n[limits]\nrun = \"500ms\"\n[on_failure.timeout]\nthen = \"stop\"\n",
        long()
    );
    let folder = folder_with(&spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--jobs", "1"]);
    assert_eq!(code, 1, "{stderr}");
    let why =
        "stopped because `base-s1` failed, as `on_failure.timeout.then` is \"stop\": 2 runs left";
    assert!(stderr.contains(why), "{stderr}");
}
