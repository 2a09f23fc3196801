//! Arrays: which values are scaled together, from the file to other programs.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::edit::Edit;
use super::support::peers::python_with;
use super::support::{completed, folder_with, npy, read_json, run, summary};

/// Series of weather: 12 steps of a temperature, a pressure and a humidity.
const WEATHER: &str = r#"
[data]
type = "npy"
path = "x.npy"
target_path = "y.npy"

[model]
layers = [{ type = "lstm", hidden_size = 16, output = "last" }, { type = "linear" }]

[optimizer]
type = "adam"
learning_rate = 2e-2

[train]
epochs = 8
batch_size = 16
"#;

const STEPS: usize = 12;

/// A number from 0 to 1 that looks random.
fn noise(at: usize) -> f64 {
    let one = (at as f64 * 12.9898).sin() * 43_758.545;
    one - one.floor()
}

/// Series whose class is whether the humidity rises: its range is a thousandth of the pressure's.
fn series(num: usize) -> (Vec<f32>, Vec<i64>) {
    let class = |item: usize| (item * 7 / 3 % 2) as i64;
    let values = (0..num * STEPS).flat_map(|row| {
        let (item, step) = (row / STEPS, row % STEPS);
        let slope = if class(item) == 1 { 1.0 } else { -1.0 };
        let trend = slope * (step as f64 / STEPS as f64 - 0.5);
        [
            15.0 + 20.0 * (noise(3 * row) - 0.5),
            1013.0 + 400.0 * (noise(3 * row + 1) - 0.5),
            0.5 + 0.2 * trend + 0.1 * (noise(3 * row + 2) - 0.5),
        ]
    });
    let values = values.map(|value| value as f32).collect();
    (values, (0..num).map(class).collect())
}

fn write(folder: &Path, name: &str, array: &[u8]) {
    fs::write(folder.join(name), array).unwrap();
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn write_targets(folder: &Path, classes: &[i64]) {
    let bytes: Vec<u8> = classes
        .iter()
        .flat_map(|class| class.to_le_bytes())
        .collect();
    let shape = format!("({},)", classes.len());
    write(folder, "y.npy", &npy("<i8", &shape, &bytes));
}

fn weather() -> tempfile::TempDir {
    let folder = folder_with(WEATHER);
    let (values, classes) = series(240);
    write(
        folder.path(),
        "x.npy",
        &npy("<f4", "(240, 12, 3)", &bytes_of(&values)),
    );
    write_targets(folder.path(), &classes);
    folder
}

/// The accuracy of the only run, and the scalings of its inputs.
fn trained(folder: &Path, arguments: &[&str]) -> (f64, Vec<(f64, f64)>) {
    let results = folder.join("results");
    if results.exists() {
        fs::remove_dir_all(&results).unwrap();
    }
    let (code, _, said) = run(
        folder,
        &[&["run", "spec.toml", "--quiet"], arguments].concat(),
    );
    assert_eq!(code, 0, "{said}");
    let runs = results.join("spec/runs");
    let entry = fs::read_dir(&runs).unwrap().flatten().next().unwrap();
    let id = entry.file_name().into_string().unwrap();
    let transforms = read_json(&entry.path().join("transforms.json"));
    let scaling = transforms["input"]["scaling"].as_array().unwrap();
    let number = |value: &Json| value.as_f64().unwrap();
    let scaling = scaling
        .iter()
        .map(|one| (number(&one["shift"]), number(&one["factor"])));
    let best = number(&summary(folder, &id)["metrics"]["valid/accuracy"]);
    (best, scaling.collect())
}

#[test]
fn values_of_a_series_are_scaled_separately() {
    let folder = weather();
    let (accuracy, scaling) = trained(folder.path(), &[]);
    assert!(accuracy > 0.95, "{accuracy}");
    let [temperature, pressure, humidity] = scaling[..] else {
        panic!("{scaling:?}");
    };
    assert!((temperature.0 - 15.0).abs() < 0.5, "{temperature:?}");
    assert!((pressure.0 - 1013.0).abs() < 5.0, "{pressure:?}");
    assert!((humidity.0 - 0.5).abs() < 0.01, "{humidity:?}");
    // Uniform noise over 400 has a deviation of 400 / √12.
    assert!((1.0 / pressure.1 - 115.5).abs() < 5.0, "{pressure:?}");

    let all = ["--set", "data.scale_axis=all"];
    let (_, scaling) = trained(folder.path(), &all);
    assert_eq!(scaling.len(), 1);
    let (_, scaling) = trained(folder.path(), &["--set", "data.scale_axis=-2"]);
    assert_eq!(scaling.len(), STEPS);
    let (_, _, said) = run(folder.path(), &[&["check", "spec.toml"][..], &all].concat());
    let warned = "are scaled together\n";
    assert!(
        said.contains(warned) && said.contains("set `scale_axis = 1`"),
        "{said}"
    );
    let (_, _, said) = run(folder.path(), &["check", "spec.toml"]);
    assert!(!said.contains(warned), "{said}");
    // Neither are the channels scaled separately if an axis is chosen.
    let first = ["check", "spec.toml", "--set", "data.scale_axis=0"];
    let (_, _, said) = run(folder.path(), &first);
    assert!(said.contains("set `scale_axis = 1`"), "{said}");
}

/// Images whose channels are last.
#[test]
fn channels_at_the_end_are_pointed_out() {
    let spec = WEATHER.edit(
        "{ type = \"lstm\", hidden_size = 16, output = \"last\" }",
        "{ type = \"flatten\" }",
    );
    let folder = folder_with(&spec);
    let (values, classes) = series(60);
    let images = npy("<f4", "(30, 4, 6, 3)", &bytes_of(&values));
    write(folder.path(), "x.npy", &images);
    write_targets(folder.path(), &classes[..30]);
    let (code, _, said) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("set `scale_axis = 2`"), "{said}");
}

/// Channels first, as a convolution takes them: steps are no channels.
#[test]
fn channels_before_steps_are_pointed_out() {
    let spec = WEATHER.edit(
        "{ type = \"lstm\", hidden_size = 16, output = \"last\" }",
        "{ type = \"conv1d\", out_channels = 4, kernel_size = 3 }, { type = \"flatten\" }",
    );
    let folder = folder_with(&spec);
    let (values, classes) = series(60);
    let turned: Vec<f32> = (0..values.len())
        .map(|at| {
            let (item, channel, step) = (at / 36, at / STEPS % 3, at % STEPS);
            values[(item * STEPS + step) * 3 + channel]
        })
        .collect();
    write(
        folder.path(),
        "x.npy",
        &npy("<f4", "(60, 3, 12)", &bytes_of(&turned)),
    );
    write_targets(folder.path(), &classes);
    let (code, _, said) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("set `scale_axis = 0`"), "{said}");
    let first = ["check", "spec.toml", "--set", "data.scale_axis=0"];
    let (_, _, said) = run(folder.path(), &first);
    assert!(!said.contains("scale_axis"), "{said}");
}

/// Rounded to 32 bits, all of these would be one number.
#[test]
fn doubles_are_scaled_before_they_are_rounded() {
    let folder = folder_with(WEATHER);
    let (values, classes) = series(240);
    let far = values.iter().map(|value| 1e9 + f64::from(*value) / 1e3);
    let bytes: Vec<u8> = far.flat_map(f64::to_le_bytes).collect();
    write(folder.path(), "x.npy", &npy("<f8", "(240, 12, 3)", &bytes));
    write_targets(folder.path(), &classes);
    let (accuracy, _) = trained(folder.path(), &[]);
    assert!(accuracy > 0.9, "{accuracy}");
}

/// In 64 bits, scaled numbers are not rounded either.
#[test]
fn doubles_reach_networks_of_64_bits() {
    if let Some(python) = python_with(&["torch", "numpy"]) {
        let program = Path::new(env!("CARGO_BIN_EXE_runner"));
        python.run("doubles_check.py", &[program]);
    }
}

#[test]
fn channels_of_images_are_scaled_separately() {
    let spec = WEATHER.edit(
        "{ type = \"lstm\", hidden_size = 16, output = \"last\" }",
        "{ type = \"conv2d\", out_channels = 4, kernel_size = 3 }, { type = \"flatten\" }",
    );
    let folder = folder_with(&spec.edit("epochs = 8", "epochs = 1"));
    let shade = |at: usize| {
        let channel = at / 36 % 3;
        (40 * channel + (noise(at) * 60.0) as usize) as u8
    };
    let bytes: Vec<u8> = (0..80 * 3 * 36).map(shade).collect();
    write(folder.path(), "x.npy", &npy("|u1", "(80, 3, 6, 6)", &bytes));
    write_targets(folder.path(), &(0..80).map(|at| at % 2).collect::<Vec<_>>());
    let (_, scaling) = trained(folder.path(), &[]);
    let shifts: Vec<f64> = scaling.iter().map(|(shift, _)| shift.round()).collect();
    assert!(
        matches!(shifts[..], [28.0..=31.0, 68.0..=71.0, 108.0..=111.0]),
        "{shifts:?}"
    );
}

/// The scaling of each value leaves with the network.
#[test]
fn scalings_along_an_axis_are_exported() {
    let Some(python) = python_with(&["torch", "onnx", "onnxruntime", "safetensors"]) else {
        return;
    };
    let folder = weather();
    let (_, _) = trained(folder.path(), &["--set", "train.epochs=1"]);
    for arguments in [
        ["export", "pytorch", "results/spec", "--out", "module"].as_slice(),
        &[
            "export",
            "onnx",
            "results/spec",
            "--with-transforms",
            "--out",
            "model.onnx",
        ],
    ] {
        let (code, _, said) = run(folder.path(), arguments);
        assert_eq!(code, 0, "{said}");
    }
    python.run("scales_check.py", &[folder.path()]);
}

/// The numbers of nested lists.
fn flat(values: &Json) -> Vec<f64> {
    match values {
        Json::Array(values) => values.iter().flat_map(flat).collect(),
        Json::Object(tensor) => flat(&tensor["data"]),
        number => vec![number.as_f64().unwrap()],
    }
}

/// The deviation of each gain, of many weights.
#[test]
fn initializers_have_the_gains_of_the_field() {
    let spec = |initializer: &str| {
        format!(
            "data = {{ type = 'digits' }}\n\
             model = {{ layers = [{{ type = 'flatten' }}, {{ type = 'linear', out_features = 1600, initializer = {{ {initializer} }} }}, {{ type = 'relu' }}, {{ type = 'linear' }}] }}\n\
             optimizer = {{ type = 'sgd', learning_rate = 1e-30 }}\ntrain = {{ epochs = 1, batch_size = 512 }}\n"
        )
    };
    let weights = |initializer: &str| {
        let folder = completed(&spec(initializer), &[]);
        let export = [
            "export",
            "weights",
            "results/spec",
            "--format",
            "pytorch-json",
        ];
        let (code, _, said) = run(folder.path(), &[&export[..], &["--out", "w.json"]].concat());
        assert_eq!(code, 0, "{said}");
        let all = read_json(&folder.path().join("w.json"));
        let named = all.as_object().unwrap().iter();
        let first = |part: &str| {
            let (_, values) = named
                .clone()
                .find(|(name, _)| name.ends_with(part))
                .unwrap();
            flat(values)
        };
        (first("weight"), first("bias"))
    };
    let deviation = |initializer: &str| {
        let (values, _) = weights(initializer);
        let squares: f64 = values.iter().map(|v| v.powi(2)).sum();
        (squares / values.len() as f64).sqrt()
    };
    // √(1 / 64) is an eighth.
    for (initializer, gain) in [
        ("type = 'kaiming_normal'", 2.0_f64.sqrt()),
        ("type = 'kaiming_uniform'", 2.0_f64.sqrt()),
        ("type = 'kaiming_normal', nonlinearity = 'linear'", 1.0),
        ("type = 'kaiming_uniform', nonlinearity = 'tanh'", 5.0 / 3.0),
        ("type = 'kaiming_normal', gain = 3", 3.0),
    ] {
        let found = 8.0 * deviation(initializer);
        assert!((found / gain - 1.0).abs() < 0.02, "{initializer}: {found}");
    }
    let (values, biases) = weights("type = 'zeros'");
    assert!(values.iter().chain(&biases).all(|value| *value == 0.0));
    let (_, biases) = weights("type = 'kaiming_normal', bias = 0.25");
    assert!(biases.iter().all(|value| *value == 0.25), "{biases:?}");
    let (_, biases) = weights("type = 'kaiming_normal'");
    assert!(biases.iter().any(|value| *value != biases[0]));
}
