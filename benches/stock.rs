//! Training through runner against Burn's own loop as in its guide: `SupervisedTraining` with a `Learner`, the stock
//! loader over items in memory, a batcher that normalizes and stacks images, and the stock metrics of loss and
//! accuracy; no progress is displayed, and no checkpoints are written.
//!
//! Both train the same model on the same items, alternately in one process. The time of an epoch is that of its
//! training: for Burn's loop until its metrics have seen the last step, for runner from the end of one epoch to the end
//! of the next except validation, with metrics, events, traces and checkpoints. The first epoch of each training warms
//! up. Run with `cargo bench --bench stock [-- mlp | cnn] [-- wgpu]`; see `benches/README.md`.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a benchmark prints its figures and exits"
)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use burn::data::dataloader::DataLoaderBuilder;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::InMemDataset;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::AdamConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};
use burn::train::logger::{EvaluationProgressLogger, TrainingProgressLogger};
use burn::train::metric::{AccuracyMetric, LossMetric, MetricDefinition};
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining,
};
use burn::train::{
    ClassificationOutput, InferenceStep, Learner, LearnerModel, SupervisedTraining, TrainOutput,
    TrainStep,
};
use burn_runner::data::{self, Split, TargetValues, Values};
use burn_runner::plan::RunPlan;
use burn_runner::spec::backend::Backend;
use burn_runner::spec::section::Choice;
use support::{BATCH, Cnn, Mlp, Model, by_runner, cnn, is_wanted, median, mlp, planned, wanted};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An image as Burn's vision data sets hold one.
#[derive(Clone, Debug)]
pub struct Item {
    image: [[f32; 28]; 28],
    class: i32,
}

#[derive(Clone, Debug)]
pub struct Images {
    images: Tensor<3>,
    classes: Tensor<1, Int>,
}

#[derive(Clone)]
struct Stack;

impl Batcher<Item, Images> for Stack {
    fn batch(&self, items: Vec<Item>, device: &Device) -> Images {
        let images = items.iter().map(|item| {
            let image = Tensor::<2>::from_data(TensorData::from(item.image), device);
            ((image / 255) - 0.1307) / 0.3081
        });
        let images = images.map(|image| image.reshape([1, 28, 28]));
        let classes = items.iter().map(|item| {
            let class = TensorData::from([item.class]);
            Tensor::<1, Int>::from_data(class, device)
        });
        Images {
            images: Tensor::cat(images.collect(), 0),
            classes: Tensor::cat(classes.collect(), 0),
        }
    }
}

fn classify(model: &impl Model, batch: Images) -> ClassificationOutput {
    let outputs = model.forward(batch.images.unsqueeze_dim(1));
    let loss = CrossEntropyLossConfig::new().init(&outputs.device());
    let loss = loss.forward(outputs.clone(), batch.classes.clone());
    ClassificationOutput::new(loss, outputs, batch.classes)
}

macro_rules! classifier {
    ($model:ty) => {
        impl TrainStep for $model {
            type Input = Images;
            type Output = ClassificationOutput;

            fn step(&self, batch: Images) -> TrainOutput<ClassificationOutput> {
                let output = classify(self, batch);
                TrainOutput::new(self, output.loss.backward(), output)
            }
        }

        impl InferenceStep for $model {
            type Input = Images;
            type Output = ClassificationOutput;

            fn step(&self, batch: Images) -> ClassificationOutput {
                classify(self, batch)
            }
        }
    };
}

classifier!(Mlp);
classifier!(Cnn);

/// Records when the training of each epoch begins and ends; takes the place of Burn's default renderer.
struct Clock {
    started: Option<Instant>,
    secs: Arc<Mutex<Vec<f64>>>,
}

impl TrainingProgressLogger for Clock {
    fn start(&mut self, _: usize, _: usize, _: Option<usize>, _: Option<&str>) {}
    fn update_epoch(&mut self, _: usize) {}
    fn start_split(&mut self, split: &str, _: usize) {
        self.started = split.eq_ignore_ascii_case("train").then(Instant::now);
    }
    fn update_split(&mut self, _: usize) {}
    fn end_split(&mut self) {
        if let Some(started) = self.started.take() {
            let secs = started.elapsed().as_secs_f64();
            self.secs.lock().expect("no panic").push(secs);
        }
    }
    fn end(&mut self) {}
    fn log_event_training(&mut self, _: String) {}
}

impl EvaluationProgressLogger for Clock {
    fn start_global_progress(&mut self, _: usize) {}
    fn start_test(&mut self, _: &str, _: usize) {}
    fn update_test_progress(&mut self, _: usize) {}
    fn end_test(&mut self) {}
    fn end_global_progress(&mut self) {}
    fn log_event_evaluation(&mut self, _: String) {}
}

impl MetricsRendererTraining for Clock {
    fn update_train(&mut self, _: MetricState) {}
    fn update_valid(&mut self, _: MetricState) {}
}

impl MetricsRenderer for Clock {
    fn manual_close(&mut self) {}
    fn register_metric(&mut self, _: MetricDefinition) {}
}

impl MetricsRendererEvaluation for Clock {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {}
}

fn items(split: &Split) -> InMemDataset<Item> {
    let item = |at: u32| {
        let served = split.serve(&[at], None);
        let (Values::Floats(values), TargetValues::Classes(classes)) =
            (served.values, served.targets)
        else {
            panic!("images with a class each");
        };
        Item {
            image: std::array::from_fn(|row| std::array::from_fn(|at| values[row * 28 + at])),
            class: classes[0],
        }
    };
    InMemDataset::new((0..split.num_items() as u32).map(item).collect())
}

/// Seconds of each epoch's training in Burn's loop.
fn by_stock<M>(model: M, run: &RunPlan, device: &Device, num_workers: usize) -> Vec<f64>
where
    M: LearnerModel
        + TrainStep<Input = Images, Output = ClassificationOutput>
        + InferenceStep<Input = Images, Output = ClassificationOutput>
        + 'static,
{
    let loaded = data::load(&run.data, &|_, _| {}).expect("the data loads");
    let loader = |device: &Device| {
        DataLoaderBuilder::new(Stack)
            .batch_size(BATCH)
            .shuffle(run.seed)
            .num_workers(num_workers)
            .set_device(device.clone())
    };
    let train = loader(device).build(items(&loaded.train));
    let valid = loader(&device.clone().inner()).build(items(&loaded.valid));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let secs = Arc::new(Mutex::new(Vec::new()));
    let clock = Clock {
        started: None,
        secs: secs.clone(),
    };
    let training = SupervisedTraining::new(folder.path(), train, valid)
        .metric_train_numeric(AccuracyMetric::new())
        .metric_valid_numeric(AccuracyMetric::new())
        .metric_train_numeric(LossMetric::new())
        .metric_valid_numeric(LossMetric::new())
        .with_application_logger(None)
        .renderer(Box::new(clock))
        .num_epochs(run.train.epochs);
    let optimizer = AdamConfig::new().with_epsilon(1e-8).init();
    let result = training.launch(Learner::new(model, optimizer, 1e-3));
    assert!(result.error.is_none(), "{:?}", result.error);
    drop(result);
    let secs = secs.lock().expect("no panic");
    secs.clone()
}

fn device(backend: Backend) -> Device {
    match backend {
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => Device::wgpu(Default::default()),
        _ => Device::flex(),
    }
}

fn compare<M>(name: &str, make: fn(&Device) -> M, run: &RunPlan, rounds: usize)
where
    M: LearnerModel
        + TrainStep<Input = Images, Output = ClassificationOutput>
        + InferenceStep<Input = Images, Output = ClassificationOutput>
        + 'static,
{
    let device = device(run.device.backend).autodiff();
    // All epochs but the first, which compiles kernels and fills caches.
    let settled = |secs: Vec<f64>| median(&secs[1..]);
    let measure = |who: usize| match who {
        0 | 1 => settled(by_stock(make(&device), run, &device, 2 * who)),
        _ => settled(by_runner(run)),
    };
    let mut secs = [const { Vec::new() }; 3];
    for round in 0..rounds {
        // The first one has a cooler machine and an emptier heap, so they take turns.
        for turn in 0..3 {
            let who = (round + turn) % 3;
            secs[who].push(measure(who));
        }
    }
    let rate = |who: usize| run.steps_per_epoch as f64 / median(&secs[who]);
    let [alone, workers, ours] = [0, 1, 2].map(rate);
    println!(
        "  {name}: Burn's loop {alone:.2} steps/s, with 2 loader threads {workers:.2}; runner {ours:.2}, ratios {:.2} and {:.2} (medians of {rounds} rounds of {} epochs)",
        ours / alone,
        ours / workers,
        run.train.epochs - 1
    );
}

fn main() {
    let is_device = |word: &String| Backend::ALL.iter().any(|(_, name, _)| name == word);
    let (devices, models): (Vec<String>, Vec<String>) = wanted().into_iter().partition(is_device);
    let name = devices.first().map_or("flex", String::as_str);
    let runs = |name: &str| is_wanted(name, &models);
    // `wgpu` may be a software driver, which is slow: so it gets fewer and smaller epochs.
    let (mlp_data, cnn_data, epochs, rounds) = match name {
        "wgpu" => ("mnist", "digits", 3, 3),
        _ => ("mnist", "mnist", 6, 9),
    };
    if runs("mlp") {
        compare("mlp", mlp, &planned("mlp", mlp_data, epochs, name), rounds);
    }
    if runs("cnn") {
        compare(
            "cnn",
            cnn,
            &planned("cnn", cnn_data, 3, name),
            rounds.min(3),
        );
    }
}
