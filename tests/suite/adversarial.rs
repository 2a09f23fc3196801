//! `strategy.type = "adversarial"`: two networks train in turn as in PyTorch, survive a kill, and are reproduced.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use burn_runner::plan::RunPlan;

use super::edit::Edit;
use super::sharing::losses;
use super::support::peers::python_with;
use super::support::{completed, done, folder_with, goes_on, numbers, plan, read_json, run};
use runner_core::data::order::{Purpose, permutation};
use runner_network::noise::Draws;
use runner_network::sliced::directions;

/// A pair with statistics, random numbers and a last batch of one item.
const PAIR: &str = r#"
[data]
type = "iris"
split = { valid = 0.2, test = 0.2 }

[strategy]
type = "adversarial"
discriminator_steps = 2

[loss]
type = "hinge_gan"

[model]
layers = [
  { type = "noise", size = 3 },
  { type = "sequence", name = "generator", layers = [
    { type = "linear", out_features = 8 },
    { type = "batch_norm" },
    { type = "relu" },
    { type = "linear" },
  ] },
  { type = "sequence", name = "discriminator", layers = [
    { type = "linear", out_features = 8 },
    { type = "leaky_relu" },
    { type = "dropout", probability = 0.2 },
    { type = "linear" },
  ] },
]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 4
batch_size = 89

[checkpoint]
every_steps = 2
"#;

const RUN: &str = "results/spec/runs/base-s1";

/// The metrics of each epoch.
fn epochs(folder: &Path) -> Vec<Json> {
    let events = fs::read_to_string(folder.join("runs/base-s1/events.jsonl")).unwrap();
    let events = events.lines().map(|line| {
        let event: Json = serde_json::from_str(line).unwrap();
        event
    });
    let finished = events.filter(|event| event["event"] == "epoch_finished");
    finished.map(|event| event["metrics"].clone()).collect()
}

/// The largest relative difference of numbers, which must be there or not in both.
fn difference<'a>(pairs: impl Iterator<Item = (&'a Json, &'a Json)>) -> f64 {
    let errors = pairs.map(
        |(found, expected)| match (found.as_f64(), expected.as_f64()) {
            (Some(a), Some(b)) => (a - b).abs() / b.abs().max(1e-3),
            (None, None) => 0.0,
            _ => panic!("{found} and {expected}"),
        },
    );
    errors.fold(0.0, f64::max)
}

#[test]
fn both_networks_train_as_in_pytorch() {
    let Some(python) = python_with(&["torch", "safetensors", "numpy", "scipy"]) else {
        return;
    };
    const STEPS: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    python.run("adversarial_check.py", &[at, Path::new("prepare")]);
    // An epoch is a step with all items.
    let draws = Draws::new(1, 4);
    let steps = (1..=STEPS).map(|epoch| {
        let drawn: Vec<_> = (0..30).map(|place| draws.drawn(epoch, place)).collect();
        json!({
            "order": permutation(30, 1, Purpose::Order, epoch as u64),
            "discriminator": drawn.iter().map(|item| &item.discriminator).collect::<Vec<_>>(),
            "generator": drawn.iter().map(|item| &item.generator).collect::<Vec<_>>(),
            "shares": drawn.iter().map(|item| [item.share]).collect::<Vec<_>>(),
        })
    });
    let valid: Vec<_> = (0..20)
        .map(|place| draws.drawn(0, place).discriminator)
        .collect();
    let all = json!({
        "steps": steps.collect::<Vec<_>>(),
        "valid": valid,
        "directions": directions(6),
        "directions_with_classes": directions(6 + 3),
    });
    fs::write(at.join("draws.json"), all.to_string()).unwrap();
    python.run("adversarial_check.py", &[at, Path::new("train")]);
    let leaky = "{ type = 'leaky_relu', negative_slope = 0.2 }";
    let tanh = "{ type = 'tanh' }";
    let norm = "{ type = 'batch_norm', name = 'norm' },";
    // The penalty's derivative is a difference, whose error is that of the step squared.
    let cases = [
        ("gan", "type = 'gan'", 1, tanh, norm, 1e-10),
        ("lsgan", "type = 'lsgan'", 2, tanh, "", 1e-10),
        ("hinge_gan", "type = 'hinge_gan'", 1, leaky, "", 1e-10),
        ("wgan", "type = 'wgan', clip = 0.1", 2, tanh, "", 1e-10),
        ("wgan_gp", "type = 'wgan_gp'", 3, tanh, "", 1e-8),
        ("conditional_gan", "type = 'gan'", 1, tanh, norm, 1e-10),
        ("conditional_wgan_gp", "type = 'wgan_gp'", 2, tanh, "", 1e-8),
    ];
    let mut largest = BTreeMap::new();
    for (name, loss, every, function, norm, _) in cases {
        let place = at.join(name);
        fs::create_dir(&place).unwrap();
        let is_conditional = name.starts_with("conditional");
        let (files, target, join) = if is_conditional {
            let join = "{ type = 'concat', inputs = ['previous', 'condition'] },";
            ("classes_", "target = 'class',", join)
        } else {
            ("", "", "")
        };
        let spec = format!(
            "data = {{ type = 'csv', path = '../{files}train.csv', valid_path = '../{files}valid.csv', {target} scale = 'none', split.test = 0 }}\n\
             backend = {{ precision = 'f64' }}\n\
             strategy = {{ type = 'adversarial', discriminator_steps = {every}, conditional = {is_conditional} }}\n\
             loss = {{ {loss} }}\n\
             optimizer = {{ type = 'sgd', learning_rate = 0.05, momentum = 0.5 }}\n\
             scheduler = {{ type = 'constant' }}\n\
             train = {{ epochs = {STEPS}, batch_size = 30 }}\n\
             init = {{ from = '../{name}.safetensors' }}\n\
             model.layers = [
                 {{ type = 'noise', size = 4 }},
                 {{ type = 'sequence', name = 'generator', layers = [ {join}
                     {{ type = 'linear', name = 'first', out_features = 8 }}, {norm} {{ type = 'tanh' }},
                     {{ type = 'linear', name = 'second' }},
                 ] }},
                 {{ type = 'sequence', name = 'discriminator', layers = [ {join}
                     {{ type = 'linear', name = 'first', out_features = 16 }}, {function},
                     {{ type = 'linear', name = 'second' }},
                 ] }},
             ]\n"
        );
        fs::write(place.join("spec.toml"), spec).unwrap();
        done(&place, &["run", "spec.toml", "--quiet"]);
        let expected = read_json(&at.join(format!("{name}.json")));
        let found = epochs(&place.join("results/spec"));
        assert_eq!(found.len(), STEPS, "{name}");
        let of_steps = losses(&place.join("results/spec"));
        let of_steps: Vec<Json> = of_steps.into_iter().map(Json::from).collect();
        let of_discriminator = expected["discriminator"].as_array().unwrap();
        let of_generator = expected["generator"].as_array().unwrap();
        let errors = [
            difference(of_steps.iter().zip(of_discriminator)),
            difference(
                found
                    .iter()
                    .map(|epoch| &epoch["train/generator/loss"])
                    .zip(of_generator),
            ),
            difference(
                expected["valid"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(key, value)| (&found[STEPS - 1][format!("valid/{key}")], value)),
            ),
        ];
        largest.insert(name, errors);
    }
    for (name, .., most) in cases {
        assert!(
            largest[name].iter().all(|error| *error < most),
            "{largest:?}"
        );
    }
}

#[test]
fn the_metrics_are_those_of_both_networks() {
    let folder = completed(PAIR, &[]);
    let found = epochs(&folder.path().join("results/spec"));
    let last = found[3].as_object().unwrap();
    let names: Vec<&str> = last.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "learning_rate",
            "train/generated_accuracy",
            "train/generator/loss",
            "train/loss",
            "train/real_accuracy",
            "valid/generated_accuracy",
            "valid/generator/loss",
            "valid/loss",
            "valid/real_accuracy",
            "valid/sliced_wasserstein",
        ]
    );
    // They do not depend on how validation is divided.
    let said = done(
        folder.path(),
        &["evaluate", RUN, "--split", "valid", "--json"],
    );
    let one = done(
        folder.path(),
        &[
            "evaluate",
            RUN,
            "--split",
            "valid",
            "--json",
            "--batch-size",
            "1",
        ],
    );
    let distance = |text: &str| {
        let json: Json = serde_json::from_str(text.split_inclusive("\n}").next().unwrap()).unwrap();
        let metrics = json["metrics"].as_array().unwrap().clone();
        let found = metrics
            .into_iter()
            .find(|metric| metric["name"] == "sliced_wasserstein");
        found.unwrap()["value"].as_f64().unwrap()
    };
    let wanted = last["valid/sliced_wasserstein"].as_f64().unwrap();
    assert!(distance(&said) > 0.0);
    // Up to the rounding of matrix products of other sizes.
    assert!((distance(&said) - distance(&one)).abs() < 1e-6);
    // These are the weights of the best epoch.
    assert!(distance(&said) <= wanted);
}

/// Numbers depend neither on threads nor on how a batch is divided for want of memory, up to rounding.
#[cfg(unix)]
#[test]
fn a_pair_survives_a_kill_to_the_bit() {
    let spec = format!(
        "{PAIR}\n[sweep.grid]\ntrain.micro_batch_size = [45, 89]\nloss.type = [\"gan\", \"lsgan\", \"hinge_gan\", \"wgan\"]\n"
    );
    let spec = spec.edit(
        "[train]\n",
        "[train]\nema = { decay = 0.9 }\nlog_gradient_norms = \"parameters\"\n",
    );
    let straight = completed(&spec, &["--jobs", "2"]);
    let killed = folder_with(&spec);
    for moment in ["training:3", "checkpointing:4", "validating:3"] {
        let fault = format!("*@{moment}=kill");
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
        let (code, ..) = run(killed.path(), &arguments);
        assert_eq!(code, 1, "{moment}");
    }
    goes_on(killed.path());
    assert_eq!(numbers(straight.path()).len(), 8);
    assert_eq!(numbers(straight.path()), numbers(killed.path()));
}

/// Small images of digits, each for its class.
const DIGITS: &str = r#"
data = { type = "digits", split = { valid = 0.9 } }
strategy = { type = "adversarial", conditional = true }
loss.type = "wgan_gp"
model.layers = [
  { type = "noise", size = 4 },
  { type = "sequence", name = "generator", layers = [
    { type = "concat", inputs = ["previous", "condition"] },
    { type = "linear", out_features = 64 },
    { type = "reshape", shape = [1, 8, 8] },
  ] },
  { type = "sequence", name = "discriminator", layers = [
    { type = "flatten" },
    { type = "concat", inputs = ["previous", "condition"] },
    { type = "linear", out_features = 8 },
    { type = "silu" },
    { type = "linear" },
  ] },
]
optimizer = { type = "adam", learning_rate = 1e-3 }
train = { epochs = 3, batch_size = 64 }
checkpoint.every_steps = 1
"#;

/// The pictures of a run's epochs.
fn samples(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let at = folder.join(RUN).join("samples");
    let mut names: Vec<_> = fs::read_dir(&at)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read(path).unwrap())
    };
    names.iter().map(read).collect()
}

#[cfg(unix)]
#[test]
fn a_conditional_pair_survives_a_kill_with_the_pictures_of_its_epochs() {
    let straight = completed(DIGITS, &[]);
    let drawn = samples(straight.path());
    let names: Vec<&str> = drawn.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["epoch-1.png", "epoch-2.png", "epoch-3.png"]);
    // The weights of each epoch are others, and the noise is the same.
    assert!(drawn[0].1 != drawn[1].1 && drawn[1].1 != drawn[2].1);
    let image = image::load_from_memory(&drawn[0].1).unwrap();
    // Two rows of ten, with lines between them.
    assert_eq!((image.width(), image.height()), (10 * 9 - 1, 2 * 9 - 1));
    let killed = folder_with(DIGITS);
    for moment in [
        "training:4",
        "validating:2",
        "checkpointing:8",
        "evaluating",
    ] {
        let fault = format!("*@{moment}=kill");
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
        let (code, ..) = run(killed.path(), &arguments);
        assert_eq!(code, 1, "{moment}");
    }
    goes_on(killed.path());
    assert_eq!(numbers(straight.path()), numbers(killed.path()));
    assert_eq!(samples(straight.path()), samples(killed.path()));
    let evaluation = read_json(&killed.path().join(RUN).join("evaluation.json"));
    let of = |key: &str| evaluation[key].as_array().unwrap().clone();
    let epochs: Vec<_> = of("by_epoch")
        .iter()
        .map(|drawn| drawn["epoch"].clone())
        .collect();
    assert_eq!(epochs, [1, 2, 3]);
    assert_eq!((of("classes").len(), of("pictures").len()), (20, 20));
    let page = fs::read_to_string(killed.path().join("results/spec/report.html")).unwrap();
    assert!(page.contains("Generated items by epoch") && page.contains("for the class"));
    let said = done(killed.path(), &["reproduce", "results/spec"]);
    assert!(said.contains("bitwise"), "{said}");
    // A picture that was changed is detected.
    fs::write(
        straight.path().join(RUN).join("samples/epoch-2.png"),
        "other",
    )
    .unwrap();
    let (code, _, said) = run(
        straight.path(),
        &["bundle", RUN, "--out", "run.capsule.tar.zst"],
    );
    assert!(
        code == 2 && said.contains("epoch-2.png` is damaged"),
        "{said}"
    );
}

#[test]
fn a_conditional_generator_makes_the_class_that_is_asked() {
    let folder = completed(DIGITS, &[]);
    let at = folder.path();
    let lines = |arguments: &[&str]| {
        let file = ["generate", RUN, "--force", "--out", "items.csv"];
        done(at, &[&file, arguments].concat());
        let text = fs::read_to_string(at.join("items.csv")).unwrap();
        let lines = text
            .lines()
            .map(|line| line.splitn(3, ',').map(str::to_owned).collect());
        lines.collect::<Vec<Vec<String>>>()
    };
    let in_turn = lines(&["--num", "12"]);
    assert_eq!(in_turn[0][..2], ["item", "class"]);
    let classes: Vec<&str> = in_turn[1..].iter().map(|line| line[1].as_str()).collect();
    assert_eq!(
        classes,
        ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "1"]
    );
    // The same noise: only the class differs.
    let sevens = lines(&["--num", "12", "--class", "7"]);
    assert_eq!(sevens[8], in_turn[8]);
    assert!(sevens[1..].iter().all(|line| line[1] == "7") && sevens[1] != in_turn[1]);
    // With the seed of the run, the items of the report.
    let shown = lines(&["--num", "20", "--split", "valid", "--seed", "1"]);
    let evaluation = read_json(&at.join(RUN).join("evaluation.json"));
    let shown: Vec<Json> = shown[1..].iter().map(|line| json!(line[1])).collect();
    assert_eq!(evaluation["classes"], json!(shown));
    done(at, &["generate", RUN, "--num", "3", "--out", "images/"]);
    let table = fs::read_to_string(at.join("images/samples.csv")).unwrap();
    assert_eq!(table, "item,image,class\n1,1.png,0\n2,2.png,1\n3,3.png,2\n");
    let (code, _, said) = run(at, &["generate", RUN, "--out", "x.csv", "--class", "ten"]);
    assert!(code == 2 && said.contains("has no class `ten`"), "{said}");
    done(
        at,
        &[
            "generate",
            RUN,
            "--seed",
            "7",
            "--num",
            "300",
            "--out",
            "samples.npy",
        ],
    );
    done(at, &["export", "pytorch", RUN, "--out", "generator"]);
    done(at, &["export", "onnx", RUN, "--out", "generator.onnx"]);
    let Some(python) = python_with(&["torch", "safetensors", "numpy", "onnxruntime"]) else {
        return;
    };
    let draws = Draws::new(7, 4);
    let noise = (0..300).map(|place| draws.drawn(0, place).discriminator);
    let condition = (0..300).map(|at| (0..10).map(|class| (at % 10 == class) as i32).collect());
    let condition: Vec<Vec<i32>> = condition.collect();
    fs::write(
        at.join("noise.json"),
        json!(noise.collect::<Vec<_>>()).to_string(),
    )
    .unwrap();
    fs::write(at.join("condition.json"), json!(condition).to_string()).unwrap();
    let found: [f64; 2] = serde_json::from_str(&python.run("generator_check.py", &[at])).unwrap();
    assert!(
        found.iter().all(|difference| *difference < 1e-5),
        "{found:?}"
    );
}

/// Items for masks, as in pix2pix: both networks take a channel for each class of a pixel.
#[test]
fn a_pair_takes_masks_as_conditions() {
    let spec = r#"
data = { type = "shapes", target = "mask", size = 8, num_items = 60 }
strategy = { type = "adversarial", conditional = true }
model.layers = [
  { type = "noise", size = 2 },
  { type = "sequence", name = "generator", layers = [
    { type = "linear", name = "first", out_features = 64 },
    { type = "reshape", shape = [1, 8, 8] },
    { type = "concat", inputs = ["previous", "condition"] },
    { type = "conv2d", out_channels = 1, kernel_size = 3, padding = "same" },
  ] },
  { type = "sequence", name = "discriminator", layers = [
    { type = "concat", inputs = ["previous", "condition"] },
    { type = "conv2d", out_channels = 2, kernel_size = 3, name = "last" },
    { type = "flatten" },
    { type = "linear" },
  ] },
]
optimizer = { type = "adam", learning_rate = 1e-3 }
train = { epochs = 1, batch_size = 16 }
"#;
    let folder = completed(spec, &[]);
    let at = folder.path();
    let (code, _, said) = run(at, &["generate", RUN, "--out", "items.npy"]);
    assert!(code == 2 && said.contains("--split valid"), "{said}");
    let num = ["--num", "5"];
    let valid = ["generate", RUN, "--out", "items.npy", "--split", "valid"];
    done(at, &[&valid[..], &num].concat());
    let train = ["generate", RUN, "--out", "others.npy", "--split", "train"];
    done(at, &[&train[..], &num].concat());
    let of = |name: &str| fs::read(at.join(name)).unwrap();
    assert_ne!(of("items.npy"), of("others.npy"));
    done(at, &["export", "onnx", RUN, "--out", "generator.onnx"]);
}

/// A critic without randomness.
fn critic() -> String {
    let spec = PAIR.edit("    { type = \"dropout\", probability = 0.2 },\n", "");
    let spec = spec.edit("{ type = \"leaky_relu\" }", "{ type = \"silu\" }");
    spec.edit("type = \"hinge_gan\"", "type = \"wgan_gp\"")
}

#[test]
fn a_penalty_is_computed_whole_or_with_recomputed_layers() {
    let spec = critic() + "\n[sweep.grid]\ntrain.gradient_checkpointing = [false, true]\n";
    let folder = completed(&spec, &[]);
    let found = numbers(folder.path());
    assert_eq!(found.len(), 2);
    // Layers that are computed again have the same numbers.
    assert_eq!(found[0].3, found[1].3);
    let said = done(folder.path(), &["reproduce", "results/spec"]);
    assert!(said.contains("bitwise"), "{said}");
}

#[test]
fn what_predicts_or_compares_is_refused() {
    let folder = completed(PAIR, &[]);
    let at = folder.path();
    fs::write(
        at.join("rows.csv"),
        "sepal_length,sepal_width,petal_length,petal_width\n1,2,3,4\n",
    )
    .unwrap();
    let asked: [&[&str]; 8] = [
        &["predict", RUN, "--data", "rows.csv"],
        &["serve", RUN, "--predict"],
        &[
            "export",
            "onnx",
            RUN,
            "--with-transforms",
            "--out",
            "net.onnx",
        ],
        &["generate", RUN, "--prompt", "once"],
        &["generate", RUN, "--out", "images/"],
        &["generate", RUN, "--num", "3"],
        &["lr-find", "spec.toml"],
        &["init", "--data", "rows.csv", "--task", "generation"],
    ];
    let mut all = String::new();
    for arguments in asked {
        let (code, text, said) = run(at, arguments);
        assert_ne!(code, 0, "{arguments:?}: {text}");
        all += &format!("{arguments:?} {code}\n{said}\n");
    }
    insta::assert_snapshot!(super::support::redact(&all, at));
}

#[test]
fn a_generator_leaves_for_pytorch_and_onnx() {
    let folder = completed(PAIR, &[]);
    let at = folder.path();
    let samples = |num, out| {
        let made = ["generate", RUN, "--seed", "7", "--num", num, "--out", out];
        done(at, &made);
        fs::read(at.join(out)).unwrap()
    };
    let many = samples("300", "samples.npy");
    // The same items with any number of others.
    let few = String::from_utf8(samples("2", "few.csv")).unwrap();
    let more = String::from_utf8(samples("300", "more.csv")).unwrap();
    assert!(
        more.starts_with(&few) && more.lines().count() == 301,
        "{few}"
    );
    let (code, _, said) = run(at, &["generate", RUN, "--out", "few.csv"]);
    assert!(code == 2 && said.contains("--force"), "{said}");
    assert!(many.starts_with(b"\x93NUMPY"));
    done(at, &["export", "pytorch", RUN, "--out", "generator"]);
    done(at, &["export", "onnx", RUN, "--out", "generator.onnx"]);
    let Some(python) = python_with(&["torch", "safetensors", "numpy", "onnxruntime"]) else {
        return;
    };
    let draws = Draws::new(7, 3);
    let noise = (0..300).map(|place| draws.drawn(0, place).discriminator);
    fs::write(
        at.join("noise.json"),
        json!(noise.collect::<Vec<_>>()).to_string(),
    )
    .unwrap();
    let found: [f64; 2] = serde_json::from_str(&python.run("generator_check.py", &[at])).unwrap();
    assert!(
        found.iter().all(|difference| *difference < 1e-5),
        "{found:?}"
    );
}

#[test]
fn generated_images_are_files() {
    let spec = r#"
data = { type = "digits", split = { valid = 0.9 } }
strategy.type = "adversarial"
model.layers = [
  { type = "noise", size = 4 },
  { type = "sequence", name = "generator", layers = [
    { type = "linear", out_features = 64 },
    { type = "reshape", shape = [1, 8, 8] },
  ] },
  { type = "sequence", name = "discriminator", layers = [{ type = "flatten" }, { type = "linear" }] },
]
optimizer = { type = "adam", learning_rate = 1e-3 }
train = { epochs = 1, batch_size = 64 }
"#;
    let folder = completed(spec, &[]);
    let at = folder.path();
    done(at, &["generate", RUN, "--num", "3", "--out", "images/"]);
    let table = fs::read_to_string(at.join("images/samples.csv")).unwrap();
    assert_eq!(table, "item,image\n1,1.png\n2,2.png\n3,3.png\n");
    let image = image::open(at.join("images/3.png")).unwrap();
    assert_eq!((image.width(), image.height()), (8, 8));
    done(at, &["generate", RUN, "--num", "3", "--out", "items.jsonl"]);
    let lines = fs::read_to_string(at.join("items.jsonl")).unwrap();
    let item: Json = serde_json::from_str(lines.lines().nth(2).unwrap()).unwrap();
    let pixel = |at: usize| {
        let value = item["values"][at].as_f64().unwrap();
        (value * 255.0).round().clamp(0.0, 255.0) as u8
    };
    let expected: Vec<u8> = (0..64).map(pixel).collect();
    assert_eq!(image.into_luma8().into_raw(), expected);
}

/// What one network has of the other's would be a wrong gradient.
#[test]
fn networks_are_found_by_their_names() {
    let (found, _) = plan("spec.toml", PAIR).unwrap();
    let run = &found.runs[0];
    let pair = run
        .network
        .pair(run.strategy.adversarial().unwrap())
        .unwrap();
    assert_eq!(
        (
            pair.generator,
            pair.discriminator,
            pair.noise,
            pair.condition
        ),
        (1..5, 5..9, 3, None)
    );
    assert_eq!(run.objective.name(), "valid/sliced_wasserstein");
    let (larger, _) = plan("spec.toml", &critic()).unwrap();
    assert!(larger.runs[0].forecast.workspace > run.forecast.workspace);
}

/// Where one network ends and the other begins decides what each is trained for.
#[test]
fn the_border_of_a_pair_is_in_its_identity() {
    let of = |text: &str| plan("spec.toml", text).unwrap().0.runs[0].clone();
    let before = PAIR.edit(
        "  ] },\n  { type = \"sequence\", name = \"discriminator\", layers = [\n",
        "    { type = \"relu\", name = \"moved\" },\n  ] },\n  { type = \"sequence\", name = \"discriminator\", layers = [\n",
    );
    let after = PAIR.edit(
        "name = \"discriminator\", layers = [\n",
        "name = \"discriminator\", layers = [\n    { type = \"relu\", name = \"moved\" },\n",
    );
    let [before, after] = [of(&before), of(&after)];
    let kinds = |run: &RunPlan| run.network.work().to_string();
    assert_eq!(kinds(&before), kinds(&after));
    assert_ne!(before.fingerprint, after.fingerprint);
    // Names alone change nothing.
    let renamed = PAIR
        .edit(
            "type = \"adversarial\"",
            "type = \"adversarial\"\ngenerator = \"artist\"",
        )
        .edit("name = \"generator\"", "name = \"artist\"");
    assert_eq!(of(&renamed).fingerprint, of(PAIR).fingerprint);
}
