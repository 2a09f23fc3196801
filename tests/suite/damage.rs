//! Full disks, read-only folders, and damaged files: the messages, and that progress is kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use burn_runner::record::reseal;

use super::edit::Edit;
use super::support::{
    IRIS, completed, folder_with, goes_on, numbers, redact, run, runner, summary, texts,
};

fn two_seeds() -> String {
    format!("[experiment]\nseeds = [1, 2]\n{IRIS}")
}

/// The messages of each verb, in one text; none of them may panic.
fn said(folder: &Path) -> String {
    // The names of temporary files contain the process id.
    let temporary = regex::Regex::new(r"[^/ ]*\.tmp\b").unwrap();
    let mut text = String::new();
    for arguments in [
        &["list"][..],
        &["report", "results/spec"],
        &["watch", "results", "--once"],
        &["compare", "results/spec"],
        &["run", "spec.toml"],
    ] {
        let (code, stdout, stderr) = run(folder, arguments);
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
        // The columns of a comparison are as wide as their content.
        let stdout = match arguments[0] {
            "compare" => String::new(),
            _ => stdout,
        };
        let shown = redact(&format!("{stdout}{stderr}"), folder);
        let shown = temporary.replace_all(&shown, "[TEMPORARY]");
        text.push_str(&format!(
            "$ runner {}\n{shown}[{code}]\n\n",
            arguments.join(" ")
        ));
    }
    text
}

/// Cuts a file in the middle.
fn tear(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn in_the_way(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap()
    } else {
        drop(fs::remove_file(path))
    }
}

#[test]
fn torn_files_are_named_or_made_again() {
    let files = [
        "plan.json",
        "experiment.toml",
        "report.json",
        "runs/base-s1/run.toml",
        "runs/base-s1/environment.json",
        "runs/base-s1/metrics.csv",
        "runs/base-s1/summary.json",
        "runs/base-s1/transforms.json",
    ];
    let mut text = String::new();
    for file in files {
        let folder = completed(&two_seeds(), &[]);
        let before = numbers(folder.path());
        tear(&folder.path().join("results/spec").join(file));
        text.push_str(&format!("== {file} is torn\n\n{}", said(folder.path())));
        assert_eq!(numbers(folder.path()), before, "{file}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_named() {
    let files = [
        "plan.json",
        "report.md",
        "runs/base-s1/run.toml",
        "runs/base-s1/events.jsonl",
        "runs/base-s1/summary.json",
        "runs/base-s1/run.log",
    ];
    let mut text = String::new();
    for file in files {
        let folder = folder_with(&two_seeds());
        run(
            folder.path(),
            &["run", "spec.toml", "--quiet", "--inject-fault", "*-s1@2"],
        );
        let path = folder.path().join("results/spec").join(file);
        in_the_way(&path);
        fs::create_dir(&path).unwrap();
        text.push_str(&format!("== {file} is a folder\n\n{}", said(folder.path())));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_file_in_the_place_of_a_folder_is_named() {
    let mut text = String::new();
    for path in [
        "runs",
        "runs/base-s1",
        "runs/base-s1/checkpoints",
        "runs/base-s1/model",
    ] {
        let folder = folder_with(&two_seeds());
        run(
            folder.path(),
            &["run", "spec.toml", "--quiet", "--inject-fault", "*-s1@2"],
        );
        let file = folder.path().join("results/spec").join(path);
        in_the_way(&file);
        fs::write(&file, "in the way").unwrap();
        text.push_str(&format!("== {path} is a file\n\n{}", said(folder.path())));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn results_of_another_format_are_named_and_passed_over() {
    let mut text = String::new();
    for (file, now, then) in [
        ("runs/base-s1/run.toml", "format = 3", "format = 1"),
        ("plan.json", "\"format\": 3", "\"format\": 4"),
    ] {
        let folder = completed(&two_seeds(), &[]);
        let path = folder.path().join("results/spec").join(file);
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.contains(now));
        // Only the version can be relied on.
        let other = written.edit_first(now, then).edit("seed", "dees");
        fs::write(&path, other).unwrap();
        reseal(&path).unwrap();
        text.push_str(&format!("== {file} has {then}\n\n{}", said(folder.path())));
    }
    insta::assert_snapshot!(text);
}

/// A run that failed in its last epoch, with the path and the text of its events.
fn failed_in_the_middle() -> (tempfile::TempDir, PathBuf, String) {
    let folder = folder_with(IRIS);
    run(
        folder.path(),
        &["run", "spec.toml", "--quiet", "--inject-fault", "*@3"],
    );
    let path = folder.path().join("results/spec/runs/base-s1/events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    (folder, path, text)
}

#[test]
fn a_torn_event_is_passed_over() {
    let (folder, path, text) = failed_in_the_middle();
    fs::write(&path, &text[..text.len() - 20]).unwrap();
    let (code, list, stderr) = run(folder.path(), &["list"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(list.contains("incomplete"), "{list}");
    goes_on(folder.path());
    let straight = completed(IRIS, &[]);
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

#[test]
fn clocks_that_jump_change_nothing() {
    let (folder, path, text) = failed_in_the_middle();
    let jumped = text.lines().enumerate().map(|(at, line)| {
        let (_, rest) = line.split_once(',').unwrap();
        format!("{{\"time_ms\":{},{rest}\n", 1000 - 10 * at)
    });
    fs::write(&path, jumped.collect::<String>()).unwrap();
    reseal(&path).unwrap();
    goes_on(folder.path());
    let straight = completed(IRIS, &[]);
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

#[test]
fn folders_that_cannot_be_made_are_refused() {
    let folder = folder_with(IRIS);
    let mut text = String::new();
    // Where not even root may write.
    for results in ["/proc/results", "/dev/null/results"] {
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--results", results]);
        assert_eq!(code, 2, "{stderr}");
        text.push_str(&stderr);
    }
    insta::assert_snapshot!(text);
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    let folder = folder_with(IRIS);
    let results = folder.path().join("results");
    fs::create_dir(&results).unwrap();
    fs::set_permissions(&results, fs::Permissions::from_mode(0o555)).unwrap();
    let program = folder.path().join("runner");
    fs::copy(env!("CARGO_BIN_EXE_runner"), &program).unwrap();
    let mut command = std::process::Command::new(program);
    command
        .current_dir(folder.path())
        .args(["run", "spec.toml"]);
    if fs::write(results.join("probe"), "").is_ok() {
        // Root may write to read-only folders, and nobody may not.
        fs::remove_file(results.join("probe")).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        command.uid(65534).gid(65534);
    }
    let (code, _, stderr) = texts(&command.output().unwrap());
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("permission denied"), "{stderr}");
}

/// Checkpoints of more than 100 KiB, and nothing else of more than 20.
const LARGE: &str = r#"
[data]
type = "digits"

[model]
type = "mlp"
hidden = [400]

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 8
batch_size = 100
"#;

#[cfg(unix)]
#[test]
fn a_disk_that_fills_up_costs_nothing_that_was_reached() {
    let straight = completed(LARGE, &[]);
    let folder = folder_with(LARGE);
    let (code, _, _) = run(
        folder.path(),
        &["run", "spec.toml", "--quiet", "--inject-fault", "*@4"],
    );
    assert_eq!(code, 1);
    let checkpoints = folder.path().join("results/spec/runs/base-s1/checkpoints");
    let steps = || {
        let files = fs::read_dir(&checkpoints).unwrap().flatten();
        let names = files.map(|e| e.file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|n| n.ends_with(".json")).collect();
        names.sort();
        names
    };
    let before = steps();
    assert!(!before.is_empty());
    let program = runner(folder.path()).get_program().to_owned();
    let output = Command::new("bash")
        .current_dir(folder.path())
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 40; exec \"$0\" run spec.toml",
        ])
        .arg(program)
        .output()
        .unwrap();
    let (code, _, stderr) = texts(&output);
    assert_eq!(code, 1, "{stderr}");
    let failure = &summary(folder.path(), "base-s1")["failure"];
    assert_eq!(failure["class"], "disk", "{failure}");
    assert_eq!(steps(), before, "the last good checkpoint is kept");
    goes_on(folder.path());
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}
