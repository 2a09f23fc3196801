//! Networks over the nodes of a graph, and over many graphs: equal to PyTorch Geometric's, resumed exactly, predicted
//! over all splits, and for new graphs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::edit::Edit;
use super::sharing::{difference_from_pytorch, losses};
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
type = "edge_conv"
out_features = 8

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
    let with_features =
        "graph = { edges = 'links.csv', id = 'id', directed = true, features = ['long', 'steep'] }";
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
        (
            "edges",
            directed,
            "{ type = 'edge_conv', name = 'one', out_features = 8, hidden_features = 6 }, { type = 'tanh' },
             { type = 'edge_conv', name = 'two', out_features = 6, hidden_features = 8, aggregation = 'mean' }, { type = 'tanh' },
             { type = 'edge_conv', name = 'three', out_features = 3, aggregation = 'sum' }",
        ),
        (
            "attributes",
            "graph = { edges = 'edges.csv', id = 'id', features = ['long', 'steep'] }",
            "{ type = 'gat', name = 'one', out_features = 4, num_heads = 3, edge_dim = 2 }, { type = 'elu' },
             { type = 'gat', name = 'two', out_features = 3, num_heads = 2, concat = false, self_loops = false, edge_dim = 2 }",
        ),
        (
            "gine",
            with_features,
            "{ type = 'gin', name = 'one', out_features = 8, hidden_features = 6, epsilon = 0.3, edge_dim = 2 }, { type = 'tanh' },
             { type = 'gin', name = 'two', out_features = 3, hidden_features = 8, epsilon = 0.1, learn_epsilon = true, edge_dim = 2 }",
        ),
        (
            "differences",
            with_features,
            "{ type = 'edge_conv', name = 'one', out_features = 8, hidden_features = 6, edge_dim = 2 }, { type = 'tanh' },
             { type = 'edge_conv', name = 'two', out_features = 3, hidden_features = 8, aggregation = 'mean', edge_dim = 2 }",
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

    let edges = [
        (
            "rated",
            "rate",
            "{ type = 'sage', name = 'one', out_features = 8 }, { type = 'tanh' }, { type = 'sage', name = 'two', out_features = 6 },
             { type = 'edge_ends', operation = 'concat', edge_dim = 2 }, { type = 'linear', name = 'inner', out_features = 5 }, { type = 'tanh' }, { type = 'linear', name = 'head' }",
        ),
        (
            "sorted",
            "sort",
            "{ type = 'gcn', name = 'one', out_features = 8 }, { type = 'tanh', name = 'h' }, { type = 'edge_ends', name = 'product' },
             { type = 'edge_ends', name = 'sum', operation = 'sum', inputs = ['h'] }, { type = 'edge_ends', name = 'difference', operation = 'difference', inputs = ['h'] },
             { type = 'edge_ends', name = 'dot', operation = 'dot', inputs = ['h'] }, { type = 'concat', inputs = ['product', 'sum', 'difference', 'dot'] }, { type = 'linear', name = 'head' }",
        ),
    ];
    for (name, target, layers) in edges {
        let spec = format!(
            "data = {{ type = 'csv', path = ['nodes.csv', 'valid.csv'], target = '{target}', ignore = ['kind', 'amount'], scale = 'none', split = {{ order_by = 'when', valid = 0.3, test = 0 }}, graph = {{ edges = 'rated.csv', id = 'id', items = 'edges', features = ['long', 'steep'] }} }}\n\
             optimizer = {{ type = 'adamw', learning_rate = 0.02, weight_decay = 0.01 }}\n\
             scheduler = {{ type = 'constant' }}\n\
             train = {{ epochs = 20, batch_size = 63 }}\n\
             backend = {{ precision = 'f64' }}\n\
             init = {{ from = '{name}.safetensors' }}\n\
             model.layers = [{layers}]\n"
        );
        let files = ["nodes.csv", "valid.csv", "rated.csv"];
        let largest = difference_from_pytorch(folder.path(), name, &files, &spec);
        assert!(largest < 1e-10, "{name}: {largest}");
    }

    for pool in ["mean", "sum", "max", "attention"] {
        let spec = format!(
            "data = {{ type = 'csv', path = 'many.csv', valid_path = 'many_valid.csv', target = 'kind', scale = 'none', split.test = 0, graph = {{ edges = 'many_edges.csv', of = 'graph' }} }}\n\
             optimizer = {{ type = 'adamw', learning_rate = 0.02, weight_decay = 0.01 }}\n\
             scheduler = {{ type = 'constant' }}\n\
             train = {{ epochs = 20, batch_size = 10 }}\n\
             backend = {{ precision = 'f64' }}\n\
             init = {{ from = 'pool_{pool}.safetensors' }}\n\
             model.layers = [{{ type = 'gcn', name = 'one', out_features = 6 }}, {{ type = 'relu' }}, {{ type = 'graph_pool', name = 'pool', operation = '{pool}' }}, {{ type = 'linear', name = 'head' }}]\n"
        );
        let files = ["many.csv", "many_valid.csv", "many_edges.csv"];
        let name = format!("pool_{pool}");
        let largest = difference_from_pytorch(folder.path(), &name, &files, &spec);
        assert!(largest < 1e-10, "{name}: {largest}");
    }
}

/// 40 paths and rings of 3 to 8 nodes.
fn rings_and_paths(folder: &Path) {
    let (mut nodes, mut edges) = (
        String::from("graph,a,kind\n"),
        String::from("source,target\n"),
    );
    let mut num = 0;
    for graph in 0..40 {
        let (size, is_ring) = (3 + graph * 5 % 6, graph % 2 == 0);
        for at in 0..size {
            nodes += &format!(
                "{graph},{}.5,{}\n",
                at % 2,
                if is_ring { "ring" } else { "path" }
            );
            if at + 1 < size {
                edges += &format!("{},{}\n", num + at, num + at + 1);
            }
        }
        if is_ring {
            edges += &format!("{},{num}\n", num + size - 1);
        }
        num += size;
    }
    fs::write(folder.join("nodes.csv"), nodes).unwrap();
    fs::write(folder.join("edges.csv"), edges).unwrap();
}

const GRAPHS: &str = r#"
data = { type = "csv", path = "nodes.csv", target = "kind", graph = { edges = "edges.csv", of = "graph" }, split = { valid = 0.2, test = 0.2 } }
optimizer = { type = "adam", learning_rate = 1e-2 }
train = { epochs = 6, batch_size = 8, micro_batch_size = 5 }
checkpoint = { every_steps = 2 }

[[model.layers]]
type = "gin"
out_features = 8

[[model.layers]]
type = "batch_norm"

[[model.layers]]
type = "graph_pool"
operation = "attention"

[[model.layers]]
type = "linear"
"#;

/// Items are graphs: batches, splits, predictions and metrics count them, and not their nodes.
#[test]
fn graphs_are_items_and_resume_exactly() {
    let folder = |arguments: &[&str]| {
        let folder = folder_with(GRAPHS);
        rings_and_paths(folder.path());
        let (code, _, said) = run(
            folder.path(),
            &[&["run", "spec.toml", "--quiet"], arguments].concat(),
        );
        assert!(code == 0 || arguments.contains(&"--inject-fault"), "{said}");
        folder
    };
    let straight = folder(&["--jobs", "2"]);
    let stopped = folder(&["--inject-fault", "*@7"]);
    goes_on(stopped.path());
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));
    for (split, num) in [("train", 24), ("valid", 8), ("test", 8)] {
        let arguments = ["predict", "results/spec", "--split", split];
        let (code, table, said) = run(straight.path(), &arguments);
        assert_eq!(code, 0, "{said}");
        assert_eq!(table.lines().count(), 1 + num, "{table}");
    }
}

/// Rows of some graphs as a table of their own, with their edges, whose nodes have other numbers.
fn some_graphs(folder: &Path, graphs: &[&str]) {
    let rows = fs::read_to_string(folder.join("nodes.csv")).unwrap();
    let (mut nodes, mut numbers) = (String::from("graph,a,kind\n"), BTreeMap::new());
    for (row, line) in rows.lines().skip(1).enumerate() {
        if graphs.contains(&line.split(',').next().unwrap()) {
            numbers.insert(row.to_string(), numbers.len());
            nodes += &format!("{line}\n");
        }
    }
    fs::write(folder.join("new.csv"), nodes).unwrap();
    let mut edges = String::from("source,target\n");
    for line in fs::read_to_string(folder.join("edges.csv"))
        .unwrap()
        .lines()
    {
        let (from, to) = line.split_once(',').unwrap();
        if let (Some(from), Some(to)) = (numbers.get(from), numbers.get(to)) {
            edges += &format!("{from},{to}\n");
        }
    }
    fs::write(folder.join("new_edges.csv"), edges).unwrap();
}

/// Many graphs are inductive: the same graphs in other files have the same predictions.
#[test]
fn new_graphs_are_predicted_with_their_edges() {
    let folder = folder_with(GRAPHS);
    let root = folder.path();
    rings_and_paths(root);
    let (code, _, said) = run(root, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let predict = |arguments: &[&str]| {
        let (code, table, said) = run(root, &[&["predict", "results/spec"], arguments].concat());
        assert_eq!(code, 0, "{said}");
        table
    };
    let whole = [
        "--data",
        "nodes.csv",
        "--edges",
        "edges.csv",
        "--keep",
        "graph",
    ];
    let whole = predict(&whole);
    assert_eq!(whole.lines().count(), 1 + 40, "{whole}");
    // The numbers of a row without its identifier.
    let numbers_of = |line: &str| line.split_once(',').unwrap().1.to_owned();
    let by_graph: BTreeMap<String, String> = whole
        .lines()
        .skip(1)
        .map(|line| {
            let rest = numbers_of(line);
            (rest.split(',').next().unwrap().to_owned(), rest)
        })
        .collect();
    let chosen = ["3", "17", "18", "39"];
    some_graphs(root, &chosen);
    let arguments = [
        "--data",
        "new.csv",
        "--edges",
        "new_edges.csv",
        "--keep",
        "graph",
    ];
    let some = predict(&[&arguments[..], &["--batch-size", "3"]].concat());
    let found: Vec<String> = some.lines().skip(1).map(numbers_of).collect();
    let wanted: Vec<&String> = chosen.iter().map(|graph| &by_graph[*graph]).collect();
    assert_eq!(found.iter().collect::<Vec<_>>(), wanted);
    let of_split = predict(&["--split", "valid"]);
    for line in of_split.lines().skip(1) {
        let rest = numbers_of(line);
        assert!(by_graph.values().any(|one| one.ends_with(&rest)), "{line}");
    }
    let evaluate = |arguments: &[&str]| {
        let (code, report, said) = run(root, &[&["evaluate", "results/spec"], arguments].concat());
        assert_eq!(code, 0, "{said}");
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        report
    };
    let report = evaluate(&["--data", "new.csv", "--edges", "new_edges.csv", "--json"]);
    assert_eq!(report["num_items"], 4, "{report}");
}

/// What cannot be a new graph is refused.
#[test]
fn new_graphs_need_their_edges() {
    let folder = folder_with(&GRAPHS.edit("epochs = 6", "epochs = 1"));
    let root = folder.path();
    rings_and_paths(root);
    some_graphs(root, &["1", "2"]);
    fs::write(
        root.join("club.toml"),
        CLUB.edit("epochs = 6", "epochs = 1"),
    )
    .unwrap();
    for spec in ["spec.toml", "club.toml"] {
        let (code, _, said) = run(root, &["run", spec, "--quiet"]);
        assert_eq!(code, 0, "{said}");
    }
    let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
    let nodes = fs::read_to_string(root.join("new.csv")).unwrap();
    write("gap.csv", &nodes.edit_first("0.5", ""));
    write("nameless.csv", &nodes.edit_first("1,", ","));
    write("no_graph.csv", "a\n0.5\n");
    write("across.csv", "source,target\n0,9\n");
    write("nowhere.csv", "source,target\n0,99\n");
    write("ends.csv", "from,to\n0,1\n");
    write("x.npy", "");
    let cases = [
        ("new.csv", "", "new ones need edges"),
        ("gap.csv", "new_edges.csv", "nodes are never skipped"),
        ("nameless.csv", "new_edges.csv", "is in no graph"),
        ("no_graph.csv", "new_edges.csv", "lacks the column `graph`"),
        ("new.csv", "across.csv", "different graphs"),
        ("new.csv", "nowhere.csv", "`99` is no node"),
        ("new.csv", "ends.csv", "no column `source`"),
        ("new.csv", "missing.csv", "cannot read"),
        ("x.npy", "new_edges.csv", "read as"),
    ];
    for (data, edges, reason) in cases {
        let mut arguments = vec![
            "predict",
            "results/spec",
            "--on-bad-item",
            "skip",
            "--data",
            data,
        ];
        if !edges.is_empty() {
            arguments.extend(["--edges", edges]);
        }
        let (code, _, said) = run(root, &arguments);
        assert_eq!(code, 2, "{data} {edges}: {said}");
        assert!(said.contains(reason), "{data} {edges}: {said}");
    }
    for folder in ["results/spec", "results/club"] {
        let arguments = ["serve", "--predict", folder, "--port", "0"];
        let (code, _, said) = run(root, &arguments);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("edges"), "{said}");
    }
    let two = nodes.edit_first("path", "ring");
    write("two.csv", &two);
    let arguments = [
        "evaluate",
        "results/spec",
        "--data",
        "two.csv",
        "--edges",
        "new_edges.csv",
    ];
    let (code, _, said) = run(root, &arguments);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("different values of `kind`"), "{said}");
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

/// 60 nodes with edges of different weights, and with an edge to itself at each third.
fn ring_of_nodes(folder: &Path) {
    let (mut nodes, mut edges) = (
        String::from("a,b,kind\n"),
        String::from("source,target,weight\n"),
    );
    for at in 0..60 {
        let (a, b) = ((at as f64 * 0.77).sin(), (at as f64 * 1.31).cos());
        let kind = ["left", "middle", "right"][at / 20];
        nodes += &format!("{a:.4},{b:.4},{kind}\n");
        for step in [1, 2, 7, 11] {
            edges += &format!("{at},{},{}\n", (at + step) % 60, 1 + at % 3);
        }
        if at % 3 == 0 {
            edges += &format!("{at},{at},2\n");
        }
    }
    fs::write(folder.join("nodes.csv"), nodes).unwrap();
    fs::write(folder.join("edges.csv"), edges).unwrap();
}

/// Every layer of messages over the ring.
const RING: &str = r#"
data = { type = "csv", path = "nodes.csv", target = "kind", graph = { edges = "edges.csv", weight = "weight" } }
optimizer = { type = "adam", learning_rate = 1e-2 }
train = { epochs = 3, batch_size = 5 }
backend.precision = "f64"
model.layers = [
  { type = "gcn", out_features = 8 },
  { type = "tanh" },
  { type = "gin", out_features = 6, learn_epsilon = true },
  { type = "tanh" },
  { type = "edge_conv", out_features = 6, aggregation = "sum" },
  { type = "edge_conv", out_features = 6 },
  { type = "gat", out_features = 3, num_heads = 2 },
  { type = "sage", out_features = 3 },
]
"#;

fn ring(neighbors: &str, arguments: &[&str]) -> tempfile::TempDir {
    let weight = "weight = \"weight\"";
    let folder = folder_with(&RING.edit(weight, &format!("{weight}{neighbors}")));
    ring_of_nodes(folder.path());
    let (code, _, said) = run(
        folder.path(),
        &[&["run", "spec.toml", "--quiet"], arguments].concat(),
    );
    assert!(code == 0 || arguments.contains(&"--inject-fault"), "{said}");
    folder
}

/// Where no node has more edges than are drawn, and wherever metrics are measured, numbers are those of the whole graph.
#[test]
fn drawing_all_neighbors_is_computing_the_whole_graph() {
    // The losses of the steps, and the one that is measured at the end.
    let numbers = |neighbors: &str| {
        let folder = ring(neighbors, &[]);
        let mut numbers = losses(&folder.path().join("results/spec"));
        let metrics = &summary(folder.path(), "base-s1")["metrics"];
        numbers.extend(metrics["valid/loss"].as_f64());
        numbers
    };
    let whole = numbers("");
    let difference = |neighbors: &str| {
        let drawn = numbers(neighbors);
        assert!(whole.len() > 24 && drawn.len() == whole.len());
        let pairs = drawn.iter().zip(&whole);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let all = difference(", neighbors = [9, 9, 9, 9, 9, 9]");
    assert!(all < 1e-12, "{all}");
    let few = difference(", neighbors = [3, 2, 2, 2, 1, 1]");
    assert!(few > 1e-3, "{few}");
}

/// The neighbors of an epoch follow from the seed of the run.
#[test]
fn drawn_neighbors_are_the_same_after_a_kill() {
    let few = ", neighbors = [3, 2, 2, 2, 1, 1]";
    let straight = ring(few, &["--jobs", "2"]);
    let stopped = ring(few, &["--jobs", "1", "--inject-fault", "*@13"]);
    goes_on(stopped.path());
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));
    let (code, said, _) = run(straight.path(), &["reproduce", "results/spec/runs/base-s1"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("bitwise"), "{said}");
    for batch_size in ["1", "60"] {
        let arguments = [
            "evaluate",
            "results/spec",
            "--split",
            "valid",
            "--json",
            "--batch-size",
            batch_size,
        ];
        let (code, report, said) = run(straight.path(), &arguments);
        assert_eq!(code, 0, "{said}");
        let measured = summary(straight.path(), "base-s1")["metrics"]["valid/accuracy"].clone();
        assert!(
            report.contains(&measured.to_string()),
            "{measured} {report}"
        );
    }
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

/// Whole numbers from 2^53 on are equal as numbers where they differ as names.
#[test]
fn names_that_are_rounded_are_refused_or_read_as_text() {
    let folder = folder_with(
        "data = { type = 'csv', path = 'nodes.csv', target = 'kind', graph = { edges = 'edges.csv', id = 'id' } }\n\
         optimizer = { type = 'adam', learning_rate = 1e-2 }\ntrain.epochs = 1\n\
         model.layers = [{ type = 'gcn', out_features = 2 }]\n",
    );
    let name = |at: u64| (1 << 53) + at;
    let mut nodes = String::from("id,a,kind\n");
    for at in 0..12 {
        nodes += &format!(
            "{},{at}.5,{}\n",
            name(at),
            if at < 6 { "low" } else { "high" }
        );
    }
    fs::write(folder.path().join("nodes.csv"), nodes).unwrap();
    let edges = format!("source,target\n{},{}\n", name(1), name(3));
    fs::write(folder.path().join("edges.csv"), &edges).unwrap();
    let check = || run(folder.path(), &["check", "spec.toml"]);
    let (code, _, said) = check();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("the values of `id` are rounded"), "{said}");

    let spec = folder.path().join("spec.toml");
    let text = fs::read_to_string(&spec).unwrap();
    let typed = "kind', columns = [{ name = 'id', type = 'category' }]";
    fs::write(&spec, text.edit("kind'", typed)).unwrap();
    let (code, _, said) = check();
    assert_eq!(code, 0, "{said}");
    // No node has the name, which is that of node 4 as a number.
    let other = edges.edit(&name(3).to_string(), &name(13).to_string());
    fs::write(folder.path().join("edges.csv"), other).unwrap();
    let (code, _, said) = check();
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains(&format!("`{}` is no node", name(13))),
        "{said}"
    );
}

/// Columns of edges that no layer uses are a mistake, or an ablation.
#[test]
fn columns_of_edges_without_an_effect_are_reported() {
    let edges = "source,target,long,sure\nn3,n4,0.5,1\nn4,n5,0.25,2\n";
    let said = |columns: &str, layer: &str| {
        let spec = PATH.edit("id = \"id\"", &format!("id = \"id\"\n{columns}"));
        let folder = folder_with(&spec.edit("type = \"gcn\"", layer));
        path_of_nodes(folder.path());
        fs::write(folder.path().join("edges.csv"), edges).unwrap();
        let (code, out, said) = run(folder.path(), &["check", "spec.toml"]);
        assert_eq!(code, 0, "{out}{said}");
        out + &said
    };
    let (features, weight) = ("features = 'long'", "weight = 'sure'");
    for (columns, layer, expected) in [
        (
            features,
            "type = 'sage'",
            "`data.graph.features` has no effect: no layer has an `edge_dim`",
        ),
        (features, "type = 'gat'\nedge_dim = 1", ""),
        (
            weight,
            "type = 'sage'",
            "`data.graph.weight` has no effect: only `gcn` layers use the weights of edges",
        ),
        (weight, "type = 'gcn'", ""),
    ] {
        let said = said(columns, layer);
        let is_expected = match expected {
            "" => !said.contains("no effect"),
            _ => said.contains(expected),
        };
        assert!(is_expected, "{columns}, {layer}: {said}");
    }
}
