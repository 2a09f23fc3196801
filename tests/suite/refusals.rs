//! Every wrong file of `tests/bad` with its exact message, and what is wrong outside of a file.

use std::fs;

use super::support::{IRIS, cache, folder_with, plan_in, root, run, runner, texts};

/// Files whose message depends on the features of the build.
const DEPENDS_ON_BUILD: [&str; 1] = ["device_not_compiled"];

#[test]
fn wrong_files_are_refused_with_place_reason_and_remedy() {
    let folder = root().join("tests/bad");
    // Files that others extend are in folders below.
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    assert!(files.len() >= 80, "the catalogue shrank to {}", files.len());
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        if DEPENDS_ON_BUILD.contains(&name.as_str()) && cfg!(feature = "rocm") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        match plan_in(Some(&folder), &format!("{name}.toml"), &text) {
            Ok(_) => panic!("{name} was accepted"),
            Err(message) => {
                // The cache may lie within the checkout.
                let message = message.replace(&cache().display().to_string(), "[CACHE]");
                let message = message.replace(&root().display().to_string(), "[ROOT]");
                insta::assert_snapshot!(name, message);
            }
        }
    }
}

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
    let mut messages = String::new();
    for path in [".", "nowhere.toml", "large.toml", "latin1.toml"] {
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
