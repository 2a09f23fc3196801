//! `strategy.type = "hybrid"`: predictions change the weights as they should, are counted, rolled back to the bit, and
//! survive a kill.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::edit::Edit;
use super::support::{IRIS, completed, folder_with, goes_on, numbers, read_json, run, summary};

/// One update an epoch, on a network with running statistics.
const WHOLE: &str = r#"
[data]
type = "iris"
split = { valid = 0.2, test = 0.2 }

[model]
layers = [
  { type = "linear", out_features = 8 },
  { type = "batch_norm" },
  { type = "relu" },
  { type = "linear" },
]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 12
batch_size = 90
"#;

/// Phases that predict early: 3 warm-up steps, 4 full ones, then up to 10 predicted ones.
fn hybrid(more: &str) -> String {
    format!(
        "strategy = {{ type = \"hybrid\", warmup_steps = 3, full_steps = 4, max_predict_steps = 10, confidence_threshold = 0, {more} }}\n"
    )
}

/// A line in two dimensions, far from the first weights.
fn line(strategy: &str, loss: &str, epochs: usize) -> tempfile::TempDir {
    let spec = format!(
        r#"{strategy}
[data]
type = "csv"
path = "line.csv"
target = "y"
split = {{ valid = 0.25 }}
scale = "none"

[task]
type = "regression"

[model]
layers = [{{ type = "linear" }}]

[loss]
type = "{loss}"

[optimizer]
type = "sgd"
learning_rate = 1e-3

[train]
epochs = {epochs}
batch_size = 48
"#
    );
    let folder = folder_with(&spec);
    let mut csv = String::from("a,b,y\n");
    for at in 0..64 {
        let (a, b) = (f64::from(at % 8) / 4.0, f64::from(at / 8) / 8.0);
        writeln!(csv, "{a},{b},{}", 1000.0 + a - b).unwrap();
    }
    fs::write(folder.path().join("line.csv"), csv).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    folder
}

/// The final weights by name.
fn weights(folder: &Path) -> Vec<(String, Vec<f64>)> {
    let out = folder.join("final.json");
    let file = out.to_string_lossy();
    let of = "results/spec/runs/base-s1";
    let arguments = [
        "export",
        "weights",
        of,
        "--weights",
        "final",
        "--format",
        "pytorch-json",
        "--out",
        &file,
        "--force",
    ];
    let (code, _, stderr) = run(folder, &arguments);
    assert_eq!(code, 0, "{stderr}");
    let json = read_json(&out);
    let tensors = json.as_object().unwrap().iter();
    tensors
        .map(|(name, values)| {
            let text = values.to_string();
            let numbers = text.split(['[', ']', ',']).filter(|part| !part.is_empty());
            (
                name.clone(),
                numbers.map(|part| part.parse().unwrap()).collect(),
            )
        })
        .collect()
}

/// The last row of a column of the metrics.
fn last(folder: &Path, column: &str) -> f64 {
    let (_, csv, ..) = &numbers(folder)[0];
    let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
    let at = rows[0].iter().position(|name| *name == column);
    rows.last().unwrap()[at.unwrap_or_else(|| panic!("{column} in {:?}", rows[0]))]
        .parse()
        .unwrap()
}

fn of_whole(strategy: &str, epochs: usize) -> tempfile::TempDir {
    let spec = format!("{strategy}{WHOLE}").edit("epochs = 12", &format!("epochs = {epochs}"));
    completed(&spec, &[])
}

/// What the source of this strategy never tested: its updates reached no parameter.
#[test]
fn predicted_steps_change_the_weights_and_held_ones_do_not() {
    let before = of_whole("", 7);
    let before = weights(before.path());
    for (predictor, changes) in [
        ("\"hold\"", false),
        ("\"momentum\"", true),
        ("\"linear\", snapshots = 4", true),
        ("\"dmd\", snapshots = 4, rank = 2", true),
        ("\"rssm\", snapshots = 4", true),
    ] {
        // Steps 8 to 10 are predicted.
        let after = of_whole(
            &hybrid(&format!("predictor = {predictor}, tolerance = 9")),
            10,
        );
        assert_eq!(last(after.path(), "train/predicted_updates"), 3.0);
        assert_eq!(last(after.path(), "train/rolled_back_updates"), 0.0);
        for ((name, before), (_, after)) in before.iter().zip(weights(after.path())) {
            let is_statistic = name.contains("running") || name.contains("num_batches");
            assert_eq!(
                *before != after,
                changes && !is_statistic,
                "{predictor}: {name}"
            );
        }
    }
}

#[test]
fn passes_and_updates_are_counted() {
    let steps = of_whole(
        &hybrid("predictor = \"linear\", tolerance = 9, correction_steps = 2"),
        30,
    );
    let of = |name: &str| last(steps.path(), &format!("train/{name}"));
    // 3 and 4 real steps, 10 predicted ones, 2 and 4 real ones at least.
    assert_eq!(of("forwards"), 30.0);
    assert_eq!(of("backwards"), of("updates"));
    assert_eq!(of("backwards") + of("predicted_updates"), 30.0);
    assert!(of("predicted_updates") >= 10.0);
    // One probe before a prediction and one for each check.
    assert!(of("probe_forwards") > of("predictions"));
    // A jump leaves out no batch.
    let jump = of_whole(
        &hybrid("mode = \"jump\", predictor = \"linear\", tolerance = 9"),
        11,
    );
    let of = |name: &str| last(jump.path(), &format!("train/{name}"));
    assert_eq!([of("forwards"), of("backwards"), of("updates")], [11.0; 3]);
    assert_eq!([of("predictions"), of("predicted_updates")], [1.0, 10.0]);
    assert_eq!(of("probe_forwards"), 2.0);
    assert!(of("rolled_back_updates") == 0.0 || of("rolled_back_updates") == 10.0);
    let metrics = &summary(jump.path(), "base-s1")["metrics"];
    assert!(metrics["train/backwards"].is_number(), "{metrics}");
}

/// With the absolute error, each update of a line that is far away is the same.
#[test]
fn a_jump_along_a_line_lands_where_training_lands() {
    let strategy = hybrid("mode = \"jump\", predictor = \"linear\", snapshots = 4");
    let jumped = line(&strategy, "mae", 8);
    assert_eq!(last(jumped.path(), "train/predicted_updates"), 10.0);
    assert_eq!(last(jumped.path(), "train/rolled_back_updates"), 0.0);
    let trained = line("", "mae", 18);
    let short = line("", "mae", 8);
    let distance = |other: &Path| {
        let (a, b) = (weights(jumped.path()), weights(other));
        let pairs = a
            .iter()
            .zip(&b)
            .flat_map(|((_, a), (_, b))| a.iter().zip(b));
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    assert!(
        distance(trained.path()) < 5e-6,
        "{}",
        distance(trained.path())
    );
    assert!(distance(short.path()) > 5e-3);
}

/// With the squared error, the updates of gradient descent follow each other by a linear map.
#[test]
fn dmd_lands_where_gradient_descent_lands() {
    let strategy = "strategy = { type = \"hybrid\", mode = \"jump\", predictor = \"dmd\", warmup_steps = 2, full_steps = 8, max_predict_steps = 20, confidence_threshold = 0 }\n";
    let jumped = line(strategy, "mse", 11);
    let num = last(jumped.path(), "train/predicted_updates");
    assert_eq!(last(jumped.path(), "train/rolled_back_updates"), 0.0);
    assert!(num >= 10.0, "{num}");
    let trained = line("", "mse", 11 + num as usize);
    let short = line("", "mse", 11);
    let distance = |a: &Path, b: &Path| {
        let (a, b) = (weights(a), weights(b));
        let pairs = a
            .iter()
            .zip(&b)
            .flat_map(|((_, a), (_, b))| a.iter().zip(b));
        pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    };
    let (missed, moved) = (
        distance(jumped.path(), trained.path()),
        distance(short.path(), trained.path()),
    );
    assert!(missed < 1e-3 * moved, "{missed} of {moved}");
}

#[test]
fn a_rejected_prediction_is_rolled_back_to_the_bit() {
    let far = |mode: &str| {
        format!(
            "strategy = {{ type = \"hybrid\", warmup_steps = 2, full_steps = 5, max_predict_steps = 100000000, confidence_threshold = 0, mode = \"{mode}\" }}\n"
        )
    };
    let straight = line("", "mse", 25);
    let jumped = line(&far("jump"), "mse", 25);
    let of = |name: &str| last(jumped.path(), &format!("train/{name}"));
    assert!(of("predictions") >= 2.0);
    assert_eq!(of("rejected_predictions"), of("predictions"));
    assert_eq!(of("rolled_back_updates"), of("predicted_updates"));
    let digest = |folder: &Path| summary(folder, "base-s1")["weights_digest"].clone();
    assert_eq!(weights(straight.path()), weights(jumped.path()));
    assert_eq!(digest(straight.path()), digest(jumped.path()));
    // The optimizer's state and the losses of all steps too.
    let trace = |folder: &Path| {
        let run = folder.join("results/spec/runs/base-s1/trace");
        let read = |name: &str| fs::read(run.join(name)).unwrap();
        (read("losses.f64"), read("digests.csv"))
    };
    assert!(trace(straight.path()) == trace(jumped.path()));
}

#[cfg(unix)]
#[test]
fn predictions_survive_a_kill_to_the_bit() {
    let spec = WHOLE
        .edit("batch_size = 90", "batch_size = 24")
        .edit("epochs = 12", "epochs = 9");
    let mut strategies = String::new();
    for mode in ["steps", "jump"] {
        for predictor in ["hold", "momentum", "linear", "dmd", "rssm"] {
            for tolerance in [0.0, 0.2] {
                writeln!(
                    strategies,
                    "  {{ type = \"hybrid\", warmup_steps = 3, full_steps = 4, max_predict_steps = 12, confidence_threshold = 0, mode = \"{mode}\", predictor = \"{predictor}\", tolerance = {tolerance} }},"
                )
                .unwrap();
            }
        }
    }
    let spec = format!(
        "checkpoint = {{ every_steps = 2 }}\n{spec}\n[sweep.grid]\nstrategy = [\n{strategies}]\n"
    );
    let straight = completed(&spec, &["--jobs", "1"]);
    let killed = folder_with(&spec);
    for moment in [
        "training:9",
        "training:14",
        "checkpointing:16",
        "validating:6",
    ] {
        let fault = format!("*@{moment}=kill");
        let arguments = [
            "run",
            "spec.toml",
            "--quiet",
            "--jobs",
            "2",
            "--inject-fault",
            &fault,
        ];
        let (code, ..) = run(killed.path(), &arguments);
        assert_eq!(code, 1, "{moment}");
    }
    goes_on(killed.path());
    let (straight, killed) = (numbers(straight.path()), numbers(killed.path()));
    assert_eq!(straight.len(), 20);
    assert_eq!(straight, killed);
}

#[test]
fn snapshots_are_in_the_forecast() {
    let forecast = |strategy: &str| {
        let (plan, _) = super::support::plan("spec.toml", &format!("{strategy}{WHOLE}")).unwrap();
        plan.runs[0].forecast
    };
    let weights = forecast("").parameters;
    let copies = |more: &str| forecast(&hybrid(more)).average / weights;
    assert_eq!(copies("predictor = \"hold\""), 1);
    assert_eq!(copies("predictor = \"momentum\""), 3);
    assert_eq!(copies("predictor = \"linear\", snapshots = 7"), 8);
    assert_eq!(copies("predictor = \"dmd\""), 9);
}

/// The report of two rates over five seeds, one of which learns nothing.
fn compared_with(baseline: &str) -> (tempfile::TempDir, String, serde_json::Value) {
    let more = format!(
        "[experiment]\nseeds = [1, 2, 3, 4, 5]\n[objective]\nmetric = \"valid/loss\"\nbaseline = \"learning_rate={baseline}\"\n[sweep.grid]\noptimizer.learning_rate = [1e-9, 3e-2]\n"
    );
    let folder = folder_with(&format!("{IRIS}{more}"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let results = folder.path().join("results/spec");
    let text = fs::read_to_string(results.join("report.md")).unwrap();
    let report = read_json(&results.join("report.json"));
    (folder, text, report)
}

#[test]
fn nothing_is_claimed_where_the_baseline_learned_nothing() {
    let (folder, text, report) = compared_with("1e-9");
    let said = "No claim: the baseline `learning_rate=1e-9` has not beaten the best constant prediction, which reaches valid/loss 1.0";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("| no claim "), "{text}");
    assert_eq!(report["baseline"]["unbeaten"]["n"], 5, "{report}");
    // So it is if its folder, the report saved there, or another folder with it is compared.
    let copy = folder.path().join("saved.json");
    fs::copy(folder.path().join("results/spec/report.json"), &copy).unwrap();
    for what in [
        &["results/spec"][..],
        &["saved.json"],
        &["results/spec", "saved.json"],
    ] {
        let named = match what {
            [_] => "learning_rate=1e-9",
            _ => "spec/learning_rate=1e-9",
        };
        let arguments = [&["compare"], what, &["--baseline", named]].concat();
        let (code, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{stderr}");
        let said = format!("No claim: the baseline `{named}` has not beaten");
        assert!(stdout.contains(&said), "{stdout}");
        assert!(!stdout.contains("better"), "{stdout}");
    }
    let other = [
        "compare",
        "results/spec",
        "--baseline",
        "learning_rate=0.03",
    ];
    let (_, stdout, _) = run(folder.path(), &other);
    assert!(stdout.contains("worse"), "{stdout}");
    let (_folder, text, report) = compared_with("0.03");
    assert!(!text.contains("o claim"), "{text}");
    assert!(text.contains("worse"), "{text}");
    assert_eq!(report["baseline"]["unbeaten"], serde_json::Value::Null);
}
