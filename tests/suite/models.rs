//! Networks from files: graphs, blocks, presets, and the output of `describe`.

use std::fs;

use burn_runner::spec::model::preset::{ModelType, Preset};
use burn_runner::spec::section::Choice;

use super::edit::Edit;
use super::support::{IRIS, folder_with, plan, run};

/// Branches, a block with parameters, repetition, freezing, initializers.
const GRAPH: &str = r#"
[data]
type = "digits"

[[model.layers]]
type = "conv2d"
name = "stem"
out_channels = 8
kernel_size = 3
padding = "same"
freeze = true
initializer = { type = "orthogonal" }

[[model.layers]]
type = "residual"
repeat = 2

[[model.layers]]
type = "residual"
name = "wide"
channels = 12

[[model.layers]]
type = "adaptive_avg_pool2d"
name = "pooled"
output_size = 1

[[model.layers]]
type = "max_pool2d"
inputs = ["stem"]
kernel_size = 8

[[model.layers]]
type = "concat"
inputs = ["pooled", "previous"]

[[model.layers]]
type = "flatten"

[[model.layers]]
type = "sequence"
for_each = { width = [24, 16] }
layers = [{ type = "linear", out_features = "${width}" }, { type = "gelu" }]

[[model.layers]]
type = "linear"

[model.blocks.residual]
parameters = { channels = 8 }
layers = [
    { type = "batch_norm" },
    { type = "relu" },
    { type = "conv2d", name = "body", out_channels = "${channels}", kernel_size = 3, padding = 1 },
    { type = "conv2d", name = "shortcut", inputs = ["input"], out_channels = "${channels}", kernel_size = 1, bias = false },
    { type = "add", inputs = ["body", "shortcut"] },
]

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 2
"#;

#[test]
fn a_graph_is_described_as_a_table_and_as_a_drawing() {
    let folder = folder_with(GRAPH);
    let (code, table, stderr) = run(folder.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    insta::assert_snapshot!("describe_table", table);
    let (code, dot, _) = run(folder.path(), &["describe", "spec.toml", "--dot"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("describe_dot", dot);
}

#[test]
fn frozen_groups_are_described() {
    let spec = IRIS.edit("hidden = [16]", "hidden = [8, 8]");
    let group = |patterns: &str| {
        format!("{spec}\n[[optimizer.groups]]\nparameters = {patterns}\nfreeze = true\n")
    };
    let folder = folder_with(&group(r#"["linear_1.*", "linear_2.bias"]"#));
    let (code, table, stderr) = run(folder.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let row = |name: &str| table.lines().find(|line| line.contains(name)).unwrap();
    assert!(row("linear_1").contains("40 (frozen)"), "{table}");
    assert!(row("linear_2").contains("72 (8 frozen)"), "{table}");
    assert!(!row("linear_3").contains("frozen"), "{table}");
    assert!(
        table.contains("139 parameters (48 of them frozen)"),
        "{table}"
    );
    let (_, json, _) = run(folder.path(), &["describe", "spec.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!(json["trained_parameters"], 91);
    // Trials that freeze different groups are different networks.
    let frozen = |layer: &str| format!("[{{ parameters = \"{layer}.*\", freeze = true }}]");
    let folder = folder_with(&format!(
        "{spec}\n[sweep.grid]\n\"optimizer.groups\" = [{}, {}]\n",
        frozen("linear_1"),
        frozen("linear_2")
    ));
    let (code, table, stderr) = run(folder.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(table.contains("(40 of them frozen)"), "{table}");
    assert!(table.contains("(72 of them frozen)"), "{table}");
}

#[test]
fn trials_with_different_networks_are_described_one_by_one() {
    let axes = "[sweep.grid]\nmodel.hidden = [[8], [16]]\noptimizer.learning_rate = [0.1, 0.01]\n";
    let folder = folder_with(&format!("{IRIS}\n{axes}"));
    let (code, table, stderr) = run(folder.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    insta::assert_snapshot!(table);
}

/// The data of networks over images, with keys after its type.
const PICTURES: &str = "shapes\"\nsize = 32\ntarget = \"class";
const MASKS: &str = "shapes\"\nsize = 32\ntarget = \"mask";

/// The data and the rest of an experiment for each preset, with arguments that are not the defaults.
const PRESETS: &[(&str, &str)] = &[
    (
        "digits",
        "type = \"mlp\"\nhidden = [32, 16]\ndropout = 0.1\nactivation = \"gelu\"",
    ),
    (
        "digits",
        "type = \"cnn\"\nchannels = [4, 6]\npadding = \"same\"\nhidden = [8]",
    ),
    ("digits", "type = \"resnet\"\nchannels = [4, 8]\nblocks = 2"),
    (PICTURES, "type = \"mobilenet_v2\"\ndropout = 0.1"),
    (PICTURES, "type = \"densenet\"\ngrowth = 4\ndropout = 0.1"),
    (
        PICTURES,
        "type = \"efficientnet_b0\"\nstochastic_depth = 0.1",
    ),
    (PICTURES, "type = \"convnext\"\nchannels = 8"),
    (
        PICTURES,
        "type = \"vit\"\nimage_size = 32\nd_model = 8\nnum_heads = 2\nnum_layers = 2\nfeedforward_size = 9\ndropout = 0.1",
    ),
    (MASKS, "type = \"unet\"\nchannels = 4\nlevels = 2"),
    (
        "digits\"\n[task]\ntype = \"autoencoding",
        "type = \"vae\"\nimage_size = 8\nhidden_size = 9\nlatent_size = 3\nactivation = \"gelu\"",
    ),
    (
        "iris",
        "type = \"ft_transformer\"\nfeatures = 4\nd_model = 8\nnum_heads = 2\ndropout = 0.0",
    ),
    ("sine_windows", "type = \"tcn\"\nchannels = 4\nblocks = 3"),
    (
        "sine_windows",
        "type = \"dlinoss\"\nd_model = 6\nstate_size = 5\nnum_layers = 2",
    ),
    (
        "sine_windows",
        "type = \"inception_time\"\nfilters = 4\nunivariate = true",
    ),
    (
        "sine_windows",
        "type = \"lstm\"\nhidden_size = 6\nnum_layers = 2\ndropout = 0.1\nbidirectional = true",
    ),
    (
        "brackets",
        "type = \"transformer_classifier\"\nd_model = 8\nnum_heads = 2",
    ),
    (
        "copy_sequence",
        "type = \"transformer_lm\"\nd_model = 8\nnum_heads = 2",
    ),
    (
        "brackets",
        "type = \"bert\"\nd_model = 8\nnum_heads = 2\nnum_layers = 2\nfeedforward_size = 9",
    ),
    (
        "copy_sequence",
        "type = \"gpt2\"\nd_model = 8\nnum_heads = 2",
    ),
    (
        "copy_sequence",
        "type = \"llama\"\nd_model = 8\nnum_heads = 4\nnum_kv_heads = 2",
    ),
];

#[test]
fn a_preset_printed_as_layers_is_the_same_network() {
    for (_, name, _) in ModelType::ALL
        .iter()
        .filter(|(kind, ..)| Preset::of(*kind).is_some())
    {
        let is_there = PRESETS
            .iter()
            .any(|(_, model)| model.starts_with(&format!("type = \"{name}\"")));
        // No generated data is of recordings.
        assert!(is_there || *name == "eegnet", "no case for {name}");
    }
    for (data, model) in PRESETS {
        let rest = format!(
            "[data]\ntype = \"{data}\"\n[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-3\n[train]\nepochs = 2\n"
        );
        let preset = format!("{rest}[model]\n{model}\n");
        let folder = folder_with(&preset);
        let (code, layers, stderr) = run(folder.path(), &["describe", "spec.toml", "--as-layers"]);
        assert_eq!(code, 0, "{stderr}");
        let (from_preset, _) = plan("spec.toml", &preset).unwrap();
        let (from_layers, _) = plan("spec.toml", &format!("{rest}{layers}"))
            .unwrap_or_else(|message| panic!("{model}\n{layers}\n{message}"));
        assert_eq!(from_preset.runs[0].network, from_layers.runs[0].network);
        assert_eq!(
            from_preset.runs[0].fingerprint,
            from_layers.runs[0].fingerprint
        );
    }
}

#[test]
fn layers_can_be_axes_by_name_and_by_number() {
    let axes = "[sweep.grid]\n\"model.layers.stem.out_channels\" = [4, 8]\n\"model.layers.1.repeat\" = [1, 3]\n";
    let (plan, _) = plan("spec.toml", &format!("{GRAPH}\n{axes}")).unwrap();
    let sizes: Vec<_> = plan
        .runs
        .iter()
        .map(|run| {
            (
                run.id.as_str(),
                run.network.layers.len(),
                run.network.num_parameters,
            )
        })
        .collect();
    insta::assert_debug_snapshot!(sizes);
}

#[test]
fn a_frozen_graph_with_batch_norm_goes_on_to_the_same_numbers() {
    let spec = GRAPH.edit("epochs = 2", "epochs = 4");
    let numbers = |folder: &std::path::Path| {
        let run = folder.join("results/spec/runs/base-s1");
        let summary: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(run.join("summary.json")).unwrap()).unwrap();
        let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
        (metrics, summary["weights_digest"].clone())
    };
    let whole = folder_with(&spec);
    assert_eq!(run(whole.path(), &["run", "spec.toml"]).0, 0);
    let stopped = folder_with(&spec);
    let fault = ["run", "spec.toml", "--inject-fault", "*@3"];
    assert_eq!(run(stopped.path(), &fault).0, 1);
    assert_eq!(run(stopped.path(), &["run", "spec.toml"]).0, 0);
    assert_eq!(numbers(whole.path()), numbers(stopped.path()));
}

/// A batch norm over one item makes it 0.
#[test]
fn a_last_batch_of_one_item_is_pointed_out() {
    let spec = |batch_size: usize| {
        format!(
            "data = {{ type = 'iris', split = {{ valid = 0.2 }} }}\n\
             model = {{ layers = [{{ type = 'linear', out_features = 8 }}, {{ type = 'batch_norm' }}, {{ type = 'linear' }}] }}\n\
             optimizer = {{ type = 'adam', learning_rate = 1e-3 }}\ntrain = {{ epochs = 1, batch_size = {batch_size} }}\n"
        )
    };
    // 120 items.
    for (batch_size, is_warned) in [(17, true), (7, true), (16, false), (120, false)] {
        let (_, rendered) = plan("spec.toml", &spec(batch_size)).unwrap();
        let warned = rendered.contains("one in each epoch has a single item");
        assert_eq!(warned, is_warned, "{batch_size}: {rendered}");
    }
}

/// Shapes alone do not tell the positions of a sequence from channels.
#[test]
fn layers_over_channels_that_take_sequences_are_a_warning() {
    let rest = "optimizer = { type = 'adam', learning_rate = 1e-3 }\ntrain = { epochs = 1 }\n";
    let warnings = |layers: &str| {
        let spec = format!(
            "data = {{ type = 'brackets' }}\n{rest}model.layers = [{{ type = 'embedding', embedding_dim = 8 }}, {layers}, {{ type = 'flatten' }}, {{ type = 'linear' }}]\n"
        );
        plan("spec.toml", &spec).unwrap().1
    };
    for layer in [
        "{ type = 'conv1d', out_channels = 4, kernel_size = 3 }",
        "{ type = 'relu' }, { type = 'max_pool1d', kernel_size = 2 }",
        "{ type = 'gru', hidden_size = 4 }, { type = 'batch_norm' }",
    ] {
        let said = warnings(layer);
        assert!(
            said.contains("takes [channels, length]") && said.contains("axes = [1, 0]"),
            "{layer}: {said}"
        );
    }
    for layer in [
        "{ type = 'permute', axes = [1, 0] }, { type = 'conv1d', out_channels = 4, kernel_size = 3 }, { type = 'batch_norm' }",
        "{ type = 'layer_norm' }",
    ] {
        assert_eq!(warnings(layer), "", "{layer}");
    }
}

/// In a network that has a mask, a layer that takes padding for real positions is named.
#[test]
fn layers_that_compute_with_padding_despite_a_mask_are_a_warning() {
    let warnings = |layers: &str| {
        let spec = format!(
            "data = {{ type = 'brackets' }}\noptimizer = {{ type = 'adam', learning_rate = 1e-3 }}\ntrain = {{ epochs = 1 }}\n\
             model.layers = [{{ type = 'padding_mask', padding = 0, name = 'real' }}, {{ type = 'embedding', embedding_dim = 8, inputs = ['input'] }}, \
             {{ type = 'multi_head_attention', num_heads = 2, mask = 'real' }}, {layers}, {{ type = 'linear' }}]\n"
        );
        plan("spec.toml", &spec).unwrap().1
    };
    let flat = |layer: &str| format!("{layer}, {{ type = 'flatten' }}");
    let turned = |layer: &str| flat(&format!("{{ type = 'permute', axes = [1, 0] }}, {layer}"));
    for (layers, wrong) in [
        (
            &*flat("{ type = 'multi_head_attention', num_heads = 2 }"),
            "attends to padding",
        ),
        (
            &*flat("{ type = 'gru', hidden_size = 4, bidirectional = true }"),
            "continues its state in padding",
        ),
        (
            "{ type = 'lstm', hidden_size = 4, output = 'last' }",
            "continues its state in padding",
        ),
        (
            "{ type = 'relu' }, { type = 'mean' }",
            "reduces padding with real positions",
        ),
        (
            &*turned("{ type = 'batch_norm' }"),
            "computes its statistics with padding",
        ),
        (
            &*turned("{ type = 'conv1d', out_channels = 4, kernel_size = 3 }"),
            "slides over the end of real positions into padding",
        ),
        (
            &*turned("{ type = 'adaptive_avg_pool1d', output_size = 1 }"),
            "averages padding with real positions",
        ),
        (
            &*turned("{ type = 'max_pool1d', kernel_size = 2 }"),
            "pools real positions with padding",
        ),
        (
            &*turned("{ type = 'layer_norm' }"),
            "normalizes real positions with padding",
        ),
        (
            &*turned("{ type = 'softmax' }"),
            "gives padding a share of the sum",
        ),
        (
            &*flat("{ type = 'roll', axis = 0, shift = 1 }"),
            "moves padding before real positions",
        ),
        (
            &*flat(
                "{ type = 'relu', name = 'a' }, { type = 'concat', axis = 1, inputs = ['a', 'previous'] }, { type = 'gru', hidden_size = 4, bidirectional = true }",
            ),
            "continues its state in padding",
        ),
        (
            &*flat(
                "{ type = 'relu', name = 'a' }, { type = 'transformer_decoder', num_layers = 1, num_heads = 2, feedforward_size = 8, mask = 'real', inputs = ['a', 'previous'] }",
            ),
            "attends to padding",
        ),
        (
            &*flat(
                "{ type = 'relu', name = 'a' }, { type = 'permute', axes = [1, 0], name = 'b' }, { type = 'matmul', inputs = ['b', 'a'] }",
            ),
            "sums over padding",
        ),
        (
            "{ type = 'relu', name = 'a' }, { type = 'tanh', inputs = ['a'], name = 'b' }, { type = 'einsum', equation = 'lc,lc->c', inputs = ['a', 'b'] }",
            "sums over padding",
        ),
    ] {
        let said = warnings(layers);
        assert!(
            said.contains(wrong) && said.contains("although the network has a mask"),
            "{layers}: {said}"
        );
    }
    for layers in [
        &*flat("{ type = 'multi_head_attention', num_heads = 2, mask = 'real' }"),
        // What comes later does not change an earlier state.
        "{ type = 'gru', hidden_size = 4 }, { type = 'mean', mask = 'real' }",
        "{ type = 'lstm', hidden_size = 4, output = 'last', mask = 'real' }",
        "{ type = 'layer_norm' }, { type = 'mean', mask = 'real' }",
        "{ type = 'multi_head_attention', num_heads = 2, causal = true }, { type = 'mean', mask = 'real' }",
        &*turned("{ type = 'conv1d', out_channels = 4, kernel_size = 1 }"),
        &*turned("{ type = 'conv1d', out_channels = 4, kernel_size = 3, padding = 'causal' }"),
        // Padding stays in a row of its own.
        &*flat(
            "{ type = 'relu', name = 'a' }, { type = 'permute', axes = [1, 0], name = 'b' }, { type = 'matmul', inputs = ['a', 'b'] }",
        ),
        // The mask makes it 0.
        "{ type = 'relu', name = 'a' }, { type = 'reshape', shape = [1, 16], inputs = ['real'], name = 'row' }, { type = 'matmul', inputs = ['row', 'a'] }, { type = 'flatten' }",
        // Outputs of masked recurrent layers are 0 at padding.
        &*format!(
            "{{ type = 'gru', hidden_size = 4, mask = 'real' }}, {}",
            turned("{ type = 'conv1d', out_channels = 4, kernel_size = 3 }")
        ),
    ] {
        assert_eq!(warnings(layers), "", "{layers}");
    }
}

/// Padding of numbers is 0 in the data, and another number once they are scaled.
#[test]
fn a_mask_of_scaled_numbers_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let row = |at: usize| format!("{{\"x\": [{at}.5, 1, 2], \"y\": \"{}\"}}\n", at % 2);
    let rows: String = (0..20).map(row).collect();
    fs::write(folder.path().join("rows.jsonl"), rows).unwrap();
    for (scale, is_wrong) in [("standardize", true), ("none", false)] {
        let spec = format!(
            "data = {{ type = 'json_lines', path = 'rows.jsonl', target = 'y', scale = '{scale}' }}\noptimizer = {{ type = 'adam', learning_rate = 1e-3 }}\ntrain = {{ epochs = 1 }}\n\
             model.layers = [{{ type = 'padding_mask', name = 'real' }}, {{ type = 'reshape', shape = [3, 1], inputs = ['input'] }}, {{ type = 'gru', hidden_size = 2, output = 'last', mask = 'real' }}, {{ type = 'linear' }}]\n"
        );
        fs::write(folder.path().join("spec.toml"), spec).unwrap();
        let (code, out, said) = run(folder.path(), &["check", "spec.toml"]);
        assert_eq!(code, 0, "{said}");
        let found = (out + &said).contains("`real` masks 0, but items are scaled");
        assert_eq!(found, is_wrong, "{said}");
    }
}
