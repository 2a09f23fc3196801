//! Folders of images, from files to a report.

use std::fs;
use std::path::Path;

use image::GrayImage;

use super::support::{redact, run};

/// A bright rectangle somewhere in an image, and its position.
fn write_item(folder: &Path, at: u32, lit: u8) {
    let is_in = |x: u32, y: u32| {
        let (left, top) = (at * 5 % 7, at * 3 % 6);
        (left..left + 5).contains(&x) && (top..top + 4).contains(&y)
    };
    let noise = |x: u32, y: u32| ((x * 37 + y * 91 + at * 53) % 60) as u8;
    let picture = GrayImage::from_fn(12, 12, |x, y| {
        image::Luma([noise(x, y) + if is_in(x, y) { 150 } else { 20 }])
    });
    let mask = GrayImage::from_fn(12, 12, |x, y| {
        image::Luma([if is_in(x, y) { lit } else { 0 }])
    });
    picture
        .save(folder.join(format!("pictures/{at:02}.png")))
        .unwrap();
    mask.save(folder.join(format!("masks/{at:02}.png")))
        .unwrap();
}

const SPEC: &str = r#"
[data]
type = "image_folder"
path = "pictures"
target_path = "masks"
channels = "gray"
augment = { flip = 0.5, crop = 1, rotate = 10.0, erase = 0.2 }

[model]
layers = [
    { type = "conv2d", out_channels = 8, kernel_size = 3, padding = "same" },
    { type = "relu" },
    { type = "conv2d", kernel_size = 3, padding = "same" },
]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 15
batch_size = 8
"#;

fn folder(lit: u8) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["pictures", "masks"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    (0..40).for_each(|at| write_item(folder.path(), at, lit));
    fs::write(folder.path().join("spec.toml"), SPEC).unwrap();
    folder
}

fn summary(folder: &Path) -> serde_json::Value {
    let report = fs::read_to_string(folder.join("results/spec/report.json")).unwrap();
    serde_json::from_str(&report).unwrap()
}

#[test]
fn masks_are_learned_with_changed_pictures() {
    let folder = folder(255);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let report = summary(folder.path());
    let reached = &report["trials"][0]["metrics"]["valid/accuracy"]["mean"];
    assert!(reached.as_f64().unwrap() > 0.93, "{reached}");
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(text.contains("2 classes for each of [12, 12]"), "{text}");
}

#[test]
fn pixels_that_do_not_count_are_no_class() {
    let folder = folder(2);
    let mask = folder.path().join("masks/07.png");
    let mut image = image::open(&mask).unwrap().into_luma8();
    image.put_pixel(0, 0, image::Luma([255]));
    image.save(&mask).unwrap();
    let sets = ["run", "spec.toml", "--quiet", "--set", "train.epochs=1"];
    let (code, _, stderr) = run(folder.path(), &sets);
    assert_eq!(code, 0, "{stderr}");
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(text.contains("3 classes for each of [12, 12]"), "{text}");
}

#[test]
fn what_cannot_be_decoded_is_refused_or_left_out() {
    let folder = folder(1);
    let mut shown = Vec::new();
    let mut check = |what: &str, sets: &[&str]| {
        let arguments = [&["run", "spec.toml", "--quiet"], sets].concat();
        let (code, _, stderr) = run(folder.path(), &arguments);
        let text = redact(&stderr, folder.path());
        shown.push(format!("{what}: exit code {code}\n{text}"));
    };
    let damaged = folder.path().join("pictures/11.png");
    let bytes = fs::read(&damaged).unwrap();
    fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
    check("damaged", &[]);
    let skip = [
        "--set",
        "data.on_bad_item=\"skip\"",
        "--set",
        "train.epochs=1",
    ];
    check("left out", &skip);
    fs::remove_file(folder.path().join("masks/05.png")).unwrap();
    fs::write(&damaged, bytes).unwrap();
    check("without its mask", &[]);
    let pictures = ["--set", "data.path=\"nowhere\""];
    check("no folder", &pictures);
    insta::assert_snapshot!(shown.join("\n"));
}
