//! Hidden tokens: trained as in the library transformers, resumed exactly, predicted, refused where there are none.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use burn_runner::data::{self, Moment, TargetValues, Values};
use serde_json::Value as Json;

use super::edit::Edit;
use super::sharing::losses;
use super::support::peers::python_with;
use super::support::{folder_with, goes_on, numbers, plan, read_json, root, run};

/// BERT with a head for hidden tokens, from the weights of transformers.
const BERT: &str = r#"
[data]
type = "npz"
path = "train.npz"
valid_path = "valid.npz"
target = "target"
columns = [{ name = "tokens", type = "category" }, { name = "target", type = "category" }]
split = { test = 0.0 }

[init]
from = "bert/model.safetensors"
remap = [
    ['^cls\.predictions\.transform\.dense\.', 'transform.'],
    ['^cls\.predictions\.transform\.LayerNorm\.', 'transform_norm.'],
    ['^cls\.predictions\.bias$', 'decoder.bias'],
    ['^bert\.(embeddings\.|encoder\.)?', ''],
    ['^LayerNorm\.', 'embeddings_norm.'],
    ['^(position_embeddings|token_type_embeddings)\.weight$', '$1.value'],
    ['^layer\.0\.', 'layer1.'],
    ['^layer\.1\.', 'layer2.'],
    ['\.attention\.self\.query\.', '.attention.q_proj.'],
    ['\.attention\.self\.key\.', '.attention.k_proj.'],
    ['\.attention\.self\.value\.', '.attention.v_proj.'],
    ['\.attention\.output\.dense\.', '.attention.o_proj.'],
    ['\.attention\.output\.LayerNorm\.', '.attention_norm.'],
    ['\.output\.LayerNorm\.', '.output_norm.'],
    ['\.dense\.', '.'],
]

[model]
type = "bert"
head = "tokens"
d_model = 32
num_layers = 2
num_heads = 4
feedforward_size = 48
max_length = 20
dropout = 0.0
attention_dropout = 0.0

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
fn bert_predicts_hidden_tokens_as_in_transformers() {
    let Some(python) = python_with(&["torch", "transformers", "numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    python.run("mlm_check.py", &[folder.path()]);
    fs::write(folder.path().join("spec.toml"), BERT).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let expected = read_json(&folder.path().join("mlm.json"));
    let of = expected["losses"].as_array().unwrap().iter();
    let of: Vec<f64> = of.map(|loss| loss.as_f64().unwrap()).collect();
    let found = losses(&folder.path().join("results/spec"));
    assert_eq!(found.len(), of.len());
    let errors = found.iter().zip(&of).map(|(a, b)| ((a - b) / b).abs());
    let largest = errors.fold(0.0, f64::max);
    assert!(largest < 1e-7, "{largest}");
    let (code, described, said) = run(folder.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    // 17,886
    let num = expected["parameters"].as_u64().unwrap();
    let shown = format!("{},{:03} parameters", num / 1000, num % 1000);
    assert!(described.contains(&shown), "{described}");
}

/// A small network that predicts hidden tokens of a text.
const TEXT: &str = r#"
checkpoint = { every_steps = 5 }
model = { type = "bert", head = "tokens", d_model = 16, num_layers = 1, num_heads = 2, feedforward_size = 24 }
optimizer = { type = "adamw", learning_rate = 3e-3 }
train = { epochs = 4, batch_size = 32, micro_batch_size = 20 }

[data]
type = "text"
path = "text.txt"
tokens = { tokenizer = "wordpiece", length = 16, max_vocabulary = 300, masked = 0.2 }
split = { valid = 0.1, order = "time" }
"#;

/// A folder with a spec and the first part of the shipped text, also as a table.
fn folder_of_text(spec: &str) -> tempfile::TempDir {
    let folder = folder_with(spec);
    let text = fs::read_to_string(root().join("experiments/data/harbour.txt")).unwrap();
    let text: String = text.chars().take(12_000).collect();
    let sentences = text.split(['.', '\n']).map(str::trim);
    let sentences = sentences.filter(|sentence| sentence.len() > 20);
    let row = |text: &str| format!("\"{}\"\n", text.replace('"', ""));
    let rows: String = sentences.map(row).collect();
    fs::write(folder.path().join("rows.csv"), format!("sentence\n{rows}")).unwrap();
    fs::write(folder.path().join("text.txt"), text).unwrap();
    folder
}

/// The same with the sentences as items, which are padded and have special tokens.
fn of_rows() -> String {
    TEXT.edit(
        "type = \"text\"\npath = \"text.txt\"",
        "type = \"csv\"\npath = \"rows.csv\"\ncolumns = [{ name = \"sentence\", type = \"text\" }]",
    )
    .edit(", order = \"time\"", "")
}

#[test]
fn hidden_tokens_resume_exactly() {
    for spec in [TEXT.to_owned(), of_rows()] {
        let (straight, stopped) = (folder_of_text(&spec), folder_of_text(&spec));
        goes_on(straight.path());
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@17"];
        run(stopped.path(), &arguments);
        goes_on(stopped.path());
        assert_eq!(numbers(straight.path()), numbers(stopped.path()));
        let other = folder_of_text(&spec.edit("masked = 0.2", "masked = 0.3"));
        goes_on(other.path());
        assert_ne!(numbers(straight.path()), numbers(other.path()));
    }
}

/// The items of a split as tokens and targets, each by its place.
fn served(
    split: &data::serve::Split,
    moment: Option<Moment>,
    places: &[u32],
) -> BTreeMap<u32, (Vec<i32>, Vec<i32>)> {
    let served = split.serve(places, moment);
    let (Values::Tokens(tokens), TargetValues::Classes(targets)) = (served.values, served.targets)
    else {
        panic!("items are tokens");
    };
    assert_eq!(tokens.len(), targets.len());
    let items = tokens.chunks(16).zip(targets.chunks(16));
    let items = places.iter().zip(items);
    items
        .map(|(place, (tokens, targets))| (*place, (tokens.to_vec(), targets.to_vec())))
        .collect()
}

#[test]
fn other_tokens_are_hidden_in_each_epoch_and_the_same_outside_of_training() {
    for spec in [TEXT.to_owned(), of_rows()] {
        let folder = folder_of_text(&spec);
        let text = spec.edit(
            "path = \"",
            &format!("path = \"{}/", folder.path().display()),
        );
        let (planned, _) = plan("spec.toml", &text).unwrap();
        let run = &planned.runs[0];
        let shown = run.data.in_words();
        assert!(shown.contains("20 % of the tokens hidden"), "{shown}");
        assert!(!run.kept_on_device().contains_key("train"));
        let train = data::load(&run.data, &|_, _| ()).unwrap().train;
        let all: Vec<u32> = (0..train.num_items() as u32).collect();
        let epoch = |number| Some(Moment::new(run.train.sampler, run.seed, number));
        let (first, second) = (
            served(&train, epoch(1), &all),
            served(&train, epoch(2), &all),
        );
        assert_ne!(first, second);
        // In another order and one at a time.
        let alone = all
            .iter()
            .rev()
            .flat_map(|at| served(&train, epoch(1), &[*at]));
        assert_eq!(alone.collect::<BTreeMap<_, _>>(), first);
        let fixed = served(&train, None, &all);
        assert_ne!(fixed, first);
        assert_eq!(served(&train, None, &all), fixed);
        for (tokens, targets) in first.values().chain(second.values()) {
            let hidden = targets.iter().filter(|target| **target >= 0).count();
            // Padding, [UNK], [CLS], [SEP] and [MASK] are not hidden.
            assert!(targets.iter().all(|target| *target == -1 || *target > 4));
            let others = tokens
                .iter()
                .zip(targets)
                .filter(|(_, target)| **target < 0);
            let ordinary = others.filter(|(token, _)| **token > 4).count() + hidden;
            let share = (ordinary as f64 * 0.2).round().max(1.0) as usize;
            assert_eq!(hidden, share.min(ordinary), "{tokens:?} {targets:?}");
        }
    }
}

fn predicted(folder: &Path, arguments: &[&str]) -> (i32, Vec<Json>, String) {
    let all = [&["predict", "results/spec", "--format", "jsonl"], arguments].concat();
    let (code, out, said) = run(folder, &all);
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    (code, lines.collect(), said)
}

#[test]
fn the_first_mask_of_a_text_is_predicted() {
    for (spec, name, head) in [
        (TEXT.to_owned(), "new.txt", ""),
        (of_rows(), "new.csv", "sentence\n"),
    ] {
        let folder = folder_of_text(&spec);
        goes_on(folder.path());
        let path = folder.path().join(name);
        let long = "the harbour ".repeat(40);
        let texts = if head.is_empty() {
            format!("The [MASK] is open.\n{long} [MASK] at night\n")
        } else {
            format!("{head}The [MASK] is open.\nA [MASK] at [MASK]\n")
        };
        fs::write(&path, texts).unwrap();
        let (code, found, said) = predicted(folder.path(), &["--data", name]);
        assert_eq!((code, found.len()), (0, 2), "{said}");
        for found in &found {
            let alternatives = found["alternatives"].as_object().unwrap();
            assert_eq!(alternatives.len(), 5);
            let sum: f64 = alternatives.values().filter_map(Json::as_f64).sum();
            assert!(sum > 0.0 && sum <= 1.0, "{found}");
        }
        let (code, split, said) = predicted(folder.path(), &["--split", "valid"]);
        assert_eq!(code, 0, "{said}");
        assert!(!split.is_empty());
        fs::write(&path, format!("{head}The harbour is open.\n")).unwrap();
        let (code, _, said) = predicted(folder.path(), &["--data", name]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("the text has no `[MASK]`"), "{said}");
        let (code, _, said) = run(
            folder.path(),
            &["generate", "results/spec", "--prompt", "The"],
        );
        assert_ne!(code, 0);
        assert!(said.contains("cannot continue texts"), "{said}");
        let (code, _, said) = run(
            folder.path(),
            &["evaluate", "results/spec", "--split", "valid"],
        );
        assert_eq!(code, 0, "{said}");
    }
}
