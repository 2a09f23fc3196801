//! Training through runner against the shortest hand-written Burn loop over the same batches.
//!
//! All are measured alternately, each in a process of its own, over the whole time of an epoch's training but the first:
//! for `runner run` that includes its metrics, events and checkpoints; for a loop nothing but forward, backward and the
//! optimizer. With Burn's kernels and optimizer, the loop runs with modules written by hand and with runner's graph of
//! layers; with runner's kernels and optimizer, it is what runner itself is compared with, as it is and with threads that
//! stay awake between operations, as runner's do. Run with `cargo bench --bench
//! overhead [-- cnn]`; see `benches/README.md`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark prints its figures and exits"
)]

#[allow(dead_code)] // Benches share it, and this one uses a part.
mod support;

use std::process::Command;
use std::time::Instant;

use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_runner::data::order::{Purpose, permutation};
use burn_runner::data::{self, TargetValues, Values};
use burn_runner::plan::RunPlan;
use burn_runner::spec::backend::Kernels;
use runner_network::fast::entropy;
use runner_network::graph::Graph;
use runner_network::network::Network;
use runner_network::optimizer::optimizer;
use runner_network::paths::Paths;
use runner_network::stay_awake;
use runner_network::tensor::DynTensor;
use serde_json::Value;
use support::{BATCH, Model, cnn, is_wanted, median, mlp, planned, spec, wanted};

#[global_allocator]
static ALLOCATOR: burn_runner::train::Allocator = burn_runner::train::Allocator;

impl Model for Graph {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        Graph::forward(self, DynTensor::R4(images)).flatten()
    }
}

impl Model for Network {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        self.outputs(DynTensor::R4(images))
    }
}

/// The losses of a batch.
type Loss = fn(Tensor<2>, Tensor<1, Int>) -> Tensor<1>;

fn by_burn(outputs: Tensor<2>, classes: Tensor<1, Int>) -> Tensor<1> {
    CrossEntropyLossConfig::new()
        .init(&outputs.device())
        .forward(outputs, classes)
}

fn by_kernels(outputs: Tensor<2>, classes: Tensor<1, Int>) -> Tensor<1> {
    let losses = entropy::losses(&outputs, &classes, 0.0);
    losses.expect("the kernel supports them").mean()
}

/// Seconds of each epoch of the shortest loop.
fn by_hand<M: Model>(
    mut model: M,
    mut optimizer: ModuleOptimizer,
    loss: Loss,
    run: &RunPlan,
    (num_epochs, is_awake): (usize, bool),
) -> Vec<f64> {
    let device = Device::flex().autodiff();
    let split = data::load(&run.data, &|_, _| {})
        .expect("the data loads")
        .train;
    let mut secs = Vec::new();
    for epoch in 1..=num_epochs {
        let started = Instant::now();
        let order = permutation(split.num_items(), run.seed, Purpose::Order, epoch as u64);
        for indices in order.chunks(BATCH) {
            if is_awake {
                stay_awake();
            }
            let items = split.serve(indices, None);
            let (Values::Floats(values), TargetValues::Classes(classes)) =
                (items.values, items.targets)
            else {
                panic!("images with a class each");
            };
            let images = TensorData::new(values, [indices.len(), 1, 28, 28]);
            let labels = TensorData::new(classes, [indices.len()]);
            let outputs = model.forward(Tensor::from_data(images, &device));
            let targets = Tensor::<1, Int>::from_data(labels, &device);
            let gradients = loss(outputs, targets).backward();
            let gradients = GradientsParams::from_grads(gradients, &model);
            model = optimizer.step(1e-3, model, gradients);
        }
        secs.push(started.elapsed().as_secs_f64());
    }
    secs
}

/// What is measured.
const SIDES: [&str; 5] = ["hand", "graph", "loop", "awake", "runner"];

/// Seconds of an epoch of a loop, without the first one.
fn measured<M: Model>(side: &str, name: &str, make: fn(&Device) -> M, num_epochs: usize) -> f64 {
    // As in a worker: this thread computes too.
    let pool = rayon::ThreadPoolBuilder::new().use_current_thread();
    pool.build_global().expect("the first pool");
    let run = planned(name, "mnist", num_epochs, "flex");
    let device = Device::flex().autodiff();
    let adam = || AdamConfig::new().with_epsilon(1e-8).init();
    let epochs = (num_epochs, side == "awake");
    let secs = match side {
        "hand" => by_hand(make(&device), adam(), by_burn, &run, epochs),
        "graph" => {
            let by_burns = (Kernels::Reference, run.arithmetic);
            let graph = Graph::new(&run.network, by_burns, &device);
            by_hand(graph, adam(), by_burn, &run, epochs)
        }
        "loop" | "awake" => {
            let network = Network::new(&run, &device);
            let ours = optimizer(&run, &Paths::new(&run).parameters(&network));
            by_hand(network, ours, by_kernels, &run, epochs)
        }
        _ => unreachable!("the sides that are loops"),
    };
    secs[1..].iter().sum::<f64>() / (num_epochs - 1) as f64
}

/// The same in a process of its own.
fn in_process(side: &str, name: &str, num_epochs: usize) -> f64 {
    if side == "runner" {
        return by_runner(name, num_epochs);
    }
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let output = command.args([name, side]).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_default();
    last.parse().unwrap_or_else(|_| panic!("{output:?}"))
}

/// Seconds of an epoch of `runner run`: from the end of the first one to that of the last one, without validation.
fn by_runner(name: &str, num_epochs: usize) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bench.toml");
    std::fs::write(&file, spec(name, "mnist", num_epochs, "flex")).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    command.args(["run", "bench.toml", "--jobs", "1", "--quiet"]);
    let output = command.current_dir(folder.path()).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let events = folder
        .path()
        .join("results/bench/runs/base-s1/events.jsonl");
    let events = std::fs::read_to_string(events).expect("events");
    let events = events.lines().map(serde_json::from_str::<Value>);
    let events = events.map(|event| event.expect("an event"));
    let epochs: Vec<Value> = events
        .filter(|event| event["event"] == "epoch_finished")
        .collect();
    let number = |event: &Value, key: &str| event[key].as_f64().expect("a number");
    let (first, rest) = epochs.split_first().expect("epochs");
    let last = rest.last().expect("more than one");
    let whole = (number(last, "time_ms") - number(first, "time_ms")) / 1e3;
    let valid: f64 = rest.iter().map(|event| number(event, "valid_secs")).sum();
    (whole - valid) / rest.len() as f64
}

fn compare(name: &str, num_epochs: usize, rounds: usize) {
    let mut secs = SIDES.map(|_| Vec::new());
    for round in 0..=rounds {
        // The first one has a cooler machine, so they take turns.
        for turn in 0..SIDES.len() {
            let who = (round + turn) % SIDES.len();
            let measured = in_process(SIDES[who], name, num_epochs);
            // The first round warms the machine up.
            if round > 0 {
                secs[who].push(measured);
            }
        }
    }
    let [hand, graph, shortest, awake, runner] = secs.map(|secs| median(&secs));
    println!("{name}, seconds of an epoch, medians of {rounds} rounds of {num_epochs} epochs");
    println!(
        "  Burn's kernels: by hand {hand:.4}, graph {graph:.4}, ratio {:.3}",
        graph / hand
    );
    println!(
        "  runner's kernels: shortest loop {shortest:.4}, runner {runner:.4}, ratio {:.3}; loop whose threads stay awake \
         {awake:.4}, ratio {:.3}",
        runner / shortest,
        runner / awake
    );
}

fn main() {
    let words = wanted();
    if let [name, side] = words.as_slice() {
        let secs = match name.as_str() {
            "mlp" => measured(side, name, mlp, MLP.0),
            _ => measured(side, name, cnn, CNN.0),
        };
        println!("{secs}");
        return;
    }
    for (name, (num_epochs, rounds)) in [("mlp", MLP), ("cnn", CNN)] {
        if is_wanted(name, &words) {
            compare(name, num_epochs, rounds);
        }
    }
}

/// Epochs of a round, and rounds.
const MLP: (usize, usize) = (10, 15);
const CNN: (usize, usize) = (2, 5);
