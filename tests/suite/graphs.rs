//! Networks over the nodes of a graph: equal to PyTorch Geometric's, resumed exactly, predicted over all splits.

use std::fs;
use std::path::Path;

use super::edit::Edit;
use super::sharing::difference_from_pytorch;
use super::support::peers::python_with;
use super::support::{completed, folder_with, goes_on, numbers, run, summary};

/// The karate club with every type of layer.
const CLUB: &str = r#"
data = { type = "karate_club", scale = "none", split = { valid = 0.2, test = 0.2 } }
optimizer = { type = "adam", learning_rate = 1e-2 }
train = { epochs = 6, batch_size = 5 }

[[model.layers]]
type = "gcn"
out_features = 8

[[model.layers]]
type = "relu"

[[model.layers]]
type = "gat"
out_features = 4
num_heads = 2
dropout = 0.2

[[model.layers]]
type = "dropout"
probability = 0.2

[[model.layers]]
type = "gin"
out_features = 8
learn_epsilon = true

[[model.layers]]
type = "batch_norm"

[[model.layers]]
type = "sage"
out_features = 2
"#;

/// A path of 30 nodes with names, whose class is that of most of their neighbors.
fn path_of_nodes(folder: &Path) {
    let (mut nodes, mut edges) = (
        String::from("id,a,b,kind\n"),
        String::from("source,target\n"),
    );
    for at in 0..30 {
        let (a, b) = ((at as f64 * 0.77).sin(), (at as f64 * 1.31).cos());
        let kind = if at < 15 { "left" } else { "right" };
        nodes += &format!("n{at},{a:.4},{b:.4},{kind}\n");
        if at > 0 {
            edges += &format!("n{},n{at}\n", at - 1);
        }
    }
    fs::write(folder.join("nodes.csv"), nodes).unwrap();
    fs::write(folder.join("edges.csv"), edges).unwrap();
}

const PATH: &str = r#"
[data]
type = "csv"
path = "nodes.csv"
target = "kind"

[data.graph]
edges = "edges.csv"
id = "id"

[data.split]
test = 0.2

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 3
batch_size = 4

[[model.layers]]
type = "gcn"
out_features = 4

[[model.layers]]
type = "linear"
"#;

#[test]
fn graph_networks_train_as_in_pytorch_geometric() {
    let folder = tempfile::tempdir().unwrap();
    let Some(python) = python_with(&["torch", "torch_geometric", "safetensors"]) else {
        return;
    };
    python.run("graphs_check.py", &[folder.path()]);
    let undirected = "graph = { edges = 'edges.csv', id = 'id', weight = 'weight' }";
    let directed = "graph = { edges = 'links.csv', id = 'id', directed = true }";
    let networks = [
        (
            "gcn",
            undirected,
            "{ type = 'gcn', name = 'one', out_features = 8 }, { type = 'layer_norm', name = 'norm' }, { type = 'relu' },
             { type = 'gcn', name = 'two', out_features = 3 }",
        ),
        (
            "sage",
            directed,
            "{ type = 'sage', name = 'one', out_features = 8 }, { type = 'tanh' },
             { type = 'sage', name = 'two', out_features = 3 }",
        ),
        (
            "gat",
            undirected,
            "{ type = 'gat', name = 'one', out_features = 4, num_heads = 3 }, { type = 'elu' },
             { type = 'gat', name = 'two', out_features = 3, num_heads = 2, concat = false, negative_slope = 0.1 }",
        ),
        (
            "gin",
            directed,
            "{ type = 'gin', name = 'one', out_features = 8, hidden_features = 6, epsilon = 0.3 }, { type = 'relu', name = 'body' },
             { type = 'gin', name = 'two', out_features = 8, epsilon = 0.1, learn_epsilon = true }, { type = 'tanh', name = 'more' },
             { type = 'add', inputs = ['body', 'more'] }, { type = 'linear', name = 'head' }",
        ),
        (
            "plain",
            directed,
            "{ type = 'gcn', name = 'one', out_features = 8, self_loops = false, normalize = false, bias = false }, { type = 'tanh' },
             { type = 'gat', name = 'two', out_features = 3, num_heads = 2, concat = false, self_loops = false }",
        ),
    ];
    for (name, graph, layers) in networks {
        let [target, ignored] = match name {
            "gin" => ["amount", "kind"],
            _ => ["kind", "amount"],
        };
        let spec = format!(
            "data = {{ type = 'csv', path = 'nodes.csv', valid_path = 'valid.csv', target = '{target}', ignore = '{ignored}', scale = 'none', split.test = 0, {graph} }}\n\
             optimizer = {{ type = 'adamw', learning_rate = 0.02, weight_decay = 0.01 }}\n\
             scheduler = {{ type = 'constant' }}\n\
             train = {{ epochs = 20, batch_size = 40 }}\n\
             backend = {{ precision = 'f64' }}\n\
             init = {{ from = '{name}.safetensors' }}\n\
             model.layers = [{layers}]\n"
        );
        let files = ["nodes.csv", "valid.csv", "edges.csv", "links.csv"];
        let largest = difference_from_pytorch(folder.path(), name, &files, &spec);
        assert!(largest < 1e-10, "{name}: {largest}");
    }
}

#[test]
fn graph_networks_resume_exactly_and_do_not_depend_on_threads() {
    let spec =
        format!("checkpoint = {{ every_steps = 2 }}\nexperiment = {{ seeds = [1, 2] }}\n{CLUB}");
    let spec = spec.edit(
        "batch_size = 5 }",
        "batch_size = 5, micro_batch_size = 3, ema = { decay = 0.9 } }",
    );
    let straight = completed(&spec, &["--jobs", "2"]);
    let stopped = folder_with(&spec);
    // Each run has twice as many threads.
    let arguments = ["run", "spec.toml", "--quiet", "--jobs", "1"];
    let stop = [arguments.as_slice(), &["--inject-fault", "*@13"]].concat();
    run(stopped.path(), &stop);
    goes_on(stopped.path());
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));
}

#[test]
fn nodes_are_predicted_in_every_split() {
    let folder = folder_with(PATH);
    path_of_nodes(folder.path());
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    for (split, num) in [("train", 18), ("valid", 6), ("test", 6)] {
        let (code, table, said) = run(
            folder.path(),
            &["predict", "results/spec", "--split", split],
        );
        assert_eq!(code, 0, "{said}");
        assert_eq!(table.lines().count(), 1 + num, "{table}");
    }
    let metrics = &summary(folder.path(), "base-s1")["metrics"];
    let (code, report, said) = run(
        folder.path(),
        &["evaluate", "results/spec", "--split", "valid", "--json"],
    );
    assert_eq!(code, 0, "{said}");
    assert!(metrics["valid/accuracy"].is_number(), "{metrics}");
    assert!(report.contains("accuracy"), "{report}");
    let (code, _, said) = run(
        folder.path(),
        &["predict", "results/spec", "--data", "nodes.csv"],
    );
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("nodes of a graph"), "{said}");
    for format in ["onnx", "pytorch"] {
        let arguments = ["export", format, "results/spec", "--out", "x.onnx"];
        let (code, _, said) = run(folder.path(), &arguments);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("edges of a graph"), "{said}");
    }
}

/// The outputs of nodes follow from their neighbors: an edge that is added changes the digests and the numbers.
#[test]
fn another_edge_is_another_run() {
    let losses = |edit: bool| {
        let folder = folder_with(PATH);
        path_of_nodes(folder.path());
        if edit {
            let edges = fs::read_to_string(folder.path().join("edges.csv")).unwrap();
            let edges = edges.edit("n3,n4\n", "n3,n4\nn3,n20\n");
            fs::write(folder.path().join("edges.csv"), edges).unwrap();
        }
        let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{said}");
        let plan = fs::read_to_string(folder.path().join("results/spec/runs/base-s1/run.toml"));
        let plan: toml::Table = plan.unwrap().parse().unwrap();
        let metrics = summary(folder.path(), "base-s1")["metrics"].clone();
        (plan["fingerprint"].clone(), metrics)
    };
    let (before, after) = (losses(false), losses(true));
    assert_eq!(before, losses(false));
    assert_ne!(before.0, after.0);
    assert_ne!(before.1, after.1);
}
