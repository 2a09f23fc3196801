//! One run, in this process. The only folder that knows Burn.
//!
//! [`execute`] loads the data, creates or restores the network, trains it through Burn's `SupervisedTraining`,
//! evaluates the best epoch on the test split, and saves the weights. Everything that happens is sent as an [`Event`];
//! the returned [`Outcome`] says how it ended.

mod allocator;
mod checkpoint;
pub mod device;
mod diagnose;
mod distance;
mod epochs;
mod fault;
mod first;
mod kernels;
mod loader;
mod memory;
mod metrics;
pub mod parity;
mod pause;
pub mod predictions;
mod pulse;
mod samples;
mod saved;
mod shared;
mod teacher;
#[cfg(test)]
mod tests;
mod training;
mod weights;

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use burn::data::dataloader::DataLoader;
use burn::module::Module;
use burn::tensor::Device;
pub use burn::train::Interrupter;

pub use allocator::{Allocator, allow_huge_pages};
use checkpoint::Checkpoints;
pub use distance::weight_distances;
pub use fault::{Fault, FaultKind, Gathered, Phase};
pub use memory::{Meter, is_out_of_memory};
pub use pause::Pause;
use runner_core::data;
use runner_core::diagnostic::Reason;
use runner_core::event::{Adjustment, Event, FailureClass, Metrics, Outcome, Started};
use runner_core::plan::{ForkPlan, RunPlan};
use runner_core::record::{RunFolder, TraceWriter, this_build, write_json};
use runner_core::show::plain_io_error;
use runner_core::spec::backend::Backend;
use runner_core::spec::train::GradientNorms;
use runner_network::batch::Batch;
use runner_network::failure::{WrongCount, all_finite, wrong_count};
use runner_network::held;
use runner_network::network::Network;
use runner_network::own;
use runner_network::scores::{self, Ranked, Scores};
use runner_network::state::State;
use runner_network::sums::Sums;
use runner_network::trainer::training_device;
pub use saved::content;
pub use teacher::TEACHER;
pub(crate) use teacher::of_source as teacher_of;
use training::{INITIAL, Splits, Training, save, trace_failure};

/// Receives the events of a run, from any thread.
pub type Emit = Arc<dyn Fn(Event) + Send + Sync>;

/// A run to execute.
pub struct Job {
    /// The run after its adjustments.
    pub plan: RunPlan,
    /// As planned, which identifies its checkpoints.
    pub planned: RunPlan,
    /// Its folder.
    pub folder: RunFolder,
    /// Takes events.
    pub emit: Emit,
    /// Stops the training from outside.
    pub interrupter: Interrupter,
    /// Set when the training has stopped on request: only saving follows.
    pub has_stopped: Arc<AtomicBool>,
    /// Threads that this process may use.
    pub threads: usize,
    /// When the process started.
    pub started: Instant,
    /// The folder of kernels that are selected by timing.
    pub kernels: PathBuf,
    /// A file of initial weights; by default they are sampled from the seed.
    pub initial: Option<PathBuf>,
    /// A file of the teacher's weights; by default they are read from the run that they are of.
    pub teacher: Option<PathBuf>,
    /// Updates after which the training ends, if earlier than planned.
    pub last_step: Option<usize>,
    /// The epoch after which a search ends the training, if earlier than planned.
    pub pause: Option<Pause>,
    /// The changes after failures, in order.
    pub adjustments: Vec<Adjustment>,
    /// Measures memory.
    pub meter: Arc<Meter>,
    /// Whether only memory is measured, so that a few batches of validation are enough.
    pub is_probe: bool,
    /// A fault to inject, for tests.
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

/// The text of a panic's payload.
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
    Fault::reach(job.fault.as_ref(), Phase::Loading);
    let loaded = data::load(&plan.data, &|_, _| {})
        .map_err(|e| Outcome::failed(FailureClass::Data, e.to_string()))?;
    let transforms = data::Transforms::of(loaded.train.set());
    if let Err(error) = write_json(&job.folder.transforms_json(), &transforms) {
        let message = format!("transforms.json cannot be written: {error}");
        return Err(Outcome::failed(FailureClass::Disk, message));
    }
    if plan.device.backend != Backend::Flex {
        kernels::keep_in(&job.kernels);
    }
    let device = device::open(plan.device, plan.precision)
        .map_err(|reason| Outcome::failed(FailureClass::DeviceLost, reason))?;
    verify_parts(plan, &device)?;
    job.meter.watch(&device);
    let checkpoints = Checkpoints::new(job, &loaded.digests);
    checkpoints.remove_fragments();
    job.folder.remove_scratch();
    let found = checkpoints.newest();
    let (resumed_step, start) = found.state.unzip();
    if let (Some(fork), None, false) = (&plan.fork, resumed_step, job.is_probe) {
        return Err(no_beginning(fork, &found.rejected));
    }
    let mut start = start.unwrap_or_default();
    start.adjustments = job.adjustments.clone();
    let network = first_network(job, plan, resumed_step.is_some(), &device)?;
    (job.emit)(Event::RunStarted(Started {
        data_digests: loaded.digests.clone(),
        rejected_checkpoints: found.rejected,
        ..started(job, &device, resumed_step, &start)
    }));
    let (step, epoch_end) = (start.step(plan), start.epochs_done * plan.steps_per_epoch);
    if step == 0 {
        save((&job.folder, plan), network.clone(), INITIAL)?;
    }
    let teacher = teacher::of_run(job, &device)?;
    let sums = start.trace.as_ref();
    let trace = TraceWriter::open(&job.folder, step, epoch_end, sums).and_then(|trace| match plan
        .train
        .log_gradient_norms
    {
        GradientNorms::None => Ok(trace),
        GradientNorms::Global | GradientNorms::Parameters => trace.with_norms(&job.folder, sums),
    });
    let trace = trace.map_err(trace_failure)?;
    if let Some((steps, digests)) = trace.lost() {
        (job.emit)(Event::TraceLost { steps, digests });
    }
    let training = Training {
        job,
        splits: Splits::new(job, loaded, &device),
        teacher,
        device: training_device(plan, &device),
        checkpoints: Arc::new(checkpoints),
    };
    let from = (resumed_step, start);
    let (model, progressed) = training.train(network, from, Some(trace), None)?;
    let executed = training.finish(model, &progressed)?;
    if plan.device.backend != Backend::Flex
        && let Some(chosen) = kernels::chosen(&job.kernels)
    {
        kernels::pass_on(&job.kernels);
        (job.emit)(Event::KernelsChosen(chosen));
    }
    // The evaluation must also stay below the limit.
    if let Some(outcome) = job.meter.outcome() {
        return Err(outcome);
    }
    let files = job.folder.digest_files().map_err(|e| {
        let message = format!("a file of the run cannot be written to disk: {e}");
        Outcome::failed(FailureClass::Disk, message)
    })?;
    (job.emit)(Event::FilesRecorded { files });
    Ok(executed)
}

/// The failure of a run that has lost the state from which it begins. It must not begin with random weights.
fn no_beginning(fork: &ForkPlan, rejected: &[String]) -> Outcome {
    let ForkPlan { run, epoch, .. } = fork;
    let mut message = format!(
        "the checkpoint from which it begins, of run `{run}` after epoch {epoch}, is missing"
    );
    for reason in rejected {
        message += &format!("; {reason}");
    }
    Outcome::failed(FailureClass::Data, message)
}

/// Checks the promises of the program's own parts.
fn verify_parts(plan: &RunPlan, device: &Device) -> Result<(), Outcome> {
    let on = training_device(plan, device);
    own::verify(plan, &on).map_err(|reason| Outcome::failed(FailureClass::Internal, reason))
}

/// The start of an attempt from a state; the data and the checkpoints of the run are not described yet.
fn started(job: &Job, device: &Device, resumed_step: Option<usize>, start: &State) -> Started {
    let plan = &job.plan;
    let kept = plan.kept_on_device().into_iter();
    Started {
        device: plan.device.to_string(),
        device_name: device::describe(plan.device.backend, device),
        threads: job.threads,
        startup_secs: job.started.elapsed().as_secs_f64(),
        kept_on_device: kept
            .map(|(split, bytes)| (split.to_owned(), bytes))
            .collect(),
        layers: plan
            .network
            .computed_by(plan.kernels, plan.device.backend, plan.precision),
        instructions: instructions().map(str::to_owned),
        build: this_build(),
        resumed_step: resumed_step.unwrap_or(0),
        resumed_secs: start.wall_secs,
        history: start.history.clone(),
        data_digests: BTreeMap::new(),
        rejected_checkpoints: Vec::new(),
    }
}

/// The instructions that kernels of runner use.
fn instructions() -> Option<&'static str> {
    #[cfg(all(feature = "flex", target_arch = "x86_64"))]
    let used = Some(runner_network::instructions().name());
    // Other processors have one kind each.
    #[cfg(not(all(feature = "flex", target_arch = "x86_64")))]
    let used = None;
    used
}

/// The network of a plan on a device with autodiff, with weights that are drawn. They are drawn on one device for all,
/// so that a run begins with the same ones wherever it is trained.
fn drawn_network(plan: &RunPlan, device: &Device) -> Result<Network, Outcome> {
    let lost = |reason: Reason| Outcome::failed(FailureClass::DeviceLost, reason);
    let canonical = device::canonical(plan.device, plan.precision).map_err(lost)?;
    let device = training_device(plan, device);
    let canonical = canonical.map(|canonical| training_device(plan, &canonical));
    let drawn_on = canonical.as_ref().unwrap_or(&device);
    let network = Network::drawn(plan, drawn_on);
    Ok(match canonical {
        // Moved and detached: a parameter has to be a leaf of the graph.
        Some(_) => network.fork(&device),
        None => network,
    })
}

/// The network that an attempt begins with, before it loads a checkpoint if it resumes.
fn first_network(
    job: &Job,
    plan: &RunPlan,
    is_resumed: bool,
    device: &Device,
) -> Result<Network, Outcome> {
    // A checkpoint has all weights but those under adapters.
    if is_resumed && !plan.network.has_adapters() {
        drawn_network(plan, device)
    } else {
        initial_network(plan, job.initial.as_deref(), device)
    }
}

/// The network as training begins with it: with all the weights of a file, which may be of another device, or drawn,
/// and then those that the plan takes from elsewhere.
pub(crate) fn initial_network(
    plan: &RunPlan,
    file: Option<&Path>,
    device: &Device,
) -> Result<Network, Outcome> {
    let network = drawn_network(plan, device)?;
    match file {
        None => first::with_first_weights(network, plan),
        Some(path) => loaded_from(network, plan, path, "initial weights"),
    }
}

/// The network of a plan with all weights of a file of Burn's.
fn loaded_from(
    network: Network,
    plan: &RunPlan,
    path: &Path,
    what: &str,
) -> Result<Network, Outcome> {
    let load = || {
        let device = network.devices().pop().ok_or("the network has none")?;
        let bytes = content(path).map_err(|e| plain_io_error(&e))?;
        let record = held::record(bytes, (&plan.network, plan.kernels), &device)?;
        network.try_load_record(record).map_err(|e| e.to_string())
    };
    load().map_err(|e: String| {
        let message = format!("the {what} `{}` cannot be used: {e}", path.display());
        Outcome::failed(FailureClass::Data, message)
    })
}

/// The metrics of a network over a whole split, read as often as those of the training.
fn evaluate(
    network: &Network,
    loader: &dyn DataLoader<Batch>,
    scores: &Scores,
    split: &'static str,
    plan: &RunPlan,
) -> Result<Metrics, Outcome> {
    let unread =
        |e: burn::tensor::TensorReadError| Outcome::failed(FailureClass::DeviceLost, e.to_string());
    let (mut sums, mut ranked) = (Sums::default(), Ranked::default());
    let mut batches = loader.iter();
    loop {
        let mut staged = Vec::new();
        for batch in batches.by_ref().take(plan.train.log_every) {
            let batch = batch.map_err(|e| Outcome::failed(FailureClass::Data, e.to_string()))?;
            staged.push(scores.measure(network.output(batch), true));
        }
        if staged.is_empty() {
            break;
        }
        for batch in scores::read(staged).map_err(unread)? {
            sums.add_batch(&batch);
            if !batch.losses.iter().all(|loss| loss.is_finite()) {
                return Err(Outcome::failed(
                    FailureClass::NotFinite,
                    format!("the {split} loss is infinite or NaN; lower `optimizer.learning_rate`"),
                ));
            }
            if let Some((outputs, targets)) = batch.ranked {
                ranked.add(outputs, &targets).map_err(unread)?;
            }
        }
    }
    WrongCount::check(split, sums.num_items(), loader.num_items()).map_err(wrong_count)?;
    let metrics = sums.metrics(scores, Some(&ranked));
    all_finite(&metrics, &format!("{split}/"))?;
    Ok(metrics)
}
