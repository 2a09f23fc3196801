//! `[predictions]`: what a run writes at its end is what `runner predict --split` computes from it later, it is sealed
//! like the run's other files, and no number depends on it.

use std::fs;
use std::path::{Path, PathBuf};

use burn_runner::exchange::tensors::{NamedTensor, Tensors};
use burn_runner::exchange::write;

use super::edit::Edit;
use super::support::{IRIS, completed, folder_with, goes_on, npy_of, numbers, run, summary};

const RUN: &str = "results/spec/runs/base-s1";

/// The content of each file of predictions, by name.
fn written(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder.join(RUN).join("predictions")).expect("predictions");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths
        .iter()
        .map(|path| (name(path), fs::read(path).unwrap()))
        .collect()
}

/// What `runner predict` writes for a split.
fn predicted(folder: &Path, split: &str, extension: &str) -> Vec<u8> {
    let out = folder.join(format!("{split}.{extension}"));
    let arguments = [
        "predict",
        RUN,
        "--split",
        split,
        "--force",
        "--out",
        out.to_str().unwrap(),
    ];
    let (code, _, stderr) = run(folder, &arguments);
    assert_eq!(code, 0, "{stderr}");
    fs::read(out).unwrap()
}

#[test]
fn splits_are_written_as_predict_writes_them() {
    let iris = IRIS.to_owned() + "[data.split]\ntest = 0.2\n";
    let numbers = "[data]\ntype = \"regression\"\nnum_items = 90\n[model]\ntype = \"mlp\"\nhidden = [4]\n\
        [loss]\ntype = \"gaussian_nll\"\n[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-2\n\
        [train]\nepochs = 2\nbatch_size = 16\nmicro_batch_size = 6\n[data.split]\ntest = 0.2\n";
    let masks = "[data]\ntype = \"shapes\"\ntarget = \"mask\"\nsize = 8\nnum_items = 60\n[model]\n\
        layers = [{ type = \"conv2d\", kernel_size = 3, padding = \"same\" }]\n\
        [optimizer]\ntype = \"adam\"\nlearning_rate = 1e-2\n[train]\nepochs = 2\nbatch_size = 8\n\
        [data.split]\ntest = 0.2\n";
    // The weights that the objective was measured with are the averaged ones.
    let averaged = iris.edit(
        "[train]",
        "[objective]\nmetric = \"valid_ema/loss\"\n[train]\nema = { decay = 0.9 }",
    );
    for (spec, format) in [
        (iris.as_str(), "csv"),
        (numbers, "jsonl"),
        (masks, "npy"),
        (&averaged, "csv"),
    ] {
        let asked = format!(
            "[predictions]\nsplits = [\"test\", \"train\", \"valid\"]\nformat = \"{format}\"\n"
        );
        let folder = completed(&format!("{spec}{asked}"), &[]);
        let names: Vec<String> = ["test", "train", "valid"]
            .map(|split| format!("{split}.{format}"))
            .to_vec();
        let found = written(folder.path());
        assert_eq!(
            found
                .iter()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>(),
            names
        );
        for ((name, bytes), split) in found.iter().zip(["test", "train", "valid"]) {
            assert!(
                *bytes == predicted(folder.path(), split, format),
                "{name} of {spec}"
            );
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn splits_are_written_as_parquet() {
    let asked = "[predictions]\nsplits = [\"valid\"]\nformat = \"parquet\"\n";
    let folder = completed(&format!("{IRIS}{asked}"), &[]);
    let found = written(folder.path());
    assert_eq!(found[0].0, "valid.parquet");
    assert!(found[0].1.starts_with(b"PAR1") && found[0].1.ends_with(b"PAR1"));
    assert!(found[0].1 == predicted(folder.path(), "valid", "parquet"));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_needs_a_build_that_writes_it() {
    let asked = "[predictions]\nsplits = [\"valid\"]\nformat = \"parquet\"\n";
    let folder = folder_with(&format!("{IRIS}{asked}"));
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("this build of runner does not write Parquet"),
        "{stderr}"
    );
    assert!(stderr.contains("spec.toml:18:10"), "{stderr}");
    fs::write(folder.path().join("spec.toml"), IRIS).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = run(
        folder.path(),
        &["predict", RUN, "--split", "valid", "--out", "x.parquet"],
    );
    assert_eq!(code, 2);
    assert!(stderr.contains("--features parquet"), "{stderr}");
    assert!(!folder.path().join("x.parquet").exists());
}

#[test]
fn a_run_that_was_killed_or_extended_writes_the_same() {
    let spec = IRIS.to_owned() + "[predictions]\nsplits = [\"valid\"]\n";
    let straight = completed(&spec, &[]);
    let killed = folder_with(&spec);
    for moment in ["training:5", "evaluating"] {
        let fault = format!("*@{moment}=kill");
        let (code, ..) = run(
            killed.path(),
            &["run", "spec.toml", "--quiet", "--inject-fault", &fault],
        );
        assert_eq!(code, 1, "{moment}");
        assert!(!killed.path().join(RUN).join("predictions").exists());
    }
    goes_on(killed.path());
    assert_eq!(written(straight.path()), written(killed.path()));
    // Those of the best epoch of all; what is no longer asked for is not left as it was.
    let longer = IRIS.edit("epochs = 3", "epochs = 9") + "[predictions]\nsplits = [\"train\"]\n";
    fs::write(killed.path().join("spec.toml"), &longer).unwrap();
    goes_on(killed.path());
    assert_eq!(
        written(completed(&longer, &[]).path()),
        written(killed.path())
    );
}

#[test]
fn no_number_depends_on_predictions_and_a_completed_run_stays_so() {
    let without = completed(IRIS, &[]);
    let spec = IRIS.to_owned() + "[predictions]\nsplits = [\"train\", \"valid\"]\n";
    let with = completed(&spec, &[]);
    assert_eq!(numbers(without.path()), numbers(with.path()));
    let fingerprint = |folder: &Path| summary(folder, "base-s1")["fingerprint"].clone();
    assert_eq!(fingerprint(without.path()), fingerprint(with.path()));
    fs::write(without.path().join("spec.toml"), &spec).unwrap();
    let (code, stdout, stderr) = run(without.path(), &["plan", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("  done\n"), "{stdout}");
}

#[test]
fn predictions_are_sealed_and_travel_in_capsules() {
    let spec = IRIS.to_owned() + "[predictions]\nsplits = [\"valid\"]\n";
    let folder = completed(&spec, &[]);
    let pack = |name: &str| run(folder.path(), &["bundle", RUN, "--out", name]);
    let (code, _, stderr) = pack("a.capsule.tar.zst");
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = run(
        folder.path(),
        &["reproduce", "a.capsule.tar.zst", "--out", "again"],
    );
    assert_eq!(code, 0, "{stderr}");
    let path = folder.path().join(RUN).join("predictions/valid.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.edit_first("0.", "1.")).unwrap();
    let (code, _, stderr) = pack("b.capsule.tar.zst");
    assert_ne!(code, 0);
    assert!(
        stderr.contains("predictions/valid.csv` is damaged: it was changed after the run ended"),
        "{stderr}"
    );
}

#[test]
fn predictions_that_cannot_be_written_cost_no_number() {
    let spec = IRIS.to_owned() + "[predictions]\nsplits = [\"valid\"]\n";
    let folder = folder_with(&spec);
    let occupied = folder.path().join(RUN).join("predictions");
    fs::create_dir_all(occupied.parent().unwrap()).unwrap();
    fs::write(&occupied, "a file in the way").unwrap();
    let (code, ..) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 1);
    let failed = summary(folder.path(), "base-s1");
    assert_eq!(failed["failure"]["class"], "disk", "{failed}");
    let message = failed["failure"]["message"].as_str().unwrap();
    assert!(message.contains("predictions"), "{message}");
    fs::remove_file(&occupied).unwrap();
    goes_on(folder.path());
    assert_eq!(written(folder.path()).len(), 1);
}

#[test]
fn archives_of_arrays_are_predicted_from() {
    let folder = completed(IRIS, &[]);
    let items: Vec<[f32; 4]> = (0..5_u8)
        .map(|at| [1, 2, 3, 4].map(|by| 1.0 + f32::from(at * by * 7 % 23) / 5.0))
        .collect();
    let values = items.concat();
    fs::write(folder.path().join("x.npy"), npy_of(&items)).unwrap();
    let predict = |data: &str| run(folder.path(), &["predict", RUN, "--data", data]);
    let (code, expected, stderr) = predict("x.npy");
    assert_eq!(code, 0, "{stderr}");
    let write = |name: &str, arrays: &[&str]| {
        let mut tensors = Tensors::new();
        for array in arrays {
            // Only the one that the network takes has the right values.
            let values: Vec<f32> = match *array {
                "more" => values.iter().map(|value| value + 1.0).collect(),
                _ => values.clone(),
            };
            tensors
                .push(NamedTensor::from_f32s(*array, vec![5, 4], &values))
                .unwrap();
        }
        let mut bytes = Vec::new();
        if name.ends_with("npz") {
            write::npz(&tensors, &mut std::io::Cursor::new(&mut bytes)).unwrap();
        } else {
            write::safetensors(&tensors, &mut bytes).unwrap();
        }
        fs::write(folder.path().join(name), bytes).unwrap();
    };
    for name in ["x.npz", "x.safetensors"] {
        for arrays in [&["more", "input"][..], &["x"]] {
            write(name, arrays);
            let (code, found, stderr) = predict(name);
            assert_eq!(
                (code, &found),
                (0, &expected),
                "{name}, {arrays:?}: {stderr}"
            );
        }
        write(name, &["a", "b"]);
        let (code, stdout, stderr) = predict(name);
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(
            stderr.contains("has no array `input`, which the network takes"),
            "{stderr}"
        );
        assert!(stderr.contains("its arrays: `a`, `b`"), "{stderr}");
        // Cut files are refused, and never half predicted.
        write(name, &["input"]);
        let bytes = fs::read(folder.path().join(name)).unwrap();
        for part in [0, 1, 5, 10, 15] {
            fs::write(folder.path().join(name), &bytes[..bytes.len() * part / 16]).unwrap();
            let (code, stdout, stderr) = predict(name);
            assert_eq!(
                (code, stdout.as_str()),
                (2, ""),
                "{name}, {part} of 16: {stderr}"
            );
        }
    }
}
