//! Searches that learn from earlier results.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{IRIS, folder_with, read_json, run};

const AXES: &str = r#"
[sweep.random.axes]
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 0.3 }
train.batch_size = { type = "integer", min = 8, max = 64, log = true }
"#;

fn first() -> String {
    format!("{IRIS}\n[search]\ntype = \"sobol\"\nnum_trials = 12\n{AXES}")
}

fn second() -> String {
    let search = "[search]\ntype = \"tpe\"\nnum_trials = 6\nwarm_start = [\"results/spec\"]\n";
    format!("{IRIS}\n{search}{AXES}")
}

/// A folder with the results of the first search, and the file of the second.
fn folder(first: &str, second: &str) -> tempfile::TempDir {
    let folder = folder_with(first);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    fs::write(folder.path().join("second.toml"), second).unwrap();
    folder
}

fn searched(folder: &Path, arguments: &[&str]) -> Json {
    let all = [&["run", "second.toml", "--quiet"], arguments].concat();
    let (code, _, stderr) = run(folder, &all);
    assert_eq!(code, 0, "{stderr}");
    read_json(&folder.join("results/second/plan.json"))["search"].clone()
}

fn values(search: &Json, of: &str) -> Vec<Json> {
    let all = search[of].as_array().unwrap();
    all.iter().map(|each| each["values"].clone()).collect()
}

#[test]
fn a_search_learns_from_earlier_results() {
    let begun = folder(&first(), &second());
    let found = searched(begun.path(), &[]);
    let prior = values(&found, "prior");
    let earlier = read_json(&begun.path().join("results/spec/plan.json"));
    assert_eq!(prior, values(&earlier["search"], "suggestions"));
    let all = found["suggestions"].as_array().unwrap();
    assert_eq!(all.len(), 6);
    assert!(all.iter().all(|known| known["by"] == "model"), "{all:?}");
    let tried = values(&found, "suggestions");
    assert!(tried.iter().all(|point| !prior.contains(point)));
    let report = fs::read_to_string(begun.path().join("results/second/report.md")).unwrap();
    assert!(
        report.contains("learned from 12 trials of earlier results"),
        "{report}"
    );
    // What it began with is recorded, and need not be there any more.
    let whole = folder(&first(), &second());
    assert_eq!(found, searched(whole.path(), &[]));
    fs::remove_dir_all(begun.path().join("results/spec")).unwrap();
    let more = ["--set", "search.num_trials=9"];
    let found = searched(begun.path(), &more);
    assert_eq!(found, searched(whole.path(), &more));
    assert_eq!(values(&found, "suggestions")[..6], tried);
    let (code, stdout, stderr) = run(begun.path(), &["plan", "second.toml", more[0], more[1]]);
    assert_eq!(code, 0, "{stderr}");
    let done = stdout.lines().filter(|line| line.ends_with("done"));
    assert_eq!(done.count(), 9, "{stdout}");
}

#[test]
fn earlier_points_are_not_tried_again() {
    // Of six points, three were tried.
    let axes = "[sweep.random.axes]\nmodel.hidden = { type = \"choice\", values = [[1], [2], [3], [4], [5], [6]] }\n";
    let first = format!("{IRIS}\n[search]\ntype = \"sobol\"\nnum_trials = 3\n{axes}");
    for method in ["sobol", "random", "tpe"] {
        let search = format!(
            "[search]\ntype = \"{method}\"\nnum_trials = 4\nwarm_start = [\"results/spec\"]\n"
        );
        let folder = folder(&first, &format!("{IRIS}\n{search}{axes}"));
        let found = searched(folder.path(), &[]);
        let prior = values(&found, "prior");
        let tried = values(&found, "suggestions");
        assert!(
            tried.iter().all(|point| !prior.contains(point)),
            "{method} {tried:?}"
        );
    }
}

#[test]
fn results_of_another_search_and_damaged_ones_are_refused() {
    let begun = folder(&first(), &second());
    let mut runs = fs::read_dir(begun.path().join("results/spec/runs")).unwrap();
    let one = runs.next().unwrap().unwrap().path().join("run.toml");
    let whole = fs::read(&one).unwrap();
    fs::write(&one, "{").unwrap();
    let (code, _, stderr) = run(begun.path(), &["check", "second.toml"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("of `results/spec` cannot be read"),
        "{stderr}"
    );
    fs::write(&one, whole).unwrap();
    for (from, to, expected) in [
        ("results/spec", "results/none", "contains no results"),
        ("results/spec", "${env:HOME}/spec", "references are not"),
        ("max = 0.3", "max = 0.01", "which this search cannot try"),
        (
            "train.batch_size = {",
            "model.hidden = { type = \"choice\", values = [[4], [8]] }\ntrain.batch_size = {",
            "it does not vary `model.hidden`",
        ),
        (
            "train.batch_size = {",
            "model.hidden = { type = \"choice\", values = [[4], [8]] }\n#",
            "it varies `train.batch_size`, which is not an axis",
        ),
        (
            "[model]",
            "[objective]\nmetric = \"valid/loss\"\n[model]",
            "the objective of `results/spec` is valid/accuracy",
        ),
        ("[\"results/spec\"]", "\"results/spec\"", "must be a list"),
    ] {
        fs::write(begun.path().join("second.toml"), second().edit(from, to)).unwrap();
        for verb in ["check", "plan", "run"] {
            let (code, _, stderr) = run(begun.path(), &[verb, "second.toml"]);
            assert_eq!(code, 2, "{stderr}");
            assert!(stderr.contains(expected), "{stderr}");
            assert!(stderr.contains("second.toml:"), "{stderr}");
        }
        assert!(!begun.path().join("results/second").exists());
    }
}
