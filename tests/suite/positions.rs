//! Classes of positions along any number of axes, and targets that are images.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::suite::support::{done, npy, run};

const NUM: usize = 16;

/// Items of one channel of bytes, whose class at each position is 1 where the byte is large, as bytes and as integers.
fn write(folder: &Path, shape: &[usize]) {
    let len = NUM * shape.iter().product::<usize>();
    let large: Vec<bool> = (0..len).map(|at| (at * at / 3) % 2 == 1).collect();
    let bytes: Vec<u8> = large.iter().map(|large| u8::from(*large) * 200).collect();
    let classes: Vec<u8> = large.iter().map(|large| u8::from(*large)).collect();
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let x = npy("|u1", &format!("({NUM}, 1, {sizes})"), &bytes);
    fs::write(folder.join("x.npy"), x).unwrap();
    let y = npy("|u1", &format!("({NUM}, {sizes})"), &classes);
    fs::write(folder.join("y.npy"), y).unwrap();
}

fn spec(layer: &str, data: &str, more: &str) -> String {
    format!(
        r#"
[data]
type = "npy"
path = "x.npy"
target_path = "y.npy"
split = {{ valid = 0.25 }}
{data}
[[model.layers]]
type = "{layer}"
kernel_size = 1
[optimizer]
type = "adam"
learning_rate = 0.5
[train]
epochs = 20
batch_size = 4
{more}"#
    )
}

#[test]
fn positions_of_images_and_volumes_have_classes() {
    for (layer, shape) in [("conv2d", &[4, 5][..]), ("conv3d", &[3, 4, 2])] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(folder, shape);
        fs::write(folder.join("a.toml"), spec(layer, "", "")).unwrap();
        done(folder, &["run", "a.toml", "--quiet"]);
        let listed = done(folder, &["list", "results/a", "--json"]);
        assert!(
            listed.contains("\"valid/accuracy\":1.0"),
            "{layer}: {listed}"
        );
        let predict = ["predict", "results/a", "--split", "valid", "--out"];
        done(folder, &[&predict[..], &["p.jsonl"]].concat());
        let lines = fs::read_to_string(folder.join("p.jsonl")).unwrap();
        let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        assert_eq!(line["shape"], serde_json::json!(shape), "{layer}");
        done(folder, &[&predict[..], &["p.npy"]].concat());
        let array = fs::read(folder.join("p.npy")).unwrap();
        let num: usize = 4 * 4 * shape.iter().product::<usize>();
        assert_eq!(array.len(), 128 + num, "{layer}");
        let (code, _, said) = run(folder, &[&predict[..], &["masks/"]].concat());
        assert_eq!(code == 0, shape.len() == 2, "{layer}: {said}");
    }
}

#[test]
fn an_array_of_reconstructed_items_has_their_shape() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, &[4, 5]);
    let task = "[task]\ntype = \"autoencoding\"\n";
    fs::write(folder.join("a.toml"), spec("conv2d", "", task)).unwrap();
    done(folder, &["run", "a.toml", "--quiet"]);
    done(
        folder,
        &["predict", "results/a", "--split", "valid", "--out", "p.npy"],
    );
    let array = fs::read(folder.join("p.npy")).unwrap();
    let head = String::from_utf8_lossy(&array[..128]);
    assert!(head.contains("(4, 1, 4, 5, )"), "{head}");
    assert_eq!(array.len(), 128 + 4 * 4 * 20);
    // New items are their own targets, too.
    let said = done(folder, &["evaluate", "results/a", "--data", "x.npy"]);
    assert!(said.contains("16 items"), "{said}");
}

#[test]
fn targets_that_are_images_do_not_stay_while_their_images_move() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, &[4, 5]);
    let bytes: Vec<u8> = (0..NUM * 20)
        .flat_map(|at| (at as f32).to_le_bytes())
        .collect();
    let floats = npy("<f4", &format!("({NUM}, 1, 4, 5)"), &bytes);
    let flip = "augment = { flip = 0.5 }";
    fs::write(folder.join("a.toml"), spec("conv2d", flip, "")).unwrap();
    done(folder, &["check", "a.toml"]);
    fs::write(folder.join("y.npy"), floats).unwrap();
    let (code, _, said) = run(folder, &["check", "a.toml"]);
    assert_eq!(code, 2, "{said}");
    let message = "`data.augment.flip` moves the pixels of images, but not the target, which has their height and width";
    assert!(said.contains(message), "{said}");
    // What moves no pixel may change the image alone, and a target that is not used has no part in it.
    let colors = "augment = { brightness = 0.2, erase = 0.1 }";
    fs::write(folder.join("a.toml"), spec("conv2d", colors, "")).unwrap();
    done(folder, &["check", "a.toml"]);
    let task = "[task]\ntype = \"autoencoding\"\n";
    fs::write(folder.join("a.toml"), spec("conv2d", flip, task)).unwrap();
    done(folder, &["check", "a.toml"]);
}

#[test]
fn arrays_whose_channels_seem_to_come_last_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let bytes: Vec<u8> = (0..NUM * 6 * 6 * 3).map(|at| at as u8).collect();
    let classes: Vec<u8> = (0..NUM).map(|at| (at % 2) as u8).collect();
    let y = npy("|u1", &format!("({NUM}, )"), &classes);
    fs::write(folder.join("y.npy"), y).unwrap();
    let layer = "[[model.layers]]\ntype = \"flatten\"\n[[model.layers]]\ntype = \"linear\"\n";
    let spec = spec("conv2d", "augment = { flip = 0.5 }", "");
    let start = spec.find("[[model").unwrap()..spec.find("[optimizer]").unwrap();
    let text = [&spec[..start.start], layer, &spec[start.end..]].concat();
    fs::write(folder.join("a.toml"), text).unwrap();
    for (shape, is_told) in [("6, 6, 3", true), ("3, 6, 6", false), ("4, 9, 3", false)] {
        let x = npy("|u1", &format!("({NUM}, {shape})"), &bytes);
        fs::write(folder.join("x.npy"), x).unwrap();
        let (code, out, said) = run(folder, &["check", "a.toml"]);
        assert_eq!(code, 0, "{said}");
        let transposed = "x.transpose(0, 3, 1, 2)";
        assert_eq!((out + &said).contains(transposed), is_told, "{shape}");
    }
}
