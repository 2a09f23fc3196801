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
    let folder = folder_with(SERIES);
    let line = |values: &[f64], class: usize| {
        format!("{{\"values\": {values:?}, \"rising\": \"{class}\"}}\n")
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
