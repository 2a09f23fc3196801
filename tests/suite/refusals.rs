//! Errors outside experiment files, and what a refusal leaves behind. The messages of wrong files are in `tests/bad`,
//! read by `crates/core/tests/bad.rs`.

use std::fs;

use super::support::{IRIS, folder_with, run, runner, texts};

#[test]
fn a_wrong_file_ends_with_2_and_writes_nothing() {
    let folder = folder_with("[data]\ntype = \"irys\"\n");
    for verb in ["check", "plan", "run"] {
        let (code, stdout, stderr) = run(folder.path(), &[verb, "spec.toml"]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains("did you mean `iris`?"), "{stderr}");
    }
    assert!(!folder.path().join("results").exists());
}

#[test]
fn what_is_no_experiment_file_is_refused() {
    let folder = folder_with(IRIS);
    let large = fs::File::create(folder.path().join("large.toml")).unwrap();
    large.set_len(50 << 20).unwrap();
    fs::write(
        folder.path().join("latin1.toml"),
        b"[data]\ntype = \"\xe9\"\n",
    )
    .unwrap();
    fs::create_dir_all(folder.path().join("results/spec/runs")).unwrap();
    for name in ["plan.json", "experiment.toml"] {
        fs::write(folder.path().join("results/spec").join(name), "").unwrap();
    }
    let mut messages = String::new();
    for path in [
        ".",
        "results/spec",
        "nowhere.toml",
        "large.toml",
        "latin1.toml",
    ] {
        let (code, _, stderr) = run(folder.path(), &["check", path]);
        assert_eq!(code, 2);
        messages.push_str(&stderr);
        messages.push('\n');
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn wrong_overrides_point_at_the_flag() {
    let folder = folder_with(IRIS);
    let mut messages = String::new();
    let sets = [
        "train.epochs",
        "=3",
        "train.epochs=three",
        "optimizer.learning_rat=1e-2",
        "train.epochs=0",
        "train.epochs=[1",
    ];
    for set in sets {
        let (code, _, stderr) = run(folder.path(), &["check", "spec.toml", "--set", set]);
        assert_eq!(code, 2, "{set}");
        messages.push_str(&format!("$ --set {set}\n{stderr}\n"));
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn setting_a_swept_key_is_refused() {
    let folder = folder_with(&format!(
        "{IRIS}\n[sweep.grid]\noptimizer.learning_rate = [0.1, 0.2]\n"
    ));
    let (code, _, stderr) = run(
        folder.path(),
        &["check", "spec.toml", "--set", "optimizer.learning_rate=0.5"],
    );
    assert_eq!(code, 2);
    insta::assert_snapshot!(stderr);
    let axis = "sweep.grid.optimizer.learning_rate=[0.5]";
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml", "--set", axis]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn wrong_usage_ends_with_2() {
    let folder = folder_with(IRIS);
    for arguments in [
        &["run", "spec.toml", "--jobs", "0"][..],
        &["run", "spec.toml", "--only", "nothing*"],
        &["run", "spec.toml", "--log", "=="],
        &["report", "."],
        &["list", "."],
        &["exec", "."],
        &["fly"],
    ] {
        let (code, stdout, stderr) = run(folder.path(), arguments);
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        assert!(stderr.contains("error: "), "{arguments:?}: {stderr}");
    }
}

#[test]
fn results_that_cannot_be_written_are_refused() {
    let folder = folder_with(IRIS);
    fs::write(folder.path().join("file"), "in the way").unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--results", "file"]);
    assert_eq!(code, 2);
    insta::assert_snapshot!(stderr);
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_no_error() {
    let folder = folder_with(IRIS);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = runner(folder.path())
        .args(["run", "spec.toml", "--json"])
        .stdout(writer)
        .output()
        .unwrap();
    let (code, _, stderr) = texts(&output);
    assert_eq!(code, 0, "{stderr}");
    assert!(folder.path().join("results/spec/report.md").exists());
}

/// Negative numbers are values, and what is wrong with them is said by the flag that they were given to.
#[test]
fn a_negative_number_is_refused_by_its_flag() {
    let folder = folder_with(IRIS);
    let cases: [(&[&str], &str); 8] = [
        (
            &["generate", "run", "--prompt", "a", "--temperature", "-1"],
            "--temperature",
        ),
        (
            &["generate", "run", "--prompt", "a", "--top-p", "-0.5"],
            "--top-p",
        ),
        (
            &["generate", "run", "--prompt", "a", "--seed", "-1"],
            "--seed",
        ),
        (
            &["predict", "run", "--data", "x.csv", "--batch-size", "-4"],
            "--batch-size",
        ),
        (&["run", "spec.toml", "--jobs", "-2"], "--jobs"),
        (&["lr-find", "spec.toml", "--min", "-1e-3"], "--min"),
        (&["compare", "results", "--alpha", "-.05"], "--alpha"),
        (&["list", "--limit", "-3"], "--limit"),
    ];
    for (arguments, flag) in cases {
        let (code, _, said) = run(folder.path(), arguments);
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(
            said.contains(flag) && !said.contains("no flag"),
            "{arguments:?}: {said}"
        );
        assert!(
            said.contains(arguments[arguments.len() - 1]),
            "{arguments:?}: {said}"
        );
    }
    // A flag that does not exist is still one.
    let (code, _, said) = run(folder.path(), &["list", "-x"]);
    assert!(code == 2 && said.contains("has no flag `-x`"), "{said}");
    // One of another verb is not taken for a key, and no file is asked for where none is taken.
    let (_, _, said) = run(folder.path(), &["plan", "spec.toml", "--only", "a*"]);
    assert!(
        said.contains("`--only` is a flag of `runner run`"),
        "{said}"
    );
    let (_, _, said) = run(folder.path(), &["predict", "results/a", "--file", "a.csv"]);
    assert!(!said.contains("experiment file"), "{said}");
}
