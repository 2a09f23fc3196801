//! Devices: listed, selected, skipped if not available, and with equal initial weights.

use std::fs;

use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{IRIS, completed, folder_with, numbers, plan, run, summary};
#[cfg(feature = "wgpu")]
use super::support::{runner, texts, wgpu_is_there};

#[test]
fn every_backend_is_listed_with_what_it_is_or_why_it_is_not_there() {
    let folder = folder_with(IRIS);
    let (code, table, _) = run(folder.path(), &["devices"]);
    assert_eq!(code, 0);
    for name in ["flex", "wgpu", "vulkan", "metal", "cuda", "rocm", "cpu"] {
        assert!(table.contains(name), "{table}");
    }
    let (_, lines, _) = run(folder.path(), &["devices", "--json"]);
    let listed: Vec<Json> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |name: &str| {
        listed
            .iter()
            .find(|listed| listed["device"] == name)
            .unwrap()
    };
    assert_eq!(of("flex")["state"], "found");
    assert!(of("flex")["memory_bytes"].as_u64() > Some(1 << 28));
    let cuda = of("rocm");
    assert_eq!(cuda["state"], "missing");
    assert!(!cuda["reason"].as_str().unwrap().is_empty());
    assert!(!cuda["remedy"].as_str().unwrap().is_empty());
}

#[test]
fn what_a_machine_has_not_is_a_warning() {
    let spec = format!(
        "{IRIS}\n[sweep.grid]\nbackend.device = [\"flex\", \"auto\", \"cuda\", \"wgpu:2\"]\nbackend.precision = [\"f32\", \"bf16\"]\n"
    )
    .edit("\"adam\"", "\"sgd\"");
    let (plan, warnings) = plan("spec.toml", &spec).unwrap_or_else(|message| panic!("{message}"));
    let runs = plan.runs.iter().map(|run| {
        let skip = run.skip.as_deref().unwrap_or("-");
        format!("{}: {}: {skip}", run.id, run.device)
    });
    let runs: Vec<String> = runs.chain(plan.notices.clone()).collect();
    insta::assert_snapshot!("warnings", format!("{warnings}\n{}", runs.join("\n")));
}

#[test]
fn runs_without_their_device_are_skipped_and_the_others_made() {
    let spec = format!("{IRIS}\n[sweep.grid]\nbackend.device = [\"flex\", \"rocm:9\"]\n");
    let folder = folder_with(&spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("1 of 2 runs completed, 1 skipped"),
        "{stderr}"
    );
    let skipped = summary(folder.path(), "device=rocm-9-s1");
    assert_eq!(skipped["outcome"], "skipped");
    assert!(
        skipped["reason"]
            .as_str()
            .unwrap()
            .contains("the device `rocm:9` cannot be used")
    );
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(report.contains("`device=rocm-9-s1` skipped: "), "{report}");
    let (_, plan, _) = run(folder.path(), &["plan", "spec.toml"]);
    assert!(plan.contains("to skip") && plan.contains("done"), "{plan}");
    // If everything is skipped, nothing was done; if the device is required, nothing is started.
    let (code, ..) = run(folder.path(), &["run", "spec.toml", "--only", "*rocm*"]);
    assert_eq!(code, 1);
    let required = ["run", "spec.toml", "--set", "backend.required=true"];
    let (code, _, stderr) = run(folder.path(), &required);
    assert_eq!(code, 2, "{stderr}");
}

#[cfg(feature = "wgpu")]
#[test]
fn wgpu_begins_as_flex_does_and_comes_to_the_same() {
    if !wgpu_is_there() {
        return;
    }
    let spec = format!("{IRIS}\n[sweep.grid]\nbackend.device = [\"flex\", \"wgpu\"]\n");
    let folder = completed(&spec, &[]);
    let plan: burn_runner::plan::Plan =
        serde_json::from_slice(&fs::read(folder.path().join("results/spec/plan.json")).unwrap())
            .unwrap();
    let weights = |run: &str, name: &str| {
        folder.path().join(format!(
            "results/spec/runs/device={run}-s1/model/{name}.bpk"
        ))
    };
    let distances = |name: &str| {
        let (flex, wgpu) = (weights("flex", name), weights("wgpu", name));
        burn_runner::train::weight_distances((&flex, &plan.runs[0]), (&wgpu, &plan.runs[1]))
            .unwrap()
    };
    let first = distances("initial");
    assert!(
        first.iter().all(|distance| distance.ulps == 0.0),
        "{first:?}"
    );
    let last = distances("final");
    assert!(
        last.iter().all(|distance| distance.ulps < 1000.0),
        "{last:?}"
    );
    assert_eq!(summary(folder.path(), "device=wgpu-s1")["device"], "wgpu");
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(report.contains("## By backend"), "{report}");
}

/// Checkpoints within an epoch are written while nothing else changes the weights; kernels are the same after a kill.
#[cfg(feature = "wgpu")]
#[test]
fn runs_on_wgpu_go_on_exactly() {
    if !wgpu_is_there() {
        return;
    }
    let folder = folder_with(&format!("{IRIS}\n[backend]\ndevice = \"wgpu\"\n"));
    let (code, out, said) = run(folder.path(), &["prove", "spec.toml"]);
    assert_eq!(code, 0, "{out}{said}");
    assert!(out.contains("holds   killed"), "{out}");
}

/// Kernels that one experiment has timed are not timed by the next one on the machine, whose record has them.
#[cfg(feature = "wgpu")]
#[test]
fn experiments_share_selected_kernels() {
    if !wgpu_is_there() {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let chosen = || {
        let folder = folder_with(&format!("{IRIS}\n[backend]\ndevice = \"wgpu\"\n"));
        let output = runner(folder.path())
            .args(["run", "spec.toml", "--set", "train.epochs=1", "-v"])
            .env("XDG_CACHE_HOME", cache.path())
            .output()
            .unwrap();
        let (code, _, said) = texts(&output);
        assert_eq!(code, 0, "{said}");
        let run = folder.path().join("results/spec/runs/base-s1");
        let environment = fs::read_to_string(run.join("environment.json")).unwrap();
        let environment: serde_json::Value = serde_json::from_str(&environment).unwrap();
        let log = fs::read_to_string(run.join("run.log")).unwrap();
        (environment["worker"]["kernels"].clone(), log)
    };
    let (first, log) = chosen();
    assert!(first["num"].as_u64().is_some_and(|num| num > 0), "{first}");
    assert!(log.contains("Tuning"), "{log}");
    let (second, log) = chosen();
    assert_eq!(first, second);
    assert!(!log.contains("Tuning"), "{log}");
}

/// A run that cannot be trained here does not move the one that was trained with other settings.
#[test]
fn a_run_on_a_device_that_is_not_there_replaces_nothing() {
    let folder = completed(IRIS, &[]);
    let folder = folder.path();
    let before = numbers(folder);
    let (code, _, said) = run(
        folder,
        &["run", "spec.toml", "--set", "backend.device=rocm:9"],
    );
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("`base-s1` is not changed: it cannot be trained here ("),
        "{said}"
    );
    assert!(!folder.join("results/spec/replaced").exists());
    let (code, _, said) = run(folder, &["run", "spec.toml"]);
    assert!(code == 0 && said.contains("1 already completed"), "{said}");
    assert_eq!(numbers(folder), before);
}
