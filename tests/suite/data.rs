//! Data files that are missing or damaged, with their exact messages.

use std::fs;
use std::path::Path;

use super::edit::Edit;
use super::support::{folder_with, idx, mnist, run};

const SPEC: &str = r#"
[data]
type = "mnist"
root = "data"
part = "test"
download = false

[model]
type = "mlp"
hidden = [8]

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 1
batch_size = 8
"#;

fn images(num: u32, magic: u8, num_bytes: usize) -> Vec<u8> {
    let pixels = (0..num_bytes).map(|i| (i % 251) as u8);
    idx::file(magic, &[num, 28, 28], pixels)
}

fn labels(values: &[u8]) -> Vec<u8> {
    idx::file(1, &[values.len() as u32], values.iter().copied())
}

/// Runs the spec on two files and returns exit code and messages without the folder's name.
fn train_on(images: (&str, &[u8]), labels: (&str, &[u8])) -> (i32, String) {
    let folder = folder_with(SPEC);
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join(images.0), images.1).unwrap();
    fs::write(data.join(labels.0), labels.1).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    let refused = code != 0;
    assert!(
        !refused || !folder.path().join("results").exists(),
        "a refusal wrote something"
    );
    let real = fs::canonicalize(&data).unwrap();
    (code, stderr.replace(&real.display().to_string(), "[DATA]"))
}

/// What is wrong, the images' file and its bytes, the labels' bytes.
type Case<'a> = (&'a str, (&'a str, &'a [u8]), &'a [u8]);

const IMAGES: &str = "t10k-images-idx3-ubyte";
const LABELS: &str = "t10k-labels-idx1-ubyte";
const ZIPPED_IMAGES: &str = "t10k-images-idx3-ubyte.gz";

fn digits(num: usize) -> Vec<u8> {
    labels(&(0..num).map(|i| (i % 10) as u8).collect::<Vec<_>>())
}

#[test]
fn damaged_files_are_refused() {
    let whole = images(40, 3, 40 * 784);
    let good = digits(40);
    let mut out_of_range = good.clone();
    out_of_range[8 + 7] = 12;
    let mut wide = whole.clone();
    wide[15] = 29;
    let gzip = idx::zipped(&whole);
    let half_of_gzip = &gzip[..gzip.len() / 2];
    let cases: [Case; 9] = [
        ("truncated", (IMAGES, &whole[..20_000]), &good),
        ("truncated within its header", (IMAGES, &whole[..10]), &good),
        ("truncated gzip", (ZIPPED_IMAGES, half_of_gzip), &good),
        ("not gzip", (ZIPPED_IMAGES, &whole), &good),
        (
            "longer than it says",
            (IMAGES, &images(40, 3, 40 * 784 + 5)),
            &good,
        ),
        ("wrong magic", (IMAGES, &images(40, 1, 40 * 784)), &good),
        ("other image size", (IMAGES, &wide), &good),
        ("label out of range", (IMAGES, &whole), &out_of_range),
        ("fewer labels than images", (IMAGES, &whole), &digits(39)),
    ];
    let mut messages = String::new();
    for (what, images, labels) in cases {
        let (code, message) = train_on(images, (LABELS, labels));
        assert_eq!(code, 2, "{what}: {message}");
        messages.push_str(&format!("# {what}\n{message}\n"));
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn plain_and_gzipped_files_are_read() {
    let whole = images(40, 3, 40 * 784);
    let (code, message) = train_on((IMAGES, &whole), (LABELS, &digits(40)));
    assert_eq!(code, 0, "{message}");
    let (code, message) = train_on((ZIPPED_IMAGES, &idx::zipped(&whole)), (LABELS, &digits(40)));
    assert_eq!(code, 0, "{message}");
}

#[test]
fn the_official_test_part_is_the_test_split() {
    let folder = folder_with(&SPEC.edit("part = \"test\"\n", ""));
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(
        data.join("train-images-idx3-ubyte"),
        images(50, 3, 50 * 784),
    )
    .unwrap();
    fs::write(data.join("train-labels-idx1-ubyte"), digits(50)).unwrap();
    fs::write(
        data.join(ZIPPED_IMAGES),
        idx::zipped(&images(20, 3, 20 * 784)),
    )
    .unwrap();
    fs::write(data.join(LABELS), digits(20)).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(
        report.contains("`mnist`: 40 train, 10 valid, 20 test items"),
        "{report}"
    );
    assert!(report.contains("test/accuracy"), "{report}");
}

#[test]
fn missing_files_are_refused_with_the_command_to_fetch_them() {
    let folder = folder_with(SPEC);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 2);
    insta::assert_snapshot!(super::support::redact(&stderr, folder.path()));
}

#[test]
fn a_declared_fallback_is_said_everywhere() {
    let spec = SPEC.edit(
        "download = false",
        "download = false\nfallback = \"digits\"",
    );
    let folder = folder_with(&spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let said = "`digits` (1,797 UCI digits at 28x28) replaces `mnist`";
    assert!(stderr.contains(said), "{stderr}");
    let read =
        |path: &str| fs::read_to_string(folder.path().join("results/spec").join(path)).unwrap();
    assert!(read("runs/base-s1/environment.json").contains(said));
    assert!(read("report.md").lines().nth(2).unwrap().contains(said));
}

#[test]
fn each_run_records_its_own_data() {
    let folder = folder_with(&format!(
        "{}\n[sweep.grid]\ndata = [{{ type = \"mnist\", root = \"data\", part = \"test\", download = false, fallback = \"digits\" }}, {{ type = \"iris\" }}]\n",
        SPEC.split("[model]")
            .nth(1)
            .map(|rest| format!("[model]{rest}"))
            .unwrap()
    ));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let read =
        |path: &str| fs::read_to_string(folder.path().join("results/spec").join(path)).unwrap();
    let of_mnist = "data=mnist+download=false+fallback=digits+part=test+root=data-s1";
    assert!(read(&format!("runs/{of_mnist}/environment.json")).contains("replaces"));
    assert!(!read("runs/data=iris-s1/environment.json").contains("replaces"));
    let report = read("report.md");
    assert_eq!(report.matches("; sha256 of train: ").count(), 2, "{report}");
}

#[test]
fn the_real_files_are_split_as_declared() {
    let Some(mnist) = mnist() else { return };
    let folder = folder_with(&SPEC.edit("\"data\"", &format!("{:?}", mnist.display().to_string())));
    let (code, json, stderr) = run(folder.path(), &["plan", "spec.toml", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let plan: serde_json::Value = serde_json::from_str(&json).unwrap();
    let data = &plan["runs"][0]["data"];
    assert_eq!(
        (&data["num_train"], &data["num_valid"]),
        (&8000.into(), &2000.into())
    );
    assert!(Path::new(data["folder"].as_str().unwrap()).is_absolute());
}
