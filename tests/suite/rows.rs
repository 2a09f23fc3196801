//! Rows in order: windows, groups, gaps, and warnings about columns.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{IRIS, folder_with, npy, run};

const MODEL: &str = r#"
[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 1
batch_size = 2
"#;

/// A folder with a table `rows.csv` and a spec over it.
fn folder(rows: &str, data: &str, model: &str) -> tempfile::TempDir {
    let folder = folder_with(&format!("{data}\n[model]\n{model}\n{MODEL}"));
    fs::write(folder.path().join("rows.csv"), rows).unwrap();
    folder
}

/// Items of train and valid as planned, and as loaded: `data` refuses differences.
fn sizes(folder: &Path, sets: &[&str]) -> (u64, u64) {
    let (code, stdout, stderr) = run(folder, &[&["plan", "spec.toml", "--json"], sets].concat());
    assert_eq!(code, 0, "{stderr}");
    let plan: Json = serde_json::from_str(&stdout).unwrap();
    let data = &plan["runs"][0]["data"];
    let (code, _, stderr) = run(folder, &[&["data", "spec.toml"], sets].concat());
    assert_eq!(code, 0, "{stderr}");
    let num = |key: &str| data[key].as_u64().unwrap();
    (num("num_train"), num("num_valid"))
}

const WINDOWS: &str = r#"
[data]
type = "csv"
path = "rows.csv"
target = "v"
window = { length = 3 }

[data.split]
order_by = "t"
valid = 0.25
"#;

/// 40 hours of a counter; some values are missing or unreadable.
fn hours(odd: &[(usize, &str)]) -> String {
    let mut rows = String::from("t,v\n");
    for at in 0..40 {
        let value = odd.iter().find(|(place, _)| *place == at);
        let value = value.map_or(at.to_string(), |(_, value)| (*value).to_owned());
        rows += &format!("2024-01-{:02}T{:02}:00,{value}\n", 9 + at / 24, at % 24);
    }
    rows
}

#[test]
fn no_window_reaches_over_a_hole() {
    const LSTM: &str = "type = \"lstm\"\nhidden_size = 4";
    let whole = folder(&hours(&[]), WINDOWS, LSTM);
    assert_eq!(sizes(whole.path(), &[]), (27, 7));
    // A skipped row ends one piece and begins another: 10 + 19 rows, then 10.
    let gap = folder(&hours(&[(10, "")]), WINDOWS, LSTM);
    let drop = ["--set", "data.missing=drop"];
    assert_eq!(sizes(gap.path(), &drop), (7 + 16, 7));
    let bad = folder(&hours(&[(10, "1e300")]), WINDOWS, LSTM);
    let skip = ["--set", "data.on_bad_item=skip"];
    assert_eq!(sizes(bad.path(), &skip), (7 + 16, 7));
    // So does a file, even if its rows continue those of the other.
    let rows = hours(&[]);
    let (first, second) = rows.split_at(rows.match_indices('\n').nth(20).unwrap().0 + 1);
    fs::write(whole.path().join("a.csv"), first).unwrap();
    fs::write(whole.path().join("b.csv"), format!("t,v\n{second}")).unwrap();
    let two = ["--set", "data.path=[\"a.csv\", \"b.csv\"]"];
    assert_eq!(sizes(whole.path(), &two), (17 + 7, 7));
}

#[test]
fn an_order_holds_out_the_groups_that_end_last() {
    let mut rows = String::from("day,site,a,y\n");
    for at in 0..40 {
        let (month, site) = (1 + at / 10, ["d", "b", "c", "a"][at / 10]);
        rows += &format!(
            "2024-{month:02}-{:02},{site},{},{}\n",
            1 + at % 10,
            at % 7,
            at % 2
        );
    }
    let data = r#"
[data]
type = "csv"
path = "rows.csv"
target = "y"

[data.split]
group_by = "site"
order_by = "day"
valid = 0.25
"#;
    let folder = folder(&rows, data, "type = \"mlp\"\nhidden = [4]");
    let (code, stdout, stderr) = run(folder.path(), &["data", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let first = "split by `site`, in the order of `day`";
    assert!(stdout.contains(first), "{stdout}");
    // The last month is held out, so the first item of train is that of the first day.
    let digest = |table: &str| -> String {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with("valid"));
        line.unwrap().to_owned()
    };
    let backwards = rows.edit("2024-04", "2023-04");
    fs::write(folder.path().join("rows.csv"), backwards).unwrap();
    let (_, other, _) = run(folder.path(), &["data", "spec.toml"]);
    assert_ne!(digest(&stdout), digest(&other));
}

#[test]
fn a_mistyped_number_is_told_with_its_place() {
    let mut rows = String::from("a,y\n");
    for at in 0..60 {
        let a = if at == 10 {
            "3O".to_owned()
        } else {
            (at % 9).to_string()
        };
        rows += &format!("{a},{}\n", at % 2);
    }
    let data = "[data]\ntype = \"csv\"\npath = \"rows.csv\"\ntarget = \"y\"\n";
    let folder = folder(&rows, data, "type = \"mlp\"\nhidden = [4]");
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("warning: 59 of 60 values of `a` are numbers, but `"),
        "{stderr}"
    );
    assert!(stderr.contains("rows.csv:12` contains `3O`"), "{stderr}");
    assert!(
        stderr.contains("spec.toml: no errors; 1 trial, 1 run"),
        "{stderr}"
    );
    // The remedy can be applied as it is.
    let (_, rest) = stderr.split_once("`missing_values = ").unwrap();
    let (values, _) = rest.split_once(']').unwrap();
    let values = format!("data.missing_values={values}]");
    let sets = ["--set", values.as_str(), "--set", "data.missing=drop"];
    let (code, stdout, stderr) = run(folder.path(), &[&["data", "spec.toml"], &sets[..]].concat());
    assert_eq!(code, 0, "{stderr}");
    assert!(!stderr.contains("warning"), "{stderr}");
    assert!(
        stdout.contains("1 item is dropped because a value is missing"),
        "{stdout}"
    );
    let taken = "the 2 integers of the target `y` are read as classes";
    assert!(stdout.contains(taken), "{stdout}");
    let init = ["init", "--data", "rows.csv", "--out", "-"];
    let (code, stdout, stderr) = run(folder.path(), &init);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("59 of 60") && stdout.contains("59 of 60"),
        "{stderr}{stdout}"
    );
}

#[test]
fn what_is_missing_is_filled_with_what_was_clipped() {
    let mut rows = String::from("a,y\n");
    for at in 0..40 {
        let a = match at % 4 {
            0 => "1000".to_owned(),
            1 => String::new(),
            _ => "2".to_owned(),
        };
        rows += &format!("{a},{}\n", at % 2);
    }
    let data = r#"
[data]
type = "csv"
path = "rows.csv"
target = "y"
missing = "mean"

[[data.columns]]
name = "a"
clip = [0, 8]
"#;
    let folder = folder(&rows, data, "type = \"mlp\"\nhidden = [4]");
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let path = folder
        .path()
        .join("results/spec/runs/base-s1/transforms.json");
    let found: Json = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let fill = found["input"]["features"][0]["form"]["fill"][0]
        .as_f64()
        .unwrap();
    assert!((2.0..8.0).contains(&fill), "{fill}");
}

#[test]
fn a_class_that_is_never_learned_is_told() {
    let mut rows = String::from("a,y\n");
    for at in 0..40 {
        let y = if at == 39 { "rare" } else { ["x", "y"][at % 2] };
        rows += &format!("{at},{y}\n");
    }
    let data = "[data]\ntype = \"csv\"\npath = \"rows.csv\"\ntarget = \"y\"\n\n[data.split]\norder = \"time\"\n";
    let folder = folder(&rows, data, "type = \"mlp\"\nhidden = [4]");
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let said =
        "1 class occurs only in held-out items and never in the train split: `rare` (1 in valid)";
    assert!(stderr.contains(said), "{stderr}");
    // At random, its only item is in the train split.
    let random = ["check", "spec.toml", "--set", "data.split.order=random"];
    let (_, _, stderr) = run(folder.path(), &random);
    assert!(!stderr.contains("warning"), "{stderr}");
}

#[test]
fn items_of_too_many_dimensions_are_refused() {
    let data = "[data]\ntype = \"npy\"\npath = \"x.npy\"\ntarget_path = \"y.npy\"\n";
    let folder = folder("", data, "type = \"mlp\"\nhidden = [4]");
    let values: Vec<u8> = (0..20 * 32)
        .flat_map(|at| (at as f32).to_le_bytes())
        .collect();
    let classes: Vec<u8> = (0..20).flat_map(|at: i64| (at % 2).to_le_bytes()).collect();
    fs::write(folder.path().join("y.npy"), npy("<i8", "(20,)", &classes)).unwrap();
    for (shape, expected) in [("(20, 2, 2, 2, 2, 2)", 2), ("(20, 2, 2, 2, 4)", 0)] {
        fs::write(folder.path().join("x.npy"), npy("<f4", shape, &values)).unwrap();
        let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
        assert_eq!(code, expected, "{stderr}");
        assert_eq!(
            stderr.contains("at most 4 dimensions"),
            code == 2,
            "{stderr}"
        );
    }
}

#[test]
fn arrays_that_lack_numbers_can_be_used() {
    let data = "[data]\ntype = \"npy\"\npath = \"x.npy\"\ntarget_path = \"y.npy\"\n";
    let folder = folder("", data, "type = \"mlp\"\nhidden = [4]");
    let values = (0..80).map(|at: i32| if at == 35 { f32::NAN } else { at as f32 });
    let values: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    let x = npy("<f4", "(40, 2)", &values);
    let classes: Vec<u8> = (0..40).flat_map(|at: i64| (at % 2).to_le_bytes()).collect();
    let y = npy("<i8", "(40,)", &classes);
    fs::write(folder.path().join("x.npy"), x).unwrap();
    fs::write(folder.path().join("y.npy"), y).unwrap();
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("`input` 1, at item 17"), "{stderr}");
    let total = |sets: &[&str]| {
        let (train, valid) = sizes(folder.path(), sets);
        train + valid
    };
    assert_eq!(total(&["--set", "data.missing=mean"]), 40);
    assert_eq!(total(&["--set", "data.missing=drop"]), 39);
    assert_eq!(total(&["--set", "data.on_bad_item=skip"]), 39);
    let init = ["init", "--data", "x.npy", "--out", "first.toml"];
    let (code, _, stderr) = run(folder.path(), &init);
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["check", "first.toml"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn places_are_those_of_the_files_that_were_asked_for() {
    let rows = (0..40).map(|row| {
        format!(
            "{row},{},{}\n",
            row % 7,
            if row % 2 == 0 { "a" } else { "b" }
        )
    });
    let rows: Vec<String> = rows.collect();
    let table = format!("x,z,y\n{}3O,5,a\n", rows.concat());
    let said = ["one", "two"].map(|name| {
        let folder = folder_with(&IRIS.edit(
            "type = \"iris\"",
            &format!("type = \"csv\"\npath = \"{name}.csv\"\ntarget = \"y\""),
        ));
        std::fs::write(folder.path().join(format!("{name}.csv")), &table).unwrap();
        let (_, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
        let place = folder.path().join(format!("{name}.csv"));
        assert!(
            stderr.contains(&format!("{}:42", place.display())),
            "{stderr}"
        );
        stderr
            .replace(&*folder.path().to_string_lossy(), "")
            .replace(name, "")
    });
    // The second one is found in the cache, which identifies it by content.
    assert_eq!(said[0], said[1]);
}
