//! `runner init`: its files are accepted by `runner check`, and nothing is overwritten.

use std::fs;

use super::edit::Edit;
use super::support::run;

#[test]
fn a_first_file_is_written_checked_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = run(folder.path(), &["init"]);
    assert_eq!((code, stderr.trim()), (0, "wrote iris.toml; next:"));
    assert_eq!(stdout, "runner check iris.toml\nrunner run iris.toml\n");
    let (code, _, stderr) = run(folder.path(), &["check", "iris.toml"]);
    assert_eq!(
        (code, stderr.lines().next()),
        (0, Some("iris.toml: no errors; 4 trials, 12 runs"))
    );
    let file = folder.path().join("iris.toml");
    fs::write(&file, "# mine").unwrap();
    let (code, _, stderr) = run(folder.path(), &["init"]);
    assert_eq!(code, 2, "{stderr}");
    insta::assert_snapshot!(stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), "# mine");
    let (code, _, _) = run(folder.path(), &["init", "--force"]);
    assert_eq!(code, 0);
    let written = fs::read_to_string(&file).unwrap();
    let (code, stdout, _) = run(folder.path(), &["init", "--out", "-"]);
    assert_eq!((code, stdout), (0, written.edit("iris.toml", "FILE")));
}

#[test]
fn the_schema_and_the_data_are_found_from_the_files_folder() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for inside in ["schemas", "my experiments", "data"] {
        fs::create_dir(at(inside)).unwrap();
    }
    fs::write(at("schemas/experiment.schema.json"), "{}").unwrap();
    fs::write(at("data/book.v2.txt"), "A line.\nAnd another one.\n").unwrap();
    let out = [
        "init",
        "--data",
        "data/book.v2.txt",
        "--out",
        "my experiments/a.toml",
    ];
    let (code, stdout, stderr) = run(folder.path(), &out);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        stdout,
        "runner check 'my experiments/a.toml'\nrunner run 'my experiments/a.toml'\n"
    );
    let text = fs::read_to_string(at("my experiments/a.toml")).unwrap();
    assert!(
        text.starts_with("#:schema ../schemas/experiment.schema.json\n\n"),
        "{text}"
    );
    assert!(text.contains("path = \"../data/book.v2.txt\""), "{text}");
    let (code, _, _) = run(folder.path(), &["init", "--data", "data/book.v2.txt"]);
    assert!(code == 0 && at("book.toml").is_file());
}

#[test]
fn what_init_cannot_do_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "A text.").unwrap();
    let commands = [
        ["init", "--data", "missing.csv"].as_slice(),
        &["init", "--data", "a.txt", "--task", "regression"],
        &["init", "--task", "regression"],
        &["init", "--out", "nowhere/a.toml"],
        &["init", "--data", "/dev/null"],
    ];
    let mut said = String::new();
    for command in commands {
        let (code, _, stderr) = run(folder.path(), command);
        assert_eq!(code, 2, "{stderr}");
        said.push_str(&format!("$ runner {}\n{stderr}\n", command.join(" ")));
    }
    insta::assert_snapshot!(said);
    let (code, _, stderr) = run(folder.path(), &["init", "--task", "guessing"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("the tasks are classification, multi_label"),
        "{stderr}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
