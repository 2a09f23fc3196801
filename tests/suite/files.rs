//! Data from files, through the program: what is read, refused, fitted, cached and served.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{folder_with, root, run, summary};

const MODEL: &str = r#"
[model]
type = "mlp"
hidden = [8]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 3
batch_size = 8
"#;

/// A folder with a spec over `data` and a table of a learnable rule: 60 rows of 3 groups in the order of days, with
/// some missing numbers.
fn folder(data: &str) -> tempfile::TempDir {
    let folder = folder_with(&format!("[data]\n{data}\n{MODEL}"));
    let mut rows = String::from("day,site,a,b,kind,y\n");
    for at in 0..60_i32 {
        let a = f64::from((at * 37) % 60) / 10.0;
        let b = match at % 7 {
            0 => String::new(),
            _ => format!("{}", 100 + at % 5),
        };
        let kind = if a > 3.0 { "high" } else { "low" };
        let (month, day) = (1 + at / 28, 1 + at % 28);
        rows += &format!(
            "2024-{month:02}-{day:02},{},{a},{b},{kind},{}\n",
            ["x", "y", "z"][at as usize % 3],
            2.0 * a + 1.0
        );
    }
    fs::write(folder.path().join("rows.csv"), rows).unwrap();
    folder
}

/// Runs the spec of a folder; the summary of its only run.
fn ran(folder: &Path) -> Json {
    let (code, _, stderr) = run(folder, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    summary(folder, "base-s1")
}

fn transforms(folder: &Path) -> Json {
    let text = fs::read(folder.join("results/spec/runs/base-s1/transforms.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn what_is_measured_is_measured_on_the_train_split_and_saved() {
    let folder = folder(
        "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"y\"\nignore = [\"day\", \"site\"]\nmissing = \"mean\"\nsplit = { order_by = \"day\", valid = 0.5 }",
    );
    ran(folder.path());
    let found = transforms(folder.path());
    let features = found["input"]["features"].as_array().unwrap();
    let names: Vec<_> = features
        .iter()
        .map(|f| f["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "kind"]);
    // The first 30 rows by day are the train split.
    let a = (0..30).map(|at| f64::from((at * 37) % 60) / 10.0);
    let mean = a.sum::<f64>() / 30.0;
    let shift = features[0]["form"]["scaling"][0]["shift"].as_f64().unwrap();
    assert!((shift - mean).abs() < 1e-12, "{shift} {mean}");
    let there: Vec<f64> = (0..30)
        .filter(|at| at % 7 != 0)
        .map(|at| f64::from(100 + at % 5))
        .collect();
    let mean = there.iter().sum::<f64>() / there.len() as f64;
    let fill = features[1]["form"]["fill"][0].as_f64().unwrap();
    assert!((fill - mean).abs() < 1e-12, "{fill} {mean}");
}

#[test]
fn the_look_at_data_shows_columns_splits_and_items() {
    let folder = folder(
        "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"kind\"\nignore = \"day\"\nmissing = \"drop\"\nsplit = { group_by = \"site\", valid = 0.3 }",
    );
    let (code, stdout, stderr) = run(folder.path(), &["data", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let place = fs::canonicalize(folder.path()).unwrap();
    insta::assert_snapshot!(stdout.replace(&place.display().to_string(), "[FOLDER]"));
}

#[test]
fn windows_of_rows_predict_the_next_one() {
    let folder = folder(
        "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"a\"\nfeatures = [\"a\", \"y\"]\nwindow = { length = 4, horizon = 2 }\nsplit = { order_by = \"day\", valid = 0.25 }",
    );
    let (code, stdout, stderr) = run(folder.path(), &["plan", "spec.toml", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let plan: Json = serde_json::from_str(&stdout).unwrap();
    let data = &plan["runs"][0]["data"];
    assert_eq!(data["input"]["shape"], serde_json::json!([4, 2]));
    // 45 and 15 rows hold 40 and 10 windows of 4 rows and 2 more.
    let sizes = (&data["num_train"], &data["num_valid"]);
    assert_eq!(sizes, (&40.into(), &10.into()));
}

#[test]
fn folds_hold_out_every_item_once() {
    let folder = folder(
        "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"kind\"\nignore = \"day\"\nmissing = \"zero\"\nsplit = { folds = 4 }",
    );
    let spec = folder.path().join("spec.toml");
    let text = fs::read_to_string(&spec).unwrap();
    fs::write(
        &spec,
        format!("{text}\n[sweep.grid]\n\"data.split.fold\" = [0, 1, 2, 3]\n"),
    )
    .unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let mut digests = std::collections::BTreeSet::new();
    for fold in 0..4 {
        let path = format!("results/spec/runs/fold={fold}-s1/environment.json");
        let text = fs::read(folder.path().join(path)).unwrap();
        let environment: Json = serde_json::from_slice(&text).unwrap();
        digests.insert(environment["worker"]["data_digests"]["valid"].to_string());
    }
    assert_eq!(digests.len(), 4);
}

#[test]
fn files_elsewhere_are_the_same_work_and_changed_ones_are_not() {
    let data = "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"y\"\nignore = [\"day\", \"site\"]\nmissing = \"mean\"";
    let fingerprint = |folder: &Path| {
        let (code, stdout, stderr) = run(folder, &["plan", "spec.toml", "--json"]);
        assert_eq!(code, 0, "{stderr}");
        let plan: Json = serde_json::from_str(&stdout).unwrap();
        plan["runs"][0]["fingerprint"].as_str().unwrap().to_owned()
    };
    let (here, there) = (folder(data), folder(data));
    assert_eq!(fingerprint(here.path()), fingerprint(there.path()));
    let rows = there.path().join("rows.csv");
    let text = fs::read_to_string(&rows).unwrap();
    fs::write(&rows, text.edit("high", "tall")).unwrap();
    assert_ne!(fingerprint(here.path()), fingerprint(there.path()));
}

#[test]
fn items_that_cannot_be_decoded_are_left_out_when_the_file_says_so() {
    let data = "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"y\"\nignore = [\"day\", \"site\"]\nmissing = \"mean\"";
    let folder = folder(data);
    let rows = folder.path().join("rows.csv");
    let text = fs::read_to_string(&rows).unwrap();
    fs::write(&rows, format!("{text}only,two\n")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("rows.csv:62") && stderr.contains("on_bad_item"),
        "{stderr}"
    );
    let skip = ["data", "spec.toml", "--set", "data.on_bad_item=skip"];
    let (code, stdout, stderr) = run(folder.path(), &skip);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("1 item was skipped"), "{stdout}");
    let (code, _, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--set", "data.on_bad_item=skip"],
    );
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("note: 1 item could not be decoded"),
        "{stderr}"
    );
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(report.contains("1 item could not be decoded"), "{report}");
}

#[test]
fn a_first_file_is_accepted_and_runs() {
    for data in ["iris.csv", "iris_x.npy", "houses.csv", "harbour.txt"] {
        let folder = tempfile::tempdir().unwrap();
        let place = root().join("experiments/data").join(data);
        let arguments = [
            "init",
            "--data",
            place.to_str().unwrap(),
            "--out",
            "first.toml",
        ];
        let (code, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{data}: {stderr}");
        let (code, _, stderr) = run(folder.path(), &["check", "first.toml"]);
        assert_eq!(code, 0, "{data}: {stderr}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Words of valid files removed, doubled, and moved: refused or planned, and never worse.
    #[test]
    fn edited_files_are_refused_or_planned(
        which in 0usize..6,
        edits in prop::collection::vec((0usize..400, 0usize..400, 0usize..3), 1..4),
    ) {
        const NAMES: [&str; 6] =
            ["iris_csv", "houses", "waves_kfold", "random_search", "residual_cnn", "transformer_classifier"];
        let folder = root().join("experiments");
        let text = fs::read_to_string(folder.join(NAMES[which]).with_extension("toml")).unwrap();
        let mut words: Vec<&str> = text.split_inclusive([' ', '\n', '.', ',']).collect();
        for (from, to, what) in edits {
            let (from, to) = (from % words.len(), to % words.len());
            match what {
                0 => { words.remove(from); }
                1 => words.insert(to, words[from]),
                _ => words.swap(from, to),
            }
        }
        // Only a panic or a hang is a failure; messages are never empty.
        if let Err(message) = super::support::plan_in(Some(&folder), "edited.toml", &words.concat()) {
            prop_assert!(message.contains("error: "), "{message}");
        }
    }
}
