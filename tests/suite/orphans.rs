//! Workers whose runner was killed: they lock nothing for long, and a waiting runner reports them.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::support::{IRIS, completed, folder_with, numbers, runner, summary, texts};

fn signal(name: &str, id: u32) {
    let _ = Command::new("kill").args([name, &id.to_string()]).status();
}

/// Kills a process at the end of the test.
struct Killed(u32);

impl Drop for Killed {
    fn drop(&mut self) {
        signal("-KILL", self.0);
    }
}

/// The process that has a run, according to its lock.
fn holder(folder: &Path) -> u32 {
    let lock = folder.join("results/spec/runs/base-s1/.lock");
    let text = fs::read_to_string(lock).unwrap();
    let pid = text.lines().find_map(|line| line.strip_prefix("pid = "));
    pid.expect("the worker is named").parse().unwrap()
}

/// A run whose worker has lost its runner: at the end of an epoch or, if it is to hang, while it hangs.
fn orphaned(fault: &str) -> (tempfile::TempDir, u32) {
    let folder = folder_with(IRIS);
    let mut child = runner(folder.path())
        .args(["run", "spec.toml", "--json", "--inject-fault", fault])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|line| line.contains("epoch_finished")));
    let worker = holder(folder.path());
    let log = folder.path().join("results/spec/runs/base-s1/run.log");
    while fault.ends_with("=hang") && !fs::read_to_string(&log).unwrap().contains("injected hang") {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    (folder, worker)
}

#[test]
fn a_worker_that_hangs_ends_itself_when_its_runner_is_gone() {
    let straight = completed(IRIS, &[]);
    let (folder, worker) = orphaned("*@training:13=hang");
    let _killed = Killed(worker);
    let output = runner(folder.path()).args(["run", "spec.toml"]).output();
    let (code, _, stderr) = texts(&output.unwrap());
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("waiting: a worker of an earlier command is still training run `base-s1`")
            && stderr.contains(&format!("process {worker} on host"))
            && stderr.contains(" exec ")
            && stderr.contains(&format!("`kill -9 {worker}`")),
        "{stderr}"
    );
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

/// Starts the command again, and reads its output until it waits.
fn waiting(folder: &Path) -> (Child, BufReader<impl Read + use<>>) {
    let mut command = runner(folder);
    command
        .args(["run", "spec.toml"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // The test process may ignore it, and its children would too. SAFETY: it may be called between `fork` and `exec`.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("to stop waiting") {
        line.clear();
        let read = said.read_line(&mut line).unwrap();
        assert!(read > 0, "it waits");
    }
    (child, said)
}

#[test]
fn one_interrupt_ends_the_wait_for_a_worker_that_cannot_end_itself() {
    let straight = completed(IRIS, &[]);
    let (folder, worker) = orphaned("*@training:13=hang");
    let killed = Killed(worker);
    // It cannot check its leash either.
    signal("-STOP", worker);
    for name in ["-INT", "-TERM", "-HUP"] {
        let (mut child, mut said) = waiting(folder.path());
        signal(name, child.id());
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{name}: {rest}");
        assert!(rest.contains("stopped while waiting"), "{name}: {rest}");
        assert!(rest.contains("to continue: runner run"), "{name}: {rest}");
    }
    // The suggested command ends the worker, and the wait.
    let (mut child, _said) = waiting(folder.path());
    drop(killed);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

#[test]
fn a_worker_that_waits_for_another_stops_when_it_is_told_to() {
    let (folder, worker) = orphaned("*@training:13=hang");
    let _killed = Killed(worker);
    signal("-STOP", worker);
    // Its standard input is closed from the start.
    let output = runner(folder.path())
        .args(["exec", "results/spec/runs/base-s1"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (code, stdout, stderr) = texts(&output);
    assert_eq!(code, 130, "{stderr}");
    assert!(stdout.contains(r#""outcome":"interrupted""#), "{stdout}");
}

#[test]
fn a_worker_saves_when_its_runner_is_killed() {
    let straight = completed(IRIS, &[]);
    let (folder, _) = orphaned("nothing@1");
    let output = runner(folder.path()).args(["run", "spec.toml"]).output();
    let (code, _, stderr) = texts(&output.unwrap());
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("resumed from where"), "{stderr}");
    assert_eq!(summary(folder.path(), "base-s1")["outcome"], "completed");
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}
