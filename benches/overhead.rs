//! Training through runner against the shortest hand-written Burn loop over the same batches.
//!
//! All are measured in one process, in turn, over the whole time of an epoch's training: for runner
//! that includes its metrics, events and checkpoints; for the loop nothing but forward, backward and
//! the optimizer. The loop runs with modules written by hand, and with runner's graph of layers. Run with `cargo bench --bench overhead [-- cnn]`; see `benches/README.md`.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{Device, Int, Tensor, TensorData, activation};
use runner::data::order::{Purpose, permutation};
use runner::data::{self, Folders, TargetValues, Values};
use runner::event::Event;
use runner::plan::inventory::Inventory;
use runner::plan::{RunPlan, plan};
use runner::record::RunFolder;
use runner::spec::document::Document;
use runner::train::graph::Graph;
use runner::train::tensor::DynTensor;
use runner::train::{Interrupter, Job, Meter, execute};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: usize = 64;

/// A model as a person writes it in Burn.
trait Model: Module {
    fn forward(&self, images: Tensor<4>) -> Tensor<2>;
}

#[derive(Module, Debug)]
struct Mlp {
    hidden: Linear,
    output: Linear,
}

impl Model for Mlp {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = activation::relu(self.hidden.forward(images.flatten(1, 3)));
        self.output.forward(x)
    }
}

#[derive(Module, Debug)]
struct Cnn {
    first: Conv2d,
    second: Conv2d,
    pool: MaxPool2d,
    hidden: Linear,
    output: Linear,
}

impl Model for Cnn {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = activation::relu(self.first.forward(images));
        let x = activation::relu(self.second.forward(x));
        let x = self.pool.forward(x).flatten(1, 3);
        self.output
            .forward(activation::relu(self.hidden.forward(x)))
    }
}

impl Model for Graph {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        Graph::forward(self, DynTensor::R4(images)).flatten()
    }
}

fn mlp(device: &Device) -> Mlp {
    Mlp {
        hidden: LinearConfig::new(784, 128).init(device),
        output: LinearConfig::new(128, 10).init(device),
    }
}

fn cnn(device: &Device) -> Cnn {
    Cnn {
        first: Conv2dConfig::new([1, 32], [3, 3]).init(device),
        second: Conv2dConfig::new([32, 64], [3, 3]).init(device),
        pool: MaxPool2dConfig::new([2, 2]).init(),
        hidden: LinearConfig::new(64 * 144, 128).init(device),
        output: LinearConfig::new(128, 10).init(device),
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

/// Seconds of each epoch through runner, validation taken out.
fn by_runner(run: &RunPlan) -> Vec<f64> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let marks = Arc::new(Mutex::new(Vec::new()));
    let seen = marks.clone();
    let job = Job {
        meter: Arc::new(Meter::new(run)),
        is_probe: false,
        plan: run.clone(),
        planned: run.clone(),
        folder: RunFolder(folder.path().to_owned()),
        emit: Arc::new(move |event| {
            let valid_secs = match &event {
                Event::RunStarted(_) => 0.0,
                Event::EpochFinished(epoch) => epoch.valid_secs,
                _ => return,
            };
            seen.lock()
                .expect("no panic")
                .push((Instant::now(), valid_secs));
        }),
        interrupter: Interrupter::new(),
        threads: rayon::current_num_threads(),
        adjustments: Vec::new(),
        started: Instant::now(),
        initial: None,
        last_step: None,
        fault: None,
    };
    let executed = execute(&job);
    assert_eq!(executed.outcome, runner::event::Outcome::Completed);
    let marks = marks.lock().expect("no panic");
    let epochs = marks.windows(2);
    epochs
        .map(|pair| (pair[1].0 - pair[0].0).as_secs_f64() - pair[1].1)
        .collect()
}

fn planned(model: &str, num_epochs: usize) -> RunPlan {
    let mnist = Path::new("../shared/data/mnist");
    let data = match mnist.exists() {
        true => {
            "type = \"mnist\"\nroot = \"../shared/data/mnist\"\npart = \"test\"\ndownload = false"
        }
        false => "type = \"digits\"\nimage_size = \"28x28\"",
    };
    let text = format!(
        "[data]\n{data}\n[model]\ntype = \"{model}\"\n[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-3\n\
         [train]\nepochs = {num_epochs}\nbatch_size = {BATCH}\n"
    );
    let document = Document::parse("bench.toml", &text).expect("the spec parses");
    let folders = Folders {
        base: ".".into(),
        cache: ".".into(),
    };
    let locate = &mut |spec: &_| data::locate(spec, &folders, None, &|_, _| {});
    let planned = plan(&document, "bench", locate, &Inventory::default);
    let (plan, _) = planned.unwrap_or_else(|d| panic!("{}", d.render(&document.sources, false)));
    println!(
        "{model} on {}, {} items in batches of {BATCH}",
        plan.runs[0].data.dataset.name(),
        plan.runs[0].data.num_train
    );
    plan.runs[0].clone()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn compare<M: Model>(name: &str, make: fn(&Device) -> M, num_epochs: usize, rounds: usize) {
    let run = planned(name, num_epochs);
    let device = Device::flex().autodiff();
    let [mut theirs, mut graphs, mut ours] = [const { Vec::new() }; 3];
    let measure = |who: usize| match who {
        0 => median(&by_hand(make(&device), &run, num_epochs)),
        1 => median(&by_hand(
            Graph::new(&run.network, &device),
            &run,
            num_epochs,
        )),
        _ => median(&by_runner(&run)),
    };
    for round in 0..=rounds {
        let mut secs = [0.0; 3];
        // Who goes first has the cooler machine and the emptier heap: so all take turns.
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
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    if runs("mlp") {
        compare("mlp", mlp, 10, 15);
    }
    if runs("cnn") {
        compare("cnn", cnn, 1, 6);
    }
}
