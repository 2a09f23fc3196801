//! Searches that end trials early: the same decisions however often they are killed and whatever `--jobs`, and runs that
//! can be resumed.

use std::fs;
use std::path::Path;

use super::edit::Edit;
#[cfg(unix)]
use super::search::killed_after;
use super::search::{report_of, searched, suggestions};
use super::support::{IRIS, folder_with, goes_on, numbers, run, summary};

const SEARCH: &str = r#"
[search]
type = "tpe"
num_trials = 16
prune = { type = "asha", factor = 2 }

[sweep.random.axes]
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 0.3 }
train.batch_size = { type = "integer", min = 8, max = 64, log = true }
"#;

fn spec() -> String {
    format!("{}\n{SEARCH}", IRIS.edit("epochs = 3", "epochs = 8"))
}

/// The epochs up to which each trial was trained, with its run.
fn trained(folder: &Path) -> Vec<(String, u64)> {
    let each = suggestions(folder).into_iter().map(|known| {
        let run = format!("{}-s1", known["trial"].as_str().unwrap());
        (run, known["rung"]["epochs"].as_u64().unwrap())
    });
    each.collect()
}

#[test]
fn trials_that_are_not_among_the_best_of_a_rung_end_there() {
    for (rule, rungs) in [
        ("\"asha\", factor = 2", vec![1, 2, 4, 8]),
        ("\"successive_halving\", factor = 2", vec![1, 2, 4, 8]),
        ("\"hyperband\", factor = 2, min_epochs = 2", vec![2, 4, 8]),
        ("\"median\", every_epochs = 3", vec![1, 4, 7, 8]),
    ] {
        let folder = searched(&spec().edit("\"asha\", factor = 2", rule), &[]);
        let all = trained(folder.path());
        assert_eq!(all.len(), 16);
        let mut num_pruned = 0;
        for (run, epochs) in &all {
            assert!(rungs.contains(epochs), "{rule} {epochs}");
            let summary = summary(folder.path(), run);
            assert_eq!(summary["epochs"], *epochs, "{rule} {run}");
            if *epochs == 8 {
                assert_eq!(summary["outcome"], "completed");
            } else {
                assert_eq!(summary["outcome"], "pruned");
                let name = rule.split('"').nth(1).unwrap();
                let reason = format!("by `{name}` after epoch {epochs}");
                assert_eq!(summary["reason"], reason.as_str());
                num_pruned += 1;
            }
        }
        assert!((1..16).contains(&num_pruned), "{rule} {num_pruned}");
        let report = report_of(folder.path());
        assert_eq!(report["num_pruned"], num_pruned);
        assert_eq!(report["num_completed"], 16 - num_pruned);
        assert_eq!(report["problems"].as_array().map(Vec::len), Some(0));
        let pruning = &report["search"]["pruning"];
        let epochs: u64 = all.iter().map(|(_, epochs)| epochs).sum();
        assert_eq!(report["search"]["epochs"], epochs);
        assert_eq!(pruning["planned_epochs"], 16 * 8);
        assert_eq!(pruning["num_pruned"], num_pruned);
        for rung in pruning["rungs"].as_array().unwrap() {
            let to = rung["epochs"].as_u64().unwrap();
            let reached = all.iter().filter(|(_, epochs)| *epochs >= to).count();
            assert_eq!(rung["num_trials"], reached);
        }
    }
}

#[test]
fn decisions_do_not_depend_on_the_number_of_workers_or_on_a_lost_plan() {
    let one = searched(&spec(), &["--jobs", "1"]);
    let many = searched(&spec(), &["--jobs", "4"]);
    let found = suggestions(one.path());
    assert_eq!(found, suggestions(many.path()));
    assert_eq!(numbers(one.path()), numbers(many.path()));
    fs::remove_file(one.path().join("results/spec/plan.json")).unwrap();
    goes_on(one.path());
    assert_eq!(found, suggestions(one.path()));
    // Nothing is left to do, and all decisions stay.
    let said = goes_on(one.path());
    assert!(said.contains("0 of 16 runs to do"), "{said}");
    assert_eq!(found, suggestions(one.path()));
}

#[cfg(unix)]
#[test]
fn a_search_that_is_killed_prunes_the_same_trials() {
    let whole = searched(&spec(), &[]);
    let folder = folder_with(&spec());
    killed_after(folder.path(), [4, 9, 3]);
    goes_on(folder.path());
    assert_eq!(suggestions(whole.path()), suggestions(folder.path()));
    assert_eq!(numbers(whole.path()), numbers(folder.path()));
}

#[test]
fn pruned_runs_are_shown_and_can_be_resumed() {
    let folder = searched(&spec(), &[]);
    let all = trained(folder.path());
    let (pruned, epochs) = all.iter().find(|(_, epochs)| *epochs < 8).unwrap();
    let (code, stdout, stderr) = run(folder.path(), &["list"]);
    assert_eq!(code, 0, "{stderr}");
    let num_pruned = all.iter().filter(|(_, epochs)| *epochs < 8).count();
    assert_eq!(stdout.matches(" pruned ").count(), num_pruned, "{stdout}");
    let (_, stdout, _) = run(folder.path(), &["watch", "results/spec", "--once"]);
    assert!(stdout.contains(&format!("{pruned}  pruned")), "{stdout}");
    let (_, stdout, _) = run(folder.path(), &["plan", "spec.toml"]);
    assert!(
        stdout.contains(&format!("pruned after epoch {epochs}")),
        "{stdout}"
    );
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(
        text.contains(&format!("`asha` pruned {num_pruned} trials")),
        "{text}"
    );
    let before = suggestions(folder.path());
    // Without `--retry`, the decision stands.
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--only", pruned]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(summary(folder.path(), pruned)["outcome"], "pruned");
    let arguments = ["run", "spec.toml", "--only", pruned, "--retry", "pruned"];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    let resumed = summary(folder.path(), pruned);
    assert_eq!(
        (&resumed["outcome"], &resumed["epochs"]),
        (&"completed".into(), &8.into())
    );
    assert_eq!(suggestions(folder.path()), before);
    // To the bit what it would have been without a pause.
    let (code, stdout, stderr) = run(
        folder.path(),
        &["reproduce", &format!("results/spec/runs/{pruned}")],
    );
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("verdict: bitwise"), "{stdout}");
    // The search goes on with the decisions that it would have made without it.
    let more = [
        "run",
        "spec.toml",
        "--quiet",
        "--set",
        "search.num_trials=20",
    ];
    let other = searched(&spec(), &[]);
    for folder in [folder.path(), other.path()] {
        let (code, _, stderr) = run(folder, &more);
        assert_eq!(code, 0, "{stderr}");
    }
    assert_eq!(suggestions(folder.path()), suggestions(other.path()));
}

#[test]
fn failed_trials_do_not_continue() {
    let folder = folder_with(&spec());
    let arguments = [
        "run",
        "spec.toml",
        "--quiet",
        "--inject-fault",
        "*batch_size=1*@2",
    ];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 1, "{stderr}");
    let report = report_of(folder.path());
    let problems = report["problems"].as_array().unwrap();
    assert!(!problems.is_empty());
    for problem in problems {
        let id = problem["run"].as_str().unwrap();
        let (_, epochs) = trained(folder.path())
            .into_iter()
            .find(|(run, _)| run == id)
            .unwrap();
        assert_eq!(epochs, 2, "it fails in its second epoch");
    }
    assert_eq!(suggestions(folder.path()).len(), 16);
}

#[test]
fn another_rule_is_another_search() {
    let folder = searched(&spec(), &[]);
    for set in [
        "search.prune.type=\"hyperband\"",
        "search.prune.min_epochs=2",
        "train.epochs=9",
    ] {
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--set", set]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("contains another search"), "{stderr}");
    }
}
