//! The overhead of the program outside of training: `check`, `plan` of 10,000 runs and 100,000 points, a worker's
//! start, and `list`, `report` and `compare` of 10,000 runs.
//!
//! Whole processes, timed from outside, medians of 11, with 10,000 runs of 5. Run with `cargo bench --bench commands`;
//! with `-- runs` for only the last part, and with `-- runs FOLDER` to keep these results for `benches/explore.mjs`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark prints its figures and exits"
)]

mod tree;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const SPEC: &str = r#"
[data]
type = "digits"
image_size = "28x28"

[model]
type = "mlp"

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 1
"#;

fn runner(folder: &Path, arguments: &[&str]) -> f64 {
    let started = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(folder)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("runner starts");
    assert!(status.success(), "{arguments:?}");
    started.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Drops the system's disk caches; `false` if that is not permitted.
fn forget_files() -> bool {
    let written = Command::new("sync").status();
    written.is_ok_and(|status| status.success())
        && fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// `list`, `report` and `compare` of 100 trials with 100 seeds each: with the cached index, and from the files of the
/// runs.
fn of_many_runs(path: &Path) {
    fs::write(path.join("many.toml"), tree::spec(100, 100)).expect("the spec is written");
    let plan = Command::new(env!("CARGO_BIN_EXE_runner"))
        .current_dir(path)
        .args(["plan", "many.toml", "--json"])
        .output()
        .expect("runner starts");
    let plan = serde_json::from_slice(&plan.stdout).expect("a plan");
    let experiment = tree::experiment(&path.join("many"), &plan);
    tree::make(&plan, &experiment);
    let filter = "valid/accuracy > 0.9 and optimizer.type == 'adamw'";
    let commands: [(&str, &[&str]); 4] = [
        ("list", &["list", "many"]),
        ("list --filter", &["list", "many", "--filter", filter]),
        ("report", &["report", "many/many"]),
        ("compare", &["compare", "many/many"]),
    ];
    let mut is_cold = true;
    for (name, arguments) in commands {
        let cold = (0..5).map(|_| {
            let _ = fs::remove_file(experiment.index_jsonl());
            is_cold &= forget_files();
            runner(path, arguments)
        });
        let cold = median(cold.collect());
        runner(path, arguments);
        let warm = median((0..5).map(|_| runner(path, arguments)).collect());
        println!("{name:<14} of 10,000 runs  {warm:6.2} s warm, {cold:6.2} s cold");
    }
    if !is_cold {
        println!(
            "cold is without the index alone: only root can have the system forget what it read"
        );
    }
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    let mut rest = std::env::args().skip_while(|argument| argument != "runs");
    if rest.next().is_some() {
        let kept = rest.next().filter(|name| !name.starts_with('-'));
        if let Some(kept) = &kept {
            fs::create_dir_all(kept).expect("a folder");
        }
        return of_many_runs(kept.as_deref().map_or(path, Path::new));
    }
    fs::write(path.join("small.toml"), SPEC).expect("the spec is written");
    let rates: Vec<_> = (1..=100).map(|i| format!("{i}e-5")).collect();
    let widths: Vec<_> = (1..=50).map(|i| format!("[{i}]")).collect();
    let large = format!(
        "[experiment]\nseeds = [1, 2]\n{SPEC}\n[sweep.grid]\noptimizer.learning_rate = [{}]\nmodel.hidden = [{}]\n",
        rates.join(", "),
        widths.join(", ")
    );
    fs::write(path.join("large.toml"), large).expect("the spec is written");
    // 100,000 points: from a grid, of which 400 remain, and sampled, all of which remain.
    let sieved = format!(
        "{SPEC}\n[sweep]\nexclude = [\"optimizer.learning_rate * train.batch_size > 1.05e-4\", \"model.dropout > 0.5 and train.batch_size != 7\"]\n[sweep.grid]\noptimizer.learning_rate = [{}]\ntrain.batch_size = {:?}\nmodel.dropout = {:?}\noptimizer.weight_decay = {{ values = {:?}, when = \"model.dropout > 0.4\" }}\n",
        rates.join(", "),
        (1..=10).collect::<Vec<_>>(),
        (0..10).map(|i| f64::from(i) / 10.0).collect::<Vec<_>>(),
        (0..10).map(|i| f64::from(i) / 100.0).collect::<Vec<_>>(),
    );
    fs::write(path.join("sieved.toml"), sieved).expect("the spec is written");
    let drawn = format!(
        "{SPEC}\n[sweep.grid]\nmodel.dropout = [0.0, 0.5]\n[sweep.random]\nnum_trials = 50000\n[sweep.random.axes]\noptimizer.learning_rate = {{ type = \"log_uniform\", min = 1e-4, max = 1e-1 }}\noptimizer.weight_decay = {{ type = \"uniform\", min = 0.0, max = 1.0 }}\n"
    );
    fs::write(path.join("drawn.toml"), drawn).expect("the spec is written");
    let time = |arguments: &[&str]| {
        let times = (0..11).map(|_| runner(path, arguments));
        1e3 * median(times.collect())
    };
    println!(
        "check of a good file       {:7.1} ms",
        time(&["check", "small.toml"])
    );
    println!(
        "plan of 10,000 runs        {:7.1} ms",
        time(&["plan", "large.toml"])
    );
    println!(
        "plan of 10,000 runs, JSON  {:7.1} ms",
        time(&["plan", "large.toml", "--json"])
    );
    println!(
        "100,000 points, most left out{:5.1} ms",
        time(&["plan", "sieved.toml"])
    );
    println!(
        "100,000 points, all left   {:7.1} ms",
        time(&["check", "drawn.toml"])
    );
    let starts = (0..11).map(|round| {
        let results = format!("results-{round}");
        runner(path, &["run", "small.toml", "--results", &results]);
        let events = path.join(results).join("small/runs/base-s1/events.jsonl");
        let events = fs::read_to_string(events).expect("the run has events");
        let started: serde_json::Value =
            serde_json::from_str(events.lines().next().expect("a first event")).expect("an event");
        started["startup_secs"].as_f64().expect("a number")
    });
    println!(
        "start of a worker on flex  {:7.1} ms",
        1e3 * median(starts.collect())
    );
    of_many_runs(path);
}
