//! Repeated hold-out: each seed with a split of its own.

use std::path::Path;

use super::support::{IRIS, completed, folder_with, plan_in, run};

const BY_RUN: &str = "[data.split]\nseed = \"run\"\n";

fn spec(more: &str) -> String {
    format!(
        "[experiment]\nseeds = [1, 2, 3]\n{IRIS}\n{more}[sweep.grid]\nmodel.hidden = [[2], [8]]\n"
    )
}

fn report(folder: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join("results/spec/report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn seeds_with_splits_of_their_own_are_repeats_of_one_trial() {
    let folder = completed(&spec(BY_RUN), &[]);
    let report = report(folder.path());
    assert_eq!(report["trials"].as_array().unwrap().len(), 2);
    // 30 of 150 items are held out.
    assert_eq!(report["overlap"], 0.25);
    for trial in report["trials"].as_array().unwrap() {
        assert_eq!(trial["n"], 3);
        assert!(trial["mixed_data"].is_null(), "{trial}");
        let sample = &trial["metrics"]["valid/accuracy"];
        assert_eq!(sample["n"], 3);
        if let Some(student) = sample.get("student") {
            assert_eq!(student["method"], "corrected_t");
            assert!(sample["bca"].is_null());
        }
        if let Some(verdict) = trial.get("verdict") {
            assert!(
                ["no_exact_test", "not_tested"]
                    .contains(&verdict["finding"]["type"].as_str().unwrap()),
                "{verdict}"
            );
        }
    }
    let data = report["provenance"]["data"].as_array().unwrap();
    let digests: std::collections::BTreeSet<&str> = data
        .iter()
        .map(|used| used["digests"]["valid"].as_str().unwrap())
        .collect();
    assert_eq!(digests.len(), 3);
    let text = std::fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(
        text.contains("± is over splits, initial weights and batch order"),
        "{text}"
    );
}

#[test]
fn a_run_is_that_of_its_split_seed() {
    let (by_run, _) = plan_in(None, "spec", &spec(BY_RUN)).unwrap();
    let (second, _) = plan_in(None, "spec", &spec("[data.split]\nseed = 2\n")).unwrap();
    for (one, other) in by_run.runs.iter().zip(&second.runs) {
        assert_eq!(one.id, other.id);
        assert_eq!(
            one.fingerprint == other.fingerprint,
            one.seed == 2,
            "{}",
            one.id
        );
        assert_eq!(one.data.split.seed, one.seed);
    }
}

#[test]
fn splits_that_are_not_drawn_cannot_be_drawn_for_each_run() {
    for (more, why) in [
        ("folds = 5\n", "`folds` makes each part"),
        ("order = \"time\"\n", "the last items are held out"),
    ] {
        let refused = plan_in(None, "spec", &spec(&format!("{BY_RUN}{more}"))).unwrap_err();
        assert!(
            refused.contains("`data.split.seed` is \"run\"") && refused.contains(why),
            "{refused}"
        );
    }
    let refused = plan_in(None, "spec", &spec("[data.split]\nseed = \"rum\"\n")).unwrap_err();
    assert!(refused.contains("data.split.seed"), "{refused}");
}

#[test]
fn what_seeds_can_show_is_said_before_the_run() {
    let folder = folder_with(&spec(BY_RUN));
    let (code, stdout, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!((code, stdout.as_str()), (0, ""));
    assert!(
        stderr.contains("verdicts: 1 comparison over 3 splits each: no exact test"),
        "{stderr}"
    );
    let (code, stdout, _) = run(folder.path(), &["check", "spec.toml", "--json"]);
    assert_eq!(code, 0);
    let found: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&found["trials"], &found["runs"]), (&2.into(), &6.into()));
    assert_eq!(found["verdicts"]["is_over_splits"], true);
    // A wrong file is told as well, and refused.
    let wrong = folder_with(&spec("[data.split]\nseeed = 1\n"));
    let (code, stdout, _) = run(wrong.path(), &["check", "spec.toml", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &found["valid"]), (2, &false.into()));
    assert!(
        found["diagnostics"][0]["message"]
            .as_str()
            .unwrap()
            .contains("seeed")
    );
}
