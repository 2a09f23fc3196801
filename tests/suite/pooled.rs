//! Which runs of a trial are averaged, and the warnings about those that differ in more than their seed.

use std::fs;
use std::path::Path;
use std::process::Command;

use burn_runner::event::Event;
use burn_runner::record::{Index, RunFolder};
use burn_runner::report::compare::{Question, Source, compare, plain};
use burn_runner::report::list::{Form, Query, list};
use burn_runner::report::{Brief, Report, html, markdown, of_all_metrics, table};
use serde_json::json;

use super::compare::{SWEEP, clear, index, summed_up};
use super::edit::Edit;
use super::support::{IRIS, completed, read_json, run, runner, summary, texts};

const FOUR: &str = "\n[experiment]\nname = \"made_up\"\nseeds = [1, 2, 3, 4]\n[sweep.grid]\noptimizer.type = [\"adam\", \"sgd\"]\n";

/// An experiment in which the last seed of Adam read other data, and is better for it.
fn with_other_data() -> Index {
    let mut index = index(FOUR, clear);
    let other = json!({"what": "`iris`", "digests": {"train": "a", "valid": "other"}});
    index.data.push(serde_json::from_value(other).unwrap());
    let run = index
        .runs
        .iter_mut()
        .find(|run| run.id == "optimizer=adam-s4");
    let run = run.unwrap();
    run.data = 1;
    run.metrics.insert("valid/accuracy".into(), 1.0);
    index
}

fn ask() -> Question {
    Question {
        value: None,
        baseline: None,
        alpha: 0.05,
        pivot: None,
        pareto: None,
    }
}

fn source(index: &Index) -> Vec<Source> {
    vec![Source {
        name: "made_up".into(),
        report: of_all_metrics(index),
        folder: None,
    }]
}

#[test]
fn runs_over_different_data_have_no_mean() {
    let index = with_other_data();
    let report = summed_up(&index, Vec::new());
    let adam = report
        .trials
        .iter()
        .find(|t| t.id == "optimizer=adam")
        .unwrap();
    assert!(adam.metrics.is_empty() && adam.rank.is_none() && adam.verdict.is_none());
    assert_eq!((adam.n, adam.mixed_data.len()), (4, 2));
    assert_eq!(report.trials[0].id, "optimizer=sgd");
    let text = markdown(&report);
    let said = "Warning: `optimizer=adam` is neither averaged nor ranked, because its completed runs read different data: `optimizer=adam-s1`, `optimizer=adam-s2`, `optimizer=adam-s3` with valid b; `optimizer=adam-s4` with valid other.";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("| mixed data "), "{text}");
    assert!(
        html(&report, None)
            .unwrap()
            .contains("is neither averaged nor ranked")
    );
    assert!(table(&report, 200).contains("mixed data"));
    let saved: Report = serde_json::from_value(serde_json::to_value(&report).unwrap()).unwrap();
    assert_eq!(saved, report);
    assert_eq!(
        Brief::of(&index, false).best.unwrap(),
        "valid/accuracy 0.8025 (n = 4): optimizer=sgd"
    );
    let comparison = compare(&source(&index), &ask()).unwrap();
    let text = plain(&comparison, 200);
    assert!(
        text.contains("excluded, since their completed runs read different data, which `runner report` shows: `optimizer=adam`"),
        "{text}"
    );
    let query = Query {
        group: Some("optimizer.type".into()),
        ..Query::default()
    };
    let listed = list(std::slice::from_ref(&index), &query, Form::Json, 0).unwrap();
    let adam = listed.text.lines().next().unwrap();
    assert!(
        adam.contains("\"mean\":null") && adam.contains("\"mixed_data\":true"),
        "{adam}"
    );
    assert_eq!(listed.notes.len(), 1, "{:?}", listed.notes);
    assert!(listed.notes[0].contains("`optimizer=adam-s4` with valid other"));
    // Runs with the same data are listed without a warning.
    let query = Query {
        filter: Some("seed < 4".into()),
        ..query
    };
    let listed = list(&[index], &query, Form::Json, 0).unwrap();
    assert!(
        listed.notes.is_empty() && !listed.text.contains("null"),
        "{}",
        listed.text
    );
}

#[test]
fn folds_are_compared_each_with_itself_and_all_in_test() {
    let text = FOUR.edit("seeds = [1, 2, 3, 4]", "seeds = [1, 2]").edit(
        "[sweep.grid]\noptimizer.type = [\"adam\", \"sgd\"]",
        "[data.split]\nfolds = 2\n[sweep.grid]\ndata.split.fold = [0, 1]",
    );
    let of = |digests: [[&str; 2]; 4]| {
        let mut index = index(&text, |_, seed| 0.5 + 0.01 * seed as f64);
        index.data = digests
            .iter()
            .map(|[valid, test]| json!({"what": "", "digests": {"valid": valid, "test": test}}))
            .map(|data| serde_json::from_value(data).unwrap())
            .collect();
        for (at, run) in index.runs.iter_mut().enumerate() {
            run.data = at;
        }
        summed_up(&index, Vec::new()).trials[0].mixed_data.len()
    };
    assert_eq!(of([["a", "t"], ["a", "t"], ["b", "t"], ["b", "t"]]), 0);
    assert_eq!(of([["a", "t"], ["a", "t"], ["b", "t"], ["c", "t"]]), 2);
    assert_eq!(of([["a", "t"], ["a", "t"], ["b", "u"], ["b", "u"]]), 2);
}

#[test]
fn builds_and_machines_that_differ_within_a_trial_are_named() {
    let mut index = index(FOUR, clear);
    let environment = |sha256: &str, cpu: &str| {
        json!({
            "recorded_at": "", "runner_version": "0.1.0", "burn_version": "0.22.1", "backends": ["flex"],
            "git_commit": null, "git_dirty": null, "host": "h", "os": "Linux", "cpu": cpu, "cores": 2,
            "memory_bytes": 1, "data_notice": null, "worker": null,
            "build": {"version": "0.1.0", "sha256": sha256, "features": ["flex"]},
        })
    };
    let all = json!([
        environment("aaaa", "x"),
        environment("bbbb", "x"),
        environment("aaaa", "y")
    ]);
    index.environments = serde_json::from_value(all).unwrap();
    for (at, run) in index.runs.iter_mut().enumerate() {
        // One of Adam by another build, and two of SGD on another processor.
        run.environment = Some([0, 0, 0, 1, 0, 0, 2, 2][at]);
    }
    let report = summed_up(&index, Vec::new());
    // They are still averaged.
    assert!(report.trials.iter().all(|trial| trial.rank.is_some()));
    let text = markdown(&report);
    for said in [
        "Warning: In `optimizer=adam` the averaged runs were computed by different builds of runner: `optimizer=adam-s1`, `optimizer=adam-s2`, `optimizer=adam-s3` by 0.1.0 (sha256 aaaa); `optimizer=adam-s4` by 0.1.0 (sha256 bbbb). Their numbers may differ: `runner reproduce`",
        "Warning: In `optimizer=sgd` the averaged runs were computed on different processors: `optimizer=sgd-s1`, `optimizer=sgd-s2` on x; `optimizer=sgd-s3`, `optimizer=sgd-s4` on y.",
    ] {
        assert!(text.contains(said), "{text}");
    }
    assert!(burn_runner::report::csv(&report).contains(",1,runner\n"));
    let text = plain(&compare(&source(&index), &ask()).unwrap(), 200);
    assert!(
        text.contains("averaged over runs of different builds"),
        "{text}"
    );
}

#[test]
fn the_spread_says_what_it_is_over() {
    let mut made_up = index(FOUR, |_, _| 0.9825);
    made_up.data[0].num_valid = 114;
    made_up.data[0].held_out = serde_json::from_value(json!({"by": "drawn", "seed": 7})).unwrap();
    let text = markdown(&summed_up(&made_up, Vec::new()));
    assert!(text.contains("0.9825 ± 0"), "{text}");
    let said = "± is over initial weights and batch order; all runs share one split with 114 valid items (`data.split.seed` 7), so it says nothing about other splits.";
    assert!(text.contains(said), "{text}");
    let comparison = compare(&source(&made_up), &ask()).unwrap();
    assert!(plain(&comparison, 200).contains(said));
    // One run each has no spread.
    let one = index(&SWEEP.edit("[1, 2, 3, 4, 5, 6, 7, 8]", "[1]"), clear);
    assert!(!markdown(&summed_up(&one, Vec::new())).contains("do not generalize to"));
}

#[test]
fn a_cross_validation_is_not_told_to_add_a_fold() {
    let text = FOUR.edit("seeds = [1, 2, 3, 4]", "seeds = [1]").edit(
        "[sweep.grid]",
        "[data.split]\nfolds = 3\n[sweep.grid]\ndata.split.fold = [0, 1, 2]",
    );
    let index = index(&text, |trial, _| {
        let fold: f64 = trial[5..6].parse().unwrap();
        0.8 + 0.01 * fold + (0.02 + 0.001 * fold) * f64::from(trial.contains("adam"))
    });
    let report = summed_up(&index, Vec::new());
    let text = markdown(&report);
    assert!(
        text.contains("no exact test is valid for them") && !text.contains("more seeds"),
        "{text}"
    );
    assert!(
        text.contains("± is over the 3 folds, with one seed"),
        "{text}"
    );
    let text = plain(&compare(&source(&index), &ask()).unwrap(), 200);
    assert!(text.contains("averaged by split"), "{text}");
}

#[test]
fn the_last_epoch_stands_beside_the_best_where_it_differs() {
    let mut index = index(FOUR, clear);
    let without = markdown(&summed_up(&index, Vec::new()));
    assert!(!without.contains("last epoch"), "{without}");
    for run in &mut index.runs {
        let best = run.metrics["valid/accuracy"];
        run.metrics
            .insert("last/valid/accuracy".into(), best - 0.25);
    }
    let report = summed_up(&index, Vec::new());
    let text = markdown(&report);
    assert!(
        text.contains("| last epoch |")
            && text.contains("The mean at the last epoch is listed too."),
        "{text}"
    );
    assert!(
        text.contains("of equal epochs, the one with the lowest `valid/loss`"),
        "{text}"
    );
}

/// On iris, two epochs have the same accuracy, and the later one the lower loss.
#[test]
fn tied_epochs_go_to_the_lower_loss_everywhere() {
    let folder = completed(IRIS, &[]);
    let place = folder.path().join("results/spec/runs/base-s1");
    let found = summary(folder.path(), "base-s1");
    let epochs = fs::read_to_string(place.join("metrics.csv")).unwrap();
    let rows: Vec<Vec<f64>> = epochs
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    let accuracy = |row: &Vec<f64>| row[row.len() - 2];
    assert_eq!(accuracy(&rows[1]), accuracy(&rows[2]), "{epochs}");
    assert_eq!(found["best_epoch"], 3);
    let evaluated = read_json(&place.join("evaluation.json"));
    assert_eq!(evaluated["epoch"], 3);
}

#[test]
fn a_tree_with_one_run_over_other_data_says_so() {
    let spec = format!("[experiment]\nseeds = [1, 2, 3]\n{IRIS}");
    let folder = completed(&spec, &[]);
    let place = RunFolder(folder.path().join("results/spec/runs/base-s3"));
    let mut events = place.read_events().unwrap();
    for (_, event) in &mut events {
        if let Event::RunStarted(started) = event {
            started.data_digests.insert("valid".into(), "f".repeat(64));
        }
    }
    place.write_events(&events).unwrap();
    let (code, stdout, stderr) = run(folder.path(), &["report", "results/spec"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("mixed data"), "{stdout}");
    assert!(
        stderr.contains("`base-s1`, `base-s2` with valid ")
            && stderr.contains("`base-s3` with valid ffffffffffff"),
        "{stderr}"
    );
    let (_, _, stderr) = run(folder.path(), &["list", "results/spec"]);
    assert!(stderr.contains("read different data"), "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["compare", "results/spec"]);
    assert_ne!(code, 0);
    assert!(
        stderr.contains("the completed runs of `base` read different data"),
        "{stderr}"
    );
}

#[cfg(unix)]
/// Another build: the same program with an additional byte at its end.
fn other_build(folder: &Path) -> std::path::PathBuf {
    let place = folder.join("runner-2");
    // By another process: a file that a process of this test had open for writing could not be executed.
    let copy = r#"cp "$0" "$1" && printf x >> "$1""#;
    let mut command = Command::new("sh");
    command.args(["-c", copy, env!("CARGO_BIN_EXE_runner")]);
    assert!(command.arg(&place).status().unwrap().success());
    place
}

#[cfg(unix)]
#[test]
fn runs_of_another_build_are_named_wherever_they_count() {
    let folder = completed(IRIS, &[]);
    let other = other_build(folder.path());
    let with_other = |arguments: &[&str]| {
        let mut command = Command::new(&other);
        command
            .current_dir(folder.path())
            .env("XDG_CACHE_HOME", folder.path().join("cache"));
        texts(&command.args(arguments).output().unwrap())
    };
    let two = ["spec.toml", "--set", "experiment.seeds=[1, 2]"];
    let (code, _, stderr) = with_other(&[&["plan"], &two[..]].concat());
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("note: 1 run was completed by a different build of runner, 0.1.0 (sha256 "),
        "{stderr}"
    );
    assert!(
        stderr.contains("check with `runner reproduce 'results/spec/runs/base-s1'`"),
        "{stderr}"
    );
    let (code, stdout, stderr) = with_other(&[&["run"], &two[..]].concat());
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("completed by a different build"),
        "{stderr}"
    );
    assert!(
        stderr.contains("by different builds of runner: "),
        "{stderr}"
    );
    assert!(stdout.contains(" 2 "), "they are averaged: {stdout}");
    let builds = [1, 2].map(|seed| {
        let place = folder
            .path()
            .join(format!("results/spec/runs/base-s{seed}/environment.json"));
        read_json(&place)["build"]["sha256"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    assert_ne!(builds[0], builds[1]);
    // The worker receives what it would find itself.
    let sum = Command::new("sha256sum").arg(&other).output();
    if let Ok(sum) = sum {
        assert!(String::from_utf8_lossy(&sum.stdout).starts_with(&builds[1]));
    }
    // This build reports nothing about its own runs.
    let (code, _, stderr) = run(folder.path(), &["plan", "spec.toml"]);
    assert_eq!(code, 0);
    assert!(!stderr.contains("a different build"), "{stderr}");
}

/// A worker only trusts its runner about the file that it runs itself.
#[test]
fn a_worker_is_not_told_which_build_it_is() {
    let folder = completed(IRIS, &[]);
    let place = folder.path().join("results/spec/runs/base-s1");
    let alone = folder.path().join("alone");
    fs::create_dir(&alone).unwrap();
    fs::copy(place.join("run.toml"), alone.join("run.toml")).unwrap();
    let told = format!("{}@1.2.3.4.5.6.7", "0".repeat(64));
    let output = runner(folder.path())
        .args(["exec", "alone", "--build", &told])
        .stdin(std::process::Stdio::piped())
        .output()
        .unwrap();
    let (code, stdout, stderr) = texts(&output);
    assert!(
        !stdout.contains(&"0".repeat(64)),
        "{code} {stdout} {stderr}"
    );
    let environment = read_json(&place.join("environment.json"));
    let own = environment["build"]["sha256"].as_str().unwrap();
    assert!(stdout.contains(own), "{stdout}");
}

/// Nothing is averaged or ranked over experiments that were evaluated on different data.
#[test]
fn experiments_over_different_data_have_no_common_mean() {
    let folder = completed(IRIS, &[]);
    let folder = folder.path();
    let other = ["run", "spec.toml", "--quiet", "--set"];
    let other = [
        &other[..],
        &["experiment.name=other", "--set", "data.split.seed=1"],
    ]
    .concat();
    assert_eq!(run(folder, &other).0, 0);
    let (code, groups, _) = run(folder, &["list", "results", "--group", "optimizer.type"]);
    assert!(code == 0 && groups.contains("mixed data"), "{groups}");
    let both = [
        "compare",
        "results/spec",
        "results/other",
        "--value",
        "valid/loss",
    ];
    let (code, compared, stderr) = run(folder, &both);
    assert_eq!(code, 0, "{stderr}");
    let said = format!("{compared}{stderr}");
    assert!(
        said.contains("was measured on different data in different experiments"),
        "{said}"
    );
    let traded = [&both[..3], &["--pareto", "valid/loss,epoch_secs"]].concat();
    assert_eq!(run(folder, &traded).0, 2);
}

/// A pipe in the place of a checkpoint's file makes the checkpoint unusable, without blocking.
#[test]
#[cfg(unix)]
fn a_pipe_in_the_place_of_a_checkpoint_is_not_waited_for() {
    let folder = super::support::folder_with(IRIS);
    let folder = folder.path();
    let stopped = ["run", "spec.toml", "--quiet", "--inject-fault", "*@3"];
    assert_eq!(run(folder, &stopped).0, 1);
    let checkpoints = folder.join("results/spec/runs/base-s1/checkpoints");
    let entries = fs::read_dir(&checkpoints).unwrap().flatten();
    let sidecars = entries.map(|entry| entry.path());
    let sidecars: Vec<_> = sidecars
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    assert!(!sidecars.is_empty());
    for sidecar in sidecars {
        fs::remove_file(&sidecar).unwrap();
        let made = Command::new("mkfifo").arg(&sidecar).status().unwrap();
        assert!(made.success());
    }
    let (code, _, stderr) = run(folder, &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(summary(folder, "base-s1")["outcome"], "completed");
}
