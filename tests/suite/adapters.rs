//! Adapters: runs that train small matrices beside frozen weights.

mod held;
mod peft;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{completed, folder_with, goes_on, numbers, read_json, run, summary};

/// The run that is fine-tuned, and a file for the experiment that does it.
const TUNED: &str = r#"
[data]
type = "iris"
split = { valid = 0.2, test = 0.2 }

[model]
type = "mlp"
hidden = [16, 16]
dropout = 0.2

[init]
from = "base"

[[adapters]]
type = "lora"
parameters = ["linear_1.weight", "linear_2.weight"]
rank = 2
alpha = 4.0
dropout = 0.1
train = "linear_3.*"

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 4
batch_size = 16
"#;

/// A folder with the best run of a trained network as `base`, and another experiment.
fn on_base(of: &str, spec: &str) -> tempfile::TempDir {
    let base = completed(of, &[]);
    let folder = folder_with(spec);
    let from = base.path().join("results/spec/runs/base-s1");
    copy(&from, &folder.path().join("base"));
    folder
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

fn base() -> String {
    TUNED
        .edit("[init]\nfrom = \"base\"\n", "")
        .edit(adapters(), "")
        .edit("epochs = 4", "epochs = 2")
}

fn adapters() -> &'static str {
    let start = TUNED.find("[[adapters]]").unwrap();
    &TUNED[start..TUNED.find("[optimizer]").unwrap()]
}

fn tuned(spec: &str) -> tempfile::TempDir {
    let folder = on_base(&base(), spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    folder
}

const RUN: &str = "results/spec/runs/base-s1";

/// The digests of each parameter, one for each epoch.
fn digests(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(folder.join(RUN).join("trace/digests.csv")).unwrap();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (path, digest) = (cells[cells.len() - 2], cells[cells.len() - 1]);
        all.entry(path.to_owned())
            .or_default()
            .push(digest.to_owned());
    }
    all
}

#[test]
fn only_the_adapter_and_what_is_named_are_trained_and_saved() {
    let folder = tuned(TUNED);
    let digests = digests(folder.path());
    for (path, is_trained) in [
        ("linear_1.weight", false),
        ("linear_1.bias", false),
        ("linear_1.weight.lora.a", true),
        ("linear_1.weight.lora.b", true),
        ("linear_2.bias", false),
        ("linear_3.weight", true),
        ("linear_3.bias", true),
    ] {
        let all = &digests[path];
        assert_eq!(all.len(), 5, "{path}");
        assert_eq!(all[0] != all[4], is_trained, "{path}: {all:?}");
    }
    // 4x16 and 16x16 are frozen; A and B of rank 2, and 16x3 and 3, are not.
    let (code, table, stderr) = run(folder.path(), &["describe", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let table = table.replace(&folder.path().display().to_string(), "[FOLDER]");
    insta::assert_snapshot!("described", table);
    let size = |path: &str| {
        fs::metadata(folder.path().join(RUN).join(path))
            .unwrap()
            .len()
    };
    let checkpoints = fs::read_dir(folder.path().join(RUN).join("checkpoints")).unwrap();
    let newest = checkpoints.flatten().map(|entry| entry.path());
    let newest = newest.filter(|path| path.to_string_lossy().contains("model-"));
    let num_bytes = 4 * (4 * 2 + 2 * 16 + 16 * 2 + 2 * 16 + 16 * 3 + 3);
    for path in newest {
        let text = fs::read(&path).unwrap();
        let has = |name: &str| text.windows(name.len()).any(|part| part == name.as_bytes());
        assert!(
            has("weight.lora.a") && !has("layers.0.Linear.bias"),
            "{path:?}"
        );
        assert!(text.len() < num_bytes + 4096, "{path:?}: {}", text.len());
    }
    assert!(size("model/best.bpk") < size("model/initial.bpk"));
}

#[test]
fn batch_norms_keep_the_statistics_of_the_base() {
    let layers = "layers = [\n{ type = \"linear\", out_features = 16 },\n{ type = \"batch_norm\" },\n\
        { type = \"relu\" },\n{ type = \"linear\", out_features = 3 },\n]\n";
    let model = "type = \"mlp\"\nhidden = [16, 16]\ndropout = 0.2\n";
    let with_norm = |spec: &str| spec.edit(model, layers);
    let spec = with_norm(TUNED)
        .edit(
            "\"linear_1.weight\", \"linear_2.weight\"",
            "\"linear_1.weight\"",
        )
        .edit("train = \"linear_3.*\"", "train = \"linear_2.*\"");
    let folder = on_base(&with_norm(&base()), &spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let digests = digests(folder.path());
    let kept: Vec<_> = digests
        .iter()
        .filter(|(path, _)| path.contains("running"))
        .collect();
    assert_eq!(kept.len(), 2, "{digests:?}");
    for (path, all) in kept {
        assert!(
            all.iter().all(|digest| *digest == all[0]),
            "{path}: {all:?}"
        );
    }
}

#[test]
fn an_adapter_changes_nothing_before_it_is_trained() {
    let none = TUNED.edit("train = \"linear_3.*\"\n", "");
    let folder = tuned(&none);
    let before = |weights: &str, of: &str, out: &str| {
        let out = folder.path().join(out);
        let (code, _, stderr) = run(
            folder.path(),
            &[
                "export",
                "weights",
                of,
                "--weights",
                weights,
                "--format",
                "pytorch-json",
                "--out",
                &out.to_string_lossy(),
            ],
        );
        assert_eq!(code, 0, "{stderr}");
        read_json(&out)
    };
    let base = before("best", "base", "base.json");
    assert_eq!(before("initial", RUN, "initial.json"), base);
    let merged = before("final", RUN, "merged.json");
    assert_ne!(merged["linear_1_weight"], base["linear_1_weight"]);
    assert_eq!(merged["linear_1_bias"], base["linear_1_bias"]);
    assert_eq!(merged["linear_3_weight"], base["linear_3_weight"]);
    assert_eq!(merged.as_object().unwrap().len(), 6);
}

#[cfg(unix)]
#[test]
fn a_killed_run_is_the_same_run() {
    for strategy in [
        "",
        "strategy = { type = \"lookahead\", sync_steps = 3 }\n",
        "strategy = { type = \"swa\", start_epoch = 2 }\n",
    ] {
        let spec =
            format!("{strategy}{TUNED}ema = {{ decay = 0.9 }}\n[checkpoint]\nevery_steps = 3\n");
        let straight = tuned(&spec);
        let killed = on_base(&base(), &spec);
        for fault in [
            "training:7",
            "checkpointing:12",
            "validating:2",
            "training:19",
        ] {
            let fault = format!("*@{fault}=kill");
            let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
            let (code, ..) = run(killed.path(), &arguments);
            assert_ne!(code, 0);
            let class = &summary(killed.path(), "base-s1")["failure"]["class"];
            assert_eq!(class, "killed");
        }
        goes_on(killed.path());
        assert_eq!(
            numbers(straight.path()),
            numbers(killed.path()),
            "{strategy}"
        );
    }
}

#[test]
fn a_base_that_is_gone_or_changed_is_reported() {
    let folder = on_base(&base(), TUNED);
    let arguments = [
        "run",
        "spec.toml",
        "--quiet",
        "--inject-fault",
        "*@training:20=kill",
    ];
    assert_ne!(run(folder.path(), &arguments).0, 0);
    let best = folder.path().join("base/model/best.bpk");
    let mut bytes = fs::read(&best).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&best, bytes).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("best.bpk` is damaged"), "{stderr}");
    // Another base is other work, and said to be: without a record, nobody knows that it was changed.
    for file in ["events.jsonl", "summary.json"] {
        fs::remove_file(folder.path().join("base").join(file)).unwrap();
    }
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("`init.digest` was"), "{stderr}");
    fs::remove_file(&best).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("has no best weights"), "{stderr}");
}

#[test]
fn a_reproduction_is_bitwise() {
    let folder = tuned(TUNED);
    let (code, stdout, stderr) = run(folder.path(), &["reproduce", RUN]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(
        stdout.contains("bitwise") || stderr.contains("bitwise"),
        "{stdout}{stderr}"
    );
    // Its own initial weights are enough.
    fs::remove_dir_all(folder.path().join("base")).unwrap();
    let (code, stdout, stderr) = run(folder.path(), &["reproduce", RUN]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(
        stdout.contains("bitwise") || stderr.contains("bitwise"),
        "{stdout}{stderr}"
    );
}

/// The largest difference of numbers in two tables.
fn most_apart(one: &str, other: &str) -> f64 {
    let numbers = |text: &str| -> Vec<f64> {
        let cells = text.split([',', '\n']);
        cells.filter_map(|cell| cell.parse().ok()).collect()
    };
    let pairs = numbers(one).into_iter().zip(numbers(other));
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn predictions_are_those_of_merged_weights() {
    let folder = tuned(TUNED);
    let rows = "sepal_length,sepal_width,petal_length,petal_width\n5.1,3.5,1.4,0.2\n6.2,2.9,4.3,1.3\n7.7,3.0,6.1,2.3\n";
    fs::write(folder.path().join("new.csv"), rows).unwrap();
    let predicted = |of: &str| {
        let (code, stdout, stderr) = run(folder.path(), &["predict", of, "--data", "new.csv"]);
        assert_eq!(code, 0, "{stderr}");
        stdout
    };
    // The same network without adapters, from the merged weights, with a rate that changes nothing.
    let of_adapted = predicted(RUN);
    let arguments = [
        "export",
        "weights",
        RUN,
        "--format",
        "safetensors",
        "--out",
        "merged.safetensors",
    ];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    let merged = TUNED
        .edit(adapters(), "")
        .edit("from = \"base\"", "from = \"merged.safetensors\"")
        .edit("learning_rate = 1e-2", "learning_rate = 1e-30");
    fs::write(folder.path().join("merged.toml"), merged).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "merged.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(of_adapted, predicted("results/merged/runs/base-s1"));
    // Another experiment that begins with the run begins with merged weights.
    let again = TUNED
        .edit(adapters(), "")
        .edit("from = \"base\"", &format!("from = \"{RUN}\""))
        .edit("learning_rate = 1e-2", "learning_rate = 1e-30");
    fs::write(folder.path().join("again.toml"), again).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "again.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let of_again = predicted("results/again/runs/base-s1");
    let most = most_apart(&of_adapted, &of_again);
    assert!(most < 1e-5, "{of_adapted}{of_again}");
}

#[test]
fn rank_is_an_axis() {
    let spec = format!("{TUNED}\n[sweep.grid]\nadapters.0.rank = [1, 4]\n");
    let folder = on_base(&base(), &spec);
    let (code, table, stderr) = run(folder.path(), &["plan", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        table.contains("rank=1") && table.contains("rank=4"),
        "{table}"
    );
}

/// A wide network on small images, whose states are most of what a run holds.
const WIDE: &str = r#"
[data]
type = "digits"

[model]
type = "mlp"
hidden = [1536, 1536]

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 1
batch_size = 64
"#;

/// The forecast of a run, and the measured peak.
fn memory(folder: &Path) -> (Json, f64) {
    let plan = read_json(&folder.join("results/spec/plan.json"));
    let report = read_json(&folder.join("results/spec/report.json"));
    let measured = &report["trials"][0]["memory"]["measured"]["pool"]["reserved_bytes"];
    let forecast = plan["runs"][0]["forecast"].clone();
    (forecast, measured.as_f64().expect("a peak"))
}

#[test]
fn frozen_weights_cost_neither_gradients_nor_optimizer_state() {
    let adapters = "[[adapters]]\ntype = \"lora\"\nparameters = \"*.weight\"\n\n[optimizer]";
    let lora = WIDE.edit("[optimizer]", adapters);
    let of = |spec: &str| memory(completed(spec, &[]).path());
    let (whole, whole_peak) = of(WIDE);
    let (small, small_peak) = of(&lora);
    let bytes = |forecast: &Json, part: &str| forecast[part].as_f64().unwrap();
    let weights = bytes(&whole, "parameters");
    assert!(bytes(&small, "gradients") < 0.05 * weights, "{small}");
    assert!(bytes(&small, "optimizer") < 0.1 * weights, "{small}");
    // A gradient and two moments for each weight.
    let saved = whole_peak - small_peak;
    assert!(
        (2.0..4.5).contains(&(saved / weights)),
        "{whole_peak} {small_peak} {weights}"
    );
}
