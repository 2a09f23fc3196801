use std::fs;
use std::path::Path;

use super::*;
use crate::data::profile::ValueProfile;
use crate::data::records::{Column, ColumnKind, NO_TEXT, Writer};
use crate::spec::ExperimentSpec;
use crate::spec::document::Document;
use crate::spec::section::Findings;

fn wishes() -> Wishes {
    Wishes {
        task: None,
        schema: Some("../schemas/experiment.schema.json".into()),
        file: "first.toml".into(),
    }
}

/// Decodes a generated file: every key exists, with a valid value.
fn holds(text: &str) {
    let document = Document::parse("first.toml", text);
    let document = document.unwrap_or_else(|(sources, d)| panic!("{}", d.render(&sources, false)));
    let mut findings = Findings::default();
    ExperimentSpec::decode(&document.root, &mut findings);
    let said = findings.diagnostics.render(&document.sources, false);
    assert!(!findings.diagnostics.has_errors(), "{said}\n{text}");
    let key = |line: &&str| !line.starts_with(['#', '[']) && !line.is_empty();
    let mut lines = text.lines();
    let mut before = "";
    let explained = lines.all(|line| {
        let is_explained = !key(&line) || line.contains("  # ") || before.starts_with("# ");
        before = line;
        is_explained
    });
    assert!(explained, "{text}");
}

/// A value's bytes by its row.
type Bytes = Box<dyn Fn(usize) -> Vec<u8>>;
/// A column with its values.
type Made = (Column, Bytes);

fn numbers(name: &str, value: impl Fn(usize) -> f64 + 'static) -> Made {
    let bytes = move |row| value(row).to_le_bytes().to_vec();
    (Column::scalar(name, ColumnKind::Doubles), Box::new(bytes))
}

fn categories(name: &str, names: &[&str], code: impl Fn(usize) -> i32 + 'static) -> Made {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let bytes = move |row| code(row).to_le_bytes().to_vec();
    (
        Column::scalar(name, ColumnKind::Categories { names }),
        Box::new(bytes),
    )
}

/// The result of reading some columns.
fn found(kind: DataKind, path: &str, num: usize, columns: Vec<Made>) -> Found {
    let mut writer = Writer::in_memory();
    writer.begin(columns.iter().map(|(column, _)| column.clone()).collect());
    for row in 0..num {
        let mut record: Vec<u8> = Vec::new();
        for (column, bytes) in &columns {
            match column.kind {
                ColumnKind::Text if row % 50 == 7 => record.extend(NO_TEXT),
                ColumnKind::Text => {
                    let text = String::from_utf8(bytes(row)).unwrap();
                    record.extend(writer.text(&text).unwrap());
                }
                _ => record.extend(bytes(row)),
            }
        }
        writer.push(&record).unwrap();
    }
    Found {
        kind,
        path: path.into(),
        keys: Vec::new(),
        said: Vec::new(),
        columns: ColumnProfile::all(&writer.into_records()),
        num_items: num,
        warnings: Vec::new(),
    }
}

fn houses() -> Found {
    let gap = |row: usize, value: f64| match row % 9 {
        4 => f64::NAN,
        _ => value,
    };
    found(
        DataKind::Csv,
        "data/houses \"2\".csv",
        700,
        vec![
            numbers("row", |row| row as f64),
            numbers("area", move |row| {
                gap(row, 40.0 + (row * 7 % 211) as f64 / 2.0)
            }),
            categories("town", &["Aldwick", "Burn", "Cray"], |row| {
                (row % 4) as i32 - 1
            }),
            numbers("country", |_| 1.0),
            numbers("price", |row| 1e5 + (row * 7919 % 10_007) as f64),
            (
                Column::scalar("remark", ColumnKind::Text),
                Box::new(|row| format!("seen {row} times").into_bytes()),
            ),
        ],
    )
}

#[test]
fn a_table_with_a_price_is_a_regression() {
    let text = houses().starter(&wishes()).unwrap();
    holds(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_last_column_of_few_whole_numbers_is_a_class() {
    let wine = || {
        found(
            DataKind::Csv,
            "wine.csv",
            40,
            vec![
                numbers("acid", |row| row as f64 / 3.0),
                numbers("wine_type", |row| (row % 3) as f64),
            ],
        )
    };
    let text = wine().starter(&wishes()).unwrap();
    holds(&text);
    insta::assert_snapshot!(text);
    let task = Some(TaskKind::Regression);
    let text = wine().starter(&Wishes { task, ..wishes() }).unwrap();
    holds(&text);
    assert!(
        text.contains("type = \"number\"") && text.contains("type = \"regression\""),
        "{text}"
    );
}

#[test]
fn the_iris_flowers_are_there_without_data() {
    let text = starter_on_iris(&wishes()).unwrap();
    holds(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn every_kind_of_item_and_task_has_a_file() {
    let array = |name: &str, kind: ColumnKind, shape: &[usize]| {
        let num = shape.iter().product::<usize>() * kind.size();
        let column = Column {
            name: name.into(),
            kind,
            shape: shape.to_vec(),
        };
        let bytes: Bytes = Box::new(move |row| vec![row as u8; num]);
        (column, bytes)
    };
    let whole = |name: &str| {
        let bytes: Bytes = Box::new(|row| (row as i32 % 10).to_le_bytes().to_vec());
        (Column::scalar(name, ColumnKind::Whole), bytes)
    };
    let texts = |name: &str| {
        let bytes: Bytes = Box::new(|row| format!("text {row}").into_bytes());
        (Column::scalar(name, ColumnKind::Text), bytes)
    };
    let label = |name: &str, every: usize| numbers(name, move |row| f64::from(row % every == 0));
    let names = || categories("sentiment", &["bad", "good"], |row| row as i32 % 2);
    let pictures = |shape: &[usize], target: bool| {
        let mut columns = vec![array("input", ColumnKind::Bytes, shape)];
        columns.extend(target.then(|| whole("target")));
        found(DataKind::Npy, "x.npy", 30, columns)
    };
    let with = |task| Wishes { task, ..wishes() };
    let cases = [
        (
            "rows",
            found(
                DataKind::Npy,
                "x.npy",
                30,
                vec![array("input", ColumnKind::Numbers, &[4]), whole("target")],
            ),
            None,
        ),
        ("small pictures", pictures(&[1, 8, 8], true), None),
        ("pictures", pictures(&[1, 28, 28], true), None),
        ("large pictures", pictures(&[3, 64, 64], true), None),
        ("channels last", pictures(&[32, 32, 3], true), None),
        ("series", pictures(&[24, 2], true), None),
        ("no target", pictures(&[1, 8, 8], false), None),
        (
            "named arrays",
            found(
                DataKind::Npz,
                "a.npz",
                30,
                vec![
                    array("x", ColumnKind::Numbers, &[1, 9, 9]),
                    whole("y"),
                    whole("more"),
                ],
            ),
            None,
        ),
        (
            "tensors",
            found(
                DataKind::Safetensors,
                "a.safetensors",
                30,
                vec![array("x", ColumnKind::Numbers, &[3]), whole("label")],
            ),
            None,
        ),
        (
            "texts",
            found(
                DataKind::JsonLines,
                "a.jsonl",
                30,
                vec![texts("review"), names()],
            ),
            None,
        ),
        (
            "labels",
            found(
                DataKind::Parquet,
                "a.parquet",
                30,
                vec![
                    numbers("a", |row| row as f64 / 2.0),
                    label("red", 2),
                    label("round", 3),
                ],
            ),
            Some(TaskKind::MultiLabel),
        ),
        ("code", houses(), Some(TaskKind::Autoencoding)),
        (
            "text",
            found(DataKind::Text, "a.txt", 1, vec![texts("text")]),
            None,
        ),
        (
            "one column",
            found(
                DataKind::Csv,
                "a.csv",
                30,
                vec![numbers("a", |row| row as f64 / 2.0)],
            ),
            None,
        ),
    ];
    let mut all = String::new();
    for (name, found, task) in cases {
        let text = found.starter(&with(task)).unwrap();
        holds(&text);
        let keys = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        let keys = keys.map(|line| line.split("  # ").next().unwrap().trim_end());
        let from = keys
            .skip_while(|line| *line != "[data]")
            .take_while(|line| *line != "[optimizer]");
        all.push_str(&format!(
            "# {name}\n{}\n\n",
            from.collect::<Vec<_>>().join("\n")
        ));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn tasks_that_do_not_fit_are_refused() {
    let names = found(
        DataKind::Csv,
        "a.csv",
        30,
        vec![
            numbers("a", |row| row as f64),
            categories("kind", &["b", "c"], |row| row as i32 % 2),
        ],
    );
    let text = found(
        DataKind::Text,
        "a.txt",
        1,
        vec![(
            Column::scalar("text", ColumnKind::Text),
            Box::new(|_| b"abc".to_vec()),
        )],
    );
    let mut said = String::new();
    let cases = [
        (&names, TaskKind::Regression),
        (&names, TaskKind::Segmentation),
        (&names, TaskKind::NextToken),
        (&names, TaskKind::MultiLabel),
        (&houses(), TaskKind::Classification),
        (&text, TaskKind::Classification),
    ];
    for (found, task) in cases {
        let error = found
            .starter(&Wishes {
                task: Some(task),
                ..wishes()
            })
            .unwrap_err();
        said.push_str(&format!("{error}\n"));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_text_is_looked_at_with_its_reader() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("plans")).unwrap();
    fs::create_dir(at("book")).unwrap();
    fs::write(at("book/1.txt"), "A line, and another.\nThe end.\n").unwrap();
    fs::write(at("book/2.txt"), "More.").unwrap();
    let found = look(&at("book"), &at("plans")).unwrap();
    assert_eq!(
        (found.kind, found.path.as_str(), found.num_items),
        (DataKind::Text, "../book/*.txt", 2)
    );
    let found = look(&at("book/1.txt"), &at("book")).unwrap();
    assert_eq!((found.kind, found.path.as_str()), (DataKind::Text, "1.txt"));
    let text = found.starter(&wishes()).unwrap();
    holds(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn folders_of_pictures_are_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let save = |name: &str, side: u32| {
        fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        image::GrayImage::new(side, side + 2)
            .save(at(name))
            .unwrap();
    };
    for name in ["a/cat/1.png", "a/cat/deep/2.png", "a/dog/1.png"] {
        save(name, 20);
    }
    // The reader interprets each folder as a class, and refuses one without images.
    fs::create_dir(at("a/none")).unwrap();
    let refused = look(&at("a"), folder.path()).unwrap_err();
    assert!(
        refused
            .message
            .ends_with("its folder `cat` contains images, but `none` does not"),
        "{refused}"
    );
    fs::remove_dir(at("a/none")).unwrap();
    save("one/cat/1.png", 20);
    let refused = look(&at("one"), folder.path()).unwrap_err();
    assert!(refused.message.contains("a single class"), "{refused}");
    let look = |name: &str| look(&at(name), folder.path()).unwrap();
    let found = look("a");
    assert_eq!((found.kind, found.num_items), (DataKind::ImageFolder, 3));
    assert_eq!(found.columns[0].column.shape, [1, 22, 20]);
    let classes = [("cat".to_owned(), 2), ("dog".to_owned(), 1)];
    assert_eq!(
        found.columns[1].values,
        ValueProfile::Categories(classes.to_vec())
    );
    let text = found.starter(&wishes()).unwrap();
    holds(&text);
    assert!(
        text.contains("channels = \"gray\"") && text.contains("type = \"cnn\""),
        "{text}"
    );
    save("a/dog/3.png", 90);
    assert_eq!(look("a").columns[0].column.shape, [1, 32, 32]);
    save("b/images/1.png", 12);
    save("b/masks/1.png", 12);
    let text = look("b").starter(&wishes()).unwrap();
    holds(&text);
    assert!(
        text.contains("target_path = \"b/masks\"") && text.contains("type = \"segmentation\""),
        "{text}"
    );
}

#[test]
fn what_cannot_be_used_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("mixed")).unwrap();
    for (name, bytes) in [
        ("mixed/a.csv", &b"a\n1"[..]),
        ("mixed/b.txt", b"b"),
        ("empty.dat", b""),
        ("binary.dat", b"\x89\xff\x00"),
        ("list.json", b"[{}]"),
        ("one.png", b"\x89PNG"),
    ] {
        fs::write(at(name), bytes).unwrap();
    }
    let names = [
        "mixed",
        "empty.dat",
        "binary.dat",
        "list.json",
        "one.png",
        "missing.csv",
    ];
    let said = names.map(|name| {
        let error = look(&at(name), Path::new("")).unwrap_err().to_string();
        error.replace(&folder.path().display().to_string(), "[FOLDER]")
    });
    insta::assert_snapshot!(said.join("\n"));
}
