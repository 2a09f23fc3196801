//! The results tree, the contract for tools, and the reports.

use std::fs;

use burn_runner::record::ExperimentFolder;
use serde_json::Value as Json;

use super::support::{IRIS, folder_with, redact, run, tree};

fn swept() -> tempfile::TempDir {
    let folder = folder_with(&format!(
        "[experiment]\nquestion = \"How wide?\"\nseeds = [1, 2]\n{IRIS}\n[data.split]\ntest = 0.2\n[sweep.grid]\nmodel.hidden = [[], [32]]\n"
    ));
    let (code, stdout, stderr) = run(
        folder.path(),
        &[
            "run",
            "spec.toml",
            "--only",
            "*none*",
            "--only",
            "hidden=32-s1",
            "--quiet",
        ],
    );
    assert_eq!(code, 0, "{stdout}{stderr}");
    folder
}

#[test]
fn the_tree_is_as_documented() {
    let folder = swept();
    // The kept checkpoints depend on the best epoch.
    let step = |name: String| match (name.rfind('-'), name.rfind('.')) {
        (Some(dash), Some(dot)) if name.contains("/checkpoints/") => {
            format!("{}-[STEP]{}", &name[..dash], &name[dot..])
        }
        _ => name,
    };
    let mut files: Vec<_> = tree(&folder.path().join("results"))
        .into_iter()
        .map(step)
        .collect();
    files.dedup();
    insta::assert_snapshot!("tree", files.join("\n"));
    let copy = fs::read(folder.path().join("results/spec/experiment.toml")).unwrap();
    assert_eq!(copy, fs::read(folder.path().join("spec.toml")).unwrap());
}

#[test]
fn reports_say_what_happened() {
    let folder = swept();
    let read = |name: &str| {
        let text = fs::read_to_string(folder.path().join("results/spec").join(name)).unwrap();
        redact(&text, folder.path())
    };
    insta::assert_snapshot!("report_md", read("report.md"));
    insta::assert_snapshot!(
        "report_csv_head",
        read("report.csv").lines().next().unwrap()
    );
    let before = read("report.md");
    let (code, table, _) = run(folder.path(), &["report", "results/spec"]);
    assert_eq!(code, 0);
    assert_eq!(read("report.md"), before, "rebuilding changes nothing");
    insta::assert_snapshot!("report_table", redact(&table, folder.path()));
    let (code, list, _) = run(folder.path(), &["list"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("list", redact(&list, folder.path()));
}

/// Other programs read these names: they are a contract.
#[test]
fn the_contract_for_tools_holds() {
    let folder = swept();
    let read = |path: &str| -> Json {
        let text = fs::read_to_string(folder.path().join("results/spec").join(path)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let summary = read("runs/hidden=32-s1/summary.json");
    assert_eq!(summary["outcome"], "completed");
    for name in [
        "valid/accuracy",
        "valid/loss",
        "train/loss",
        "test/accuracy",
        "last/valid/accuracy",
        "last/train/loss",
    ] {
        assert!(summary["metrics"][name].is_f64(), "{name}");
    }
    assert_eq!(
        (&summary["epochs"], &summary["steps"]),
        (&3.into(), &18.into())
    );
    assert!(summary["wall_secs"].is_f64());
    assert_eq!(
        (&summary["device"], &summary["precision"]),
        (&"flex".into(), &"f32".into())
    );
    assert_eq!(summary["seed"], 1);
    assert_eq!(summary["axes"]["model.hidden"], serde_json::json!([32]));
    let report = read("report.json");
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2);
    for trial in trials {
        let mean = &trial["metrics"]["valid/accuracy"];
        assert!(trial["id"].is_string() && trial["axes"].is_object() && trial["runs"].is_array());
        assert_eq!(
            mean["sd"].is_null(),
            trial["n"] == 1,
            "a single run has no deviation"
        );
        assert!(mean["mean"].is_f64());
    }
    let value = |at: usize| {
        trials[at]["metrics"]["valid/accuracy"]["mean"]
            .as_f64()
            .unwrap()
    };
    assert!(value(0) >= value(1), "trials are in rank order");
}

#[test]
fn a_report_suits_any_width_of_terminal() {
    let folder = swept();
    let experiment = ExperimentFolder(folder.path().join("results/spec"));
    let report = burn_runner::report::write(&experiment).unwrap().unwrap();
    for width in [1, 20, 40, 60, 200] {
        let table = burn_runner::report::table(&report, width);
        let widest = table
            .lines()
            .map(|line| line.chars().count())
            .max()
            .unwrap();
        assert!(
            widest <= usize::from(width.max(40)),
            "{width} columns:\n{table}"
        );
        assert_eq!(
            table.contains("valid/loss"),
            width == 200,
            "{width} columns:\n{table}"
        );
    }
}
