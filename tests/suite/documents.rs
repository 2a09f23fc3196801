//! Documents in items of running text that are kept apart: trained as in PyTorch, independent of their neighbors,
//! continued and evaluated alike, resumed, refused where they would be mixed.

use std::fs;
use std::path::Path;

use burn_runner::data::Values;
use burn_runner::model::{Generation, Model, Options};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value as Json;

use super::edit::Edit;
use super::sharing::losses;
use super::support::peers::python_with;
use super::support::{folder_with, goes_on, numbers, read_json, root, run};

const HUB: &str = r#"
[data]
type = "json_lines"
path = "train.jsonl"
valid_path = "valid.jsonl"
columns = [{ name = "text", type = "text" }]
tokens = { path = "NAME/tokenizer.json", length = 24, separator = "<|endoftext|>", document_mask = true, document_positions = "POSITIONS" }
split = { test = 0.0 }

[model]
type = "hub"
path = "NAME"

[optimizer]
type = "sgd"
learning_rate = 0.05
momentum = 0.9

[scheduler]
type = "constant"

[train]
epochs = 20
batch_size = 1000

[backend]
precision = "PRECISION"
"#;

#[test]
fn documents_train_as_with_a_mask_of_blocks_in_pytorch() {
    let Some(python) = python_with(&["torch", "transformers", "tokenizers"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    python.run("documents_check.py", &[folder.path()]);
    for name in ["llama", "gpt2"] {
        let expected = read_json(&folder.path().join(format!("{name}.json")));
        assert!(expected["documents"].as_u64().unwrap() > 3);
        for positions in ["restart", "continue"] {
            let of = expected[positions].as_array().unwrap().iter();
            let of: Vec<f64> = of.map(|loss| loss.as_f64().unwrap()).collect();
            // Runner's kernels compute in 32 bits, Burn's in 64.
            for (precision, bound) in [("f64", 1e-12), ("f32", 1e-5)] {
                let spec = HUB.edit("NAME", name).edit("POSITIONS", positions);
                let spec = spec.edit("PRECISION", precision);
                let spec = spec.edit("1000", &expected["batch"].to_string());
                let file = format!("{name}-{positions}-{precision}");
                fs::write(folder.path().join(format!("{file}.toml")), spec).unwrap();
                let (code, _, said) =
                    run(folder.path(), &["run", &format!("{file}.toml"), "--quiet"]);
                assert_eq!(code, 0, "{file}: {said}");
                let found = losses(&folder.path().join(format!("results/{file}")));
                assert_eq!(found.len(), of.len(), "{file}");
                let errors = found.iter().zip(&of).map(|(a, b)| ((a - b) / b).abs());
                let errors: Vec<f64> = errors.collect();
                assert!(
                    errors.iter().all(|error| *error < bound),
                    "{file}: {errors:?}"
                );
            }
        }
        assert_ne!(expected["restart"], expected["continue"]);
    }
}

/// Lines as documents.
const LINES: &str = r#"
checkpoint = { every_steps = 5 }
model = { type = "MODEL" }
optimizer = { type = "adamw", learning_rate = 3e-3 }
train = { epochs = 2, batch_size = 32, micro_batch_size = 20 }

[data]
type = "text"
path = "text.txt"
tokens = { tokenizer = "char", length = 48, separator = "\n", document_mask = true }
split = { valid = 0.1, order = "time" }
"#;

const LLAMA: &str = "type = \"llama\", d_model = 16, num_layers = 2, num_heads = 4, num_kv_heads = 2, feedforward_size = 24";
const GPT2: &str = "type = \"gpt2\", d_model = 16, num_layers = 2, num_heads = 2, feedforward_size = 24, dropout = 0.0";
const ENCODER: &str = "type = \"transformer_lm\", d_model = 16, num_layers = 2, num_heads = 2, feedforward_size = 24, dropout = 0.0";

fn of_lines(model: &str) -> String {
    LINES.edit("type = \"MODEL\"", model)
}

/// A folder with a spec and short lines of the shipped text.
fn folder_of_lines(spec: &str) -> tempfile::TempDir {
    let folder = folder_with(spec);
    let text = fs::read_to_string(root().join("experiments/data/harbour.txt")).unwrap();
    let words: Vec<&str> = text.split_whitespace().take(2500).collect();
    let mut lines = String::new();
    for (at, words) in words.chunks(5).enumerate() {
        lines.push_str(&words[..1 + at * at % 5].join(" "));
        lines.push('\n');
    }
    fs::write(folder.path().join("text.txt"), lines).unwrap();
    folder
}

fn model_in(folder: &Path) -> Model {
    Model::open(&folder.join("results/spec"), &Options::default()).unwrap()
}

/// The bits of the probabilities of each token of an item.
fn outputs(model: &Model, tokens: &[i32]) -> Vec<Vec<u32>> {
    let found = model.activated_values(Values::Tokens(tokens.to_vec()), 1);
    let each = found.chunks(found.len() / tokens.len());
    each.map(|of| of.iter().map(|x| x.to_bits()).collect())
        .collect()
}

#[test]
fn a_document_has_the_same_outputs_whatever_is_around_it() {
    const LENGTH: usize = 48;
    for (model, kernels) in [
        (LLAMA, "fast"),
        (GPT2, "fast"),
        (ENCODER, "fast"),
        (LLAMA, "reference"),
        (GPT2, "reference"),
    ] {
        let spec = format!("{}\n[backend]\nkernels = \"{kernels}\"\n", of_lines(model));
        let folder = folder_of_lines(&spec.edit("epochs = 2", "epochs = 1"));
        goes_on(folder.path());
        let model = model_in(folder.path());
        let tokenizer = model.transforms().input.tokenizer().unwrap().clone();
        let end = tokenizer.document_end().unwrap();
        let size = tokenizer.vocabulary() as i32;
        let token = (2..size).prop_filter("no end", move |token| *token != end);
        let text = prop::collection::vec(token, 1..20);
        let case = (
            text,
            0usize..LENGTH,
            prop::collection::vec(2..size, LENGTH),
            0usize..LENGTH,
            prop::collection::vec(2..size, LENGTH),
        );
        let mut runner = TestRunner::new(Config {
            failure_persistence: None,
            ..Config::with_cases(12)
        });
        let checked = runner.run(&case, |(mut document, first, around, second, others)| {
            document.push(end);
            let block = |at: usize, around: &[i32]| {
                let at = at.min(LENGTH - document.len());
                let mut tokens = around.to_vec();
                tokens[at..at + document.len()].copy_from_slice(&document);
                if at > 0 {
                    tokens[at - 1] = end;
                }
                outputs(&model, &tokens)[at..at + document.len()].to_vec()
            };
            let found = block(first, &around);
            // Neighbors of the same lengths, and in runner's kernels any others.
            prop_assert_eq!(&found, &block(first, &others));
            if kernels == "fast" {
                prop_assert_eq!(&found, &block(second, &others));
                prop_assert_eq!(&found, &block(0, &around));
            }
            Ok(())
        });
        checked.unwrap();
    }
}

#[test]
fn texts_are_continued_from_their_last_document() {
    for positions in ["restart", "continue"] {
        for model in [LLAMA, GPT2, ENCODER] {
            let spec = of_lines(model).edit(
                "document_mask = true",
                &format!("document_mask = true, document_positions = \"{positions}\""),
            );
            let folder = folder_of_lines(&spec.edit("epochs = 2", "epochs = 1"));
            goes_on(folder.path());
            let model = model_in(folder.path());
            let continued = |prompt: &str, is_cached: bool| {
                let asked = Generation {
                    max_tokens: 12,
                    is_cached,
                    ..Generation::new(prompt)
                };
                model.generate(&asked).unwrap().tokens
            };
            let several = "the harbour\nan old boat\nthe wa";
            assert_eq!(continued(several, true), continued(several, false));
            let ended = "the harbour\n";
            assert_eq!(continued(ended, true), continued(ended, false));
            if positions == "restart" {
                assert_eq!(continued(several, true), continued("the wa", true));
            }
        }
    }
}

#[test]
fn documents_resume_exactly_and_are_evaluated_as_in_training() {
    let spec = of_lines(LLAMA);
    let (straight, stopped) = (folder_of_lines(&spec), folder_of_lines(&spec));
    goes_on(straight.path());
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@7"];
    run(stopped.path(), &arguments);
    goes_on(stopped.path());
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));
    let other = folder_of_lines(&spec.edit(", document_mask = true", ""));
    goes_on(other.path());
    assert_ne!(numbers(straight.path()), numbers(other.path()));

    let evaluate = ["evaluate", "results/spec", "--split", "valid", "--json"];
    let (code, out, said) = run(straight.path(), &evaluate);
    assert_eq!(code, 0, "{said}");
    let evaluated: Json = serde_json::from_str(&out).unwrap();
    let summary = read_json(
        &straight
            .path()
            .join("results/spec/runs/base-s1/summary.json"),
    );
    let metrics = evaluated["metrics"].as_array().unwrap();
    for name in ["loss", "accuracy", "perplexity"] {
        let found = metrics
            .iter()
            .find(|measure| measure["name"] == name)
            .unwrap();
        let recorded = summary["metrics"][format!("valid/{name}")]
            .as_f64()
            .unwrap();
        let error = (found["value"].as_f64().unwrap() / recorded - 1.0).abs();
        assert!(error < 1e-6, "{name}: {found} for {recorded}");
    }
    let (code, described, said) = run(straight.path(), &["plan", "spec.toml", "--json"]);
    assert_eq!(code, 0, "{said}");
    assert!(described.contains("documents"), "{described}");

    // Exported programs take a text as one document, so they are not written.
    for format in ["onnx", "pytorch"] {
        let arguments = ["export", format, "results/spec", "--out", "out"];
        let (code, _, said) = run(straight.path(), &arguments);
        assert_ne!(code, 0);
        assert!(
            said.contains("keeps the documents of an item apart"),
            "{said}"
        );
    }
}

#[test]
fn whole_documents_are_held_out() {
    let spec = of_lines(LLAMA).edit(
        "type = \"text\"\npath = \"text.txt\"",
        "type = \"csv\"\npath = \"rows.csv\"\ncolumns = [{ name = \"line\", type = \"text\" }]",
    );
    let folder = folder_of_lines(&spec);
    let text = fs::read_to_string(folder.path().join("text.txt")).unwrap();
    fs::write(
        folder.path().join("rows.csv"),
        format!("line\n{}", text.replace(',', "")),
    )
    .unwrap();
    let path = folder.path().join("rows.csv").display().to_string();
    let (planned, _) = super::support::plan("spec.toml", &spec.edit("rows.csv", &path)).unwrap();
    let data = burn_runner::data::load(&planned.runs[0].data, &|_, _| ()).unwrap();
    let tokenizer = data.train.set().encoder.input.tokenizer().unwrap().clone();
    let Values::Tokens(tokens) = data.valid.serve(&[0], None).values else {
        panic!("items are tokens");
    };
    let decoded = tokenizer.decode(&tokens);
    let first = decoded.split('\n').next().unwrap();
    let rows: Vec<String> = text.lines().map(|line| line.replace(',', "")).collect();
    assert!(rows.iter().any(|row| row == first), "{first}");
}
