//! Memory: forecast, measured, limited, and watched for growth.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::edit::Edit;
#[cfg(feature = "wgpu")]
use super::support::wgpu_is_there;
use super::support::{
    IRIS, completed, diagnostics, folder_with, read_json, run, runner, summary, texts,
};

/// Images through convolutions, small enough for a test.
const CNN: &str = r#"
[data]
type = "digits"

[model]
type = "cnn"
channels = [8, 16]

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 2
batch_size = 64
"#;

fn events(folder: &Path) -> Vec<Json> {
    let path = folder.join("results/spec/runs/base-s1/events.jsonl");
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_budget_sheet_says_what_fits() {
    let folder = folder_with(&format!("{CNN}\n[memory]\nlimit = \"4MiB\"\n"));
    let arguments = [
        "memory",
        "spec.toml",
        "--batch-sizes",
        "32,64,128,256",
        "--precisions",
        "f32,f16",
    ];
    let (code, sheet, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    insta::assert_snapshot!("sheet", sheet);
    let (_, json, _) = run(folder.path(), &[&arguments[..], &["--json"]].concat());
    let json: Json = serde_json::from_str(&json).unwrap();
    assert_eq!(json["capacity_bytes"], 4 << 20);
    assert_eq!(json["cells"].as_array().unwrap().len(), 8);
    let plan = run(folder.path(), &["plan", "spec.toml", "--json"]).1;
    let plan: Json = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["runs"][0]["forecast"], json["forecast"]);
}

#[test]
fn what_does_not_fit_comes_with_what_to_change() {
    let folder = folder_with(
        &format!("{CNN}\n[backend]\nkernels = \"reference\"\n[memory]\nlimit = \"900KiB\"\n")
            .edit("batch_size = 64", "batch_size = 128"),
    );
    let arguments = ["memory", "spec.toml", "--precisions", "f32"];
    let (code, sheet, _) = run(folder.path(), &arguments);
    // A run that certainly cannot fit is refused; otherwise the budget contains advice.
    assert_eq!(code, 2, "{sheet}");
    let larger = ["--set", "memory.limit=3MiB"];
    let (code, sheet, stderr) = run(folder.path(), &[&arguments[..], &larger].concat());
    assert_eq!(code, 0, "{stderr}");
    insta::assert_snapshot!("advice", sheet);
}

#[test]
fn declared_budgets_stand_beside_ours() {
    let folder = folder_with(IRIS);
    let (code, table, _) = run(folder.path(), &["memory", "--reference"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!("reference", table);
}

#[test]
fn gradient_checkpointing_keeps_less_and_changes_no_number() {
    // Runner's own kernels keep nothing that gradient checkpointing could leave out.
    let deep = format!("{CNN}\n[backend]\nkernels = \"reference\"\n");
    let deep = deep.edit("type = \"cnn\"", "type = \"cnn\"\ndropout = 0.2");
    let with = deep.edit("epochs = 2", "epochs = 2\ngradient_checkpointing = true");
    let [plain, with] = [deep, with].map(|spec| completed(&spec, &[]));
    let read = |folder: &Path, name: &str| {
        fs::read_to_string(folder.join("results/spec/runs/base-s1").join(name)).unwrap()
    };
    for name in ["metrics.csv", "trace/digests.csv"] {
        assert_eq!(read(plain.path(), name), read(with.path(), name), "{name}");
    }
    let activations = |folder: &Path| {
        let plan = read_json(&folder.join("results/spec/plan.json"));
        plan["runs"][0]["forecast"]["activations"].as_u64().unwrap()
    };
    assert!(activations(with.path()) < activations(plain.path()));
}

/// The error of the calibrated forecast, by `runner memory --calibrate` and then the run.
fn calibrated_error(spec: &str) -> f64 {
    let folder = folder_with(spec);
    let (code, sheet, stderr) = run(
        folder.path(),
        &["memory", "spec.toml", "--calibrate", "--precisions", "f32"],
    );
    assert_eq!(code, 0, "{stderr}");
    assert!(sheet.contains(" measured, "), "{sheet}");
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let report = read_json(&folder.path().join("results/spec/report.json"));
    let memory = &report["trials"][0]["memory"];
    let forecast = memory["calibrated_bytes"].as_f64().unwrap();
    let measured = memory["measured"]["pool"]["reserved_bytes"]
        .as_f64()
        .unwrap();
    eprintln!("calibrated {forecast}, measured {measured}");
    // This is the size of pages of 2 MiB that may come and go.
    if (forecast - measured).abs() < f64::from(512 << 10) {
        0.0
    } else {
        forecast / measured - 1.0
    }
}

#[test]
fn calibrated_forecasts_hold_on_flex() {
    let iris = IRIS.edit("epochs = 3", "epochs = 10");
    let narrow = iris.edit("hidden = [16]", "hidden = []");
    let residual = CNN.edit("\"cnn\"", "\"resnet\"");
    for spec in [iris, narrow, CNN.to_owned(), residual] {
        let error = calibrated_error(&spec);
        assert!(error.abs() < 0.15, "{error:+.3} of {spec}");
    }
}

#[cfg(feature = "wgpu")]
#[test]
fn calibrated_forecasts_hold_on_wgpu() {
    if !wgpu_is_there() {
        return;
    }
    let spec = format!("{IRIS}\n[backend]\ndevice = \"wgpu\"\n");
    let error = calibrated_error(&spec);
    assert!(error.abs() < 0.15, "{error:+.3}");
}

#[test]
fn a_leak_is_reported_by_the_third_epoch() {
    let folder = folder_with(&IRIS.edit("epochs = 3", "epochs = 5"));
    let (code, _, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--inject-fault", "*@epoch:1=leak"],
    );
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("base-s1: memory grows by "), "{stderr}");
    let events = events(folder.path());
    let at = |name: &str| events.iter().position(|event| event["event"] == name);
    let growth = &events[at("memory_grew").expect("the leak is told")];
    let epochs_before = events[..at("memory_grew").unwrap()]
        .iter()
        .filter(|event| event["event"] == "epoch_finished");
    assert_eq!(epochs_before.count(), 3);
    let slope = growth["bytes_per_epoch"].as_f64().unwrap() / f64::from(8 << 20);
    assert!((0.95..1.05).contains(&slope), "{growth}");
    assert!(
        growth["pool"]["num_allocations"].as_u64() > Some(0),
        "{growth}"
    );
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(report.contains("`base-s1`: memory grows by "), "{report}");
    assert_eq!(
        summary(folder.path(), "base-s1")["memory_growth"]["num_epochs"],
        3
    );
}

#[test]
fn a_healthy_run_does_not_grow() {
    let folder = completed(&CNN.edit("epochs = 2", "epochs = 6"), &[]);
    let grew = |event: &Json| event["event"] == "memory_grew";
    assert!(!events(folder.path()).iter().any(grew));
    let memory = &summary(folder.path(), "base-s1")["memory"];
    assert!(
        memory["pool"]["in_use_bytes"].as_u64() > Some(1 << 20),
        "{memory}"
    );
}

#[test]
fn a_step_that_does_not_end_is_ended_above_the_limit() {
    let folder = folder_with(&format!("{IRIS}\n[memory]\nlimit = \"60MiB\"\n"));
    let (code, _, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--inject-fault", "*@training:3=swell"],
    );
    assert_eq!(code, 1, "{stderr}");
    let failure = &summary(folder.path(), "base-s1")["failure"];
    assert_eq!(failure["class"], "out_of_memory", "{failure}");
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("`memory.limit` is 60.0 MiB"), "{message}");
    assert!(message.starts_with("the process used "), "{message}");
}

#[test]
fn what_was_measured_not_to_fit_is_not_started() {
    let folder = folder_with(&format!("{IRIS}\n[memory]\nlimit = \"1MiB\"\n"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 1, "{stderr}");
    let failure = &summary(folder.path(), "base-s1")["failure"];
    assert_eq!(failure["class"], "out_of_memory", "{failure}");
    let message = failure["message"].as_str().unwrap();
    assert!(
        message.starts_with("it was not started: it is forecast to need "),
        "{message}"
    );
    let events = events(folder.path());
    assert!(events.iter().all(|event| event["event"] != "run_started"));
}

/// A network whose activations outweigh everything else by far.
const WIDE: &str = r#"
[data]
type = "spirals"
num_items = 4000

[model]
type = "mlp"
hidden = [4096]

[optimizer]
type = "sgd"
learning_rate = 0.1

[train]
epochs = 2
batch_size = 2048
"#;

/// The adjustments of a run, as `key=value`.
fn adjustments(folder: &Path) -> Vec<String> {
    let summary = summary(folder, "base-s1");
    let each = summary["adjustments"].as_array().into_iter().flatten();
    each.map(|adjustment| {
        let change = adjustment
            .as_object()
            .unwrap()
            .iter()
            .find(|(key, _)| *key != "from_step");
        let (key, value) = change.unwrap();
        format!("{key}={value}")
    })
    .collect()
}

#[test]
fn a_run_that_is_forecast_not_to_fit_is_computed_in_pieces() {
    let limited = format!(
        "{WIDE}\n[backend]\nkernels = \"reference\"\n[memory]\nlimit = \"100MiB\"\non_exceed = \"accumulate\"\n"
    );
    let folder = folder_with(&limited);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("it is forecast to need "), "{stderr}");
    let adjusted = adjustments(folder.path());
    assert_eq!(
        adjusted.first().map(String::as_str),
        Some("micro_batch_size=1024")
    );
    let peak = summary(folder.path(), "base-s1")["memory"]["process_bytes"]
        .as_u64()
        .unwrap();
    // An attempt that the watchdog ended is a little above the limit, and counts.
    assert!(peak <= 120 << 20, "{peak}");
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    let last = adjusted.last().unwrap().replace('=', " = ");
    assert!(
        report.contains(&format!(
            "`train.{last}` from the start, so that it fits into memory"
        )),
        "{report}"
    );
    // An update uses the same items: the losses differ only by the summation order.
    let whole = completed(WIDE, &[]);
    let losses = |folder: &Path| {
        let bytes = fs::read(folder.join("results/spec/runs/base-s1/trace/losses.f64")).unwrap();
        let values = bytes
            .chunks_exact(8)
            .map(|value| f64::from_le_bytes(value.try_into().unwrap()));
        values.collect::<Vec<_>>()
    };
    for (whole, pieces) in losses(whole.path()).iter().zip(losses(folder.path())) {
        assert!(
            (whole - pieces).abs() < 1e-5 * whole.abs(),
            "{whole} {pieces}"
        );
    }
    // Completed work stays completed.
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0);
    assert!(stderr.contains("0 of 1 runs to do"), "{stderr}");
}

#[test]
fn a_run_that_passes_its_limit_goes_down_the_ladder() {
    let spec = format!(
        "{IRIS}\n[backend]\nkernels = \"reference\"\n[memory]\nlimit = \"60MiB\"\non_exceed = [\"checkpoint\", \"accumulate\"]\n"
    )
    .edit("batch_size = 16", "batch_size = 4");
    let folder = folder_with(&spec);
    let swells = ["run", "spec.toml", "--inject-fault", "*@training:40=swell"];
    let (code, _, stderr) = run(folder.path(), &swells);
    assert_eq!(code, 1, "{stderr}");
    assert_eq!(
        adjustments(folder.path()),
        [
            "gradient_checkpointing=true",
            "micro_batch_size=2",
            "micro_batch_size=1"
        ]
    );
    let failure = summary(folder.path(), "base-s1")["failure"].clone();
    assert_eq!(failure["class"], "out_of_memory", "{failure}");
    // Epoch 1 has 30 updates: each attempt continued from there.
    let events = events(folder.path());
    let starts = events
        .iter()
        .filter(|event| event["event"] == "run_started");
    let resumed: Vec<u64> = starts
        .map(|event| event["resumed_step"].as_u64().unwrap())
        .collect();
    assert_eq!(resumed, [0, 30, 30, 30]);
    // Without the fault it continues there, with all adjustments.
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(adjustments(folder.path()).len(), 3);
    // Of changes at the same step, the last of each kind applies.
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(
        report.contains("`train.micro_batch_size = 1` from step 30"),
        "{report}"
    );
    assert!(!report.contains("`train.micro_batch_size = 2`"), "{report}");
    // A reproduction is adjusted from the same step on, and has no limit to exceed.
    let again = ["reproduce", "results/spec/runs/base-s1"];
    let (code, verdict, stderr) = run(folder.path(), &again);
    assert_eq!(code, 0, "{verdict}{stderr}");
    assert!(verdict.contains("verdict: bitwise"), "{verdict}");
}

/// The probes, as (items, bytes), from the files of the cache folder.
fn probes(folder: &Path) -> Vec<(u64, u64)> {
    let files = fs::read_dir(folder.join("cache/burn-runner/memory")).unwrap();
    let files = files.map(|file| read_json(&file.unwrap().path()));
    files
        .flat_map(|file| {
            let probes = file["probes"].as_array().unwrap().clone();
            probes.into_iter().map(|probe| {
                let number = |key: &str| probe[key].as_u64().unwrap();
                (number("items"), number("bytes"))
            })
        })
        .collect()
}

#[test]
fn a_probe_is_no_larger_than_the_ladder_leaves_the_run() {
    let limited = format!(
        "{WIDE}\n[backend]\nkernels = \"reference\"\n[memory]\nlimit = \"100MiB\"\non_exceed = \"accumulate\"\n"
    );
    let folder = folder_with(&limited.edit("epochs = 2", "epochs = 1"));
    let (_, _, plan) = run(folder.path(), &["plan", "spec.toml"]);
    assert!(
        plan.contains("it will be changed according to `memory.on_exceed`"),
        "{plan}"
    );
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("measuring the memory of "), "{stderr}");
    let probes = probes(folder.path());
    assert_eq!(probes.len(), 2);
    assert!(probes.iter().all(|(items, _)| *items < 2048), "{probes:?}");
    // The forecast before the adjustment is in the record.
    let events = events(folder.path());
    let told = events
        .iter()
        .find(|event| event["event"] == "memory_calibrated");
    let told = told.expect("it was measured")["forecast_bytes"]
        .as_u64()
        .unwrap();
    assert!(told <= 100 << 20, "{told}");
    // The probes leave nothing behind.
    let tried = fs::read_dir(folder.path().join("cache/burn-runner/tried")).unwrap();
    let left = tried.filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(left.count(), 0);
}

#[test]
fn what_cannot_be_kept_or_measured_is_told_and_the_sheet_printed() {
    let folder = folder_with(&IRIS.edit("adam", "adafactor"));
    let mut command = runner(folder.path());
    // A file where a folder is needed.
    command.env("XDG_CACHE_HOME", folder.path().join("spec.toml"));
    command.args([
        "memory",
        "spec.toml",
        "--calibrate",
        "--precisions",
        "f32,f16",
    ]);
    let (code, sheet, stderr) = texts(&command.output().unwrap());
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("XDG_CACHE_HOME"), "{stderr}");
    assert!(sheet.contains(" measured, fits"), "{sheet}");
    assert!(sheet.contains("f16 is refused: "), "{sheet}");
    assert!(!sheet.contains("f16 measured"), "{sheet}");
}

#[test]
fn a_device_to_go_on_on_that_is_not_there_is_told() {
    let spec = format!("{IRIS}\n[memory]\nlimit = \"1MiB\"\non_exceed = \"next_device\"\n");
    let folder = folder_with(&spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 1, "{stderr}");
    let failure = &summary(folder.path(), "base-s1")["failure"];
    let message = failure["message"].as_str().unwrap();
    assert!(
        message.contains("this machine has no other device to continue on in f32"),
        "{message}"
    );
}

#[test]
fn what_is_not_there_is_not_probed() {
    let folder = folder_with(&format!("{IRIS}\n[backend]\ndevice = \"rocm:9\"\n"));
    let arguments = ["memory", "spec.toml", "--calibrate", "--precisions", "f32"];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("is not measured: the device `rocm:9` cannot be used: "),
        "{stderr}"
    );
}

#[test]
fn ways_that_exclude_each_other_are_refused() {
    let told = |ways: &str| {
        let wrong = diagnostics(
            "spec.toml",
            &format!("{IRIS}\n[memory]\non_exceed = {ways}\n"),
        );
        let messages = wrong.into_iter().map(|diagnostic| diagnostic.message);
        messages.collect::<Vec<_>>().join("; ")
    };
    insta::assert_snapshot!(
        [
            "[\"refuse\", \"accumulate\"]",
            "[\"accumulate\", \"accumulate\"]",
            "[\"accumulate\", \"checkpoint\"]",
            "\"refuse\"",
        ]
        .map(told)
        .join("\n"),
        @r#"
    `memory.on_exceed` contains "refuse" and other remedies
    `memory.on_exceed` contains "accumulate" twice
    "#
    );
}

#[cfg(feature = "wgpu")]
#[test]
fn the_ladder_leads_from_wgpu_to_the_host() {
    if !wgpu_is_there() {
        return;
    }
    // The pool takes 10 MiB at least, and the process of such a run on the host about 5 MiB.
    let spec = format!(
        "{IRIS}\n[backend]\ndevice = \"wgpu\"\n[memory]\nlimit = \"8MiB\"\non_exceed = [\"accumulate\", \"next_device\"]\n"
    )
    .edit("batch_size = 16", "batch_size = 4");
    let folder = folder_with(&spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(
        adjustments(folder.path()),
        [
            "micro_batch_size=2",
            "micro_batch_size=1",
            "device=\"flex\""
        ]
    );
    assert_eq!(summary(folder.path(), "base-s1")["device"], "flex");
}
