//! The errors of the best weights: counts match the metrics, items match the files.

use std::fs;
use std::path::Path;

use burn_runner::record::RunFolder;
use burn_runner::record::evaluation::{Evaluated, Evaluation};
use burn_runner::statistics::Separation;
use image::{DynamicImage, Rgb, RgbImage};
use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{IRIS, completed, folder_with, goes_on, npy, run, summary};

const RUN: &str = "results/spec/runs/base-s1";

fn trained(folder: &Path) -> (Evaluation, Json) {
    let (code, _, stderr) = run(folder, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    found(folder)
}

/// The evaluation, and the metrics of the run.
fn found(folder: &Path) -> (Evaluation, Json) {
    let evaluation = RunFolder(folder.join(RUN)).read_evaluation().unwrap();
    let evaluation = evaluation.expect("it was written");
    let summary = summary(folder, "base-s1");
    assert_eq!(summary["best_epoch"], evaluation.epoch);
    assert_eq!(evaluation.split, "valid");
    (evaluation, summary["metrics"].clone())
}

fn bytes(folder: &Path) -> Vec<u8> {
    fs::read(folder.join(RUN).join("evaluation.json")).unwrap()
}

fn metric(metrics: &Json, name: &str) -> f64 {
    let value = metrics[name].as_f64();
    value.unwrap_or_else(|| panic!("no {name} in {metrics}"))
}

/// The correct ones, and all.
fn sums(confusion: &[Vec<u64>]) -> (u64, u64) {
    let right = (0..confusion.len()).map(|class| confusion[class][class]);
    (right.sum(), confusion.iter().flatten().sum())
}

/// A spec with a small network; `tables` begins with the keys of `[data]`.
fn spec(tables: &str) -> String {
    format!(
        "[data]\n{tables}\n[model]\ntype = \"mlp\"\nhidden = [8]\n[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-2\n\
         [train]\nepochs = 3\nbatch_size = 16\n"
    )
}

#[test]
fn the_confusions_are_those_of_the_accuracy() {
    // The other state of the network is that of the best epoch.
    let layers = "layers = [{ type = \"linear\", out_features = 16 }, { type = \"batch_norm\" }, { type = \"relu\" }, { type = \"dropout\" }, { type = \"linear\" }]";
    let normed = IRIS.edit("type = \"mlp\"\nhidden = [16]", layers);
    let ema =
        format!("{IRIS}[train.ema]\ndecay = 0.9\n[objective]\nmetric = \"valid_ema/accuracy\"\n");
    for (text, name) in [
        (IRIS, "valid/accuracy"),
        (&normed, "valid/accuracy"),
        (&ema, "valid_ema/accuracy"),
    ] {
        let (evaluation, metrics) = trained(folder_with(text).path());
        let Evaluated::Classification {
            num_items,
            confusion,
            mistakes,
            separations,
        } = evaluation.found
        else {
            panic!("no classes");
        };
        let (right, all) = sums(&confusion.confusion);
        assert_eq!((all, confusion.classes.len()), (num_items, 3));
        for (separation, row) in separations.iter().zip(&confusion.confusion) {
            assert_eq!(separation.of.positives, row.iter().sum::<u64>());
            let bins = separation.of.bins.iter().map(|bin| bin.num);
            assert_eq!(bins.sum::<u64>(), num_items);
        }
        assert_eq!(right as f64 / num_items as f64, metric(&metrics, name));
        let num_wrong = (num_items - right) as usize;
        assert_eq!(mistakes.len(), num_wrong.min(16));
        assert!(num_wrong > 0, "nothing to look at");
        for pair in mistakes.windows(2) {
            assert!(pair[0].loss >= pair[1].loss);
        }
        for mistake in &mistakes {
            assert_ne!(mistake.target, mistake.predicted);
            let probability = mistake.probability.unwrap();
            assert!((1.0 / 3.0..=1.0).contains(&probability));
            assert!(mistake.place.ends_with(" of iris"), "{}", mistake.place);
            assert_eq!(mistake.picture, None);
        }
    }
}

/// Images of two classes with a damaged one among them; their width identifies them.
fn pictures(folder: &Path) {
    for at in 0..60_u8 {
        let class = ["dark", "light"][usize::from(at % 2)];
        let inner = folder.join("pictures").join(class);
        fs::create_dir_all(&inner).unwrap();
        let picture = RgbImage::from_fn(96, 48, |x, y| {
            let noise = (x * 7 + y * 13 + u32::from(at) * 31) % 90;
            Rgb([at, noise as u8, 60 + 80 * (at % 2)])
        });
        let path = inner.join(format!("{at:02}.png"));
        match at {
            6 => fs::write(path, "no image").unwrap(),
            _ => picture.save(path).unwrap(),
        }
    }
}

#[test]
fn the_worst_pictures_are_named_and_shown() {
    let text = spec(
        "type = \"image_folder\"\npath = \"pictures\"\non_bad_item = \"skip\"\nsplit.valid = 0.5",
    )
    .edit("epochs = 3", "epochs = 1")
    .edit("1e-2", "1e-5")
        + "[task]\nmetrics = [\"accuracy\", \"f_beta\"]\naverage = \"binary\"\npositive_class = \"dark\"\n";
    let folder = folder_with(&text);
    pictures(folder.path());
    let (evaluation, metrics) = trained(folder.path());
    let Evaluated::Classification {
        num_items,
        confusion,
        mistakes,
        separations,
    } = evaluation.found
    else {
        panic!("no classes");
    };
    // The positive class.
    let [only] = &separations[..] else {
        panic!("{separations:?}");
    };
    assert_eq!(only.class, "dark");
    let (right, _) = sums(&confusion.confusion);
    let accuracy = metric(&metrics, "valid/accuracy");
    assert_eq!(right as f64 / num_items as f64, accuracy);
    assert_eq!(confusion.classes, ["dark", "light"]);
    assert!(mistakes.len() > 3, "{mistakes:?}");
    for mistake in mistakes {
        let (class, name) = mistake.place.split_once('/').unwrap();
        assert_eq!(class, mistake.target);
        // The first byte of its pixels is its number.
        let file = image::open(folder.path().join("pictures").join(&mistake.place));
        let number: u8 = name.strip_suffix(".png").unwrap().parse().unwrap();
        assert_eq!(file.unwrap().into_rgb8().get_pixel(0, 0).0[0], number);
        let shown = mistake.picture.unwrap();
        let shown = embedded(&shown).into_rgb8();
        assert_eq!(shown.dimensions(), (64, 32));
        // The darkest value of all images is black: they are shown unscaled.
        assert!(
            shown
                .pixels()
                .all(|pixel| pixel.0[0] == shown.get_pixel(0, 0).0[0])
        );
        let lit = f64::from(60 + 80 * (number % 2)) / 140.0 * 255.0;
        assert_eq!(shown.get_pixel(0, 0).0[2], lit.round() as u8);
    }
}

/// The image in a `data:` URL.
pub fn embedded(url: &str) -> DynamicImage {
    let text = url.strip_prefix("data:image/png;base64,").unwrap();
    image::load_from_memory(&base64(text)).unwrap()
}

fn base64(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut num) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = digits.iter().position(|digit| *digit == byte).unwrap();
        bits = bits << 6 | digit as u32;
        num += 6;
        if num >= 8 {
            num -= 8;
            bytes.push((bits >> num) as u8);
        }
    }
    bytes
}

/// Rows with y = 3 a + 100.
fn rows(names: [&str; 2]) -> (tempfile::TempDir, Vec<String>) {
    let folder = folder_with(&spec(&format!(
        "type = \"csv\"\npath = [\"{}\", \"{}\"]\ntarget = \"y\"\nsplit.valid = 0.5",
        names[0], names[1]
    )));
    let row = |at: usize| format!("{},{}\n", at as f64 / 8.0, 3.0 * at as f64 / 8.0 + 100.0);
    let rows: Vec<String> = (0..120).map(row).collect();
    for (name, rows) in names.into_iter().zip([&rows[..50], &rows[50..]]) {
        fs::write(folder.path().join(name), format!("a,y\n{}", rows.concat())).unwrap();
    }
    (folder, rows)
}

#[test]
fn residuals_are_in_the_units_of_the_data() {
    for scale in ["none", "standardize"] {
        let (folder, rows) = rows(["one.csv", "two.csv"]);
        let path = folder.path().join("spec.toml");
        let text = fs::read_to_string(&path).unwrap();
        let scaled = format!("target = \"y\"\ntarget_scale = \"{scale}\"");
        fs::write(&path, text.edit("target = \"y\"", &scaled)).unwrap();
        let (evaluation, metrics) = trained(folder.path());
        let Evaluated::Regression {
            num_items,
            targets,
            points,
            residuals,
            left_out,
        } = evaluation.found
        else {
            panic!("no numbers");
        };
        assert_eq!((num_items, left_out), (60, None));
        assert_eq!((targets, points.len()), (vec!["y".to_owned()], 60));
        for point in &points {
            let (row, file) = point.place.split_once(" of ").unwrap();
            let row: usize = row.strip_prefix("row ").unwrap().parse().unwrap();
            let before = if file == "two.csv" { 50 } else { 0 };
            let y: f64 = rows[before + row - 1]
                .trim()
                .split(',')
                .next_back()
                .unwrap()
                .parse()
                .unwrap();
            assert!((point.target[0] - y).abs() < 1e-4, "{point:?} is not {y}");
        }
        let errors = points.iter().map(|p| p.predicted[0] - p.target[0]);
        let errors: Vec<f64> = errors.collect();
        let of = &residuals[0];
        let mean = errors.iter().sum::<f64>() / 60.0;
        assert!((of.mean - mean).abs() < 1e-3, "{of:?}");
        let rmse = (errors.iter().map(|e| e * e).sum::<f64>() / 60.0).sqrt();
        assert!((of.rmse / rmse - 1.0).abs() < 1e-4, "{of:?}");
        let variance = (of.rmse * of.rmse - of.mean * of.mean) * 60.0 / 59.0;
        assert!((of.sd / variance.sqrt() - 1.0).abs() < 1e-6, "{of:?}");
        let sorted: Vec<f64> = of.quantiles.values().copied().collect();
        assert!(sorted.is_sorted() && sorted.len() == 7, "{of:?}");
        // Recorded metrics are of scaled targets.
        let transforms = fs::read(folder.path().join(RUN).join("transforms.json")).unwrap();
        let transforms: Json = serde_json::from_slice(&transforms).unwrap();
        let factor = transforms["target"]["columns"][0][1][0]["factor"]
            .as_f64()
            .unwrap();
        assert_eq!(factor == 1.0, scale == "none");
        let recorded = metric(&metrics, "valid/rmse") / factor;
        assert!(
            (of.rmse / recorded - 1.0).abs() < 1e-6,
            "{} {recorded}",
            of.rmse
        );
    }
}

#[test]
fn points_of_many_items_are_some_of_them() {
    let text = spec(
        "type = \"regression\"\nnum_features = 4\nnum_targets = 2\nnum_items = 2000\nsplit.valid = 0.5",
    );
    let (evaluation, metrics) = trained(folder_with(&text).path());
    let Evaluated::Regression {
        points,
        residuals,
        num_items,
        ..
    } = evaluation.found
    else {
        panic!("no numbers");
    };
    assert_eq!(num_items, 1000);
    assert!((485..=500).contains(&points.len()), "{}", points.len());
    assert!(points.windows(2).all(|pair| pair[0].item < pair[1].item));
    let mean = residuals.iter().map(|of| of.rmse * of.rmse).sum::<f64>() / 2.0;
    let recorded = metric(&metrics, "valid/rmse");
    assert!((mean.sqrt() / recorded - 1.0).abs() < 1e-9);
}

#[test]
fn pixels_labels_and_tokens_are_counted() {
    let layers = "layers = [{ type = \"conv2d\", out_channels = 4, kernel_size = 3, padding = \"same\" }, { type = \"relu\" }, { type = \"conv2d\", kernel_size = 3, padding = \"same\" }]";
    let shapes = "type = \"shapes\"\nsize = 12\nnum_items = 200\n";
    let masks =
        spec(&format!("{shapes}target = \"mask\"")).edit("type = \"mlp\"\nhidden = [8]", layers);
    let (evaluation, metrics) = trained(folder_with(&masks).path());
    let Evaluated::Segmentation {
        num_items,
        num_pixels,
        confusion,
        samples,
    } = evaluation.found
    else {
        panic!("no pixels");
    };
    assert!((3..=6).contains(&samples.len()));
    let (right, all) = sums(&confusion.confusion);
    assert_eq!((num_pixels, all), (144 * num_items, num_pixels));
    assert_eq!(
        right as f64 / all as f64,
        metric(&metrics, "valid/accuracy")
    );

    let labels = spec(&format!("{shapes}target = \"labels\""))
        + "[task]\nmetrics = [\"hamming_score\", \"auroc\", \"auc_pr\"]\n";
    let (evaluation, metrics) = trained(folder_with(&labels).path());
    let Evaluated::MultiLabel {
        num_items,
        labels,
        separations,
    } = evaluation.found
    else {
        panic!("no labels");
    };
    // Means over labels, by sorting in training and by thresholds here.
    let mean = |of: fn(&Separation) -> Option<f64>| {
        let all: Vec<f64> = separations.iter().filter_map(|one| of(&one.of)).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let area = mean(|of| of.auroc) - metric(&metrics, "valid/auroc");
    let precision = mean(|of| of.auc_pr) - metric(&metrics, "valid/auc_pr");
    assert!(
        area.abs() < 1e-6 && precision.abs() < 1e-6,
        "{area} {precision}"
    );
    let thresholds = separations.iter().zip(&labels);
    for (separation, label) in thresholds {
        let at_half = separation.of.at(0.5);
        assert_eq!(
            separation.of.positives,
            label.true_positives + label.false_negatives
        );
        assert_eq!(at_half.true_positives, label.true_positives);
        assert_eq!(at_half.false_positives, label.false_positives);
    }
    let mut right = 0;
    for of in &labels {
        right += of.true_positives + of.true_negatives;
        let wrong = of.false_positives + of.false_negatives;
        assert_eq!(of.true_positives + of.true_negatives + wrong, num_items);
    }
    let all = num_items * labels.len() as u64;
    assert_eq!(
        right as f64 / all as f64,
        metric(&metrics, "valid/hamming_score")
    );

    let lm = "type = \"transformer_lm\"\nd_model = 8\nnum_layers = 1\nnum_heads = 1\nfeedforward_size = 8";
    let texts = spec("type = \"text\"\npath = \"a.txt\"\ntokens = { length = 8 }")
        .edit("type = \"mlp\"\nhidden = [8]", lm);
    let folder = folder_with(&texts);
    let text = "the same words again and again, and then other words. ".repeat(40);
    fs::write(folder.path().join("a.txt"), text).unwrap();
    let (evaluation, _) = trained(folder.path());
    let Evaluated::NextToken {
        num_items,
        num_tokens,
        confused,
        texts,
    } = evaluation.found
    else {
        panic!("no tokens");
    };
    let lengths: Vec<_> = texts
        .iter()
        .map(|text| [&text.prompt, &text.target, &text.predicted].map(|of| of.chars().count()))
        .collect();
    assert_eq!(lengths, [[4, 4, 4]; 3]);
    assert_eq!(num_tokens, 8 * num_items);
    assert_eq!(confused.len(), 16);
    assert!(confused.iter().all(|pair| pair.target.chars().count() == 1));
    assert!(
        confused
            .windows(2)
            .all(|pair| pair[0].count >= pair[1].count)
    );
}

#[test]
fn too_many_classes_are_said() {
    let folder = folder_with(&spec(
        "type = \"npy\"\npath = \"x.npy\"\ntarget_path = \"y.npy\"",
    ));
    let x = (0..1200)
        .flat_map(|at: i32| (at as f32).to_le_bytes())
        .collect::<Vec<_>>();
    let y = (0..600)
        .flat_map(|at: i64| (at % 300).to_le_bytes())
        .collect::<Vec<_>>();
    fs::write(folder.path().join("x.npy"), npy("<f4", "(600, 2)", &x)).unwrap();
    fs::write(folder.path().join("y.npy"), npy("<i8", "(600,)", &y)).unwrap();
    let (evaluation, _) = trained(folder.path());
    let Evaluated::Classification {
        confusion,
        mistakes,
        ..
    } = evaluation.found
    else {
        panic!("no classes");
    };
    let reason = "there are 300 classes, but a confusion matrix has at most 200";
    assert_eq!(confusion.left_out.as_deref(), Some(reason));
    assert!(confusion.confusion.is_empty() && mistakes.len() == 16);
    for mistake in mistakes {
        let number = mistake.place.strip_prefix("item ").unwrap();
        let number: usize = number.strip_suffix(" of x.npy").unwrap().parse().unwrap();
        assert_eq!(mistake.target, (number % 300).to_string());
    }
}

#[test]
fn a_run_that_was_killed_writes_the_same() {
    let straight = completed(IRIS, &[]);
    let killed = folder_with(IRIS);
    for moment in ["training:5", "validating:2", "evaluating"] {
        let fault = format!("*@{moment}=kill");
        let (code, ..) = run(
            killed.path(),
            &["run", "spec.toml", "--quiet", "--inject-fault", &fault],
        );
        assert_eq!(code, 1, "{moment}");
        assert!(!killed.path().join(RUN).join("evaluation.json").exists());
    }
    goes_on(killed.path());
    assert_eq!(bytes(straight.path()), bytes(killed.path()));
    // When extended, it is of the best epoch of all.
    let longer = IRIS.edit("epochs = 3", "epochs = 30");
    fs::write(killed.path().join("spec.toml"), &longer).unwrap();
    goes_on(killed.path());
    assert_eq!(bytes(completed(&longer, &[]).path()), bytes(killed.path()));
    assert!(found(killed.path()).0.epoch > 3);
}

#[test]
fn an_evaluation_that_cannot_be_written_costs_no_number() {
    let text = format!("{IRIS}\n[data.split]\ntest = 0.2\n");
    let folder = folder_with(&text);
    let occupied = folder.path().join(RUN).join("evaluation.json");
    fs::create_dir_all(&occupied).unwrap();
    fs::write(occupied.join("a"), "").unwrap();
    let (code, ..) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 1);
    let failed = summary(folder.path(), "base-s1");
    assert_eq!(failed["failure"]["class"], "disk", "{failed}");
    let message = failed["failure"]["message"].as_str().unwrap();
    assert!(message.contains("evaluation.json"), "{message}");
    assert!(failed["metrics"]["test/accuracy"].is_number(), "{failed}");
    fs::remove_dir_all(&occupied).unwrap();
    goes_on(folder.path());
    found(folder.path());
}
