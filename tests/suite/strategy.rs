//! Strategies: averages and slow weights are those of their definitions, and survive a kill.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::edit::Edit;
use super::support::peers::python_with;
use super::support::{IRIS, completed, goes_on, numbers, read_json, run};

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
type = "sgd"
learning_rate = 0.5

[train]
epochs = 8
batch_size = 90
"#;

/// Writes weights of a run as JSON and as safetensors, and returns the numbers of each tensor by its name.
fn exported(folder: &Path, run_of: &str, weights: &str, out: &Path) -> Vec<(String, Vec<f64>)> {
    for (format, file) in [
        ("safetensors", out.with_extension("safetensors")),
        ("pytorch-json", out.with_extension("json")),
    ] {
        let file = file.to_string_lossy();
        let from = format!("results/spec/runs/{run_of}");
        let (code, _, stderr) = run(
            folder,
            &[
                "export",
                "weights",
                &from,
                "--weights",
                weights,
                "--format",
                format,
                "--out",
                &file,
            ],
        );
        assert_eq!(code, 0, "{stderr}");
    }
    let json = read_json(&out.with_extension("json"));
    let tensors = json.as_object().unwrap().iter();
    tensors
        .map(|(name, values)| {
            let mut flat = Vec::new();
            flatten(values, &mut flat);
            (name.clone(), flat)
        })
        .collect()
}

fn flatten(json: &Json, flat: &mut Vec<f64>) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| flatten(item, flat)),
        other => flat.extend(other.as_f64()),
    }
}

/// The largest difference of two lists of tensors.
fn distance(a: &[(String, Vec<f64>)], b: &[(String, Vec<f64>)]) -> f64 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().zip(b).flat_map(|((name, a), (other, b))| {
        assert_eq!(name, other);
        assert_eq!(a.len(), b.len());
        a.iter().zip(b).map(|(a, b)| (a - b).abs())
    });
    pairs.fold(0.0, f64::max)
}

#[test]
fn averages_are_those_of_pytorch() {
    let Some(python) = python_with(&["torch", "safetensors"]) else {
        return;
    };
    let out = tempfile::tempdir().unwrap();
    let sweep = format!("{WHOLE}\n[sweep.grid]\ntrain.epochs = [1, 2, 3, 4, 5, 6, 7, 8]\n");
    let each = completed(&sweep, &[]);
    for epochs in 1..=8 {
        let run_of = format!("epochs={epochs}-s1");
        exported(
            each.path(),
            &run_of,
            "final",
            &out.path().join(epochs.to_string()),
        );
    }
    let averaged = format!(
        "strategy = {{ type = \"swa\", start_epoch = 3 }}\n{WHOLE}ema = {{ decay = 0.6, start_step = 2 }}\n"
    );
    let averaged = completed(&averaged, &[]);
    for name in ["ema", "swa"] {
        exported(averaged.path(), "base-s1", name, &out.path().join(name));
    }
    let said = python.run("average_check.py", &[out.path()]);
    assert!(
        said.contains("swa: 8 tensors") || said.contains("swa: "),
        "{said}"
    );
    // Until an average starts, it is equal to the weights; both are evaluated.
    let (_, csv, summary, ..) = &numbers(averaged.path())[0];
    let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|column| *column == name).unwrap();
    let at = |epoch: usize, name: &str| rows[epoch][column(name)].to_owned();
    for (epoch, is_equal) in [(1, true), (3, true), (5, false), (8, false)] {
        let (valid, swa) = (at(epoch, "valid/loss"), at(epoch, "valid_swa/loss"));
        assert_eq!(valid == swa, is_equal, "{epoch}: {valid} {swa}");
    }
    for (epoch, is_equal) in [(1, true), (2, true), (4, false)] {
        let (valid, ema) = (at(epoch, "valid/loss"), at(epoch, "valid_ema/loss"));
        assert_eq!(valid == ema, is_equal, "{epoch}: {valid} {ema}");
    }
    assert!(summary["test_swa/loss"].is_number(), "{summary}");
}

#[test]
fn lookahead_moves_the_slow_weights_and_continues_from_them() {
    let out = tempfile::tempdir().unwrap();
    let whole = |epochs: usize, more: &str| {
        format!("{more}\n{WHOLE}").edit("epochs = 8", &format!("epochs = {epochs}"))
    };
    let lookahead = "strategy = { type = \"lookahead\", sync_steps = 3, alpha = 0.5 }";
    let read = |spec: &str, weights: &str, name: &str| {
        let folder = completed(spec, &[]);
        exported(folder.path(), "base-s1", weights, &out.path().join(name))
    };
    let between = |from: &[(String, Vec<f64>)], to: &[(String, Vec<f64>)]| -> Vec<_> {
        let tensors = from.iter().zip(to).map(|((name, from), (_, to))| {
            let middle = from.iter().zip(to).map(|(from, to)| (from + to) / 2.0);
            // Running statistics are those of the trained network.
            let is_statistic = name.contains("running") || name.contains("num_batches");
            let middle = if is_statistic {
                to.clone()
            } else {
                middle.collect()
            };
            (name.clone(), middle)
        });
        tensors.collect()
    };
    let first = read(&whole(3, ""), "initial", "initial");
    let third = read(&whole(3, ""), "final", "third");
    let slow = read(&whole(3, lookahead), "final", "slow");
    assert!(distance(&slow, &between(&first, &third)) < 1e-6);
    assert!(distance(&slow, &third) > 1e-2);
    // SGD without momentum has no state: three more updates from the slow weights are three more of Lookahead.
    let from = out.path().join("slow.safetensors");
    let init = format!("init = {{ from = \"{}\" }}", from.display());
    let sixth = read(&whole(3, &init), "final", "sixth");
    let after = read(&whole(6, lookahead), "final", "after");
    assert!(distance(&after, &between(&slow, &sixth)) < 1e-5);
    // Between synchronizations, the weights that are saved are the slow ones.
    let fourth = read(&whole(4, lookahead), "final", "fourth");
    for ((name, slow), (_, fourth)) in slow.iter().zip(&fourth) {
        let is_statistic = name.contains("running") || name.contains("num_batches");
        assert_eq!(slow == fourth, !is_statistic, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn strategies_survive_a_kill_to_the_bit() {
    let sweep = r#"
[checkpoint]
every_steps = 2

[sweep.grid]
strategy = [
  { type = "lookahead", sync_steps = 5 },
  { type = "swa", start_epoch = 2, every_steps = 3 },
  { type = "swa", start_epoch = 3 },
]
"#;
    let spec = format!("{IRIS}ema = {{ decay = 0.9, start_step = 11 }}\n{sweep}")
        .edit("epochs = 3", "epochs = 5");
    let straight = completed(&spec, &[]);
    let killed = super::support::folder_with(&spec);
    for moment in [
        "training:4",
        "training:14",
        "checkpointing:16",
        "validating:4",
    ] {
        let fault = format!("*@{moment}=kill");
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
        let (code, ..) = run(killed.path(), &arguments);
        assert_eq!(code, 1, "{moment}");
    }
    goes_on(killed.path());
    let (straight, killed) = (numbers(straight.path()), numbers(killed.path()));
    assert_eq!(straight.len(), 3);
    assert_eq!(straight, killed);
}

/// The schedule follows the history, which a checkpoint holds.
#[test]
fn a_schedule_that_follows_a_metric_survives_a_kill_to_the_bit() {
    let spec = format!(
        "scheduler = {{ type = \"reduce_on_plateau\", metric = \"valid/loss\", patience = 0, min_delta = 0.2, gamma = 0.5, final_fraction = 0.2 }}\ncheckpoint = {{ every_steps = 2 }}\n{IRIS}"
    )
    .edit("epochs = 3", "epochs = 6");
    let straight = completed(&spec, &[]);
    let (_, csv, ..) = &numbers(straight.path())[0];
    let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
    let column = rows[0].iter().position(|column| *column == "learning_rate");
    let rates: Vec<f64> = rows[1..]
        .iter()
        .map(|row| row[column.unwrap()].parse().unwrap())
        .collect();
    assert_eq!(rates.len(), 6, "{csv}");
    assert!(
        rates[5] < rates[0] && rates[5] >= 0.2 * rates[0],
        "{rates:?}"
    );
    let killed = super::support::folder_with(&spec);
    for moment in ["training:14", "checkpointing:24", "validating:4"] {
        let fault = format!("*@{moment}=kill");
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
        let (code, ..) = run(killed.path(), &arguments);
        assert_eq!(code, 1, "{moment}");
    }
    goes_on(killed.path());
    assert_eq!(numbers(straight.path()), numbers(killed.path()));
}

/// Weights that a strategy puts in place of others are checkpointed like them: no number changes.
#[test]
fn strategies_work_with_gradient_checkpointing() {
    let strategies = r#"
[sweep.grid]
strategy = [
  { type = "lookahead", sync_steps = 5 },
  { type = "swa", start_epoch = 2 },
  { type = "hybrid", warmup_steps = 2, full_steps = 3, max_predict_steps = 10, confidence_threshold = 0.0 },
]
"#;
    let spec = format!("{IRIS}{strategies}");
    let kept = completed(&spec, &[]);
    let with = spec.edit("epochs = 3", "epochs = 3\ngradient_checkpointing = true");
    let computed_anew = completed(&with, &[]);
    assert_eq!(numbers(kept.path()).len(), 3);
    assert_eq!(numbers(kept.path()), numbers(computed_anew.path()));
}

#[test]
fn copies_are_in_the_forecast() {
    let forecast = |more: &str| {
        let (plan, _) = super::support::plan("spec.toml", &format!("{WHOLE}{more}\n")).unwrap();
        plan.runs[0].forecast
    };
    let weights = forecast("").parameters;
    assert_eq!(forecast("").average, 0);
    let lookahead = "[strategy]\ntype = \"lookahead\"";
    assert_eq!(forecast(lookahead).average, weights);
    let swa = "[strategy]\ntype = \"swa\"\nstart_epoch = 1";
    assert_eq!(forecast(swa).average, weights);
    let both = format!("ema = {{ decay = 0.9 }}\n{swa}");
    assert_eq!(forecast(&both).average, 2 * weights);
}

#[test]
fn averaged_weights_are_used_by_name() {
    let spec = format!(
        "strategy = {{ type = \"swa\", start_epoch = 2 }}\nobjective.metric = \"valid_swa/loss\"\n{WHOLE}"
    );
    let folder = completed(&spec, &[]);
    let out = folder.path();
    let best = exported(out, "base-s1", "best", &out.join("best"));
    let swa = exported(out, "base-s1", "swa", &out.join("swa"));
    let last = exported(out, "base-s1", "final", &out.join("final"));
    assert!(distance(&last, &swa) > 1e-3);
    // The objective is of the average, whose best epoch is one of eight.
    let report = fs::read_to_string(out.join("results/spec/report.md")).unwrap();
    assert!(report.contains("valid_swa/loss"), "{report}");
    let best_epoch =
        &read_json(&out.join("results/spec/report.json"))["trials"][0]["runs"][0]["best"];
    if best_epoch["epoch"] == 8 {
        assert_eq!(distance(&best, &swa), 0.0);
    }
}
