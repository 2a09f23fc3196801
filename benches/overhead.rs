//! Training through runner against the shortest hand-written Burn loop over the same batches.
//!
//! All are measured alternately in one process, over the whole time of an epoch's training: for runner that includes
//! its metrics, events and checkpoints; for the loop nothing but forward, backward and the optimizer. The loop runs
//! with modules written by hand, and with runner's graph of layers. Run with `cargo bench --bench overhead [-- cnn]`;
//! see `benches/README.md`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark prints its figures and exits"
)]

mod support;

use std::time::Instant;

use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_runner::data::order::{Purpose, permutation};
use burn_runner::data::{self, TargetValues, Values};
use burn_runner::plan::RunPlan;
use burn_runner::spec::backend::Kernels;
use runner_network::graph::Graph;
use runner_network::tensor::DynTensor;
use support::{BATCH, Model, by_runner, cnn, is_wanted, median, mlp, planned, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

impl Model for Graph {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        Graph::forward(self, DynTensor::R4(images)).flatten()
    }
}

/// Seconds of each epoch of the hand-written loop.
fn by_hand<M: Model>(mut model: M, run: &RunPlan, num_epochs: usize) -> Vec<f64> {
    let device = Device::flex().autodiff();
    let split = data::load(&run.data, &|_, _| {})
        .expect("the data loads")
        .train;
    let loss = CrossEntropyLossConfig::new().init(&device);
    let mut optimizer = AdamConfig::new().with_epsilon(1e-8).init();
    let mut secs = Vec::new();
    for epoch in 1..=num_epochs {
        let started = Instant::now();
        let order = permutation(split.num_items(), run.seed, Purpose::Order, epoch as u64);
        for indices in order.chunks(BATCH) {
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
            let gradients = loss.forward(outputs, targets).backward();
            let gradients = GradientsParams::from_grads(gradients, &model);
            model = optimizer.step(1e-3, model, gradients);
        }
        secs.push(started.elapsed().as_secs_f64());
    }
    secs
}

fn compare<M: Model>(name: &str, make: fn(&Device) -> M, num_epochs: usize, rounds: usize) {
    let mut run = planned(name, "mnist", num_epochs, "flex");
    // The hand-written loop uses Burn's kernels.
    run.kernels = Kernels::Reference;
    let device = Device::flex().autodiff();
    let [mut theirs, mut graphs, mut ours] = [const { Vec::new() }; 3];
    let measure = |who: usize| match who {
        0 => median(&by_hand(make(&device), &run, num_epochs)),
        1 => median(&by_hand(
            Graph::new(&run.network, (run.kernels, run.arithmetic), &device),
            &run,
            num_epochs,
        )),
        _ => median(&by_runner(&run)),
    };
    for round in 0..=rounds {
        let mut secs = [0.0; 3];
        // The first one has a cooler machine and an emptier heap, so they take turns.
        for turn in 0..3 {
            let who = (round + turn) % 3;
            secs[who] = measure(who);
        }
        // The first round warms the machine up.
        if round > 0 {
            theirs.push(secs[0]);
            graphs.push(secs[1]);
            ours.push(secs[2]);
        }
    }
    let hand = median(&theirs);
    let ratio = |values: &[f64]| median(values) / hand;
    println!(
        "  by hand {:.4} s/epoch; graph {:.4}, ratio {:.3}; runner {:.4}, ratio {:.3} (medians of {rounds} rounds of {num_epochs} epochs)",
        hand,
        median(&graphs),
        ratio(&graphs),
        median(&ours),
        ratio(&ours)
    );
}

fn main() {
    let wanted = wanted();
    let runs = |name: &str| is_wanted(name, &wanted);
    if runs("mlp") {
        compare("mlp", mlp, 10, 15);
    }
    if runs("cnn") {
        compare("cnn", cnn, 1, 6);
    }
}
