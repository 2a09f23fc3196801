//! `runner diff`: two runs, and the runs of two experiments.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::support::{IRIS, completed, read_json, redact, run};

const A: &str = "results/spec/runs/base-s1";

fn diff(folder: &Path, a: &str, b: &str) -> (i32, Json) {
    let (code, stdout, stderr) = run(folder, &["diff", a, b, "--json"]);
    let json = serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}{stderr}"));
    (code, json)
}

fn copy(folder: &Path, to: &str) -> std::path::PathBuf {
    let (from, to) = (folder.join(A), folder.join(to));
    for part in ["", "model", "trace"] {
        fs::create_dir_all(to.join(part)).unwrap();
        for entry in fs::read_dir(from.join(part)).unwrap().flatten() {
            if entry.path().is_file() {
                fs::copy(entry.path(), to.join(part).join(entry.file_name())).unwrap();
            }
        }
    }
    to
}

#[test]
fn a_reproduction_is_equal_and_another_seed_is_not() {
    let spec = format!("{IRIS}[experiment]\nseeds = [1, 2]\n");
    // As many threads as the reproduction will have.
    let folder = completed(&spec, &["--jobs", "1"]);
    let folder = folder.path();
    let (code, _, stderr) = run(folder, &["reproduce", A]);
    assert_eq!(code, 0, "{stderr}");
    let (code, stdout, _) = run(folder, &["diff", A, "results/spec/reproduced/base-s1"]);
    insta::assert_snapshot!(format!("{code}\n{}", redact(&stdout, folder)));
    let (code, stdout, _) = run(folder, &["diff", A, "results/spec/runs/base-s2"]);
    insta::assert_snapshot!(format!("{code}\n{}", redact(&stdout, folder)));
}

#[test]
fn other_networks_and_lengths_are_held_against_each_other() {
    let folder = completed(IRIS, &[]);
    let folder = folder.path();
    let more = ["--set", "model.hidden=[8]", "--set", "train.epochs=2"];
    let arguments = [
        &["run", "spec.toml", "--quiet", "--results", "other"],
        &more[..],
    ]
    .concat();
    assert_eq!(run(folder, &arguments).0, 0);
    let (code, stdout, _) = run(folder, &["diff", A, "other/spec/runs/base-s1"]);
    insta::assert_snapshot!(format!("{code}\n{}", redact(&stdout, folder)));
    let (code, stdout, stderr) = run(folder, &["diff", "results/spec", "other/spec"]);
    insta::assert_snapshot!(format!("{code}\n{stdout}{stderr}"));
    let (code, stdout, _) = run(folder, &["diff", "results/spec", "results/spec"]);
    assert_eq!((code, stdout.as_str()), (0, "base-s1: equal\n"));
}

#[test]
fn weights_are_measured_by_parameter() {
    let folder = completed(&format!("{IRIS}[experiment]\nseeds = [1, 2]\n"), &[]);
    let folder = folder.path();
    let (code, json) = diff(folder, A, "results/spec/runs/base-s2");
    assert_eq!(code, 1);
    let parameters = json["weights"]["parameters"].as_array().unwrap();
    let digests = fs::read_to_string(folder.join(A).join("trace/digests.csv")).unwrap();
    let traced = digests.lines().filter(|line| line.starts_with("0,"));
    let traced: Vec<_> = traced.filter_map(|line| line.split(',').nth(1)).collect();
    let named: Vec<_> = parameters
        .iter()
        .map(|p| p["parameter"].as_str().unwrap())
        .collect();
    assert_eq!(named, traced);
    for parameter in parameters {
        assert!(parameter["relative_norm"].as_f64().unwrap() > 0.0);
        assert!(parameter["ulps"].as_f64().unwrap() > 0.0);
    }
    // Seeds differ from the initial weights on, before any step.
    assert_eq!(json["numbers"]["first_parameters"][0], 0);
    assert_eq!(json["numbers"]["first_loss"][0], 1);
    assert_eq!(json["settings"]["differences"][0]["name"], "seed");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let folder = completed(IRIS, &[]);
    let folder = folder.path();
    let damages: [(&str, &str, Option<&str>); 5] = [
        ("run.toml", "settings", Some("format = ")),
        ("environment.json", "environment", Some("{")),
        ("events.jsonl", "data", None),
        ("trace/losses.f64", "steps", None),
        ("run.toml", "settings", Some("format = 1\n")),
    ];
    let mut text = String::new();
    for (number, (file, subject, content)) in damages.into_iter().enumerate() {
        let name = format!("damaged-{number}");
        let copied = copy(folder, &name);
        match content {
            Some(content) => fs::write(copied.join(file), content).unwrap(),
            None => fs::remove_file(copied.join(file)).unwrap(),
        }
        let (code, json) = diff(folder, A, &name);
        assert_eq!(code, 1, "{file}");
        let not = json["not_compared"].as_array().unwrap();
        assert!(
            not.iter().any(|not| not["what"] == subject),
            "{file}: {not:?}"
        );
        for not in not {
            text += &format!("{file}: {}: {}\n", not["what"], not["why"]);
        }
    }
    insta::assert_snapshot!(text);
    // Missing weights are not equal, whatever was recorded.
    let copied = copy(folder, "without");
    fs::remove_dir_all(copied.join("model")).unwrap();
    let (code, json) = diff(folder, A, "without");
    assert_eq!(code, 1);
    assert_eq!(json["not_compared"][0]["what"], "weights", "{json}");
}

#[test]
fn a_capsule_is_a_run_too() {
    let folder = completed(IRIS, &[]);
    let folder = folder.path();
    assert_eq!(run(folder, &["bundle", A, "--out", "run.tar.zst"]).0, 0);
    let (code, json) = diff(folder, A, "run.tar.zst");
    assert_eq!((code, &json["is_equal"]), (0, &Json::Bool(true)), "{json}");
    let (code, _, stderr) = run(folder, &["diff", A, "results/spec"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("one is a run and the other an experiment"),
        "{stderr}"
    );
    let (code, _, stderr) = run(folder, &["diff", A, "nowhere"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("`nowhere` is neither"), "{stderr}");
    let summary = read_json(&folder.join(A).join("summary.json"));
    assert_eq!(summary["outcome"], "completed");
}
