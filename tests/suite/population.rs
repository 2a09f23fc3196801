//! Population-based training: copies that continue what they are copies of to the bit, the same population however often
//! it is killed and whatever `--jobs`, and what is said of it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::edit::Edit;
#[cfg(unix)]
use super::search::killed_after;
use super::search::{report_of, searched, suggestions};
use super::support::{IRIS, folder_with, goes_on, numbers, plan, run, summary};

const SEARCH: &str = r#"
[search]
type = "sobol"

[search.prune]
type = "pbt"
population = 6
interval = 2
resample_probability = 0.3

[sweep.random.axes]
optimizer.learning_rate = { type = "log_uniform", min = 1e-4, max = 0.3 }
optimizer.beta_1 = { type = "uniform", min = 0.5, max = 0.95 }
"#;

fn spec() -> String {
    format!("{}\n{SEARCH}", IRIS.edit("epochs = 3", "epochs = 8"))
}

fn runs(folder: &Path) -> PathBuf {
    folder.join("results/spec/runs")
}

/// The copies: their trials, those that they are copies of, and the epochs that they took over.
fn copies(folder: &Path) -> Vec<(String, String, u64)> {
    let all = suggestions(folder);
    let name = |known: &Json| known["trial"].as_str().unwrap().to_owned();
    let forks = all.iter().filter(|known| !known["fork"].is_null());
    let forks = forks.map(|known| {
        let from = known["fork"]["from"].as_u64().unwrap() as usize;
        let epochs = known["fork"]["epochs"].as_u64().unwrap();
        (name(known), name(&all[from]), epochs)
    });
    forks.collect()
}

#[test]
fn an_unchanged_copy_continues_what_it_is_a_copy_of_to_the_bit() {
    // Whatever a checkpoint has to contain: moments, averages, random numbers of dropout, a schedule, two seeds.
    let network = "type = \"layers\"\nlayers = [\n\
        { type = \"linear\", out_features = 16 },\n{ type = \"batch_norm\" },\n\
        { type = \"relu\" },\n{ type = \"dropout\" },\n{ type = \"linear\" }]";
    let unchanged = "factors = [1.0]\nresample_probability = 1e-12";
    let same = spec()
        .edit("resample_probability = 0.3", unchanged)
        .edit("type = \"mlp\"\nhidden = [16]", network)
        .edit(
            "[train]",
            "[scheduler]\ntype = \"cosine\"\n\n[train]\nema = { decay = 0.9 }",
        );
    let same = format!("experiment.seeds = [1, 2]\n{same}");
    let sgd = same
        .edit("type = \"adam\"", "type = \"sgd\"\nmomentum = 0.9")
        .edit("optimizer.beta_1", "optimizer.weight_decay");
    for spec in [same, sgd] {
        let folder = searched(&spec, &[]);
        let copies = copies(folder.path());
        assert_eq!(copies.len(), 3);
        for (copy, source, epochs) in copies {
            for seed in [1, 2] {
                let [copy, source] = [&copy, &source].map(|trial| format!("{trial}-s{seed}"));
                let read =
                    |run: &str, file: &str| fs::read(runs(folder.path()).join(run).join(file));
                let (ours, theirs) = (
                    summary(folder.path(), &copy),
                    summary(folder.path(), &source),
                );
                assert_ne!(ours["fingerprint"], theirs["fingerprint"]);
                assert!(ours["epochs"].as_u64().unwrap() > epochs, "{copy}");
                // As far as both were trained.
                let num = ours["steps"]
                    .as_u64()
                    .unwrap()
                    .min(theirs["steps"].as_u64().unwrap());
                let both = [&copy, &source].map(|run| {
                    let mut losses = read(run, "trace/losses.f64").unwrap();
                    losses.truncate(8 * num as usize);
                    let digests =
                        String::from_utf8(read(run, "trace/digests.csv").unwrap()).unwrap();
                    let up_to = |line: &&str| {
                        let step = line
                            .split(',')
                            .next()
                            .and_then(|step| step.parse::<u64>().ok());
                        step.is_none_or(|step| step <= num) && !line.contains("optimizer/")
                    };
                    let digests: Vec<String> =
                        digests.lines().filter(up_to).map(str::to_owned).collect();
                    let metrics = String::from_utf8(read(run, "metrics.csv").unwrap()).unwrap();
                    let metrics: Vec<String> = metrics
                        .lines()
                        .filter(|line| {
                            let step = line
                                .split(',')
                                .nth(1)
                                .and_then(|step| step.parse::<u64>().ok());
                            step.is_none_or(|step| step <= num)
                        })
                        .map(str::to_owned)
                        .collect();
                    (losses, digests, metrics)
                });
                assert_eq!(both[0], both[1], "{copy} {source}");
                assert_eq!(both[0].0.len() as u64, 8 * num);
                if ours["epochs"] == 8 && theirs["epochs"] == 8 {
                    assert_eq!(ours["weights_digest"], theirs["weights_digest"]);
                    assert_eq!(ours["metrics"], theirs["metrics"]);
                }
            }
        }
    }
}

#[test]
fn a_population_does_not_depend_on_the_number_of_workers_or_on_a_lost_plan() {
    let one = searched(&spec(), &["--jobs", "1"]);
    let many = searched(&spec(), &["--jobs", "4"]);
    let found = suggestions(one.path());
    assert_eq!(found, suggestions(many.path()));
    assert_eq!(numbers(one.path()), numbers(many.path()));
    // Copies have other values than what they are copies of, and are trained with them.
    for (copy, source, epochs) in copies(one.path()) {
        let [ours, theirs] = [&copy, &source].map(|trial| {
            let path = runs(one.path()).join(format!("{trial}-s1/metrics.csv"));
            fs::read_to_string(path).unwrap()
        });
        assert_ne!(copy, source);
        let same = ours.lines().zip(theirs.lines()).take_while(|(a, b)| a == b);
        assert_eq!(
            same.count() as u64,
            1 + epochs,
            "the head, and what was copied"
        );
    }
    fs::remove_file(one.path().join("results/spec/plan.json")).unwrap();
    goes_on(one.path());
    assert_eq!(found, suggestions(one.path()));
    let said = goes_on(one.path());
    let num = found.len();
    assert!(said.contains(&format!("0 of {num} runs to do")), "{said}");
    assert_eq!(numbers(one.path()), numbers(many.path()));
}

#[cfg(unix)]
#[test]
fn a_population_that_is_killed_is_the_same() {
    let whole = searched(&spec(), &[]);
    let folder = folder_with(&spec());
    // In the first interval, between copies, and in later ones.
    killed_after(folder.path(), [4, 6, 5]);
    goes_on(folder.path());
    assert_eq!(suggestions(whole.path()), suggestions(folder.path()));
    assert_eq!(numbers(whole.path()), numbers(folder.path()));
}

#[test]
fn what_a_copy_begins_with_is_trained_again_if_it_is_lost() {
    let whole = searched(&spec(), &[]);
    let before = numbers(whole.path());
    // Everything, as if the data had changed: the others are trained up to each copy first.
    fs::remove_dir_all(runs(whole.path())).unwrap();
    goes_on(whole.path());
    assert_eq!(numbers(whole.path()), before);
    // A checkpoint of a copy that has not begun yet is not the end of it either.
    let (copy, source, _) = copies(whole.path()).pop().unwrap();
    for trial in [&copy, &source] {
        fs::remove_dir_all(runs(whole.path()).join(format!("{trial}-s1"))).unwrap();
    }
    goes_on(whole.path());
    assert_eq!(numbers(whole.path()), before);
}

#[test]
fn a_copy_of_what_is_gone_is_not_trained_from_other_weights() {
    let folder = searched(&spec(), &[]);
    let before = numbers(folder.path());
    // Its source was trained on, and has only its newest state.
    let all = copies(folder.path());
    let was_trained_on = |(_, source, _): &&(String, String, u64)| {
        summary(folder.path(), &format!("{source}-s1"))["outcome"] == "completed"
    };
    let (copy, source, epochs) = all.iter().find(was_trained_on).unwrap();
    fs::remove_dir_all(runs(folder.path()).join(format!("{copy}-s1"))).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 1, "{stderr}");
    let reason = format!("it begins as a copy of `{source}-s1` after epoch {epochs}, whose state");
    assert!(stderr.contains(&reason), "{stderr}");
    let remedy = "delete the folder of that run too";
    assert!(stderr.contains(remedy), "{stderr}");
    let summary = format!("{copy}-s1/summary.json");
    assert!(!runs(folder.path()).join(&summary).exists());
    // The remedy is right, if what that run begins as is gone as well.
    for _ in 0..8 {
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
        let Some(gone) = stderr
            .split("begins as a copy of `")
            .nth(1)
            .filter(|_| code != 0)
        else {
            break;
        };
        let gone = gone.split('`').next().unwrap();
        fs::remove_dir_all(runs(folder.path()).join(gone)).unwrap();
    }
    assert!(runs(folder.path()).join(&summary).exists());
    assert_eq!(numbers(folder.path()), before);
}

#[test]
fn a_member_that_fails_is_replaced() {
    let folder = folder_with(&spec());
    let first = plan("spec.toml", &spec())
        .unwrap_or_else(|refused| panic!("{refused}"))
        .0;
    let fault = format!("{}@2", first.runs[1].id);
    let (code, _, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--quiet", "--inject-fault", &fault],
    );
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(
        report_of(folder.path())["problems"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    let all = suggestions(folder.path());
    let of_second = |known: &&Json| known["fork"]["member"] == 1;
    assert_eq!(all.iter().find(of_second).unwrap()["fork"]["epochs"], 2);
    assert_eq!(all[1]["rung"]["epochs"], 2);
}

#[test]
fn the_schedule_that_was_found_is_shown() {
    let folder = searched(&spec(), &[]);
    let report = report_of(folder.path());
    let population = &report["search"]["population"];
    assert_eq!(population["size"], 6);
    let copies = copies(folder.path());
    assert_eq!(
        population["copies"].as_array().map(Vec::len),
        Some(copies.len())
    );
    // Six members and eight epochs, however they came about.
    assert_eq!(report["search"]["epochs"], 6 * 8);
    let best = report["trials"][0]["id"].as_str().unwrap();
    let schedule = population["schedule"].as_array().unwrap();
    assert_eq!(schedule.last().unwrap()["trial"], best);
    let mut next = 1;
    for segment in schedule {
        assert_eq!(segment["from_epoch"], next);
        next = segment["to_epoch"].as_u64().unwrap() + 1;
        let run = format!("{}-s1", segment["trial"].as_str().unwrap());
        assert_eq!(segment["values"], summary(folder.path(), &run)["axes"]);
    }
    assert_eq!(next, 9);
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(text.contains("## Schedule"), "{text}");
    assert!(
        text.contains("A population of 6 was trained with `pbt`: 3 copies"),
        "{text}"
    );
    let (copy, source, epochs) = &copies[0];
    let (code, stdout, stderr) = run(folder.path(), &["list", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let mut listed = stdout
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).unwrap());
    let listed = listed.find(|run| run["trial"] == copy.as_str()).unwrap();
    assert_eq!(
        listed["copy_of"],
        format!("{source}-s1 after epoch {epochs}")
    );
    let (_, stdout, _) = run(folder.path(), &["list"]);
    assert!(stdout.contains("copy_of"), "{stdout}");
}

/// The copy that was completed and continues a copy, with the number of runs that it begins as copies of.
fn longest(folder: &Path) -> (String, usize) {
    let number = |run: &str| {
        let lineage = runs(folder).join(run).join("lineage");
        fs::read_dir(lineage).map_or(0, Iterator::count)
    };
    let copies = copies(folder)
        .into_iter()
        .map(|(copy, ..)| format!("{copy}-s1"));
    let completed = copies.filter(|run| summary(folder, run)["outcome"] == "completed");
    completed
        .map(|run| (run.clone(), number(&run)))
        .max_by_key(|(_, number)| *number)
        .unwrap()
}

#[test]
fn a_copy_is_reproduced_with_what_it_begins_as() {
    let folder = searched(&spec(), &[]);
    let (copy, number) = longest(folder.path());
    assert!(number > 1, "a copy of a copy");
    let place = format!("results/spec/runs/{copy}");
    let (code, stdout, stderr) = run(folder.path(), &["reproduce", &place]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("bitwise"), "{stdout}");
    assert_eq!(
        stderr.matches("begins as a copy of").count(),
        number,
        "{stderr}"
    );
    // Only as much of it as the first updates need.
    for (steps, num_begun) in [("1", 0), ("30", number)] {
        let arguments = ["reproduce", &place, "--steps", steps];
        let (code, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("bitwise"), "{stdout}");
        let num = stderr.matches("begins as a copy of").count();
        assert!(num <= num_begun, "{stderr}");
    }
    // All that were completed.
    let (code, stdout, stderr) = run(folder.path(), &["reproduce", "results/spec"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout.matches("verdict: bitwise").count(), 6, "{stdout}");
    // A reproduction is a run that can be reproduced.
    let again = format!("results/spec/reproduced/{copy}");
    let (code, _, stderr) = run(folder.path(), &["reproduce", &again]);
    assert_eq!(code, 0, "{stderr}");
    // What it begins as cannot be exchanged.
    let first = runs(folder.path()).join(&copy).join("lineage/1.toml");
    let other = runs(folder.path()).join(&copy).join("lineage/2.toml");
    fs::copy(other, &first).unwrap();
    let (code, _, stderr) = run(folder.path(), &["reproduce", &place]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("it is not the run that"), "{stderr}");
    fs::remove_file(&first).unwrap();
    for verb in ["reproduce", "bundle"] {
        let (code, _, stderr) = run(folder.path(), &[verb, &place]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("does not have the plan of"), "{stderr}");
    }
}

#[test]
fn a_capsule_of_a_copy_has_what_it_begins_as() {
    let folder = searched(&spec(), &[]);
    let (copy, number) = longest(folder.path());
    let place = format!("results/spec/runs/{copy}");
    let arguments = ["bundle", &place, "--out", "copy.capsule.tar.zst"];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    // Elsewhere, without the others.
    let other = tempfile::tempdir().unwrap();
    let capsule = other.path().join("copy.capsule.tar.zst");
    fs::rename(folder.path().join("copy.capsule.tar.zst"), capsule).unwrap();
    drop(folder);
    let (code, stdout, stderr) = run(other.path(), &["reproduce", "copy.capsule.tar.zst"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("bitwise"), "{stdout}");
    assert_eq!(
        stderr.matches("begins as a copy of").count(),
        number,
        "{stderr}"
    );
}

#[test]
fn the_best_of_a_population_are_confirmed_with_their_schedules() {
    let confirmed = spec().edit(
        "type = \"sobol\"",
        "type = \"sobol\"\nconfirm = { trials = 2, seeds = 2 }",
    );
    let folder = searched(&confirmed, &[]);
    let without = searched(&spec(), &[]);
    let trials = |folder: &Path| {
        let report = report_of(folder);
        let trials = report["trials"].as_array().unwrap().iter();
        trials
            .map(|trial| trial["metrics"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(trials(folder.path()), trials(without.path()));
    let report = report_of(folder.path());
    let shown = report["search"]["confirmed"].as_array().unwrap();
    assert_eq!(shown.len(), 2);
    assert_eq!(report["search"]["epochs"], 6 * 8);
    let copies = copies(folder.path());
    for one in shown {
        assert_eq!(
            (&one["sample"]["n"], &one["num_planned"]),
            (&2.into(), &2.into())
        );
        // Each epoch was trained with the hyperparameters of the schedule, from its own weights on.
        let mut trial = one["trial"].as_str().unwrap().to_owned();
        let mut weights = Vec::new();
        for seed in [2, 3] {
            let summary = summary(folder.path(), &format!("{trial}-s{seed}"));
            assert_eq!(summary["outcome"], "completed");
            assert_eq!(summary["epochs"], 8);
            weights.push(summary["weights_digest"].clone());
        }
        assert_ne!(weights[0], weights[1]);
        while let Some((_, source, epochs)) = copies.iter().find(|(copy, ..)| *copy == trial) {
            for seed in [2, 3] {
                let [ours, theirs] = [&trial, source].map(|trial| {
                    let path = runs(folder.path()).join(format!("{trial}-s{seed}/metrics.csv"));
                    fs::read_to_string(path).unwrap()
                });
                let same = ours.lines().zip(theirs.lines()).take_while(|(a, b)| a == b);
                assert!(same.count() as u64 > *epochs);
            }
            trial = source.clone();
        }
    }
    let said = goes_on(folder.path());
    assert!(said.contains("0 of "), "{said}");
    // It can be added later, and more of it, with the same numbers. What was trained further than a new copy begins is
    // trained again.
    for folder in [&without, &folder] {
        let arguments = [
            "run",
            "spec.toml",
            "--quiet",
            "--set",
            "search.confirm={trials=5,seeds=2}",
        ];
        let (code, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{stderr}");
    }
    assert!(folder.path().join("results/spec/replaced").is_dir());
    assert_eq!(numbers(folder.path()), numbers(without.path()));
    let mut confirmed = copies.iter().map(|(copy, ..)| format!("{copy}-s2"));
    let copy = confirmed.find(|run| {
        runs(folder.path()).join(run).exists()
            && summary(folder.path(), run)["outcome"] == "completed"
    });
    let place = format!("results/spec/runs/{}", copy.unwrap());
    let (code, stdout, stderr) = run(folder.path(), &["reproduce", &place]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("verdict: bitwise"), "{stdout}");
}

#[test]
fn what_a_trial_of_a_population_cannot_do_alone_is_refused() {
    let folder = searched(&spec(), &[]);
    let (copy, source, epochs) = copies(folder.path()).pop().unwrap();
    let arguments = ["render", "spec.toml", "--trial", &copy];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 2, "{stderr}");
    let why = format!("it begins as a copy of `{source}` after epoch {epochs}");
    assert!(stderr.contains(&why), "{stderr}");
    // Another population is another search.
    for set in [
        "search.prune.population=7",
        "search.prune.factors=[0.5]",
        "train.epochs=9",
    ] {
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--set", set]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("contains another search"), "{stderr}");
    }
}
