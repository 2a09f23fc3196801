//! Frozen matrices that are held in fewer bits.

use std::fs;
use std::path::Path;

use super::{RUN, TUNED, WIDE, base, memory, most_apart, on_base};
use crate::suite::edit::Edit;
use crate::suite::support::{
    completed, done, folder_with, goes_on, numbers, read_json, run, summary,
};

const BASES: [&str; 3] = ["bf16", "f16", "int8"];

fn held(spec: &str, base: &str) -> String {
    spec.edit(
        "type = \"lora\"\n",
        &format!("type = \"lora\"\nbase = \"{base}\"\n"),
    )
}

/// A language model of which only queries are adapted, so that most of what is held has no adapter.
const LANGUAGE: &str = r#"
[data]
type = "text"
path = "train.txt"
tokens = { tokenizer = "char", length = 16 }
split = { valid = 0.2, order = "time" }

[model]
type = "llama"
d_model = 24
num_layers = 2
num_heads = 4
num_kv_heads = 2
feedforward_size = 40

[[adapters]]
type = "lora"
parameters = "*.query.weight"
rank = 2

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 2
batch_size = 16
"#;

/// Encoders with biases, of which some are trained.
const ENCODERS: &str = r#"
[data]
type = "digits"
split = { valid = 0.2 }

[model]
layers = [
    { type = "reshape", shape = [8, 8] },
    { type = "linear", out_features = 16 },
    { type = "transformer_encoder", num_layers = 2, num_heads = 2, feedforward_size = 20, dropout = 0.0 },
    { type = "flatten" },
    { type = "linear" },
]

[[adapters]]
type = "lora"
parameters = ["*.query.weight", "*linear_inner.weight"]
rank = 2
dropout = 0.1
train = "*.bias"

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 1
batch_size = 64
"#;

fn metrics(folder: &Path, experiment: &str) -> String {
    let place = folder.join("results").join(experiment);
    fs::read_to_string(place.join("runs/base-s1/metrics.csv")).unwrap()
}

fn export_initial(folder: &Path, of: &str, format: &str, out: &str) {
    let arguments = [
        "export",
        "weights",
        of,
        "--weights",
        "initial",
        "--format",
        format,
        "--out",
        out,
    ];
    done(folder, &arguments);
}

#[test]
fn held_matrices_compute_as_full_ones_of_equal_numbers() {
    let mut differ = 0;
    let rows = TUNED.edit("[init]\nfrom = \"base\"\n", "");
    for spec in [&rows, LANGUAGE, ENCODERS] {
        let folder = folder_with(spec);
        let folder = folder.path();
        let text: String = (0..150)
            .map(|at| format!("{} ships {}, ", at % 9, at * 5 % 11))
            .collect();
        fs::write(folder.join("train.txt"), text).unwrap();
        done(folder, &["run", "spec.toml", "--quiet"]);
        let full = metrics(folder, "spec");
        for base in BASES {
            let name = format!("{base}.toml");
            fs::write(folder.join(&name), held(spec, base)).unwrap();
            done(folder, &["run", &name, "--quiet"]);
            // From the rounded numbers, which are in the file as others are.
            let weights = format!("{base}.safetensors");
            let of = format!("results/{base}/runs/base-s1");
            export_initial(folder, &of, "safetensors", &weights);
            let rounded = format!("[init]\nfrom = \"{weights}\"\n{spec}");
            fs::write(folder.join("rounded.toml"), rounded).unwrap();
            done(folder, &["run", "rounded.toml", "--quiet"]);
            let found = metrics(folder, base);
            assert_eq!(found, metrics(folder, "rounded"), "{base}: {spec}");
            differ += (found != full) as usize;
            fs::remove_dir_all(folder.join("results/rounded")).unwrap();
        }
    }
    assert!(differ >= 8, "rounding changes numbers: {differ}");
}

#[cfg(unix)]
#[test]
fn a_killed_run_with_held_matrices_is_the_same_run() {
    for form in BASES {
        let spec = format!("{}\n[checkpoint]\nevery_steps = 3\n", held(TUNED, form));
        let straight = on_base(&base(), &spec);
        done(straight.path(), &["run", "spec.toml", "--quiet"]);
        let killed = on_base(&base(), &spec);
        for fault in ["training:7", "checkpointing:12", "validating:2"] {
            let fault = format!("*@{fault}=kill");
            let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
            assert_ne!(run(killed.path(), &arguments).0, 0);
            let class = &summary(killed.path(), "base-s1")["failure"]["class"];
            assert_eq!(class, "killed");
        }
        goes_on(killed.path());
        assert_eq!(numbers(straight.path()), numbers(killed.path()), "{form}");
    }
}

#[test]
fn a_run_with_held_matrices_is_used_as_others() {
    for form in BASES {
        let folder = on_base(&base(), &held(TUNED, form));
        let folder = folder.path();
        done(folder, &["run", "spec.toml", "--quiet"]);
        fs::remove_dir_all(folder.join("base")).unwrap();
        let told = done(folder, &["reproduce", RUN]);
        assert!(told.contains("verdict: bitwise"), "{told}");
        let rows =
            "sepal_length,sepal_width,petal_length,petal_width\n5.1,3.5,1.4,0.2\n6.2,2.9,4.3,1.3\n";
        fs::write(folder.join("new.csv"), rows).unwrap();
        let predicted = |of: &str| done(folder, &["predict", of, "--data", "new.csv"]);
        let expected = predicted(RUN);
        // A file of merged weights, and another run that begins with this one.
        let arguments = [
            "export",
            "weights",
            RUN,
            "--format",
            "npz",
            "--out",
            "merged.npz",
        ];
        done(folder, &arguments);
        let plain = base().edit("learning_rate = 1e-2", "learning_rate = 1e-30");
        for (name, from) in [("of_file", "merged.npz"), ("of_run", RUN)] {
            let spec = format!("[init]\nfrom = \"{from}\"\n{plain}");
            fs::write(folder.join(format!("{name}.toml")), spec).unwrap();
            done(folder, &["run", &format!("{name}.toml"), "--quiet"]);
            let found = predicted(&format!("results/{name}/runs/base-s1"));
            let most = most_apart(&expected, &found);
            assert!(most < 1e-5, "{form} {name}: {expected}{found}");
        }
        // A capsule has its own matrices.
        done(folder, &["bundle", RUN, "--out", "held.capsule.tar.zst"]);
        fs::create_dir(folder.join("elsewhere")).unwrap();
        let place = folder.join("elsewhere");
        let told = done(&place, &["reproduce", "../held.capsule.tar.zst"]);
        assert!(told.contains("verdict: bitwise"), "{told}");
    }
}

#[test]
fn held_matrices_take_less_memory_and_smaller_files() {
    let deep = format!("hidden = {:?}", [640; 12]);
    let spec = WIDE.edit("hidden = [1536, 1536]", &deep).edit(
        "[optimizer]",
        "[[adapters]]\ntype = \"lora\"\nparameters = \"linear_1.weight\"\n\n[optimizer]",
    );
    let of = |spec: &str| {
        let folder = completed(spec, &[]);
        let (forecast, measured) = memory(folder.path());
        let counted = forecast["parameters"].as_f64().unwrap();
        let file = folder.path().join(RUN).join("model/initial.bpk");
        let size = fs::metadata(file).unwrap().len() as f64;
        (counted, measured, size)
    };
    let (full, full_peak, full_size) = of(&spec);
    for (base, least, most) in [
        ("bf16", 0.5, 0.51),
        ("f16", 0.5, 0.51),
        ("int8", 0.25, 0.28),
    ] {
        let (counted, peak, size) = of(&held(&spec, base));
        let share = counted / full;
        assert!(
            (least..most).contains(&share),
            "{base}: {counted} of {full}"
        );
        let share = size / full_size;
        assert!(
            (least..most + 0.02).contains(&share),
            "{base}: {size} of {full_size}"
        );
        // One of them is in full at a time.
        let saved = 0.8 * (full - counted);
        assert!(
            peak < full_peak - saved,
            "{base}: {peak} and {full_peak}, {full}"
        );
    }
}

#[test]
fn where_nothing_is_held_matrices_are_rounded_and_it_is_said() {
    let spec = held(TUNED, "int8");
    let folder = on_base(&base(), &spec);
    let folder = folder.path();
    let exported = |name: &str, set: &str| {
        let name_of = format!("experiment.name={name}");
        let arguments = [
            "run",
            "spec.toml",
            "--quiet",
            "--set",
            &name_of,
            "--set",
            set,
        ];
        let told = done(folder, &arguments);
        let (of, out) = (
            format!("results/{name}/runs/base-s1"),
            format!("{name}.json"),
        );
        export_initial(folder, &of, "pytorch-json", &out);
        let weights = read_json(&folder.join(&out))["linear_2_weight"].clone();
        let rows = weights.as_array().unwrap().iter();
        let numbers = rows.flat_map(|row| row.as_array().unwrap());
        let numbers: Vec<f32> = numbers
            .map(|number| number.as_f64().unwrap() as f32)
            .collect();
        (numbers, told)
    };
    let (held, _) = exported("held", "train.epochs=4");
    for (name, set, remedy) in [
        (
            "slow",
            "backend.kernels=reference",
            "remove `backend.kernels`",
        ),
        (
            "double",
            "backend.precision=f64",
            "remove `backend.precision`",
        ),
    ] {
        let (rounded, told) = exported(name, set);
        assert_eq!(held, rounded, "{name}");
        assert!(
            told.contains("saves no memory here") && told.contains(remedy),
            "{told}"
        );
    }
    for (precision, remedy) in [
        ("f32", "which halves all weights, or train on `flex`"),
        ("bf16", "remove `adapters[0].base`"),
    ] {
        let precision = format!("backend.precision={precision}");
        let device = "backend.device=wgpu";
        let arguments = ["check", "spec.toml", "--set", device, "--set", &precision];
        let (code, _, told) = run(folder, &arguments);
        assert!(
            told.contains("saves no memory here") && told.contains(remedy),
            "{code}: {told}"
        );
    }
}

/// Rounded weights are not those of the base: it is said how each layer's are held.
#[test]
fn layers_are_described_with_how_their_matrices_are_held() {
    let folder = on_base(&base(), &held(TUNED, "int8"));
    let table = done(folder.path(), &["describe", "spec.toml"]);
    let table: Vec<&str> = table.lines().take_while(|line| !line.is_empty()).collect();
    insta::assert_snapshot!(table.join("\n"));
}
