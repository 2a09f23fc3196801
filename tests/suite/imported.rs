//! `runner import onnx`: what is written is what was read, and files that would fill the memory are refused.

use std::fs;

use burn::tensor::{Device, Tensor, TensorData};
use burn_runner::check::network::examples::network;
use burn_runner::exchange::onnx::import::{Imported, Options, import};
use burn_runner::exchange::onnx::messages::attribute_proto::AttributeType;
use burn_runner::exchange::onnx::messages::{
    AttributeProto, GraphProto, NodeProto, StringStringEntryProto, TensorProto,
};
use burn_runner::exchange::onnx::to_bytes;
use burn_runner::ops::import::outputs;
use runner_network::graph::Graph;
use runner_network::tensor::DynTensor;
use runner_network::testing::generator;

use super::imports::{external, model, node, tensor};
use super::support::run;

fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Int.into()),
        i: Some(value),
        ..AttributeProto::default()
    }
}

fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Ints.into()),
        ints: values.to_vec(),
        ..AttributeProto::default()
    }
}

fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::String.into()),
        s: Some(value.into()),
        ..AttributeProto::default()
    }
}

fn with(mut node: NodeProto, attributes: &[AttributeProto]) -> NodeProto {
    node.attribute = attributes.to_vec();
    node
}

fn numbers(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        raw_data: Some(
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        ),
        ..tensor(name, dims, 0)
    }
}

fn integers(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        data_type: Some(7),
        raw_data: Some(
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        ),
        ..tensor(name, &[values.len() as i64], 0)
    }
}

fn scalar(name: &str, value: f32) -> TensorProto {
    numbers(name, &[], &[value])
}

/// The network of a graph from `x` of a shape to `y`; 0 is an open size of the batch.
fn imported(
    sizes: &[i64],
    nodes: &[NodeProto],
    tensors: &[TensorProto],
) -> Result<Imported, String> {
    let bytes = to_bytes(&model(sizes, nodes, tensors));
    import(&bytes, None, &Options::default())
        .map_err(|error| format!("{}: {}", error.message, error.notes.join("; ")))
}

/// The lines are read as the layers that were imported, with their settings.
fn is_written(imported: &Imported) {
    let items = &imported.network.items;
    let read = network(&items.dims, &imported.lines.join(", "));
    let kinds = |network: &burn_runner::check::network::Network| {
        let layers = network.layers.iter();
        layers.map(|layer| layer.kind.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        kinds(&read),
        kinds(&imported.network),
        "{:#?}",
        imported.lines
    );
}

/// `nn.Sequential` numbers its modules, and graphs have any names: an experiment file may have none of these.
#[test]
fn layers_get_names_that_a_file_may_have() {
    let long = "n".repeat(5000);
    let names = [
        "0", "3", "42", "input", "previous", "a.b", "layer_0", "*", "...", "ж", "a\"b\nc", &long,
    ];
    let mut nodes = Vec::new();
    let mut tensors = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let weight = format!("{name}.weight");
        let from = if at == 0 {
            "x".into()
        } else {
            format!("t{at}")
        };
        let to = if at + 1 == names.len() {
            "y".into()
        } else {
            format!("t{}", at + 1)
        };
        nodes.push(node("MatMul", &[&from, &weight], &format!("m{at}")));
        nodes.push(node("Tanh", &[&format!("m{at}")], &to));
        tensors.push(tensor(&weight, &[4, 4], 64));
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = to_bytes(&model(&[0, 4], &nodes, &tensors));
    fs::write(folder.path().join("net.onnx"), bytes).unwrap();
    let (code, _, stderr) = run(folder.path(), &["import", "onnx", "net.onnx"]);
    assert_eq!(code, 0, "{stderr}");
    let written = fs::read_to_string(folder.path().join("net.toml")).unwrap();
    for name in [
        "layer_0",
        "layer_3",
        "layer_42",
        "layer_input",
        "layer_previous",
        "layer_0_2",
    ] {
        assert!(
            written.contains(&format!("name = \"{name}\"")),
            "{name}: {written}"
        );
    }
    let (code, _, stderr) = run(folder.path(), &["check", "net.toml"]);
    assert_eq!(code, 0, "{stderr}\n{written}");
    // With weights for all layers.
    let (code, _, stderr) = run(folder.path(), &["run", "net.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}\n{written}");
}

/// Layers whose keys were once left out: their defaults compute something else.
#[test]
fn settings_are_written() {
    let cases: [(&str, Vec<NodeProto>, Vec<TensorProto>, &str); 5] = [
        (
            "cumsum",
            vec![node("CumSum", &["x", "a"], "y")],
            vec![integers("a", &[2])],
            "type = \"cumsum\", axis = 1",
        ),
        (
            "softplus",
            vec![
                node("Mul", &["x", "b"], "m"),
                node("Softplus", &["m"], "p"),
                node("Div", &["p", "b"], "d"),
                node("Greater", &["m", "t"], "g"),
                node("Where", &["g", "x", "d"], "y"),
            ],
            vec![scalar("b", 2.0), scalar("t", 3.0)],
            "type = \"softplus\", beta = 2.0, threshold = 3.0",
        ),
        (
            "threshold",
            vec![
                node("Greater", &["x", "t"], "g"),
                node("Where", &["g", "x", "v"], "y"),
            ],
            vec![scalar("t", 0.25), scalar("v", -3.0)],
            "type = \"threshold\", threshold = 0.25, value = -3.0",
        ),
        (
            "thresholded_relu",
            vec![node("ThresholdedRelu", &["x"], "y")],
            vec![],
            "type = \"thresholded_relu\"",
        ),
        (
            "hardtanh",
            vec![node("Clip", &["x", "a", "b"], "y")],
            vec![scalar("a", -0.5), scalar("b", 0.25)],
            "type = \"hardtanh\", min = -0.5, max = 0.25",
        ),
    ];
    for (name, nodes, tensors, wanted) in cases {
        let imported = imported(&[0, 3, 4], &nodes, &tensors)
            .unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        let text = imported.lines.join("\n");
        assert!(text.contains(wanted), "{name}: {text}");
        is_written(&imported);
    }
}

/// A name, the sizes of the input, the nodes and the constants of a graph.
type Case = (&'static str, Vec<i64>, Vec<NodeProto>, Vec<TensorProto>);

/// Small files that ask for large tensors: nothing of that size is computed, and the limit is stated.
#[test]
fn what_would_fill_the_memory_is_refused() {
    let kernel = || tensor("w", &[2, 2, 3, 3], 144);
    let images = [0, 2, 5, 5];
    let pads = |num: usize| ints("pads", &vec![50_000; num]);
    let shape = |num: usize| ints("kernel_shape", &vec![60_000; num]);
    let cases: Vec<Case> = vec![
        (
            "conv",
            images.to_vec(),
            vec![with(node("Conv", &["x", "w"], "y"), &[pads(4)])],
            vec![kernel()],
        ),
        (
            "uneven conv",
            images.to_vec(),
            vec![with(
                node("Conv", &["x", "w"], "y"),
                &[ints("pads", &[50_000, 50_000, 49_999, 50_000])],
            )],
            vec![kernel()],
        ),
        (
            "transposed conv",
            images.to_vec(),
            vec![with(
                node("ConvTranspose", &["x", "w"], "y"),
                &[ints("strides", &[20_000, 20_000])],
            )],
            vec![kernel()],
        ),
        (
            "pool",
            images.to_vec(),
            vec![with(
                node("MaxPool", &["x"], "y"),
                &[
                    shape(2),
                    ints("pads", &[59_998; 4]),
                    ints("strides", &[1, 1]),
                ],
            )],
            vec![],
        ),
        (
            "pad",
            images.to_vec(),
            vec![node("Pad", &["x", "p"], "y")],
            vec![integers("p", &[0, 0, 50_000, 50_000, 0, 0, 50_000, 50_000])],
        ),
        (
            "resize by scales",
            images.to_vec(),
            vec![node("Resize", &["x", "", "s"], "y")],
            vec![numbers("s", &[4], &[1.0, 1.0, 10_000.0, 10_000.0])],
        ),
        (
            "resize to sizes",
            images.to_vec(),
            vec![with(
                node("Resize", &["x", "", "", "z"], "y"),
                &[ints("axes", &[2, 3])],
            )],
            vec![integers("z", &[50_000, 50_000])],
        ),
        (
            "tile",
            vec![0, 64, 64, 64],
            vec![node("Tile", &["x", "t"], "y")],
            vec![integers("t", &[1, 16, 16, 16])],
        ),
        (
            "expand",
            vec![0, 1, 1, 4000],
            vec![
                node("Expand", &["x", "t"], "a"),
                node("Concat", &["a"; 64], "y"),
            ]
            .into_iter()
            .map(|it| match it.op_type.as_deref() {
                Some("Concat") => with(it, &[int("axis", 1)]),
                _ => it,
            })
            .collect(),
            vec![integers("t", &[1, 64, 64, 1])],
        ),
        (
            "constant of shape",
            vec![0, 4],
            vec![
                node("ConstantOfShape", &["s"], "c"),
                node("MatMul", &["x", "c"], "y"),
            ],
            vec![integers("s", &[4, 10_000_000_000])],
        ),
        (
            "repeats of nothing",
            vec![0, 4],
            vec![
                node("Tile", &["w", "t"], "c"),
                node("ReduceMax", &["c"], "m"),
                node("Mul", &["x", "m"], "y"),
            ],
            vec![
                numbers("w", &[2, 2], &[1.0; 4]),
                integers("t", &[1 << 40, 1 << 40]),
            ],
        ),
        (
            "input",
            vec![0, 18_000, 16_000],
            vec![node("Relu", &["x"], "y")],
            vec![],
        ),
        (
            "all together",
            vec![0, 16, 1024, 1024],
            (0..200)
                .map(|at| {
                    let name = |at: usize| match at {
                        0 => "x".to_owned(),
                        200 => "y".to_owned(),
                        at => format!("t{at}"),
                    };
                    node(["Exp", "Tanh"][at % 2], &[&name(at)], &name(at + 1))
                })
                .collect(),
            vec![],
        ),
    ];
    for (name, sizes, nodes, tensors) in cases {
        let refused = imported(&sizes, &nodes, &tensors).map(|imported| imported.lines);
        let message = refused.expect_err(name);
        assert!(message.contains("GiB"), "{name}: {message}");
    }
}

#[test]
fn what_would_be_read_as_something_else_is_refused() {
    let channels = |name: &str| numbers(name, &[4], &[1.0; 4]);
    let branch = GraphProto {
        node: vec![node("Relu", &["x"], "t")],
        ..GraphProto::default()
    };
    let branches = ["then_branch", "else_branch"].map(|name| AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Graph.into()),
        g: Some(branch.clone()),
        ..AttributeProto::default()
    });
    let cast =
        |to: i64, from: &str, name: &str| with(node("Cast", &[from], name), &[int("to", to)]);
    let cases: Vec<(&str, Vec<NodeProto>, Vec<TensorProto>, &str)> = vec![
        (
            "training",
            vec![with(
                node("BatchNormalization", &["x", "s", "b", "m", "v"], "y"),
                &[int("training_mode", 1)],
            )],
            ["s", "b", "m", "v"].map(channels).to_vec(),
            "it is in training mode: export the model in evaluation mode",
        ),
        (
            "cast",
            vec![cast(7, "x", "i"), cast(1, "i", "y")],
            vec![],
            "`Cast` (node `i`): it rounds numbers to integers",
        ),
        (
            "cast like",
            vec![node("CastLike", &["x", "l"], "i"), cast(1, "i", "y")],
            vec![integers("l", &[1])],
            "`CastLike` (node `i`): it rounds numbers to integers",
        ),
        (
            "boolean",
            vec![cast(9, "x", "i"), cast(1, "i", "y")],
            vec![],
            "it turns numbers into booleans",
        ),
        (
            "text",
            vec![with(node("Softmax", &["x"], "y"), &[text("axis", "one")])],
            vec![],
            "its attribute `axis` must be of the type INT, found STRING",
        ),
        (
            "text as number",
            vec![with(
                node("Softmax", &["x"], "y"),
                &[AttributeProto {
                    r#type: Some(AttributeType::Int.into()),
                    ..text("axis", "one")
                }],
            )],
            vec![],
            "its attribute `axis` must be of the type INT, found STRING",
        ),
        (
            "number for a list",
            vec![with(node("Transpose", &["x"], "y"), &[int("perm", 0)])],
            vec![],
            "its attribute `perm` must be of the type INTS, found INT",
        ),
        (
            "branches",
            vec![with(node("If", &["c"], "y"), &branches)],
            vec![TensorProto {
                data_type: Some(9),
                raw_data: Some(vec![1]),
                ..tensor("c", &[], 0)
            }],
            "`If` (node `y`): it contains graphs of its own",
        ),
    ];
    for (name, nodes, tensors, reason) in cases {
        let message = imported(&[0, 4], &nodes, &tensors)
            .map(|it| it.lines)
            .expect_err(name);
        assert!(message.contains(reason), "{name}: {message}");
    }
    // Items that are integers stay so.
    let mut of_integers = model(&[0, 4], &[cast(7, "x", "i"), cast(1, "i", "y")], &[]);
    let graph = of_integers.graph.as_mut().unwrap();
    let kind = graph.input[0]
        .r#type
        .as_mut()
        .unwrap()
        .value
        .as_mut()
        .unwrap();
    if let burn_runner::exchange::onnx::messages::type_proto::Value::TensorType(kind) = kind {
        kind.elem_type = Some(6);
    }
    let imported = import(&to_bytes(&of_integers), None, &Options::default()).unwrap();
    assert_eq!(imported.lines, ["{ type = \"identity\" }"]);
}

/// The size of the batch is open in the file, and no number stands for it in messages.
#[test]
fn messages_call_the_batch_by_its_name() {
    let resize = [node("Resize", &["x", "", "s"], "y")];
    let scales = numbers("s", &[4], &[1.0, 1.0, 1.6, 1.0]);
    let message = imported(&[0, 3, 6, 7], &resize, &[scales])
        .map(|it| it.lines)
        .unwrap_err();
    assert!(
        message.contains("its scales do not make [batch, 3, 6, 7] whole sizes"),
        "{message}"
    );
    let merged = [
        node("Reshape", &["x", "s"], "r"),
        node("Reshape", &["r", "t"], "y"),
    ];
    let sizes = [integers("s", &[-1, 2]), integers("t", &[5, -1])];
    let message = imported(&[0, 4], &merged, &sizes)
        .map(|it| it.lines)
        .unwrap_err();
    assert!(message.contains("[batch * 2, 2]"), "{message}");
}

/// Places in other files that lead out of the folder and back stay inside.
#[test]
fn files_beside_a_graph_may_be_named_by_any_path_inside() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir_all(inner.join("sub")).unwrap();
    fs::write(inner.join("w.bin"), [0; 16]).unwrap();
    fs::write(folder.path().join("w.bin"), [0; 16]).unwrap();
    let add = [node("Add", &["x", "w"], "y")];
    let of = |location: &str, length: &str| {
        let mut weight = external("w", location);
        weight.external_data[1] = StringStringEntryProto {
            key: Some("length".into()),
            value: Some(length.into()),
        };
        let bytes = to_bytes(&model(&[1, 4], &add, &[weight]));
        let read = import(&bytes, Some(&inner), &Options::default());
        read.map(|it| it.lines.len()).map_err(|error| error.message)
    };
    for inside in ["w.bin", "./w.bin", "sub/../w.bin", "sub/./../././w.bin"] {
        assert_eq!(of(inside, "16"), Ok(1), "{inside}");
    }
    for outside in [
        "../w.bin",
        "sub/../../w.bin",
        "./../inner/w.bin",
        "/etc/passwd",
    ] {
        let wrong = of(outside, "16").unwrap_err();
        assert!(wrong.contains("outside the folder"), "{outside}: {wrong}");
    }
    let wrong = of("w.bin", "12").unwrap_err();
    assert!(
        wrong.contains("its values need 16 bytes, but its `length` in `w.bin` is 12"),
        "{wrong}"
    );
}

/// A vector divided by its length, as PyTorch's `F.normalize` is exported: the vector 0 stays 0, and has a finite gradient.
#[test]
fn the_gradient_of_a_normalized_zero_is_finite() {
    let _generator = generator();
    let clip = [
        with(node("ReduceL2", &["x", "a"], "n"), &[int("keepdims", 1)]),
        node("Clip", &["n", "e"], "c"),
        node("Div", &["x", "c"], "y"),
    ];
    let axes = || integers("a", &[1]);
    let cases = [
        imported(&[0, 3], &clip, &[axes(), scalar("e", 1e-12)]),
        imported(&[0, 3], &[node("LpNormalization", &["x"], "y")], &[]),
    ];
    for imported in cases {
        let imported = imported.unwrap();
        is_written(&imported);
        let values = TensorData::new(vec![0.0_f32, 0.0, 0.0, 3.0, 0.0, -4.0], [2, 3]);
        let found = outputs(&imported, values.clone(), &Device::flex()).unwrap();
        let found = found.try_to_vec::<f32>().unwrap();
        for (found, wanted) in found.iter().zip([0.0, 0.0, 0.0, 0.6, 0.0, -0.8]) {
            assert!((found - wanted).abs() < 1e-6, "{found} for {wanted}");
        }
        let device = Device::flex().autodiff();
        let graph = Graph::new(&imported.network, Default::default(), &device);
        let x = Tensor::<2>::from_data(values, &device).require_grad();
        let output = graph.forward(DynTensor::R2(x.clone())).flatten();
        let gradients = output.slice([0..2, 1..2]).sum().backward();
        let gradient = x.grad(&gradients).unwrap().into_data();
        let gradient: Vec<f32> = gradient.iter::<f32>().collect();
        assert!(
            gradient.iter().all(|value| value.is_finite()),
            "{gradient:?}"
        );
        assert!((gradient[4] - 0.2).abs() < 1e-6, "{gradient:?}");
    }
}
