//! Arrays of every format, valid and invalid.

use std::fs;
use std::io::Write;
use std::path::Path;

use rand::{SeedableRng, rngs::ChaCha8Rng};

use crate::data::DataError;
use crate::data::read::read;
use crate::data::records::{ColumnKind, NO_NUMBER, Records, Writer};
use crate::spec::data::{FilesSpec, Format, OnBadItem, Targets};
use crate::testing::{damaged, rewrite};

fn spec(format: Format, path: &[&Path]) -> FilesSpec {
    let path = path.iter().map(|path| path.display().to_string());
    FilesSpec::of_format(format, path.collect())
}

fn npy_spec(inputs: &[&Path], targets: &[&Path]) -> FilesSpec {
    let path = targets.iter().map(|path| path.display().to_string());
    let targets = Targets {
        path: path.collect(),
        ..Targets::default()
    };
    spec(Format::Npy { targets }, inputs)
}

fn idx_spec(inputs: &Path, targets: &Path) -> FilesSpec {
    let targets = Targets {
        path: vec![targets.display().to_string()],
        ..Targets::default()
    };
    spec(Format::Idx { targets }, &[inputs])
}

fn load(files: &FilesSpec) -> Result<Records, DataError> {
    let mut writer = Writer::in_memory();
    read(files, &mut writer, &|_, _| {})?;
    Ok(writer.into_records())
}

/// The message with its remedy, without the folder's name.
fn refusal(files: &FilesSpec, folder: &Path) -> String {
    let error = load(files).err().map(|error| error.to_string());
    let shown = format!("{}/", folder.display());
    error.unwrap_or("it was read".into()).replace(&shown, "")
}

/// A file as NumPy writes it.
fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(values);
    bytes
}

fn floats(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn longs(values: &[i64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn column(records: &Records, name: &str) -> Vec<f64> {
    let at = records.column(name).unwrap();
    let mut values = Vec::new();
    for item in 0..records.len() {
        records.numbers(item, at, |value| values.push(value));
    }
    values
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// What Python wrote into `tests/data`.
fn hold(records: &Records, has_big: bool) {
    let kind = |name: &str| &records.columns()[records.column(name).unwrap()].kind;
    assert_eq!(records.len(), 4);
    let x: Vec<_> = (0..24).map(|at| f64::from(at) / 8.0).collect();
    assert_eq!(column(records, "x"), x);
    assert_eq!(
        records.columns()[records.column("x").unwrap()].shape,
        [2, 3]
    );
    assert_eq!(
        column(records, "h"),
        [0.0999755859375, -2.0, 65504.0, 2_f64.powi(-24)]
    );
    let d = column(records, "d");
    assert_eq!(&d[..3], [0.1, 1e30, -1e-300]);
    assert!(d[3].is_nan());
    assert_eq!(column(records, "b"), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(
        column(records, "u8"),
        [246.0, 247.0, 248.0, 249.0, 250.0, 251.0, 252.0, 253.0]
    );
    assert_eq!(column(records, "u16"), [0.0, 1.0, 65535.0, 7.0]);
    assert_eq!(
        column(records, "i64"),
        [-5.0, 0.0, 2147483647.0, -2147483647.0]
    );
    assert_eq!(column(records, "y"), [2.0, 0.0, 1.0, 2.0]);
    assert_eq!(
        (kind("x"), kind("d")),
        (&ColumnKind::Numbers, &ColumnKind::Doubles)
    );
    assert_eq!(
        (kind("u8"), kind("y")),
        (&ColumnKind::Bytes, &ColumnKind::Whole)
    );
    if has_big {
        assert_eq!(column(records, "big"), [1.5, -2.5, 3.25, 1e10]);
        assert_eq!(column(records, "bigi"), [1.0, -2.0, 3.0, 70000.0]);
    }
}

#[test]
fn what_python_wrote_is_read() {
    for (name, format) in [
        ("stored.npz", Format::Npz),
        ("deflated.npz", Format::Npz),
        ("python.safetensors", Format::Safetensors),
    ] {
        let path = fixture(name);
        let mut files = spec(format, &[&path, &path]);
        files.path.pop();
        files.roles.target = vec!["y".into()];
        hold(&load(&files).unwrap(), name.ends_with("npz"));
    }
}

#[test]
fn named_arrays_are_those_asked_for() {
    let path = fixture("stored.npz");
    let mut files = spec(Format::Npz, &[&path]);
    let names = |files: &FilesSpec| {
        let records = load(files).unwrap();
        let names = records.columns().iter().map(|column| column.name.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&files), "x h d b u8 u16 i64 big bigi y");
    files.roles.ignore = ["d", "big", "bigi"].map(str::to_owned).to_vec();
    assert_eq!(names(&files), "x h b u8 u16 i64 y");
    files.roles.ignore.push("c".into());
    let message = refusal(&files, path.parent().unwrap());
    insta::assert_snapshot!(message, @"`stored.npz` has no array `c`; its arrays: `x`, `h`, `d`, `b`, `u8`, `u16`, `i64`, `big`, `bigi`, `y`; remove it from `ignore`");
    files.roles.ignore.pop();
    files.roles.features = Some(vec!["d".into()]);
    let message = refusal(&files, path.parent().unwrap());
    insta::assert_snapshot!(message, @"`d` is in `ignore`, but is used as well; remove `d` from `ignore`, or where it is used");
    files.roles.features = Some(vec!["u8".into(), "x".into(), "u8".into()]);
    files.roles.target = vec!["y".into()];
    assert_eq!(names(&files), "u8 x y h b u16 i64");
    files.roles.target = vec!["z".into()];
    let message = refusal(&files, path.parent().unwrap());
    insta::assert_snapshot!(message, @"`stored.npz` has no array `z`; its arrays: `x`, `h`, `d`, `b`, `u8`, `u16`, `i64`, `big`, `bigi`, `y`");
}

#[test]
fn npy_files_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(
        at("a.npy"),
        npy("<f4", "(2, 2)", &floats(&[1.0, 2.0, 3.0, 4.0])),
    )
    .unwrap();
    let big: Vec<_> = [5.0_f32, 6.0]
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    fs::write(at("b.npy"), npy(">f4", "(1, 2)", &big)).unwrap();
    fs::write(at("y.npy"), npy("<i8", "(3,)", &longs(&[7, -8, 9]))).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&npy("|u1", "(3,)", &[7, 8, 9])).unwrap();
    fs::write(at("y.npy.gz"), encoder.finish().unwrap()).unwrap();
    let mut files = npy_spec(&[&at("a.npy"), &at("b.npy")], &[&at("y.npy")]);
    let records = load(&files).unwrap();
    assert_eq!(column(&records, "input"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(column(&records, "target"), [7.0, -8.0, 9.0]);
    assert_eq!(records.columns()[1].kind, ColumnKind::Whole);
    if let Format::Npy { targets } = &mut files.format {
        targets.path = vec![at("y.npy.gz").display().to_string()];
        targets.test_path = vec![at("y.npy").display().to_string()];
    }
    files.test_path = vec![
        at("a.npy").display().to_string(),
        at("b.npy").display().to_string(),
    ];
    let records = load(&files).unwrap();
    assert_eq!(column(&records, "target"), [7.0, 8.0, 9.0, 7.0, -8.0, 9.0]);
    assert_eq!(records.header.parts, [3, 0, 3]);
    let alone = npy_spec(&[&at("a.npy")], &[]);
    assert_eq!(load(&alone).unwrap().columns().len(), 1);
}

#[test]
fn what_npyz_wrote_is_read() {
    use npyz::WriterBuilder;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let values: Vec<_> = (0..6).map(|at| f64::from(at) / 3.0).collect();
    let mut bytes = Vec::new();
    let options = npyz::WriteOptions::new().default_dtype().shape(&[3, 2]);
    let mut writer = options.writer(&mut bytes).begin_nd().unwrap();
    writer.extend(values.iter()).unwrap();
    writer.finish().unwrap();
    fs::write(&path, bytes).unwrap();
    assert_eq!(
        column(&load(&npy_spec(&[&path], &[])).unwrap(), "input"),
        values
    );
}

/// Several pieces, with a skipped item in each.
#[test]
fn pieces_and_bad_items() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let num = 600_000;
    let mut values: Vec<i64> = (0..2 * num).collect();
    values[3] = 1 << 40;
    values[1_199_999] = i64::from(NO_NUMBER);
    fs::write(&path, npy("<i8", &format!("({num}, 2)"), &longs(&values))).unwrap();
    let mut files = npy_spec(&[&path], &[]);
    insta::assert_snapshot!(refusal(&files, folder.path()), @r#"`x.npy`, item 1: 1099511627776 does not fit a 32-bit integer; store such numbers as f64; fix it, or set `on_bad_item = "skip"` under `[data]` to skip such items"#);
    files.on_bad_item = OnBadItem::Skip;
    let records = load(&files).unwrap();
    assert_eq!(records.len(), num as usize - 2);
    assert_eq!(
        (records.number(0, 0, 1), records.number(1, 0, 0)),
        (1.0, 4.0)
    );
    assert_eq!(records.number(records.len() - 1, 0, 1), 1_199_997.0);
    let skipped: Vec<_> = records
        .header
        .skipped
        .iter()
        .map(|item| &item.reason)
        .collect();
    assert_eq!(skipped.len(), 2);
    assert!(
        records.header.skipped[1]
            .place
            .ends_with("x.npy`, item 599999"),
        "{skipped:?}"
    );
}

fn idx(kind: u8, sizes: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, kind, sizes.len() as u8];
    bytes.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
    bytes.extend(values);
    bytes
}

#[test]
fn idx_of_bytes_and_others() {
    let folder = tempfile::tempdir().unwrap();
    let (x, y) = (folder.path().join("x"), folder.path().join("y"));
    fs::write(&x, idx(8, &[2, 1, 3], &[0, 1, 2, 3, 4, 255])).unwrap();
    fs::write(&y, idx(8, &[2], &[9, 0])).unwrap();
    let records = load(&idx_spec(&x, &y)).unwrap();
    assert_eq!(column(&records, "input"), [0.0, 1.0, 2.0, 3.0, 4.0, 255.0]);
    assert_eq!(records.columns()[0].shape, [1, 1, 3]);
    assert_eq!(records.columns()[0].kind, ColumnKind::Bytes);
    assert_eq!(column(&records, "target"), [9.0, 0.0]);
    assert_eq!(records.columns()[1].kind, ColumnKind::Whole);
    fs::write(&x, idx(0x0b, &[2, 1], &[0xff, 0xfe, 1, 0])).unwrap();
    assert_eq!(
        column(&load(&idx_spec(&x, &y)).unwrap(), "input"),
        [-2.0, 256.0]
    );
    let floats: Vec<_> = [0.5_f32, -3.0]
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    fs::write(&x, idx(0x0d, &[2], &floats)).unwrap();
    assert_eq!(
        column(&load(&idx_spec(&x, &y)).unwrap(), "input"),
        [0.5, -3.0]
    );
    fs::write(&x, idx(0x0d, &[2, 2], &floats)).unwrap();
    insta::assert_snapshot!(refusal(&idx_spec(&x, &y), folder.path()), @"`x` is damaged: its header declares 16 bytes of data, found 8; delete the file, then download or copy it again");
}

#[test]
fn wrong_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, bytes: &[u8]| fs::write(at(name), bytes).unwrap();
    let good = npy("<f4", "(2, 2)", &floats(&[1.0, 2.0, 3.0, 4.0]));
    write("good.npy", &good);
    write("empty.npy", b"");
    write("text.npy", b"1,2,3\n4,5,6\n");
    write("zip.npy", b"PK\x03\x04abcdefgh");
    write("cut_header.npy", &good[..40]);
    write("cut_values.npy", &good[..good.len() - 3]);
    write("longer.npy", &[good.as_slice(), b"x"].concat());
    write("single.npy", &npy("<f4", "()", &floats(&[1.0])));
    write("no_items.npy", &npy("<f4", "(0, 2)", &[]));
    write("no_values.npy", &npy("<f4", "(2, 0)", &[]));
    write("huge.npy", &npy("<f4", "(4294967296, 4294967296)", &[]));
    write(
        "large.npy",
        &npy("<f4", "(2, 1099511627776)", &floats(&[1.0])),
    );
    write("names.npy", &npy("<U4", "(2,)", &[0; 32]));
    write("objects.npy", &npy("|O", "(2,)", &[0; 32]));
    write("complex.npy", &npy("<c8", "(2,)", &[0; 16]));
    write("three.npy", &npy("<f4", "(3,)", &floats(&[1.0; 3])));
    write("wide.npy", &npy("<f4", "(2, 3)", &floats(&[1.0; 6])));
    write("doubles.npy", &npy("<f8", "(2, 2)", &[0; 32]));
    write("bytes.npy", &npy("|u1", "(2, 2)", &[0; 4]));
    write(
        "infinite.npy",
        &npy("<f4", "(1, 2)", &floats(&[1.0, f32::INFINITY])),
    );
    let mut bytes = good.clone();
    let start = bytes.windows(5).position(|word| word == b"False").unwrap();
    bytes[start..start + 5].copy_from_slice(b"True ");
    write("fortran.npy", &bytes);
    let mut deep = b"\x93NUMPY\x01\x00\xff\xff".to_vec();
    deep.extend([b'('; 0xffff]);
    write("deep.npy", &deep);
    fs::create_dir(at("folder.npy")).unwrap();
    let mut shown = String::new();
    let mut show = |files: FilesSpec| {
        shown.push_str(&refusal(&files, folder.path()));
        shown.push('\n');
    };
    for name in [
        "missing",
        "folder",
        "empty",
        "text",
        "zip",
        "cut_header",
        "cut_values",
        "longer",
        "single",
        "no_items",
        "no_values",
        "huge",
        "large",
        "names",
        "objects",
        "complex",
        "fortran",
        "deep",
        "infinite",
    ] {
        show(npy_spec(&[&at(&format!("{name}.npy"))], &[]));
    }
    show(npy_spec(&[&at("good.npy")], &[&at("three.npy")]));
    for name in ["wide", "doubles", "bytes"] {
        show(npy_spec(
            &[&at("good.npy"), &at(&format!("{name}.npy"))],
            &[],
        ));
    }
    let mut files = npy_spec(&[&at("good.npy")], &[&at("good.npy")]);
    files.test_path = vec![at("good.npy").display().to_string()];
    show(files);
    // Archives and tensors.
    let npz = |format: Format, name: &str| spec(format, &[&at(name)]);
    write("text.npz", b"1,2,3\n4,5,6\n");
    write("empty.npz", b"");
    write("empty.safetensors", b"");
    write("text.safetensors", b"1,2,3\n4,5,6\n");
    for name in ["empty.npz", "text.npz"] {
        show(npz(Format::Npz, name));
    }
    for name in ["empty.safetensors", "text.safetensors"] {
        show(npz(Format::Safetensors, name));
    }
    for (name, arrays) in [
        (
            "numbers.npz",
            &[("x", &good), ("n", &npy("<f4", "()", &floats(&[1.0])))][..],
        ),
        (
            "lengths.npz",
            &[("x", &good), ("y", &npy("<f4", "(3,)", &floats(&[1.0; 3])))][..],
        ),
        (
            "names.npz",
            &[("x", &good), ("y", &npy("<U1", "(2,)", &[0; 8]))][..],
        ),
        ("cut.npz", &[("x", &good[..good.len() - 3].to_vec())][..]),
        ("other.npz", &[("readme", &good)][..]),
    ] {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let stored = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored);
        for (array, bytes) in arrays {
            let file = if *array == "readme" {
                "readme.txt".into()
            } else {
                format!("{array}.npy")
            };
            zip.start_file(file, stored).unwrap();
            zip.write_all(bytes).unwrap();
        }
        let bytes = zip.finish().unwrap().into_inner();
        write(name, &bytes);
        show(npz(Format::Npz, name));
    }
    let mut files = spec(Format::Npz, &[&fixture("stored.npz"), &at("names.npz")]);
    files.roles.features = Some(vec!["x".into(), "u8".into()]);
    let tests = fixture("");
    show(files);
    let shown = shown.replace(&tests.display().to_string(), "");
    insta::assert_snapshot!(shown);
}

/// Every format, truncated at many lengths and with changed bytes: read or refused, and never a panic.
#[test]
fn damaged_files_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let npy_file = npy("<f4", "(2, 2)", &floats(&[1.0, 2.0, 3.0, 4.0]));
    let cases = [
        (npy_file, npy_spec(&[&path], &[])),
        (
            fs::read(fixture("stored.npz")).unwrap(),
            spec(Format::Npz, &[&path]),
        ),
        (
            fs::read(fixture("deflated.npz")).unwrap(),
            spec(Format::Npz, &[&path]),
        ),
        (
            fs::read(fixture("python.safetensors")).unwrap(),
            spec(Format::Safetensors, &[&path]),
        ),
        (
            idx(8, &[2, 1, 3], &[0, 1, 2, 3, 4, 255]),
            spec(
                Format::Idx {
                    targets: Targets::default(),
                },
                &[&path],
            ),
        ),
    ];
    for (bytes, files) in cases {
        fs::write(&path, &bytes).unwrap();
        let right = load(&files).unwrap().len();
        for len in (0..bytes.len()).step_by(1 + bytes.len() / 60) {
            rewrite(&path, &bytes[..len]);
            assert!(load(&files).is_err(), "{:?} cut at {len}", files.format);
        }
        for _ in 0..150 {
            rewrite(&path, damaged(&bytes, &mut rng));
            if let Ok(records) = load(&files) {
                assert!(records.len() <= 1000 * right);
            }
        }
    }
}
