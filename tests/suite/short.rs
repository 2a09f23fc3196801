//! A split that ends early is a failed run, wherever it is read.

use std::fs;
use std::path::Path;

use super::support::{IRIS, completed, folder_with, goes_on, numbers, run, summary};

/// 90 items to train, 30 to validate and 30 to test: 6, 2 and 2 pieces.
const SPLITS: &str = "[data.split]\ntest = 0.2\n";

fn spec(more: &str) -> String {
    format!("{IRIS}\n{SPLITS}{more}")
}

/// Fails with a fault, and returns the class and the message of the failure.
fn failed(folder: &Path, fault: &str) -> (String, String) {
    let fault = format!("*@{fault}");
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
    let (code, _, stderr) = run(folder, &arguments);
    assert_eq!(code, 1, "{fault}: {stderr}");
    let failure = &summary(folder, "base-s1")["failure"];
    let text = |key: &str| failure[key].as_str().unwrap_or_default().to_owned();
    (text("class"), text("message"))
}

/// The epochs with metrics.
fn num_epochs(folder: &Path) -> usize {
    let metrics = folder.join("results/spec/runs/base-s1/metrics.csv");
    let metrics = fs::read_to_string(metrics).unwrap_or_default();
    let epochs = metrics.lines().skip(1);
    let epochs: std::collections::BTreeSet<_> =
        epochs.filter_map(|line| line.split(',').next()).collect();
    epochs.len()
}

/// Each place that reads a split: training in the second epoch, validation of the second, the moving average's, the
/// test split's evaluation, and the evaluation after it.
const PLACES: [(&str, &str, &str, usize); 5] = [
    ("", "train:9", "train", 1),
    ("", "valid:4", "valid", 1),
    ("[train.ema]\ndecay = 0.9\n", "valid:3", "valid", 0),
    ("", "test:2", "test", 3),
    ("", "valid:8", "valid", 3),
];

#[test]
fn a_panic_where_batches_are_gathered_fails_the_run() {
    for (more, place, split, whole_epochs) in PLACES {
        let spec = spec(more);
        let folder = folder_with(&spec);
        let (class, message) = failed(folder.path(), &format!("gathering_{place}=panic"));
        assert_eq!(class, "panic", "{place}: {message}");
        assert!(
            message.contains("injected fault in gathering piece ")
                && message.contains(split)
                && message.contains("fault.rs:"),
            "{place}: {message}"
        );
        assert_eq!(num_epochs(folder.path()), whole_epochs, "{place}");
        goes_on(folder.path());
        let straight = completed(&spec, &[]);
        assert_eq!(numbers(straight.path()), numbers(folder.path()), "{place}");
    }
}

#[test]
fn a_split_that_ends_early_without_an_error_fails_the_run() {
    for (more, place, split, whole_epochs) in PLACES {
        let folder = folder_with(&spec(more));
        let (class, message) = failed(folder.path(), &format!("gathering_{place}=short"));
        assert_eq!(class, "data", "{place}: {message}");
        let planned = if split == "train" { 90 } else { 30 };
        assert!(
            message.contains(&format!("the {split} split delivered "))
                && message.contains(&format!(" of {planned} items")),
            "{place}: {message}"
        );
        assert_eq!(num_epochs(folder.path()), whole_epochs, "{place}");
    }
}

#[test]
fn memory_that_runs_out_where_batches_are_gathered_is_called_that() {
    let folder = folder_with(&spec(""));
    let (class, message) = failed(folder.path(), "gathering_train:3=exhaust");
    assert_eq!(class, "out_of_memory", "{message}");
}
