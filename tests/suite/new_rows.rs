//! New rows, in any kind of file, mean what they meant in the files that a run was trained on: what is missing, filled in
//! or a date.

use std::fs;

use serde_json::Value as Json;

use super::edit::Edit;
use super::predict::{MLP, spec};
use super::support::{folder_with, npy, npy_of, run};

/// A value may be missing in a column that was complete in training.
#[test]
fn missing_values_are_filled_with_the_statistic_of_the_train_split() {
    for (missing, expected) in [("mean", 4.5), ("median", 3.5), ("most_common", 2.0)] {
        let text = spec(
            &format!(
                "type = \"csv\"\npath = \"t.csv\"\ntarget = \"y\"\nmissing = \"{missing}\"\nvalid_path = \"v.csv\""
            ),
            MLP,
        );
        let folder = folder_with(&text);
        let rows = ["2,0.5", "2,0.7", "5,0.1", "9,0.2"].repeat(4);
        let rows = format!("x,y\n{}\n", rows.join("\n"));
        fs::write(folder.path().join("t.csv"), rows).unwrap();
        let valid = "x,y\n100,0.3\n100,0.4\n";
        fs::write(folder.path().join("v.csv"), valid).unwrap();
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        let new = format!("x\n\"\"\n{expected}\n0\n");
        fs::write(folder.path().join("new.csv"), new).unwrap();
        let predict = ["predict", "results/spec/runs/base-s1", "--data", "new.csv"];
        let (code, stdout, stderr) = run(folder.path(), &predict);
        assert_eq!(code, 0, "{stderr}");
        let cells = stdout
            .lines()
            .skip(1)
            .filter_map(|line| line.split(',').nth(1));
        let cells: Vec<&str> = cells.collect();
        assert_eq!(cells.len(), 3, "{stdout}");
        assert!(
            cells[0] == cells[1] && cells[0] != cells[2],
            "{missing}: {stdout}"
        );
    }
}

/// What means missing in the run's files means it in files of another type.
#[test]
fn marks_of_missing_values_hold_for_other_types_of_files() {
    let data = "type = \"csv\"\npath = \"t.csv\"\ntarget = \"y\"\nmissing = \"mean\"\nmissing_values = [\"\", \"-999\", \"none\"]";
    let folder = folder_with(&spec(data, MLP));
    let rows = ["2,red,0.5", "-999,none,0.7", "5,blue,0.1", "9,red,0.2"].repeat(6);
    let rows = format!("x,colour,y\n{}\n", rows.join("\n"));
    fs::write(folder.path().join("t.csv"), rows).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let tables = [
        (
            "new.csv",
            "x,colour\n-999,none\n,none\n,red\n-999.0,red\n5,blue\n",
        ),
        (
            "new.jsonl",
            "{\"x\": -999, \"colour\": \"none\"}\n{\"x\": null, \"colour\": null}\n{\"x\": null, \"colour\": \"red\"}\n{\"x\": -999.0, \"colour\": \"red\"}\n{\"x\": 5, \"colour\": \"blue\"}\n",
        ),
    ];
    let predictions = tables.map(|(name, rows)| {
        fs::write(folder.path().join(name), rows).unwrap();
        let predict = ["predict", "results/spec/runs/base-s1", "--data", name];
        let (code, stdout, stderr) = run(folder.path(), &predict);
        assert_eq!(code, 0, "{stderr}");
        let cells = stdout.lines().skip(1);
        let cells = cells.filter_map(|line| line.split(',').nth(1).map(str::to_owned));
        cells.collect::<Vec<_>>()
    });
    let [csv, json] = &predictions;
    assert_eq!(csv, json);
    // Missing numbers are the mean, and missing colours the most common one, which is red.
    assert!(
        csv[..4].iter().all(|value| *value == csv[0]) && csv[4] != csv[0],
        "{csv:?}"
    );
}

/// Codes of arrays mean missing in new arrays too, of the run's files or not.
#[test]
fn marks_of_missing_values_hold_for_arrays() {
    let data = "type = \"npy\"\npath = \"x.npy\"\ntarget_path = \"y.npy\"\nmissing = \"zero\"\nmissing_values = [-99.9]";
    let folder = folder_with(&spec(data, MLP));
    let items = |code: f32| -> Vec<[f32; 3]> {
        let of = |at: usize, axis: usize| ((at * 7 + axis * 3) % 11) as f32;
        let item = |at: usize| {
            [
                of(at, 0),
                if at.is_multiple_of(3) {
                    code
                } else {
                    of(at, 1)
                },
                of(at, 2),
            ]
        };
        (0..30).map(item).collect()
    };
    let write = |name: &str, bytes: Vec<u8>| fs::write(folder.path().join(name), bytes).unwrap();
    write("x.npy", npy_of(&items(-99.9)));
    let classes = (0..30i32).flat_map(|at| (at % 2).to_le_bytes());
    write("y.npy", npy("<i4", "(30,)", &classes.collect::<Vec<u8>>()));
    write("nan.npy", npy_of(&items(f32::NAN)));
    write("other.npy", npy_of(&items(-99.0)));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let predicted = |name: &str| {
        let (code, stdout, stderr) =
            run(folder.path(), &["predict", "results/spec", "--data", name]);
        assert_eq!(code, 0, "{stderr}");
        stdout
    };
    assert_eq!(predicted("x.npy"), predicted("nan.npy"));
    assert_ne!(predicted("x.npy"), predicted("other.npy"));
}

/// Codes in lists of numbers mean missing, in the training and in new rows.
#[test]
fn marks_of_missing_values_hold_in_lists() {
    let data = "type = \"json_lines\"\npath = \"t.jsonl\"\ntarget = \"y\"\nmissing = \"zero\"\nmissing_values = [-999, 0.1]";
    let row = |at: usize, code: &str| {
        let code = if at.is_multiple_of(3) { code } else { "2.5" };
        format!("{{\"x\": [{}, {code}, 0.5], \"y\": {}}}\n", at % 7, at % 2)
    };
    let rows = |code: &str| (0..30).map(|at| row(at, code)).collect::<String>();
    let made = ["-999", "null", "0.10000000149011612", "-998"].map(|code| {
        let folder = folder_with(&spec(data, MLP));
        fs::write(folder.path().join("t.jsonl"), rows(code)).unwrap();
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        fs::write(folder.path().join("new.jsonl"), rows("-999")).unwrap();
        let predict = ["predict", "results/spec", "--data", "new.jsonl"];
        let (code, stdout, stderr) = run(folder.path(), &predict);
        assert_eq!(code, 0, "{stderr}");
        stdout
    });
    assert_eq!(made[0], made[1]);
    assert_eq!(made[0], made[2]);
    assert_ne!(made[0], made[3]);
}

/// A file of safetensors: name, type, shape and bytes of each array.
fn tensors(all: &[(&str, &str, &str, Vec<u8>)]) -> Vec<u8> {
    let mut at = 0;
    let heads = all.iter().map(|(name, kind, shape, bytes)| {
        let start = at;
        at += bytes.len();
        format!(
            "\"{name}\":{{\"dtype\":\"{kind}\",\"shape\":{shape},\"data_offsets\":[{start},{at}]}}"
        )
    });
    let head = format!("{{{}}}", heads.collect::<Vec<_>>().join(","));
    let mut file = (head.len() as u64).to_le_bytes().to_vec();
    file.extend(head.as_bytes());
    all.iter().for_each(|(.., bytes)| file.extend(bytes));
    file
}

/// Trains on files, and predicts from new ones: what was printed for each, or the error.
fn predicted(data: &str, model: &str, files: &[(&str, Vec<u8>)], new: &[&str]) -> Vec<String> {
    let folder = folder_with(&spec(data, model));
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let predicted = |name: &&str| {
        let (code, stdout, stderr) =
            run(folder.path(), &["predict", "results/spec", "--data", name]);
        if code == 0 { stdout } else { stderr }
    };
    new.iter().map(predicted).collect()
}

/// Bytes have no value that means missing: a black image is none.
#[test]
fn rows_without_bytes_are_refused() {
    let bytes: Vec<u8> = (0..30 * 8).map(|at| (at * 37 % 251) as u8).collect();
    let classes = (0..30i32).flat_map(|at| (at % 2).to_le_bytes()).collect();
    let all = tensors(&[("x", "U8", "[30,8]", bytes), ("y", "I32", "[30]", classes)]);
    let found = predicted(
        "type = \"safetensors\"\npath = \"a.safetensors\"\ntarget = \"y\"",
        MLP,
        &[
            ("a.safetensors", all),
            (
                "null.jsonl",
                b"{\"x\": [1, 2, 3, 4, 5, 6, 7, 8]}\n{\"x\": null}\n".to_vec(),
            ),
            (
                "other.jsonl",
                b"{\"x\": [1, 2, 3, 4, 5, 6, 7, 8]}\n{\"z\": 1}\n".to_vec(),
            ),
            (
                "right.jsonl",
                b"{\"x\": [1, 2, 3, 4, 5, 6, 7, 8]}\n".to_vec(),
            ),
        ],
        &["null.jsonl", "other.jsonl", "right.jsonl"],
    );
    for refused in &found[..2] {
        assert!(
            refused.contains("jsonl:2`: column `x`: there is no value"),
            "{refused}"
        );
    }
    assert_eq!(found[2].lines().count(), 2, "{}", found[2]);
}

/// Arrays with one number for each item are columns of single values.
#[test]
fn single_values_of_arrays_come_from_tables_too() {
    let of = |axis: usize| -> Vec<u8> {
        let values = (0..30).map(|at| ((at * 7 + axis * 3) % 11) as f32);
        values.flat_map(f32::to_le_bytes).collect()
    };
    let classes = (0..30i32).flat_map(|at| (at % 2).to_le_bytes()).collect();
    let all = tensors(&[
        ("a", "F32", "[30]", of(0)),
        ("b", "F32", "[30]", of(1)),
        ("y", "I32", "[30]", classes),
    ]);
    let found = predicted(
        "type = \"safetensors\"\npath = \"a.safetensors\"\ntarget = \"y\"",
        MLP,
        &[
            ("a.safetensors", all),
            ("new.csv", b"a,b\n0,3\n7,10\n".to_vec()),
            (
                "new.jsonl",
                b"{\"a\": 0, \"b\": 3}\n{\"a\": 7, \"b\": 10}\n".to_vec(),
            ),
        ],
        &["new.csv", "new.jsonl"],
    );
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].lines().count(), 3, "{}", found[0]);
}

/// What a run fills in is filled in in new rows: the end of shorter lists, and tokens.
#[test]
fn what_was_filled_in_the_training_is_in_new_rows() {
    let list = |at: usize| match at % 3 {
        0 => format!("[{}, 2]", at % 7),
        1 => format!("[{}, 2, null]", at % 7),
        _ => format!("[{}, 2, {}]", at % 7, at % 5),
    };
    let token = |at: usize| match at % 3 {
        0 => format!("[{}, null]", at % 5),
        _ => format!("[{}, {}]", at % 5, at % 4),
    };
    let rows = |of: &dyn Fn(usize) -> String, extra: &str| -> Vec<u8> {
        let row = |at: usize| format!("{{\"x\": {}{extra}, \"y\": {}}}\n", of(at), at % 2);
        (0..30).map(row).collect::<String>().into_bytes()
    };
    let filled = "type = \"json_lines\"\npath = \"t.jsonl\"\ntarget = \"y\"\nmissing = ";
    let found = predicted(
        &format!("{filled}\"mean\""),
        MLP,
        &[
            ("t.jsonl", rows(&list, ", \"z\": 1.5")),
            ("short.jsonl", b"{\"x\": [3, 2], \"z\": 1.5}\n".to_vec()),
            (
                "null.jsonl",
                b"{\"x\": [3, 2, null], \"z\": 1.5}\n".to_vec(),
            ),
        ],
        &["short.jsonl", "null.jsonl"],
    );
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].lines().count(), 2, "{}", found[0]);
    let found = predicted(
        &format!("{filled}\"zero\"\ncolumns = [{{ name = \"x\", type = \"category\" }}]"),
        "layers = [{ type = \"embedding\", embedding_dim = 4 }, { type = \"flatten\" }, { type = \"linear\" }]",
        &[
            ("t.jsonl", rows(&token, "")),
            ("null.jsonl", b"{\"x\": [3, null]}\n".to_vec()),
            ("zero.jsonl", b"{\"x\": [3, 0]}\n".to_vec()),
        ],
        &["null.jsonl", "zero.jsonl"],
    );
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0].lines().count(), 2, "{}", found[0]);
}

/// Positions after the end of a shorter list have no class, in the training and in new rows.
#[test]
fn shorter_lists_of_classes_are_evaluated() {
    let row = |at: usize| {
        let (a, b) = (at % 5, at % 3);
        match at % 4 {
            0 => format!("{{\"x\": [{a}, {b}], \"y\": [0, 1]}}\n"),
            _ => format!(
                "{{\"x\": [{a}, {b}, 1, 4], \"y\": [1, 0, {}, 0]}}\n",
                at % 2
            ),
        }
    };
    let columns =
        "columns = [{ name = \"x\", type = \"category\" }, { name = \"y\", type = \"category\" }]";
    let folder = folder_with(&spec(
        &format!("type = \"json_lines\"\npath = \"t.jsonl\"\ntarget = \"y\"\n{columns}"),
        "layers = [{ type = \"embedding\", embedding_dim = 4 }, { type = \"linear\" }]",
    ));
    let rows: String = (0..40).map(row).collect();
    fs::write(folder.path().join("t.jsonl"), &rows).unwrap();
    let padded = rows.edit("[0, 1]}", "[0, 1, -1, -1]}");
    fs::write(folder.path().join("padded.jsonl"), padded).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let found = ["t.jsonl", "padded.jsonl"].map(|name| {
        let evaluate = ["evaluate", "results/spec", "--data", name, "--json"];
        let (code, stdout, stderr) = run(folder.path(), &evaluate);
        assert_eq!(code, 0, "{stderr}");
        let found: Json = serde_json::from_str(&stdout).unwrap();
        found["metrics"].clone()
    });
    assert_eq!(found[0], found[1]);
}

/// Dates that are numbers in JSON are dates.
#[test]
fn numbers_are_dates_where_a_format_says_so() {
    let day = |at: usize| format!("202401{:02}", 1 + at % 28);
    let row = |at: usize| format!("{{\"d\": {}, \"y\": {}}}\n", day(at), at % 2);
    let found = predicted(
        "type = \"json_lines\"\npath = \"t.jsonl\"\ntarget = \"y\"\ncolumns = [{ name = \"d\", date_format = \"%Y%m%d\", type = \"category\" }]",
        MLP,
        &[
            (
                "t.jsonl",
                (0..112).map(row).collect::<String>().into_bytes(),
            ),
            ("number.jsonl", b"{\"d\": 20240103}\n".to_vec()),
            ("text.jsonl", b"{\"d\": \"20240103\"}\n".to_vec()),
            ("new.csv", b"d\n20240103\n".to_vec()),
            ("wrong.jsonl", b"{\"d\": 20241303}\n".to_vec()),
        ],
        &["number.jsonl", "text.jsonl", "new.csv", "wrong.jsonl"],
    );
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
    assert_eq!(found[0].lines().count(), 2, "{}", found[0]);
    assert!(found[3].contains("20241303"), "{}", found[3]);
}

/// The other way round: a run from JSON lines, whose word `NA` is a category.
#[test]
fn categories_are_not_missing_in_files_of_another_type() {
    let data = "type = \"json_lines\"\npath = \"t.jsonl\"\ntarget = \"y\"\nmissing = \"mean\"\nmissing_values = [-999]";
    let folder = folder_with(&spec(data, MLP));
    let rows = [
        "{\"x\": 2, \"of\": \"NA\", \"y\": 0.5}",
        "{\"x\": -999, \"of\": \"EU\", \"y\": 0.7}",
        "{\"x\": 5, \"of\": \"EU\", \"y\": 0.1}",
        "{\"x\": 9, \"of\": null, \"y\": 0.2}",
    ];
    fs::write(folder.path().join("t.jsonl"), rows.repeat(6).join("\n")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let tables = [
        ("new.csv", "x,of\n-999,NA\n2,NA\n2,\n"),
        (
            "new.jsonl",
            "{\"x\": -999, \"of\": \"NA\"}\n{\"x\": 2, \"of\": \"NA\"}\n{\"x\": 2, \"of\": null}\n",
        ),
    ];
    let [csv, json] = tables.map(|(name, rows)| {
        fs::write(folder.path().join(name), rows).unwrap();
        let predict = ["predict", "results/spec/runs/base-s1", "--data", name];
        let (code, stdout, stderr) = run(folder.path(), &predict);
        assert_eq!(code, 0, "{stderr}");
        let cells = stdout.lines().skip(1);
        let cells = cells.filter_map(|line| line.split(',').nth(1).map(str::to_owned));
        cells.collect::<Vec<_>>()
    });
    assert_eq!(csv, json);
    assert!(csv[0] != csv[1] && csv[1] != csv[2], "{csv:?}");
}

/// A file of the run has units below its header and a total at its end; a new one may have neither.
#[test]
fn rows_around_a_table_are_left_out_if_they_are_no_items() {
    let data = "type = \"csv\"\npath = \"t.csv\"\ntarget = \"y\"\nskip_rows_after_header = 1\nskip_footer = 2";
    let rows = ["2,0.5", "3,0.7", "5,0.1", "9,0.2"].repeat(6).join("\n");
    let files = [
        (
            "t.csv",
            format!("x,y\nm,kg\n{rows}\nTotal,7\nfrom the archive\n"),
        ),
        ("plain.csv", "x\n2\n5\n9\n".to_owned()),
        (
            "like.csv",
            "x,y\nm,kg\n2,\n5,\n9,\nTotal,\nfrom the archive\n".to_owned(),
        ),
        ("total.csv", "x,y\n2,1\n5,1\n9,1\nTotal,3\n".to_owned()),
        ("short.csv", "x\n2\n".to_owned()),
        ("wrong.csv", "x\n2\nfive\n9\n3\n4\n".to_owned()),
    ];
    let files = files.map(|(name, text)| (name, text.into_bytes()));
    let new = [
        "plain.csv",
        "like.csv",
        "total.csv",
        "short.csv",
        "wrong.csv",
    ];
    let found = predicted(data, MLP, &files, &new);
    assert_eq!(found[0].lines().count(), 4, "{}", found[0]);
    assert_eq!(found[1], found[0]);
    assert_eq!(found[2], found[0]);
    let first: Vec<&str> = found[0].lines().take(2).collect();
    assert_eq!(found[3].lines().collect::<Vec<_>>(), first);
    assert!(found[4].contains("`wrong.csv:3`"), "{}", found[4]);
}

/// Programs write whole numbers beside missing ones with decimals, and truth in their own way.
#[test]
fn categories_are_found_as_other_programs_write_them() {
    let data = "type = \"csv\"\npath = \"t.csv\"\ntarget = \"y\"\n[[data.columns]]\nname = \"code\"\ntype = \"category\"";
    let rows = ["True,1,0.5", "False,2,0.7", "True,10,0.1", "False,01,0.2"];
    let table = format!("is,code,y\n{}\n", rows.repeat(6).join("\n"));
    let files = [
        ("t.csv", table),
        ("same.csv", "is,code\nTrue,1\nFalse,2\nTrue,01\n".to_owned()),
        ("other.csv", "is,code\nTRUE,1.0\nfalse,2.00\ntrue,01.0\n".to_owned()),
        (
            "other.jsonl",
            "{\"is\": true, \"code\": 1}\n{\"is\": false, \"code\": 2.0}\n{\"is\": true, \"code\": \"01\"}\n".to_owned(),
        ),
        ("unknown.csv", "is,code\nTrue,1.5\n".to_owned()),
    ];
    let files = files.map(|(name, text)| (name, text.into_bytes()));
    let new = ["same.csv", "other.csv", "other.jsonl", "unknown.csv"];
    let found = predicted(data, MLP, &files, &new);
    assert_eq!(found[0].lines().count(), 4, "{}", found[0]);
    assert_eq!(found[1], found[0]);
    assert_eq!(found[2], found[0]);
    assert!(found[3].contains("`1.5` is not a category"), "{}", found[3]);
}

/// The values of an array may have names, whose order in an object means nothing.
#[test]
fn the_order_of_keys_means_nothing() {
    let data = "type = \"npy\"\npath = \"x.npy\"\ntarget_path = \"y.npy\"";
    let item = |at: usize| [0, 1, 2].map(|column| ((at * 5 + column * 37) % 19) as f32);
    let items: Vec<[f32; 3]> = (0..32).map(item).collect();
    let targets: Vec<[f32; 1]> = items.iter().map(|item| [item[0] * 0.5 - item[1]]).collect();
    let files = [
        ("x.npy", npy_of(&items)),
        ("y.npy", npy_of(&targets)),
        (
            "new.jsonl",
            b"{\"b\": 9, \"a\": -2, \"c\": 3}\n{\"a\": -2, \"c\": 3, \"b\": 9}\n".to_vec(),
        ),
    ];
    let found = predicted(data, MLP, &files, &["new.jsonl"]);
    let values = found[0]
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').nth(1));
    let values: Vec<&str> = values.collect();
    assert!(values.len() == 2 && values[0] == values[1], "{}", found[0]);
}
