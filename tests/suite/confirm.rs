//! The best trials of a search, trained again with other seeds: beside the search, never part of it.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{IRIS, folder_with, goes_on, numbers, read_json, run, summary};

const SEARCH: &str = r#"
[search]
type = "tpe"
num_trials = 12
confirm = { trials = 2, seeds = 3 }

[sweep.random.axes]
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 0.3 }
"#;

fn spec() -> String {
    format!("{IRIS}\n{SEARCH}")
}

fn searched(spec: &str) -> tempfile::TempDir {
    let folder = folder_with(spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    folder
}

/// The suggestions, without whether they are confirmed, and the confirmed trials.
fn suggestions(folder: &Path) -> (Vec<Json>, Vec<String>) {
    let plan = read_json(&folder.join("results/spec/plan.json"));
    let mut all = plan["search"]["suggestions"].as_array().unwrap().clone();
    let mut confirmed = Vec::new();
    for known in &mut all {
        let mark = known.as_object_mut().unwrap().remove("is_confirmed");
        if mark == Some(Json::Bool(true)) {
            confirmed.push(known["trial"].as_str().unwrap().to_owned());
        }
    }
    (all, confirmed)
}

fn report_of(folder: &Path) -> Json {
    read_json(&folder.join("results/spec/report.json"))
}

#[test]
fn the_best_trials_are_trained_with_other_seeds() {
    let folder = searched(&spec());
    let (all, mut confirmed) = suggestions(folder.path());
    assert_eq!((all.len(), confirmed.len()), (12, 2));
    let report = report_of(folder.path());
    assert_eq!(
        (&report["num_runs"], &report["num_completed"]),
        (&18.into(), &18.into())
    );
    // The search ranks by its own runs.
    let trials = report["trials"].as_array().unwrap();
    assert!(trials.iter().all(|trial| trial["n"] == 1));
    let best: Vec<&str> = trials[..2]
        .iter()
        .map(|t| t["id"].as_str().unwrap())
        .collect();
    confirmed.sort_by_key(|trial| best.iter().position(|best| best == trial));
    assert_eq!(confirmed, best);
    let shown = report["search"]["confirmed"].as_array().unwrap();
    assert_eq!(shown.len(), 2);
    let objective = report["objective"].as_str().unwrap();
    for one in shown {
        let trial = one["trial"].as_str().unwrap();
        let value = |seed: u64| -> f64 {
            let summary = summary(folder.path(), &format!("{trial}-s{seed}"));
            summary["metrics"][objective].as_f64().unwrap()
        };
        assert_eq!(one["searched"], value(1));
        let mean = (value(2) + value(3) + value(4)) / 3.0;
        let shown = one["sample"]["mean"].as_f64().unwrap();
        assert!((shown - mean).abs() < 1e-12, "{shown} {mean}");
        assert_eq!(
            (&one["sample"]["n"], &one["num_planned"]),
            (&3.into(), &3.into())
        );
    }
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(text.contains("is the best of 2 confirmed trials"), "{text}");
    assert!(text.contains("## Confirmation"), "{text}");
}

#[test]
fn a_confirmation_changes_nothing_in_a_search() {
    let without = searched(&spec().edit("confirm = { trials = 2, seeds = 3 }\n", ""));
    let with = searched(&spec());
    assert_eq!(suggestions(with.path()).0, suggestions(without.path()).0);
    let more = [
        "run",
        "spec.toml",
        "--quiet",
        "--set",
        "search.num_trials=16",
    ];
    for folder in [with.path(), without.path()] {
        let (code, _, stderr) = run(folder, &more);
        assert_eq!(code, 0, "{stderr}");
    }
    assert_eq!(suggestions(with.path()).0, suggestions(without.path()).0);
    // Trials that were confirmed stay so, and the new best ones are added.
    let confirmed = suggestions(with.path()).1;
    let report = report_of(with.path());
    for best in &report["trials"].as_array().unwrap()[..2] {
        assert!(confirmed.iter().any(|trial| *trial == best["id"]), "{best}");
    }
    assert_eq!(
        report["search"]["confirmed"].as_array().unwrap().len(),
        confirmed.len()
    );
    // It can also be requested afterwards.
    let later = [
        "run",
        "spec.toml",
        "--quiet",
        "--set",
        "search.num_trials=16",
    ];
    let later = [
        &later[..],
        &["--set", "search.confirm={ trials = 1, seeds = 2 }"],
    ]
    .concat();
    let (code, _, stderr) = run(without.path(), &later);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(suggestions(without.path()).1.len(), 1);
    assert_eq!(report_of(without.path())["num_runs"], 18);
}

#[cfg(unix)]
#[test]
fn a_confirmation_that_is_killed_is_completed() {
    use super::support::processes::started_until;
    use super::support::runner;

    let whole = searched(&spec());
    let folder = folder_with(&spec());
    let mut command = runner(folder.path());
    command.args(["run", "spec.toml", "--quiet", "--json", "--jobs", "1"]);
    let (mut child, mut events) = started_until(&mut command, "run_finished");
    let ended = |event: &String| event.contains("run_finished");
    // One run of the confirmation has ended.
    events.by_ref().filter(ended).nth(11);
    child.kill().unwrap();
    child.wait().unwrap();
    let said = goes_on(folder.path());
    assert!(said.contains("to do"), "{said}");
    assert_eq!(suggestions(whole.path()), suggestions(folder.path()));
    assert_eq!(numbers(whole.path()), numbers(folder.path()));
    // A lost plan is rebuilt, with what is confirmed.
    fs::remove_file(folder.path().join("results/spec/plan.json")).unwrap();
    goes_on(folder.path());
    assert_eq!(suggestions(whole.path()), suggestions(folder.path()));
    assert_eq!(report_of(folder.path())["num_completed"], 18);
}
