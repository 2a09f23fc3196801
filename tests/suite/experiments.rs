//! The shipped experiments reach what their heads say, on what a clone alone has.

use super::support::{root, run};

#[test]
fn the_main_sweep_reaches_its_expectation_on_the_fallback() {
    let folder = tempfile::tempdir().unwrap();
    let spec = root().join("experiments/mnist_sweep.toml");
    let (code, _, stderr) = run(
        folder.path(),
        &[
            "run",
            spec.to_str().unwrap(),
            "--set",
            "data.download=false",
            "--quiet",
        ],
    );
    assert_eq!(code, 0, "{stderr}");
    let report =
        std::fs::read_to_string(folder.path().join("results/mnist_sweep/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["num_completed"], &report["num_runs"]),
        (&18.into(), &18.into())
    );
    let best = report["trials"][0]["metrics"]["valid/accuracy"]["mean"]
        .as_f64()
        .unwrap();
    assert!(best >= 0.95, "{best}");
}
