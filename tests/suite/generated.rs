//! Generated files that are committed are up to date.

use std::fs;

use burn_runner::spec::schema::experiment_schema;

use super::support::{root, run};

#[test]
fn the_schema_is_fresh() {
    let committed =
        fs::read_to_string(root().join("schemas/experiment.schema.json")).unwrap_or_default();
    assert!(
        committed == experiment_schema(),
        "run `runner schema` and commit schemas/experiment.schema.json"
    );
}

#[test]
fn shipped_experiments_are_accepted_and_say_what_they_are() {
    for entry in fs::read_dir(root().join("experiments")).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("#:schema ../schemas/experiment.schema.json\n\n"),
            "{}",
            path.display()
        );
        for head in ["# Question ", "# Cost ", "# Expected ", "# Command "] {
            assert!(text.contains(head), "{} lacks `{head}`", path.display());
        }
        let planned = super::support::plan_in(path.parent(), &path.display().to_string(), &text);
        assert!(planned.is_ok(), "{}", planned.unwrap_err());
    }
}

#[test]
fn the_reference_chapters_are_fresh() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = run(root(), &["manual", folder.path().to_str().unwrap()]);
    assert_eq!(code, 0, "{stderr}");
    for entry in fs::read_dir(folder.path()).unwrap().flatten() {
        let name = entry.file_name();
        let committed = root().join("docs/reference").join(&name);
        let committed = fs::read_to_string(committed).unwrap_or_default();
        assert!(
            committed == fs::read_to_string(entry.path()).unwrap(),
            "run `runner manual` and commit docs/reference/{}",
            name.display()
        );
    }
}
