//! Weights that come from files: `[init]`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use burn::tensor::{Device, TensorData};
use burn_runner::check::network::Shape;
use burn_runner::check::network::examples::network;
use burn_runner::data::Folders;
use burn_runner::exchange::init::{Finder, load};
use burn_runner::exchange::read::Weights;
use burn_runner::exchange::tensors::{NamedTensor, Tensors};
use burn_runner::exchange::write;
use burn_runner::spec::init::InitSpec;
use runner_network::graph::Graph;
use runner_network::tensor::DynTensor;
use runner_network::testing::generator;
use runner_network::values::with_values;
use serde_json::Value as Json;

use super::support::peers::python_with;
use super::support::{folder_with, init_from, run};

/// What `torch_layers.py` lists.
struct Case {
    layer: String,
    shape: Vec<usize>,
    x: Vec<f32>,
    y: Vec<f32>,
}

fn numbers(json: &Json) -> Vec<f32> {
    let numbers = json.as_array().unwrap().iter();
    numbers
        .map(|number| number.as_f64().unwrap() as f32)
        .collect()
}

fn cases(folder: &Path) -> Vec<Case> {
    let listed = fs::read_to_string(folder.join("cases.json")).unwrap();
    let listed: Vec<Json> = serde_json::from_str(&listed).unwrap();
    let cases = listed.iter().map(|case| Case {
        layer: case["layer"].as_str().unwrap().to_owned(),
        shape: numbers(&case["shape"])
            .iter()
            .map(|size| *size as usize)
            .collect(),
        x: numbers(&case["x"]),
        y: numbers(&case["y"]),
    });
    cases.collect()
}

/// The output of a case's layer with the weights of a file.
fn output(case: &Case, folder: &Path, from: &str) -> Vec<f32> {
    let plan = network(&case.shape, &case.layer);
    let folders = Folders {
        base: folder.to_owned(),
        cache: folder.join("cache"),
    };
    let spec = InitSpec {
        top_level_key: from.ends_with(".pth").then(|| "model".into()),
        ..init_from(from)
    };
    let init = Finder::new(&folders).find(&spec, &plan);
    let init = init.unwrap_or_else(|refusal| panic!("{from}: {:?}", refusal.diagnostic));
    let values = load(&init, &plan).unwrap_or_else(|error| panic!("{from}: {error}"));
    let mut values: BTreeMap<_, _> = values
        .into_iter()
        .map(|(name, tensor)| {
            (
                name,
                TensorData::new(tensor.to_f32s(), tensor.shape().to_vec()),
            )
        })
        .collect();
    let device = Device::flex();
    let graph = Graph::new(&plan, Default::default(), &device);
    let name = |path: &str| plan.user_path(path).unwrap_or_default();
    let graph = with_values(graph, &name, &mut |path| values.remove(path));
    assert!(values.is_empty(), "{values:?}");
    let shape = [&[2], case.shape.as_slice()].concat();
    let input = DynTensor::from_values(case.x.clone(), &shape, &device);
    graph
        .forward(input)
        .flatten()
        .into_data()
        .iter::<f32>()
        .collect()
}

#[test]
fn layers_compute_with_pytorchs_weights_what_pytorch_does() {
    let Some(python) = python_with(&["torch", "safetensors", "numpy"]) else {
        return;
    };
    let _generator = generator();
    let folder = tempfile::tempdir().unwrap();
    python.run("torch_layers.py", &[folder.path()]);
    let cases = cases(folder.path());
    assert!(cases.len() > 20);
    for (at, case) in cases.iter().enumerate() {
        let mut first: Option<Vec<f32>> = None;
        for format in ["pt", "pth", "safetensors", "npz", "json"] {
            let output = output(case, folder.path(), &format!("{at}.{format}"));
            let scale = case.y.iter().fold(1.0_f32, |most, y| most.max(y.abs()));
            for (ours, theirs) in output.iter().zip(&case.y) {
                let error = (ours - theirs).abs() / scale;
                assert!(
                    error < 1e-5,
                    "{} by {format}: {ours} for {theirs}",
                    case.layer
                );
            }
            assert_eq!(output.len(), case.y.len(), "{}", case.layer);
            // The formats hold the same numbers.
            assert_eq!(
                *first.get_or_insert_with(|| output.clone()),
                output,
                "{}, {format}",
                case.layer
            );
        }
    }
}

const BODY: &str = "\
data = { type = 'iris' }
optimizer = { type = 'adam', learning_rate = 1e-2 }
train = { epochs = 2, batch_size = 25 }
model.layers = [
    { type = 'linear', name = 'body', out_features = 8 },
    { type = 'relu' },
    { type = 'linear', name = 'head' },
]
";

fn tensors(path: &Path) -> BTreeMap<String, Vec<f32>> {
    let weights = Weights::open(path, None).unwrap();
    let names: BTreeSet<&str> = weights
        .entries()
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    let mut found = BTreeMap::new();
    let read = weights.read(&names, &mut |tensor| {
        found.insert(tensor.name().to_owned(), tensor.to_f32s());
        Ok(())
    });
    read.unwrap();
    found
}

/// A folder with a finished run below `results/spec`, and another file that begins with `init`.
fn trained(init: &str) -> tempfile::TempDir {
    let folder = folder_with(BODY);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    fs::write(folder.path().join("next.toml"), format!("{BODY}\n{init}")).unwrap();
    folder
}

#[test]
fn a_run_begins_with_the_weights_of_another_one() {
    let init = "[init]\nfrom = 'results/spec/runs/base-s1'\nexclude = '^head\\.'\n";
    let folder = trained(init);
    let (code, stdout, stderr) = run(folder.path(), &["plan", "next.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("2 matched, 2 excluded"), "{stdout}{stderr}");
    let (_, described, _) = run(folder.path(), &["describe", "next.toml"]);
    assert!(
        described.contains("matched") && described.contains("body.weight"),
        "{described}"
    );
    let (code, _, stderr) = run(folder.path(), &["run", "next.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let results = folder.path().join("results");
    let before = tensors(&results.join("spec/runs/base-s1/model/best.bpk"));
    let after = tensors(&results.join("next/runs/base-s1/model/initial.bpk"));
    for (name, values) in &before {
        assert_eq!(after[name] == *values, name.contains("layers.0"), "{name}");
    }
    // The same command again finds its own work, and another file is other work.
    let (_, _, again) = run(folder.path(), &["plan", "next.toml"]);
    assert!(again.contains("2 matched"), "{again}");
    // The other run goes on, and is gone at last; the saved weights are enough.
    let (code, _, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--set", "train.epochs=9"],
    );
    assert_eq!(code, 0, "{stderr}");
    let reproduced = || {
        let arguments = ["reproduce", "results/next/runs/base-s1"];
        let (code, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{stdout}{stderr}");
        let said = format!("{stdout}{stderr}");
        assert!(said.contains("bitwise"), "{said}");
    };
    reproduced();
    fs::rename(results.join("spec"), results.join("gone")).unwrap();
    reproduced();
    let (code, _, refused) = run(folder.path(), &["check", "next.toml"]);
    assert_eq!(code, 2);
    assert!(refused.contains("next.toml:11:8"), "{refused}");
}

/// Other weights in the place of those of a run would be another beginning than the file says.
#[test]
fn changed_weights_of_a_run_begin_nothing() {
    let folder = trained("[init]\nfrom = 'results/spec/runs/base-s1'\n");
    let model = folder.path().join("results/spec/runs/base-s1/model");
    let refused = || {
        let (code, _, refused) = run(folder.path(), &["check", "next.toml"]);
        assert_eq!(code, 2);
        assert!(refused.contains("model/best.bpk` is damaged"), "{refused}");
        assert!(refused.contains("delete the run's folder"), "{refused}");
    };
    let best = fs::read(model.join("best.bpk")).unwrap();
    fs::copy(model.join("initial.bpk"), model.join("best.bpk")).unwrap();
    refused();
    fs::remove_file(model.join("best.bpk")).unwrap();
    refused();
    fs::write(model.join("best.bpk"), best).unwrap();
    let (code, _, said) = run(folder.path(), &["check", "next.toml"]);
    assert_eq!(code, 0, "{said}");
}

/// What would be moved away before it is read.
#[test]
fn a_run_does_not_begin_with_what_it_replaces() {
    let folder = trained("");
    let own = format!("{BODY}\n[init]\nfrom = 'results/spec/runs/base-s1'\n");
    fs::write(folder.path().join("spec.toml"), own).unwrap();
    let (code, _, refused) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 2, "{refused}");
    assert!(
        refused.contains("set another `experiment.name`"),
        "{refused}"
    );
    assert!(
        folder
            .path()
            .join("results/spec/runs/base-s1/model/best.bpk")
            .exists()
    );
    let (code, _, said) = run(
        folder.path(),
        &["run", "spec.toml", "--set", "experiment.name=next"],
    );
    assert_eq!(code, 0, "{said}");
}

#[test]
fn what_does_not_fit_is_refused_with_names_and_shapes() {
    let folder = trained("[init]\nfrom = 'results/spec/runs/base-s1'\n");
    let check = |edits: &[&str]| {
        let sets = edits.iter().flat_map(|edit| ["--set", edit]);
        let arguments: Vec<_> = ["check", "next.toml"].into_iter().chain(sets).collect();
        let (code, _, stderr) = run(folder.path(), &arguments);
        (code, stderr)
    };
    assert_eq!(check(&[]).0, 0);
    let wide = "model.layers.body.out_features=9";
    let (code, wrong) = check(&[wide]);
    assert_eq!(code, 2);
    for expected in [
        "error: `results/spec/runs/base-s1` does not fit the network: 1 matched, 3 mismatched",
        "`body.weight` is [4, 9], in the file [4, 8]",
        "skip_mismatched = true",
    ] {
        assert!(wrong.contains(expected), "{expected}: {wrong}");
    }
    assert_eq!(check(&[wide, "init.skip_mismatched=true"]).0, 0);
    let (code, wrong) = check(&["init.remap=[['^body', 'tail']]"]);
    assert_eq!(code, 2);
    assert!(
        wrong.contains("missing: `body.weight` [4, 8]")
            && wrong.contains("`body.weight` [4, 8] (`tail.weight` by `remap`)"),
        "{wrong}"
    );
    assert_eq!(
        check(&["init.remap=[['^body', 'tail']]", "init.partial=true"]).0,
        0
    );
    let (code, wrong) = check(&["init.only='nothing'"]);
    assert_eq!(code, 2);
    assert!(wrong.contains("no tensor of"), "{wrong}");
    let (code, wrong) = check(&["init.remap=[['.*', 'x']]"]);
    assert_eq!(code, 2);
    assert!(wrong.contains("the same name"), "{wrong}");
    let (code, wrong) = check(&["init.exclude='('"]);
    assert_eq!(code, 2);
    assert!(wrong.contains("is not a regular expression"), "{wrong}");
    for missing in ["nowhere.pt", "results", "next.toml"] {
        let (code, wrong) = check(&[&format!("init.from='{missing}'")]);
        assert_eq!(code, 2, "{missing}: {wrong}");
    }
}

#[test]
fn names_that_only_begin_differently_are_answered_with_the_pair_that_helps() {
    let plan = network(&[4], "{ type = 'linear', name = 'fc', out_features = 2 }");
    assert_eq!(plan.items, Shape::numbers(&[4]));
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"module.fc.weight": [[1, 2, 3, 4], [5, 6, 7, 8]], "module.fc.bias": [1, 2]}"#;
    fs::write(folder.path().join("w.json"), text).unwrap();
    let folders = Folders {
        base: folder.path().to_owned(),
        cache: folder.path().join("cache"),
    };
    let mut spec = init_from("w.json");
    let refused = Finder::new(&folders).find(&spec, &plan).unwrap_err();
    let help = refused.diagnostic.helps.join("\n");
    assert!(help.contains(r"remap = [['^module\.', '']]"), "{help}");
    spec.remap = vec![vec![r"^module\.".into(), String::new()]];
    let found = Finder::new(&folders).find(&spec, &plan).unwrap();
    let values = load(&found, &plan).unwrap();
    // PyTorch's rows are Burn's columns.
    assert_eq!(
        values["fc.weight"].to_f32s(),
        [1.0, 5.0, 2.0, 6.0, 3.0, 7.0, 4.0, 8.0]
    );
    // What was planned with is what is loaded.
    fs::write(folder.path().join("w.json"), text.replace('8', "9")).unwrap();
    assert!(
        load(&found, &plan)
            .unwrap_err()
            .to_string()
            .contains("has changed")
    );
}

/// As the ONNX files of `nn.Sequential` have them: numbers, of which activations have some, too.
#[test]
fn modules_with_other_names_are_answered_with_the_layers_at_their_places() {
    let plan = network(
        &[2],
        "{ type = 'linear', out_features = 3 }, { type = 'relu' }, { type = 'linear', out_features = 2 }",
    );
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"0.weight": [[1, 2], [3, 4], [5, 6]], "0.bias": [1, 2, 3], "2.weight": [[1, 2, 3], [4, 5, 6]], "2.bias": [7, 8]}"#;
    fs::write(folder.path().join("w.json"), text).unwrap();
    let folders = Folders {
        base: folder.path().to_owned(),
        cache: folder.path().join("cache"),
    };
    let mut spec = init_from("w.json");
    let refused = Finder::new(&folders).find(&spec, &plan).unwrap_err();
    let (note, help) = (
        refused.diagnostic.notes.join("\n"),
        refused.diagnostic.helps.join("\n"),
    );
    assert!(
        note.contains("`0` -> `linear_1`, `2` -> `linear_2`"),
        "{note}"
    );
    let remap = r"remap = [['^0\.', 'linear_1.'], ['^2\.', 'linear_2.']]";
    assert!(help.contains(remap), "{help}");
    spec.remap = [(r"^0\.", "linear_1."), (r"^2\.", "linear_2.")]
        .map(|(from, to)| vec![from.to_owned(), to.to_owned()])
        .to_vec();
    let found = Finder::new(&folders).find(&spec, &plan).unwrap();
    let values = load(&found, &plan).unwrap();
    assert_eq!(values["linear_2.bias"].to_f32s(), [7.0, 8.0]);
}

/// As PyTorch's exporter to ONNX leaves linear layers over sequences: biases under their names, matrices transposed.
#[test]
fn constants_without_a_module_are_answered_with_the_weights_at_their_places() {
    let plan = network(
        &[2],
        "{ type = 'linear', out_features = 3 }, { type = 'relu' }, { type = 'linear', out_features = 2 }",
    );
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"0.bias": [1, 2, 3], "2.bias": [7, 8], "onnx::MatMul_13": [[1, 4], [2, 5], [3, 6]], "onnx::MatMul_9": [[1, 3, 5], [2, 4, 6]]}"#;
    fs::write(folder.path().join("w.json"), text).unwrap();
    let folders = Folders {
        base: folder.path().to_owned(),
        cache: folder.path().join("cache"),
    };
    let mut spec = init_from("w.json");
    let refused = Finder::new(&folders).find(&spec, &plan).unwrap_err();
    let (note, help) = (
        refused.diagnostic.notes.join("\n"),
        refused.diagnostic.helps.join("\n"),
    );
    let row = "`onnx::MatMul_9` -> `linear_1.weight` (transposed), `onnx::MatMul_13` -> `linear_2.weight` (transposed)";
    assert!(note.contains(row), "{note}");
    let remap = r"remap = [['^0\.', 'linear_1.'], ['^2\.', 'linear_2.'], ['^onnx::MatMul_9$', 'linear_1.weight'], ['^onnx::MatMul_13$', 'linear_2.weight']]";
    assert!(help.contains(remap), "{help}");
    let transpose = r"transpose = ['^linear_1\.weight$', '^linear_2\.weight$']";
    assert!(help.contains(transpose), "{help}");
    let pairs = [
        (r"^0\.", "linear_1."),
        (r"^2\.", "linear_2."),
        ("^onnx::MatMul_9$", "linear_1.weight"),
        ("^onnx::MatMul_13$", "linear_2.weight"),
    ];
    let pairs = pairs.map(|(from, to)| vec![from.to_owned(), to.to_owned()]);
    spec.remap = pairs.to_vec();
    spec.transpose = vec![
        r"^linear_1\.weight$".to_owned(),
        r"^linear_2\.weight$".to_owned(),
    ];
    let found = Finder::new(&folders).find(&spec, &plan).unwrap();
    let values = load(&found, &plan).unwrap();
    // Burn's matrices are the transposes of PyTorch's.
    let weight = &values["linear_1.weight"];
    assert_eq!(weight.to_f32s(), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    assert_eq!(values["linear_2.bias"].to_f32s(), [7.0, 8.0]);
}

/// Damaged and hostile files are refused while the experiment is planned: exit code 2, and nothing is written.
#[test]
fn files_of_weights_that_cannot_be_used_write_nothing() {
    let folder = super::support::folder_with(
        "data = { type = 'iris' }\nmodel = { type = 'mlp', hidden = [4] }\n\
         optimizer = { type = 'adam', learning_rate = 1e-2 }\ntrain = { epochs = 1 }\n\
         init = { from = 'w.safetensors', partial = true }\n",
    );
    let tensors = |header: &str, num_bytes: usize| {
        let head = (header.len() as u64).to_le_bytes();
        [&head[..], header.as_bytes(), &vec![0; num_bytes]].concat()
    };
    let weight = |offsets: &str| {
        format!(r#"{{"linear_1.weight":{{"dtype":"F32","shape":[4,4],"data_offsets":{offsets}}}}}"#)
    };
    let good = tensors(&weight("[0,64]"), 64);
    let mut not_finite = good.clone();
    let end = not_finite.len();
    not_finite[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let pickle = b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R.".to_vec();
    // An array in column-major order, as the transpose of a matrix is saved.
    let mut columns = std::io::Cursor::new(Vec::new());
    let mut one = Tensors::new();
    one.push(NamedTensor::from_f32s(
        "linear_1.weight",
        vec![4, 4],
        &[0.5; 16],
    ))
    .unwrap();
    write::npz(&one, &mut columns).unwrap();
    let mut columns = columns.into_inner();
    let order = b"'fortran_order': False";
    let at = columns.windows(order.len()).position(|it| it == order);
    let end_of_order = at.unwrap() + order.len();
    columns[end_of_order - 5..end_of_order].copy_from_slice(b"True ");
    let cases: [(&str, Vec<u8>, &str); 10] = [
        ("w.safetensors", good[..end - 9].to_vec(), "is damaged"),
        ("w.safetensors", Vec::new(), "is empty"),
        (
            "w.safetensors",
            tensors(&weight("[0,1000]"), 64),
            "is damaged",
        ),
        (
            "w.safetensors",
            [&u64::MAX.to_le_bytes()[..], b"{}"].concat(),
            "is damaged",
        ),
        (
            "w.safetensors",
            not_finite,
            "`linear_1.weight` has values that are infinite or NaN",
        ),
        ("w.pt", pickle, "not written by `torch.save`"),
        (
            "w.pt",
            b"PK\x03\x04 and no more".to_vec(),
            "not a complete archive",
        ),
        (
            "w.json",
            br#"{"linear_1.weight": [[1, 2], [3]]}"#.to_vec(),
            "different lengths",
        ),
        ("w.npz", b"hello".to_vec(), "is damaged"),
        ("w.npz", columns, "only row-major (C) order is read"),
    ];
    for (name, bytes, expected) in cases {
        fs::write(folder.path().join(name), bytes).unwrap();
        let from = format!("init.from='{name}'");
        let (code, _, stderr) = run(
            folder.path(),
            &["run", "spec.toml", "--quiet", "--set", &from],
        );
        assert_eq!(code, 2, "{name}: {stderr}");
        assert!(stderr.contains(expected), "{name}, {expected}: {stderr}");
        assert!(!folder.path().join("results").exists(), "{name}");
    }
    fs::write(folder.path().join("w.safetensors"), good).unwrap();
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
}
