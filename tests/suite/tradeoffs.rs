//! Searches for trade-offs with real training: the same front after kills and without the plan, trials of the front that
//! are reproduced to the bit, and failed trials, which are on no front.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::edit::Edit;
#[cfg(unix)]
use super::search::killed_after;
use super::search::{report_of, searched, suggestions};
use super::support::{IRIS, folder_with, goes_on, numbers, run};

const SEARCH: &str = r#"
[search]
type = "nsga2"
num_trials = 30
parallel = 5
objectives = ["parameters", "valid/loss"]

[sweep.random.axes]
model.hidden = { type = "choice", values = [[1], [2], [4], [8], [16], [32]] }
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 1.0 }
train.batch_size = { type = "integer", min = 8, max = 64, log = true }
"#;

fn spec(method: &str) -> String {
    let search = SEARCH.edit("nsga2", method);
    format!("{IRIS}\n{search}")
}

fn front(folder: &Path) -> Vec<Json> {
    let report = report_of(folder);
    let all = report["search"]["tradeoffs"]["trials"].as_array().unwrap();
    let best = all.iter().filter(|trial| trial["is_best"] == true);
    best.cloned().collect()
}

#[cfg(unix)]
#[test]
fn a_search_for_trade_offs_that_is_killed_has_the_same_front() {
    for (method, kills) in [("nsga2", [4, 14, 5]), ("tpe", [4, 8, 9])] {
        let whole = searched(&spec(method), &["--jobs", "1"]);
        let folder = folder_with(&spec(method));
        // In the first round, in or after it, and in a later one.
        killed_after(folder.path(), kills);
        goes_on(folder.path());
        assert_eq!(suggestions(whole.path()), suggestions(folder.path()));
        assert_eq!(numbers(whole.path()), numbers(folder.path()));
        let found = front(whole.path());
        assert!(found.len() > 1, "{found:?}");
        assert_eq!(found, front(folder.path()));
        let chosen = suggestions(whole.path());
        let chosen = chosen.iter().filter(|known| known["by"] == "model");
        assert!(chosen.count() >= 10);
        // A plan that is lost is rebuilt from the results.
        fs::remove_file(folder.path().join("results/spec/plan.json")).unwrap();
        let said = goes_on(folder.path());
        assert!(said.contains(": 0 of "), "{said}");
        assert_eq!(suggestions(whole.path()), suggestions(folder.path()));
        assert_eq!(found, front(folder.path()));
    }
}

#[test]
fn trials_of_a_front_are_reproduced_and_confirmed() {
    let confirmed = spec("nsga2").edit(
        "parallel = 5",
        "parallel = 5\nconfirm = { trials = 2, seeds = 2 }",
    );
    let folder = searched(&confirmed, &["--jobs", "2"]);
    let found = front(folder.path());
    for trial in &found {
        let id = trial["trial"].as_str().unwrap();
        let place = format!("results/spec/runs/{id}-s1");
        let (code, stdout, stderr) = run(folder.path(), &["reproduce", &place]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("verdict: bitwise"), "{stdout}");
        let (code, alone, stderr) = run(folder.path(), &["render", "spec.toml", "--trial", id]);
        assert_eq!(code, 0, "{stderr}");
        assert!(!alone.contains("[search]"), "{alone}");
    }
    let report = report_of(folder.path());
    assert_eq!(report["search"]["confirmed"].as_array().unwrap().len(), 2);
    // Other seeds are no trials of the front.
    let all = report["search"]["tradeoffs"]["trials"].as_array().unwrap();
    assert!(all.len() <= 30);
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(text.contains("Trade-offs"), "{text}");
}

#[test]
fn failed_trials_are_on_no_front() {
    let diverging = spec("nsga2")
        .edit(
            "type = \"adam\"\nlearning_rate = 1e-2",
            "type = \"sgd\"\nlearning_rate = 1e-2",
        )
        .edit("min = 1e-4, max = 1.0", "min = 1e-3, max = 1e9");
    let folder = folder_with(&diverging);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 1, "{stderr}");
    let report = report_of(folder.path());
    let failed = report["search"]["num_without_value"].as_u64().unwrap();
    assert!(failed > 3, "{failed}");
    let all = report["search"]["tradeoffs"]["trials"].as_array().unwrap();
    let values = all
        .iter()
        .flat_map(|trial| trial["values"].as_array().unwrap());
    assert!(values.into_iter().all(Json::is_number), "{all:?}");
    assert!(!front(folder.path()).is_empty());
    // What failed teaches the search: fewer of the points that it chose fail.
    let known = suggestions(folder.path());
    let rate = |known: &Json| known["values"]["optimizer.learning_rate"].as_f64().unwrap();
    let high = |part: &[Json]| {
        let high = part.iter().filter(|known| rate(known) > 1e3).count();
        high as f64 / part.len() as f64
    };
    assert!(high(&known[20..]) < high(&known[..20]), "{known:?}");
}

/// Also if its other runs are completed: their mean is of other seeds than those of the other trials.
#[test]
fn a_trial_with_a_failed_run_has_no_value() {
    let text = format!("[experiment]\nseeds = [1, 2]\n{}", spec("tpe"));
    let folder = folder_with(&text.edit("num_trials = 30", "num_trials = 15"));
    let fault = [
        "run",
        "spec.toml",
        "--quiet",
        "--inject-fault",
        "hidden=4,*-s2@1",
    ];
    let (code, _, stderr) = run(folder.path(), &fault);
    assert_eq!(code, 1, "{stderr}");
    let report = report_of(folder.path());
    let trials = report["trials"].as_array().unwrap();
    let id = |trial: &Json| trial["id"].as_str().unwrap().to_owned();
    let (failed, others): (Vec<&Json>, Vec<&Json>) = trials
        .iter()
        .partition(|trial| id(trial).starts_with("hidden=4,"));
    assert!(!failed.is_empty() && !others.is_empty(), "{trials:?}");
    for trial in &failed {
        assert!(
            trial["rank"].is_null() && trial["metrics"] == serde_json::json!({}),
            "{trial}"
        );
    }
    assert!(
        others
            .iter()
            .all(|trial| trial["rank"].is_u64() && trial["n"] == 2),
        "{others:?}"
    );
    assert_eq!(report["search"]["num_without_value"], failed.len());
    let traded = report["search"]["tradeoffs"]["trials"].as_array().unwrap();
    assert_eq!(traded.len(), others.len());
    // In the order of the ranking.
    let ranked: Vec<String> = others.iter().map(|trial| id(trial)).collect();
    let listed: Vec<&str> = traded
        .iter()
        .map(|trial| trial["trial"].as_str().unwrap())
        .collect();
    assert_eq!(listed, ranked);
}
