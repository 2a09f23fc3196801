//! How many pages a report takes on paper, printed by a real browser.

use std::fs;
use std::process::Command;

use regex::bytes::Regex;

use super::support::{IRIS, chromium, completed};

#[test]
fn twenty_seven_trials_print_on_six_pages() {
    let Some(chromium) = chromium() else { return };
    let axes = "[sweep.grid]\noptimizer.learning_rate = [1e-2, 3e-3, 1e-3]\nmodel.hidden = [[8], [16], [32]]\ntrain.batch_size = [8, 16, 32]\n";
    let folder = completed(&format!("{IRIS}\n{axes}"), &[]);
    let pages = folder.path().join("report.pdf");
    let profile = tempfile::tempdir().unwrap();
    let printed = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu"])
        .arg("--no-pdf-header-footer")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--print-to-pdf={}", pages.display()))
        .arg(folder.path().join("results/spec/report.html"))
        .output()
        .expect("chromium starts");
    assert!(printed.status.success(), "{printed:?}");
    // Each page is an object of its own, and the one that lists them is of the type `Pages`.
    let page = Regex::new(r"/Type\s*/Page\b").unwrap();
    let num = page.find_iter(&fs::read(&pages).unwrap()).count();
    assert!((1..=6).contains(&num), "{num} pages");
}
