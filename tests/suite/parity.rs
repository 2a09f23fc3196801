//! Comparison of devices: equal ones agree, a wrong layer is named, and refusals.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::Stdio;

use burn_runner::spec::model::layer::LayerType;
use burn_runner::spec::section::Choice;
use serde_json::Value as Json;

use super::edit::Edit;
#[cfg(feature = "wgpu")]
use super::support::wgpu_is_there;
use super::support::{IRIS, folder_with, run, runner};

/// Exit code, messages and output.
fn parity(spec: &str, arguments: &[&str]) -> (i32, String) {
    let folder = folder_with(spec);
    let (code, stdout, stderr) = run(folder.path(), &[&["parity"], arguments].concat());
    (code, format!("{stderr}{stdout}"))
}

fn json(spec: &str, arguments: &[&str]) -> (i32, Json) {
    let folder = folder_with(spec);
    let arguments = [&["parity"], arguments, &["--json"]].concat();
    let (code, stdout, stderr) = run(folder.path(), &arguments);
    let json = serde_json::from_str(&stdout);
    (
        code,
        json.unwrap_or_else(|e| panic!("{e}: {stdout}{stderr}")),
    )
}

#[test]
fn a_device_agrees_with_itself_to_the_bit() {
    let spec = IRIS.edit("hidden = [16]", "hidden = [16]\ndropout = 0.5");
    let (code, found) = json(&spec, &["spec.toml", "--devices", "flex,flex"]);
    assert_eq!(code, 0, "{found}");
    assert_eq!(found["verdict"], "agrees");
    let note = found["notes"][0].as_str().unwrap();
    assert!(note.contains("disabled: `dropout_1`"), "{note}");
    let steps = found["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 5);
    let tensors = steps
        .iter()
        .flat_map(|step| step["compared"].as_array().unwrap());
    let mut layers = BTreeSet::new();
    for tensor in tensors {
        assert_eq!(tensor["error"]["ulps"], 0.0, "{tensor}");
        layers.insert(tensor["layer"].as_str().unwrap().to_owned());
    }
    let expected = [
        "dropout_1",
        "flatten_1",
        "linear_1",
        "linear_2",
        "loss",
        "relu_1",
    ];
    assert_eq!(layers, expected.map(str::to_owned).into());
}

#[test]
fn the_losses_are_those_of_a_run() {
    // Across the end of an epoch, with clipping by the global norm.
    let spec = format!("{IRIS}\n[optimizer.clip]\nglobal_norm = 0.5\n");
    let folder = folder_with(&spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let trace = folder
        .path()
        .join("results/spec/runs/base-s1/trace/losses.f64");
    let trace = fs::read(trace).unwrap();
    let trace: Vec<f64> = trace
        .chunks_exact(8)
        .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
        .collect();
    let arguments = ["spec.toml", "--devices", "flex,flex", "--steps", "12"];
    let (_, found) = json(&spec, &arguments);
    let losses = found["steps"].as_array().unwrap().iter();
    let losses: Vec<f64> = losses
        .map(|step| step["reference_loss"].as_f64().unwrap())
        .collect();
    assert_eq!(losses, trace[..12]);
}

#[test]
fn a_wrong_layer_is_named_with_its_step_and_not_those_that_suffer() {
    for (error, of) in [
        ("linear_1@2=output", "output"),
        ("relu_1@3=gradient", "input_gradient"),
    ] {
        let arguments = [
            "spec.toml",
            "--devices",
            "flex,flex",
            "--inject-error",
            error,
        ];
        let (code, found) = json(IRIS, &arguments);
        assert_eq!(code, 1, "{found}");
        assert_eq!(found["verdict"], "differs");
        let wrong = found["wrong"].as_array().unwrap();
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        let (layer, rest) = error.split_once('@').unwrap();
        assert_eq!(wrong[0]["layer"], layer);
        assert_eq!(wrong[0]["of"], of);
        assert_eq!(wrong[0]["step"].to_string(), rest[..1]);
        assert_eq!(found["first"]["step"], wrong[0]["step"]);
    }
}

#[test]
fn what_is_said_of_a_wrong_layer() {
    let arguments = [
        "spec.toml",
        "--devices",
        "flex,flex",
        "--steps",
        "3",
        "--inject-error",
        "linear_1@2=output",
    ];
    let (code, said) = parity(IRIS, &arguments);
    assert_eq!(code, 1, "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "trial `base` with seed 1 for 3 steps in f32");
    let beyond: Vec<bool> = lines[6..9]
        .iter()
        .map(|line| !line.contains(" 0 of "))
        .collect();
    assert_eq!(beyond, [false, true, true], "{said}");
    let place = "step 2, layer `linear_1` (linear), output: ";
    let [.., first, wrong] = lines[..] else {
        panic!("{said}");
    };
    assert!(
        first.starts_with(&format!("first beyond tolerance: {place}")),
        "{said}"
    );
    assert!(
        wrong.starts_with(&format!("wrong in isolation: {place}")),
        "{said}"
    );
    assert_eq!(lines[lines.len() - 3], "verdict: differs");
}

#[test]
fn a_device_that_dies_is_told_with_the_step() {
    let arguments = ["spec.toml", "--devices", "flex,flex", "--inject-error"];
    let (code, said) = parity(IRIS, &[&arguments[..], &["relu_1@2=kill"]].concat());
    assert_eq!(code, 1, "{said}");
    let killed = "verdict: failed: in step 2: the worker was killed by signal 9 (SIGKILL)";
    assert!(said.contains(killed), "{said}");
    let (code, said) = parity(IRIS, &[&arguments[..], &["relu_1@2=panic"]].concat());
    assert_eq!(code, 1, "{said}");
    let panicked = "verdict: failed: in step 2: injected fault in step 2 (src/train/fault.rs";
    assert!(said.contains(panicked), "{said}");
}

#[test]
fn every_type_of_layer_has_a_row() {
    let (code, found) = json(IRIS, &["--layers", "--devices", "flex,flex"]);
    assert_eq!(code, 0, "{found}");
    let rows = found["types"].as_array().unwrap();
    let named: BTreeSet<_> = rows
        .iter()
        .map(|row| row["kind"].as_str().unwrap())
        .collect();
    let all: BTreeSet<_> = LayerType::ALL.iter().map(|(_, name, _)| *name).collect();
    // Layers of graphs have no items of their own, and a constant is read from a file.
    let others = [
        "edge_conv",
        "edge_ends",
        "gat",
        "gcn",
        "gin",
        "graph_pool",
        "sage",
    ];
    let others = BTreeSet::from_iter(others.into_iter().chain(["constant"]));
    assert_eq!(named, &all - &others);
    for row in rows {
        match row["kind"].as_str().unwrap() {
            "dropout" | "channel_dropout" | "stochastic_depth" | "gaussian_noise"
            | "gaussian_sample" | "noise" | "rrelu" => {
                assert_eq!(row["verdict"], "random");
            }
            _ => {
                assert_eq!(row["verdict"], "agrees", "{row}");
                assert_eq!(row["output"]["error"]["ulps"], 0.0, "{row}");
                // A mask has no gradient.
                if row["kind"] != "padding_mask" {
                    assert_eq!(row["gradient"]["error"]["ulps"], 0.0, "{row}");
                }
            }
        }
    }
}

#[test]
fn a_layer_that_is_wrong_or_dies_costs_its_row_alone() {
    let layers = [
        "--layers",
        "--devices",
        "flex,flex",
        "--only",
        "*elu*",
        "--inject-error",
    ];
    for (error, verdict) in [
        ("selu@1=output", "differs"),
        ("selu@1=gradient", "differs"),
        ("selu@1=panic", "failed"),
        ("selu@1=kill", "failed"),
    ] {
        let (code, found) = json(IRIS, &[&layers[..], &[error]].concat());
        assert_eq!(code, 1, "{found}");
        let rows = found["types"].as_array().unwrap();
        assert_eq!(rows.len(), 11, "{rows:?}");
        for row in rows {
            let expected = match row["kind"].as_str().unwrap() {
                "selu" => verdict,
                "rrelu" => "random",
                _ => "agrees",
            };
            assert_eq!(row["verdict"], expected, "{error}: {row}");
        }
    }
    let (_, said) = parity(IRIS, &[&layers[..], &["selu@1=kill", "--md"]].concat());
    assert!(said.contains("| selu "), "{said}");
    let reason = "failed: { type = 'selu' }: the worker was killed by signal 9 (SIGKILL)";
    assert!(said.contains(reason), "{said}");
}

#[test]
fn wrong_arguments_are_refused() {
    let cases: &[&[&str]] = &[
        &["spec.toml", "--devices", "flex"],
        &["spec.toml", "--devices", "flex,gpu"],
        &["spec.toml", "--devices", "flex,rocm"],
        &["spec.toml", "--devices", "flex,flex:7"],
        &["spec.toml"],
        &["--devices", "flex,flex"],
        &["spec.toml", "--layers", "--devices", "flex,flex"],
        &["spec.toml", "--devices", "flex,flex", "--steps", "0"],
        &["spec.toml", "--devices", "flex,flex", "--steps", "25"],
        &["spec.toml", "--devices", "flex,flex", "--trial", "other"],
        &["spec.toml", "--devices", "flex,flex", "--only", "relu"],
        &["--layers", "--devices", "flex,flex", "--only", "conv9d"],
        &["--layers", "--devices", "flex,flex:7"],
        &["nowhere.toml", "--devices", "flex,flex"],
    ];
    let mut all = String::new();
    for case in cases {
        let (code, said) = parity(IRIS, case);
        assert_eq!(code, 2, "{case:?}: {said}");
        all += &format!("$ runner parity {}\n{said}\n", case.join(" "));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_closed_pipe_changes_no_verdict() {
    let folder = folder_with(IRIS);
    let mut child = runner(folder.path())
        .args(["parity", "spec.toml", "--devices", "flex,flex"])
        .args(["--inject-error", "relu_1@1=output"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    assert!(!said.contains("panic"), "{said}");
}

#[cfg(feature = "wgpu")]
#[test]
fn wgpu_agrees_with_flex_on_an_mlp_and_a_wrong_layer_is_named() {
    if !wgpu_is_there() {
        return;
    }
    let arguments = ["spec.toml", "--devices", "flex,wgpu", "--steps", "3"];
    let (code, said) = parity(IRIS, &arguments);
    assert_eq!(code, 0, "{said}");
    let error = ["--inject-error", "relu_1@2=output"];
    let (code, found) = json(IRIS, &[&arguments[..], &error].concat());
    assert_eq!(code, 1, "{found}");
    let wrong = found["wrong"].as_array().unwrap();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!(wrong[0]["layer"], "relu_1");
    assert_eq!(wrong[0]["step"], 2);
}

#[cfg(feature = "wgpu")]
#[test]
fn wgpu_agrees_with_flex_on_a_cnn() {
    if !wgpu_is_there() {
        return;
    }
    let spec = "[data]\ntype = \"digits\"\n[model]\ntype = \"cnn\"\nchannels = [4]\nhidden = [8]\n\
        [optimizer]\ntype = \"sgd\"\nlearning_rate = 0.05\nmomentum = 0.9\n\
        [train]\nepochs = 1\nbatch_size = 16\n";
    let arguments = ["spec.toml", "--devices", "flex,wgpu", "--steps", "2"];
    let (code, said) = parity(spec, &arguments);
    assert_eq!(code, 0, "{said}");
}
