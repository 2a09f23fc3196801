//! Sums of losses over several outputs: equal to PyTorch's, resumed exactly, measured by name.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value as Json;

use super::edit::Edit;
use super::sharing::{difference_from_pytorch, losses};
use super::support::peers::python_with;
use super::support::{completed, folder_with, goes_on, numbers, read_json, run, summary};

/// A variational autoencoder of digits that also classifies them.
const VAE: &str = r#"
data = { type = "digits", scale = "min_max" }
task = { type = "autoencoding" }
loss = { type = "mse", reduction = "sum" }
optimizer = { type = "adam", learning_rate = 3e-3 }
train = { epochs = 4, batch_size = 64 }

[[model.layers]]
type = "flatten"

[[model.layers]]
type = "linear"
out_features = 64

[[model.layers]]
type = "relu"
name = "body"

[[model.layers]]
type = "linear"
name = "latent"
out_features = 16

[[model.layers]]
type = "gaussian_sample"
name = "code"

[[model.layers]]
type = "linear"
out_features = 64

[[model.layers]]
type = "relu"

[[model.layers]]
type = "linear"
out_features = 64

[[model.layers]]
type = "reshape"
shape = [1, 8, 8]

[[losses]]
type = "kl_normal"
output = "latent"
weight = 0.1

[[losses]]
name = "small"
type = "l2"
output = "body"
weight = 0.01
"#;

/// A classifier of digits with an early output and a reconstruction.
const HEADS: &str = r#"
data = { type = "digits" }
optimizer = { type = "adamw", learning_rate = 3e-3 }
train = { epochs = 4, batch_size = 64 }

[task]
output = "head"

[[model.layers]]
type = "flatten"

[[model.layers]]
type = "linear"
out_features = 32

[[model.layers]]
type = "relu"
name = "body"

[[model.layers]]
type = "linear"
name = "early"

[[model.layers]]
type = "linear"
name = "head"
inputs = ["body"]

[[model.layers]]
type = "linear"
inputs = ["body"]
out_features = 64

[[model.layers]]
type = "reshape"
name = "copy"
shape = [1, 8, 8]

[[losses]]
type = "cross_entropy"
output = "early"
label_smoothing = 0.1
weight = 0.3

[[losses]]
type = "mse"
output = "copy"
target = "items"
metrics = ["mse", "psnr"]
weight = 2.0
"#;

fn metric(metrics: &Json, name: &str) -> f64 {
    let value = metrics[name].as_f64();
    value.unwrap_or_else(|| panic!("no {name} in {metrics}"))
}

#[test]
fn the_loss_is_the_sum_of_its_terms_which_are_measured_by_name() {
    for (spec, terms) in [
        (VAE, [("latent", 0.1), ("small", 0.01)]),
        (HEADS, [("early", 0.3), ("copy", 2.0)]),
    ] {
        let folder = completed(spec, &[]);
        let metrics = &summary(folder.path(), "base-s1")["metrics"];
        for split in ["train", "valid"] {
            let of = |name: &str| metric(metrics, &format!("last/{split}/{name}"));
            let terms = terms.map(|(name, weight)| weight * of(&format!("{name}/loss")));
            assert!(terms.iter().all(|term| *term > 1e-3), "{terms:?}");
            let sum = of("main/loss") + terms.iter().sum::<f64>();
            let loss = of("loss");
            assert!((sum - loss).abs() < 1e-5 * loss, "{split}: {sum}, {loss}");
        }
    }
    let folder = completed(HEADS, &[]);
    let metrics = &summary(folder.path(), "base-s1")["metrics"];
    assert!(metric(metrics, "valid/accuracy") > 0.85);
    assert!(metric(metrics, "valid/early/accuracy") > 0.8);
    // Digits are scaled to a standard deviation of 1.
    assert!(metric(metrics, "valid/copy/mse") < 0.5);
    assert_eq!(
        metric(metrics, "valid/copy/mse") as f32,
        metric(metrics, "valid/copy/loss") as f32
    );
    assert!(metrics.get("valid/copy/mae").is_none());
}

#[test]
fn a_sum_of_losses_resumes_exactly() {
    for spec in [VAE, HEADS] {
        let spec = format!("checkpoint = {{ every_steps = 5 }}\n{spec}");
        let spec = spec.edit(
            "batch_size = 64 }",
            "batch_size = 64, micro_batch_size = 48, ema = { decay = 0.9 } }",
        );
        let straight = completed(&spec, &[]);
        let stopped = folder_with(&spec);
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@57"];
        run(stopped.path(), &arguments);
        goes_on(stopped.path());
        let found = numbers(straight.path());
        assert_eq!(found, numbers(stopped.path()));
        let metrics = found[0].2.as_object().unwrap();
        assert!(metrics.contains_key("valid_ema/main/loss"), "{metrics:?}");
    }
}

/// The losses and weights of terms that weigh nothing are those of a file without them.
#[test]
fn terms_of_no_weight_change_no_number() {
    let losses_of = |spec: &str| {
        let folder = completed(spec, &[]);
        losses(&folder.path().join("results/spec"))
    };
    let alone = VAE.split("[[losses]]").next().unwrap();
    let weightless = VAE
        .edit("weight = 0.1\n", "weight = 0.0\n")
        .edit("weight = 0.01", "weight = 0.0");
    assert_eq!(losses_of(alone), losses_of(&weightless));
    assert_ne!(losses_of(alone), losses_of(VAE));
}

/// An output that is named is the same as one that is last.
#[test]
fn an_output_may_be_any_layer() {
    let layers = "[[model.layers]]\ntype = 'linear'\nname = 'early'\n\n[[model.layers]]\ntype = 'linear'\nname = 'head'\ninputs = ['body']\n";
    let spec = |output: &str, layers: &str| {
        format!(
            "data.type = 'iris'\noptimizer = {{ type = 'adam', learning_rate = 1e-2 }}\ntrain.epochs = 3\n{output}\n\
             [[model.layers]]\ntype = 'linear'\nout_features = 8\nname = 'body'\n\n{layers}\n\
             [[losses]]\ntype = 'cross_entropy'\noutput = 'early'\n"
        )
    };
    let named = spec("task.output = 'head'", layers);
    let last = spec("", layers);
    let (named, last) = (completed(&named, &[]), completed(&last, &[]));
    assert_eq!(numbers(named.path()), numbers(last.path()));
    // Both outputs are swapped.
    let other = spec("task.output = 'early'", layers).edit(
        "'cross_entropy'\noutput = 'early'",
        "'cross_entropy'\noutput = 'head'",
    );
    let other = completed(&other, &[]);
    let metrics = &summary(other.path(), "base-s1")["metrics"];
    assert!(metric(metrics, "valid/head/accuracy") >= 0.0);
}

#[test]
fn terms_are_watched_ranked_and_swept() {
    let more = "objective.metric = 'valid/early/accuracy'\nscheduler = { type = 'reduce_on_plateau', metric = 'train/copy/mse', patience = 1 }\n\
                sweep.grid = { 'losses.copy.weight' = [0.5, 2.0] }\n";
    let spec = format!("{more}{HEADS}").edit(
        "batch_size = 64 }",
        "batch_size = 64, early_stopping = { patience = 3, metric = 'valid/main/loss' } }",
    );
    let spec = spec.edit(
        "type = \"mse\"\noutput",
        "name = \"copy\"\ntype = \"mse\"\noutput",
    );
    let folder = completed(&spec, &[]);
    let listed = |arguments: &[&str]| {
        let (code, text, said) = run(folder.path(), arguments);
        assert_eq!(code, 0, "{said}");
        text
    };
    let table = listed(&[
        "list",
        "--columns",
        "run,valid/early/accuracy,valid/copy/mse",
        "--filter",
        "valid/copy/mse < 10",
    ]);
    assert_eq!(table.lines().count(), 3, "{table}");
    let compared = listed(&["compare", "results/spec", "--value", "valid/copy/psnr"]);
    assert!(compared.contains("valid/copy/psnr"), "{compared}");
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(report.contains("Highest ranked"), "{report}");
    assert!(report.contains("valid/early/accuracy"), "{report}");
    // The sum is another function in each trial.
    assert!(report.contains("valid/loss †"), "{report}");
    assert!(!report.contains("valid/copy/loss †"), "{report}");
}

#[test]
fn sums_of_losses_train_as_in_pytorch() {
    let folder = tempfile::tempdir().unwrap();
    let Some(python) = python_with(&["torch", "safetensors", "numpy"]) else {
        return;
    };
    python.run("losses_check.py", &[folder.path()]);
    let networks = [
        (
            "vae",
            "task.type = 'autoencoding'\n\
             loss = { type = 'mse', reduction = 'sum' }\n\
             losses = [{ type = 'kl_normal', output = 'latent', weight = 0.3 }]\n\
             model.layers = [
                 { type = 'linear', name = 'encoder', out_features = 8 }, { type = 'tanh' },
                 { type = 'linear', name = 'latent', out_features = 6 },
                 { type = 'slice', axis = -1, end = 3 },
                 { type = 'linear', name = 'decoder', out_features = 8 }, { type = 'tanh' },
                 { type = 'linear', name = 'copy' },
             ]\n",
        ),
        (
            "heads",
            "task.output = 'head'\n\
             losses = [
                 { type = 'smooth_l1', beta = 0.5, output = 'copy', target = 'items', weight = 0.5 },
                 { type = 'cross_entropy', label_smoothing = 0.1, output = 'early', weight = 0.25 },
                 { type = 'l1', output = 'small', weight = 0.1 },
             ]\n\
             model.layers = [
                 { type = 'linear', name = 'body', out_features = 8 }, { type = 'tanh', name = 'small' },
                 { type = 'linear', name = 'copy' },
                 { type = 'linear', name = 'early', inputs = ['small'] },
                 { type = 'linear', name = 'head', inputs = ['small'] },
             ]\n",
        ),
        (
            "tasks",
            "task.output = 'head'\n\
             losses = [
                 { type = 'mse', output = 'numbers', target = ['m', 'n'], weight = 0.5 },
                 { type = 'cross_entropy', output = 'side', target = 'side', weight = 2.0 },
             ]\n\
             model.layers = [
                 { type = 'linear', name = 'body', out_features = 8 }, { type = 'tanh', name = 'middle' },
                 { type = 'linear', name = 'numbers' },
                 { type = 'linear', name = 'side', inputs = ['middle'] },
                 { type = 'linear', name = 'head', inputs = ['middle'] },
             ]\n",
        ),
    ];
    for (name, tables) in networks {
        let prefix = if name == "tasks" { "tasks" } else { "train" };
        let spec = format!(
            "data = {{ type = 'csv', path = '{prefix}.csv', valid_path = '{prefix}_valid.csv', target = 'kind', scale = 'none', split.test = 0 }}\n\
             optimizer = {{ type = 'adamw', learning_rate = 0.02, weight_decay = 0.01 }}\n\
             scheduler = {{ type = 'constant' }}\n\
             train = {{ epochs = 20, batch_size = 30 }}\n\
             backend = {{ precision = 'f64' }}\n\
             init = {{ from = '{name}.safetensors' }}\n\
             {tables}"
        );
        let files = [format!("{prefix}.csv"), format!("{prefix}_valid.csv")];
        let files = files.each_ref().map(String::as_str);
        let largest = difference_from_pytorch(folder.path(), name, &files, &spec);
        assert!(largest < 1e-10, "{name}: {largest}");
    }
}

/// Rows with numbers `a` and `b`, and with targets that follow from them: classes, a number, other classes.
fn rows(num: usize) -> String {
    let mut text = String::from("a,b,kind,age,side\n");
    for at in 0..num {
        let (a, b) = ((at as f64 * 0.77).sin(), (at as f64 * 1.31).cos());
        let kind = ["x", "y", "z"][((a + 1.0) * 1.4999) as usize];
        let side = if b > 0.1 { "left" } else { "right" };
        text += &format!(
            "{a:.4},{b:.4},{kind},{:.3},{side}\n",
            40.0 + 20.0 * a - 5.0 * b
        );
    }
    text
}

const TASKS: &str = r#"
data = { type = "csv", path = "rows.csv", target = "kind", target_scale = "standardize" }
optimizer = { type = "adam", learning_rate = 2e-2 }
train = { epochs = 20, batch_size = 32 }
predictions = { splits = ["valid"] }

[task]
output = "head"

[[model.layers]]
type = "linear"
out_features = 16

[[model.layers]]
type = "tanh"
name = "body"

[[model.layers]]
type = "linear"
name = "age"

[[model.layers]]
type = "linear"
name = "side"
inputs = ["body"]

[[model.layers]]
type = "linear"
name = "head"
inputs = ["body"]

[[losses]]
type = "mse"
output = "age"
target = "age"
metrics = ["r2", "target_mae"]

[[losses]]
type = "cross_entropy"
output = "side"
target = "side"
weight = 0.5
"#;

fn folder_of_tasks(spec: &str) -> tempfile::TempDir {
    let folder = folder_with(spec);
    fs::write(folder.path().join("rows.csv"), rows(300)).unwrap();
    folder
}

#[test]
fn targets_of_other_columns_are_learned_by_their_outputs() {
    let folder = folder_of_tasks(TASKS);
    goes_on(folder.path());
    let metrics = &summary(folder.path(), "base-s1")["metrics"];
    let of = |name: &str| metric(metrics, name);
    assert!(of("valid/accuracy") > 0.9, "{metrics}");
    assert!(of("valid/age/r2") > 0.95, "{metrics}");
    // In years: the number is scaled for training.
    assert!(of("valid/age/target_mae") < 3.0, "{metrics}");
    assert!(
        of("valid/age/target_mae") > 10.0 * of("valid/age/loss"),
        "{metrics}"
    );
    assert!(of("valid/side/accuracy") > 0.9, "{metrics}");
    let (code, described, said) = run(folder.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    // Targets are not features.
    assert!(described.contains("[2]"), "{described}");
    // The same items as new data, measured the same.
    let valid = of("valid/age/target_mae");
    let run_of = "results/spec/runs/base-s1";
    let evaluate = |arguments: &[&str]| {
        let all = [&["evaluate", run_of, "--json"], arguments].concat();
        let (code, text, said) = run(folder.path(), &all);
        assert_eq!(code, 0, "{said}");
        let found: Json = serde_json::from_str(&text).unwrap();
        let found = found["metrics"].as_array().unwrap().clone();
        let named = found.into_iter();
        let mut named = named.filter(|measure| measure["name"] == "age/target_mae");
        named.next().unwrap()["value"].as_f64().unwrap()
    };
    assert!((evaluate(&["--split", "valid"]) - valid).abs() < 1e-4 * valid);
    assert!(evaluate(&["--data", "rows.csv"]) > 0.0);
    // Predictions need no targets.
    fs::write(folder.path().join("new.csv"), "a,b\n0.5,0.5\n").unwrap();
    let (code, text, said) = run(folder.path(), &["predict", run_of, "--data", "new.csv"]);
    assert_eq!(code, 0, "{said}");
    let (head, row) = text.trim_end().split_once('\n').unwrap();
    let found: BTreeMap<&str, &str> = head.split(',').zip(row.split(',')).collect();
    // In years.
    let age: f64 = found["age"].parse().unwrap();
    assert!((age - (40.0 + 10.0 - 2.5)).abs() < 5.0, "{text}");
    assert_eq!(found["side"], "left", "{text}");
    let sure: f64 = found["side_probability"].parse().unwrap();
    let left: f64 = found["side_probability_left"].parse().unwrap();
    assert!(sure == left && left > 0.5, "{text}");
    assert!(["x", "y", "z"].contains(&found["prediction"]), "{text}");
    let arguments = ["predict", run_of, "--data", "new.csv", "--out", "new.jsonl"];
    let (code, _, said) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    let line = read_json(&folder.path().join("new.jsonl"));
    let outputs = &line["outputs"];
    assert_eq!(outputs["side"]["prediction"], "left", "{line}");
    assert_eq!(
        outputs["age"]["prediction"]["age"].as_f64(),
        Some(age),
        "{line}"
    );
    // Those of the valid split, which the run wrote.
    let written = "results/spec/runs/base-s1/predictions/valid.csv";
    let written = fs::read_to_string(folder.path().join(written)).unwrap();
    let (code, again, said) = run(folder.path(), &["predict", run_of, "--split", "valid"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(written, again);
    let arguments = ["export", "onnx", run_of, "--out", "tasks.onnx"];
    let (code, _, said) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("not `age`, `side`"), "{said}");
    let rows = rows(20);
    let first = |line: &str| line.rsplit_once(',').map(|(first, _)| format!("{first}\n"));
    let lacking: String = rows.lines().filter_map(first).collect();
    fs::write(folder.path().join("lacking.csv"), lacking).unwrap();
    let (code, _, said) = run(
        folder.path(),
        &["evaluate", run_of, "--data", "lacking.csv"],
    );
    assert_eq!(code, 2);
    assert!(said.contains("`side`"), "{said}");
}

#[test]
fn further_targets_resume_exactly_wherever_they_are_kept() {
    let straight = folder_of_tasks(TASKS);
    goes_on(straight.path());
    let found = numbers(straight.path());
    let stopped = folder_of_tasks(TASKS);
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@57"];
    run(stopped.path(), &arguments);
    goes_on(stopped.path());
    assert_eq!(found, numbers(stopped.path()));
    // Too little memory to keep the items: they are served from the host.
    let served = folder_of_tasks(&format!("memory.limit = '60MiB'\n{TASKS}"));
    goes_on(served.path());
    assert_eq!(found, numbers(served.path()));
}

/// Another content of a target column is other data.
#[test]
fn further_targets_are_in_the_identity_of_a_run() {
    let folder = folder_of_tasks(TASKS);
    goes_on(folder.path());
    let text = rows(300).edit_first(",left\n", ",right\n");
    fs::write(folder.path().join("rows.csv"), text).unwrap();
    let (code, plan, said) = run(folder.path(), &["plan", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    let first = summary(folder.path(), "base-s1")["fingerprint"].clone();
    goes_on(folder.path());
    assert_ne!(
        first,
        summary(folder.path(), "base-s1")["fingerprint"],
        "{plan}"
    );
}
