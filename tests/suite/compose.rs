//! Composed files: layers, references, the environment, and what `render` shows of them.

use std::fs;
use std::path::Path;

use burn_runner::plan::{self, Plan};
use burn_runner::spec::document::{Document, Table, Value};
use burn_runner::spec::reference::References;
use burn_runner::spec::render;

use super::edit::Edit;
use super::support::{
    IRIS, folder_with, machine, plan as plan_text, plan_in, root, run, runner, texts,
};

/// A folder with files in it, as pairs of path and text.
pub fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Plans the file `spec.toml` of a folder.
fn plan_of(folder: &Path) -> Plan {
    let text = fs::read_to_string(folder.join("spec.toml")).unwrap();
    let planned = plan_in(Some(folder), "spec.toml", &text);
    planned.unwrap_or_else(|message| panic!("{message}")).0
}

fn plan_alone(text: &str) -> Plan {
    let planned = plan_text("spec.toml", text);
    planned.unwrap_or_else(|message| panic!("{message}")).0
}

/// A value of the document of a text, with its references resolved.
fn value_of(text: &str, path: &str) -> String {
    let document = Document::parse("spec.toml", text).unwrap();
    let resolved = References::new(&document).resolve(document.root.clone(), &[]);
    assert!(
        resolved.diagnostics.is_empty(),
        "{:?}",
        resolved.diagnostics
    );
    let entry = resolved.root.at(path);
    entry
        .unwrap_or_else(|| panic!("no `{path}`"))
        .node
        .value
        .to_toml()
}

fn fingerprints(plan: &Plan) -> Vec<(&str, &str)> {
    let runs = plan.runs.iter();
    runs.map(|run| (run.id.as_str(), run.fingerprint.as_str()))
        .collect()
}

#[test]
fn the_file_wins_over_later_files_and_those_over_earlier_ones() {
    let folder = folder_of(&[
        ("base/first.toml", IRIS),
        (
            "base/second.toml",
            "[train]\nepochs = 5\nbatch_size = 8\n[model]\nhidden = [3, 4]\n",
        ),
        (
            "spec.toml",
            "extends = [\"base/first.toml\", \"base/second.toml\"]\n[train]\nbatch_size = 4\n",
        ),
    ]);
    let run = &plan_of(folder.path()).runs[0];
    assert_eq!((run.train.epochs, run.train.batch_size), (5, 4));
    // Lists are replaced, and other keys are kept.
    let of_linear = |inputs: u64, outputs: u64| (inputs + 1) * outputs;
    let expected = of_linear(4, 3) + of_linear(3, 4) + of_linear(4, 3);
    assert_eq!(run.network.num_parameters, expected);
}

#[test]
fn where_a_value_is_written_does_not_change_the_work() {
    let folder = folder_of(&[
        (
            "base.toml",
            &IRIS.edit("[train]\nepochs = 3\nbatch_size = 16\n", ""),
        ),
        (
            "spec.toml",
            "extends = \"base.toml\"\n[values]\nsize = 4\n[train]\nepochs = 3\nbatch_size = \"${values.size * 4}\"\n",
        ),
    ]);
    assert_eq!(
        fingerprints(&plan_of(folder.path())),
        fingerprints(&plan_alone(IRIS))
    );
}

#[test]
fn a_table_of_another_type_starts_anew() {
    let folder = folder_of(&[
        (
            "base.toml",
            &IRIS.edit("type = \"adam\"", "type = \"adam\"\nbeta_1 = 0.8"),
        ),
        (
            "spec.toml",
            "extends = \"base.toml\"\n[optimizer]\ntype = \"sgd\"\nlearning_rate = 0.1\n",
        ),
        (
            "same.toml",
            "extends = \"base.toml\"\n[optimizer]\ntype = \"adam\"\nlearning_rate = 0.1\n",
        ),
    ]);
    let sgd = IRIS.edit(
        "type = \"adam\"\nlearning_rate = 1e-2",
        "type = \"sgd\"\nlearning_rate = 0.1",
    );
    assert_eq!(
        fingerprints(&plan_of(folder.path())),
        fingerprints(&plan_alone(&sgd))
    );
    let text = fs::read_to_string(folder.path().join("same.toml")).unwrap();
    let (same, _) = plan_in(Some(folder.path()), "same.toml", &text).unwrap();
    let adam = IRIS.edit("learning_rate = 1e-2", "learning_rate = 0.1\nbeta_1 = 0.8");
    assert_eq!(fingerprints(&same), fingerprints(&plan_alone(&adam)));
}

#[test]
fn two_files_may_extend_the_same_one() {
    let folder = folder_of(&[
        ("base.toml", IRIS),
        (
            "more/left.toml",
            "extends = \"../base.toml\"\n[train]\nepochs = 7\n",
        ),
        (
            "more/right.toml",
            "extends = [\"../more/../base.toml\"]\n[train]\nbatch_size = 8\n",
        ),
        (
            "spec.toml",
            "extends = [\"more/left.toml\", \"more/right.toml\"]\n",
        ),
    ]);
    let plan = plan_of(folder.path());
    // `right` includes the base again, over `left`.
    assert_eq!(
        (plan.runs[0].train.epochs, plan.runs[0].train.batch_size),
        (3, 8)
    );
}

#[test]
fn an_axis_is_the_same_axis_however_it_is_spelled() {
    let folder = folder_of(&[
        (
            "base.toml",
            &format!(
                "{IRIS}\n[sweep.grid]\noptimizer.learning_rate = [0.1, 0.2]\ntrain.epochs = [1, 2]\n"
            ),
        ),
        (
            "spec.toml",
            "extends = \"base.toml\"\n[sweep.grid]\n\"optimizer.learning_rate\" = [0.3]\n",
        ),
    ]);
    let plan = plan_of(folder.path());
    let ids: Vec<_> = plan.runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "epochs=1,learning_rate=0.3-s1",
            "epochs=2,learning_rate=0.3-s1"
        ]
    );
    let mut document = Document::read(&folder.path().join("spec.toml")).unwrap();
    let set = "sweep.grid.optimizer.learning_rate=[0.4, 0.5]";
    document.set(set).unwrap();
    assert_eq!(plan::trials(&document).unwrap().len(), 4);
}

#[test]
fn references_keep_types_and_expressions_compute() {
    let text = r#"
[values]
width = 32
half = "${values.width / 2}"
third = "${values.width / 3}"
name = "w${values.width}_${values.half}"
sizes = ["${values.width}", "${2 * values.width}"]
second = "${values.sizes.1}"
copy = "${values.sizes}"
raw = "$${values.width} and $$"
flag = "${values.width in [16, 32] and values.kind != 'adam'}"
kind = "sgd"
root = "${round(sqrt(values.width) * 2 ** 2) + int(7.9) + floor(-0.5) + len(values.sizes)}"
rate = "${0.001 * values.width / 64}"
more = "${max(values.width, 40, 2.5)} of ${pow(2, -1)}"
list = "${[values.width, 'x', true]}"
deep = "${values.table.inner.a}"
table = { inner = { a = 1 } }
"#;
    let cases = [
        ("half", "16"),
        ("third", "10.666666666666666"),
        ("name", "\"w32_16\""),
        ("sizes", "[32, 64]"),
        ("second", "64"),
        ("copy", "[32, 64]"),
        ("raw", "\"${values.width} and $$\""),
        ("flag", "true"),
        ("root", "31"),
        ("rate", "0.0005"),
        ("more", "\"40 of 0.5\""),
        ("list", "[32, \"x\", true]"),
        ("deep", "1"),
    ];
    for (key, expected) in cases {
        assert_eq!(value_of(text, &format!("values.{key}")), expected, "{key}");
    }
}

#[test]
fn layers_mix_keys_with_parameters_of_blocks() {
    let with = |out: &str, more: &str| {
        format!(
            r#"
[data]
type = "iris"
[values]
width = 4
layer = {{ type = "relu" }}
[model.blocks.pair]
parameters = {{ factor = 2 }}
layers = [{{ type = "linear", out_features = "{out}" }}, {more}]
[[model.layers]]
type = "pair"
factor = 3
[[model.layers]]
type = "linear"
name = "head"
[optimizer]
type = "adam"
learning_rate = 1e-2
[train]
epochs = 3
"#
        )
    };
    let mixed = plan_alone(&with("${factor * values.width}", "\"${values.layer}\""));
    let plain = plan_alone(
        &with("${factor * 4}", "{ type = \"relu\" }")
            .edit("[values]\nwidth = 4\nlayer = { type = \"relu\" }\n", ""),
    );
    assert_eq!(fingerprints(&mixed), fingerprints(&plain));
}

/// A block with several inputs is the layers inside it: with `repeat`, each copy takes the output of the one before, and
/// `share` computes it again with other inputs.
#[test]
fn a_block_with_several_inputs_is_its_layers() {
    let spec = |layers: &str| {
        format!(
            "data = {{ type = \"sine_windows\", length = 12 }}\n\
             optimizer = {{ type = \"adam\", learning_rate = 1e-3 }}\ntrain.epochs = 1\n\
             [model]\nlayers = [\n{{ type = \"padding_mask\", name = \"real\" }},\n\
             {{ type = \"linear\", name = \"memory\", out_features = 6, inputs = [\"input\"] }},\n\
             {{ type = \"linear\", name = \"x\", out_features = 4, inputs = [\"input\"] }},\n{layers}\n\
             {{ type = \"flatten\" }},\n{{ type = \"linear\" }}]\n"
        )
    };
    let block = "[model.blocks.cross]\ninputs = [\"query\", \"context\", \"real\"]\nlayers = [\n\
         { type = \"multi_head_attention\", num_heads = 2, inputs = [\"input\", \"context\"], mask = \"real\" },\n\
         { type = \"sequence\", layers = [{ type = \"add\", inputs = [\"previous\", \"query\"] }] },\n]\n";
    let uses = "{ type = \"cross\", name = \"c\", inputs = [\"previous\", \"memory\", \"real\"], repeat = 2 },\n\
         { share = \"c\", name = \"d\", inputs = [\"x\", \"memory\", \"real\"] },\n\
         { type = \"subtract\", inputs = [\"c\", \"d\"] },";
    let one = |name: &str, query: &str, kind: &str| {
        format!(
            "{{ {kind}, name = \"{name}\", inputs = [\"{query}\", \"memory\"] }},\n\
             {{ type = \"add\", inputs = [\"previous\", \"{query}\"], name = \"{name}-sum\" }},\n"
        )
    };
    let attention = "type = \"multi_head_attention\", num_heads = 2, mask = \"real\"";
    let layers = one("a", "x", attention)
        + &one("b", "a-sum", attention)
        + &one("again", "x", "share = \"b\"")
        + "{ type = \"subtract\", inputs = [\"b-sum\", \"again-sum\"] },";
    let (blocks, _) = plan_in(None, "spec.toml", &(spec(uses) + block)).unwrap();
    let (plain, _) = plan_in(None, "spec.toml", &spec(&layers)).unwrap();
    let shapes = |plan: &Plan| -> Vec<String> {
        let layers = plan.runs[0].network.layers.iter();
        let of = layers.map(|layer| {
            let inputs: Vec<_> = layer.inputs.iter().map(|input| input.layer).collect();
            format!(
                "{:?} {:?} {:?} {:?}",
                layer.kind, inputs, layer.masks, layer.weights
            )
        });
        of.collect()
    };
    assert_eq!(shapes(&blocks), shapes(&plain));
    assert_eq!(
        blocks.runs[0].network.layers[3].name,
        "c1.multi_head_attention_1"
    );
}

#[test]
fn references_follow_the_axes() {
    let text = format!(
        "{}\n[values]\nlayers = {{ depth = 1 }}\n[sweep.grid]\ntrain.batch_size = [8, 16]\noptimizer.learning_rate = [\"${{0.01 * train.batch_size / 8}}\", 0.5]\n",
        IRIS.edit(
            "epochs = 3",
            "epochs = \"${train.batch_size / 4 * values.layers.depth}\""
        )
    );
    let plan = plan_alone(&text);
    let found: Vec<_> = plan
        .runs
        .iter()
        .map(|run| {
            (
                run.train.epochs,
                run.optimizer.learning_rate,
                run.axes["optimizer.learning_rate"].to_string(),
            )
        })
        .collect();
    let expected = [
        (2, 0.01, "0.01"),
        (2, 0.5, "0.5"),
        (4, 0.02, "0.02"),
        (4, 0.5, "0.5"),
    ];
    let expected = expected.map(|(epochs, rate, axis)| (epochs, rate, axis.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn a_whole_table_and_a_value_that_is_an_axis_can_be_referred_to() {
    let text = format!(
        "optimizer = \"${{values.sgd}}\"\n{}\n[values.sgd]\ntype = \"sgd\"\nlearning_rate = 0.1\n[sweep.grid]\n\"values.sgd.momentum\" = [0.5, 0.9]\n",
        IRIS.edit("[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-2\n", "")
    );
    let plan = plan_alone(&text);
    assert_eq!(plan.runs.len(), 2);
    assert_ne!(plan.runs[0].fingerprint, plan.runs[1].fingerprint);
    assert_eq!(plan.runs[0].id, "momentum=0.5-s1");
}

#[test]
fn values_that_nothing_refers_to_are_warned_of_where_they_are_ones_own() {
    let folder = folder_of(&[
        ("base.toml", &format!("{IRIS}\n[values]\nfor_others = 1\n")),
        (
            "spec.toml",
            "extends = \"base.toml\"\n[values]\nwidht = 3\ntable = { used = 3, unused = 4 }\n[train]\nepochs = \"${values.table.used}\"\n",
        ),
    ]);
    let text = fs::read_to_string(folder.path().join("spec.toml")).unwrap();
    let (_, warnings) = plan_in(Some(folder.path()), "spec.toml", &text).unwrap();
    insta::assert_snapshot!(warnings);
}

#[test]
fn paths_may_come_from_the_environment_and_are_relative_to_their_file() {
    let mnist = IRIS.edit(
        "type = \"iris\"",
        "type = \"mnist\"\ndownload = false\nroot = \"ROOT\"",
    );
    let folder = folder_of(&[
        (
            "bases/default.toml",
            &mnist.edit("ROOT", "${env:RUNNER_TEST_DATA:-files}/mnist"),
        ),
        ("spec.toml", "extends = \"bases/default.toml\"\n"),
    ]);
    let looked_in = |data: Option<&str>| {
        let mut command = runner(folder.path());
        command
            .args(["render", "spec.toml"])
            .env_remove("RUNNER_TEST_DATA");
        command.envs(data.map(|data| ("RUNNER_TEST_DATA", data)));
        let (code, stdout, stderr) = texts(&command.output().unwrap());
        assert_eq!(code, 0, "{stderr}");
        let line = stdout
            .lines()
            .find(|line| line.starts_with("root"))
            .unwrap();
        line.split(" #").next().unwrap().trim_end().to_owned()
    };
    assert_eq!(looked_in(None), "root = \"bases/files/mnist\"");
    assert_eq!(looked_in(Some("/data")), "root = \"/data/mnist\"");
    assert_eq!(looked_in(Some("")), "root = \"bases/files/mnist\"");
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("searched bases/files/mnist"), "{stderr}");
}

#[test]
fn the_schema_accepts_layers_and_references_and_still_refuses_what_is_wrong() {
    let schema = serde_json::from_str(&burn_runner::spec::schema::experiment_schema()).unwrap();
    let accepts = |text: &str| {
        // Without its files, `extends` is an ordinary key.
        let text = text.replace(EXTENDS, OTHERWISE);
        let mut root = Document::parse("x.toml", &text).unwrap().root;
        for entry in &mut root.entries {
            entry.key = entry.key.replace(OTHERWISE, EXTENDS);
        }
        super::schema::accepts(&schema, &Value::Table(root).to_json())
    };
    for accepted in [
        IRIS,
        SWEEP,
        LAYERS,
        &format!("values = {{ any = 3 }}\n{IRIS}"),
        &IRIS.edit("1e-2", "\"${0.01 * train.epochs}\""),
        &IRIS.edit("\"mlp\"", "\"${values.kind}\""),
        "extends = \"base.toml\"\n[train]\nbatch_size = 4\n[optimizer]\nlearning_rate = 0.1\n",
        "extends = []\n",
    ] {
        assert!(accepts(accepted), "{accepted}");
    }
    for refused in [
        &IRIS.edit("1e-2", "\"fast\""),
        &IRIS.edit("1e-2", "-1.0"),
        &IRIS.edit("learning_rate = 1e-2", ""),
        &IRIS.edit("type = \"adam\"", ""),
        &IRIS.edit("epochs = 3", ""),
        &IRIS.edit("epochs", "epoch"),
        "extends = \"base.toml\"\n[train]\nbatch_size = -4\n",
        "extends = \"base.toml\"\n[train]\nbatchsize = 4\n",
        "extends = 3\n",
    ] {
        assert!(!accepts(refused), "{refused}");
    }
}

/// A key that is ordinary under another name.
const EXTENDS: &str = "extends";
const OTHERWISE: &str = "extendz";

const SWEEP: &str = r#"extends = "bases/iris.toml"

[values]
width = 16

[model]
hidden = ["${values.width}", "${2 * values.width}"]

[train]
batch_size = 16

[sweep.grid]
optimizer.type = ["sgd", "adam"]
optimizer.learning_rate = [0.1, "${0.001 * values.width}"]
"values.width" = [8, 16]
"#;

const LAYERS: &str = r#"extends = "bases/iris.toml"

[model]
type = "layers"

[[model.layers]]
type = "linear"
name = "hidden"
out_features = "${train.batch_size}"

[[model.layers]]
type = "sequence"
repeat = 2
layers = [{ type = "linear", out_features = "${8 * train.epochs}" }, { type = "relu" }, { type = "dropout", probability = 0.1 }]

[[model.layers]]
type = "linear"

[optimizer.clip]
global_norm = 5.0
"#;

#[test]
fn render_shows_where_every_value_is_from() {
    let folder = folder_of(&[
        ("bases/iris.toml", IRIS),
        ("sweep.toml", SWEEP),
        ("layers.toml", LAYERS),
    ]);
    let mut shown = String::new();
    for arguments in [
        &["render", "sweep.toml", "--set", "train.epochs=5"][..],
        &[
            "render",
            "sweep.toml",
            "--trial",
            "optimizer=sgd,learning_rate=0.001-values.width,width=8",
        ],
        &["render", "layers.toml"],
        &[
            "render",
            "layers.toml",
            "--defaults",
            "--set",
            "model.layers.hidden.out_features=3",
        ],
        &[
            "render",
            "sweep.toml",
            "--trial",
            "optimizer=sdg,learning_rate=0.1,width=8",
        ],
        &["render", "sweep.toml", "--set", "extends=base.toml"],
    ] {
        let (_, stdout, stderr) = run(folder.path(), arguments);
        shown.push_str(&format!("$ {}\n{stdout}{stderr}\n", arguments.join(" ")));
    }
    insta::assert_snapshot!(shown);
}

/// Plans the output of `render`, in the place of the file itself.
fn rendered_and_planned(folder: &Path, spec: &str, arguments: &[&str]) -> Plan {
    let (code, stdout, stderr) = run(folder, &[&["render", spec], arguments].concat());
    assert_eq!(code, 0, "{stderr}");
    let planned = plan_in(Some(folder), spec, &stdout);
    planned
        .unwrap_or_else(|message| panic!("{message}\n{stdout}"))
        .0
}

#[cfg(unix)]
#[test]
fn what_is_rendered_plans_to_the_same_runs() {
    let folder = folder_of(&[
        ("bases/iris.toml", IRIS),
        ("sweep.toml", SWEEP),
        ("layers.toml", LAYERS),
    ]);
    for entry in fs::read_dir(root().join("experiments")).unwrap().flatten() {
        if entry.path().is_file() {
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    // Files that experiments name are found where they are.
    std::os::unix::fs::symlink(root().join("experiments/data"), folder.path().join("data"))
        .unwrap();
    let mut specs: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    specs.sort();
    for spec in specs {
        let text = fs::read_to_string(folder.path().join(&spec)).unwrap();
        let (plan, _) = plan_in(Some(folder.path()), &spec, &text).unwrap();
        for arguments in [&[][..], &["--defaults"]] {
            let again = rendered_and_planned(folder.path(), &spec, arguments);
            assert_eq!(
                fingerprints(&again),
                fingerprints(&plan),
                "{spec} {arguments:?}"
            );
        }
        let last = plan.runs.last().unwrap();
        for more in [&[][..], &["--defaults"]] {
            let arguments = [&["--trial", last.trial.as_str()], more].concat();
            let again = rendered_and_planned(folder.path(), &spec, &arguments);
            let trial = plan.runs.iter().filter(|run| run.trial == last.trial);
            let trial: Vec<_> = trial.map(|run| &run.fingerprint).collect();
            let again: Vec<_> = again.runs.iter().map(|run| &run.fingerprint).collect();
            assert_eq!(again, trial, "{spec} {arguments:?}");
        }
    }
}

#[test]
fn results_of_several_layers_can_be_run_again_by_themselves() {
    let folder = folder_of(&[
        ("base.toml", IRIS),
        (
            "spec.toml",
            "extends = \"base.toml\"\n[train]\nepochs = 1\n",
        ),
    ]);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let copied = fs::read(folder.path().join("results/spec/experiment.toml")).unwrap();
    assert_eq!(copied, fs::read(folder.path().join("spec.toml")).unwrap());
    // The base is gone, but the results still contain what was run.
    fs::remove_file(folder.path().join("base.toml")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "results/spec/resolved.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("1 already completed"), "{stderr}");
    // A changed base results in other runs.
    fs::write(folder.path().join("base.toml"), IRIS.edit("[16]", "[17]")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0);
    assert!(stderr.contains("`base-s1` is rerun: `model`"), "{stderr}");
}

#[test]
fn wrong_bases_are_found_from_the_command_line_too() {
    let folder = folder_with("extends = \"base.toml\"\n");
    fs::write(
        folder.path().join("base.toml"),
        b"[data]\ntype = \"\xe9\"\n",
    )
    .unwrap();
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 2);
    let large = fs::File::create(folder.path().join("base.toml")).unwrap();
    large.set_len(50 << 20).unwrap();
    let (_, _, too_large) = run(folder.path(), &["check", "spec.toml"]);
    insta::assert_snapshot!(format!("{stderr}\n{too_large}"));
}

mod properties {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Values of a few names that refer to each other, including tables and lists.
    fn values() -> impl Strategy<Value = BTreeMap<String, String>> {
        let name = prop_oneof![Just("a"), Just("b"), Just("c"), Just("d"), Just("e")];
        let leaf = prop_oneof![
            (-3i64..1000).prop_map(|v| v.to_string()),
            any::<f64>()
                .prop_filter("written", |v| v.is_finite())
                .prop_map(|v| format!("{v:?}")),
            "[ -~é\n]{0,6}".prop_map(|text| Value::Str(text).to_toml()),
            name.clone()
                .prop_map(|name| format!("\"${{values.{name}}}\"")),
            (name.clone(), name.clone())
                .prop_map(|(a, b)| format!("\"${{values.{a} + 2 * values.{b}}}\"")),
            (name.clone(), name.clone())
                .prop_map(|(a, b)| format!("\"x${{values.{a}}}$${{${{values.{b}}}\"")),
        ];
        let value = leaf.prop_recursive(3, 12, 3, |inner| {
            let table = proptest::collection::btree_map("[a-e]|a b|é", inner.clone(), 0..3);
            prop_oneof![
                proptest::collection::vec(inner, 0..3)
                    .prop_map(|items| format!("[{}]", items.join(", "))),
                table.prop_map(|table| {
                    let entries = table
                        .iter()
                        .map(|(key, value)| format!("{:?} = {value}", key));
                    format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
                }),
            ]
        });
        let values = proptest::collection::btree_map(name, value, 0..5);
        values.prop_map(|values| values.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    }

    fn text(values: &BTreeMap<String, String>) -> String {
        let lines = values
            .iter()
            .map(|(key, value)| format!("{key} = {value}\n"));
        format!(
            "[experiment]\nname = \"x\"\n[values]\n{}",
            lines.collect::<String>()
        )
    }

    /// The tree as text, without places.
    fn shown(root: &Table) -> String {
        Value::Table(root.clone()).to_toml()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn layers_and_references_end_and_what_is_rendered_is_read_again(base in values(), over in values()) {
            let folder = folder_of(&[("base.toml", &text(&base))]);
            let over = format!("extends = \"base.toml\"\n{}", text(&over));
            let document = Document::compose("spec.toml", &over, Some(folder.path()))
                .map_err(|(sources, wrong)| wrong.render(&sources, false)).unwrap();
            // Unchanged: every reference is kept.
            let kept = render::render(&document, &document.root, &[], "x");
            let again = Document::parse("spec.toml", &kept).unwrap();
            prop_assert_eq!(sorted(&shown(&again.root)), sorted(&shown(&document.root)));
            let references = References::new(&document);
            let resolved = references.resolve_as_text(document.root.clone(), &[]);
            if resolved.diagnostics.is_empty() {
                let text = render::render(&document, &resolved.root, &[], "x");
                let again = Document::parse("spec.toml", &text).unwrap();
                let read = References::new(&again).resolve(again.root.clone(), &[]);
                let direct = references.resolve(document.root.clone(), &[]);
                prop_assert_eq!(sorted(&shown(&read.root)), sorted(&shown(&direct.root)));
            }
            let no_data = &mut |_: &_| unreachable!("there is no data");
            let planned = plan::plan(&document, "x", no_data, &mut plan::init::no_files, &machine);
            prop_assert!(planned.is_err());
        }
    }

    /// Tables come after other keys in a rendered text.
    fn sorted(text: &str) -> Vec<char> {
        let mut chars: Vec<_> = text.chars().collect();
        chars.sort_unstable();
        chars
    }
}
