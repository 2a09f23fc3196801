//! `runner lr-find`: the losses of a rising learning rate, and what they suggest.

use std::fs;

use serde_json::Value as Json;

use super::sharing::losses;
use super::support::{IRIS, completed, folder_with, run};

fn found(spec: &str, arguments: &[&str]) -> (tempfile::TempDir, Json) {
    let folder = folder_with(spec);
    let arguments = [&["lr-find", "spec.toml", "--json"], arguments].concat();
    let (code, text, said) = run(folder.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    (folder, serde_json::from_str(&text).unwrap())
}

fn numbers(found: &Json, key: &str) -> Vec<f64> {
    let points = found["points"].as_array().unwrap().iter();
    points.map(|point| point[key].as_f64().unwrap()).collect()
}

#[test]
fn a_range_test_suggests_learning_rates_and_writes_nothing() {
    let (folder, once) = found(IRIS, &[]);
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert!(!names.iter().any(|name| name == "results"), "{names:?}");
    let rates = numbers(&once, "learning_rate");
    assert!((rates[0] - 1e-7).abs() < 1e-12 && *rates.last().unwrap() <= 10.000001);
    let ratios = rates.windows(2).map(|pair| pair[1] / pair[0]);
    let ratio = 1e8f64.powf(1.0 / 99.0);
    assert!(
        ratios
            .into_iter()
            .all(|found| (found / ratio - 1.0).abs() < 1e-9)
    );
    for key in ["steepest", "tenth_of_minimum"] {
        let rate = once[key].as_f64().unwrap();
        assert!((1e-5..1.0).contains(&rate), "{key}: {rate}");
    }
    let (_, again) = found(IRIS, &[]);
    assert_eq!(once, again);
    // The first update is that of the run itself.
    let trained = completed(IRIS, &[]);
    assert_eq!(
        losses(&trained.path().join("results/spec"))[0],
        numbers(&once, "loss")[0]
    );
}

#[test]
fn every_task_has_a_range_test() {
    let specs = [
        "data.type = 'digits'\ntask.type = 'autoencoding'\nmodel.layers = [{ type = 'conv2d', out_channels = 1, kernel_size = 1 }]\noptimizer = { type = 'sgd', learning_rate = 0.1 }\ntrain = { epochs = 1, batch_size = 256 }\nstrategy.type = 'lookahead'\n",
        "data = { type = 'regression', num_items = 300 }\nmodel = { type = 'mlp', hidden = [8] }\nloss.type = 'gaussian_nll'\noptimizer = { type = 'adamw', learning_rate = 0.1 }\ntrain = { epochs = 9, ema = { decay = 0.9 }, early_stopping = { patience = 2 } }\nscheduler = { type = 'reduce_on_plateau', patience = 1 }\n",
        "data = { type = 'copy_sequence', num_items = 200 }\nmodel = { type = 'transformer_lm', d_model = 8, num_heads = 2 }\noptimizer = { type = 'adam', learning_rate = 0.1 }\ntrain = { epochs = 1, micro_batch_size = 20 }\n",
    ];
    for spec in specs {
        let (_, found) = found(spec, &["--steps", "30", "--max", "1"]);
        assert!(numbers(&found, "smoothed").len() > 10, "{found}");
    }
}

#[test]
fn plots_are_written_when_they_are_asked_for() {
    let (folder, _) = found(
        IRIS,
        &[
            "--steps",
            "40",
            "--svg",
            "rates.svg",
            "--html",
            "rates.html",
        ],
    );
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (svg, html) = (read("rates.svg"), read("rates.html"));
    assert!(
        svg.starts_with("<svg ") && svg.contains("steepest descent"),
        "{svg}"
    );
    assert!(html.contains("<svg ") && html.matches("<tr><td>").count() > 10);
    let again = ["lr-find", "spec.toml", "--svg", "rates.svg"];
    let (code, _, said) = run(folder.path(), &again);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("`rates.svg` exists"), "{said}");
    let over_itself = ["lr-find", "spec.toml", "--svg", "spec.toml", "--force"];
    let (code, _, said) = run(folder.path(), &over_itself);
    assert_eq!(code, 2, "{said}");
    assert_eq!(read("spec.toml"), IRIS);
    let (_, text, said) = run(folder.path(), &["lr-find", "spec.toml", "--steps", "40"]);
    assert!(text.starts_with("learning_rate = "), "{text}");
    assert!(said.contains("updates of `base-s1` on flex"), "{said}");
}

#[test]
fn empty_ranges_are_refused() {
    let folder = folder_with(IRIS);
    let cases: [(&[&str], &str); 4] = [
        (
            &["--min", "1", "--max", "0.1"],
            "cannot rise from 1e0 to 1e-1",
        ),
        (&["--min", "0"], "cannot rise from 0e0"),
        (&["--steps", "5"], "5 updates are too few"),
        (&["--trial", "none"], "there is no trial `none`"),
    ];
    for (arguments, expected) in cases {
        let arguments = [&["lr-find", "spec.toml"], arguments].concat();
        let (code, _, said) = run(folder.path(), &arguments);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
