//! Weights that are computed from other parameters: weight norm and spectral norm. `network_table.rs` compares their
//! training with PyTorch.

use std::collections::BTreeMap;

use burn::module::Module;
use burn::tensor::{Device, TensorData};
use burn_runner::check::network::examples::network;
use runner_network::graph::Graph;
use runner_network::network::Network;
use runner_network::tensor::DynTensor;
use runner_network::testing::{generator, planned};
use runner_network::values::of_graph;

use super::edit::Edit;
use super::support::{completed, folder_with, goes_on, numbers, run};

const SPEC: &str = r#"
data = { type = "digits" }
optimizer = { type = "adam", learning_rate = 1e-2 }
train = { epochs = 3, batch_size = 64, ema = { decay = 0.9 } }
[model]
layers = [
    { type = "conv2d", out_channels = 4, kernel_size = 3, stride = 2, parametrization = "spectral_norm", name = "conv" },
    { type = "leaky_relu" },
    { type = "flatten" },
    { type = "linear", out_features = 16, parametrization = "weight_norm" },
    { type = "tanh" },
    { type = "linear" },
]
"#;

/// The vectors of power iteration are a part of checkpoints.
#[test]
fn training_goes_on_to_the_same_numbers() {
    let straight = completed(SPEC, &[]);
    let stopped = folder_with(SPEC);
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@30"];
    run(stopped.path(), &arguments);
    goes_on(stopped.path());
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));
}

fn state(graph: &Graph) -> BTreeMap<String, Vec<f64>> {
    let all = of_graph(graph).into_iter();
    all.map(|(path, data)| (path, data.iter::<f64>().collect()))
        .collect()
}

fn items(device: &Device) -> DynTensor {
    let values: Vec<f32> = (0..128).map(|at| (at as f32 * 0.7).sin()).collect();
    DynTensor::from_data(TensorData::new(values, [2, 1, 8, 8]), device)
}

/// At first a length is that of the drawn weight, and vectors are unit ones near the singular vectors. Each use in
/// training is one step of power iteration; others change nothing.
#[test]
fn only_training_iterates() {
    let _generator = generator();
    let plan = planned(SPEC);
    let network = Network::drawn(&plan, &Device::flex().autodiff());
    let first = state(network.graph());
    let weight = &first["linear_1.weight"];
    for (at, length) in first["linear_1.weight.weight_norm.scale"]
        .iter()
        .enumerate()
    {
        let column = weight.iter().skip(at).step_by(16);
        let norm = column.map(|x| x * x).sum::<f64>().sqrt();
        assert!((length / norm - 1.0).abs() < 1e-6, "{length}, {norm}");
    }
    let (u, v) = ("conv.weight.spectral_norm.u", "conv.weight.spectral_norm.v");
    for path in [u, v] {
        let norm = first[path].iter().map(|x| x * x).sum::<f64>();
        assert!((norm - 1.0).abs() < 1e-5, "{path}: {norm}");
    }
    let inference = Device::flex();
    let valid = network.valid();
    let output = |network: &Network, device: &Device| {
        network
            .outputs(items(device))
            .into_data()
            .iter::<f32>()
            .collect::<Vec<_>>()
    };
    let before = output(&valid, &inference);
    assert_eq!(before, output(&valid, &inference));
    assert_eq!(state(valid.graph()), first);
    output(&network, &Device::flex().autodiff());
    let trained = state(network.graph());
    let changed: Vec<_> = first
        .keys()
        .filter(|path| first[*path] != trained[*path])
        .collect();
    assert_eq!(changed, [u, v]);
    // The same weight with better vectors.
    let after = output(&network.valid(), &inference);
    assert_ne!(before, after);
    for (a, b) in before.iter().zip(&after) {
        assert!((a - b).abs() < 0.1, "{before:?}, {after:?}");
    }
}

/// Weights of a file without lengths and vectors: these follow from them, so that the output is that of the file.
#[test]
fn plain_weights_of_a_file_are_kept() {
    let normed = SPEC.edit(", parametrization = \"spectral_norm\"", "");
    let plain = normed.edit(", parametrization = \"weight_norm\"", "");
    let folder = completed(&plain, &[]);
    let from = "init = { from = \"results/spec/runs/base-s1/model/final.bpk\", partial = true }\n";
    let text = format!("{from}{normed}").edit("epochs = 3", "epochs = 1");
    std::fs::write(folder.path().join("second.toml"), text).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "second.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let first = |name: &str| {
        let path = folder
            .path()
            .join(format!("results/{name}/runs/base-s1/metrics.csv"));
        let text = std::fs::read_to_string(path).unwrap();
        let mut rows = text
            .lines()
            .map(|row| row.split(',').map(str::to_owned).collect::<Vec<_>>());
        let at = rows
            .next()
            .unwrap()
            .iter()
            .position(|name| name == "train/loss")
            .unwrap();
        rows.map(|row| row[at].parse::<f64>().unwrap())
            .collect::<Vec<_>>()
    };
    let (before, after) = (first("spec"), first("second"));
    assert!(after[0] < before[0] / 2.0, "{before:?}, {after:?}");
}

/// Parameters as PyTorch counts them: a length for each entry of the first axis of PyTorch's weight.
#[test]
fn lengths_are_counted() {
    let count = |dims: &[usize], layer: &str| network(dims, layer).num_parameters;
    let linear = "{ type = 'linear', out_features = 3, parametrization = 'NAME' }";
    let conv = "{ type = 'conv_transpose1d', out_channels = 6, kernel_size = 3, parametrization = 'NAME' }";
    let counts = ["none", "weight_norm", "spectral_norm"].map(|name| {
        let of = |dims: &[usize], layer: &str| count(dims, &layer.edit("NAME", name));
        [of(&[5], linear), of(&[4, 9], conv)]
    });
    assert_eq!(counts, [[18, 78], [21, 82], [18, 78]]);
}
