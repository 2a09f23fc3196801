//! Every input that can change a number is in an identity: each value of many plans is changed in turn, and the plan
//! becomes different work, or its data is refused, or there is a reason why no number depends on it.

mod keys;

use std::collections::BTreeMap;

use burn_runner::check::network::examples;
use burn_runner::data;
use burn_runner::plan::{ForkPlan, RunPlan};
use serde_json::{Value as Json, json};

use super::edit::Edit;
use super::support::{IRIS, plan, plan_in, root};

/// Values of a plan that no number depends on, and why: the fingerprint stays.
const OUT: &[(&str, &str)] = &[
    ("experiment", "a name"),
    ("id", "a name"),
    ("trial", "a name"),
    ("axes", "names of what other fields say"),
    ("fingerprint", "computed from the others"),
    ("memory_limit_bytes", "a limit: adjustments are recorded"),
    ("memory_reserve_bytes", "a limit"),
    ("on_exceed", "adjustments are recorded"),
    ("on_failure", "adjustments are recorded"),
    ("time_limit_secs", "a limit"),
    ("skip", "the run does not start"),
    (
        "fork.run",
        "a name; the fingerprint is that of its whole lineage",
    ),
    (
        "data.files.tokens.path",
        "the digest of the data covers the content of a tokenizer",
    ),
    ("forecast", "a forecast"),
    ("checkpoint", "a resumed run gives the same numbers"),
    ("predictions", "written after the last number"),
    ("train.log_every", "when numbers are read"),
    ("data.folder", "the same files elsewhere"),
    ("data.cache", "the same files elsewhere"),
    ("data.stands_in_for", "only for reports"),
    ("init.path", "the same file elsewhere"),
    ("init.tensors.[].name", "a name of the network's"),
    ("network.num_parameters", "a count"),
    ("network.activations_per_item", "a count"),
    ("network.multiply_adds_per_item", "a count"),
    ("data.files.roles.inputs.[].name", "a name"),
    ("network.parts.[].name", "a name"),
    (
        "data.files.graph",
        "the digest of the data covers the edges and how they are read",
    ),
    (
        "network.graph",
        "a size; the digest of the data covers the edges",
    ),
    ("data.split.by_run", "the seed of the split is resolved"),
    ("network.layers.[].name", "a name; groups are resolved"),
    ("network.layers.[].num_parameters", "a count"),
    ("network.layers.[].activations_per_item", "a count"),
    ("network.layers.[].multiply_adds_per_item", "a count"),
    (
        "network.layers.[].inputs.[].dims",
        "the shape of another layer",
    ),
    (
        "network.layers.[].inputs.[].vocabulary",
        "that of the items",
    ),
];

/// Values that the data's digest covers, or that loading compares: the data of such a plan is refused.
const LOADED: &[&str] = &[
    "data.input",
    "data.target",
    "data.more_targets",
    "data.files.format",
    "data.files.path",
    "data.files.valid_path",
    "data.files.test_path",
    "data.files.on_bad_item",
];

/// The path of a value without specific indices.
fn place(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1);
    let named = parts.map(|part| match part.parse::<usize>() {
        Ok(_) => "[]",
        Err(_) => part,
    });
    named.collect::<Vec<_>>().join(".")
}

fn is_in(place: &str, table: &str) -> bool {
    place
        .strip_prefix(table)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn pointers(value: &Json, at: String, found: &mut Vec<String>) {
    match value {
        Json::Object(map) => map.iter().for_each(|(key, inner)| {
            pointers(inner, format!("{at}/{}", key.replace('/', "~1")), found);
        }),
        Json::Array(list) => (0..list.len())
            .for_each(|number| pointers(&list[number], format!("{at}/{number}"), found)),
        _ => found.push(at),
    }
}

/// The possible names of a value, from the schema.
fn names() -> Vec<Json> {
    let text = std::fs::read_to_string(root().join("schemas/experiment.schema.json")).unwrap();
    let mut names = vec![json!("valid/loss"), json!("wgpu"), json!("x")];
    let mut queue = vec![serde_json::from_str::<Json>(&text).unwrap()];
    while let Some(next) = queue.pop() {
        if let Some(name) = next.get("const").filter(|name| name.is_string()) {
            names.push(name.clone());
        }
        names.extend(
            next.get("enum")
                .and_then(Json::as_array)
                .into_iter()
                .flatten()
                .cloned(),
        );
        match next {
            Json::Object(map) => queue.extend(map.into_iter().map(|(_, inner)| inner)),
            Json::Array(list) => queue.extend(list),
            _ => {}
        }
    }
    names.sort_by_key(Json::to_string);
    names.dedup();
    names
}

/// Other values that may replace one.
fn others(value: &Json, names: &[Json]) -> Vec<Json> {
    match value {
        Json::Bool(is) => vec![json!(!is)],
        Json::Number(number) => match number.as_u64() {
            Some(number) => vec![json!(number + 1)],
            None => vec![json!(number.as_f64().unwrap_or(0.0) * 2.0 + 0.125)],
        },
        Json::String(_) => names.to_vec(),
        _ => vec![json!(1), json!(0.5), json!(true), json!("x"), json!(["x"])],
    }
}

fn planned(text: &str) -> (burn_runner::plan::Plan, String) {
    plan("spec.toml", text).unwrap_or_else(|refused| panic!("{refused}"))
}

/// How many values of the same key of a list's items are changed in a plan: of hundreds of layers, not each tells more.
/// Each type of layer has a plan of its own.
const MOST: usize = 3;

/// The effect on a plan when each of its values below `below` is changed; errors as text. Visited paths are added to
/// `seen`.
fn wrong_in(run: &RunPlan, below: &str, names: &[Json], seen: &mut Vec<String>) -> Vec<String> {
    let whole = serde_json::to_value(run).unwrap();
    let mut found = Vec::new();
    pointers(&whole, String::new(), &mut found);
    // Names say what the patterns match, or where a pair ends.
    let has_names = !run.optimizer.groups.is_empty() || run.strategy.adversarial().is_some();
    let mut wrong = Vec::new();
    let mut tried: BTreeMap<String, usize> = BTreeMap::new();
    for pointer in found.iter().filter(|pointer| pointer.starts_with(below)) {
        let place = place(pointer);
        let tried = tried.entry(place.clone()).or_default();
        *tried += 1;
        if *tried > MOST {
            continue;
        }
        if has_names && is_in(&place, "network.layers.[].name") {
            continue;
        }
        for other in others(whole.pointer(pointer).unwrap(), names) {
            let mut changed = whole.clone();
            *changed.pointer_mut(pointer).unwrap() = other;
            let Ok(changed) = serde_json::from_value::<RunPlan>(changed) else {
                continue;
            };
            if serde_json::to_value(&changed).unwrap() == whole {
                continue;
            }
            seen.push(place.clone());
            let changed = changed.with_fingerprint();
            let is_same = changed.fingerprint == run.fingerprint;
            let is_out = OUT.iter().any(|(out, _)| is_in(&place, out));
            let is_loaded = LOADED.iter().any(|loaded| is_in(&place, loaded));
            if is_loaded && is_same {
                if data::load(&changed.data, &|_, _| {}).is_ok() {
                    wrong.push(format!("{} {place} is loaded all the same", run.id));
                }
            } else if is_same != is_out {
                wrong.push(format!("{} {place} is_same {is_same}", run.experiment));
            }
            break;
        }
    }
    wrong
}

#[test]
fn each_value_of_each_plan_is_in_an_identity() {
    let names = names();
    let folder = root().join("experiments");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
    files.sort_by_key(|file| file.path());
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    for path in files.iter().map(|file| file.path()) {
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let (plan, _) = plan_in(Some(&folder), "spec.toml", &text).unwrap();
        wrong.extend(wrong_in(&plan.runs[0], "", &names, &mut seen));
    }
    let full = "memory = { limit = '8GiB', reserve = '1GiB', on_exceed = 'accumulate' }\n\
        limits = { run = '1h' }\non_failure.killed.retries = 2\npredictions = { splits = ['valid'] }\n";
    let (plan, _) = planned(&format!("{full}{IRIS}"));
    wrong.extend(wrong_in(&plan.runs[0], "", &names, &mut seen));
    let mnist = "data = { type = 'mnist', part = 'test' }\n[model]";
    let text = format!("{mnist}{}", IRIS.split("[model]").nth(1).unwrap());
    let (of_mnist, _) = planned(&text);
    wrong.extend(wrong_in(&of_mnist.runs[0], "/data", &names, &mut seen));
    // What a copy begins as.
    let copied = RunPlan {
        fork: Some(ForkPlan {
            run: "other-s1".into(),
            fingerprint: "0123456789abcdef".into(),
            epoch: 2,
        }),
        ..plan.runs[0].clone()
    };
    let copied = copied.with_fingerprint();
    assert_ne!(copied.fingerprint, plan.runs[0].fingerprint);
    wrong.extend(wrong_in(&copied, "/fork", &names, &mut seen));
    // The network of each type of layer.
    for example in examples::examples() {
        let run = RunPlan {
            network: example.network,
            ..plan.runs[0].clone()
        };
        let run = run.with_fingerprint();
        wrong.extend(wrong_in(&run, "/network", &names, &mut seen));
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A row without any attempt proves nothing; `skip` exists on other machines, and no file is downloaded.
    let elsewhere = [
        "skip",
        "fingerprint",
        "data.files.valid_path",
        "data.files.test_path",
    ];
    let rows = OUT.iter().map(|(row, _)| row).chain(LOADED);
    let idle: Vec<_> = rows
        .filter(|row| !elsewhere.contains(row) && !seen.iter().any(|place| is_in(place, row)))
        .collect();
    assert!(idle.is_empty(), "never changed: {idle:?}");
}

const LAYERS: &str = "layers = [\n\
    { type = 'linear', name = 'first', out_features = 4 },\n\
    { type = 'relu', name = 'bend' },\n\
    { type = 'linear', name = 'second', out_features = 4 },\n\
    { type = 'relu' },\n{ type = 'linear', name = 'last' }]";

/// The fingerprint of a network with groups and other optimizer settings.
fn of_groups(layers: &str, optimizer: &str) -> String {
    let text = format!(
        "data.type = 'iris'\ntrain = {{ epochs = 1, batch_size = 30 }}\n[model]\n{layers}\n\
         [optimizer]\n{}{optimizer}",
        if optimizer.contains("type = ") {
            ""
        } else {
            "type = 'adamw'\nlearning_rate = 0.1\nweight_decay = 0.1\n"
        }
    );
    let (plan, _) = plan("spec.toml", &text).unwrap_or_else(|refused| panic!("{refused}"));
    plan.runs[0].fingerprint.clone()
}

fn group(parameters: &str, settings: &str) -> String {
    format!("[[optimizer.groups]]\nparameters = {parameters}\n{settings}\n")
}

#[test]
fn groups_are_what_they_come_to_for_each_parameter() {
    let slow = "learning_rate_factor = 0.5";
    let swapped = LAYERS.edit("'first'", "'x'").edit("'second'", "'first'");
    let swapped = swapped.edit("'x'", "'second'");
    let of = |layers: &str, groups: &[String]| of_groups(layers, &groups.concat());
    let first = of(LAYERS, &[group("'first.*'", slow)]);
    // The same pattern matches another layer, which is different work.
    assert_ne!(of(&swapped, &[group("'first.*'", slow)]), first);
    assert_eq!(of(&swapped, &[group("'second.*'", slow)]), first);
    // Names alone have no effect.
    assert_eq!(of(&swapped, &[]), of(LAYERS, &[]));
    let renamed = LAYERS.edit("'first'", "'begin'").edit("'bend'", "'b'");
    assert_eq!(of(&renamed, &[group("'begin.*'", slow)]), first);
    // Other patterns that match the same parameters.
    let same = [
        vec![group("['first.weight', 'first.bias']", slow)],
        vec![group("'first.weight'", slow), group("'first.bias'", slow)],
        vec![group("['first.*', 'first.bias']", slow)],
        vec![group("'*'", "weight_decay = 0.1"), group("'first.*'", slow)],
        vec![group("'first.*'", &format!("{slow}\nweight_decay = 0.1"))],
    ];
    for groups in same {
        assert_eq!(of(LAYERS, &groups), first, "{groups:?}");
    }
    assert_eq!(
        of(LAYERS, &[group("'last.*'", "weight_decay = 0.1")]),
        of(LAYERS, &[])
    );
    // Everything that a group can set, for its parameters.
    let different = [
        vec![],
        vec![group("'first.*'", "learning_rate_factor = 0.25")],
        vec![group("'first.*'", "weight_decay = 0.5")],
        vec![group("'first.*'", "freeze = true")],
        vec![group("'first.*'", &format!("{slow}\nweight_decay = 0.5"))],
        vec![group("'first.weight'", slow)],
        vec![group("'first.bias'", slow)],
        vec![group("'second.*'", slow)],
        vec![group("['first.*', 'last.bias']", slow)],
        vec![group("'first.*'", slow), group("'last.*'", "freeze = true")],
    ];
    let mut seen = vec![first];
    for groups in different {
        let now = of(LAYERS, &groups);
        assert!(!seen.contains(&now), "{groups:?}");
        seen.push(now);
    }
}

#[test]
fn what_muon_leaves_to_adamw_is_what_it_comes_to() {
    let muon = |layers: &str, parameters: &str| {
        let adamw = format!("adamw = {{ learning_rate = 0.01, parameters = {parameters} }}\n");
        of_groups(
            layers,
            &format!("type = 'muon'\nlearning_rate = 0.1\n{adamw}"),
        )
    };
    let last = muon(LAYERS, "'last.weight'");
    assert_ne!(muon(LAYERS, "'first.weight'"), last);
    let renamed = LAYERS.edit("'last'", "'head'");
    assert_eq!(muon(&renamed, "'head.w*'"), last);
}

/// A loss that counts positions of one of two masks.
const MASKS: &str = r#"
[data]
type = "json_lines"
path = "series.jsonl"
target = "next"
scale = "none"

[model]
layers = [
  { type = "padding_mask", name = "zeros" },
  { type = "padding_mask", name = "fives", padding = 5, inputs = ["input"] },
  { type = "unsqueeze", axis = 1, inputs = ["input"] },
  { type = "gru", name = "first", hidden_size = 4, mask = "zeros" },
  { type = "gru", name = "second", hidden_size = 4, mask = "fives" },
  { type = "linear", name = "head", out_features = 1 },
  { type = "flatten", name = "flat" },
]

[loss]
type = "mse"
mask = "zeros"

[[losses]]
type = "mae"
output = "flat"
mask = "fives"
weight = 0.5

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 1
batch_size = 8
"#;

#[test]
fn masks_of_losses_are_the_layers_that_they_name() {
    let folder = tempfile::tempdir().unwrap();
    let row = |at: usize| {
        let values: Vec<usize> = (0..6).map(|step| 1 + (at + step) % 4).collect();
        format!("{{\"values\": {values:?}, \"next\": {values:?}}}\n")
    };
    let rows: String = (0..40).map(row).collect();
    std::fs::write(folder.path().join("series.jsonl"), rows).unwrap();
    let of = |text: &str| {
        let planned = plan_in(Some(folder.path()), "spec.toml", text);
        let (plan, _) = planned.unwrap_or_else(|refused| panic!("{refused}"));
        plan.runs[0].clone()
    };
    let run = of(MASKS);
    // The names change places, but not their uses by layers.
    let swapped = MASKS
        .edit("name = \"zeros\"", "name = \"x\"")
        .edit("name = \"fives\"", "name = \"zeros\"")
        .edit("name = \"x\"", "name = \"fives\"")
        .edit("size = 4, mask = \"zeros\"", "size = 4, mask = \"x\"")
        .edit("size = 4, mask = \"fives\"", "size = 4, mask = \"zeros\"")
        .edit("size = 4, mask = \"x\"", "size = 4, mask = \"fives\"");
    let swapped = of(&swapped);
    assert_eq!(run.network.work(), swapped.network.work());
    assert_ne!(run.fingerprint, swapped.fingerprint);
    let renamed = MASKS
        .edit("name = \"zeros\"", "name = \"x\"")
        .edit("size = 4, mask = \"zeros\"", "size = 4, mask = \"x\"")
        .edit(
            "type = \"mse\"\nmask = \"zeros\"",
            "type = \"mse\"\nmask = \"x\"",
        );
    assert_eq!(of(&renamed).fingerprint, run.fingerprint);
    // What refers to a layer by its name must be resolved in the fingerprint, since names are not in it.
    let whole = serde_json::to_value(&run).unwrap();
    let layers = run.network.layers.iter().map(|layer| layer.name.as_str());
    let names: Vec<&str> = layers.collect();
    let mut found = Vec::new();
    pointers(&whole, String::new(), &mut found);
    found.retain(|at| {
        let value = whole.pointer(at).and_then(Json::as_str);
        value.is_some_and(|value| names.contains(&value))
    });
    found.retain(|at| !is_in(&place(at), "network.layers.[].name"));
    assert_eq!(found, ["/loss/mask", "/losses/0/name", "/losses/0/mask"]);
}
