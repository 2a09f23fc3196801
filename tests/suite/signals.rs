//! Signals, out-of-memory conditions, and output of native libraries: nothing is lost, and each is reported correctly.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use super::support::processes::{signal, started_until};
use super::support::{
    IRIS, SLOW, completed, folder_with, goes_on, numbers, run, runner, summary, texts,
};

/// Starts a run for which a closed terminal has the effect `hangup`, and waits for its second epoch.
fn started(folder: &Path, hangup: libc::sighandler_t) -> (Child, impl Iterator<Item = String>) {
    let mut command = runner(folder);
    command
        .args(["run", "spec.toml", "--json"])
        .stderr(Stdio::null());
    // SAFETY: it may be called between `fork` and `exec`.
    unsafe {
        command.pre_exec(move || {
            libc::signal(libc::SIGHUP, hangup);
            Ok(())
        });
    }
    started_until(&mut command, "\"epoch\":2,")
}

/// The process that has a run, according to its lock.
fn worker(folder: &Path) -> u32 {
    let lock = folder.join("results/spec/runs/base-s1/.lock");
    let text = fs::read_to_string(lock).unwrap();
    let pid = text.lines().find_map(|line| line.strip_prefix("pid = "));
    pid.expect("the worker is named").parse().unwrap()
}

#[test]
fn a_closed_terminal_saves_however_often_it_is_said() {
    let straight = completed(SLOW, &[]);
    let folder = folder_with(SLOW);
    let (mut child, lines) = started(folder.path(), libc::SIG_DFL);
    // A shell sends it to its jobs in addition to the system, and systemd after SIGTERM.
    for name in ["-HUP", "-HUP", "-TERM"] {
        signal(name, child.id());
    }
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(summary(folder.path(), "base-s1")["outcome"], "interrupted");
    let stderr = goes_on(folder.path());
    assert!(stderr.contains("stopped"), "{stderr}");
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

#[test]
fn under_nohup_a_closed_terminal_stops_nothing() {
    let folder = folder_with(SLOW);
    let (mut child, lines) = started(folder.path(), libc::SIG_IGN);
    signal("-HUP", child.id());
    signal("-HUP", worker(folder.path()));
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(summary(folder.path(), "base-s1")["outcome"], "completed");
}

#[test]
fn a_worker_that_is_told_to_end_saves_first() {
    let straight = completed(SLOW, &[]);
    for (name, number) in [("-HUP", 1), ("-TERM", 15)] {
        let folder = folder_with(SLOW);
        let (mut child, lines) = started(folder.path(), libc::SIG_DFL);
        signal(name, worker(folder.path()));
        let saved = lines.filter(|line| line.contains("checkpoint_saved"));
        let saved = saved.last().expect("a checkpoint");
        assert_eq!(child.wait().unwrap().code(), Some(1));
        let failure = &summary(folder.path(), "base-s1")["failure"];
        assert_eq!(failure["class"], "killed", "{failure}");
        assert_eq!(failure["signal"], number, "{failure}");
        let step = saved.split("\"step\":").nth(1).unwrap();
        let step = step.split(',').next().unwrap();
        let (code, stdout, stderr) = run(folder.path(), &["run", "spec.toml", "--json"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(
            stdout.contains(&format!("\"resumed_step\":{step},")),
            "{step}: {stdout}"
        );
        assert_eq!(numbers(straight.path()), numbers(folder.path()));
    }
}

#[test]
fn memory_that_is_refused_is_out_of_memory_and_its_policy_fires() {
    let spec = format!("{IRIS}\n[on_failure.out_of_memory]\nretries = 1\nbackoff = \"0s\"\n");
    for backtraces in ["0", "1", "full"] {
        let folder = folder_with(&spec);
        let output = runner(folder.path())
            .args(["run", "spec.toml", "--json", "--inject-fault"])
            .arg("*@training:3=exhaust")
            .env("RUST_BACKTRACE", backtraces)
            .output();
        let (code, stdout, stderr) = texts(&output.unwrap());
        assert_eq!(code, 1, "{stderr}");
        let failure = &summary(folder.path(), "base-s1")["failure"];
        assert_eq!(failure["class"], "out_of_memory", "{failure}");
        assert_eq!(failure["signal"], 6, "{failure}");
        let message = failure["message"].as_str().unwrap();
        assert!(
            message.contains("the system refused to allocate 1125899906842624 bytes"),
            "{message}"
        );
        assert_eq!(stdout.matches("run_retried").count(), 1, "{stdout}");
    }
}

#[test]
fn what_a_library_prints_into_standard_output_costs_no_event() {
    let straight = completed(IRIS, &[]);
    for phase in ["loading", "training:3", "validating:2", "evaluating"] {
        let folder = folder_with(IRIS);
        let fault = format!("*@{phase}=print");
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
        let (code, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{phase}: {stderr}");
        assert_eq!(numbers(straight.path()), numbers(folder.path()), "{phase}");
        let log = fs::read(folder.path().join("results/spec/runs/base-s1/run.log")).unwrap();
        let log = String::from_utf8_lossy(&log);
        assert!(log.contains("a driver's banner"), "{phase}: {log}");
    }
}
