//! A results folder of completed runs, as left by many training runs, generated through `record`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use burn_runner::event::{Epoch, Event, MemoryPeak, Metrics, Outcome, PoolUsage, Started};
use burn_runner::plan::{Plan, RunPlan};
use burn_runner::record::{
    Environment, ExperimentFolder, RunFolder, RunRecord, TRACE_FILES, write_json,
};
use sha2::{Digest, Sha256};

/// Writes the plan and the files that training all of its runs would leave. The values are artificial: trials differ,
/// and seeds vary.
pub fn make(plan: &Plan, folder: &ExperimentFolder) {
    fs::create_dir_all(&folder.0).expect("a folder");
    write_json(&folder.plan_json(), plan).expect("plan.json");
    let environment = Environment::here(&folder.0, None);
    for (at, run) in plan.runs.iter().enumerate() {
        make_run(run, at, &folder.run(&run.id), &environment);
    }
}

fn make_run(run: &RunPlan, at: usize, folder: &RunFolder, environment: &Environment) {
    folder.write_plan(run).expect("run.toml");
    fs::write(folder.0.join(".lock"), "").expect(".lock");
    let started = Started {
        device: run.device.to_string(),
        device_name: "flex".into(),
        data_digests: BTreeMap::from(
            ["train", "valid", "test"].map(|it| (it.into(), "a".repeat(64))),
        ),
        threads: 1,
        resumed_step: 0,
        resumed_secs: 0.0,
        history: Vec::new(),
        rejected_checkpoints: Vec::new(),
        startup_secs: 0.03,
        kept_on_device: BTreeMap::from([("train".into(), 1_000_000)]),
        instructions: None,
        layers: BTreeMap::new(),
        build: None,
    };
    let environment = environment.of_run(run, &started);
    write_json(&folder.environment_json(), &environment).expect("environment.json");
    let mut events = events(run, at, started);
    let last = events.len() - 1;
    let files = write_trace(run, at, folder);
    events.insert(last, Event::FilesRecorded { files });
    let times = (0..).map(|number| 1_790_000_000_000 + 1000 * at as u64 + 40 * number);
    let events: Vec<(u64, Event)> = times.zip(events).collect();
    folder.write_events(&events).expect("events.jsonl");
    let record = RunRecord::of(&events);
    record.write_metrics(folder).expect("metrics.csv");
    record.write_summary(folder, run).expect("summary.json");
}

/// Writes a trace of realistic size, and returns its digests.
fn write_trace(run: &RunPlan, at: usize, folder: &RunFolder) -> BTreeMap<String, String> {
    let losses = (0..run.train.epochs * run.steps_per_epoch).map(|step| noise(at, step));
    let losses: Vec<u8> = losses.flat_map(f64::to_le_bytes).collect();
    let mut digests = String::from("step,parameter,sha256\n");
    for epoch in 0..=run.train.epochs {
        for parameter in [
            "linear_1.weight",
            "linear_1.bias",
            "linear_2.weight",
            "linear_2.bias",
        ] {
            let step = epoch * run.steps_per_epoch;
            digests.push_str(&format!("{step},{parameter},{at:064x}\n"));
        }
    }
    fs::create_dir_all(folder.trace()).expect("a folder");
    let files = TRACE_FILES.into_iter().zip([losses, digests.into_bytes()]);
    files
        .map(|(name, bytes)| {
            fs::write(folder.0.join(name), &bytes).expect("a trace");
            let digest = Sha256::digest(&bytes);
            let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            (name.to_owned(), digest)
        })
        .collect()
}

fn events(run: &RunPlan, at: usize, started: Started) -> Vec<Event> {
    let mut events = vec![Event::RunStarted(started)];
    for epoch in 1..=run.train.epochs {
        let step = epoch * run.steps_per_epoch;
        events.push(Event::EpochFinished(Epoch {
            epoch,
            step,
            metrics: metrics(run, at, epoch, &["train", "valid"]),
            train_secs: 0.1 + noise(at, epoch) / 100.0,
            valid_secs: 0.02,
            memory_bytes: 50 << 20,
            pool: Some(PoolUsage {
                reserved_bytes: 40 << 20,
                in_use_bytes: 30 << 20,
                num_allocations: 100,
            }),
        }));
        events.push(Event::CheckpointSaved { step, epoch });
    }
    events.push(Event::SplitEvaluated {
        split: "test".into(),
        epoch: run.train.epochs,
        metrics: metrics(run, at, run.train.epochs, &[""]),
    });
    events.push(Event::MemoryMeasured(MemoryPeak {
        process_bytes: 50 << 20,
        ..MemoryPeak::default()
    }));
    events.push(Event::RunFinished {
        outcome: Outcome::Completed,
        wall_secs: 2.5 + noise(at, 0),
        weights_digest: format!("{at:064x}"),
    });
    events
}

fn metrics(run: &RunPlan, at: usize, epoch: usize, splits: &[&str]) -> Metrics {
    let mut metrics = Metrics::new();
    let trial = run.trial.bytes().map(f64::from).sum::<f64>() % 17.0;
    for (number, split) in splits.iter().enumerate() {
        let name = |metric: &str| {
            if split.is_empty() {
                metric.to_owned()
            } else {
                format!("{split}/{metric}")
            }
        };
        let accuracy =
            0.9 - 0.5 / epoch as f64 + 0.004 * trial + 0.02 * noise(at, epoch + 100 * number);
        metrics.insert(name("accuracy"), accuracy);
        metrics.insert(name("loss"), 1.1 - accuracy + 0.01 * noise(at, epoch + 7));
    }
    metrics
}

/// A number between 0 and 1 that looks random (SplitMix64).
fn noise(run: usize, number: usize) -> f64 {
    let mut z = (run as u64) << 20 | number as u64;
    z = z.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// A plan with this many trials and seeds.
pub fn spec(num_trials: usize, num_seeds: usize) -> String {
    let seeds: Vec<_> = (1..=num_seeds).collect();
    let rates: Vec<_> = (1..=num_trials / 2).map(|at| format!("{at}e-4")).collect();
    format!(
        "[experiment]\nseeds = {seeds:?}\n\n[data]\ntype = \"digits\"\nimage_size = \"28x28\"\nsplit.test = 0.2\n\n[model]\ntype = \"mlp\"\n\n[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-3\n\n[train]\nepochs = 20\n\n[sweep.grid]\noptimizer.type = [\"adam\", \"adamw\"]\noptimizer.learning_rate = [{}]\n",
        rates.join(", ")
    )
}

/// The folder of an experiment below a results folder.
pub fn experiment(results: &Path, plan: &Plan) -> ExperimentFolder {
    ExperimentFolder(results.join(&plan.experiment))
}
