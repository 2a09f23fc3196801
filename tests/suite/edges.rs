//! Edges of a graph as items, and pairs of nodes with and without an edge: what messages know, resumed exactly, and
//! predicted for new pairs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use burn_runner::model::{Model, Options};
use runner_core::predict::Prediction;

use super::edit::Edit;
use super::support::{folder_with, goes_on, numbers, root, run};

/// The roads between villages, as pairs of villages with and without one.
const ROADS: &str = r#"
data = { type = "csv", path = "villages.csv", graph = { edges = "roads.csv", id = "village", items = "links", negatives = 2 }, split = { valid = 0.2, test = 0.2 } }
optimizer = { type = "adam", learning_rate = 1e-2 }
train = { epochs = 4, batch_size = 200, micro_batch_size = 150 }
checkpoint = { every_steps = 3 }
task.metrics = ["auroc"]

[[model.layers]]
type = "gcn"
out_features = 16

[[model.layers]]
type = "tanh"

[[model.layers]]
type = "sage"
out_features = 8

[[model.layers]]
type = "edge_ends"

[[model.layers]]
type = "linear"
"#;

fn villages(spec: &str) -> tempfile::TempDir {
    let folder = folder_with(spec);
    for (from, to) in [
        ("villages.csv", "villages.csv"),
        ("villages_roads.csv", "roads.csv"),
    ] {
        let from = root().join("experiments/data").join(from);
        fs::copy(from, folder.path().join(to)).unwrap();
    }
    folder
}

fn said(folder: &Path, arguments: &[&str]) -> String {
    let (code, out, said) = run(folder, arguments);
    assert_eq!(code, 0, "{said}");
    out
}

/// Both nodes of each line of predictions.
fn pairs(table: &str) -> BTreeSet<[String; 2]> {
    let ends = |line: &str| {
        let (from, to) = line.split_once(',').unwrap().0.split_once(" - ").unwrap();
        let (from, to) = (from.to_owned(), to.to_owned());
        if from < to { [from, to] } else { [to, from] }
    };
    table.lines().skip(1).map(ends).collect()
}

#[test]
fn pairs_know_no_edge_that_is_held_out_and_resume_exactly() {
    let trained = |arguments: &[&str]| {
        let folder = villages(ROADS);
        let all = [&["run", "spec.toml", "--quiet"], arguments].concat();
        let (code, _, said) = run(folder.path(), &all);
        assert!(code == 0 || arguments.contains(&"--inject-fault"), "{said}");
        folder
    };
    let straight = trained(&["--jobs", "2"]);
    let stopped = trained(&["--inject-fault", "*@7"]);
    goes_on(stopped.path());
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));

    let folder = straight.path();
    let roads = fs::read_to_string(folder.join("roads.csv")).unwrap();
    let roads: BTreeSet<[String; 2]> = roads
        .lines()
        .skip(1)
        .map(|line| {
            let mut parts = line.split(',').map(str::to_owned);
            [parts.next().unwrap(), parts.next().unwrap()]
        })
        .collect();
    let of_split = ["train", "valid", "test"].map(|split| {
        pairs(&said(
            folder,
            &["predict", "results/spec", "--split", split],
        ))
    });
    let mut seen = BTreeSet::new();
    let mut with_edge = Vec::new();
    for pairs in &of_split {
        // Each pair is in one split, with twice as many pairs without an edge.
        assert!(pairs.iter().all(|pair| seen.insert(pair.clone())));
        let num = pairs.intersection(&roads).count();
        assert_eq!(pairs.len(), 3 * num);
        with_edge.push(num);
    }
    assert_eq!(with_edge.iter().sum::<usize>(), roads.len());
    // Messages pass along the edges of the train split, in both directions.
    let plan = fs::read_to_string(folder.join("results/spec/runs/base-s1/run.toml")).unwrap();
    assert!(
        plan.contains(&format!("num_edges = {}\n", 2 * with_edge[0])),
        "{plan}"
    );
}

#[test]
fn pairs_are_answered_one_by_one_too() {
    let folder = villages(ROADS);
    goes_on(folder.path());
    let rows = [("v001", "v002"), ("v010", "v003"), ("v004", "v004")];
    let table = rows.map(|(from, to)| format!("{from},{to}\n")).concat();
    fs::write(
        folder.path().join("pairs.csv"),
        format!("source,target\n{table}"),
    )
    .unwrap();
    let table = said(
        folder.path(),
        &["predict", "results/spec", "--data", "pairs.csv"],
    );
    let expected = table.lines().skip(1);
    let expected: Vec<f64> = expected
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect();
    let model = Model::open(&folder.path().join("results/spec"), &Options::default()).unwrap();
    let of = |from: &str, to: &str| format!("{{\"source\": \"{from}\", \"target\": \"{to}\"}}");
    let objects = rows.map(|(from, to)| of(from, to));
    let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
    // The nodes of the run are read with the first row.
    let found: Vec<Prediction> = objects
        .iter()
        .flat_map(|row| {
            let found = model.predict_objects(&[row]);
            fs::remove_file(folder.path().join("villages.csv")).unwrap_or_default();
            found.unwrap()
        })
        .collect();
    assert_eq!(found, model.predict_objects(&objects).unwrap());
    for (found, expected) in found.iter().zip(expected) {
        let Prediction::Labels { probabilities, .. } = found else {
            panic!("{found:?}");
        };
        assert!((f64::from(probabilities[0]) - expected).abs() < 1e-6);
    }
    let columns = model.incoming(Path::new("")).columns();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["source", "target"]);
    for (row, reason) in [
        (of("v001", "v9999"), "v9999"),
        ("{\"source\": \"v001\"}".to_owned(), "target"),
        ("{}".to_owned(), "a node is missing"),
    ] {
        let wrong = model.predict_objects(&[&row]).unwrap_err();
        assert!(wrong.message.contains(reason), "{row}: {}", wrong.message);
    }
}

/// The probability of an edge for each pair.
fn probabilities(table: &str, num_ends: usize) -> BTreeMap<String, String> {
    table
        .lines()
        .skip(1)
        .map(|line| {
            let mut parts = line.split(',');
            let ends: Vec<&str> = parts.by_ref().take(num_ends).collect();
            (ends.join(" "), parts.collect::<Vec<_>>().join(","))
        })
        .collect()
}

#[test]
fn new_pairs_are_predicted_as_those_of_a_split() {
    let folder = villages(ROADS);
    let folder = folder.path();
    said(folder, &["run", "spec.toml", "--quiet"]);
    let of_split = said(folder, &["predict", "results/spec", "--split", "test"]);
    let of_split: BTreeMap<String, String> = probabilities(&of_split, 1)
        .into_iter()
        .map(|(ends, rest)| (ends.split(" - ").collect::<Vec<_>>().join(" "), rest))
        .collect();
    let row = |ends: &String| ends.split(' ').collect::<Vec<_>>().join(",");
    let rows: Vec<String> = of_split.keys().map(row).collect();
    let rows = format!("source,target\n{}\n", rows.join("\n"));
    fs::write(folder.join("pairs.csv"), rows).unwrap();
    let arguments = ["predict", "results/spec", "--data", "pairs.csv"];
    let kept = ["--keep", "source", "--keep", "target", "--batch-size", "7"];
    let new = said(folder, &[&arguments[..], &kept].concat());
    // Without the numbers of the rows.
    let new: Vec<&str> = new
        .lines()
        .map(|line| line.split_once(',').unwrap().1)
        .collect();
    assert_eq!(probabilities(&new.join("\n"), 2), of_split);

    let lines = "{\"source\": \"v001\", \"target\": \"v002\", \"edge\": 1}\n{\"source\": \"v002\", \"target\": \"v004\", \"edge\": 0}\n";
    fs::write(folder.join("known.jsonl"), lines).unwrap();
    let report = said(
        folder,
        &[
            "evaluate",
            "results/spec",
            "--data",
            "known.jsonl",
            "--json",
        ],
    );
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["num_items"], 2, "{report}");

    let refused = |name: &str, text: &str, arguments: &[&str]| {
        fs::write(folder.join(name), text).unwrap();
        let all = [&["predict", "results/spec", "--data", name], arguments].concat();
        let (code, _, said) = run(folder, &all);
        assert_eq!(code, 2, "{said}");
        let about = said.find("error: ").unwrap();
        said[about..].to_owned()
    };
    let edges = ["--edges", "roads.csv"];
    insta::assert_snapshot!(
        [
            refused("lacks.csv", "source,to\nv001,v002\n", &[]),
            refused("unknown.csv", "source,target\nv001,v002\nv001,v01\n", &[]),
            refused("gap.csv", "source,target\nv001,\n", &[]),
            refused("pairs.npy", "", &[]),
            refused("two.csv", "source,target\nv001,v002\n", &edges),
        ]
        .concat()
    );
}

/// Columns of both tables are described in one list.
#[test]
fn columns_of_nodes_and_edges_have_settings() {
    let spec = ROADS
        .edit("items = \"links\", negatives = 2", "items = \"edges\"")
        .edit(
            "path = \"villages.csv\"",
            "path = \"villages.csv\", target = \"long\", columns = [{ name = \"people\", clip = [0, 500] }, { name = \"long\", type = \"number\" }]",
        )
        .edit("task.metrics = [\"auroc\"]\n", "");
    let folder = villages(&spec);
    let roads = fs::read_to_string(folder.path().join("roads.csv")).unwrap();
    let row = |(at, line): (usize, &str)| match at {
        0 => "source,target,long\n".to_owned(),
        _ => format!("{},{}\n", line.rsplit_once(',').unwrap().0, at % 2),
    };
    let roads: String = roads.lines().enumerate().map(row).collect();
    fs::write(folder.path().join("roads.csv"), roads).unwrap();
    let shown = said(folder.path(), &["data", "spec.toml"]);
    assert!(shown.contains("with targets of shape [1]"), "{shown}");
    said(folder.path(), &["run", "spec.toml", "--quiet"]);
}

#[test]
fn neighbors_of_both_nodes_are_drawn() {
    let spec = ROADS
        .edit("negatives = 2", "neighbors = [3, 2]")
        .edit("epochs = 4", "epochs = 2");
    let folder = villages(&spec);
    said(folder.path(), &["run", "spec.toml", "--quiet"]);
    let whole = villages(&spec.edit("neighbors = [3, 2]", "neighbors = [400, 400]"));
    said(whole.path(), &["run", "spec.toml", "--quiet"]);
    // With all neighbors, the network is that over the whole graph.
    let all = villages(&spec.edit(", neighbors = [3, 2]", ""));
    said(all.path(), &["run", "spec.toml", "--quiet"]);
    let loss = |folder: &Path| {
        let metrics =
            fs::read_to_string(folder.join("results/spec/runs/base-s1/metrics.csv")).unwrap();
        let mut lines = metrics
            .lines()
            .map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let at = lines
            .next()
            .unwrap()
            .iter()
            .position(|name| name == "valid/loss")
            .unwrap();
        lines.next().unwrap()[at].parse::<f64>().unwrap()
    };
    assert_ne!(loss(folder.path()), loss(whole.path()));
    let difference = (loss(whole.path()) - loss(all.path())).abs();
    assert!(difference < 1e-5, "{difference}");
}
