//! Transforms of numeric targets: metrics and predictions as NumPy (and scikit-learn, if installed) computes them, and
//! targets that have none.

use std::fs;
use std::path::Path;

use super::support::peers::python_with;
use super::support::{folder_with, run};

/// Prices that vary by factors, all different, and counts with zeros.
fn rows(from: usize, num: usize) -> String {
    let row = |at: usize| {
        let (a, b) = (at * 37 % 101, at * 53 % 67);
        let price = (f64::from(a as u32) / 9.0).exp() + f64::from(at as u32) / 64.0 + 0.25;
        let count = (a * b) % 23;
        format!("{a},{b},{price},{count}.0\n")
    };
    let rows: String = (from..from + num).map(row).collect();
    format!("a,b,price,count\n{rows}")
}

/// The name of a case, and its keys in `[data]`.
const CASES: &[(&str, &str)] = &[
    (
        "log",
        "target = 'price', ignore = ['count'], target_transform = 'log', target_scale = 'standardize'",
    ),
    (
        "log1p",
        "target = 'count', ignore = ['price'], target_transform = 'log1p'",
    ),
    (
        "quantile",
        "target = ['price', 'count'], target_transform = 'quantile'",
    ),
    (
        "quantile_scaled",
        "target = 'price', ignore = ['count'], target_transform = 'quantile', target_scale = 'min_max'",
    ),
];

fn spec(data: &str) -> String {
    format!(
        "data = {{ type = 'csv', path = 'train.csv', valid_path = 'valid.csv', scale = 'standardize', \
         columns = [{{ name = 'count', type = 'number' }}], {data} }}\n\
         task = {{ metrics = ['mae', 'target_mae', 'target_rmse', 'mape', 'r2', 'rmse'] }}\n\
         model = {{ type = 'mlp', hidden = [16] }}\n\
         optimizer = {{ type = 'adam', learning_rate = 1e-2 }}\n\
         train = {{ epochs = 4, batch_size = 16 }}\n"
    )
}

#[test]
fn metrics_and_predictions_are_in_units_of_the_targets() {
    let place = tempfile::tempdir().unwrap();
    for (name, data) in CASES {
        let case = place.path().join(name);
        fs::create_dir(&case).unwrap();
        fs::write(case.join("train.csv"), rows(0, 300)).unwrap();
        fs::write(case.join("valid.csv"), rows(300, 40)).unwrap();
        fs::write(case.join("spec.toml"), spec(data)).unwrap();
        let (code, _, said) = run(&case, &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{said}");
        let file = ["--data", "valid.csv", "--out", "predictions.jsonl"];
        let (code, _, said) = run(
            &case,
            &[&["predict", "results/spec"], file.as_slice()].concat(),
        );
        assert_eq!(code, 0, "{said}");
        let of_file = ["evaluate", "results/spec", "--data", "valid.csv", "--json"];
        let (code, found, said) = run(&case, &of_file);
        assert_eq!(code, 0, "{said}");
        fs::write(case.join("evaluated.json"), found).unwrap();
    }
    let Some(python) = python_with(&["numpy"]) else {
        return;
    };
    println!("{}", python.run("targets_check.py", &[place.path()]));
}

#[test]
fn new_targets_without_a_transform_are_refused_at_their_row() {
    let (_, data) = CASES[0];
    let folder = folder_with(&spec(data));
    fs::write(folder.path().join("train.csv"), rows(0, 60)).unwrap();
    fs::write(folder.path().join("valid.csv"), rows(60, 20)).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let new = "a,b,price,count\n1,2,3.5,1.0\n2,3,0,1.0\n";
    fs::write(folder.path().join("new.csv"), new).unwrap();
    let (code, _, said) = run(
        folder.path(),
        &["evaluate", "results/spec", "--data", "new.csv"],
    );
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("the target `price` is 0, which has no logarithm"),
        "{said}"
    );
    // Predictions need no targets.
    let (code, _, said) = run(
        folder.path(),
        &["predict", "results/spec", "--data", "new.csv"],
    );
    assert_eq!(code, 0, "{said}");
}

/// A single column of 0 and 1 whose type is `label`, as PyTorch and the definitions of the metrics have it.
#[test]
fn a_single_label_is_one_of_multi_label() {
    if let Some(python) = python_with(&["torch", "onnxruntime", "numpy"]) {
        let program = Path::new(env!("CARGO_BIN_EXE_runner"));
        python.run("label_check.py", &[program]);
    }
}
