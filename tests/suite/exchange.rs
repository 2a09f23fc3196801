//! Networks that leave for PyTorch and onnxruntime: every type of layer and every preset gives the same numbers there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, TensorData};
use burn_runner::check::network::Network;
use burn_runner::check::network::examples::{Example, example, examples, graph_examples};
use burn_runner::ops::export::{self, ExportError};
use burn_runner::spec::model::layer::LayerType;
use burn_runner::spec::model::preset::ModelType;
use burn_runner::spec::section::Choice;
use runner_network::graph::Graph;
use serde_json::{Value as Json, json};

use super::presets::network as preset_network;
use super::support::peers::python_with;
use super::support::{IRIS, completed, plan_in, read_json, root, run};

/// Settings in which programs differ, besides those of the layers' own examples.
const EDGES: &[(&[usize], &str)] = &[
    (
        &[2, 7, 8],
        "{ type = 'avg_pool2d', kernel_size = 3, stride = 2, padding = 'same', count_include_pad = false }",
    ),
    (
        &[2, 8],
        "{ type = 'avg_pool1d', kernel_size = 4, padding = 'same', stride = 1 }",
    ),
    (
        &[2, 8],
        "{ type = 'avg_pool1d', kernel_size = 3, stride = 2, padding = 1, ceil_mode = true }",
    ),
    (
        &[2, 8],
        "{ type = 'avg_pool1d', kernel_size = 3, stride = 2, padding = 1, ceil_mode = true, count_include_pad = false }",
    ),
    (
        &[2, 9],
        "{ type = 'max_pool1d', kernel_size = 3, dilation = 2, padding = 'same', stride = 1 }",
    ),
    (
        &[2, 9],
        "{ type = 'max_pool1d', kernel_size = 2, stride = 3, padding = 1, ceil_mode = true }",
    ),
    (
        &[2, 8, 9],
        "{ type = 'max_pool2d', kernel_size = 3, dilation = 2, padding = 'same', stride = 2 }",
    ),
    (
        &[6, 4, 3],
        "{ type = 'local_response_norm', size = 4, alpha = 0.5, beta = 0.6, k = 2.0 }",
    ),
    (
        &[6, 4],
        "{ type = 'local_response_norm', size = 5, alpha = 0.5 }",
    ),
    (
        &[6, 4],
        "{ type = 'instance_norm', affine = false, epsilon = 1e-2 }",
    ),
    (
        &[6, 4, 3, 2],
        "{ type = 'group_norm', num_groups = 2, epsilon = 1e-2 }",
    ),
    (&[4, 5], "{ type = 'batch_norm', epsilon = 1e-2 }"),
    (&[3, 4, 2, 2], "{ type = 'batch_norm' }"),
    (&[3, 5], "{ type = 'interpolate1d', output_size = 3 }"),
    (
        &[3, 5],
        "{ type = 'interpolate1d', output_size = 7, mode = 'linear', align_corners = true }",
    ),
    (
        &[2, 6, 7],
        "{ type = 'interpolate2d', output_size = [3, 4], mode = 'linear' }",
    ),
    (
        &[2, 6, 7],
        "{ type = 'interpolate2d', output_size = [4, 9], mode = 'nearest' }",
    ),
    (
        &[2, 6, 7],
        "{ type = 'interpolate2d', output_size = [9, 5], mode = 'cubic', align_corners = true }",
    ),
    (
        &[2, 5, 4, 3],
        "{ type = 'adaptive_avg_pool3d', output_size = [2, 3, 2] }",
    ),
    // PyTorch refuses windows that are larger than what is not padded.
    (
        &[2, 3, 5, 2],
        "{ type = 'avg_pool3d', kernel_size = [3, 3, 4], stride = [3, 3, 1], padding = [1, 0, 2] }",
    ),
    (
        &[2, 5, 4],
        "{ type = 'adaptive_avg_pool2d', output_size = 1 }",
    ),
    (&[2, 7], "{ type = 'adaptive_avg_pool1d', output_size = 3 }"),
    // Many values are 0.
    (
        &[4, 9],
        "{ type = 'relu' }, { type = 'top_k', k = 6, fill = -1.0 }",
    ),
    (&[5, 4], "{ type = 'gru', hidden_size = 3, bias = false }"),
    (
        &[5, 4],
        "{ type = 'gru', hidden_size = 3, bidirectional = true, output = 'last' }",
    ),
    (
        &[5, 4],
        "{ type = 'lstm', hidden_size = 3, bidirectional = true, bias = false }",
    ),
    (
        &[5, 4],
        "{ type = 'rnn', hidden_size = 3, bidirectional = true }",
    ),
    (
        &[5, 6],
        "{ type = 'transformer_encoder', num_layers = 2, num_heads = 2, feedforward_size = 7, norm_first = true, activation = 'relu' }",
    ),
    (
        &[5, 6],
        "{ type = 'slice', end = 3, name = 'head' }, { type = 'transformer_decoder', num_layers = 2, num_heads = 3, feedforward_size = 7, inputs = ['head', 'input'] }",
    ),
    (
        &[5, 6],
        "{ type = 'slice', end = 3, name = 'head' }, { type = 'multi_head_attention', num_heads = 2, causal = true, inputs = ['head', 'input'] }",
    ),
    (
        &[5, 6],
        "{ type = 'linear', out_features = 4, name = 'narrow' }, { type = 'multi_head_attention', num_heads = 2, causal = true, inputs = ['narrow', 'input'] }",
    ),
    (
        &[5, 6],
        "{ type = 'multi_head_attention', num_heads = 2, head_dim = 8, rotary = true, theta = 50.0, rotary_type = 'yarn', rotary_scaling = 4.0, rotary_length = 32, rotary_high = 8.0 }",
    ),
    (
        &[3, 4],
        "{ type = 'softplus', beta = 2.0, threshold = 1.0 }",
    ),
    (
        &[3, 4],
        "{ type = 'elu', alpha = 2.0 }, { type = 'celu', alpha = 0.5 }, { type = 'hardtanh', min = -0.5, max = 0.7 }",
    ),
    (
        &[3, 4],
        "{ type = 'shrink', lambda = 0.3, bias = 0.1 }, { type = 'threshold', threshold = 0.1, value = -2.0 }",
    ),
    (
        &[3, 4],
        "{ type = 'rrelu', lower = 0.1, upper = 0.4 }, { type = 'hard_sigmoid', alpha = 0.3, beta = 0.4 }",
    ),
    (
        &[2, 8],
        "{ type = 'conv1d', out_channels = 3, kernel_size = 4, stride = 3, padding = 'same' }",
    ),
    (
        &[4, 3, 5],
        "{ type = 'conv_transpose2d', out_channels = 6, kernel_size = 3, stride = [2, 3], padding = 1, output_padding = [1, 2], groups = 2 }",
    ),
    (
        &[5],
        "{ type = 'prelu', per_channel = true }, { type = 'mean' }",
    ),
    (
        &[4, 6],
        "{ type = 'slice', axis = 1, start = -4, end = -1 }, { type = 'flatten' }, { type = 'max' }",
    ),
    (
        &[3, 4, 2],
        "{ type = 'flatten', end_axis = 1 }, { type = 'swiglu', out_features = 3 }",
    ),
    (
        &[4],
        "{ type = 'linear', name = 'forward', out_features = 4 }, { type = 'linear', name = 'a-b', out_features = 4 }, { type = 'add', inputs = ['forward', 'a-b', 'input'] }",
    ),
    (
        &[],
        "{ type = 'embedding', embedding_dim = 4 }, { type = 'rotary_encoding' }, { type = 'positional_encoding' }, { type = 'linear', out_features = 2, bias = false }",
    ),
];

/// Sets every parameter to numbers of its own, so that no two of them can be exchanged unseen.
#[derive(Default)]
struct Fill {
    path: Vec<String>,
    number: usize,
}

/// Matrices are \[inputs, outputs\], kernels \[outputs, inputs, ..\].
fn fan_in(dims: &[usize]) -> f64 {
    let fan: usize = match dims {
        [inputs, _] => *inputs,
        [_, rest @ ..] => rest.iter().product(),
        [] => 1,
    };
    fan as f64
}

impl ModuleMapper for Fill {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.lazy_shape();
        let dims: [usize; D] = shape.dims();
        self.number += 1;
        // Variances are positive, and scales not near zero.
        let last = self.path.last().map_or("", String::as_str);
        // Without `affine`, they are constants.
        if matches!(last, "gamma" | "beta") && param.is_initialized() {
            return param;
        }
        let (middle, width) = match last {
            "running_var" | "gamma" => (1.2, 0.5),
            // Activations of deep networks neither grow nor vanish.
            "weight" => (0.0, 0.6_f64.min((6.0 / fan_in(&dims)).sqrt())),
            _ => (0.0, 0.6),
        };
        let value = |at: usize| {
            let angle = 1.7 * self.number as f64 + 0.83 * at as f64;
            // Waves have too little variety for the matrices of deep networks.
            let wave = if last == "weight" {
                2.0 * (43_758.545 * (12.9898 * angle).sin().abs()).fract() - 1.0
            } else {
                angle.sin()
            };
            (middle + width * wave) as f32
        };
        let values: Vec<f32> = (0..shape.num_elements()).map(value).collect();
        let data = TensorData::new(values, dims.to_vec());
        Param::initialized(param.id, Tensor::from_data(data, &param.lazy_device()))
    }
}

/// The graph of a network with numbers of [`Fill`].
pub fn graph(network: &Network) -> Graph {
    Graph::new(network, Default::default(), &Device::flex()).map(&mut Fill::default())
}

/// A network of each preset, over what it takes.
fn presets() -> Vec<(&'static str, Network)> {
    let images = "data = { type = 'digits' }";
    let series = "data = { type = 'sine_windows', length = 12 }";
    let brackets = "data = { type = 'brackets', length = 6 }";
    let features = "input = 'features', ";
    let pictures = "data = { type = 'shapes', size = 32, target = 'class' }";
    let harbour = "data = { type = 'text', path = 'data/harbour.txt', tokens = { tokenizer = 'char', length = 8 } }";
    let masks = "data = { type = 'shapes', size = 16, target = 'mask' }";
    let of = |kind: ModelType| match kind {
        ModelType::Layers | ModelType::Hub => Vec::new(),
        ModelType::Mlp => vec![(images, "hidden = [9], activation = 'gelu', dropout = 0.1")],
        ModelType::Cnn => vec![(images, "channels = [4, 6], hidden = [7], padding = 'same'")],
        ModelType::Resnet => vec![(images, "channels = [4, 6], blocks = 2")],
        ModelType::MobilenetV2 | ModelType::EfficientnetB0 => vec![(pictures, "")],
        ModelType::Densenet => vec![(pictures, "growth = 4")],
        ModelType::Convnext => vec![(pictures, "channels = 8")],
        ModelType::Vit => vec![(
            pictures,
            "image_size = 32, patch_size = 8, d_model = 8, num_heads = 2, num_layers = 2, feedforward_size = 9",
        )],
        ModelType::Unet => vec![(masks, "channels = 4, levels = 3")],
        ModelType::Vae => vec![(
            "task = { type = 'autoencoding' }\ndata = { type = 'digits' }",
            "image_size = 8, hidden_size = 9, latent_size = 3",
        )],
        ModelType::FtTransformer => vec![(
            "data = { type = 'iris' }",
            "features = 4, d_model = 8, num_heads = 2, feedforward_size = 9, num_layers = 2",
        )],
        ModelType::Dlinoss => vec![(series, "d_model = 5, state_size = 4, num_layers = 2")],
        ModelType::Tcn => vec![(series, "channels = 4, blocks = 3")],
        ModelType::InceptionTime => vec![(series, "filters = 3, kernel_size = 9")],
        // Below: no generated data has recordings.
        ModelType::Eegnet => Vec::new(),
        ModelType::Lstm => vec![
            (
                series,
                "hidden_size = 5, num_layers = 2, bidirectional = true",
            ),
            (brackets, "input = 'tokens', hidden_size = 4"),
        ],
        ModelType::TransformerClassifier => vec![
            (brackets, "d_model = 8, num_heads = 2, feedforward_size = 9"),
            (series, features),
        ],
        ModelType::TransformerLm => {
            vec![(harbour, "d_model = 8, num_heads = 2, feedforward_size = 9")]
        }
        ModelType::Bert => vec![(
            brackets,
            "d_model = 8, num_heads = 2, feedforward_size = 9, max_length = 12, num_layers = 2",
        )],
        ModelType::Gpt2 => vec![(
            harbour,
            "d_model = 8, num_heads = 2, feedforward_size = 9, max_length = 12, num_layers = 2",
        )],
        ModelType::Llama => vec![
            (
                harbour,
                "d_model = 8, num_heads = 4, num_kv_heads = 2, feedforward_size = 9, num_layers = 2",
            ),
            (
                harbour,
                "d_model = 8, num_heads = 2, num_kv_heads = 2, feedforward_size = 9, rotary_scaling = 2.0, tie = false",
            ),
        ],
    };
    let all = ModelType::ALL.iter().flat_map(|(kind, name, _)| {
        of(*kind)
            .into_iter()
            .map(move |(data, keys)| (*name, data, keys))
    });
    let planned = all.map(|(name, data, keys)| {
        let model = format!(
            "model = {{ type = '{name}', {} }}",
            keys.trim_end_matches(", ")
        );
        let text = format!(
            "{data}\n{model}\noptimizer = {{ type = 'adam', learning_rate = 1e-3 }}\n\
             train = {{ epochs = 1, batch_size = 8 }}\n"
        );
        let planned = plan_in(Some(&root().join("experiments")), "preset.toml", &text);
        let (planned, _) = planned.unwrap_or_else(|e| panic!("{text}\n{e}"));
        (name, planned.runs[0].network.clone())
    });
    let keys = [("channels", 3), ("kernel_size", 8)];
    let eegnet = preset_network(ModelType::Eegnet, &keys, &[3, 64], &[4]);
    planned.chain([("eegnet", eegnet)]).collect()
}

/// A network as source of PyTorch, in a folder.
pub fn write_pytorch(folder: &Path, network: &Network, graph: &Graph) -> Result<(), ExportError> {
    let about = export::About::default();
    let made = export::pytorch(network, graph, &Device::flex(), &about)?;
    fs::create_dir(folder).unwrap();
    for (name, bytes) in made.files() {
        fs::write(folder.join(name), bytes).unwrap();
    }
    Ok(())
}

/// Writes what a network is for the two programs, with what it gives here.
fn write(folder: &Path, network: &Network) {
    let graph = graph(network);
    write_pytorch(folder, network, &graph).unwrap_or_else(|e| panic!("{e}"));
    let model = export::onnx_model(network, &graph).unwrap_or_else(|e| panic!("{e}"));
    fs::write(folder.join("model.onnx"), model).unwrap();
}

/// Every type of layer of the table and every preset has a case: one that is added without is named.
#[test]
fn every_layer_and_preset_gives_the_same_numbers_in_pytorch_and_onnxruntime() {
    let presets = presets();
    let covered: BTreeSet<&str> = presets.iter().map(|(name, _)| *name).collect();
    let missing = ModelType::ALL
        .iter()
        .filter(|(_, name, _)| !["layers", "hub"].contains(name) && !covered.contains(name));
    assert_eq!(missing.count(), 0, "presets without a case");

    let examples = examples();
    let mut covered = BTreeSet::new();
    for example in &examples {
        covered.extend(
            example
                .network
                .layers
                .iter()
                .map(|layer| layer.kind.type_name()),
        );
    }
    // Those over graphs are refused.
    covered.extend(graph_examples().iter().map(Example::kind));
    let missing: Vec<_> = LayerType::ALL
        .iter()
        .filter(|(_, name, _)| !covered.contains(*name))
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");

    let folder = tempfile::tempdir().unwrap();
    // What draws random numbers is refused.
    let layers = examples
        .iter()
        .filter(|example| example.kind() != "noise")
        .map(|example| (example.layers.as_str(), &example.network));
    let presets = presets.iter().map(|(name, network)| (*name, network));
    let edges: Vec<Example> = EDGES
        .iter()
        .map(|(items, layers)| example(items, layers))
        .collect();
    let edges = edges
        .iter()
        .map(|edge| (edge.layers.as_str(), &edge.network));
    let mut index = String::new();
    for (number, (name, network)) in layers.chain(presets).chain(edges).enumerate() {
        let case = folder.path().join(format!("{number}"));
        write(&case, network);
        index += &format!("{name}\n");
    }
    fs::write(folder.path().join("index.txt"), index).unwrap();
    let Some(python) = python_with(&["torch", "onnx", "onnxruntime", "safetensors"]) else {
        return;
    };
    let printed = python.run("exchange_check.py", &[folder.path()]);
    println!("{printed}");
}

#[test]
fn a_layer_that_cannot_be_expressed_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let network = example(
        &[4],
        "{ type = 'soft_shrink', name = 'odd', lambda = -1.0 }",
    )
    .network;
    let graph = graph(&network);
    let place = folder.path().join("model");
    let refused = write_pytorch(&place, &network, &graph);
    let message =
        "layer `odd` of type `soft_shrink` has a `lambda` of -1, but PyTorch requires at least 0";
    assert_eq!(refused.unwrap_err().to_string(), message);
    assert!(!place.exists());
    let refused = export::onnx_model(&network, &graph).unwrap_err();
    assert_eq!(refused.to_string(), message);
}

/// The check of the file itself, as users run it: right as it was written, and not with other weights.
#[test]
fn a_model_of_python_checks_itself() {
    let folder = tempfile::tempdir().unwrap();
    let network = example(&[5], "{ type = 'linear', out_features = 3 }").network;
    let graph = graph(&network);
    let place = folder.path().join("model");
    write_pytorch(&place, &network, &graph).unwrap();
    let source = fs::read_to_string(place.join("model.py")).unwrap();
    insta::assert_snapshot!(source);
    let Some(python) = python_with(&["torch", "safetensors"]) else {
        return;
    };
    let output = python.output(&place.join("model.py"), &[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        said.starts_with("largest relative difference from the example: "),
        "{said}"
    );
    let path = place.join("weights.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x40;
    fs::write(&path, bytes).unwrap();
    assert_eq!(
        python.output(&place.join("model.py"), &[]).status.code(),
        Some(1)
    );
}

/// A folder with a trained run, and the run's path in it.
fn trained() -> (tempfile::TempDir, String) {
    let folder = completed(IRIS, &[]);
    let runs = fs::read_dir(folder.path().join("results/spec/runs")).unwrap();
    let run = runs
        .flatten()
        .next()
        .unwrap()
        .file_name()
        .into_string()
        .unwrap();
    (folder, format!("results/spec/runs/{run}"))
}

/// Exports in a folder; what was said.
fn exported(folder: &Path, arguments: &[&str]) -> String {
    let (code, _, said) = run(folder, &[&["export"], arguments].concat());
    assert_eq!(code, 0, "{said}");
    said
}

fn numbers(list: &Json) -> Vec<f64> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect()
}

/// PyTorch multiplies by [outputs, inputs]: a file with Burn's matrices under PyTorch's names would be wrong.
#[test]
fn weights_are_turned_for_pytorch() {
    let (folder, run) = trained();
    let export = |names: &str, out: &str| {
        let arguments = [
            "weights",
            &run,
            "--format",
            "pytorch-json",
            "--names",
            names,
            "--out",
            out,
        ];
        exported(folder.path(), &arguments);
        read_json(&folder.path().join(out))
    };
    let torch = export("pytorch", "torch.json");
    let burn = export("burn", "burn.json");
    let keys: Vec<_> = torch.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "linear_1_weight",
            "linear_1_bias",
            "linear_2_weight",
            "linear_2_bias"
        ]
    );
    let rows = |weights: &Json| -> Vec<Vec<f64>> {
        weights["linear_1_weight"]
            .as_array()
            .unwrap()
            .iter()
            .map(numbers)
            .collect()
    };
    let (torch_rows, burn_rows) = (rows(&torch), rows(&burn));
    assert_eq!((torch_rows.len(), torch_rows[0].len()), (16, 4));
    assert_eq!((burn_rows.len(), burn_rows[0].len()), (4, 16));
    for (output, row) in torch_rows.iter().enumerate() {
        let column: Vec<f64> = burn_rows.iter().map(|row| row[output]).collect();
        assert_eq!(*row, column);
    }
    assert_eq!(torch["linear_1_bias"], burn["linear_1_bias"]);
}

#[test]
fn every_format_holds_the_same_weights() {
    let (folder, run) = trained();
    for (format, out) in [
        ("safetensors", "w.safetensors"),
        ("pytorch", "w.pt"),
        ("pytorch-json", "w.json"),
        ("npz", "w.npz"),
        ("bpk", "w.bpk"),
    ] {
        let said = exported(
            folder.path(),
            &["weights", &run, "--format", format, "--out", out],
        );
        assert!(said.contains("wrote 4 tensors to"), "{said}");
        assert!(said.contains("best weights of run"), "{said}");
    }
    let full = [
        "weights",
        &run,
        "--format",
        "pytorch-json",
        "--full",
        "--out",
        "full.json",
    ];
    exported(folder.path(), &full);
    let full = read_json(&folder.path().join("full.json"));
    assert_eq!(full["framework"], "pytorch");
    assert_eq!(full["architecture"]["input_shape"], serde_json::json!([4]));
    assert_eq!(full["weights"], read_json(&folder.path().join("w.json")));
    assert_eq!(full["metadata"]["weights"], "best");
    let half = [
        "weights",
        &run,
        "--format",
        "safetensors",
        "--dtype",
        "bf16",
        "--out",
        "half.safetensors",
    ];
    exported(folder.path(), &half);
    exported(folder.path(), &["pytorch", &run, "--out", "module"]);
    exported(folder.path(), &["onnx", &run, "--out", "model.onnx"]);
    let Some(python) = python_with(&["torch", "onnx", "onnxruntime", "safetensors", "numpy"])
    else {
        return;
    };
    python.run("weights_check.py", &[folder.path()]);
}

/// Whatever is wrong is said before anything is written, and what was there stays.
#[test]
fn exports_that_cannot_be_are_refused_and_write_nothing() {
    let (folder, run) = trained();
    let there = folder.path().join("there.onnx");
    fs::write(&there, "mine").unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    fs::write(folder.path().join("folder/notes.txt"), "mine").unwrap();
    let weights = |more: &[&'static str]| [&["weights", run.as_str(), "--format"], more].concat();
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (
            vec!["onnx", &run, "--out", "there.onnx"],
            "`there.onnx` exists",
        ),
        // Flags that would not help are not proposed.
        (
            vec!["onnx", &run, "--out", "folder"],
            "`folder` is not a file",
        ),
        (
            vec!["onnx", &run, "--out", "new.onnx/"],
            "remove the `/` at its end",
        ),
        (
            vec!["onnx", &run, "--out", "no/such.onnx"],
            "there is no folder `no`",
        ),
        (
            vec!["onnx", "nowhere", "--out", "new.onnx"],
            "`nowhere` does not exist",
        ),
        (
            vec!["pytorch", &run, "--out", "folder"],
            "contains `notes.txt`",
        ),
        (
            vec!["pytorch", &run, "--out", "there.onnx", "--force"],
            "is not a folder",
        ),
        (
            weights(&["npz", "--dtype", "bf16", "--out", "new.npz"]),
            "does not support bf16",
        ),
        (
            weights(&["npz", "--full", "--out", "new.npz"]),
            "only JSON supports `--full`",
        ),
    ];
    let list = || {
        let entries = fs::read_dir(folder.path()).unwrap().flatten();
        entries
            .map(|entry| entry.file_name())
            .collect::<BTreeSet<_>>()
    };
    let before = list();
    for (arguments, message) in cases {
        let (code, stdout, said) =
            super::support::run(folder.path(), &[&["export"], arguments.as_slice()].concat());
        assert_eq!(code, 2, "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
        assert!(stdout.is_empty());
        assert_eq!(list(), before, "{arguments:?}");
    }
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");

    // Damage is found before anything is written.
    let best = folder.path().join(&run).join("model/best.bpk");
    let mut bytes = fs::read(&best).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&best, bytes).unwrap();
    let (code, _, said) = super::support::run(
        folder.path(),
        &["export", "onnx", &run, "--out", "new.onnx"],
    );
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("best.bpk"), "{said}");
    assert_eq!(list(), before);
}

/// What goes out in PyTorch's form comes in again, number by number, whatever layers are called.
#[test]
fn exported_weights_start_another_run() {
    let spec = "data = { type = 'brackets', length = 6 }\n\
        optimizer = { type = 'adam', learning_rate = 1e-2 }\ntrain = { epochs = 1, batch_size = 64 }\n\
        model.layers = [{ type = 'embedding', embedding_dim = 4 }, { type = 'positional_encoding' }, \
        { type = 'transformer_encoder', num_layers = 1, num_heads = 2, feedforward_size = 5, norm_first = true }, \
        { type = 'gru', hidden_size = 3, bidirectional = true, output = 'last', name = 'the.gru' }, \
        { type = 'batch_norm' }, { type = 'linear', name = 'fc-1' }]\n";
    let folder = completed(spec, &[]);
    for (format, file) in [
        ("safetensors", "w.safetensors"),
        ("pytorch", "w.pt"),
        ("pytorch-json", "w.json"),
        ("npz", "w.npz"),
    ] {
        let weights = [
            "weights",
            "results/spec",
            "--format",
            format,
            "--force",
            "--out",
        ];
        exported(folder.path(), &[weights.as_slice(), &[file]].concat());
        let text = format!("{spec}init = {{ from = '{file}' }}\n");
        fs::write(folder.path().join("again.toml"), text).unwrap();
        let (code, _, said) = run(folder.path(), &["run", "again.toml", "--quiet"]);
        assert_eq!(code, 0, "{format}: {said}");
        let initial = [
            "weights",
            "results/again",
            "--weights",
            "initial",
            "--force",
        ];
        let as_first = ["--format", "safetensors", "--out", "again.safetensors"];
        exported(folder.path(), &[initial.as_slice(), &as_first].concat());
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        assert!(
            read("w.safetensors") == read("again.safetensors"),
            "{format}"
        );
        fs::remove_dir_all(folder.path().join("results/again")).unwrap();
    }
}

/// Texts become tokens before the graph, and there is no half of it.
#[test]
fn transforms_that_onnx_has_no_operators_for_are_refused() {
    let folder = super::support::folder_with(
        "data = { type = 'text', path = 'text.txt', tokens = { tokenizer = 'char', length = 4 } }\n\
         model = { type = 'transformer_lm', d_model = 4, num_heads = 2, num_layers = 1, feedforward_size = 4 }\n\
         optimizer = { type = 'adam', learning_rate = 1e-2 }\ntrain = { epochs = 1, batch_size = 16 }\n",
    );
    let text = "the quick brown fox jumps over the lazy dog\n".repeat(20);
    fs::write(folder.path().join("text.txt"), text).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let arguments = [
        "export",
        "onnx",
        "results/spec",
        "--with-transforms",
        "--out",
        "x.onnx",
    ];
    let (code, _, said) = run(folder.path(), &arguments);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("texts are tokenized"), "{said}");
    assert!(said.contains("omit `--with-transforms`"), "{said}");
    assert!(!folder.path().join("x.onnx").exists());
    exported(folder.path(), &["onnx", "results/spec", "--out", "x.onnx"]);
}

#[test]
fn force_replaces_an_export_as_a_whole() {
    let (folder, run) = trained();
    let module = ["pytorch", &run, "--out", "module"];
    exported(folder.path(), &module);
    let source = folder.path().join("module/model.py");
    fs::write(&source, "old").unwrap();
    exported(folder.path(), &[module.as_slice(), &["--force"]].concat());
    assert!(
        fs::read_to_string(&source)
            .unwrap()
            .starts_with("\"\"\"The network of run `")
    );
    let hidden = fs::read_dir(folder.path()).unwrap().flatten();
    let left: Vec<_> = hidden
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Lists of different lengths are filled up by `encode` as by the run: its check has rows with short ones.
#[test]
fn shorter_lists_leave_as_they_are_filled_up() {
    let rows: String = (0..40)
        .map(|at| {
            let list: Vec<usize> = (0..1 + at % 5).map(|place| (at * 3 + place) % 7).collect();
            let numbers: Vec<f64> = list.iter().map(|token| *token as f64 / 4.0 + 0.1).collect();
            let grid = [[at as f64 / 9.0, 1.5], [0.25, list.len() as f64]];
            let row =
                json!({ "tokens": list, "series": numbers, "grid": grid, "age": at as f64 / 7.0 });
            format!("{row}\n")
        })
        .collect();
    let tail = "optimizer = { type = 'adam', learning_rate = 1e-2 }\ntrain = { epochs = 1, batch_size = 8 }\n";
    let data = "data = { type = 'json_lines', path = 'rows.jsonl', target = 'age', missing = 'zero', columns = [{ name = 'tokens', type = 'category' }]";
    let of_tokens = format!(
        "{data}, features = ['tokens'] }}\nmodel.layers = [{{ type = 'embedding', embedding_dim = 3 }}, {{ type = 'mean' }}, {{ type = 'linear' }}]\n{tail}"
    );
    let of_series =
        format!("{data}, features = ['series'] }}\nmodel.layers = [{{ type = 'linear' }}]\n{tail}");
    let of_both = format!(
        "{data}, inputs = [{{ name = 'left', columns = ['tokens'] }}, {{ name = 'right', columns = ['series'] }}, {{ name = 'grid', columns = ['grid'] }}] }}\n\
         model.layers = [{{ type = 'embedding', inputs = ['left'], embedding_dim = 3 }}, {{ type = 'mean', name = 'l' }}, {{ type = 'flatten', inputs = ['grid'], name = 'g' }}, {{ type = 'flatten', inputs = ['right'], name = 'r' }}, {{ type = 'concat', inputs = ['l', 'r', 'g'] }}, {{ type = 'linear' }}]\n{tail}"
    );
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("rows.jsonl"), rows).unwrap();
    let python = python_with(&["torch", "safetensors"]);
    for (name, spec, column) in [
        ("of_tokens", of_tokens, None),
        ("of_series", of_series, None),
        ("of_both", of_both, Some("tokens")),
    ] {
        fs::write(folder.join(format!("{name}.toml")), spec).unwrap();
        let (code, _, said) = run(folder, &["run", &format!("{name}.toml"), "--quiet"]);
        assert_eq!(code, 0, "{name}: {said}");
        let module = format!("{name}_module");
        exported(
            folder,
            &["pytorch", &format!("results/{name}"), "--out", &module],
        );
        let example = read_json(&folder.join(&module).join("example.json"));
        let rows = example["rows"].as_array().expect("rows");
        if let Some(column) = column.or((name == "of_tokens").then_some("")) {
            let list = |row: &Json| match column {
                "" => row.as_array().unwrap().len(),
                column => row[column].as_array().unwrap().len(),
            };
            assert!(list(&rows[0]) < list(&rows[2]), "{name}: {example}");
        }
        let Some(python) = &python else { continue };
        let output = python.output(&folder.join(&module).join("model.py"), &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        // All rows of the data by `encode` and `decode`, beside those of `predict`.
        let (code, predicted, said) = run(
            folder,
            &[
                "predict",
                &format!("results/{name}"),
                "--data",
                "rows.jsonl",
            ],
        );
        assert_eq!(code, 0, "{name}: {said}");
        fs::write(folder.join("predicted.csv"), predicted).unwrap();
        python.run("lists_check.py", &[folder, Path::new(&module)]);
    }
}

/// A table with a number and a category that are missing now and then, and a class.
fn table() -> String {
    let row = |at: usize| {
        let size = match at % 22 {
            3 => String::new(),
            14 => "-1".to_owned(),
            _ => format!("{}", (at * 37 % 71) as f64 / 10.0),
        };
        let color = match at % 13 {
            5 => "none".to_owned(),
            _ => ["red", "green", "blue \"sky\""][at % 3].replace('"', "\"\""),
        };
        let kind = ["large", "small"][usize::from(at * 37 % 71 < 35)];
        format!("{size},\"{color}\",{kind}\n")
    };
    let rows: String = (0..80).map(row).collect();
    format!("size,color,kind\n{rows}")
}

/// The same where no value may be missing, and none is.
fn refused_missing_values_leave_too(folder: &Path) {
    let spec = "data = { type = 'csv', path = 'whole.csv', target = 'kind', missing_values = ['', -1, 'none'] }\n\
         model = { type = 'mlp', hidden = [8] }\noptimizer = { type = 'adam', learning_rate = 1e-2 }\n\
         train = { epochs = 2, batch_size = 16 }\n";
    fs::write(folder.join("strict.toml"), spec).unwrap();
    let table = table();
    let is_whole = |line: &&str| {
        !line.starts_with(',')
            && !line.starts_with("-1,")
            && !line.contains(",\"\",")
            && !line.contains("none")
    };
    let whole: Vec<&str> = table.lines().filter(is_whole).collect();
    fs::write(folder.join("whole.csv"), whole.join("\n")).unwrap();
    let (code, _, said) = run(folder, &["run", "strict.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    exported(folder, &["pytorch", "results/strict", "--out", "strict"]);
    let model = [
        "onnx",
        "results/strict",
        "--with-transforms",
        "--out",
        "strict.onnx",
    ];
    exported(folder, &model);
    let source = fs::read_to_string(folder.join("strict/model.py")).unwrap();
    assert!(
        source.contains("NEEDED = [\"size\", \"color\"]"),
        "{source}"
    );
}

/// Categories that are numbers in the file of the training have names that Python writes otherwise, and numbers in lists
/// may mean missing.
fn numbers_are_categories(folder: &Path) {
    let spec = "data = { type = 'json_lines', path = 'rates.jsonl', target = 'kind', columns = [{ name = 'rate', type = 'category' }, { name = 'step', type = 'category', encode = 'ordinal' }], missing = 'mean', missing_values = [-999, 0.1] }\n\
         model = { type = 'mlp', hidden = [8] }\noptimizer = { type = 'adam', learning_rate = 1e-2 }\n\
         train = { epochs = 1, batch_size = 16 }\n";
    fs::write(folder.join("rates.toml"), spec).unwrap();
    let rates = ["1e-5", "1.0", "2", "1e17", "0.25"];
    let rows = (0..40).map(|at| {
        let kind = ["small", "large"][at % 2];
        let second = ["-999", "0.1", "null", "2.5", "4"][at % 7 % 5];
        let (rate, step) = (rates[at % 5], ["a", "b", "c"][at % 3]);
        format!(
            "{{\"rate\": {rate}, \"step\": \"{step}\", \"of\": [{}, {second}], \"kind\": \"{kind}\"}}\n",
            at % 3
        )
    });
    fs::write(folder.join("rates.jsonl"), rows.collect::<String>()).unwrap();
    let (code, _, said) = run(folder, &["run", "rates.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    exported(folder, &["pytorch", "results/rates", "--out", "rates"]);
    let model = [
        "onnx",
        "results/rates",
        "--with-transforms",
        "--out",
        "rates.onnx",
    ];
    exported(folder, &model);
}

/// From rows of the data to names of classes: Python's `encode`, and the graph with transforms.
#[test]
fn transforms_leave_with_the_network() {
    let folder = super::support::folder_with(
        "data = { type = 'csv', path = 'data.csv', target = 'kind', missing = 'mean', missing_values = ['', -1, 'none'] }\n\
         model = { type = 'mlp', hidden = [8] }\noptimizer = { type = 'adam', learning_rate = 1e-2 }\n\
         train = { epochs = 2, batch_size = 16 }\n",
    );
    fs::write(folder.path().join("data.csv"), table()).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    exported(
        folder.path(),
        &["pytorch", "results/spec", "--out", "module"],
    );
    let model = [
        "onnx",
        "results/spec",
        "--with-transforms",
        "--out",
        "model.onnx",
    ];
    exported(folder.path(), &model);
    let source = fs::read_to_string(folder.path().join("module/model.py")).unwrap();
    assert!(
        source.contains("CLASSES = [\"large\", \"small\"]"),
        "{source}"
    );
    assert!(
        source.contains(
            "one_hot(of_category(\"color\", row[\"color\"], {\"blue \\\"sky\\\"\": 0, \"green\": 1, \"red\": 2}"
        ),
        "{source}"
    );
    assert!(!source.contains("NEEDED"), "{source}");
    let example = read_json(&folder.path().join("module/example.json"));
    assert_eq!(example["rows"].as_array().unwrap().len(), 3);
    refused_missing_values_leave_too(folder.path());
    numbers_are_categories(folder.path());
    let Some(python) = python_with(&["torch", "onnx", "onnxruntime", "safetensors"]) else {
        return;
    };
    python.run("transforms_check.py", &[folder.path()]);
}
