//! Standard output that cannot be written: a full disk is an error, a closed pipe is not, and standard error may fail
//! too.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use super::support::{IRIS, completed, run, runner, summary, texts};

const RUN: &str = "results/spec/runs/base-s1";

/// Every verb that prints, in a folder with a completed experiment, with its usual exit code.
const VERBS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["init", "--out", "-"],
    &["init", "--force"],
    &["plan", "spec.toml"],
    &["plan", "spec.toml", "--json"],
    &["plan", "spec.toml", "--explain"],
    &["data", "spec.toml"],
    &["describe", "spec.toml"],
    &["describe", "spec.toml", "--dot"],
    &["memory", "--reference"],
    &["memory", "spec.toml", "--json"],
    &["render", "spec.toml"],
    &["run", "spec.toml"],
    &["report", "results/spec"],
    &["report", "results"],
    &["report", "results/spec", "--json"],
    &["report", "--print-template"],
    &["compare", "results/spec"],
    &["compare", "results/spec", "--json"],
    &["compare", "results/spec", "--csv"],
    &["compare", "results/spec", "--md"],
    &["list"],
    &["list", "--json"],
    &["list", "--csv"],
    &["watch", "--once"],
    &["diff", RUN, RUN],
    &["diff", RUN, RUN, "--json"],
    &["diff", "results/spec", "results/spec"],
    &["export", "csv", "results"],
    &["export", "jsonl", "results", "--rows", "steps"],
    &["bundle", RUN, "--force"],
    &["bundle", RUN, "--force", "--json"],
    &["reproduce", RUN],
    &["reproduce", RUN, "--json"],
    &["prove", "spec.toml"],
    &["devices"],
    &["devices", "--json"],
    &["schema", "-"],
    &["exec", RUN],
];

const MESSAGE: &str = "error: cannot write to standard output: no space left on device";

fn full() -> Stdio {
    let full = File::options().write(true).open("/dev/full").unwrap();
    full.into()
}

/// A pipe that nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn with_streams(
    folder: &Path,
    verb: &[&str],
    stdout: Stdio,
    stderr: Stdio,
) -> (i32, String, String) {
    let mut command = runner(folder);
    command.args(verb).stdout(stdout).stderr(stderr);
    texts(&command.spawn().unwrap().wait_with_output().unwrap())
}

#[test]
fn a_full_disk_is_told_and_a_closed_pipe_is_not() {
    let folder = completed(IRIS, &[]);
    for verb in VERBS {
        let (code, _, stderr) = with_streams(folder.path(), verb, full(), Stdio::piped());
        assert_eq!(code, 1, "{verb:?}: {stderr}");
        assert!(stderr.contains(MESSAGE), "{verb:?}: {stderr}");
        assert_eq!(
            stderr.matches("cannot write").count(),
            1,
            "{verb:?}: {stderr}"
        );
        let (code, _, stderr) = with_streams(folder.path(), verb, closed(), Stdio::piped());
        assert_eq!(code, 0, "{verb:?}: {stderr}");
        assert!(!stderr.contains("standard output"), "{verb:?}: {stderr}");
    }
}

/// More than all buffers hold.
#[test]
fn a_long_table_is_written_as_far_as_somebody_reads() {
    let settings = ["train.epochs=150", "train.batch_size=4"];
    let sets = settings.iter().flat_map(|set| ["--set", *set]);
    let folder = completed(IRIS, &sets.collect::<Vec<_>>());
    for form in ["csv", "jsonl"] {
        let verb = ["export", form, "results", "--rows", "steps"];
        let (_, table, _) = run(folder.path(), &verb);
        assert!(table.len() > 100_000, "{}", table.len());
        let (code, _, stderr) = with_streams(folder.path(), &verb, closed(), Stdio::piped());
        assert_eq!((code, stderr.as_str()), (0, ""), "{form}");
        // A file is only replaced if that is asked for.
        let to = [&verb[..], &["--to", "table"]].concat();
        assert_eq!(run(folder.path(), &to).0, 0);
        std::fs::write(folder.path().join("table"), "mine").unwrap();
        let (code, _, stderr) = run(folder.path(), &to);
        assert!(code == 2 && stderr.contains("`table` exists"), "{stderr}");
        assert_eq!(std::fs::read(folder.path().join("table")).unwrap(), b"mine");
        let (code, ..) = run(folder.path(), &[&to[..], &["--force"]].concat());
        assert_eq!(code, 0);
        let written = std::fs::read_to_string(folder.path().join("table")).unwrap();
        assert_eq!(written, table);
        std::fs::remove_file(folder.path().join("table")).unwrap();
    }
}

#[test]
fn words_that_nobody_can_read_change_nothing() {
    let folder = completed(IRIS, &[]);
    let wrong: &[&[&str]] = &[
        &["list", "nowhere"],
        &["plan", "nowhere.toml"],
        &["nonsense"],
    ];
    for (verbs, expected) in [(VERBS, 0), (wrong, 2)] {
        for verb in verbs {
            for stderr in [full(), closed()] {
                let (code, stdout, _) = with_streams(folder.path(), verb, Stdio::piped(), stderr);
                assert_eq!(code, expected, "{verb:?}: {stdout}");
            }
        }
    }
    // No message can be shown, but the exit code is.
    let (code, ..) = with_streams(folder.path(), &["list"], full(), full());
    assert_eq!(code, 1);
}

#[test]
fn what_is_trained_is_recorded_when_its_events_cannot_be_printed() {
    let folder = super::support::folder_with(IRIS);
    let verb = ["run", "spec.toml", "--json", "--quiet"];
    let (code, _, stderr) = with_streams(folder.path(), &verb, full(), Stdio::piped());
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains(MESSAGE), "{stderr}");
    assert_eq!(summary(folder.path(), "base-s1")["outcome"], "completed");
    assert!(folder.path().join("results/spec/report.json").exists());
    let (code, ..) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0);
}

/// A server whose address could not be reported does not keep running.
#[test]
fn a_server_needs_to_say_where_it_is() {
    let folder = completed(IRIS, &[]);
    let (code, _, stderr) = with_streams(folder.path(), &["serve"], full(), Stdio::piped());
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains(MESSAGE), "{stderr}");
}
