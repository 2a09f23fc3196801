//! Language models: subwords, and folders of model hubs, judged by the library transformers.

use serde_json::Value as Json;
use std::fs;

use super::edit::Edit;
use super::sharing::losses;
use super::support::peers::python_with;
use super::support::{read_json, root, run};

#[test]
fn models_of_hubs_train_and_continue_texts_as_in_transformers() {
    let Some(python) = python_with(&["torch", "transformers", "tokenizers"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    python.run("language_check.py", &[folder.path()]);
    for name in ["tied", "scaled", "mistral", "gpt2"] {
        let expected = read_json(&folder.path().join(format!("{name}.json")));
        let (code, _, said) = run(
            folder.path(),
            &[
                "import",
                "hub",
                name,
                "--text",
                "train.txt",
                "--length",
                "16",
            ],
        );
        assert_eq!(code, 0, "{said}");
        let file = format!("{name}.toml");
        let batch = format!("train.batch_size={}", expected["batch"]);
        let sets = [
            "data.valid_path=valid.txt",
            "data.split.test=0",
            "train.epochs=20",
            &batch,
            "backend.precision=f64",
            "optimizer.learning_rate=0.01",
            "optimizer.weight_decay=0.01",
            "scheduler.type=constant",
        ];
        let mut arguments = vec!["run", &file, "--quiet"];
        for set in &sets {
            arguments.extend(["--set", set]);
        }
        let (code, _, said) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{name}: {said}");
        let found = losses(&folder.path().join(format!("results/{name}")));
        let of = expected["losses"].as_array().unwrap().iter();
        let of: Vec<f64> = of.map(|loss| loss.as_f64().unwrap()).collect();
        assert_eq!(found.len(), of.len(), "{name}");
        let errors = found.iter().zip(&of).map(|(a, b)| ((a - b) / b).abs());
        let errors: Vec<f64> = errors.collect();
        let largest = |upto: usize| errors[..upto].iter().copied().fold(0.0, f64::max);
        // transformers computes rotations and norms in 32 bits, and AdamW divides small gradients by their size.
        assert!(
            largest(1) < 1e-7 && largest(10) < 1e-5 && largest(20) < 1e-3,
            "{name}: {errors:?}"
        );
        let (code, text, said) = run(
            folder.path(),
            &[
                "generate",
                &format!("results/{name}"),
                "--weights",
                "final",
                "--prompt",
                "the harbour",
                "--temperature",
                "0",
                "--max-tokens",
                "12",
                "--json",
            ],
        );
        assert_eq!(code, 0, "{said}");
        let made: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(made["tokens"], expected["tokens"], "{name}");
    }
}

/// A classifier of texts from the weights of BERT, whose padding reaches attention.
const BERT: &str = r#"
[data]
type = "csv"
path = "train.csv"
valid_path = "valid.csv"
target = "kind"
columns = [{ name = "review", type = "text" }]
tokens = { length = 12 }
split = { test = 0.0 }

[model]
type = "hub"
path = "bert"

[optimizer]
type = "adamw"
learning_rate = 0.003
weight_decay = 0.01

[scheduler]
type = "constant"

[train]
epochs = 20
batch_size = 32

[backend]
precision = "f64"
"#;

#[test]
fn bert_trains_as_in_transformers() {
    let Some(python) = python_with(&["torch", "transformers", "tokenizers"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    python.run("bert_check.py", &[folder.path()]);
    fs::write(folder.path().join("spec.toml"), BERT).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let expected = read_json(&folder.path().join("bert.json"));
    let of = expected["losses"].as_array().unwrap().iter();
    let of: Vec<f64> = of.map(|loss| loss.as_f64().unwrap()).collect();
    let found = losses(&folder.path().join("results/spec"));
    assert_eq!(found.len(), of.len());
    let errors = found.iter().zip(&of).map(|(a, b)| ((a - b) / b).abs());
    let largest = errors.fold(0.0, f64::max);
    assert!(largest < 1e-7, "{largest}");
}

#[test]
fn subwords_are_trained_on_the_train_split_and_stay_with_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let text = root().join("experiments/data/harbour.txt");
    fs::copy(text, folder.path().join("harbour.txt")).unwrap();
    let spec = "data = { type = 'text', path = 'harbour.txt', tokens = { tokenizer = 'bpe', length = 32, max_vocabulary = 400, separator = '<eos>' }, split = { valid = 0.1, order = 'time' } }\n\
        model = { type = 'llama', d_model = 16, num_layers = 1, num_heads = 2, num_kv_heads = 1, feedforward_size = 24 }\n\
        optimizer = { type = 'adamw', learning_rate = 1e-2 }\n\
        train = { epochs = 1, batch_size = 32 }\n";
    fs::write(folder.path().join("spec.toml"), spec).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    // Without the text, from what the run has.
    fs::remove_file(folder.path().join("harbour.txt")).unwrap();
    let generate = |more: &[&str]| {
        let arguments = [
            "generate",
            "results/spec",
            "--prompt",
            "The harbour",
            "--max-tokens",
            "20",
        ];
        let (code, text, said) = run(folder.path(), &[&arguments, more].concat());
        assert_eq!(code, 0, "{said}");
        text
    };
    assert_eq!(generate(&[]), generate(&["--no-cache"]));
    let (code, _, said) = run(
        folder.path(),
        &["export", "pytorch", "results/spec", "--out", "torch"],
    );
    assert_eq!(code, 0, "{said}");
    let Some(python) = python_with(&["torch", "safetensors", "tokenizers"]) else {
        return;
    };
    let output = python.output(&folder.path().join("torch/model.py"), &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
}

#[test]
fn losses_of_different_tokens_are_not_ranked() {
    let folder = tempfile::tempdir().unwrap();
    let text = "the quick brown fox jumps over the lazy dog, and the dog sleeps on.\n";
    fs::write(folder.path().join("text.txt"), text.repeat(40)).unwrap();
    let file = r#"
        [data]
        type = "text"
        path = "text.txt"
        tokens = { tokenizer = "char", length = 16 }

        [[model.layers]]
        type = "embedding"
        embedding_dim = 4

        [[model.layers]]
        type = "lstm"
        hidden_size = 4

        [[model.layers]]
        type = "linear"

        [optimizer]
        type = "adam"
        learning_rate = 1e-2

        [train]
        epochs = 1
        batch_size = 16

        [sweep.grid]
        data.tokens.tokenizer = ["char", "byte", "word"]
    "#;
    fs::write(folder.path().join("tokens.toml"), file).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "tokens.toml"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("the report will not rank the trials, since `valid/loss` is another quantity for each value of `data.tokens.tokenizer`"),
        "{said}"
    );
    let report = read_json(&folder.path().join("results/tokens/report.json"));
    let trials = report["trials"].as_array().unwrap();
    assert!(
        trials.iter().all(|trial| trial["rank"].is_null()),
        "{report}"
    );
    let (code, said, _) = run(
        folder.path(),
        &["compare", "results/tokens", "--value", "valid/perplexity"],
    );
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("there are no ranks and no verdicts"),
        "{said}"
    );
    // A search would choose the tokens with the smallest loss.
    let search = file.edit(
        "[sweep.grid]\n        data.tokens.tokenizer = [\"char\", \"byte\", \"word\"]",
        "[search]\n        type = \"tpe\"\n        num_trials = 4\n        [sweep.random.axes]\n        data.tokens.tokenizer = { type = \"choice\", values = [\"char\", \"byte\"] }",
    );
    fs::write(folder.path().join("search.toml"), search).unwrap();
    let (code, _, said) = run(folder.path(), &["check", "search.toml"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("`valid/loss` is another quantity"), "{said}");
}
