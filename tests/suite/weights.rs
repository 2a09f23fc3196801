//! Weights of items in the loss: as in scikit-learn, and nowhere else.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::edit::Edit;
use super::sharing::losses;
use super::support::{folder_with, goes_on, numbers, run, summary};

/// A linear model of all items at a time, validated on the same items.
const LINEAR: &str = r#"
data = { type = "csv", path = "train.csv", valid_path = "valid.csv", target = "TARGET", ignore = ["OTHER"], weight = "w", scale = "none", split.test = 0 }
model.layers = [{ type = "linear", initializer = { type = "zeros" } }]
optimizer = { type = "sgd", learning_rate = RATE }
train = { epochs = 400, batch_size = 40 }
checkpoint.every_epochs = 100
backend.precision = "f64"
"#;

fn golden() -> Json {
    serde_json::from_str(include_str!("../golden/weights.json")).unwrap()
}

/// Writes the items of the golden file.
fn write(folder: &Path, golden: &Json) {
    let row = |(at, x): (usize, &Json)| {
        let [weight, y, kind] = ["weights", "y", "kind"].map(|key| &golden[key][at]);
        format!("{},{},{},{weight},{y},k{kind}\n", x[0], x[1], x[2])
    };
    let all = golden["x"].as_array().unwrap().iter().enumerate();
    let mut rows: Vec<String> = all.map(row).collect();
    // Files with the same content are refused.
    for name in ["train.csv", "valid.csv"] {
        let text = format!("a,b,c,w,y,kind\n{}", rows.concat());
        fs::write(folder.join(name), text).unwrap();
        rows.reverse();
    }
}

#[test]
fn weighted_losses_are_those_of_scikit_learn() {
    let golden = golden();
    let cases = [
        ("regression", "y", "kind", "0.1", "mae"),
        ("classification", "kind", "y", "2.0", "accuracy"),
    ];
    for (name, target, other, rate, metric) in cases {
        let spec = LINEAR.edit("TARGET", target).edit("OTHER", other);
        let folder = folder_with(&spec.edit("RATE", rate));
        write(folder.path(), &golden);
        let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{said}");
        let wanted = |key: &str| golden[name][key].as_f64().unwrap();
        let is_near = |found: f64, key: &str| {
            let error = (found - wanted(key)).abs() / wanted(key);
            assert!(error < 1e-6, "{name}, {key}: {found}, {}", wanted(key));
        };
        // The training minimizes the weighted loss, and other measurements count each item once.
        is_near(
            *losses(&folder.path().join("results/spec")).last().unwrap(),
            "weighted",
        );
        let metrics = &summary(folder.path(), "base-s1")["metrics"];
        let found = |name: &str| metrics[format!("last/{name}")].as_f64().unwrap();
        is_near(found("train/loss"), "weighted");
        is_near(found("valid/loss"), "plain");
        is_near(found(&format!("train/{metric}")), "metric");
        is_near(found(&format!("valid/{metric}")), "metric");
    }
}

/// The same numbers after a resume, and in pieces of any size.
#[test]
fn weighted_items_resume_exactly_and_need_no_weights_later() {
    let spec = LINEAR
        .edit("TARGET", "kind")
        .edit("OTHER", "y")
        .edit("RATE", "0.5")
        .edit(
            "epochs = 400, batch_size = 40",
            "epochs = 6, batch_size = 16, micro_batch_size = 5",
        )
        .edit(
            "checkpoint.every_epochs = 100",
            "checkpoint.every_steps = 2",
        );
    let with_rows = |spec: &str| {
        let folder = folder_with(spec);
        write(folder.path(), &golden());
        folder
    };
    let (straight, stopped) = (with_rows(&spec), with_rows(&spec));
    goes_on(straight.path());
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@9"];
    run(stopped.path(), &arguments);
    goes_on(stopped.path());
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));
    let plain = with_rows(&spec.edit("weight = \"w\"", "features = [\"a\", \"b\", \"c\"]"));
    goes_on(plain.path());
    assert_ne!(numbers(straight.path()), numbers(plain.path()));

    fs::write(straight.path().join("new.csv"), "a,b,c\n0.5,-1,2\n").unwrap();
    let trained = "results/spec/runs/base-s1";
    let (code, _, said) = run(straight.path(), &["predict", trained, "--data", "new.csv"]);
    assert_eq!(code, 0, "{said}");
    fs::write(
        straight.path().join("known.csv"),
        "a,b,c,kind\n0.5,-1,2,k1\n1,1,0,k0\n",
    )
    .unwrap();
    let (code, _, said) = run(
        straight.path(),
        &["evaluate", trained, "--data", "known.csv"],
    );
    assert_eq!(code, 0, "{said}");
}

/// With named inputs and several losses, one of them a penalty: an item of weight 2 is an item that the file has twice.
#[test]
fn weights_repeat_items_in_each_loss() {
    let golden = golden();
    let spec = LINEAR
        .edit("TARGET", "kind")
        .edit("OTHER\"]", "id\"], inputs = [{ name = \"first\", columns = [\"a\", \"b\"] }, { name = \"second\", columns = [\"c\"] }]")
        .edit("RATE", "0.1")
        .edit(
            "model.layers = [{ type = \"linear\", initializer = { type = \"zeros\" } }]",
            r#"
losses = [
    { type = "huber", output = "value", target = "y", weight = 0.5 },
    { type = "kl_normal", output = "code", weight = 0.1 },
]
model.layers = [
    { type = "linear", name = "half", inputs = ["first"], out_features = 2 },
    { type = "concat", inputs = ["half", "second"], axis = 0 },
    { type = "linear", name = "code", out_features = 4 },
    { type = "linear", name = "value", inputs = ["code"], out_features = 1 },
    { type = "linear", inputs = ["code"] },
]"#,
        )
        .edit("epochs = 400", "epochs = 20");
    let trained = |spec: &str, weight: &str, times: usize| {
        // A third of the 40 items is there several times.
        let size = format!("batch_size = {}", 26 + 14 * times);
        let folder = folder_with(&spec.edit("batch_size = 40", &size));
        let row = |(at, x): (usize, &Json)| {
            let [y, kind] = ["y", "kind"].map(|key| &golden[key][at]);
            let row = |copy: usize| {
                let copies = if at % 3 == 0 { weight } else { "1" };
                format!(
                    "{at}-{copy},{},{},{},{copies},{y},k{kind}\n",
                    x[0], x[1], x[2]
                )
            };
            let num = if at % 3 == 0 { times } else { 1 };
            (0..num).map(row).collect::<String>()
        };
        let all = golden["x"].as_array().unwrap().iter().enumerate();
        let mut rows: Vec<String> = all.map(row).collect();
        for name in ["train.csv", "valid.csv"] {
            let text = format!("id,a,b,c,w,y,kind\n{}", rows.concat());
            fs::write(folder.path().join(name), text).unwrap();
            rows.reverse();
        }
        let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{said}");
        losses(&folder.path().join("results/spec"))
    };
    let weighted = trained(&spec, "2", 1);
    let repeated = trained(&spec, "1", 2);
    for (weighted, repeated) in weighted.iter().zip(&repeated) {
        let error = (weighted - repeated).abs() / repeated;
        assert!(error < 1e-9, "{weighted}, {repeated}");
    }
    assert_eq!(weighted.len(), 20);
    // Equal weights change no bit.
    let plain = spec.edit("weight = \"w\", ", "");
    let plain = trained(&plain.edit("[\"id\"]", "[\"id\", \"w\"]"), "1", 2);
    assert_eq!(repeated, plain);
}
