//! One run, in this process. The only folder that knows Burn.
//!
//! [`execute`] loads the data, makes or restores the network, trains it through Burn's
//! `SupervisedTraining`, evaluates the best epoch on the test split, and saves the weights. Everything
//! that happens is sent as an [`Event`]; how it ended is the returned [`Outcome`].

mod checkpoint;
pub mod device;
mod digest;
mod epochs;
pub mod function;
#[cfg(test)]
mod golden;
mod gradients;
pub mod graph;
mod initial;
pub mod layer;
mod loader;
mod loss;
mod memory;
mod metrics;
mod network;
mod norms;
mod optimizer;
mod paths;
mod schedule;
mod scores;
mod shared;
mod targets;
pub mod tensor;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use burn::data::dataloader::DataLoader;
use burn::module::{Module, ParamGroup};
use burn::tensor::Device;
pub use burn::train::Interrupter;
use burn::train::metric::Adaptor;
use burn::train::{InferenceStep, Learner, SupervisedTraining, TrainingError, TrainingStrategy};

use crate::data::order::{Purpose, stream_seed};
use crate::data::{self, Loaded, Split};
use crate::event::{Adjustment, Event, FailureClass, Metrics, Outcome, Started};
use crate::plan::RunPlan;
use crate::record::{RunFolder, write_json};
use crate::spec::kind::show_bytes;
use checkpoint::{Always, Checkpoints, State};
use epochs::{Epochs, Progressed};
use loader::{Batch, Cursor, Loader};
use metrics::{Nothing, SharedSums, Sums, Tap};
use network::Network;
use paths::Paths;
use scores::{Ranked, Scores};
use shared::SharedNetwork;

/// Takes the events of a run, from any thread.
pub type Emit = Arc<dyn Fn(Event) + Send + Sync>;

/// A failure to provoke, for tests.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The epoch in which the run panics.
    pub epoch: usize,
}

/// A run to execute.
pub struct Job {
    /// The run.
    pub plan: RunPlan,
    /// Its folder.
    pub folder: RunFolder,
    /// Takes events.
    pub emit: Emit,
    /// Stops the training from outside.
    pub interrupter: Interrupter,
    /// Threads that this process may use.
    pub threads: usize,
    /// When the process started.
    pub started: Instant,
    /// What was changed after failures, in order.
    pub adjustments: Vec<Adjustment>,
    /// A failure to provoke, for tests.
    pub fault: Option<Fault>,
}

/// The outcome of a job, with the digest of the final weights if there are any.
pub struct Executed {
    /// How it ended.
    pub outcome: Outcome,
    /// sha256 of the final weights, or empty.
    pub weights_digest: String,
}

impl From<Outcome> for Executed {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            weights_digest: String::new(),
        }
    }
}

/// Trains a run from its newest checkpoint, or from the start, to its end.
pub fn execute(job: &Job) -> Executed {
    run(job).unwrap_or_else(Executed::from)
}

/// Text of a panic's payload.
pub fn panic_text(payload: &(dyn Any + Send)) -> String {
    match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".into(),
    }
}

fn run(job: &Job) -> Result<Executed, Outcome> {
    let plan = &job.plan;
    let loaded = data::load(&plan.data, &|_, _| {})
        .map_err(|e| Outcome::failed(FailureClass::Data, e.to_string()))?;
    let encoder = &loaded.train.set().encoder;
    if let Err(error) = write_json(&job.folder.transforms_json(), encoder) {
        let message = format!("transforms.json cannot be written: {error}");
        return Err(Outcome::failed(FailureClass::Disk, message));
    }
    let device = device::open(plan.device, plan.precision)
        .map_err(|reason| Outcome::failed(FailureClass::DeviceLost, reason))?;
    let checkpoints = Checkpoints::new(job, &loaded.digests);
    checkpoints.remove_fragments();
    let found = checkpoints.newest();
    let (resumed_step, start) = found.state.unzip();
    let mut start = start.unwrap_or_default();
    start.adjustments = job.adjustments.clone();
    let network = initial_network(plan, &device);
    (job.emit)(Event::RunStarted(Started {
        device_name: device::describe(plan.device.backend, &device),
        data_digests: loaded.digests.clone(),
        threads: job.threads,
        resumed_step: resumed_step.unwrap_or(0),
        resumed_secs: start.wall_secs,
        history: start.history.clone(),
        rejected_checkpoints: found.rejected,
        startup_secs: job.started.elapsed().as_secs_f64(),
    }));
    let splits = Splits::new(plan, loaded, &device);
    let checkpoints = Arc::new(checkpoints);
    let (model, progressed) = train(
        job,
        network,
        &device.clone().autodiff(),
        &splits,
        (resumed_step, start),
        checkpoints.clone(),
    )?;
    finish(job, model, &progressed, &splits, &checkpoints)
}

/// The network as training begins with it, on a device with autodiff.
fn initial_network(plan: &RunPlan, device: &Device) -> Network {
    let device = device.clone().autodiff();
    device.seed(stream_seed(plan.seed, Purpose::Init, 0));
    Network::new(plan, &device)
}

/// The loaders of each split.
struct Splits {
    train: Loader,
    valid: Loader,
    test: Option<Loader>,
    /// What is measured over them.
    scores: Arc<Scores>,
}

impl Splits {
    fn new(plan: &RunPlan, loaded: Loaded, device: &Device) -> Self {
        let Loaded {
            train,
            valid,
            test,
            to_pixels,
            ..
        } = loaded;
        let loader = |split: Split| Loader::in_order(Arc::new(split), plan, device);
        Self {
            train: loader(train),
            valid: loader(valid),
            test: test.map(loader),
            scores: Arc::new(Scores::new(plan, to_pixels)),
        }
    }
}

fn train(
    job: &Job,
    network: Network,
    device: &Device,
    splits: &Splits,
    (step, start): (Option<usize>, State),
    checkpoints: Arc<Checkpoints>,
) -> Result<(SharedNetwork, Progressed), Outcome> {
    let plan = &job.plan;
    let parameters = Paths::new(plan).parameters(&network);
    let frozen = ParamGroup::from_paths(optimizer::frozen(plan, &parameters));
    let network = network.set_require_grad_group(frozen, false);
    let learner = Learner::new(
        SharedNetwork::new(network, plan.train.ema.as_ref()),
        optimizer::optimizer(plan, &parameters),
        schedule::schedule(plan, &parameters, &job.adjustments),
    );
    let cursor = Arc::new(Cursor::default());
    let train_loader = splits.train.clone().shuffled(plan.seed, cursor.clone());
    let sums = SharedSums::default();
    let result = Arc::new(Mutex::new(Progressed::default()));
    let epochs = Epochs {
        plan: plan.clone(),
        device: device.clone(),
        start,
        started: job.started,
        cursor,
        sums: sums.clone(),
        scores: splits.scores.clone(),
        checkpoints: checkpoints.clone(),
        emit: job.emit.clone(),
        fault: job.fault.clone(),
        result: result.clone(),
    };
    let [model, optimizer, scheduler] = checkpoints.parts();
    let [train_tap, valid_tap] = Tap::pair(&sums, &splits.scores, &job.interrupter);
    let training = SupervisedTraining::new(
        &job.folder.0,
        train_loader.to_device(device),
        Arc::new(splits.valid.clone()),
    )
    .metric_train(train_tap)
    .metric_valid(valid_tap)
    .with_metric_logger(Nothing)
    .with_application_logger(None)
    .renderer(Box::new(Nothing))
    .with_interrupter(job.interrupter.clone())
    .with_custom_checkpointers(model, optimizer, scheduler)
    .with_checkpointing_strategy(Always)
    .num_epochs(plan.train.epochs)
    .with_training_strategy(TrainingStrategy::Custom(Arc::new(epochs)));
    let training = match step {
        Some(step) => training.checkpoint(step),
        None => training,
    };
    let trained = training.launch(learner);
    if let Some(error) = trained.error {
        return Err(training_failure(&error));
    }
    let progressed = result
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    if let Some(failure) = progressed.failure {
        return Err(failure);
    }
    let epoch = progressed.state.epochs_done + 1;
    if let Some(what) = sums.lock().not_finite {
        return Err(Outcome::failed(
            FailureClass::NotFinite,
            format!(
                "the {what} became infinite or not a number in epoch {epoch}; lower `optimizer.learning_rate`"
            ),
        ));
    }
    if let (Some(held), Some(limit)) = (progressed.over_limit, plan.memory_limit_bytes) {
        return Err(Outcome::failed(
            FailureClass::OutOfMemory,
            format!(
                "the process held {} in epoch {epoch}, and `memory.limit` is {}; raise the limit, or choose a smaller batch or model",
                show_bytes(held),
                show_bytes(limit)
            ),
        ));
    }
    let is_stopped_early = progressed.state.is_stopped_early(plan);
    let is_done = progressed.state.epochs_done >= plan.train.epochs || is_stopped_early;
    if trained.interrupted.is_some() && !is_done {
        // A stop that came when everything was trained leaves only little to do.
        return Err(Outcome::Interrupted);
    }
    if let (Some(stopping), true) = (&plan.train.early_stopping, is_stopped_early) {
        let metric = plan.watched().unwrap_or(plan.objective).name();
        (job.emit)(Event::StoppedEarly {
            epoch: progressed.state.epochs_done,
            reason: format!("no better {metric} for {} epochs", stopping.patience),
        });
    }
    Ok((trained.model, progressed))
}

fn training_failure(error: &TrainingError) -> Outcome {
    let class = match error {
        TrainingError::Checkpoint(_) => FailureClass::Disk,
        TrainingError::Dataset(_) => FailureClass::Data,
        other if other.is_device_poisoned() => FailureClass::DeviceLost,
        _ => FailureClass::Internal,
    };
    let message = match class {
        FailureClass::Disk => format!(
            "a checkpoint cannot be saved or read: {error}; make room or make its folder writable, and run the command again: it goes on from the last good one"
        ),
        _ => error.to_string(),
    };
    Outcome::failed(class, message)
}

/// Saves the weights and evaluates the best ones on the test split.
fn finish(
    job: &Job,
    model: SharedNetwork,
    progressed: &Progressed,
    splits: &Splits,
    checkpoints: &Checkpoints,
) -> Result<Executed, Outcome> {
    let disk = |e: &dyn std::fmt::Display| {
        let message = format!(
            "the weights cannot be saved below {}: {e}",
            job.folder.0.display()
        );
        Outcome::failed(FailureClass::Disk, message)
    };
    let save = |network: Network, name: &str| {
        let path = job.folder.model(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| disk(&e))?;
        }
        network.into_record().save(&path).map_err(|e| disk(&e))
    };
    let weights_digest = digest::weights_digest(&model.network());
    save(model.network(), "final")?;
    if let Some(average) = model.average() {
        save(average, "ema")?;
    }
    if let Some(epoch) = progressed.state.best {
        let record = checkpoints.weights(epoch.step).map_err(|e| disk(&e))?;
        let best = model.try_load_record(record).map_err(|e| disk(&e))?;
        // The weights that the objective was measured with.
        let chosen = best.average().filter(|_| job.plan.objective.is_of_ema());
        save(chosen.unwrap_or(best.network()), "best")?;
        let evaluated = [("test", Some(best.network())), ("test_ema", best.average())];
        for (name, network) in evaluated {
            if let (Some(test), Some(network)) = (&splits.test, network) {
                (job.emit)(Event::SplitEvaluated {
                    split: name.into(),
                    epoch: epoch.epoch,
                    metrics: evaluate(&network, test, &splits.scores, name)?,
                });
            }
        }
    }
    Ok(Executed {
        outcome: Outcome::Completed,
        weights_digest,
    })
}

/// The metrics of a network over a whole split.
fn evaluate(
    network: &Network,
    loader: &dyn DataLoader<Batch>,
    scores: &Scores,
    split: &str,
) -> Result<Metrics, Outcome> {
    let unread =
        |e: burn::tensor::TensorReadError| Outcome::failed(FailureClass::DeviceLost, e.to_string());
    let (mut sums, mut ranked) = (Sums::default(), Ranked::default());
    for batch in loader.iter() {
        let batch = batch.map_err(|e| Outcome::failed(FailureClass::Data, e.to_string()))?;
        let output = InferenceStep::step(network, batch).adapt();
        if !sums.add_output(scores, &output).map_err(unread)? {
            return Err(Outcome::failed(
                FailureClass::NotFinite,
                format!(
                    "the {split} loss is infinite or not a number; lower `optimizer.learning_rate`"
                ),
            ));
        }
        if scores.needs_ranks() {
            ranked
                .add(output.outputs, &output.targets)
                .map_err(unread)?;
        }
    }
    let metrics = sums.metrics(scores, Some(&ranked));
    all_finite(&metrics, &format!("{split}/"))?;
    Ok(metrics)
}

/// Numbers that are none cannot be recorded: a run ends with them.
fn all_finite(metrics: &Metrics, prefix: &str) -> Result<(), Outcome> {
    let wrong = metrics.iter().find(|(_, value)| !value.is_finite());
    match wrong {
        None => Ok(()),
        Some((name, _)) => Err(Outcome::failed(
            FailureClass::NotFinite,
            format!(
                "the metric {prefix}{name} is infinite or not a number; lower `optimizer.learning_rate`, or leave it out of `task.metrics`"
            ),
        )),
    }
}
