//! What a report shows of single items and of the weights: pictures and texts are those of `predict` and `generate`,
//! distributions those of the saved weights, and losses of steps those of the trace.

use std::fs;
use std::path::Path;

use burn_runner::data::picture::class_colour;
use burn_runner::record::evaluation::Evaluated;
use burn_runner::record::weights::NUM_BINS;
use burn_runner::record::{ExperimentFolder, RunFolder, RunRecord, Trace};
use serde_json::Value as Json;

use super::edit::Edit;
use super::evaluation::embedded;
use super::support::{IRIS, completed, folder_with, goes_on, read_json, run};

const RUN: &str = "results/spec/runs/base-s1";

const TRAIN: &str =
    "[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-2\n[train]\nepochs = 3\nbatch_size = 16\n";

const WRITTEN: &str = "[predictions]\nsplits = [\"valid\"]\nformat = \"npy\"\n";

fn found(folder: &Path) -> Evaluated {
    let evaluation = RunFolder(folder.join(RUN)).read_evaluation().unwrap();
    evaluation.expect("it was written").found
}

/// The predictions for the valid split, item after item.
fn predictions(folder: &Path, size: usize) -> Vec<Vec<f64>> {
    let bytes = fs::read(folder.join(RUN).join("predictions/valid.npy")).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let (head, values) = (String::from_utf8_lossy(&bytes[..start]), &bytes[start..]);
    let values: Vec<f64> = if head.contains("<f4") {
        let each = values.chunks_exact(4);
        each.map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())))
            .collect()
    } else if head.contains("<u4") {
        let each = values.chunks_exact(4);
        each.map(|b| f64::from(u32::from_le_bytes(b.try_into().unwrap())))
            .collect()
    } else {
        panic!("{head}")
    };
    values.chunks_exact(size).map(<[f64]>::to_vec).collect()
}

#[test]
fn masks_are_those_of_predict() {
    let spec = "[data]\ntype = \"shapes\"\ntarget = \"mask\"\nsize = 12\nnum_items = 100\n[model]\nlayers = [\
        { type = \"conv2d\", out_channels = 4, kernel_size = 3, padding = \"same\" }, { type = \"relu\" }, \
        { type = \"conv2d\", kernel_size = 3, padding = \"same\" }]\n";
    let folder = completed(&format!("{spec}{TRAIN}{WRITTEN}"), &[]);
    let Evaluated::Segmentation {
        samples, confusion, ..
    } = found(folder.path())
    else {
        panic!("no masks");
    };
    let predicted = predictions(folder.path(), 144);
    let classes = |url: &str| -> Vec<usize> {
        let pixels = embedded(url).into_rgba8();
        let class = |[red, green, blue, _]: [u8; 4]| {
            let mut all = 0..confusion.classes.len() as i32;
            all.find(|class| class_colour(*class) == [red, green, blue])
        };
        let pixels = pixels.pixels().map(|pixel| class(pixel.0));
        pixels.map(|class| class.unwrap() as usize).collect()
    };
    assert!((3..=6).contains(&samples.len()));
    let mut num_right = 0;
    for sample in &samples {
        let shown = classes(&sample.predicted);
        let wanted = predicted[sample.item].iter().map(|class| *class as usize);
        assert_eq!(shown, wanted.collect::<Vec<_>>(), "{}", sample.place);
        // A shape on the background; the item is as bright there as nowhere else.
        let target = classes(sample.target.as_ref().unwrap());
        assert!(target.iter().any(|class| *class != target[0]));
        let item = embedded(sample.input.as_ref().unwrap()).into_luma8();
        assert_eq!(item.dimensions(), (12, 12));
        num_right += target.iter().zip(&shown).filter(|(a, b)| a == b).count();
    }
    assert!(num_right > 72 * samples.len(), "{num_right}");
    let page = fs::read_to_string(folder.path().join("results/spec/report.html")).unwrap();
    assert_eq!(page.matches("alt=\"predicted\"").count(), samples.len());
}

#[test]
fn reconstructions_are_those_of_predict() {
    let spec = "[data]\ntype = \"digits\"\n[task]\ntype = \"autoencoding\"\n[model]\nlayers = [{ type = \"flatten\" }, \
        { type = \"linear\", out_features = 8 }, { type = \"linear\", out_features = 64 }, { type = \"reshape\", shape = [1, 8, 8] }]\n";
    let folder = completed(&format!("{spec}{TRAIN}{WRITTEN}"), &[]);
    let Evaluated::Autoencoding { samples, num_items } = found(folder.path()) else {
        panic!("no items");
    };
    let predicted = predictions(folder.path(), 64);
    assert_eq!(num_items as usize, predicted.len());
    // Predictions are from 0 to 1, as bytes are.
    for sample in &samples {
        let shown = embedded(&sample.predicted).into_luma8();
        for (shown, value) in shown.pixels().zip(&predicted[sample.item]) {
            let wanted = (255.0 * value).clamp(0.0, 255.0);
            assert!(
                (f64::from(shown.0[0]) - wanted).abs() <= 9.0,
                "{shown:?} {value}"
            );
        }
    }
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(report.contains("## Reconstructions"), "{report}");
}

#[test]
fn texts_are_continued_as_generate_does() {
    let models = [
        "type = \"transformer_lm\"\nd_model = 8\nnum_layers = 1\nnum_heads = 1\nfeedforward_size = 8\n",
        "layers = [{ type = \"embedding\", embedding_dim = 8 }, { type = \"lstm\", hidden_size = 8 }, { type = \"linear\" }]\n",
    ];
    for model in models {
        let spec = format!(
            "[data]\ntype = \"text\"\npath = \"a.txt\"\ntokens = {{ length = 12 }}\n[model]\n{model}{TRAIN}"
        );
        let folder = folder_with(&spec);
        let text = "the same words again and again, and then other words.\n".repeat(40);
        fs::write(folder.path().join("a.txt"), &text).unwrap();
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        let Evaluated::NextToken { texts, .. } = found(folder.path()) else {
            panic!("no texts");
        };
        assert_eq!(texts.len(), 3);
        for of in &texts {
            assert!(
                text.contains(&format!("{}{}", of.prompt, of.target)),
                "{of:?}"
            );
            assert_eq!(of.target.chars().count(), 6);
            let arguments = [
                "generate",
                RUN,
                "--prompt",
                &of.prompt,
                "--max-tokens",
                "6",
                "--temperature",
                "0",
            ];
            let (code, said, stderr) = run(folder.path(), &arguments);
            assert_eq!(code, 0, "{stderr}");
            assert!(said.contains(&of.predicted), "{of:?}: {said}");
        }
    }
}

#[test]
fn weights_and_steps_are_those_of_the_run() {
    let folder = completed(IRIS, &[]);
    let run_folder = RunFolder(folder.path().join(RUN));
    let weights = run_folder.read_weights().unwrap().unwrap();
    assert_eq!(weights.saved, ["initial", "best", "final"]);
    let names: Vec<&str> = weights
        .parameters
        .iter()
        .map(|of| of.name.as_str())
        .collect();
    let order = [
        "linear_1.weight",
        "linear_1.bias",
        "linear_2.weight",
        "linear_2.bias",
    ];
    assert_eq!(names, order);
    for of in &weights.parameters {
        let size: usize = of.shape.iter().product();
        for values in &of.values {
            assert_eq!(values.counts.len(), NUM_BINS);
            assert_eq!(values.counts.iter().sum::<u64>(), size as u64);
            assert!(of.range.0 <= values.mean && values.mean <= of.range.1);
        }
    }
    // Training changes them.
    let first = &weights.parameters[0].values;
    assert_ne!(first[0], first[2]);
    let report = burn_runner::report::read(&ExperimentFolder(folder.path().join("results/spec")));
    let report = report.unwrap().unwrap();
    let losses = Trace::read(&run_folder).unwrap().losses;
    let steps = &report.curves.trials[0].steps;
    let shown: Vec<f64> = steps.iter().map(|step| step.mean).collect();
    assert_eq!(shown, losses);
    let page = fs::read_to_string(folder.path().join("results/spec/report.html")).unwrap();
    assert!(page.contains("The loss of each step on train."));
    assert_eq!(page.matches("aria-label=\"the values of linear").count(), 4);
}

#[test]
fn gradients_are_drawn_where_they_are_recorded() {
    let folder = completed(&format!("{IRIS}log_gradient_norms = \"parameters\"\n"), &[]);
    let report = read_json(&folder.path().join("results/spec/report.json"));
    let norms = &report["curves"]["norms"];
    assert_eq!(norms["epochs"], serde_json::json!([1, 2, 3]));
    let metrics = fs::read_to_string(folder.path().join(RUN).join("metrics.csv")).unwrap();
    let mut lines = metrics
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let column = head
        .iter()
        .position(|name| *name == "train/gradient_norm/linear_2.weight");
    let wanted: Vec<f64> = lines
        .map(|line| line[column.unwrap()].parse().unwrap())
        .collect();
    let found = norms["parameters"].as_array().unwrap().iter();
    let found = found.filter(|of| of["name"] == "linear_2.weight");
    let found: Vec<&Json> = found.collect();
    assert_eq!(found[0]["means"], serde_json::json!(wanted));
    let page = fs::read_to_string(folder.path().join("results/spec/report.html")).unwrap();
    assert!(page.contains("gradient norms of 4 parameters by epoch"));
    // Those of each step have the mean of their epoch.
    let run_folder = RunFolder(folder.path().join(RUN));
    let plan = run_folder.read_plan().unwrap().unwrap();
    let record = RunRecord::read_for(&run_folder, &plan).unwrap();
    let steps = Trace::read_norms(&run_folder, &record).unwrap();
    assert_eq!(steps.len(), plan.num_steps());
    let global = record
        .epochs
        .iter()
        .map(|epoch| epoch.metrics["train/gradient_norm"]);
    for (of_epoch, wanted) in steps.chunks(plan.steps_per_epoch).zip(global) {
        let mean = of_epoch.iter().sum::<f64>() / of_epoch.len() as f64;
        assert!((mean - wanted).abs() < 1e-9, "{mean} {wanted}");
    }
    let points = report["curves"]["trials"][0]["norms"].as_array().unwrap();
    let means: Vec<f64> = points
        .iter()
        .map(|of| of["mean"].as_f64().unwrap())
        .collect();
    assert_eq!(means, steps);
    assert!(page.contains("The norm of the gradients of each step on train."));
    // Changed ones are found, and left out with a remark.
    let path = run_folder.0.join("trace/gradient_norms.f64");
    fs::write(&path, vec![0; 8 * steps.len()]).unwrap();
    let (code, _, stderr) = run(folder.path(), &["report", "results/spec"]);
    assert_eq!(code, 0, "{stderr}");
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(text.contains("the gradient norms of the steps"), "{text}");
}

#[test]
fn a_run_that_was_killed_has_the_same_weights_file_and_changes_are_found() {
    let written = |folder: &Path| fs::read(folder.join(RUN).join("weights.json")).unwrap();
    let straight = completed(IRIS, &[]);
    let killed = folder_with(IRIS);
    for moment in ["training:5", "evaluating"] {
        let fault = format!("*@{moment}=kill");
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
        assert_eq!(run(killed.path(), &arguments).0, 1);
        assert!(!killed.path().join(RUN).join("weights.json").exists());
    }
    goes_on(killed.path());
    assert!(written(killed.path()) == written(straight.path()));
    // No number depends on it: a report without it says so.
    let path = straight.path().join(RUN).join("weights.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.edit("linear_1.weight", "linear_9.weight")).unwrap();
    let (code, _, stderr) = run(straight.path(), &["report", "results/spec"]);
    assert_eq!(code, 0, "{stderr}");
    let report = fs::read_to_string(straight.path().join("results/spec/report.md")).unwrap();
    assert!(
        report.contains("the distributions of the weights of `base-s1` are omitted"),
        "{report}"
    );
    assert!(!report.contains("linear_9"));
}
