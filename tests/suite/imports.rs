//! `runner import onnx`: graphs of other programs give the numbers that they should.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use burn::tensor::{Device, TensorData};
use burn_runner::check::network::examples::{examples, network};
use burn_runner::data::Folders;
use burn_runner::exchange::init::{Finder, load};
use burn_runner::exchange::onnx::import::{Imported, Options, import};
use burn_runner::exchange::onnx::messages::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto, tensor_shape_proto::Dimension,
    tensor_shape_proto::dimension, type_proto,
};
use burn_runner::exchange::onnx::to_bytes;
use burn_runner::ops::export::onnx_model;
use burn_runner::ops::import::outputs;
use runner_network::tensor::DynTensor;
use runner_network::testing::generator;
use serde_json::Value as Json;

use super::edit::Edit;
use super::exchange::graph;
use super::support::peers::python_with;
use super::support::{init_from, read_json, run};

/// The part of a case that may differ.
#[derive(Clone, Copy)]
struct Tolerance {
    /// Relative to each number.
    relative: f32,
    /// In any case.
    absolute: f32,
    /// Relative to the largest number.
    of_largest: f32,
}

/// That of the models that are only operators.
const EXACT: Tolerance = Tolerance {
    relative: 1e-5,
    absolute: 0.0,
    of_largest: 1e-5,
};
/// That of ONNX's own runner, whose expected numbers are rounded in places.
const ONNX: Tolerance = Tolerance {
    relative: 1e-3,
    absolute: 1e-7,
    of_largest: 0.0,
};

fn numbers(json: &Json) -> Vec<f32> {
    let numbers = json["values"].as_array().unwrap().iter();
    let number = |number: &Json| number.as_f64().unwrap_or(f64::NAN) as f32;
    numbers.map(number).collect()
}

/// The inputs of a case as items of a network: item by item, those of several inputs one after the other.
fn batch(imported: &Imported, case: &Json) -> TensorData {
    let all = case["inputs"].as_array().unwrap();
    let named = |name: &String| all.iter().find(|input| input["name"] == name.as_str());
    let inputs = imported
        .inputs
        .iter()
        .map(|name| numbers(named(name).unwrap()));
    let inputs: Vec<Vec<f32>> = inputs.collect();
    let per_item: usize = imported.network.items.dims.iter().product();
    let total: usize = inputs.iter().map(Vec::len).sum();
    let num = total / per_item;
    let row = |item: usize| {
        inputs.iter().flat_map(move |input| {
            let size = input.len() / num;
            input[item * size..(item + 1) * size].to_vec()
        })
    };
    let values: Vec<f32> = (0..num).flat_map(row).collect();
    let shape = [&[num], imported.network.items.dims.as_slice()].concat();
    if imported.network.items.vocabulary.is_some() {
        let tokens = values.iter().map(|token| *token as i64).collect::<Vec<_>>();
        return TensorData::new(tokens, shape);
    }
    TensorData::new(values, shape)
}

/// Why a case does not give what it should; nothing when it does.
fn wrong(folder: &Path, case: &Json, tolerance: Tolerance) -> Result<(), String> {
    let path = folder.join(case["file"].as_str().unwrap());
    let bytes = fs::read(&path).unwrap();
    let expected = case["outputs"].as_array().unwrap();
    for output in expected {
        let options = Options {
            output: Some(output["name"].as_str().unwrap().to_owned()),
            ..Options::default()
        };
        let imported = import(&bytes, Some(folder), &options).map_err(|e| e.to_string())?;
        for kind in case["layers"].as_array().into_iter().flatten() {
            let kind = kind.as_str().unwrap();
            let mut layers = imported.network.layers.iter();
            assert!(
                layers.any(|layer| layer.kind.type_name() == kind),
                "{} has no {kind}: {:#?}",
                case["name"],
                imported.lines
            );
        }
        let found = outputs(&imported, batch(&imported, case), &Device::flex())?;
        let (found, expected) = (found.try_to_vec::<f32>().unwrap(), numbers(output));
        if found.len() != expected.len() {
            return Err(format!(
                "gives {} values for {}",
                found.len(),
                expected.len()
            ));
        }
        let largest = expected
            .iter()
            .fold(0.0_f32, |most, value| most.max(value.abs()));
        for (ours, theirs) in found.iter().zip(&expected) {
            let allowed = (theirs.abs() * tolerance.relative + tolerance.absolute)
                .max(largest * tolerance.of_largest);
            // Doubles beyond 32-bit floats are infinite in both.
            let is_same = if theirs.is_finite() {
                (ours - theirs).abs() <= allowed
            } else {
                ours.is_nan() == theirs.is_nan() && !ours.is_finite()
            };
            if !is_same {
                return Err(format!("gives {ours} for {theirs}"));
            }
        }
    }
    Ok(())
}

/// What became of the cases of a folder: how many of each suite pass, and why the others do not.
fn checked(folder: &Path, tolerance: Tolerance) -> (BTreeMap<String, [usize; 2]>, Vec<String>) {
    let _generator = generator();
    let lines = fs::read_to_string(folder.join("cases.jsonl")).unwrap();
    let (mut counts, mut failed) = (BTreeMap::<String, [usize; 2]>::new(), Vec::new());
    for line in lines.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let suite = case["suite"].as_str().unwrap().to_owned();
        let count = counts.entry(suite.clone()).or_default();
        count[1] += 1;
        match wrong(folder, &case, tolerance) {
            Ok(()) => count[0] += 1,
            Err(reason) => {
                let name = case["name"].as_str().unwrap();
                failed.push(format!("{suite} {name} {}: {reason}", case["operators"]));
            }
        }
    }
    let mut table = String::new();
    for (suite, [passed, all]) in &counts {
        table += &format!("imported from ONNX: {suite}: {passed} of {all} pass\n");
    }
    for line in &failed {
        table += &format!("  {line}\n");
    }
    // What macros print is hidden when a test passes.
    let _ = write!(std::io::stderr(), "{table}");
    (counts, failed)
}

#[test]
fn onnxs_models_of_operators_give_what_they_should_or_are_refused_by_operator() {
    let Some(python) = python_with(&["onnx", "numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let suites = ["pytorch-converted", "pytorch-operator"].map(Path::new);
    python.run("onnx_cases.py", &[folder.path(), suites[0], suites[1]]);
    let (counts, failed) = checked(folder.path(), EXACT);
    let is_refused = |line: &&String| line.contains("cannot be converted to layers");
    let wrong: Vec<_> = failed.iter().filter(|line| !is_refused(line)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let [passed, all] = counts
        .values()
        .fold([0, 0], |sum, count| [sum[0] + count[0], sum[1] + count[1]]);
    assert_eq!(all, 117);
    assert!(passed * 10 >= all * 9, "{passed} of {all}");
}

/// Whatever is not refused gives the numbers that ONNX expects of the operator.
#[test]
fn onnxs_operators_give_what_they_should_or_are_refused() {
    let Some(python) = python_with(&["onnx", "numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    python.run("onnx_cases.py", &[folder.path(), Path::new("node")]);
    let (counts, failed) = checked(folder.path(), ONNX);
    let wrong: Vec<_> = failed.iter().filter(|it| it.contains(": gives ")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let [passed, _] = counts["node"];
    assert!(passed >= 300, "{passed}");
}

#[test]
fn layers_that_are_used_twice_and_constants_give_what_they_should() {
    let Some(python) = python_with(&["onnx", "numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    python.run("onnx_cases.py", &[folder.path(), Path::new("beside")]);
    let (counts, failed) = checked(folder.path(), EXACT);
    assert_eq!(counts["beside"], [39, 39], "{failed:#?}");
}

#[test]
fn onnxs_networks_give_what_they_should() {
    let Some(python) = python_with(&["onnx", "numpy"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    python.run("onnx_cases.py", &[folder.path(), Path::new("light")]);
    let (counts, failed) = checked(folder.path(), ONNX);
    assert_eq!(counts["light"], [9, 9], "{failed:#?}");
}

#[test]
fn networks_of_pytorch_give_what_they_give_there() {
    let Some(python) = python_with(&["torch", "torchvision", "onnx"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    python.run("torch_exports.py", &[folder.path()]);
    let (counts, failed) = checked(folder.path(), EXACT);
    let [passed, all] = counts["torch"];
    assert_eq!(passed, all, "{failed:#?}");
    // The layers have the modules' names, so the graph's own weights fit too; and the network trains.
    for name in ["resnet18", "lstm"] {
        let (code, _, stderr) = run(folder.path(), &["import", "onnx", &format!("{name}.onnx")]);
        assert_eq!(code, 0, "{stderr}");
        let spec = format!("{name}.toml");
        let path = folder.path().join(&spec);
        let text = fs::read_to_string(&path).unwrap();
        let from = format!("\"{name}.safetensors\"");
        fs::write(&path, text.edit(&from, &format!("\"{name}.onnx\""))).unwrap();
        let (code, _, stderr) = run(folder.path(), &["run", &spec, "--quiet"]);
        assert_eq!(code, 0, "{name}: {stderr}");
    }
}

/// Types of layers that do not come back from ONNX: the operators that they are there have no layer of their own here.
const ONE_WAY: &[&str] = &[
    // What they give does not depend on the input, and so is a constant.
    "{ type = 'parameter'",
    "{ type = 'constant'",
    // Comparisons of items, and what follows from them.
    "{ type = 'padding_mask'",
    // Sorted values and their places.
    "{ type = 'top_k'",
    "{ type = 'sparsemax'",
];

#[test]
fn layers_that_left_for_onnx_come_back() {
    let _generator = generator();
    let device = Device::flex();
    let mut refused = Vec::new();
    for example in examples() {
        let network = &example.network;
        let graph = graph(network);
        let Ok(bytes) = onnx_model(network, &graph) else {
            continue;
        };
        let imported = match import(&bytes, None, &Options::default()) {
            Ok(imported) => imported,
            Err(error) => {
                refused.push(format!("{}: {error}", example.layers));
                continue;
            }
        };
        // What is written is what was imported.
        let items: &[usize] = match network.items.vocabulary {
            Some(_) => &[],
            None => &network.items.dims,
        };
        let read = self::network(items, &imported.lines.join(", "));
        for (read, layer) in read.layers.iter().zip(&imported.network.layers) {
            assert_eq!(
                read.kind, layer.kind,
                "{}: {:#?}",
                example.layers, imported.lines
            );
        }
        let shape = [&[3], network.items.dims.as_slice()].concat();
        let num = shape.iter().product::<usize>();
        let data = match network.items.vocabulary {
            Some(vocabulary) => TensorData::new(
                (0..num)
                    .map(|at| (at % vocabulary) as i64)
                    .collect::<Vec<_>>(),
                shape,
            ),
            None => TensorData::new(
                (0..num)
                    .map(|at| (0.3 + at as f32).sin())
                    .collect::<Vec<_>>(),
                shape,
            ),
        };
        let wanted = graph
            .forward(DynTensor::from_data(data.clone(), &device))
            .into_data();
        let found = outputs(&imported, data, &device).unwrap();
        let (wanted, found) = (
            wanted.try_to_vec::<f32>().unwrap(),
            found.try_to_vec::<f32>().unwrap(),
        );
        assert_eq!(wanted.len(), found.len(), "{}", example.layers);
        let largest = wanted
            .iter()
            .fold(1e-3_f32, |most, value| most.max(value.abs()));
        for (wanted, found) in wanted.iter().zip(&found) {
            let error = (wanted - found).abs() / largest;
            assert!(
                error <= 1e-5,
                "{}: {found} for {wanted}: {:#?}",
                example.layers,
                imported.lines
            );
        }
    }
    let is_known = |line: &&String| ONE_WAY.iter().any(|kind| line.starts_with(kind));
    let unknown: Vec<_> = refused.iter().filter(|line| !is_known(line)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

pub fn value(name: &str, sizes: &[i64]) -> ValueInfoProto {
    let dim = sizes.iter().map(|size| Dimension {
        value: (*size > 0).then_some(dimension::Value::DimValue(*size)),
        ..Dimension::default()
    });
    let tensor = type_proto::Tensor {
        elem_type: Some(1),
        shape: Some(TensorShapeProto { dim: dim.collect() }),
    };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}

pub fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: Some(operator.into()),
        input: inputs.iter().map(|name| (*name).to_owned()).collect(),
        output: vec![output.into()],
        ..NodeProto::default()
    }
}

/// A graph of an input `x` and an output `y`.
pub fn model(sizes: &[i64], nodes: &[NodeProto], tensors: &[TensorProto]) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto {
            version: Some(18),
            ..OperatorSetIdProto::default()
        }],
        graph: Some(GraphProto {
            node: nodes.to_vec(),
            initializer: tensors.to_vec(),
            input: vec![value("x", sizes)],
            output: vec![value("y", sizes)],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

pub fn tensor(name: &str, dims: &[i64], bytes: usize) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(1),
        raw_data: Some(vec![0; bytes]),
        ..TensorProto::default()
    }
}

pub fn external(name: &str, location: &str) -> TensorProto {
    let entry = |key: &str, value: &str| StringStringEntryProto {
        key: Some(key.into()),
        value: Some(value.into()),
    };
    TensorProto {
        raw_data: None,
        data_location: Some(1),
        external_data: vec![entry("location", location), entry("length", "16")],
        ..tensor(name, &[4], 0)
    }
}

/// What is wrong with a file is said in one message, and nothing is written.
#[test]
fn graphs_that_are_no_networks_are_refused() {
    let relu = [node("Relu", &["x"], "y")];
    let add = [node("Add", &["x", "w"], "y")];
    let of_opset = |version: i64| {
        let mut model = model(&[1, 4], &relu, &[]);
        model.opset_import[0].version = Some(version);
        to_bytes(&model)
    };
    let good = to_bytes(&model(&[1, 4], &relu, &[]));
    let pads = TensorProto {
        data_type: Some(7),
        raw_data: Some(
            [0, 0, 0, 1_i64 << 40]
                .iter()
                .flat_map(|pad| pad.to_le_bytes())
                .collect(),
        ),
        ..tensor("w", &[4], 0)
    };
    let long: Vec<NodeProto> = (0..5_000)
        .map(|at| {
            let name = |at: usize| match at {
                0 => "x".to_owned(),
                5_000 => "y".to_owned(),
                at => format!("t{at}"),
            };
            node(["Relu", "Tanh"][at % 2], &[&name(at)], &name(at + 1))
        })
        .collect();
    let cases: [(&str, Vec<u8>, &str); 19] = [
        (
            "long",
            to_bytes(&model(&[1, 4], &long, &[])),
            "the network has more than 4096 layers",
        ),
        (
            "padded",
            to_bytes(&model(&[1, 4], &[node("Pad", &["x", "w"], "y")], &[pads])),
            "it pads an axis by 1099511627776 values",
        ),
        ("empty", Vec::new(), "it does not declare its operator sets"),
        ("text", b"layers = []".to_vec(), "not a valid ONNX file"),
        (
            "truncated",
            good[..good.len() - 3].to_vec(),
            "not a valid ONNX file",
        ),
        ("old", of_opset(3), "it uses version 3 of ONNX's operators"),
        (
            "new",
            of_opset(99),
            "it uses version 99 of ONNX's operators",
        ),
        (
            "unknown",
            to_bytes(&model(
                &[1, 4],
                &[node("NonMaxSuppression", &["x"], "y")],
                &[],
            )),
            "`NonMaxSuppression` (node `y`): there is no layer for it",
        ),
        (
            "cycle",
            to_bytes(&model(
                &[1, 4],
                &[node("Add", &["x", "z"], "y"), node("Relu", &["y"], "z")],
                &[],
            )),
            "its nodes form a cycle",
        ),
        (
            "itself",
            to_bytes(&model(&[1, 4], &[node("Add", &["x", "y"], "y")], &[])),
            "its nodes form a cycle",
        ),
        (
            "twice",
            to_bytes(&model(
                &[1, 4],
                &[node("Relu", &["x"], "y"), node("Abs", &["x"], "y")],
                &[],
            )),
            "two nodes compute `y`",
        ),
        (
            "nowhere",
            to_bytes(&model(&[1, 4], &[node("Add", &["x", "q"], "y")], &[])),
            "no node before it computes its input `q`",
        ),
        (
            "beyond",
            to_bytes(&model(
                &[1, 4],
                &add,
                &[tensor("w", &[1 << 40, 1 << 40], 16)],
            )),
            "larger than any memory",
        ),
        (
            "short",
            to_bytes(&model(
                &[1, 4],
                &add,
                &[tensor("w", &[1 << 20, 1 << 20], 16)],
            )),
            "needs 4398046511104 bytes, found 16",
        ),
        (
            "negative",
            to_bytes(&model(&[1, 4], &add, &[tensor("w", &[-4], 16)])),
            "it has a negative size",
        ),
        (
            "above",
            to_bytes(&model(&[1, 4], &add, &[external("w", "../secret")])),
            "outside the folder of the file",
        ),
        (
            "absolute",
            to_bytes(&model(&[1, 4], &add, &[external("w", "/etc/passwd")])),
            "outside the folder of the file",
        ),
        (
            "absent",
            to_bytes(&model(&[1, 4], &add, &[external("w", "absent.bin")])),
            "which cannot be read",
        ),
        (
            "dynamic",
            to_bytes(&model(&[0, 3, 0], &relu, &[])),
            "such as `--shape x=1,3,64`",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("secret"), [0; 16]).unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    for (name, bytes, reason) in cases {
        let file = format!("{name}.onnx");
        fs::write(inner.join(&file), bytes).unwrap();
        let (code, stdout, stderr) = run(&inner, &["import", "onnx", &file, "--out", "made"]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{name}: {stderr}");
        assert!(stderr.contains(reason), "{name}: {stderr}");
        assert!(!inner.join("made").exists(), "{name}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path().join("secret"), inner.join("link.bin")).unwrap();
        fs::write(
            inner.join("link.onnx"),
            to_bytes(&model(&[1, 4], &add, &[external("w", "link.bin")])),
        )
        .unwrap();
        let (code, _, stderr) = run(&inner, &["import", "onnx", "link.onnx"]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("outside the folder"), "{stderr}");
    }
}

/// Weights in a file beside the graph are read, and part of the identity of what is loaded.
#[test]
fn weights_beside_a_graph_are_loaded_from_its_folder_only() {
    let folder = tempfile::tempdir().unwrap();
    let plan = network(
        &[4],
        "{ type = 'linear', name = 'fc', out_features = 1, bias = false }",
    );
    let folders = Folders {
        base: folder.path().join("inner"),
        cache: folder.path().join("cache"),
    };
    fs::create_dir(&folders.base).unwrap();
    let weight = |location: &str| TensorProto {
        dims: vec![4, 1],
        ..external("fc.weight", location)
    };
    let gemm = [node("Gemm", &["x", "fc.weight"], "y")];
    let write = |location: &str, values: [f32; 4]| {
        let bytes = to_bytes(&model(&[1, 4], &gemm, &[weight(location)]));
        fs::write(folders.base.join("net.onnx"), bytes).unwrap();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        fs::write(folders.base.join(location), bytes).unwrap();
        let spec = init_from("net.onnx");
        Finder::new(&folders).find(&spec, &plan)
    };
    let first = write("net.data", [1.0, 2.0, 3.0, 4.0]).unwrap();
    let loaded = load(&first, &plan).unwrap();
    assert_eq!(
        loaded.values().next().unwrap().to_f32s(),
        [1.0, 2.0, 3.0, 4.0]
    );
    let second = write("net.data", [1.0, 2.0, 3.0, 5.0]).unwrap();
    assert_ne!(first.digest, second.digest);
    let changed = load(&first, &plan).unwrap_err().to_string();
    assert!(changed.contains("has changed since"), "{changed}");
    assert!(write("../net.data", [1.0; 4]).is_err());
}

/// A file becomes an experiment that `check` accepts and that trains, once.
#[test]
fn an_imported_network_is_an_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let examples = examples();
    let wanted = [
        "type = 'conv2d'",
        "type = 'embedding'",
        "type = 'lstm'",
        "type = 'parameter', shape = [3, 4]",
    ];
    for (at, kind) in wanted.iter().enumerate() {
        let example = examples
            .iter()
            .find(|example| example.layers.contains(kind))
            .unwrap();
        let bytes = onnx_model(&example.network, &graph(&example.network)).unwrap();
        let file = format!("net{at}.onnx");
        fs::write(folder.path().join(&file), bytes).unwrap();
        let (code, stdout, stderr) = run(folder.path(), &["import", "onnx", &file]);
        assert_eq!(code, 0, "{stderr}");
        let spec = format!("./net{at}.toml");
        assert_eq!(stdout.lines().next(), Some(spec.as_str()));
        let (code, _, stderr) = run(folder.path(), &["check", &spec]);
        assert_eq!(code, 0, "{kind}: {stderr}");
        let (code, _, stderr) = run(folder.path(), &["import", "onnx", &file]);
        assert_eq!(code, 2);
        assert!(stderr.contains("--force"), "{stderr}");
    }
    let (code, _, stderr) = run(folder.path(), &["run", "net0.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    // The weights of the graph are as good as those beside it.
    let text = fs::read_to_string(folder.path().join("net2.toml")).unwrap();
    let text = text.edit("net2.safetensors", "net2.onnx");
    fs::write(folder.path().join("direct.toml"), text).unwrap();
    let digests = ["net2.toml", "direct.toml"].map(|spec| {
        let (code, _, stderr) = run(folder.path(), &["run", spec, "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        let name = spec.trim_end_matches(".toml");
        let run = folder
            .path()
            .join(format!("results/{name}/runs/base-s1/summary.json"));
        read_json(&run)["weights_digest"].clone()
    });
    assert_eq!(digests[0], digests[1]);
}

/// Sizes that are open and outputs to choose are given on the command line.
#[test]
fn open_sizes_and_outputs_are_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = [node("Relu", &["x"], "y"), node("Exp", &["y"], "z")];
    let mut graph = model(&[0, 3, 0], &nodes, &[]);
    if let Some(graph) = &mut graph.graph {
        graph.output.push(value("z", &[0, 3, 0]));
    }
    fs::write(folder.path().join("open.onnx"), to_bytes(&graph)).unwrap();
    let import = |arguments: &[&str]| {
        let all = [&["import", "onnx", "open.onnx"], arguments].concat();
        run(folder.path(), &all)
    };
    let (code, _, stderr) = import(&["--shape", "x=1,3,5"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("--output y"), "{stderr}");
    let (code, _, stderr) = import(&["--output", "z"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("--shape x=1,3,64"), "{stderr}");
    for wrong in ["x=1,0,5", "x", "=1,3,5", "x=1,3,5,9999999999"] {
        assert_eq!(import(&["--shape", wrong, "--output", "z"]).0, 2, "{wrong}");
    }
    let (code, _, stderr) = import(&["--shape", "x=1,5", "--output", "z"]);
    let of_another_rank = "`x` has 3 axes, but `--shape` gives it 2 axes";
    assert!(code == 2 && stderr.contains(of_another_rank), "{stderr}");
    let (code, _, stderr) = import(&["--shape", "w=1,3,5", "--output", "z"]);
    assert!(code == 2 && stderr.contains("no input `w`"), "{stderr}");
    let (code, _, stderr) = import(&["--shape", "x=1,3,5", "--output", "z"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("items of shape [3, 5], outputs of shape [3, 5]"),
        "{stderr}"
    );
    let text = fs::read_to_string(folder.path().join("open.toml")).unwrap();
    assert!(
        text.contains("{ type = \"relu\" },\n    { type = \"exp\" },"),
        "{text}"
    );
}

/// Damaged files are refused or read, and end nothing.
#[test]
fn flipped_bytes_panic_nowhere() {
    let mut state = 1_u64;
    let mut next = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut num_damaged = 0;
    let kinds = [
        "conv2d",
        "lstm",
        "multi_head_attention",
        "embedding",
        "pad",
        "slice",
        "max_pool2d",
    ];
    for example in examples()
        .iter()
        .filter(|example| kinds.contains(&example.kind().as_str()))
    {
        let bytes = onnx_model(&example.network, &graph(&example.network)).unwrap();
        num_damaged += 1;
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + next(4) {
                let at = next(damaged.len());
                damaged[at] ^= 1 << next(8);
            }
            if next(4) == 0 {
                damaged.truncate(next(damaged.len()));
            }
            let _ = import(&damaged, None, &Options::default());
        }
    }
    assert!(num_damaged >= kinds.len(), "{num_damaged}");
}
