//! Tables as people export them: read correctly, refused or warned about, and never silently misread.

use std::fs;
use std::path::Path;

use image::GrayImage;

use super::support::{folder_with, npy, run};

const MODEL: &str = r#"
[model]
type = "mlp"
hidden = [4]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 1
batch_size = 8
"#;

/// A message without its folder.
fn redact(text: &str, folder: &Path) -> String {
    let real = fs::canonicalize(folder).unwrap();
    let text = text.replace(&real.display().to_string(), "[FOLDER]");
    text.replace(&folder.display().to_string(), "[FOLDER]")
}

/// A folder with a spec over `data` and a file `rows.csv`.
fn folder(data: &str, rows: &str) -> tempfile::TempDir {
    let folder = folder_with(&format!("[data]\n{data}\n{MODEL}"));
    fs::write(folder.path().join("rows.csv"), rows).unwrap();
    folder
}

/// The output of `runner data` for a file, without the common parts.
fn look(keys: &str, rows: &str) -> (i32, String, String) {
    let data = format!("type = \"csv\"\npath = \"rows.csv\"\ntarget = \"y\"\n{keys}");
    let folder = folder(&data, rows);
    let (code, stdout, stderr) = run(folder.path(), &["data", "spec.toml"]);
    (code, stdout, redact(&stderr, folder.path()))
}

/// Rows as a function of their number from 0.
fn rows(header: &str, num: usize, row: impl Fn(usize) -> String) -> String {
    let mut text = format!("{header}\n");
    for at in 0..num {
        text.push_str(&row(at));
        text.push('\n');
    }
    text
}

/// An arbitrary number for a row, the same at each call.
fn some(at: usize) -> usize {
    at * 7919 % 997
}

/// A file that would be misread, the keys that fix it, and a line of `runner data` with them.
struct Case {
    what: &'static str,
    rows: String,
    keys: &'static str,
    shows: &'static str,
}

fn cases() -> Vec<Case> {
    let case = |what, keys, shows, rows: String| Case {
        what,
        rows,
        keys,
        shows,
    };
    vec![
        case(
            "decimal commas",
            "delimiter = \";\"\ndecimal = \",\"\nthousands = \".\"",
            " a       number    feature  1000 to 1996, mean 1529",
            rows("a;y", 60, |at| format!("1.{:03},25;{}", some(at), at % 2)),
        ),
        case(
            "currency and thousands",
            "strip = [\"$\"]\nthousands = \",\"",
            " a       number    feature  1000 to 996001",
            rows("a,y", 60, |at| {
                format!("\"${},{:03}\",{}", some(at).max(1), at % 2, at % 3)
            }),
        ),
        case(
            "percent",
            "strip = [\"%\"]",
            " a       number    feature  0 to 99.6",
            rows("a,y", 60, |at| {
                format!("{}.{}%,{}", some(at) / 10, some(at) % 10, at % 2)
            }),
        ),
        case(
            "a unit",
            "strip = [\"kg\"]",
            " a       number    feature  0 to 99600",
            rows("a,y", 60, |at| format!("{}e2 kg,{}", some(at), at % 2)),
        ),
        case(
            "a line above the header",
            "skip_rows = 2",
            " a       number    feature  0 to 996",
            format!(
                "Export of 2024-01-01\n\n{}",
                rows("a,b,y", 40, |at| format!(
                    "{},{},{}",
                    some(at),
                    at % 7,
                    at % 2
                ))
            ),
        ),
        case(
            "comments",
            "comment = \"#\"",
            " a       number    feature  0 to 996",
            format!(
                "# made by an instrument\n# at night\n{}",
                rows("a,b,y", 40, |at| format!(
                    "{},{},{}",
                    some(at),
                    at % 7,
                    at % 2
                ))
            ),
        ),
        case(
            "units below the header",
            "skip_rows_after_header = 1",
            " a       number    feature  0 to 996",
            format!(
                "a,y\nkg,-\n{}",
                rows("5,1", 40, |at| format!("{},{}", some(at), at % 2))
            ),
        ),
        case(
            "a row of totals",
            "skip_footer = 1",
            " a       number    feature  0 to 996",
            rows("n,a,y", 40, |at| match at {
                39 => "Total,99999,1".to_owned(),
                _ => format!("n{},{},{}", at % 3, some(at), at % 2),
            }),
        ),
        case(
            "blanks between values",
            "delimiter = \" \"",
            " a       number    feature  0 to 996",
            rows("a   b y", 40, |at| {
                format!("  {}\t {}   {}", some(at), at % 7, at % 2)
            }),
        ),
        case(
            "no header",
            "header = false\ntarget = \"column_3\"",
            " column_1  number    feature  5.1 to 104.1",
            rows("5.1,3,a", 40, |at| {
                format!("{}.1,{},{}", 5 + some(at) / 10, at % 7, ["a", "b"][at % 2])
            }),
        ),
        case(
            "codes with zeros in front",
            "[[data.columns]]\nname = \"zip\"\ntype = \"category\"",
            " zip     category  feature  10",
            rows("zip,y", 60, |at| format!("0{},{}", 1000 + at % 10, at % 2)),
        ),
        case(
            "-999 for a missing value",
            "missing = \"median\"\n[[data.columns]]\nname = \"a\"\nmissing_values = [-999]",
            " a       number    feature        6  27 to 996",
            rows("a,y", 60, |at| {
                format!(
                    "{},{}",
                    if at % 11 == 0 {
                        "-999.0".to_owned()
                    } else {
                        some(at).to_string()
                    },
                    at % 2
                )
            }),
        ),
        case(
            "words for nothing",
            "missing = \"median\"\n[[data.columns]]\nname = \"a\"\nmissing_values = [\"-\", \"None\"]",
            " a       number    feature       15  0 to 996",
            rows("a,y", 60, |at| {
                let nothing = ["-", "None"][at / 4 % 2];
                let value = some(at).to_string();
                format!(
                    "{},{}",
                    if at % 4 == 1 { nothing } else { value.as_str() },
                    at % 2
                )
            }),
        ),
        case(
            "row numbers",
            "ignore = [\"column_1\"]",
            " column_1  number    -        0 to 39",
            rows(",a,y", 40, |at| format!("{at},{},{}", some(at), at % 2)),
        ),
        case(
            "names that differ in capitals",
            "[[data.columns]]\nname = \"town\"\ntype = \"category\"",
            " town    category  feature  3",
            rows("town,y", 40, |at| {
                format!("{},{}", ["Bonn", "bonn", "Trier"][at % 3], at % 2)
            }),
        ),
    ]
}

/// Each is refused or warned about with the key that fixes it, and read correctly with that key, without a warning.
#[test]
fn what_would_be_read_wrong_is_said_and_can_be_mended() {
    let mut said = String::new();
    for case in cases() {
        let target = if case.keys.contains("target") {
            ""
        } else {
            "target = \"y\"\n"
        };
        let spec = |keys: &str| format!("type = \"csv\"\npath = \"rows.csv\"\n{target}{keys}");
        let wrong = folder(&spec(""), &case.rows);
        let (code, _, stderr) = run(wrong.path(), &["data", "spec.toml"]);
        let text = redact(&stderr, wrong.path());
        said.push_str(&format!("## {}: exit code {code}\n{text}\n", case.what));
        assert!(
            text.contains("error") || text.contains("warning"),
            "{}: {text}",
            case.what
        );
        let mended = folder(&spec(case.keys), &case.rows);
        let (code, stdout, stderr) = run(mended.path(), &["data", "spec.toml"]);
        assert_eq!(code, 0, "{}: {stderr}", case.what);
        assert!(!stderr.contains("warning"), "{}: {stderr}", case.what);
        assert!(stdout.contains(case.shows), "{}\n{stdout}", case.what);
    }
    insta::assert_snapshot!(said);
}

/// `runner init` sets the keys automatically: its file is accepted without a warning.
#[test]
fn a_first_file_reads_tables_as_they_are_meant() {
    let mut shown = String::new();
    for case in cases() {
        // Whether case matters is for the user to decide.
        if case.what.contains("capitals") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("rows.csv"), &case.rows).unwrap();
        let (code, _, stderr) = run(
            folder.path(),
            &["init", "--data", "rows.csv", "--out", "first.toml"],
        );
        assert_eq!(code, 0, "{}: {stderr}", case.what);
        assert!(!stderr.contains("warning"), "{}: {stderr}", case.what);
        let text = fs::read_to_string(folder.path().join("first.toml")).unwrap();
        let (code, _, stderr) = run(folder.path(), &["check", "first.toml"]);
        assert_eq!(code, 0, "{}: {stderr}\n{text}", case.what);
        assert!(
            !stderr.contains("warning"),
            "{}: {stderr}\n{text}",
            case.what
        );
        let data = text.split("[data]").nth(1).unwrap_or_default();
        let data = data.split("[data.split]").next().unwrap_or_default();
        shown.push_str(&format!("## {}{data}", case.what));
    }
    insta::assert_snapshot!(shown);
}

/// Row numbers that were shuffled with their rows are recognized by name and range.
#[test]
fn shuffled_row_numbers_are_told_and_left_out() {
    let text = rows("Unnamed: 0,a,y", 41, |at| {
        format!("{},{},{}", at * 7 % 41, some(at), at % 2)
    });
    let (code, _, stderr) = look("", &text);
    assert_eq!(code, 0, "{stderr}");
    let said = "the feature `Unnamed: 0` numbers the rows from 0 to 40";
    assert!(stderr.contains(said), "{stderr}");
    let folder = folder("type = \"csv\"\npath = \"rows.csv\"", &text);
    let init = ["init", "--data", "rows.csv", "--out", "-"];
    let (code, stdout, stderr) = run(folder.path(), &init);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("ignore = \"Unnamed: 0\""), "{stdout}");
    assert!(
        stdout.contains("it numbers the rows from 0 to 40"),
        "{stdout}"
    );
}

/// Valid data is not reported.
#[test]
fn nothing_is_said_of_what_is_fine() {
    let fine = [
        (
            "grades",
            rows("a,y", 60, |at| {
                format!("{},{}", ["1st", "2nd", "3rd"][at % 3], at % 2)
            }),
        ),
        (
            "sizes",
            rows("a,y", 60, |at| {
                format!("{},{}", ["64GB", "128GB"][at % 2], at % 3 % 2)
            }),
        ),
        (
            "letters",
            rows("a,y", 60, |at| {
                format!("{},{}", ["a", "A", "b"][at % 3], at % 2)
            }),
        ),
        (
            "labels of 1 and -1",
            rows("a,y", 60, |at| {
                format!("{},{}", some(at), if at % 2 == 0 { 1 } else { -1 })
            }),
        ),
        (
            "a counter that starts again",
            rows("step,y", 60, |at| format!("{},{}", at % 20, at % 2)),
        ),
        (
            "ages up to 99",
            rows("age,y", 200, |at| format!("{},{}", some(at) % 100, at % 2)),
        ),
        (
            "yes and no",
            rows("a,y", 60, |at| {
                format!("{},{}", ["yes", "no"][at % 2], at % 3 % 2)
            }),
        ),
        (
            "years as names",
            rows("2000,2001,2002,y", 60, |at| {
                format!("{},{},{},{}", some(at), at, at % 3, at % 2)
            }),
        ),
        (
            "trailing delimiters",
            rows("a,b,y", 60, |at| {
                format!("{},{},{},", some(at), at % 5, at % 2)
            }),
        ),
        (
            "a byte order mark and old line ends",
            format!(
                "\u{feff}{}",
                rows("a,b,y", 60, |at| format!(
                    "{},{},{}",
                    some(at),
                    at % 5,
                    at % 2
                ))
            )
            .replace('\n', "\r"),
        ),
        (
            "quotes and line ends in values",
            rows("a,b,y", 60, |at| {
                format!("{},\"x\n{}\",{}", some(at), at % 5, at % 2)
            }),
        ),
        (
            "-999 among such numbers",
            rows("a,y", 200, |at| {
                format!("{},{}", some(at) as i64 * 2 - 1000, at % 2)
            }),
        ),
    ];
    for (what, rows) in fine {
        let (code, stdout, stderr) = look("", &rows);
        assert_eq!(code, 0, "{what}: {stderr}");
        assert!(!stderr.contains("warning"), "{what}: {stderr}");
        assert!(
            stdout.contains("60 items") || stdout.contains("200 items"),
            "{what}: {stdout}"
        );
    }
}

/// Settings of columns override inference.
#[test]
fn what_is_meant_can_be_said() {
    let zip = rows("zip,y", 60, |at| format!("0{},{}", 1000 + some(at), at % 2));
    let (code, _, stderr) = look("[[data.columns]]\nname = \"zip\"\ntype = \"number\"", &zip);
    assert!(code == 0 && !stderr.contains("warning"), "{stderr}");
    let minus = rows("a,y", 60, |at| {
        format!(
            "{},{}",
            if at % 11 == 0 { -999 } else { some(at) as i64 },
            at % 2
        )
    });
    let (code, _, stderr) = look(
        "[[data.columns]]\nname = \"a\"\nmissing_values = []",
        &minus,
    );
    assert!(code == 0 && !stderr.contains("warning"), "{stderr}");
    let numbered = rows("id,a,y", 60, |at| format!("{at},{},{}", some(at), at % 2));
    let (code, _, stderr) = look("features = [\"id\", \"a\"]", &numbered);
    assert!(code == 0 && !stderr.contains("warning"), "{stderr}");
    let (code, _, stderr) = look("", &numbered);
    assert!(
        code == 0 && stderr.contains("`id` numbers the rows from 0 to 59"),
        "{stderr}"
    );
    let percent = rows("a,y", 90, |at| format!("{}%,{}", at % 30, at % 2));
    let (code, _, stderr) = look(
        "[[data.columns]]\nname = \"a\"\ntype = \"category\"",
        &percent,
    );
    assert!(code == 0 && !stderr.contains("warning"), "{stderr}");
}

/// Ambiguous values are refused with the reason, not guessed.
#[test]
fn what_can_be_read_in_two_ways_is_not_guessed() {
    let mut said = String::new();
    let several = [
        (
            "one comma before three digits",
            rows("a;y", 60, |at| {
                format!("{},{:03};{}", 1 + at, some(at), at % 2)
            }),
            "delimiter = \";\"",
        ),
        (
            "two currencies",
            rows("a,y", 60, |at| {
                format!("{}{},{}", ["$", "€"][at % 2], some(at), at % 2)
            }),
            "",
        ),
        (
            "with and without percent",
            rows("a,y", 60, |at| {
                format!("{}{},{}", some(at), ["", "%"][at % 2], at % 2)
            }),
            "",
        ),
        (
            "brackets",
            rows("a,y", 60, |at| format!("({}),{}", some(at), at % 2)),
            "",
        ),
        (
            "points and commas",
            rows("a;y", 60, |at| {
                format!("{}{}5;{}", some(at), [".", ","][at % 2], at % 2)
            }),
            "delimiter = \";\"",
        ),
        (
            "points with `decimal`",
            rows("a;b;y", 60, |at| format!("{}.5;1,5;{}", some(at), at % 2)),
            "delimiter = \";\"\ndecimal = \",\"",
        ),
        (
            "a mistyped number",
            rows("a,y", 60, |at| {
                format!(
                    "{},{}",
                    if at == 30 {
                        "\"1,5\"".to_owned()
                    } else {
                        format!("{}.5", some(at))
                    },
                    at % 2
                )
            }),
            "",
        ),
        (
            "the names again",
            rows("a,b,y", 60, |at| {
                if at == 30 {
                    "a,b,y".to_owned()
                } else {
                    format!("{},{},{}", some(at), at % 5, at % 2)
                }
            }),
            "",
        ),
        (
            "row names as R writes them",
            rows("a b y", 40, |at| {
                format!("\"{at}\" {} {} {}", some(at), at % 7, at % 2)
            }),
            "delimiter = \" \"",
        ),
        ("letters in another encoding", String::new(), ""),
    ];
    for (what, text, keys) in several {
        let data = format!("type = \"csv\"\npath = \"rows.csv\"\ntarget = \"y\"\n{keys}");
        let folder = folder(&data, &text);
        if text.is_empty() {
            let rows = [&b"a,y\n"[..], b"K\xf6ln,1\nBonn,0\n"].concat();
            fs::write(folder.path().join("rows.csv"), rows).unwrap();
        }
        let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
        assert_eq!(code, 2, "{what}: {stderr}");
        said.push_str(&format!("## {what}\n{}\n", redact(&stderr, folder.path())));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn dates_are_read_by_their_format_and_ordered() {
    let date = |at: usize| {
        let day = some(at) % 360;
        (day / 30 + 1, day % 28 + 1)
    };
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let forms: [(&str, &dyn Fn(usize) -> String); 4] = [
        ("%Y/%m/%d", &|at| {
            format!("2012/{:02}/{:02}", date(at).0, date(at).1)
        }),
        ("%d.%m.%Y", &|at| {
            format!("{:02}.{:02}.2012", date(at).1, date(at).0)
        }),
        ("%b %d, %Y %H:%M", &|at| {
            format!("\"{} {}, 2012 13:00\"", months[date(at).0 - 1], date(at).1)
        }),
        ("%m/%d/%Y", &|at| {
            format!("{}/{}/2012", date(at).0, date(at).1)
        }),
    ];
    let mut splits = Vec::new();
    let mut said = String::new();
    for (format, form) in forms {
        let text = rows("when,a,y", 60, |at| {
            format!("{},{},{}", form(at), some(at), at % 2)
        });
        let order = "split = { order_by = \"when\", valid = 0.5 }";
        let (code, stdout, stderr) = look(&format!("date_format = \"{format}\"\n{order}"), &text);
        assert_eq!(code, 0, "{format}: {stderr}");
        splits.push(
            stdout
                .lines()
                .filter(|line| line.contains(" train "))
                .collect::<String>(),
        );
        let (code, _, stderr) = look(order, &text);
        assert_eq!(code, 2, "{format}: {stderr}");
        said.push_str(&format!("## {format}\n{stderr}\n"));
        // For a feature it is a warning, which contains the format too.
        let (_, _, stderr) = look("", &text);
        assert!(
            stderr.contains(&format!("date_format = \"{format}\"")),
            "{stderr}"
        );
    }
    splits.dedup();
    assert_eq!(splits.len(), 1, "{splits:?}");
    let open = rows("when,a,y", 40, |at| {
        format!(
            "{:02}/{:02}/2012,{},{}",
            at % 12 + 1,
            some(at) % 12 + 1,
            some(at),
            at % 2
        )
    });
    let (_, _, stderr) = look("", &open);
    said.push_str(&format!("## day or month\n{stderr}\n"));
    insta::assert_snapshot!(said);
}

/// Keys that change what is read result in other data: another digest, another run.
#[test]
fn the_keys_are_in_the_identity_of_a_run() {
    let text = rows("a,b,y", 60, |at| {
        format!("{},{},{}", some(at), at % 30 + 1, at % 2)
    });
    let fingerprint = |keys: &str| {
        let data = format!(
            "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"y\"\nmissing = \"drop\"\n{keys}"
        );
        let folder = folder(&data, &text);
        let (code, stdout, stderr) = run(folder.path(), &["plan", "spec.toml", "--json"]);
        assert_eq!(code, 0, "{keys}: {stderr}");
        let plan: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        let digest = plan["runs"][0]["data"]["digest"]
            .as_str()
            .unwrap()
            .to_owned();
        (
            digest,
            plan["runs"][0]["fingerprint"].as_str().unwrap().to_owned(),
        )
    };
    let mut seen = std::collections::BTreeMap::new();
    for keys in [
        "",
        "decimal = \",\"",
        "thousands = \",\"",
        "strip = [\"%\"]",
        "skip_rows_after_header = 1",
        "skip_footer = 1",
        "comment = \"#\"",
        "date_format = \"%d.%m.%Y\"",
        "missing_values = [\"\", 17]",
        "[[data.columns]]\nname = \"b\"\nmissing_values = [17]",
        "[[data.columns]]\nname = \"b\"\nmissing_values = [18]",
    ] {
        let (digest, fingerprint) = fingerprint(keys);
        assert_eq!(seen.insert(digest, keys), None, "{keys}");
        assert_eq!(seen.insert(fingerprint, keys), None, "{keys}");
    }
}

#[test]
fn a_file_of_another_format_is_named() {
    let mut said = String::new();
    let sqlite = [&b"SQLite format 3\0"[..], &[0; 84]].concat();
    let zip = b"PK\x03\x04\x14\0\0\0\x08\0................[Content_Types].xml".to_vec();
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, b"a,y\n1,2\n").unwrap();
        encoder.finish().unwrap()
    };
    let mut png = std::io::Cursor::new(Vec::new());
    GrayImage::new(4, 4)
        .write_to(&mut png, image::ImageFormat::Png)
        .unwrap();
    for (what, kind, bytes) in [
        ("png", "csv", png.into_inner()),
        ("excel", "csv", zip),
        ("gzip without its ending", "csv", gzip),
        ("npy", "json_lines", b"\x93NUMPY\x01\0v\0{'descr'".to_vec()),
        ("parquet", "csv", b"PAR1\x15\x04\x15".to_vec()),
        ("sqlite", "csv", sqlite),
        ("pickle", "json_lines", b"\x80\x04\x95\x1a\0\0\0\0".to_vec()),
        (
            "utf-16",
            "csv",
            b"\xff\xfea\0,\0y\0\n\x001\0,\x002\0".to_vec(),
        ),
        ("json", "csv", b"{\"a\": 1, \"y\": 2}\n".to_vec()),
        (
            "html",
            "csv",
            b"<!doctype html>\n<title>Data</title>\n".to_vec(),
        ),
        ("csv as an array", "npz", b"a,y\n1,2\n".to_vec()),
    ] {
        let folder = folder(
            &format!("type = \"{kind}\"\npath = \"rows.csv\"\ntarget = \"y\""),
            "",
        );
        fs::write(folder.path().join("rows.csv"), bytes).unwrap();
        let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
        assert_eq!(code, 2, "{what}: {stderr}");
        said.push_str(&format!("## {what}\n{}\n", redact(&stderr, folder.path())));
    }
    insta::assert_snapshot!(said);
}

/// A number in an array that means missing is reported, and removed if the file says so.
#[test]
fn arrays_have_numbers_for_missing_values_too() {
    let folder = folder_with(&format!(
        "[data]\ntype = \"npy\"\npath = \"x.npy\"\ntarget_path = \"y.npy\"\n{MODEL}"
    ));
    let x = (0..60).flat_map(|at| {
        let first = if at % 9 == 0 {
            -999.9
        } else {
            some(at) as f32 / 10.0
        };
        [first, (at % 7) as f32]
    });
    let y = (0..60_i64).map(|at| at % 2);
    fs::write(
        folder.path().join("x.npy"),
        npy(
            "<f4",
            "(60, 2)",
            &x.flat_map(f32::to_le_bytes).collect::<Vec<_>>(),
        ),
    )
    .unwrap();
    fs::write(
        folder.path().join("y.npy"),
        npy(
            "<i8",
            "(60,)",
            &y.flat_map(i64::to_le_bytes).collect::<Vec<_>>(),
        ),
    )
    .unwrap();
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("`input` contains -999.9 7 times")
            && stderr.contains("`missing_values = [-999.9]`"),
        "{stderr}"
    );
    let sets = [
        "data",
        "spec.toml",
        "--set",
        "data.missing_values=[-999.9]",
        "--set",
        "data.missing=\"mean\"",
    ];
    let (code, stdout, stderr) = run(folder.path(), &sets);
    assert!(code == 0 && !stderr.contains("warning"), "{stderr}");
    assert!(stdout.contains("0 to 99.6"), "{stdout}");
}

fn write_picture(folder: &Path, name: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let seed = name.bytes().fold(7_u32, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    let picture = GrayImage::from_fn(6, 6, |x, y| {
        image::Luma([(seed.wrapping_mul(x * 5 + y + 1) >> 8) as u8])
    });
    picture.save(path).unwrap();
}

/// A folder of images by their places, `num` in each.
fn pictures(places: &[&str], num: usize) -> tempfile::TempDir {
    let folder = folder_with(&format!(
        "[data]\ntype = \"image_folder\"\npath = \"pictures\"\nchannels = \"gray\"\n{MODEL}"
    ));
    for place in places {
        for at in 0..num {
            write_picture(folder.path(), &format!("pictures/{place}/{at}.png"));
        }
    }
    folder
}

#[test]
fn images_in_other_formats_are_told() {
    let folder = pictures(&["cat", "dog"], 8);
    for name in ["cat/a.webp", "cat/b.BMP", "dog/c.bmp", "dog/notes.txt"] {
        fs::write(folder.path().join("pictures").join(name), "x").unwrap();
    }
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    for said in [
        "warning: 3 images in other formats are left out (2 .bmp, 1 .webp)",
        "convert them, such as to .png",
    ] {
        assert!(stderr.contains(said), "{stderr}");
    }
    fs::create_dir(folder.path().join("pictures/cow")).unwrap();
    fs::write(folder.path().join("pictures/cow/a.gif"), "x").unwrap();
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("images in other formats (1 .gif)") && !stderr.contains("move the folder"),
        "{stderr}"
    );
}

#[test]
fn new_images_in_other_formats_are_told_too() {
    let folder = pictures(&["cat", "dog"], 8);
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    fs::write(folder.path().join("pictures/cat/a.webp"), "x").unwrap();
    let other = "a.webp` is a .webp file; images are read from .png, .jpg and .jpeg files";
    for command in [
        &[
            "predict",
            "results/spec",
            "--data",
            "pictures",
            "--out",
            "p.csv",
        ][..],
        &["evaluate", "results/spec", "--data", "pictures"],
    ] {
        let (code, _, said) = run(folder.path(), command);
        assert_eq!(code, 0, "{said}");
        assert!(said.contains(other), "{command:?}: {said}");
    }
}

#[test]
fn a_missing_text_of_running_text_is_not_left_out_unasked() {
    let rows: String = (0..40)
        .map(|row| format!("{{\"t\": \"row {row}\"}}\n"))
        .collect();
    let spec = |missing: &str| {
        format!(
            "[data]\ntype = \"json_lines\"\npath = \"rows.jsonl\"\nfeatures = \"t\"\ntokens = {{ tokenizer = \"char\", length = 8 }}\ncolumns = [{{ name = \"t\", type = \"text\" }}]\n{missing}\n[model]\ntype = \"transformer_lm\"\nd_model = 8\nnum_heads = 2\nnum_layers = 1\nfeedforward_size = 8\n[optimizer]\ntype = \"sgd\"\nlearning_rate = 0.1\n[train]\nepochs = 1\nbatch_size = 4\n"
        )
    };
    let folder = folder_with(&spec(""));
    fs::write(folder.path().join("rows.jsonl"), rows + "{\"t\": null}\n").unwrap();
    let (code, _, said) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 2, "{said}");
    for part in [
        "values are missing in `t` 1, at `",
        "rows.jsonl:41`",
        "set `missing = \"drop\"` under `[data]`",
    ] {
        assert!(said.contains(part), "{said}");
    }
    fs::write(folder.path().join("spec.toml"), spec("missing = \"drop\"")).unwrap();
    let (code, _, said) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{said}");
}

fn csv(target: &str) -> String {
    format!("type = \"csv\"\npath = \"rows.csv\"\ntarget = {target}")
}

/// Several columns of 0 and 1 are labels, and others numbers.
#[test]
fn several_columns_of_integers_are_labels_or_numbers() {
    let row = |at: usize| format!("{},{},{},{}", some(at), at % 2, (at / 2) % 2, at % 7);
    for (target, task) in [
        ("\"u\", \"v\"", "multi_label"),
        ("\"u\", \"w\"", "regression"),
    ] {
        let folder = folder(&csv(&format!("[{target}]")), &rows("x,u,v,w", 60, row));
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        let plan = fs::read_to_string(folder.path().join("results/spec/runs/base-s1/run.toml"));
        let plan = plan.unwrap();
        assert!(plan.contains(&format!("= \"{task}\"")), "{plan}");
        let predict = ["predict", "results/spec/runs/base-s1", "--split", "valid"];
        let (code, stdout, stderr) = run(folder.path(), &predict);
        assert_eq!(code, 0, "{stderr}");
        let names = stdout.lines().next().unwrap_or_default();
        assert!(names.contains('u'), "{names}");
    }
}

/// Integers are classes, unless the task says otherwise: then the message says how.
#[test]
fn few_integers_can_be_numbers() {
    let row = |at: usize| format!("{},{}", some(at), at % 5);
    let folder = folder(&csv("\"n\""), &rows("x,n", 60, row));
    let task = ["check", "spec.toml", "--set", "task.type=regression"];
    let (code, _, stderr) = run(folder.path(), &task);
    let columns = "[{ name = \"n\", type = \"number\" }]";
    let help = format!("columns = {columns}");
    assert!(code == 2 && stderr.contains(&help), "{stderr}");
    let set = format!("data.columns={columns}");
    let followed = [&task[..], &["--set", &set]].concat();
    let (code, _, stderr) = run(folder.path(), &followed);
    assert_eq!(code, 0, "{stderr}");
}

/// A pattern beside an experiment file that is named without a folder.
#[test]
fn patterns_are_relative_to_a_bare_file() {
    let folder = folder(
        &csv("\"n\""),
        &rows("x,n", 60, |at| format!("{},{}", some(at), at % 2)),
    );
    for (path, code, said) in [
        ("*.csv", 0, "no errors"),
        ("z*.csv", 2, "no file matches `z*.csv`"),
    ] {
        let set = format!("data.path={path}");
        let (got, stdout, stderr) = run(folder.path(), &["check", "spec.toml", "--set", &set]);
        let all = format!("{stdout}{stderr}");
        assert!(got == code && all.contains(said), "{all}");
    }
}

#[test]
fn folders_that_are_split_already_are_taken_so() {
    for (train, valid, test) in [
        ("train", "valid", "test"),
        ("Training", "val", "Testing"),
        ("train", "validation", "test"),
    ] {
        let places: Vec<String> = [train, valid, test]
            .iter()
            .flat_map(|split| [format!("{split}/cat"), format!("{split}/dog")])
            .collect();
        let folder = pictures(&places.iter().map(String::as_str).collect::<Vec<_>>(), 8);
        let (code, stdout, stderr) = run(folder.path(), &["data", "spec.toml"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(
            stdout.contains("cat 8, dog 8") && stdout.contains(" test "),
            "{stdout}"
        );
        let (code, stdout, stderr) = run(folder.path(), &["plan", "spec.toml"]);
        let said = format!(
            "`{train}` is the train split, `{valid}` the valid split, `{test}` the test split"
        );
        assert!(
            code == 0 && format!("{stdout}{stderr}").contains(&said),
            "{stdout}{stderr}"
        );
        let set = ["check", "spec.toml", "--set", "data.split.valid=0.3"];
        let (code, _, stderr) = run(folder.path(), &set);
        assert!(
            code == 2 && stderr.contains("the data has a separate valid split"),
            "{stderr}"
        );
        let (code, _, stderr) = run(
            folder.path(),
            &["init", "--data", "pictures", "--out", "first.toml"],
        );
        assert_eq!(code, 0, "{stderr}");
        let text = fs::read_to_string(folder.path().join("first.toml")).unwrap();
        assert!(
            text.contains(&format!("valid_path = \"pictures/{valid}\""))
                && text.contains(&format!("test_path = \"pictures/{test}\"")),
            "{text}"
        );
        let (code, _, stderr) = run(folder.path(), &["check", "first.toml"]);
        assert_eq!(code, 0, "{stderr}\n{text}");
    }
}

/// A class may be named like a split.
#[test]
fn a_class_that_is_called_train_is_a_class() {
    let folder = pictures(&["train", "bus"], 8);
    let (code, stdout, stderr) = run(folder.path(), &["data", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("2: bus 8, train 8"), "{stdout}");
    assert!(!stderr.contains("split"), "{stderr}");
    let folder = pictures(&["train/old", "train/new", "bus/red"], 8);
    let (code, stdout, stderr) = run(folder.path(), &["data", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("2: train 16, bus 8"), "{stdout}");
    let (_, stdout, stderr) = run(folder.path(), &["plan", "spec.toml"]);
    assert!(
        format!("{stdout}{stderr}").contains("the class of an image is the outer folder"),
        "{stdout}{stderr}"
    );
}

#[test]
fn folders_that_can_be_read_in_two_ways_are_refused() {
    let mut said = String::new();
    for (what, places) in [
        ("pictures without classes", &["train", "valid"][..]),
        (
            "a test split without classes",
            &["train/cat", "train/dog", "test"],
        ),
        (
            "other classes in valid",
            &["train/cat", "train/dog", "valid/cat", "valid/cow"],
        ),
        (
            "something beside splits",
            &["train/cat", "train/dog", "valid/cat", "valid/dog", "extra"],
        ),
        (
            "two names of one split",
            &[
                "train/cat",
                "train/dog",
                "val/cat",
                "val/dog",
                "valid/cat",
                "valid/dog",
            ],
        ),
        (
            "deeper",
            &["train/cat/a", "train/dog/a", "valid/cat/a", "valid/dog/a"],
        ),
        (
            "folds",
            &["fold1/cat", "fold1/dog", "fold2/cat", "fold2/dog"],
        ),
        (
            "splits within classes",
            &["cat/train", "cat/test", "dog/train", "dog/test"],
        ),
        ("one folder around", &["data/cat", "data/dog"]),
        (
            "splits in a folder around",
            &[
                "data/train/cat",
                "data/train/dog",
                "data/valid/cat",
                "data/valid/dog",
            ],
        ),
    ] {
        let folder = pictures(places, 2);
        let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
        assert_eq!(code, 2, "{what}: {stderr}");
        said.push_str(&format!("## {what}\n{}\n", redact(&stderr, folder.path())));
    }
    let folder = pictures(&["train", "valid"], 2);
    for split in ["train", "valid"] {
        fs::create_dir_all(folder.path().join("masks").join(split)).unwrap();
    }
    let sets = ["check", "spec.toml", "--set", "data.target_path=\"masks\""];
    let (code, _, stderr) = run(folder.path(), &sets);
    assert_eq!(code, 2, "{stderr}");
    said.push_str(&format!(
        "## with masks\n{}\n",
        redact(&stderr, folder.path())
    ));
    insta::assert_snapshot!(said);
}
