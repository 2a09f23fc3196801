//! What the benches share: hand-written Burn models, the plan of a run, and a run timed by its events.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use burn_runner::data::{self, Folders};
use burn_runner::event::Event;
use burn_runner::plan::{RunPlan, plan};
use burn_runner::record::RunFolder;
use burn_runner::spec::backend::Backend;
use burn_runner::spec::document::Document;
use burn_runner::spec::section::Choice;
use burn_runner::train::{Interrupter, Job, Meter, execute};

pub const BATCH: usize = 64;

/// The command-line arguments that select what to measure, without the options that `cargo bench` adds.
pub fn wanted() -> Vec<String> {
    let words = std::env::args().skip(1);
    words.filter(|word| !word.starts_with('-')).collect()
}

/// Whether to measure something: by default, everything.
pub fn is_wanted(name: &str, wanted: &[String]) -> bool {
    wanted.is_empty() || wanted.iter().any(|word| word == name)
}

/// A hand-written Burn model.
pub trait Model: Module {
    fn forward(&self, images: Tensor<4>) -> Tensor<2>;
}

#[derive(Module, Debug)]
pub struct Mlp {
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
pub struct Cnn {
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

pub fn mlp(device: &Device) -> Mlp {
    Mlp {
        hidden: LinearConfig::new(784, 128).init(device),
        output: LinearConfig::new(128, 10).init(device),
    }
}

pub fn cnn(device: &Device) -> Cnn {
    Cnn {
        first: Conv2dConfig::new([1, 32], [3, 3]).init(device),
        second: Conv2dConfig::new([32, 64], [3, 3]).init(device),
        pool: MaxPool2dConfig::new([2, 2]).init(),
        hidden: LinearConfig::new(64 * 144, 128).init(device),
        output: LinearConfig::new(128, 10).init(device),
    }
}

/// Seconds of each epoch through runner, without validation.
pub fn by_runner(run: &RunPlan) -> Vec<f64> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let marks = Arc::new(Mutex::new(Vec::new()));
    let seen = marks.clone();
    let job = Job {
        kernels: folder.path().join("kernels"),
        meter: Arc::new(Meter::new(run, None)),
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
        has_stopped: std::sync::Arc::default(),
        interrupter: Interrupter::new(),
        threads: rayon::current_num_threads(),
        adjustments: Vec::new(),
        started: Instant::now(),
        initial: None,
        teacher: None,
        last_step: None,
        pause: None,
        fault: None,
    };
    let executed = execute(&job);
    assert_eq!(executed.outcome, burn_runner::event::Outcome::Completed);
    let marks = marks.lock().expect("no panic");
    let epochs = marks.windows(2);
    epochs
        .map(|pair| (pair[1].0 - pair[0].0).as_secs_f64() - pair[1].1)
        .collect()
}

/// The run of a model on a device: on MNIST (`data` is `mnist`) if its files are available, otherwise on digits of the
/// same size.
pub fn planned(model: &str, data: &str, num_epochs: usize, device: &str) -> RunPlan {
    let text = spec(model, data, num_epochs, device);
    let document = Document::parse("bench.toml", &text).expect("the spec parses");
    let folders = Folders {
        base: ".".into(),
        cache: std::env::temp_dir().join("runner-benches"),
    };
    let locate = &mut |spec: &_| data::locate(spec, &folders, None, &|_, _| {});
    let backend = Backend::ALL.iter().find(|(_, name, _)| *name == device);
    let backend = backend.expect("a backend").0;
    let machine = || burn_runner::train::device::list(backend);
    let planned = plan(
        &document,
        "bench",
        locate,
        &mut burn_runner::plan::init::no_files,
        &machine,
    );
    let (plan, _) = planned.unwrap_or_else(|d| panic!("{}", d.render(&document.sources, false)));
    println!(
        "{model} on {}, {} items in batches of {BATCH}, device {device}",
        plan.runs[0].data.dataset.name(),
        plan.runs[0].data.num_train
    );
    plan.runs[0].clone()
}

/// The experiment file of such a run, for any folder.
pub fn spec(model: &str, data: &str, num_epochs: usize, device: &str) -> String {
    let data = match Path::new("../shared/data/mnist").canonicalize() {
        Ok(root) if data == "mnist" => {
            format!("type = \"mnist\"\nroot = {root:?}\npart = \"test\"\ndownload = false")
        }
        _ => "type = \"digits\"\nimage_size = \"28x28\"".to_owned(),
    };
    format!(
        "[data]\n{data}\n[model]\ntype = \"{model}\"\n[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-3\n\
         [train]\nepochs = {num_epochs}\nbatch_size = {BATCH}\n[backend]\ndevice = \"{device}\"\n"
    )
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
