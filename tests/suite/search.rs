//! Searches: the same trials however often they are killed and whatever `--jobs`, what results teach, and budgets.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use runner_core::plan::Plan;
use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{IRIS, folder_with, goes_on, plan, read_json, run};

const SEARCH: &str = r#"
[search]
type = "tpe"
num_trials = 18

[sweep.random.axes]
optimizer.type = { type = "choice", values = ["sgd", "adam"] }
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 1.0 }
optimizer.momentum = { type = "uniform", min = 0.0, max = 0.9, when = "optimizer.type == 'sgd'" }
train.batch_size = { type = "integer", min = 8, max = 64, log = true }
"#;

fn spec() -> String {
    format!("{IRIS}\n{SEARCH}")
}

fn plan_of(folder: &Path) -> Json {
    read_json(&folder.join("results/spec/plan.json"))
}

pub(super) fn report_of(folder: &Path) -> Json {
    read_json(&folder.join("results/spec/report.json"))
}

pub(super) fn suggestions(folder: &Path) -> Vec<Json> {
    let plan = plan_of(folder);
    plan["search"]["suggestions"].as_array().unwrap().clone()
}

pub(super) fn searched(spec: &str, arguments: &[&str]) -> tempfile::TempDir {
    let folder = folder_with(spec);
    let all = [&["run", "spec.toml", "--quiet"], arguments].concat();
    let (code, _, stderr) = run(folder.path(), &all);
    assert_eq!(code, 0, "{stderr}");
    folder
}

fn ids(spec: &str) -> Vec<String> {
    let (plan, _) = plan("spec.toml", spec).unwrap_or_else(|message| panic!("{message}"));
    plan.runs.into_iter().map(|run| run.id).collect()
}

#[test]
fn the_trials_of_other_samplers_do_not_depend_on_the_number_of_workers_either() {
    let numbers = r#"
[search]
type = "cma_es"
num_trials = 18

[sweep.random.axes]
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 1.0 }
train.batch_size = { type = "integer", min = 8, max = 64, log = true }
"#;
    let gp = spec().edit("\"tpe\"", "\"gp\"");
    for (spec, startup) in [(gp, 10), (format!("{IRIS}\n{numbers}"), 6)] {
        let one = searched(&spec, &["--jobs", "1"]);
        let many = searched(&spec, &["--jobs", "4"]);
        let found = suggestions(one.path());
        assert_eq!(found, suggestions(many.path()));
        let by: Vec<_> = found.iter().map(|known| &known["by"]).collect();
        assert!(by[..startup].iter().all(|by| *by == "sample"), "{by:?}");
        assert!(by[startup..].iter().all(|by| *by == "model"), "{by:?}");
    }
}

#[test]
fn a_search_that_plans_only_new_trials_has_the_plan_of_all() {
    // Conditions, types with other keys, repeated points and confirmed trials.
    let small = spec()
        .edit("max = 64, log = true", "max = 10, log = true")
        .edit(
            "num_trials = 18",
            "num_trials = 24\nconfirm = { trials = 2, seeds = 2 }",
        );
    let folder = searched(&small, &["--jobs", "2"]);
    let path = folder.path().join("results/spec/plan.json");
    let further = fs::read_to_string(&path).unwrap();
    // Its text is that of a serializer, with a seal.
    let plan: Plan = serde_json::from_str(&further).unwrap();
    let whole = serde_json::to_string_pretty(&plan).unwrap();
    let sealed = format!("{},\n  \"seal\": \"", whole.strip_suffix("\n}").unwrap());
    assert!(further.starts_with(&sealed));
    // Nothing is left to do, so the plan is that of all trials at once.
    goes_on(folder.path());
    assert_eq!(further, fs::read_to_string(&path).unwrap());
    // A search that is continued.
    let more = small.edit("num_trials = 24", "num_trials = 30");
    fs::write(folder.path().join("spec.toml"), more).unwrap();
    goes_on(folder.path());
    let further = fs::read_to_string(&path).unwrap();
    goes_on(folder.path());
    assert_eq!(further, fs::read_to_string(&path).unwrap());
}

#[test]
fn trade_offs_are_searched_and_reported() {
    let search = r#"
[search]
type = "tpe"
num_trials = 22
objectives = ["parameters", "valid/loss"]

[sweep.random.axes]
model.hidden = { type = "choice", values = [[1], [2], [4], [8], [16], [32]] }
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 1.0 }
"#;
    let genetic = format!("{IRIS}\n{}", search.edit("\"tpe\"", "\"nsga2\""));
    let one = searched(&genetic, &["--jobs", "1"]);
    let many = searched(&genetic, &["--jobs", "4"]);
    let found = suggestions(one.path());
    assert_eq!(found, suggestions(many.path()));
    let by: Vec<_> = found.iter().map(|known| &known["by"]).collect();
    assert!(by[..20].iter().all(|by| *by == "sample"), "{by:?}");
    assert!(by[20..].iter().all(|by| *by == "model"), "{by:?}");
    let folder = searched(&format!("{IRIS}\n{search}"), &["--jobs", "2"]);
    let report = report_of(folder.path());
    let found = &report["search"]["tradeoffs"];
    assert_eq!(
        found["objectives"],
        serde_json::json!(["valid/accuracy", "parameters", "valid/loss"])
    );
    let all: Vec<(Vec<f64>, bool)> = found["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| {
            let values = trial["values"].as_array().unwrap().iter();
            let mut values: Vec<f64> = values.map(|value| value.as_f64().unwrap()).collect();
            values[0] = -values[0];
            (values, trial["is_best"].as_bool().unwrap())
        })
        .collect();
    assert!(all.len() > 15);
    let dominates = |a: &[f64], b: &[f64]| a != b && a.iter().zip(b).all(|(a, b)| a <= b);
    for (values, is_best) in &all {
        let is_beaten = all.iter().any(|(other, _)| dominates(other, values));
        assert_eq!(*is_best, !is_beaten, "{values:?}");
    }
    // 4 features, n hidden units, 3 classes.
    let counts = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(|n| 4.0 * n + n + 3.0 * n + 3.0);
    assert!(all.iter().all(|(values, _)| counts.contains(&values[1])));
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(text.contains("are the best trade-offs"), "{text}");
    let page = fs::read_to_string(folder.path().join("results/spec/report.html")).unwrap();
    assert!(page.contains("valid/accuracy against parameters"));
}

#[test]
fn trials_do_not_depend_on_the_number_of_workers() {
    let one = searched(&spec(), &["--jobs", "1"]);
    let many = searched(&spec(), &["--jobs", "4"]);
    let found = suggestions(one.path());
    assert_eq!(found.len(), 18);
    assert_eq!(found, suggestions(many.path()));
    let values = |folder: &Path| -> Vec<(Json, Json)> {
        let report = report_of(folder);
        let trials = report["trials"].as_array().unwrap();
        let metrics = trials.iter().map(|trial| {
            (
                trial["id"].clone(),
                trial["metrics"]["valid/accuracy"].clone(),
            )
        });
        metrics.collect()
    };
    assert_eq!(values(one.path()), values(many.path()));
    let other = searched(
        &spec().edit("num_trials = 18", "num_trials = 18\nseed = 1"),
        &[],
    );
    assert_ne!(found, suggestions(other.path()));
    let chosen = |suggestion: &&Json| suggestion["by"] == "model";
    assert_eq!(found.iter().filter(chosen).count(), 8);
    // Two rounds of four, each from all results before it.
    let shown: Vec<_> = found.iter().map(|s| s["shown"].as_u64().unwrap()).collect();
    assert_eq!(shown[10..], [10, 10, 10, 10, 14, 14, 14, 14]);
    for suggestion in &found {
        let values = &suggestion["values"];
        let has_momentum = values.get("optimizer.momentum").is_some();
        assert_eq!(has_momentum, values["optimizer.type"] == "sgd", "{values}");
    }
}

/// Starts the search in a folder three times, and kills it after these numbers of finished runs.
#[cfg(unix)]
pub(super) fn killed_after(folder: &Path, runs: [usize; 3]) {
    use super::support::processes::started_until;
    use super::support::runner;

    for num in runs {
        let mut command = runner(folder);
        command.args(["run", "spec.toml", "--quiet", "--json", "--jobs", "2"]);
        let (mut child, mut events) = started_until(&mut command, "run_finished");
        let ended = |event: &String| event.contains("run_finished");
        events.by_ref().filter(ended).nth(num - 2);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[cfg(unix)]
#[test]
fn a_search_that_is_killed_gives_the_same_trials() {
    let whole = searched(&spec(), &[]);
    let folder = folder_with(&spec());
    // In the first round, between rounds, and in the last one.
    killed_after(folder.path(), [3, 7, 4]);
    goes_on(folder.path());
    assert_eq!(suggestions(whole.path()), suggestions(folder.path()));
    let ids = |folder: &Path| -> BTreeSet<String> {
        let runs = fs::read_dir(folder.join("results/spec/runs")).unwrap();
        runs.map(|run| run.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    assert_eq!(ids(whole.path()), ids(folder.path()));
    assert_eq!(report_of(folder.path())["num_completed"], 18);
}

#[test]
fn failed_trials_teach_the_search_and_are_not_averaged() {
    let folder = folder_with(&spec().edit("num_trials = 18", "num_trials = 30"));
    let arguments = [
        "run",
        "spec.toml",
        "--quiet",
        "--inject-fault",
        "optimizer=adam,*@1",
    ];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 1, "{stderr}");
    let found = suggestions(folder.path());
    let is_adam = |suggestion: &&Json| suggestion["values"]["optimizer.type"] == "adam";
    let num = |part: &[Json]| part.iter().filter(is_adam).count();
    assert!(num(&found[..10]) >= 4, "half of the samples");
    assert!(num(&found[14..]) <= 5, "{}", num(&found[14..]));
    let report = report_of(folder.path());
    let failed = num(&found) as u64;
    assert_eq!(report["search"]["num_without_value"], failed);
    assert_eq!(report["num_completed"], 30 - failed);
    for better in report["search"]["history"].as_array().unwrap() {
        assert!(
            better["trial"]
                .as_str()
                .unwrap()
                .starts_with("optimizer=sgd")
        );
    }
}

#[test]
fn more_trials_continue_a_search_and_other_axes_are_refused() {
    let folder = searched(&spec().edit("num_trials = 18", "num_trials = 12"), &[]);
    let before = suggestions(folder.path());
    assert_eq!(before.len(), 12);
    let spec = folder.path().join("spec.toml");
    let text = fs::read_to_string(&spec).unwrap();
    fs::write(&spec, text.edit("num_trials = 12", "num_trials = 14")).unwrap();
    let (_, stdout, stderr) = run(folder.path(), &["plan", "spec.toml"]);
    assert!(stderr.contains("the first 12 of 14 trials"), "{stderr}");
    assert_eq!(stdout.matches("-s1").count(), 12, "{stdout}");
    let said = goes_on(folder.path());
    assert!(
        said.contains("search: trials 13 to 14 of 14; best valid/accuracy so far"),
        "{said}"
    );
    assert_eq!(suggestions(folder.path())[..12], before);
    for set in [
        "search.seed=3",
        "search.parallel=2",
        "sweep.random.axes.train.batch_size.max=32",
    ] {
        let arguments = ["run", "spec.toml", "--set", set];
        let (code, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("contains another search"), "{stderr}");
    }
    assert_eq!(suggestions(folder.path()).len(), 14);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--until-decided"]);
    assert!(
        code == 2 && stderr.contains("cannot be combined with `[search]`"),
        "{stderr}"
    );
    // A single run again suggests nothing.
    let first = format!("{}-s1", before[0]["trial"].as_str().unwrap());
    let (code, _, stderr) = run(
        folder.path(),
        &[
            "run",
            "spec.toml",
            "--only",
            &first,
            "--set",
            "search.num_trials=20",
        ],
    );
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(suggestions(folder.path()).len(), 14);
}

#[test]
fn a_lost_plan_is_rebuilt_from_the_results() {
    let folder = searched(&spec(), &[]);
    let before = suggestions(folder.path());
    fs::remove_file(folder.path().join("results/spec/plan.json")).unwrap();
    goes_on(folder.path());
    assert_eq!(suggestions(folder.path()), before);
}

#[test]
fn an_extended_search_is_the_one_begun_with_that_number() {
    let begun = suggestions(searched(&spec(), &[]).path());
    // 11 and 13 end within a round of four.
    let folder = searched(&spec().edit("num_trials = 18", "num_trials = 11"), &[]);
    for num in [13, 18] {
        let set = format!("search.num_trials={num}");
        let arguments = ["run", "spec.toml", "--quiet", "--set", &set];
        let (code, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(suggestions(folder.path()), begun[..num]);
    }
    // So a plan that is lost is rebuilt with the same trials.
    let plan = folder.path().join("results/spec/plan.json");
    fs::remove_file(plan).unwrap();
    fs::write(folder.path().join("spec.toml"), spec()).unwrap();
    let said = goes_on(folder.path());
    assert_eq!(suggestions(folder.path()), begun);
    assert!(!said.contains("not of trials of this search"), "{said}");
}

#[test]
fn runs_that_a_search_did_not_suggest_are_told() {
    let folder = searched(&spec().edit("num_trials = 18", "num_trials = 2"), &[]);
    let runs = folder.path().join("results/spec/runs");
    let first = suggestions(folder.path())[0]["trial"]
        .as_str()
        .unwrap()
        .to_owned();
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([runs.join(format!("{first}-s1")), runs.join("other-s1")])
        .status();
    assert!(copied.unwrap().success());
    let said = goes_on(folder.path());
    assert!(said.contains("such as `other-s1`"), "{said}");
}

#[test]
fn a_search_ends_when_its_budget_is_spent() {
    let budget = spec().edit("num_trials = 18", "budget = { epochs = 25 }");
    let (plan, _) = plan("spec.toml", &budget).unwrap_or_else(|message| panic!("{message}"));
    let epochs = plan.runs[0].train.epochs;
    let folder = folder_with(&budget);
    let said = goes_on(folder.path());
    assert!(said.contains("the budget of 25 epochs is spent"), "{said}");
    let trained = report_of(folder.path())["search"]["epochs"]
        .as_u64()
        .unwrap();
    let num = suggestions(folder.path()).len();
    assert_eq!(trained, (num * epochs) as u64);
    // The first round is of ten trials, and others of four.
    assert!(
        trained >= 25 && (num == 10 || trained < 25 + 4 * epochs as u64),
        "{num}"
    );
}

#[test]
fn sobol_points_are_those_of_a_random_sweep() {
    let sobol = spec().edit("\"tpe\"", "\"sobol\"");
    let sweep = spec().edit(
        "[search]\ntype = \"tpe\"\nnum_trials = 18\n",
        "[sweep.random]\nnum_trials = 18\n",
    );
    assert_eq!(ids(&sobol), ids(&sweep));
    let random = ids(&spec().edit("\"tpe\"", "\"random\""));
    assert_eq!(random.len(), 18);
    assert_ne!(random, ids(&sobol));
    // The first round of a search that learns has the same first points.
    assert_eq!(ids(&spec()), ids(&sobol)[..10]);
}

#[test]
fn points_that_come_later_are_checked_before_the_first_epoch() {
    // One point in fifty is of a type that does not exist.
    let rare = spec().edit(
        "values = [\"sgd\", \"adam\"]",
        "values = [\"sgd\", \"adamm\"], weights = [49, 1]",
    );
    let Err(wrong) = plan("spec.toml", &rare) else {
        panic!("it is accepted");
    };
    assert!(wrong.contains("invalid value `adamm`"), "{wrong}");
    let excluded = format!("{rare}\n[sweep]\nexclude = [\"optimizer.type == 'adamm'\"]\n");
    assert_eq!(ids(&excluded).len(), 10);
}

#[test]
fn a_small_space_is_tried_completely_before_points_are_repeated() {
    let small = format!(
        "{IRIS}\n[search]\ntype = \"tpe\"\nnum_trials = 22\n\n[sweep.random.axes]\n\
         optimizer.learning_rate = {{ type = \"choice\", values = [1e-3, 1e-2, 1e-1] }}\n\
         train.batch_size = {{ type = \"integer\", min = 16, max = 64, step = 16 }}\n"
    );
    let folder = searched(&small, &[]);
    let report = report_of(folder.path());
    assert_eq!(report["num_runs"], 12, "all combinations");
    assert_eq!(report["search"]["num_repeated"], 10);
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(
        text.contains("`tpe` suggested 22 trials: 10 sampled, 12 chosen from results."),
        "{text}"
    );
    assert!(text.contains("10 points had been tried before."), "{text}");
    // Rounds that only repeat points are not announced.
    let folder = folder_with(&small);
    let said = goes_on(folder.path());
    assert!(!said.contains("to 22 of 22"), "{said}");
    assert!(
        said.contains("12 points that were tried, and 10 repeated because no other was found"),
        "{said}"
    );
}

#[test]
fn spaces_with_hardly_any_points_are_told() {
    let search = |trials: usize, axes: &str| {
        let text = format!(
            "{IRIS}\n[search]\ntype = \"sobol\"\nnum_trials = {trials}\n\n[sweep.random.axes]\n{axes}"
        );
        plan("spec.toml", &text).expect("a right file").1
    };
    let few = "train.batch_size = { type = \"integer\", min = 16, max = 64, step = 16 }\n";
    let said = search(5, few);
    let words = "the search has 5 trials, but 256 samples of its space are only 4 different points";
    assert!(said.contains(words), "{said}");
    assert_eq!(search(4, few), "");
    let never = "optimizer.learning_rate = { type = \"log_uniform\", min = 1e-4, max = 0.1, when = \"optimizer.type == 'sgd'\" }\n";
    let said = search(4, &format!("{few}{never}"));
    let words = "no point of the search has `optimizer.learning_rate`";
    assert!(said.contains(words), "{said}");
    assert_eq!(said.matches("warning:").count(), 1, "{said}");
}

#[test]
fn a_search_ends_when_its_time_is_spent() {
    let folder = folder_with(&spec().edit("num_trials = 18", "budget = { time = \"1ms\" }"));
    let said = goes_on(folder.path());
    assert!(said.contains("the budget of 1ms is spent"), "{said}");
    assert_eq!(suggestions(folder.path()).len(), 10, "the first round");
    // A larger one continues it.
    let arguments = ["run", "spec.toml", "--set", "search.budget.time=1h"];
    let more = [&arguments[..], &["--set", "search.num_trials=12"]].concat();
    let (code, _, stderr) = run(folder.path(), &more);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(suggestions(folder.path()).len(), 12);
}

#[test]
fn a_trial_with_several_seeds_has_their_mean() {
    let folder = searched(&spec(), &["--set", "experiment.seeds=[1, 2]"]);
    let report = report_of(folder.path());
    assert_eq!(report["num_completed"], 36);
    let accuracy = |trial: &str, seed: usize| {
        let run = format!("results/spec/runs/{trial}-s{seed}/summary.json");
        let summary = read_json(&folder.path().join(run));
        summary["metrics"]["valid/accuracy"].as_f64().unwrap()
    };
    let mean = |trial: &str| (accuracy(trial, 1) + accuracy(trial, 2)) / 2.0;
    let found = suggestions(folder.path());
    let trials = found.iter().map(|s| s["trial"].as_str().unwrap());
    assert!(
        trials
            .clone()
            .any(|trial| mean(trial) != accuracy(trial, 1))
    );
    let best = trials.map(mean).fold(0.0, f64::max);
    let history = report["search"]["history"].as_array().unwrap();
    for better in history {
        let trial = better["trial"].as_str().unwrap();
        assert!((better["value"].as_f64().unwrap() - mean(trial)).abs() < 1e-12);
    }
    let last = history.last().unwrap()["value"].as_f64().unwrap();
    assert!((last - best).abs() < 1e-12, "{last} {best}");
    // Its suggestions follow from the means: with one seed, others are chosen.
    let one = searched(&spec(), &[]);
    assert_ne!(suggestions(one.path())[10..], found[10..]);
}

#[test]
fn trials_that_results_suggested_are_known_to_other_commands() {
    let folder = searched(&spec(), &[]);
    let found = suggestions(folder.path());
    let last = found.last().unwrap();
    let trial = last["trial"].as_str().unwrap();
    let (code, stdout, stderr) = run(folder.path(), &["list"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout.matches("completed").count(), 18, "{stdout}");
    let (code, stdout, stderr) = run(folder.path(), &["watch", "results/spec", "--once"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("18 of 18 runs ended"), "{stdout}");
    let (code, text, stderr) = run(folder.path(), &["render", "spec.toml", "--trial", trial]);
    assert_eq!(code, 0, "{stderr}");
    fs::write(folder.path().join("alone.toml"), &text).unwrap();
    let arguments = ["run", "alone.toml", "--quiet", "--results", "other"];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    let of = |path: &str| read_json(&folder.path().join(path))["weights_digest"].clone();
    let original = format!("results/spec/runs/{trial}-s1");
    let alone = of("other/spec/runs/base-s1/summary.json");
    assert_eq!(alone, of(&format!("{original}/summary.json")));
    let (code, stdout, stderr) = run(folder.path(), &["reproduce", &original]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("verdict: bitwise"), "{stdout}");
    // Without the results, only the first round is known.
    let arguments = ["render", "spec.toml", "--trial", trial, "--results", "none"];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert!(
        code == 2 && stderr.contains("there is no trial"),
        "{stderr}"
    );
    let other = ["--set", "search.seed=3"];
    let arguments = [&["render", "spec.toml", "--trial", trial], &other[..]].concat();
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert!(
        code == 2 && stderr.contains("contains another search"),
        "{stderr}"
    );
}

#[test]
fn the_commands_of_a_report_reproduce_what_results_suggested() {
    let pruning = "num_trials = 14\nprune = { type = \"asha\", factor = 2 }\nconfirm = { trials = 1, seeds = 2 }";
    let spec = spec()
        .edit("num_trials = 18", pruning)
        .edit("epochs = 3", "epochs = 4");
    let folder = searched(&spec, &["--results", "other results"]);
    let path = |name: &str| folder.path().join("other results/spec").join(name);
    let report = read_json(&path("report.json"));
    let commands = report["commands"].as_object().unwrap();
    let num_completed = report["num_completed"].as_u64().unwrap();
    assert_eq!(commands.len() as u64, num_completed);
    assert!(
        commands.keys().any(|run| run.ends_with("-s2")),
        "{commands:?}"
    );
    let shown = fs::read_to_string(path("report.md")).unwrap();
    for (run_id, command) in commands {
        let command = command.as_str().unwrap();
        assert!(shown.contains(command), "{shown}");
        let place = command.strip_prefix("runner reproduce '").unwrap();
        let place = place.strip_suffix('\'').unwrap();
        assert!(place.ends_with(run_id), "{command}");
        let (code, stdout, stderr) = run(folder.path(), &["reproduce", place]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("verdict: bitwise"), "{stdout}");
    }
}
