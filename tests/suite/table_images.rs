//! Pictures that a table names beside its numbers: trained on, part of the identity of a run, found beside new tables.

use std::fs;
use std::path::Path;

use image::{GrayImage, Luma};

use super::edit::Edit;
use super::support::peers::python_with;
use super::support::{folder_with, plan_in, run};
use burn_runner::model::{Model, Options};

const SPEC: &str = r#"
[data]
type = "csv"
path = "data/rows.csv"
target = "kind"

[[data.columns]]
name = "photo"
image = { folder = "data/photos", size = [6, 6], channels = "gray" }

[[data.inputs]]
name = "picture"
columns = ["photo"]

[[data.inputs]]
name = "rest"

[[model.layers]]
type = "flatten"
name = "pixels"
inputs = ["picture"]

[[model.layers]]
type = "concat"
inputs = ["pixels", "rest"]

[[model.layers]]
type = "linear"

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 2
batch_size = 8
"#;

/// A table with its pictures of `side` pixels in a folder beside it.
fn write(folder: &Path, num: usize, side: u32) {
    let photos = folder.join("photos/a");
    fs::create_dir_all(&photos).unwrap();
    let mut rows = "photo,width,height,kind\n".to_owned();
    for at in 0..num {
        let light = (at * 37 % 200) as u32;
        let shade = |x: u32, y: u32| Luma([(light + x * 3 + y) as u8]);
        let path = photos.join(format!("{at}.png"));
        GrayImage::from_fn(side, side, shade).save(path).unwrap();
        let kind = if light > 100 { "bright" } else { "dark" };
        rows += &format!("a/{at}.png,{},{},{kind}\n", at % 5, at % 3);
    }
    fs::write(folder.join("rows.csv"), rows).unwrap();
}

fn trained() -> tempfile::TempDir {
    let folder = folder_with(SPEC);
    write(&folder.path().join("data"), 40, 6);
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    folder
}

/// As PyTorch does with pictures that PIL decodes.
#[test]
fn pictures_of_a_table_are_trained_on() {
    // torchvision brings PIL.
    if let Some(python) = python_with(&["torch", "torchvision", "numpy"]) {
        let program = Path::new(env!("CARGO_BIN_EXE_runner"));
        python.run("table_images_check.py", &[program]);
    }
}

#[test]
fn new_pictures_are_beside_their_table() {
    let folder = trained();
    let predict = |data: &str, more: &[&str]| {
        let arguments = ["predict", "results/spec", "--data", data, "--out", "-"];
        run(folder.path(), &[&arguments, more].concat())
    };
    let (code, known, said) = predict("data/rows.csv", &[]);
    assert_eq!(code, 0, "{said}");
    write(&folder.path().join("elsewhere"), 40, 6);
    assert_eq!(predict("elsewhere/rows.csv", &[]).1, known);
    // Other pictures are other predictions, and other sizes are resized.
    write(&folder.path().join("elsewhere"), 40, 12);
    let (code, larger, said) = predict("elsewhere/rows.csv", &[]);
    assert_eq!(code, 0, "{said}");
    assert_ne!(larger, known);

    let rows =
        "photo,width,height\na/1.png,1,2\n../rows.csv,1,2\na/none.png,1,2\n,1,2\nrows.png,1,2\n";
    fs::write(folder.path().join("elsewhere/wrong.csv"), rows).unwrap();
    fs::write(folder.path().join("elsewhere/photos/rows.png"), "text").unwrap();
    let (code, _, said) = predict("elsewhere/wrong.csv", &[]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("`../rows.csv` is not a path within the folder of the images"),
        "{said}"
    );
    let (code, found, said) = predict("elsewhere/wrong.csv", &["--on-bad-item", "skip"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(found.lines().count(), 2, "{found}");
    for reason in [
        "column `photo`: `a/none.png` cannot be read",
        "column `photo`: there is no image",
        "column `photo`: `rows.png` is not a png or jpeg by its content",
    ] {
        assert!(said.contains(reason), "{reason}\n{said}");
    }
}

/// A client must not read files of the server.
#[test]
fn rows_without_a_file_have_pixels_instead_of_paths() {
    let folder = trained();
    let run = folder.path().join("results/spec/runs/base-s1");
    let model = Model::open(&run, &Options::default()).unwrap();
    let refused = model
        .predict_objects(&[r#"{"photo": "a/1.png", "width": 1, "height": 2}"#])
        .unwrap_err();
    let text = format!("{refused:?}");
    assert!(
        text.contains("`a/1.png` is a path, but rows without a file"),
        "{text}"
    );
    let pixels = format!("[{}]", vec![format!("{:?}", [7; 6]); 6].join(","));
    let row = format!(r#"{{"photo": [{pixels}], "width": 1, "height": 2}}"#);
    assert_eq!(model.predict_objects(&[&row]).unwrap().len(), 1);
}

#[test]
fn pictures_are_part_of_the_identity_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("data"), 40, 6);
    let planned = |text: &str| {
        let (plan, _) = plan_in(Some(folder.path()), "spec.toml", text).unwrap();
        plan.runs[0].fingerprint.clone()
    };
    let before = planned(SPEC);
    assert_eq!(planned(SPEC), before);
    let at = |name: &str| folder.path().join(name);
    // The place of the folder does not matter, but how its pictures are read does.
    fs::rename(at("data/photos"), at("moved")).unwrap();
    let moved = SPEC.edit("data/photos", "moved");
    assert_eq!(planned(&moved), before);
    let larger = moved.edit("[6, 6]", "[7, 6]");
    assert_ne!(planned(&larger), before);
    fs::copy(at("moved/a/3.png"), at("moved/a/4.png")).unwrap();
    assert_ne!(planned(&moved), before);
}
