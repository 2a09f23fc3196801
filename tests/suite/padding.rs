//! Short series: in the loss and the metrics of an autoencoder, and where new data is predicted from.

use std::fs;
use std::path::Path;

use super::support::peers::python_with;
use super::support::{folder_with, run};

/// As PyTorch computes from the real positions alone.
#[test]
fn padding_does_not_count_in_the_loss_of_an_autoencoder() {
    if let Some(python) = python_with(&["torch", "numpy"]) {
        let program = Path::new(env!("CARGO_BIN_EXE_runner"));
        python.run("padding_check.py", &[program]);
    }
}

const SERIES: &str = r#"
[data]
type = "json_lines"
path = "series.jsonl"
target = "rising"
scale = "none"
missing = "zero"

[[model.layers]]
type = "padding_mask"
name = "real"

[[model.layers]]
type = "reshape"
shape = [6, 1]
inputs = ["input"]

[[model.layers]]
type = "gru"
hidden_size = 4
output = "last"
mask = "real"

[[model.layers]]
type = "linear"

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 2
batch_size = 8
"#;

/// The first numbers of a series of 6.
fn series(number: usize, length: usize) -> Vec<f64> {
    let value = |at: usize| 0.5 + ((number * 7 + at * 3) % 11) as f64 / 4.0;
    (0..length).map(value).collect()
}

/// A series of new data is as short as one of the training may be.
#[test]
fn short_series_are_predicted_as_padded_ones() {
    short_ones_are_predicted(|values| format!("{values:?}"));
}

/// Integers are numbers like others.
#[test]
fn short_series_of_integers_are_predicted_as_padded_ones() {
    short_ones_are_predicted(|values| {
        let whole: Vec<i64> = values.iter().map(|value| (value * 4.0) as i64).collect();
        format!("{whole:?}")
    });
}

fn short_ones_are_predicted(shown: impl Fn(&[f64]) -> String) {
    let folder = folder_with(SERIES);
    let line = |values: &[f64], class: usize| {
        format!(
            "{{\"values\": {}, \"rising\": \"{class}\"}}\n",
            shown(values)
        )
    };
    let all = (0..40).map(|at| line(&series(at, 1 + at % 6), at % 2));
    fs::write(folder.path().join("series.jsonl"), all.collect::<String>()).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let predicted = |name: &str, width: usize| {
        let rows = (0..12).map(|at| {
            let mut values = series(at + 50, 1 + at % 6);
            values.resize(width.max(values.len()), 0.0);
            line(&values, 0)
        });
        fs::write(folder.path().join(name), rows.collect::<String>()).unwrap();
        let arguments = ["predict", "results/spec", "--data", name, "--out", "-"];
        let (code, found, said) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{said}");
        found
    };
    assert_eq!(predicted("short.jsonl", 0), predicted("whole.jsonl", 6));
    // Longer ones do not fit the network.
    let long = line(&series(3, 7), 0);
    fs::write(folder.path().join("long.jsonl"), long).unwrap();
    let arguments = ["predict", "results/spec", "--data", "long.jsonl"];
    let (code, _, said) = run(folder.path(), &arguments);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("a list of shape [7], where the run was trained on [6]"),
        "{said}"
    );
}

const TOKENS: &str = r#"
[data]
type = "json_lines"
path = "tokens.jsonl"
target = "next"
columns = [{ name = "tokens", type = "category" }, { name = "next", type = "category" }]

[[model.layers]]
type = "padding_mask"
name = "real"

[[model.layers]]
type = "embedding"
embedding_dim = 8
inputs = ["input"]

[[model.layers]]
type = "gru"
hidden_size = 8
mask = "real"

[[model.layers]]
type = "linear"

[optimizer]
type = "adam"
learning_rate = 5e-2

[train]
epochs = 12
batch_size = 8

[predictions]
splits = ["valid"]
"#;

/// The next token of a short item is that after its last real one, not that after its padding.
#[test]
fn the_next_token_follows_the_last_one_that_is_real() {
    let folder = folder_with(TOKENS);
    let line = |first: usize, length: usize| {
        let tokens: Vec<usize> = (first..first + length).map(|at| at % 5).collect();
        let next: Vec<usize> = tokens.iter().map(|token| (token + 1) % 5).collect();
        format!("{{\"tokens\": {tokens:?}, \"next\": {next:?}}}\n")
    };
    let all: String = (0..80).map(|at| line(at % 5, 1 + at % 7)).collect();
    fs::write(folder.path().join("tokens.jsonl"), all).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let rows = "{\"tokens\": [3]}\n{\"tokens\": [0, 1]}\n{\"tokens\": [1, 2, 3, 4, 0, 1, 2]}\n";
    fs::write(folder.path().join("new.jsonl"), rows).unwrap();
    let arguments = [
        "predict",
        "results/spec",
        "--data",
        "new.jsonl",
        "--out",
        "-",
        "--format",
        "jsonl",
    ];
    let (code, found, said) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    let tokens: Vec<String> = found
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|row| row["token"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(tokens, ["4", "2", "3"], "{found}");
    // Those at the end of the run are the same.
    let valid = fs::read_to_string(
        folder
            .path()
            .join("results/spec/runs/base-s1/predictions/valid.csv"),
    );
    let valid = valid.unwrap();
    let ends: std::collections::BTreeSet<&str> = valid
        .lines()
        .skip(1)
        .filter_map(|row| row.split(',').nth(1))
        .collect();
    assert!(ends.len() > 2, "{valid}");
}

/// One network computed for two sequences has two masks.
#[test]
fn a_shared_layer_masks_each_sequence_by_its_own_mask() {
    let spec = |mask: &str| {
        format!(
            r#"
data = {{ type = "brackets" }}
optimizer = {{ type = "adam", learning_rate = 1e-3 }}
train = {{ epochs = 1 }}
model.layers = [
  {{ type = "padding_mask", padding = 0, name = "real" }},
  {{ type = "embedding", embedding_dim = 4, inputs = ["input"], name = "tokens" }},
  {{ type = "slice", end = 8, inputs = ["real"], name = "real_begin" }},
  {{ type = "slice", start = 8, inputs = ["real"], name = "real_end" }},
  {{ type = "slice", end = 8, inputs = ["tokens"], name = "begin" }},
  {{ type = "slice", start = 8, end = 16, inputs = ["tokens"], name = "end" }},
  {{ type = "lstm", hidden_size = 4, output = "last", mask = "real_begin", inputs = ["begin"], name = "first" }},
  {{ share = "first", inputs = ["end"], {mask} name = "second" }},
  {{ type = "add", inputs = ["first", "second"] }},
  {{ type = "linear" }},
]
"#
        )
    };
    let folder = folder_with(&spec("mask = \"real_end\","));
    let (code, said, wrong) = run(folder.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{wrong}");
    assert!(said.contains("end, real_end"), "{said}");
    let folder = folder_with(&spec(""));
    let (code, _, wrong) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 2, "{wrong}");
    assert!(wrong.contains("is of another sequence"), "{wrong}");
}
