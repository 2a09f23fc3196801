//! Layers with the weights of others: trained as in PyTorch, stored once, and resumed exactly.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::support::peers::python_with;
use super::support::{completed, folder_with, goes_on, numbers, read_json, run};

/// A language model with a recurrent layer that is applied twice, and the table of its tokens at the end.
const TIED: &str = r#"
data = { type = "copy_sequence", length = 4 }
optimizer = { type = "adamw", learning_rate = 1e-2 }
train = { epochs = 4, batch_size = 64, ema = { decay = 0.9 }, log_gradient_norms = "parameters" }

[[model.layers]]
type = "embedding"
name = "tokens"
embedding_dim = 8

[[model.layers]]
type = "gru"
name = "cell"
hidden_size = 8

[[model.layers]]
share = "cell"

[[model.layers]]
type = "linear"
tie = "tokens"
bias = false
"#;

#[test]
fn shared_weights_are_one_parameter_that_resumes_exactly() {
    let straight = completed(TIED, &[]);
    let stopped = folder_with(TIED);
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@2"];
    run(stopped.path(), &arguments);
    goes_on(stopped.path());
    let found = numbers(straight.path());
    assert_eq!(found, numbers(stopped.path()));
    // Each weight has one gradient, and training changes it.
    let metrics = found[0].2.as_object().unwrap().keys();
    let norms = metrics.filter_map(|key| key.strip_prefix("last/train/gradient_norm/"));
    let norms: Vec<&str> = norms.collect();
    assert!(norms.contains(&"tokens.weight"), "{norms:?}");
    assert!(
        norms
            .iter()
            .all(|norm| norm.starts_with("tokens.") || norm.starts_with("cell.")),
        "{norms:?}"
    );
    let (code, described, said) = run(straight.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    insta::assert_snapshot!(described);
    // The layers that it prints are the same network.
    let (_, layers, _) = run(straight.path(), &["describe", "spec.toml", "--as-layers"]);
    let head = TIED.split("[[model.layers]]").next().unwrap();
    let again = folder_with(&format!("{head}{layers}\n"));
    let (code, again, said) = run(again.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    let counts = |text: &str| text.lines().last().map(str::to_owned);
    assert_eq!(counts(&again), counts(&described));
}

#[test]
fn shared_weights_are_exported_once() {
    let folder = completed(TIED, &[]);
    let run_of = "results/spec/runs/base-s1";
    let export = |arguments: &[&str]| {
        let (code, _, said) = run(folder.path(), &[&["export"], arguments].concat());
        assert_eq!(code, 0, "{said}");
    };
    export(&[
        "weights",
        run_of,
        "--format",
        "pytorch-json",
        "--out",
        "w.json",
    ]);
    let weights = read_json(&folder.path().join("w.json"));
    let names: Vec<&String> = weights.as_object().unwrap().keys().collect();
    let cell = ["weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0"];
    let cell = cell.map(|name| format!("cell_{name}"));
    let expected: Vec<String> = ["tokens_weight".to_owned()]
        .into_iter()
        .chain(cell)
        .collect();
    assert_eq!(names, expected.iter().collect::<Vec<_>>());
    export(&["pytorch", run_of, "--out", "torch"]);
    let Some(python) = python_with(&["torch", "safetensors"]) else {
        return;
    };
    // The file compares PyTorch's output with runner's.
    let output = python.output(&folder.path().join("torch/model.py"), &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
}

/// The networks of `training_check.py`, with PyTorch's names.
const NETWORKS: [(&str, &str); 3] = [
    (
        "siamese",
        "{ type = 'slice', end = 3, name = 'left' },
         { type = 'slice', start = 3, inputs = ['input'], name = 'right' },
         { type = 'sequence', name = 'a', inputs = ['left'], layers = [{ type = 'linear', name = 'encoder', out_features = 8 }, { type = 'tanh' }] },
         { share = 'a', name = 'b', inputs = ['right'] },
         { type = 'multiply', inputs = ['a', 'b'] },
         { type = 'linear', name = 'head' }",
    ),
    (
        "recurrent",
        "{ type = 'linear', name = 'encoder', out_features = 8 },
         { type = 'sequence', name = 'step', layers = [{ type = 'linear', name = 'cell', out_features = 8 }, { type = 'tanh' }] },
         { share = 'step', repeat = 2 },
         { type = 'linear', name = 'head' }",
    ),
    (
        "tied",
        "{ type = 'linear', name = 'encoder', out_features = 4 },
         { type = 'tanh' },
         { type = 'linear', name = 'decoder', tie = 'encoder' },
         { type = 'linear', name = 'head' }",
    ),
];

/// The losses of the steps of a single run, in the folder of its experiment.
pub fn losses(folder: &Path) -> Vec<f64> {
    let bytes = fs::read(folder.join("runs/base-s1/trace/losses.f64")).unwrap();
    let values = bytes.chunks_exact(8);
    values
        .map(|value| f64::from_le_bytes(value.try_into().unwrap()))
        .collect()
}

#[test]
fn shared_weights_train_as_in_pytorch() {
    let folder = tempfile::tempdir().unwrap();
    let Some(python) = python_with(&["torch", "safetensors", "numpy"]) else {
        return;
    };
    python.run("training_check.py", &[folder.path()]);
    let mut largest = BTreeMap::new();
    for (name, layers) in NETWORKS {
        let spec = format!(
            "data = {{ type = 'csv', path = 'train.csv', valid_path = 'valid.csv', target = 'kind', scale = 'none', split.test = 0 }}\n\
             optimizer = {{ type = 'adamw', learning_rate = 0.05, weight_decay = 0.01 }}\n\
             scheduler = {{ type = 'constant' }}\n\
             train = {{ epochs = 20, batch_size = 30 }}\n\
             backend = {{ precision = 'f64' }}\n\
             init = {{ from = '{name}.safetensors', remap = [['^encoder', '{}encoder'], ['^cell', 'step.cell']] }}\n\
             model.layers = [{layers}]\n",
            if name == "siamese" { "a." } else { "" },
        );
        let files = ["train.csv", "valid.csv"];
        let difference = difference_from_pytorch(folder.path(), name, &files, &spec);
        largest.insert(name, difference);
    }
    assert!(largest.values().all(|error| *error < 1e-10), "{largest:?}");
}

/// Trains a network in a folder of its own below `folder`, which has its files, its weights and, as `NAME.json`, the
/// losses of each step in PyTorch. The largest relative difference of a loss.
pub fn difference_from_pytorch(folder: &Path, name: &str, files: &[&str], spec: &str) -> f64 {
    let place = folder.join(name);
    fs::create_dir(&place).unwrap();
    for file in files
        .iter()
        .copied()
        .chain([&*format!("{name}.safetensors")])
    {
        fs::copy(folder.join(file), place.join(file)).unwrap();
    }
    fs::write(place.join("spec.toml"), spec).unwrap();
    let (code, _, said) = run(&place, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{name}: {said}");
    let expected: Json = read_json(&folder.join(format!("{name}.json")));
    let expected = expected.as_array().unwrap().iter();
    let expected: Vec<f64> = expected.map(|loss| loss.as_f64().unwrap()).collect();
    let found = losses(&place.join("results/spec"));
    assert_eq!(found.len(), expected.len(), "{name}");
    let errors = found.iter().zip(&expected);
    errors.map(|(a, b)| ((a - b) / b).abs()).fold(0.0, f64::max)
}
