//! Tables of every format, valid and invalid.

#[cfg(feature = "parquet")]
mod parquet;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use rand::{SeedableRng, rngs::ChaCha8Rng};

use crate::data::DataError;
use crate::data::read::read;
use crate::data::records::{ColumnKind, Records, Writer};
use crate::spec::data::{ColumnSpec, ColumnType, FilesSpec, Format, OnBadItem, RowsSpec};
use crate::testing::{damaged, rewrite};

fn spec(format: Format, path: &Path) -> FilesSpec {
    FilesSpec::of_format(format, vec![path.display().to_string()])
}

fn csv(delimiter: char, header: bool) -> Format {
    Format::Csv {
        delimiter,
        header,
        missing_values: ["", "NA", "nan"].map(str::to_owned).to_vec(),
        rows: RowsSpec::default(),
    }
}

fn forced(name: &str, kind: ColumnType) -> ColumnSpec {
    ColumnSpec {
        kind: Some(kind),
        ..ColumnSpec::named(name)
    }
}

fn load(files: &FilesSpec) -> Result<Records, DataError> {
    let mut writer = Writer::in_memory();
    read(files, &mut writer, &|_, _| {})?;
    Ok(writer.into_records())
}

/// A text in a file, read according to a spec modified by `change`.
fn read_text(format: Format, bytes: &[u8], change: impl FnOnce(&mut FilesSpec)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    fs::write(&path, bytes).unwrap();
    let mut files = spec(format, &path);
    change(&mut files);
    let shown = show(load(&files));
    shown.replace(&format!("{}/", folder.path().display()), "")
}

fn read_csv(text: &str) -> String {
    read_text(csv(',', true), text.as_bytes(), |_| {})
}

fn read_json(text: &str) -> String {
    read_text(Format::JsonLines, text.as_bytes(), |_| {})
}

/// Columns and records, or the refusal.
fn show(records: Result<Records, DataError>) -> String {
    let records = match records {
        Ok(records) => records,
        Err(error) => return format!("{error}\n"),
    };
    let mut shown = String::new();
    for (at, column) in records.columns().iter().enumerate() {
        let kind = match &column.kind {
            ColumnKind::Categories { names } => format!("categories {names:?}"),
            ColumnKind::Doubles => "doubles".into(),
            other => other.show().into(),
        };
        let shape = if column.shape.is_empty() {
            String::new()
        } else {
            format!(" {:?}", column.shape)
        };
        write!(shown, "{}: {kind}{shape} =", column.name).unwrap();
        for item in 0..records.len() {
            match column.kind {
                ColumnKind::Text => write!(shown, " {:?}", records.text(item, at)).unwrap(),
                _ if column.shape.is_empty() => {
                    write!(shown, " {}", records.number(item, at, 0)).unwrap()
                }
                _ => {
                    let mut values = Vec::new();
                    records.numbers(item, at, |value| values.push(value));
                    write!(shown, " {values:?}").unwrap();
                }
            }
        }
        shown.push('\n');
    }
    if records.header.parts[1..] != [0, 0] {
        writeln!(shown, "parts: {:?}", records.header.parts).unwrap();
    }
    for skipped in &records.header.skipped {
        writeln!(shown, "skipped {}: {}", skipped.place, skipped.reason).unwrap();
    }
    shown
}

#[test]
fn csv_of_every_kind() {
    let text = "id, age,city,when,note,free\n\
        1,33.5,Bonn,2024-01-03,\"a \"\"b\"\"\",\n\
        2, NA ,\"Köln, Deutz\",2023-12-31,\"two\nlines\",\n\
        3,-1e3,Bonn,,x,\n";
    let mut shown = read_csv(text);
    // Carriage returns and a byte-order mark change nothing but the text that holds one.
    let other = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(read_csv(&other).replace("\\r", ""), shown);
    shown.push_str("\nwithout a header\n");
    shown.push_str(&read_text(csv('\t', false), b"1\ta\n2\tb\n", |_| {}));
    shown.push_str("\nrow numbers without a name\n");
    shown.push_str(&read_csv(",x\n0,1\n1,2\n"));
    shown.push_str("\nblanks between values\n");
    shown.push_str(&read_text(
        csv(' ', true),
        b"x   y\n 1.5  2\n10.0 3\n",
        |_| {},
    ));
    insta::assert_snapshot!(shown);
}

#[test]
fn zipped_csv_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"x,y\n1,b\n2,a\n").unwrap();
    fs::write(at("a.csv.gz"), encoder.finish().unwrap()).unwrap();
    // Columns in a different order, and a category that only the test has.
    fs::write(at("b.csv"), "y,x\nc,3\n").unwrap();
    let mut files = spec(csv(',', true), &at("a.csv.gz"));
    files.test_path = vec![at("b.csv").display().to_string()];
    insta::assert_snapshot!(show(load(&files)), @r#"
    x: doubles = 1 2 3
    y: categories ["a", "b", "c"] = 1 0 2
    parts: [2, 0, 1]
    "#);
}

#[test]
fn what_columns_are_found_to_be() {
    let column = |values: &mut dyn Iterator<Item = String>, target: bool| {
        let text = format!("c\n{}\n", values.collect::<Vec<_>>().join("\n"));
        let shown = read_text(csv(',', true), text.as_bytes(), |files| {
            if target {
                files.roles.target = vec!["c".into()];
            }
        });
        shown
            .split([' ', '\n'])
            .nth(1)
            .unwrap_or_default()
            .to_owned()
    };
    let texts =
        |num: usize, different: usize| (0..num).map(move |at| format!("v{}", at % different));
    assert_eq!(column(&mut texts(20, 20), false), "categories");
    assert_eq!(column(&mut texts(21, 21), false), "texts");
    assert_eq!(column(&mut texts(42, 21), false), "categories");
    assert_eq!(column(&mut texts(41, 21), false), "texts");
    assert_eq!(column(&mut texts(21, 21), true), "categories");
    assert_eq!(column(&mut texts(4000, 1000), false), "categories");
    assert_eq!(column(&mut texts(4000, 1001), false), "texts");
    assert_eq!(column(&mut texts(4000, 1001), true), "texts");
    let long = |at: usize| format!("{}{}", "long ".repeat(30), at % 2);
    assert_eq!(column(&mut (0..9).map(long), false), "texts");
    let date = |at: usize| {
        format!(
            "20{:02}-{:02}-{:02}",
            at / 300 % 100,
            at / 25 % 12 + 1,
            at % 25 + 1
        )
    };
    assert_eq!(column(&mut (0..5000).map(date), false), "categories");
    let numbers =
        |num: usize, different: usize| (0..num).map(move |at| format!("{}", at % different));
    assert_eq!(column(&mut numbers(100, 3), false), "doubles");
    assert_eq!(column(&mut numbers(100, 20), true), "categories");
    assert_eq!(column(&mut numbers(100, 21), true), "doubles");
    assert_eq!(
        column(&mut (0..9).map(|at| format!("{}.0", at % 3)), true),
        "doubles"
    );
    // A single text among many numbers.
    let mixed = |at: usize| {
        if at == 4999 {
            "x".to_owned()
        } else {
            at.to_string()
        }
    };
    assert_eq!(column(&mut (0..5000).map(mixed), false), "texts");
}

#[test]
fn what_the_experiment_says_goes_first() {
    let text = b"a,b,c,y\n10,1,true,2\n9,x,False,10\n10,2,NA,1\n";
    let mut shown = read_text(csv(',', true), text, |files| {
        files.roles.columns = vec![
            forced("a", ColumnType::Category),
            forced("b", ColumnType::Text),
            forced("c", ColumnType::Number),
        ];
        files.roles.target = vec!["y".into()];
    });
    shown.push('\n');
    shown.push_str(&read_text(csv(',', true), text, |files| {
        files.roles.columns = vec![forced("b", ColumnType::Number)];
    }));
    shown.push_str(&read_text(
        csv(',', true),
        b"a,b\n1,2\n\"1,5\",3\n",
        |files| {
            files.roles.columns = vec![forced("a", ColumnType::Number)];
        },
    ));
    shown.push('\n');
    shown.push_str(&read_text(csv(',', true), text, |files| {
        files.roles.columns = vec![forced("b", ColumnType::Number)];
        files.on_bad_item = OnBadItem::Skip;
    }));
    insta::assert_snapshot!(shown);
}

#[test]
fn csv_that_is_refused() {
    let mut shown = String::new();
    for text in [
        "",
        "\n\n",
        "a,b\n",
        "a,a\n1,2\n",
        "1,1\n1,2\n",
        "5.1,3.5\n4.9,3.0\n",
        "a;b\n1;2\n",
        "a\tb\n1\t2\n",
        "a,b\n1,2\n1\n",
        "a,b\n1,2\n\"x\ny\",2\n1,2,3\n",
        "a,b\n1,2\n3,inf\n",
        "a,b\n1,\"2\n3,4\n",
        "a,b\n1,\"2\n3,4",
        "a,b\n5\" pipe,\"2\n3\"\n",
    ] {
        writeln!(shown, "{text:?}\n  {}", read_csv(text).trim_end()).unwrap();
    }
    let bytes: [&[u8]; 4] = [
        b"a,b\n1,\xff\n",
        b"\xff,b\n1,2\n",
        b"\xff\xfea\0,\0b\0\n\0",
        &[0; 50],
    ];
    for bytes in bytes {
        let text = read_text(csv(',', true), bytes, |_| {});
        writeln!(shown, "{bytes:02x?}\n  {}", text.trim_end()).unwrap();
    }
    let text = read_text(csv(',', true), b"a,b\n1,2\n1\n\xff,2\n3,4\n", |files| {
        files.on_bad_item = OnBadItem::Skip;
    });
    writeln!(shown, "skipped\n{text}").unwrap();
    let text = read_text(csv(',', true), b"a,b\n1\n", |files| {
        files.on_bad_item = OnBadItem::Skip;
    });
    writeln!(shown, "all skipped\n{text}").unwrap();
    insta::assert_snapshot!(shown);
}

#[test]
fn files_must_have_the_same_columns() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.csv"), "x,y,z\n1,2,3\n").unwrap();
    fs::write(at("b.csv"), "x,y\n1,2\n").unwrap();
    fs::write(at("a.jsonl"), "{\"x\": 1}\n").unwrap();
    fs::write(at("b.jsonl"), "{\"x\": 1, \"y\": 2}\n").unwrap();
    fs::create_dir(at("folder.csv")).unwrap();
    fs::write(at("cut.csv.gz"), [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b]).unwrap();
    fs::write(at("no.csv.gz"), "x,y\n1,2\n").unwrap();
    let mut shown = String::new();
    for (first, second) in [
        ("a.csv", "b.csv"),
        ("b.csv", "a.csv"),
        ("a.jsonl", "b.jsonl"),
        ("b.jsonl", "a.jsonl"),
        ("missing.csv", "a.csv"),
        ("folder.csv", "a.csv"),
        ("cut.csv.gz", "a.csv"),
        ("no.csv.gz", "a.csv"),
    ] {
        let format = if first.ends_with("jsonl") {
            Format::JsonLines
        } else {
            csv(',', true)
        };
        let mut files = spec(format, &at(first));
        files.test_path = vec![at(second).display().to_string()];
        let text = show(load(&files));
        writeln!(shown, "{first} {second}\n  {}", text.trim_end()).unwrap();
        if second == "b.csv" {
            files.roles.ignore = vec!["z".into()];
            writeln!(
                shown,
                "{first} {second} without `z`\n{}",
                show(load(&files))
            )
            .unwrap();
        }
    }
    let shown = shown.replace(&format!("{}/", folder.path().display()), "");
    insta::assert_snapshot!(shown);
}

#[test]
fn json_of_every_kind() {
    let mut shown = read_json(
        "{\"n\": 1, \"s\": \"b\", \"t\": [1, 2], \"f\": [0.5, null], \"m\": [[1, 2], [3, 4]], \"b\": true}\n\
         \n\
         {\"s\": \"12\", \"n\": -2.5e3, \"t\": [3], \"f\": [1, 2], \"m\": [[5, 6], [7, 8]], \"b\": null, \"late\": 9007199254740993}\r\n\
         {\"n\": null, \"t\": [4, 5], \"m\": null, \"late\": 7}",
    );
    shown.push_str("\nlists of numbers of different lengths\n");
    shown.push_str(&read_json(
        "{\"x\": [0.5]}\n{\"x\": [1, 2.5]}\n{\"x\": []}\n",
    ));
    shown.push_str("\nwhole numbers as numbers\n");
    shown.push_str(&read_text(
        Format::JsonLines,
        b"{\"x\": [1]}\n{\"x\": [3000000000]}\n",
        |_| {},
    ));
    shown.push_str(&read_text(
        Format::JsonLines,
        b"{\"x\": [1]}\n{\"x\": [2]}\n",
        |files| {
            files.roles.columns = vec![forced("x", ColumnType::Number)];
        },
    ));
    shown.push_str("\nnumbers and texts\n");
    shown.push_str(&read_json("{\"x\": 10}\n{\"x\": \"a\"}\n{\"x\": 2}\n"));
    shown.push_str("\nignored keys hold anything\n");
    shown.push_str(&read_text(
        Format::JsonLines,
        b"{\"x\": 1, \"meta\": {\"a\": 1}}\n",
        |files| {
            files.roles.ignore = vec!["meta".into()];
        },
    ));
    insta::assert_snapshot!(shown);
}

#[test]
fn json_that_is_refused() {
    let mut shown = String::new();
    for text in [
        "",
        "\n \n",
        "{}\n",
        "[{\"x\": 1}]\n",
        "{\n  \"x\": 1\n}\n",
        "{\"x\": 1}\n{\"x\": 2\n",
        "{\"x\": 1}\n{\"x\": NaN}\n",
        "{\"x\": 1}\n7\n",
        "{\"x\": 1, \"x\": 2}\n",
        "{\"x\": {\"y\": 1}}\n",
        "{\"x\": [\"a\"]}\n",
        "{\"x\": [1, [2]]}\n",
        "{\"x\": [[1], [2, 3]]}\n",
        "{\"x\": [1]}\n{\"x\": 1}\n",
        "{\"x\": []}\n{\"x\": []}\n",
        "{\"x\": [[1]]}\n{\"x\": [[1]]}\n{\"x\": [[1], [2]]}\n",
        "{\"x\": 1e999}\n",
        "{\"x\": [1e300]}\n",
        "{\"x\": \"\\ud800\"}\n",
    ] {
        writeln!(shown, "{text:?}\n  {}", read_json(text).trim_end()).unwrap();
    }
    let deep = format!("{{\"x\": {}", "[".repeat(100_000));
    writeln!(shown, "deep\n  {}", read_json(&deep).trim_end()).unwrap();
    let text = read_text(
        Format::JsonLines,
        b"{\"x\": 1}\n{\"x\": 2, \"y\": \xff}\n",
        |_| {},
    );
    writeln!(shown, "not UTF-8\n  {}", text.trim_end()).unwrap();
    for kind in [ColumnType::Category, ColumnType::Text] {
        let text = read_text(Format::JsonLines, b"{\"x\": [1]}\n", |files| {
            files.roles.columns = vec![forced("x", kind)];
        });
        writeln!(shown, "{kind:?}\n  {}", text.trim_end()).unwrap();
    }
    insta::assert_snapshot!(shown);
}

/// More rows than a batch holds, on one thread and on several.
#[test]
fn many_rows_are_the_same_on_any_number_of_threads() {
    let mut text = String::from("number,name,note\n");
    for at in 0..40_000 {
        writeln!(
            text,
            "{},n{},\"some words {at}\"",
            f64::from(at) / 7.0,
            at % 7
        )
        .unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    fs::write(&path, text).unwrap();
    let files = spec(csv(',', true), &path);
    let one = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .unwrap();
    let three = rayon::ThreadPoolBuilder::new()
        .num_threads(3)
        .build()
        .unwrap();
    let (a, b) = (
        one.install(|| load(&files)).unwrap(),
        three.install(|| load(&files)).unwrap(),
    );
    assert_eq!(a.header, b.header);
    assert_eq!(a.record(0..40_000), b.record(0..40_000));
    assert_eq!(b.number(39_999, 0, 0), 39_999.0 / 7.0);
    assert_eq!(b.number(39_999, 1, 0), f64::from(39_999 % 7));
    assert_eq!(b.text(39_999, 2), Some("some words 39999"));
}

/// Every format, truncated at many lengths and with changed bytes: read or refused, and never a panic.
#[test]
fn damaged_tables_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let table =
        b"id,age,city\n1,33.5,\"Bonn\"\n2,NA,\"K\xc3\xb6ln, Deutz\"\n3,-1e3,Bonn\n".to_vec();
    let lines = b"{\"n\": 1, \"s\": \"b\", \"t\": [1, 2]}\n{\"s\": \"12\", \"n\": -2.5e3, \"t\": [[3], [4]]}\n".to_vec();
    #[allow(unused_mut)]
    let mut cases = vec![(table, csv(',', true)), (lines, Format::JsonLines)];
    #[cfg(feature = "parquet")]
    cases.push((parquet::parquet_file(), Format::Parquet));
    for (bytes, format) in cases {
        for skip in [OnBadItem::Refuse, OnBadItem::Skip] {
            let mut files = spec(format.clone(), &path);
            files.on_bad_item = skip;
            for len in (0..bytes.len()).step_by(1 + bytes.len() / 100) {
                rewrite(&path, &bytes[..len]);
                let _ = load(&files);
            }
            for _ in 0..300 {
                rewrite(&path, damaged(&bytes, &mut rng));
                let _ = load(&files);
            }
        }
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_needs_its_feature() {
    insta::assert_snapshot!(read_text(Format::Parquet, b"PAR1", |_| {}), @"this build of runner does not read Parquet; build it with `--features parquet`, or save the table as CSV");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_of_every_kind() {
    let file = parquet::parquet_file();
    let mut shown = read_text(Format::Parquet, &file, |_| {});
    shown.push('\n');
    for bytes in [&b""[..], b"PAR1", &file[..file.len() - 9]] {
        shown.push_str(&read_text(Format::Parquet, bytes, |_| {}));
    }
    insta::assert_snapshot!(shown);
}
