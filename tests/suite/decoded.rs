//! Python's `decode` gives what `runner predict` writes, from raw rows on, for every task and loss whose numbers it turns.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::support::peers::python_with;
use super::support::{npy_of, run};

/// Rows with a number that is missing now and then, a category, and targets of very different sizes.
fn rows() -> String {
    let row = |at: usize| {
        let a = (at * 37 % 71) as f64 / 10.0;
        let size = if at % 11 == 3 {
            String::new()
        } else {
            a.to_string()
        };
        let color = ["red", "green", "blue"][at % 3];
        let price = 250_000.0 + 40_000.0 * a - 9_000.0 * (at % 3) as f64;
        let weight = 0.001 * (a + (at % 3) as f64);
        let count = at * 37 % 71 / 10;
        format!("{size},{color},{price},{weight},{count}\n")
    };
    let rows: String = (0..80).map(row).collect();
    format!("size,color,price,weight,count\n{rows}")
}

/// The name of a case, its `[data]`, and further tables.
const CASES: &[(&str, &str, &str)] = &[
    (
        "mse",
        "target = ['price', 'weight'], ignore = ['count'], target_scale = 'standardize'",
        "",
    ),
    (
        "huber",
        "target = 'price', ignore = ['weight', 'count'], target_scale = 'min_max'",
        "loss = { type = 'huber' }",
    ),
    (
        "unscaled",
        "target = 'weight', ignore = ['price', 'count']",
        "loss = { type = 'mae' }",
    ),
    (
        "gaussian",
        "target = ['price', 'weight'], ignore = ['count'], target_scale = 'standardize'",
        "loss = { type = 'gaussian_nll' }",
    ),
    (
        "poisson",
        "target = 'count', ignore = ['price', 'weight'], columns = [{ name = 'count', type = 'number' }]",
        "loss = { type = 'poisson_nll' }",
    ),
    (
        "rates",
        "target = 'count', ignore = ['price', 'weight'], columns = [{ name = 'count', type = 'number' }]",
        "loss = { type = 'poisson_nll', log_input = false }",
    ),
    (
        "quantile",
        "target = 'price', ignore = ['weight', 'count'], target_scale = 'standardize'",
        "loss = { type = 'quantile', quantile = 0.9 }",
    ),
    (
        "logarithm",
        "target = 'price', ignore = ['weight', 'count'], target_transform = 'log', target_scale = 'standardize'",
        "",
    ),
    (
        "logarithm_of_counts",
        "target = 'count', ignore = ['price', 'weight'], columns = [{ name = 'count', type = 'number' }], target_transform = 'log1p'",
        "",
    ),
    (
        "quantiles",
        "target = ['price', 'weight'], ignore = ['count'], target_transform = 'quantile'",
        "",
    ),
    (
        "classes",
        "target = 'color', ignore = ['price', 'weight', 'count']",
        "",
    ),
    (
        "rows_themselves",
        "ignore = ['count']",
        "task = { type = 'autoencoding' }",
    ),
    (
        "rows_by_number",
        "ignore = ['count'], columns = [{ name = 'color', encode = 'ordinal' }]",
        "task = { type = 'autoencoding' }",
    ),
    (
        "scores",
        "target = 'color', ignore = ['price', 'weight', 'count']",
        "loss = { type = 'multi_margin' }",
    ),
];

fn predicted(case: &Path, data: &str) {
    let (code, _, said) = run(case, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let arguments = [
        "predict",
        "results/spec",
        "--data",
        data,
        "--out",
        "predictions.jsonl",
    ];
    let (code, _, said) = run(case, &arguments);
    assert_eq!(code, 0, "{said}");
    for arguments in [
        ["export", "pytorch", "results/spec", "--out", "module"].as_slice(),
        &[
            "export",
            "onnx",
            "results/spec",
            "--with-transforms",
            "--out",
            "model.onnx",
        ],
    ] {
        let (code, _, said) = run(case, arguments);
        assert_eq!(code, 0, "{said}");
    }
}

/// The largest number that is predicted.
fn largest(case: &Path) -> f64 {
    let predictions = fs::read_to_string(case.join("predictions.jsonl")).unwrap();
    let values = predictions.lines().flat_map(|line| {
        let line: Json = serde_json::from_str(line).unwrap();
        line["values"].as_array().unwrap().clone()
    });
    values
        .filter_map(|value| value.as_f64())
        .fold(0.0, f64::max)
}

const REST: &str = "model = { type = 'mlp', hidden = [8] }\n\
    optimizer = { type = 'adam', learning_rate = 1e-2 }\ntrain = { epochs = 2, batch_size = 16 }\n";

const FLOWERS: [[f32; 4]; 3] = [
    [5.1, 3.5, 1.4, 0.2],
    [6.0, 2.9, 4.5, 1.5],
    [6.3, 3.3, 6.0, 2.5],
];

#[test]
fn decoded_outputs_are_the_predictions_of_runner() {
    let place = tempfile::tempdir().unwrap();
    for (name, data, more) in CASES {
        let case = place.path().join(name);
        fs::create_dir(&case).unwrap();
        fs::write(case.join("rows.csv"), rows()).unwrap();
        let spec = format!(
            "data = {{ type = 'csv', path = 'rows.csv', missing = 'mean', {data} }}\n{more}\n{REST}"
        );
        fs::write(case.join("spec.toml"), spec).unwrap();
        predicted(&case, "rows.csv");
    }
    let case = place.path().join("items");
    fs::create_dir(&case).unwrap();
    let values: Vec<f32> = (0..120_u8)
        .map(|at| f32::from(at * 7 % 50) * [1.0, 100.0, 0.01][usize::from(at % 3)])
        .collect();
    let items: Vec<[f32; 3]> = values
        .chunks(3)
        .map(|item| [item[0], item[1], item[2]])
        .collect();
    fs::write(case.join("items.npy"), npy_of(&items)).unwrap();
    let spec = format!(
        "data = {{ type = 'npy', path = 'items.npy' }}\ntask = {{ type = 'autoencoding' }}\n{REST}"
    );
    fs::write(case.join("spec.toml"), spec).unwrap();
    predicted(&case, "items.npy");
    assert!(largest(&case) > 1000.0);
    // A network that learned little predicts the mean of each column: prices of hundreds of thousands.
    assert!(largest(&place.path().join("rows_themselves")) > 1e5);
    // Bytes are predicted as bytes.
    let case = place.path().join("bytes");
    fs::create_dir(&case).unwrap();
    let head = "{'descr': '|u1', 'fortran_order': False, 'shape': (20, 1, 2, 3), }";
    let head = format!("{head:<117}\n");
    let bytes: Vec<u8> = (0..120_u16).map(|at| (100 + at * 7 % 50) as u8).collect();
    let length = (head.len() as u16).to_le_bytes();
    let start = b"\x93NUMPY\x01\x00".as_slice();
    let file = [start, &length, head.as_bytes(), &bytes].concat();
    fs::write(case.join("items.npy"), file).unwrap();
    let spec = "data = { type = 'npy', path = 'items.npy', scale = 'none' }\n\
        task = { type = 'autoencoding' }\nmodel.layers = [{ type = 'conv2d', kernel_size = 1 }]\n\
        optimizer = { type = 'adam', learning_rate = 1e-2 }\ntrain = { epochs = 40, batch_size = 16 }\n";
    fs::write(case.join("spec.toml"), spec).unwrap();
    predicted(&case, "items.npy");
    assert!(largest(&case) > 50.0);
    // Embedded data is kept in bytes, and new data of such a run is in centimetres.
    let case = place.path().join("iris");
    fs::create_dir(&case).unwrap();
    fs::write(case.join("items.npy"), npy_of(&FLOWERS)).unwrap();
    fs::write(
        case.join("spec.toml"),
        format!("data = {{ type = 'iris' }}\n{REST}"),
    )
    .unwrap();
    predicted(&case, "items.npy");
    let source = fs::read_to_string(place.path().join("mse/module/model.py")).unwrap();
    assert!(
        source.contains("numbers in the units of the targets"),
        "{source}"
    );
    let Some(python) = python_with(&["torch", "safetensors", "onnx", "onnxruntime"]) else {
        return;
    };
    python.run("decoded_check.py", &[place.path()]);
}
