//! Named inputs: numbers, categories, texts and arrays beside each other, each to its own layers.

use std::fs;
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::edit::Edit;
use super::serve::Server;
use super::service::post;
use super::support::peers::python_with;
use super::support::{folder_with, goes_on, numbers, run, summary};
use burn_runner::model::{Model, Options};
use burn_runner::predict::Prediction;

/// A row of numbers, two categories and a text; the target depends on all of them.
fn rows(num: usize) -> String {
    let mut text = "width,town,kind,note,target\n".to_owned();
    for at in 0..num {
        // Numbers without a common factor, so that nothing follows from another column.
        let (width, town, kind, word) = (at % 7, at / 7 % 5, at / 3 % 2, at / 11 % 3);
        let town = ["aa", "bb", "cc", "dd", "ee"][town];
        let kind = ["new", "old"][kind];
        let note = ["a plain one", "a fine one", "a bad one"][word];
        let value = 0.3 * width as f64
            + [0.0, 1.5, -1.0, 0.5, 2.0][at / 7 % 5] * [1.0, -1.0][at / 3 % 2]
            + [0.0, 2.0, -2.0][word];
        text += &format!("{width},{town},{kind},{note},{value}\n");
    }
    text
}

const DATA: &str = r#"
[data]
type = "csv"
path = "rows.csv"
target = "target"
tokens = { tokenizer = "word", length = 4 }

[[data.columns]]
name = "note"
type = "text"

[[data.inputs]]
name = "measures"

[[data.inputs]]
name = "place"
columns = ["town", "kind"]
encode = "embedding"

[[data.inputs]]
name = "text"
columns = ["note"]
"#;

const MODEL: &str = r#"
[[model.layers]]
type = "embedding"
name = "places"
inputs = ["place"]
embedding_dim = 4

[[model.layers]]
type = "flatten"
name = "where"

[[model.layers]]
type = "embedding"
name = "words"
inputs = ["text"]
embedding_dim = 4

[[model.layers]]
type = "mean"
name = "meaning"
axis = 0

[[model.layers]]
type = "concat"
name = "all"
inputs = ["measures", "where", "meaning"]
axis = 0

[[model.layers]]
type = "linear"
out_features = 24

[[model.layers]]
type = "relu"

[[model.layers]]
type = "linear"
"#;

const RECIPE: &str = r#"
[optimizer]
type = "adam"
learning_rate = 2e-2

[train]
epochs = 40
batch_size = 32
"#;

fn spec() -> String {
    format!("{DATA}{MODEL}{RECIPE}")
}

fn with_rows(spec: &str) -> tempfile::TempDir {
    let folder = folder_with(spec);
    fs::write(folder.path().join("rows.csv"), rows(462)).unwrap();
    folder
}

fn trained(spec: &str, arguments: &[&str]) -> tempfile::TempDir {
    let folder = with_rows(spec);
    let all = [&["run", "spec.toml", "--quiet"], arguments].concat();
    let (code, _, said) = run(folder.path(), &all);
    assert_eq!(code, 0, "{said}");
    folder
}

fn r2(folder: &Path) -> f64 {
    summary(folder, "base-s1")["metrics"]["valid/r2"]
        .as_f64()
        .unwrap()
}

/// All inputs together explain the target, and none can be left out.
#[test]
fn a_target_of_all_inputs_needs_each_of_them() {
    let all = r2(trained(&spec(), &[]).path());
    assert!(all > 0.98, "{all}");
    let places = "\"measures\", \"where\", \"meaning\"";
    for (without, inputs) in [
        ("measures", "\"where\", \"meaning\""),
        ("place", "\"measures\", \"meaning\""),
        ("text", "\"measures\", \"where\""),
    ] {
        let mut spec = spec().edit(places, inputs);
        // What an input is made of goes with it.
        let (columns, input, layers) = match without {
            "measures" => (
                "\"width\"",
                "[[data.inputs]]\nname = \"measures\"\n\n",
                vec![],
            ),
            "place" => (
                "\"town\", \"kind\"",
                "[[data.inputs]]\nname = \"place\"\ncolumns = [\"town\", \"kind\"]\nencode = \"embedding\"\n\n",
                vec![0, 1],
            ),
            _ => (
                "\"note\"",
                "[[data.inputs]]\nname = \"text\"\ncolumns = [\"note\"]\n",
                vec![2, 3],
            ),
        };
        spec = spec.edit(input, "");
        spec = spec.edit("[data]\n", &format!("[data]\nignore = [{columns}]\n"));
        if without == "text" {
            spec = spec.edit("tokens = { tokenizer = \"word\", length = 4 }\n", "");
        }
        let blocks: Vec<&str> = MODEL.split("\n\n").collect();
        for at in layers {
            spec = spec.edit(blocks[at].trim_start(), "");
        }
        let found = r2(trained(&spec, &[]).path());
        assert!(found < 0.95, "without {without}: {found}");
    }
}

#[test]
fn named_inputs_resume_exactly() {
    let short = ["--set", "train.epochs=4"];
    let straight = trained(&spec(), &short);
    let stopped = with_rows(&spec().edit("epochs = 40", "epochs = 4"));
    let fault = ["run", "spec.toml", "--quiet", "--inject-fault", "*@2"];
    run(stopped.path(), &fault);
    goes_on(stopped.path());
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));
}

/// A single named input is the same network as without a name.
#[test]
fn a_single_input_with_a_name_trains_as_without() {
    let model = "[model]\nlayers = [{ type = \"linear\", out_features = 8 }, { type = \"relu\" }, { type = \"linear\" }]\n";
    let data = "[data]\ntype = \"csv\"\npath = \"rows.csv\"\ntarget = \"target\"\n";
    let plain = format!("{data}ignore = [\"note\"]\n{model}{RECIPE}");
    let named =
        format!("{data}ignore = [\"note\"]\n[[data.inputs]]\nname = \"all\"\n{model}{RECIPE}");
    let short = ["--set", "train.epochs=3"];
    let of = |spec: &str| {
        let folder = trained(spec, &short);
        let summary = summary(folder.path(), "base-s1");
        (
            summary["metrics"].clone(),
            summary["weights_digest"].clone(),
        )
    };
    assert_eq!(of(&plain), of(&named));
}

/// The index 0 of each column stands for what is not known, and the columns' indices follow each other.
#[test]
fn an_embedding_starts_from_the_categories_of_the_train_split() {
    let folder = trained(&spec(), &["--set", "train.epochs=1"]);
    let run_folder = folder.path().join("results/spec/runs/base-s1");
    let text = fs::read_to_string(run_folder.join("transforms.json")).unwrap();
    let transforms: Json = serde_json::from_str(&text).unwrap();
    let place = &transforms["input"]["inputs"][1];
    assert_eq!(place["name"], "place");
    let columns = &place["encoder"]["columns"];
    assert_eq!(
        [&columns[0]["num"], &columns[1]["first"], &columns[1]["num"]],
        [6, 6, 3]
    );
    assert_eq!(columns[0]["indices"], json!([1, 2, 3, 4, 5]));
}

/// Categories through an embedding train as one-hot columns through a linear layer with the same weights.
#[test]
fn an_embedding_trains_as_a_matrix_over_one_hot_columns() {
    let head = "[data]\ntype = \"csv\"\npath = \"rows.csv\"\ntarget = \"target\"\n\
                ignore = [\"width\", \"kind\", \"note\"]\n";
    let rest = "[init]\nfrom = \"first.json\"\n[optimizer]\ntype = \"sgd\"\nlearning_rate = 0.05\n\
                [train]\nepochs = 3\nbatch_size = 32\n";
    let embedded = format!(
        "{head}[[data.inputs]]\nname = \"town\"\nencode = \"embedding\"\n[model]\nlayers = [\
         {{ type = \"embedding\", name = \"e\", embedding_dim = 3 }}, {{ type = \"flatten\" }}, \
         {{ type = \"linear\", name = \"l\" }}]\n{rest}"
    );
    let one_hot = format!(
        "{head}[model]\nlayers = [{{ type = \"linear\", name = \"e\", out_features = 3, bias = false }}, \
         {{ type = \"linear\", name = \"l\" }}]\n{rest}"
    );
    let weight = |row: usize, column: usize| (0.3 + 1.7 * (row * 3 + column) as f64).sin();
    // The row 0 is of what is not known, which one-hot encoding has no column for.
    let table: Vec<Vec<f64>> = (0..6)
        .map(|row| (0..3).map(|at| weight(row, at)).collect())
        .collect();
    let turned: Vec<Vec<f64>> = (0..3)
        .map(|at| (1..6).map(|row| weight(row, at)).collect())
        .collect();
    let losses = |spec: &str, first: Json| {
        let folder = with_rows(spec);
        let all = json!({ "e.weight": first, "l.weight": [[0.5, -0.4, 0.3]], "l.bias": [0.1] });
        fs::write(folder.path().join("first.json"), all.to_string()).unwrap();
        let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{said}");
        let metrics = summary(folder.path(), "base-s1")["metrics"].clone();
        ["valid/loss", "last/train/loss"].map(|name| metrics[name].as_f64().unwrap())
    };
    let [a, b] = [
        losses(&embedded, json!(table)),
        losses(&one_hot, json!(turned)),
    ];
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-5 * b.abs(), "{a} and {b}");
    }
}

fn predicted(model: &Model, rows: &[&str]) -> Vec<f64> {
    let predictions = model.predict_objects(rows).unwrap_or_else(|refused| {
        panic!("{}", refused.message);
    });
    let value = |one: Prediction| match one {
        Prediction::Values { values, .. } => values[0],
        other => panic!("{other:?}"),
    };
    predictions.into_iter().map(value).collect()
}

const ROWS: [&str; 3] = [
    r#"{ "width": 3, "town": "bb", "kind": "old", "note": "a fine one" }"#,
    r#"{ "width": 1, "town": "ee", "kind": "new", "note": "a bad one" }"#,
    r#"{ "width": 6, "town": "aa", "kind": "new", "note": "unheard words only" }"#,
];

#[test]
fn a_row_is_predicted_alone_as_in_a_batch() {
    let folder = trained(&spec(), &["--set", "train.epochs=4"]);
    let model = Model::open(&folder.path().join("results/spec"), &Options::default()).unwrap();
    let together = predicted(&model, &ROWS);
    let alone = ROWS.iter().flat_map(|row| predicted(&model, &[row]));
    for (together, alone) in together.iter().zip(alone) {
        // Matrix products of other sizes round differently.
        assert!((together - alone).abs() <= 1e-5, "{together} and {alone}");
    }
    assert!((together[0] - together[1]).abs() > 0.1, "{together:?}");
    let csv = "width,town,kind,note\n3,bb,old,a fine one\n1,ee,new,a bad one\n6,aa,new,unheard words only\n";
    fs::write(folder.path().join("new.csv"), csv).unwrap();
    let lines = ROWS.join("\n");
    fs::write(folder.path().join("new.jsonl"), lines).unwrap();
    let of = |name: &str| {
        let (code, out, said) = run(folder.path(), &["predict", "results/spec", "--data", name]);
        assert_eq!(code, 0, "{said}");
        out
    };
    assert_eq!(of("new.csv"), of("new.jsonl"));
    for (rows, expected) in [
        (
            "width,town,kind,note\n1,zz,new,a\n",
            "`zz` is not a category",
        ),
        ("width,town,note\n1,aa,a\n", "lacks the column `kind`"),
        (
            "width,town,kind,note\n1,aa,,a\n",
            "column `kind` has no value",
        ),
        ("width,town,kind,note\nx,aa,new,a\n", "`x` is not a number"),
    ] {
        fs::write(folder.path().join("bad.csv"), rows).unwrap();
        let arguments = ["predict", "results/spec", "--data", "bad.csv"];
        let (code, out, said) = run(folder.path(), &arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// Rows and tensors have a value for each column, whatever input it belongs to.
#[test]
fn servers_take_the_columns_of_all_inputs() {
    let folder = trained(&spec(), &["--set", "train.epochs=2"]);
    let model = Model::open(&folder.path().join("results/spec"), &Options::default()).unwrap();
    let rows = ROWS.map(|row| serde_json::from_str::<Json>(row).unwrap());
    let server = Server::of(folder.path(), "results/spec", &["--predict"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let (status, plain) = post(&mut stream, "/predict", &json!({ "rows": rows }));
    assert_eq!(status, 200, "{plain}");
    let predictions = plain["predictions"].as_array().unwrap();
    let served: Vec<f64> = predictions
        .iter()
        .map(|it| it["values"][0].as_f64().unwrap())
        .collect();
    let direct = model.predict_objects(&ROWS).unwrap();
    for (served, direct) in served.iter().zip(&direct) {
        let direct = serde_json::to_value(direct).unwrap();
        assert_eq!(json!(served), direct["values"][0]);
    }
    let column = |name: &str, datatype: &str| {
        let data: Vec<&Json> = rows.iter().map(|row| &row[name]).collect();
        json!({ "name": name, "datatype": datatype, "shape": [3], "data": data })
    };
    let inputs = [
        column("width", "FP64"),
        column("town", "BYTES"),
        column("kind", "BYTES"),
        column("note", "BYTES"),
    ];
    let target = "/v2/models/spec/infer";
    let (status, answer) = post(&mut stream, target, &json!({ "inputs": inputs }));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["outputs"][0]["data"], json!(served), "{answer}");
    let (status, answer) = post(&mut stream, target, &json!({ "inputs": inputs[1..] }));
    assert_eq!(status, 400, "{answer}");
    assert!(answer.to_string().contains("`width`"), "{answer}");
}

/// The best epoch's metrics are those of an evaluation, and printed layers are the same network.
#[test]
fn evaluation_and_plans_know_each_input() {
    let folder = trained(&spec(), &["--set", "train.epochs=4"]);
    let arguments = ["evaluate", "results/spec", "--split", "valid", "--json"];
    let (code, out, said) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    let evaluated: Json = serde_json::from_str(&out).unwrap();
    let mut metrics = evaluated["metrics"].as_array().unwrap().iter();
    let loss = metrics.find(|metric| metric["name"] == "loss").unwrap();
    let recorded = summary(folder.path(), "base-s1")["metrics"]["valid/loss"].clone();
    let (loss, recorded) = (loss["value"].as_f64().unwrap(), recorded.as_f64().unwrap());
    assert!(
        (loss - recorded).abs() <= 1e-6 * recorded,
        "{loss} and {recorded}"
    );
    let (code, described, said) = run(folder.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    insta::assert_snapshot!(described);
    let (_, layers, _) = run(folder.path(), &["describe", "spec.toml", "--as-layers"]);
    let again = with_rows(&format!("{DATA}\n{layers}\n{RECIPE}"));
    let (code, again, said) = run(again.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(again, described);
}

/// Modules of PyTorch and graphs of ONNX take each input by its name.
#[test]
fn exports_take_each_input_by_its_name() {
    let Some(python) = python_with(&["torch", "onnx", "onnxruntime", "safetensors"]) else {
        return;
    };
    let folder = trained(&spec(), &["--set", "train.epochs=2"]);
    for arguments in [
        ["export", "pytorch", "results/spec", "--out", "module"],
        ["export", "onnx", "results/spec", "--out", "model.onnx"],
    ] {
        let (code, _, said) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{said}");
    }
    let refused = [
        "export",
        "onnx",
        "results/spec",
        "--with-transforms",
        "--out",
        "whole.onnx",
    ];
    let (code, _, said) = run(folder.path(), &refused);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("texts are tokenized"), "{said}");
    assert!(!folder.path().join("whole.onnx").exists());
    python.run("inputs_check.py", &[folder.path()]);
}

/// A file of tensors: name, type, shape and bytes of each.
fn safetensors(tensors: &[(&str, &str, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
    let mut head = serde_json::Map::new();
    let mut bytes = Vec::new();
    for (name, dtype, shape, own) in tensors {
        let from = bytes.len();
        bytes.extend_from_slice(own);
        head.insert(
            (*name).to_owned(),
            json!({ "dtype": dtype, "shape": shape, "data_offsets": [from, bytes.len()] }),
        );
    }
    let head = Json::Object(head).to_string();
    [
        &(head.len() as u64).to_le_bytes()[..],
        head.as_bytes(),
        &bytes,
    ]
    .concat()
}

fn floats(num: usize, value: impl Fn(usize) -> f32) -> Vec<u8> {
    (0..num).flat_map(|at| value(at).to_le_bytes()).collect()
}

const ARRAYS: &str = r#"
[data]
type = "safetensors"
path = "x.safetensors"
target = "class"

[[data.inputs]]
name = "series"
columns = ["weather"]

[[data.inputs]]
name = "station"
columns = ["place"]

[[data.inputs]]
name = "words"
columns = ["tokens"]
encode = "embedding"

[[model.layers]]
type = "lstm"
name = "rain"
inputs = ["series"]
hidden_size = 4
output = "last"

[[model.layers]]
type = "embedding"
name = "table"
inputs = ["words"]
embedding_dim = 3

[[model.layers]]
type = "mean"
name = "meaning"
axis = 0

[[model.layers]]
type = "concat"
inputs = ["rain", "station", "meaning"]
axis = 0

[[model.layers]]
type = "linear"

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 4
batch_size = 16
"#;

/// Arrays of three shapes, a class that depends on the first value of each, and tokens from 0 to 8.
fn arrays(num: usize, words: i64) -> Vec<u8> {
    let wave = |at: usize| (at as f32 * 0.7).sin() * 100.0;
    let tokens = (0..num * 6).flat_map(|at| (at as i64 % words).to_le_bytes());
    let class = (0..num).flat_map(|at| i64::from(wave(at * 36) > 0.0).to_le_bytes());
    safetensors(&[
        ("weather", "F32", vec![num, 12, 3], floats(num * 36, wave)),
        (
            "place",
            "F32",
            vec![num, 4],
            floats(num * 4, |at| at as f32),
        ),
        ("tokens", "I64", vec![num, 6], tokens.collect()),
        ("class", "I64", vec![num], class.collect()),
    ])
}

#[test]
fn arrays_of_different_shapes_are_inputs_of_their_own() {
    let folder = folder_with(ARRAYS);
    let path = |name: &str| folder.path().join(name);
    fs::write(path("x.safetensors"), arrays(96, 9)).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let (code, described, said) = run(folder.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        described.contains("items series [12, 3], station [4], words [6] tokens of 9"),
        "{described}"
    );
    // Each axis of the series has a scaling of its own, as if it were the only input.
    let transforms = fs::read_to_string(path("results/spec/runs/base-s1/transforms.json")).unwrap();
    let transforms: Json = serde_json::from_str(&transforms).unwrap();
    let series = &transforms["input"]["inputs"][0]["encoder"];
    assert_eq!(series["scaling"].as_array().unwrap().len(), 3, "{series}");
    let predict = |name: &str| run(folder.path(), &["predict", "results/spec", "--data", name]);
    fs::write(path("new.safetensors"), arrays(5, 9)).unwrap();
    let (code, out, said) = predict("new.safetensors");
    assert_eq!((code, out.lines().count()), (0, 6), "{said}");
    if let Some(python) = python_with(&["torch", "onnxruntime", "safetensors"]) {
        fs::write(path("predictions.csv"), out).unwrap();
        let export = ["export", "onnx", "results/spec", "--with-transforms"];
        let (code, _, said) = run(
            folder.path(),
            &[&export[..], &["--out", "whole.onnx"]].concat(),
        );
        assert_eq!(code, 0, "{said}");
        python.run("inputs_check.py", &[folder.path()]);
    }
    fs::write(path("new.safetensors"), arrays(20, 11)).unwrap();
    let (code, _, said) = predict("new.safetensors");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("the token 9 is unknown"), "{said}");
    let without = safetensors(&[("weather", "F32", vec![2, 12, 3], floats(72, |_| 0.0))]);
    fs::write(path("new.safetensors"), without).unwrap();
    let (code, _, said) = predict("new.safetensors");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("has no array `place`"), "{said}");
    let other = ["predict", "results/spec", "--data", "x.npy"];
    fs::write(path("x.npy"), super::support::npy_of(&[[0.0; 4]; 3])).unwrap();
    let (code, _, said) = run(folder.path(), &other);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("`.npz` or `.safetensors`"), "{said}");
}
