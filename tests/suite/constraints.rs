//! Constraints of searches: trials that violate them teach the search, and are not selected.

use std::fs;
use std::path::Path;

use burn_runner::record::{ExperimentFolder, Index};
use burn_runner::report::Brief;
use runner_search::{Told, in_order};
use serde_json::{Value as Json, json};

use super::edit::Edit;
#[cfg(unix)]
use super::search::killed_after;
use super::search::{report_of, searched, suggestions};
use super::support::peers::python_with;
use super::support::{IRIS, folder_with, goes_on, read_json, run};

/// A network of 1 to 32 hidden units, of which those above 6 have too many parameters, and the best values.
const SEARCH: &str = r#"
[search]
type = "tpe"
num_trials = 18
constraints = ["parameters < 60", "last/train/loss <= 1.0"]

[sweep.random.axes]
model.hidden = { type = "choice", values = [[1], [2], [4], [6], [16], [32]] }
optimizer.learning_rate = { type = "log_uniform", min = 1e-3, max = 1.0 }
"#;

fn spec() -> String {
    format!("{IRIS}\n{SEARCH}")
}

/// The trials of a report with their values, violations and ranks.
fn trials(report: &Json) -> Vec<(String, f64, f64, Option<u64>)> {
    let all = report["trials"].as_array().unwrap().iter();
    let trial = |trial: &Json| {
        let sum = |violated: &Json| violated["violation"].as_f64().unwrap_or(f64::INFINITY);
        let violated = trial["violated"].as_array().into_iter().flatten();
        (
            trial["id"].as_str().unwrap().to_owned(),
            trial["metrics"]["valid/accuracy"]["mean"].as_f64().unwrap(),
            violated.map(sum).sum::<f64>(),
            trial["rank"].as_u64(),
        )
    };
    all.map(trial).collect()
}

#[test]
fn trials_that_violate_constraints_are_neither_selected_nor_confirmed() {
    let confirm = "confirm = { trials = 2, seeds = 2 }\nconstraints";
    let folder = searched(&spec().edit("constraints", confirm), &["--jobs", "2"]);
    let report = report_of(folder.path());
    let all = trials(&report);
    let num_feasible = all.iter().filter(|(_, _, sum, _)| *sum == 0.0).count();
    assert!((4..=16).contains(&num_feasible), "{num_feasible}");
    // Ranks are those of the trials that meet the constraints; the others come after them, by how far they do not.
    let (feasible, others) = all.split_at(num_feasible);
    assert!(
        feasible
            .iter()
            .all(|(_, _, sum, rank)| *sum == 0.0 && rank.is_some())
    );
    assert!(feasible.is_sorted_by(|a, b| a.1 >= b.1));
    assert!(
        others
            .iter()
            .all(|(_, _, sum, rank)| *sum > 0.0 && rank.is_none())
    );
    assert!(others.is_sorted_by(|a, b| a.2 <= b.2));
    // By their values, some of them would be before others that meet the constraints.
    let best = others.iter().map(|it| it.1).fold(0.0, f64::max);
    assert!(feasible.iter().any(|it| it.1 < best), "{best}");
    // What is recorded of each is what was measured: 8n + 3 parameters.
    for trial in report["trials"].as_array().unwrap() {
        let hidden = trial["axes"]["model.hidden"][0].as_u64().unwrap();
        let last = trial["metrics"]["last/train/loss"]["mean"].as_f64();
        let (parameters, last) = ((8 * hidden + 3) as f64, last.unwrap());
        let mut expected = Vec::new();
        if parameters >= 60.0 {
            expected.push((parameters - 60.0) / 60.0);
        }
        if last > 1.0 {
            expected.push(last - 1.0);
        }
        let violated = trial["violated"].as_array().into_iter().flatten();
        let violations: Vec<f64> = violated
            .map(|it| it["violation"].as_f64().unwrap())
            .collect();
        assert_eq!(violations.len(), expected.len());
        assert!(
            violations
                .iter()
                .zip(&expected)
                .all(|(a, b)| (a - b).abs() < 1e-9)
        );
    }
    let ids: Vec<&String> = feasible.iter().map(|(id, ..)| id).collect();
    let of_feasible = |list: &Json| {
        let list = list.as_array().unwrap().iter();
        list.map(|it| it["trial"].as_str().unwrap().to_owned())
            .all(|id| ids.contains(&&id))
    };
    assert!(of_feasible(&report["search"]["history"]));
    assert!(of_feasible(&report["search"]["confirmed"]));
    assert_eq!(report["search"]["confirmed"].as_array().unwrap().len(), 2);
    assert_eq!(report["search"]["num_infeasible"], others.len());
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(
        text.contains("trials do not meet the constraints, and are not ranked"),
        "{text}"
    );
    assert!(text.contains("## Infeasible trials"), "{text}");
    assert!(
        text.contains(&format!("Highest ranked: `{}`", ids[0])),
        "{text}"
    );
    // The list of experiments names the same one, of the trials that may be selected.
    let experiment = ExperimentFolder(folder.path().join("results/spec"));
    let index = Index::read(&experiment).unwrap().unwrap();
    let best = Brief::of(&index, false).best.unwrap();
    assert!(best.ends_with(&format!("): {}", ids[0])), "{best}");
    // It learned where they are met: of the last eight, most have few parameters.
    let found = suggestions(folder.path());
    let is_small = |it: &&Json| it["values"]["model.hidden"][0].as_u64().unwrap() < 8;
    assert!(found[10..].iter().filter(is_small).count() >= 5);
}

#[test]
fn trials_do_not_depend_on_workers_and_constraints_are_part_of_the_search() {
    let one = searched(&spec(), &["--jobs", "1"]);
    let many = searched(&spec(), &["--jobs", "4"]);
    let found = suggestions(one.path());
    assert_eq!(found, suggestions(many.path()));
    let without = searched(&spec().edit("constraints", "# constraints"), &[]);
    assert_eq!(suggestions(without.path())[..10], found[..10]);
    assert_ne!(suggestions(without.path())[10..], found[10..]);
    // With other constraints, or with some for the first time, it is another search.
    for (folder, set) in [
        (one.path(), "search.constraints=[\"parameters < 61\"]"),
        (without.path(), "search.constraints=[\"parameters < 60\"]"),
    ] {
        let (code, _, stderr) = run(folder, &["run", "spec.toml", "--set", set]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("contains another search"), "{stderr}");
        assert!(stderr.contains("`constraints`"), "{stderr}");
    }
    // Which can learn from the first: what it did not measure then is computed from its records.
    let more = spec().edit(
        "constraints",
        "warm_start = [\"results/spec\"]\nconstraints",
    );
    fs::write(without.path().join("more.toml"), more.edit("18", "4")).unwrap();
    let (code, _, stderr) = run(without.path(), &["run", "more.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let plan = read_json(&without.path().join("results/more/plan.json"));
    assert_eq!(
        plan["search"]["constraints"],
        json!(["parameters < 60", "last/train/loss <= 1.0"])
    );
    for prior in plan["search"]["prior"].as_array().unwrap() {
        let hidden = prior["values"]["model.hidden"][0].as_u64().unwrap();
        let parameters = prior["violations"][0].as_f64().unwrap();
        assert_eq!(parameters > 0.0, 8 * hidden + 3 >= 60);
    }
}

#[cfg(unix)]
#[test]
fn a_search_with_constraints_that_is_killed_gives_the_same_trials() {
    let whole = searched(&spec(), &[]);
    let folder = folder_with(&spec());
    killed_after(folder.path(), [3, 7, 4]);
    goes_on(folder.path());
    assert_eq!(suggestions(whole.path()), suggestions(folder.path()));
    let report = |folder: &Path| trials(&report_of(folder));
    assert_eq!(report(whole.path()), report(folder.path()));
    // Also if it has lost its plan.
    fs::remove_file(folder.path().join("results/spec/plan.json")).unwrap();
    goes_on(folder.path());
    assert_eq!(suggestions(whole.path()), suggestions(folder.path()));
}

/// The same with pruning, and constraints over what is known at each rung.
fn pruned(rule: &str) -> String {
    let spec = format!("{}\n{SEARCH}", IRIS.edit("epochs = 3", "epochs = 8"));
    let prune = format!("num_trials = 16\nprune = {{ type = {rule} }}");
    spec.edit("num_trials = 18", &prune)
        .edit("last/train/loss <= 1.0", "valid/loss < 1.05")
}

/// Whether a trial has few enough parameters.
fn is_small(known: &Json) -> bool {
    8 * known["values"]["model.hidden"][0].as_u64().unwrap() + 3 < 60
}

#[test]
fn trials_that_meet_constraints_are_the_first_at_each_rung() {
    let spec = pruned("\"successive_halving\", factor = 2")
        .edit("\"tpe\"", "\"sobol\"")
        .edit(", \"valid/loss < 1.05\"", "");
    let folder = searched(&spec, &["--jobs", "2"]);
    let found = suggestions(folder.path());
    // Two brackets of eight trials, some of which have too many parameters.
    assert_eq!(found.len(), 16);
    for bracket in [0, 1] {
        let of_bracket = found.iter().filter(|it| it["rung"]["bracket"] == bracket);
        let of_bracket: Vec<&Json> = of_bracket.collect();
        let epochs = |it: &Json| it["rung"]["epochs"].as_u64().unwrap();
        let num_small = of_bracket.iter().filter(|it| is_small(it)).count();
        assert!((1..8).contains(&num_small), "{num_small}");
        for rung in [2, 4, 8] {
            let reached = of_bracket.iter().filter(|it| epochs(it) >= rung);
            let (small, large): (Vec<&&Json>, Vec<_>) = reached.partition(|it| is_small(it));
            assert_eq!(small.len() + large.len(), 8 / rung as usize);
            // No trial with too many parameters continues before one with few of them.
            assert!(
                large.is_empty() || small.len() == num_small,
                "{bracket} {rung}"
            );
        }
    }
    // Without constraints, those with many parameters are better.
    let without = searched(&spec.edit("constraints", "# constraints"), &[]);
    let last = suggestions(without.path());
    let mut last = last.iter().filter(|it| it["rung"]["epochs"] == 8);
    assert!(last.any(|it| !is_small(it)));
    // The best is one that meets them.
    let report = report_of(folder.path());
    let best = &report["trials"][0];
    assert_eq!(best["rank"], 1);
    assert!(best["violated"].as_array().is_none_or(Vec::is_empty));
}

#[cfg(unix)]
#[test]
fn pruning_with_constraints_does_not_depend_on_workers_kills_or_a_lost_plan() {
    for rule in ["\"asha\", factor = 2", "\"median\", min_trials = 3"] {
        let spec = pruned(rule);
        let one = searched(&spec, &["--jobs", "1"]);
        let many = searched(&spec, &["--jobs", "4"]);
        let found = suggestions(one.path());
        assert_eq!(found, suggestions(many.path()));
        let folder = folder_with(&spec);
        killed_after(folder.path(), [4, 9, 3]);
        goes_on(folder.path());
        assert_eq!(found, suggestions(folder.path()));
        fs::remove_file(folder.path().join("results/spec/plan.json")).unwrap();
        goes_on(folder.path());
        assert_eq!(found, suggestions(folder.path()));
    }
}

#[test]
fn lists_and_comparisons_say_which_trials_violate_constraints() {
    let folder = searched(&spec(), &["--jobs", "2"]);
    let report = report_of(folder.path());
    let arguments = ["list", "--columns", "trial,violation", "--json"];
    let (code, stdout, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    let listed = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let listed: Vec<Json> = listed.collect();
    let all = trials(&report);
    assert_eq!(listed.len(), all.len());
    for (id, _, violation, _) in &all {
        let line = listed.iter().find(|line| line["trial"] == **id).unwrap();
        assert!((line["violation"].as_f64().unwrap() - violation).abs() < 1e-9);
    }
    let arguments = ["list", "--filter", "violation > 0"];
    let (_, stdout, stderr) = run(folder.path(), &arguments);
    let num = all.iter().filter(|(_, _, sum, _)| *sum > 0.0).count();
    assert!(
        stdout.lines().next().unwrap().contains("violation"),
        "{stdout}"
    );
    assert!(
        stderr.contains(&format!("{num} runs")) || stdout.lines().count() == num + 1,
        "{stdout}{stderr}"
    );
    // Where some trials meet them, nothing has to be said.
    let (code, stdout, stderr) = run(folder.path(), &["compare", "results/spec"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(!format!("{stdout}{stderr}").contains("no trial meets"));
    let none = spec().edit("parameters < 60", "parameters < 5");
    let folder = searched(&none.edit("num_trials = 18", "num_trials = 3"), &[]);
    let (code, stdout, stderr) = run(folder.path(), &["compare", "results/spec"]);
    assert_eq!(code, 0, "{stderr}");
    let said = format!("{stdout}{stderr}");
    assert!(
        said.contains(
            "no trial meets the constraints of its search, so none is ranked; the baseline `"
        ),
        "{said}"
    );
    let folder = searched(
        &spec()
            .edit("constraints", "# constraints")
            .edit("num_trials = 18", "num_trials = 2"),
        &[],
    );
    // Runs of other searches have none.
    let (_, stdout, _) = run(folder.path(), &["list", "--csv"]);
    assert!(
        !stdout.lines().next().unwrap().contains("violation"),
        "{stdout}"
    );
}

#[test]
fn a_number_that_is_not_known_does_not_meet_a_constraint() {
    // In the best epoch 3, it cannot be computed; otherwise, it is met.
    let unknown = spec()
        .edit(
            "\"parameters < 60\", \"last/train/loss <= 1.0\"",
            "\"1 / (best_epoch - 3) < 2\"",
        )
        .edit("\"tpe\"", "\"random\"");
    let folder = searched(&unknown, &[]);
    let report = report_of(folder.path());
    let mut num = 0;
    for trial in report["trials"].as_array().unwrap() {
        let id = format!("{}-s1", trial["id"].as_str().unwrap());
        let summary = read_json(
            &folder
                .path()
                .join(format!("results/spec/runs/{id}/summary.json")),
        );
        let violated = trial["violated"].as_array();
        assert_eq!(summary["best_epoch"] == 3, violated.is_some(), "{trial}");
        if let Some(violated) = violated {
            num += 1;
            assert_eq!(violated[0]["violation"], Json::Null);
            assert_eq!(violated[0]["measured"], json!({ "best_epoch": 3.0 }));
            assert_eq!(trial["rank"], Json::Null);
        }
    }
    assert!(num > 0, "some trial is best in epoch 3");
    assert_eq!(report["search"]["num_infeasible"], num);
    let csv = fs::read_to_string(folder.path().join("results/spec/report.csv")).unwrap();
    assert!(csv.lines().next().unwrap().ends_with(",violation"), "{csv}");
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(text.contains("| unknown "), "{text}");
    // If no trial meets them, none is selected, and that is said.
    let none = unknown
        .edit("1 / (best_epoch - 3) < 2", "parameters < 5")
        .edit(
            "num_trials = 18",
            "num_trials = 3\nconfirm = { trials = 1, seeds = 2 }",
        );
    let folder = folder_with(&none);
    let said = goes_on(folder.path());
    assert!(
        said.contains("no trial meets `search.constraints`, so none is confirmed"),
        "{said}"
    );
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(
        text.contains("No trial is ranked: none meets the constraints"),
        "{text}"
    );
    let arguments = ["predict", "results/spec", "--data", "x.csv"];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert!(
        code != 0 && stderr.contains("no trial meets the constraints"),
        "{stderr}"
    );
}

/// Trials with some values and violations, without a pattern.
fn made_up(num: usize, num_values: usize) -> Vec<Told> {
    let mut state = 7u64;
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let trial = |_| {
        let values: Vec<f64> = (0..num_values).map(|_| next()).collect();
        Told {
            value: Some(values[0]),
            others: values[1..].to_vec(),
            violation: (next() - 0.6).max(0.0),
            ..Told::default()
        }
    };
    (0..num).map(trial).collect()
}

#[test]
fn trials_are_ranked_and_selected_as_by_optuna() {
    let Some(python) = python_with(&["optuna", "numpy"]) else {
        return;
    };
    let two = spec().edit("constraints", "objectives = [\"valid/loss\"]\nconstraints");
    let folder = searched(&two, &[]);
    let made_up = [1, 2, 3].map(|num_values| {
        let told = made_up(60, num_values);
        let values = told
            .iter()
            .map(|it| [&[it.value.unwrap()], &it.others[..]].concat());
        let values: Vec<Vec<f64>> = values.collect();
        let violations: Vec<f64> = told.iter().map(|it| it.violation).collect();
        json!({ "values": values, "violations": violations, "order": in_order(&told) })
    });
    let asked = folder.path().join("made_up.json");
    fs::write(&asked, json!(made_up).to_string()).unwrap();
    let report = folder.path().join("results/spec/report.json");
    let said = python.run("constraints_check.py", &[&asked, &report]);
    assert!(said.contains("3 orders, 18 trials"), "{said}");
}
