//! Classes of different frequency: their weights and how often they are drawn.

use std::fs;

use serde_json::Value as Json;

use super::edit::Edit;
use super::sharing::losses;
use super::support::peers::python_with;
use super::support::{folder_with, goes_on, numbers, plan, plan_in, read_json, run};

/// Rows of three classes that occur 60, 25 and 15 times.
fn rows() -> String {
    let kind = |at: usize| match at % 20 {
        0..12 => "often",
        12..17 => "less",
        _ => "rare",
    };
    let row = |at: usize| format!("{}.5,{},{}\n", at * 7 % 31, at * 11 % 17, kind(at));
    let rows: String = (0..100).map(row).collect();
    format!("a,b,kind\n{rows}")
}

const SPEC: &str = r#"
checkpoint = { every_steps = 3 }

[data]
type = "csv"
path = "rows.csv"
target = "kind"

[data.split]
seed = "run"
stratified = false

[model]
type = "mlp"
hidden = [8]

[loss]
type = "cross_entropy"
class_weights = "balanced"

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 6
batch_size = 16

[experiment]
seeds = [1, 2]
"#;

fn weights(loss: &Json) -> Vec<f64> {
    serde_json::from_value(loss["class_weights"].clone()).unwrap()
}

#[test]
fn balanced_weights_train_as_in_pytorch() {
    let folder = tempfile::tempdir().unwrap();
    let Some(python) = python_with(&["torch", "safetensors", "numpy"]) else {
        return;
    };
    python.run("balance_check.py", &[folder.path()]);
    let spec = "data = { type = 'csv', path = 'train.csv', valid_path = 'valid.csv', target = 'kind', scale = 'none', split.test = 0 }\n\
         optimizer = { type = 'adamw', learning_rate = 0.02, weight_decay = 0.01 }\n\
         train = { epochs = 20, batch_size = 30 }\n\
         backend = { precision = 'f64' }\n\
         loss = { type = 'cross_entropy', class_weights = 'balanced' }\n\
         init = { from = 'weights.safetensors', remap = [['^', 'head.']] }\n\
         model.layers = [{ type = 'linear', name = 'head' }]\n";
    fs::write(folder.path().join("spec.toml"), spec).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let expected: Json = read_json(&folder.path().join("balance.json"));
    let (planned, _) = plan_in(Some(folder.path()), "spec.toml", spec).unwrap();
    let found = weights(&serde_json::to_value(&planned.runs[0].loss).unwrap());
    let wanted: Vec<f64> = serde_json::from_value(expected["weights"].clone()).unwrap();
    assert_eq!(found, wanted);
    let found = losses(&folder.path().join("results/spec"));
    let wanted: Vec<f64> = serde_json::from_value(expected["losses"].clone()).unwrap();
    assert_eq!(found.len(), wanted.len());
    let errors = found.iter().zip(&wanted).map(|(a, b)| ((a - b) / b).abs());
    let largest = errors.fold(0.0, f64::max);
    assert!(largest < 1e-10, "{largest}");
}

/// The plan has the weights of each seed's split, and tells where they are from.
#[test]
fn each_split_has_its_weights() {
    let folder = folder_with(SPEC);
    fs::write(folder.path().join("rows.csv"), rows()).unwrap();
    let (planned, _) = plan_in(Some(folder.path()), "spec.toml", SPEC).unwrap();
    let of: Vec<Vec<f64>> = planned
        .runs
        .iter()
        .map(|run| weights(&serde_json::to_value(&run.loss).unwrap()))
        .collect();
    for (weights, run) in of.iter().zip(&planned.runs) {
        // How often each class occurs, and all of them together.
        let count = |weight: f64| run.data.num_train as f64 / (3.0 * weight);
        let counts: Vec<f64> = weights.iter().map(|weight| count(*weight)).collect();
        let near = |count: &f64| (count - count.round()).abs() < 1e-9;
        assert!(counts.iter().all(near), "{counts:?}");
        let sum: f64 = counts.iter().sum();
        assert!((sum - run.data.num_train as f64).abs() < 1e-9, "{counts:?}");
    }
    assert_ne!(of[0], of[1]);
    let (code, _, said) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    let (_, _, planned) = run(folder.path(), &["plan", "spec.toml"]);
    for text in [said, planned] {
        let expected = "`loss.class_weights` are balanced over the train split: ";
        assert!(text.contains(expected), "{text}");
    }
    let (_, table, _) = run(folder.path(), &["describe", "spec.toml"]);
    assert!(table.contains("class weights"), "{table}");
}

#[test]
fn classes_that_are_drawn_resume_exactly() {
    let spec = SPEC.edit("class_weights = \"balanced\"\n", "").edit(
        "batch_size = 16",
        "batch_size = 16\nsampler = \"balanced\"\nmicro_batch_size = 5",
    );
    let with_rows = |spec: &str| {
        let folder = folder_with(spec);
        fs::write(folder.path().join("rows.csv"), rows()).unwrap();
        folder
    };
    let (straight, stopped) = (with_rows(&spec), with_rows(&spec));
    goes_on(straight.path());
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@17"];
    run(stopped.path(), &arguments);
    goes_on(stopped.path());
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));
    let other = with_rows(&spec.edit("sampler = \"balanced\"\n", ""));
    goes_on(other.path());
    assert_ne!(numbers(straight.path()), numbers(other.path()));
}

#[test]
fn balancing_twice_is_a_warning() {
    let spec = "data.type = 'iris'\nmodel = { type = 'mlp', hidden = [4] }\n\
         optimizer = { type = 'adam', learning_rate = 1e-2 }\n\
         loss = { type = 'cross_entropy', class_weights = 'balanced' }\n\
         train = { epochs = 2, sampler = 'balanced' }\n";
    let (_, said) = plan("spec.toml", spec).unwrap();
    let expected = "`train.sampler` and `loss.class_weights` are both \"balanced\"";
    assert!(said.contains(expected), "{said}");
}
