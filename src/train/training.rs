//! The training of a run through Burn's `SupervisedTraining`, followed by saving weights and evaluating the best ones.

use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use burn::data::dataloader::DataLoader;
use burn::module::Module;
use burn::tensor::{Device, TensorReadError};
use burn::train::{Learner, SupervisedTraining, TrainingError, TrainingStrategy};

use super::checkpoint::{Always, Checkpoints};
use super::diagnose::Watch;
use super::epochs::{Epochs, Progressed};
use super::fault::{Fault, Phase};
use super::loader::Loader;
use super::memory::is_out_of_memory;
use super::metrics::{Nothing, SharedSums, Tap};
use super::saved;
use super::shared::SharedNetwork;
use super::{Executed, Interrupter, Job, evaluate, first_network, predictions, samples, weights};
use runner_core::data::{Loaded, Split, Transforms};
use runner_core::event::{Event, FailureClass, Outcome};
use runner_core::plan::{PieceSizes, RunPlan};
use runner_core::record::evaluation::Evaluated;
use runner_core::record::{Digests, RunFolder, Trace, TraceWriter};
use runner_core::spec::predictions::PredictedSplit;
use runner_network::digest::weights_digest;
use runner_network::evaluation::Errors;
use runner_network::failure::{WrongCount, how_to_stay_finite, wrong_count};
use runner_network::hybrid::Probe;
use runner_network::network::Network;
use runner_network::paths::Paths;
use runner_network::schedule::Reductions;
use runner_network::scores::Scores;
use runner_network::state::State;
use runner_network::sums::NotFinite;
use runner_network::teacher::Teacher;
use runner_network::trainer::training_device;
use runner_network::{copies, lora, optimizer, schedule};

/// The name of the weights before the first step.
pub const INITIAL: &str = "initial";

/// Validation batches of a memory probe.
const PROBED_BATCHES: usize = 4;

/// How long a memory probe trains before its current epoch is the last: kernels of a slow device may take seconds, and
/// all epochs are similar.
const PROBE_TIME: Duration = Duration::from_secs(60);

/// The loaders of each split.
pub struct Splits {
    train: Loader,
    valid: Loader,
    test: Option<Loader>,
    /// The device without autodiff.
    device: Device,
    /// The micro-batch sizes.
    sizes: Arc<PieceSizes>,
    /// The metrics.
    scores: Arc<Scores>,
}

impl Splits {
    /// Serves the loaded data, from the device if it is kept there. A probe validates and tests only a few batches, and
    /// keeps as much as any run.
    pub fn new(job: &Job, loaded: Loaded, device: &Device) -> Self {
        let plan = &job.plan;
        let kept = plan.kept_on_device();
        let sizes = Arc::new(PieceSizes::new(&job.planned, &job.adjustments));
        let Loaded {
            train,
            valid,
            test,
            pixels,
            ..
        } = loaded;
        let units = (train.set().target_units(), train.set().more_units());
        let loader = |name: &'static str, split: Split, device: &Device| {
            let loader = Loader::in_order(name, Arc::new(split), plan, device);
            let loader = loader.in_pieces(sizes.clone()).failing(job.fault.as_ref());
            if kept.contains_key(name) {
                loader.keeping()
            } else {
                loader
            }
        };
        let short = |loader: Loader| {
            if job.is_probe {
                loader.first(PROBED_BATCHES * plan.train.batch_size)
            } else {
                loader
            }
        };
        Self {
            train: loader("train", train, &training_device(plan, device)),
            valid: short(loader("valid", valid, device)),
            test: test.map(|test| short(loader("test", test, device))),
            device: device.clone(),
            sizes: sizes.clone(),
            scores: Arc::new(Scores::new(plan, pixels, (&units.0, &units.1))),
        }
    }
}

/// The training of a run.
pub struct Training<'a> {
    /// The plan.
    pub job: &'a Job,
    /// With autodiff.
    pub device: Device,
    /// The data.
    pub splits: Splits,
    /// The teacher, if it has one.
    pub teacher: Option<Arc<Teacher>>,
    /// Its starting state, and its files.
    pub checkpoints: Arc<Checkpoints>,
}

impl Training<'_> {
    /// Trains from a checkpoint, or from the start, to the end. A repeated training leaves nothing on disk.
    pub fn train(
        &self,
        network: Network,
        (step, start): (Option<usize>, State),
        trace: Option<TraceWriter>,
        watch: Option<Watch>,
    ) -> Result<(SharedNetwork, Progressed), Outcome> {
        let Self {
            job,
            splits,
            checkpoints,
            ..
        } = self;
        let plan = &job.plan;
        let is_watched = watch.is_some();
        let interrupter = match &watch {
            Some(watch) => watch.interrupter.clone(),
            None => job.interrupter.clone(),
        };
        let parameters = Paths::new(plan).parameters(&network);
        let network = optimizer::freeze(plan, &parameters, network);
        let reductions = Reductions::default();
        let learner = Learner::new(
            SharedNetwork::new(plan, network, start.step(plan), splits.scores.clone())
                .deciding(start.machine.clone())
                .taught_by(self.teacher.clone()),
            optimizer::optimizer(plan, &parameters),
            schedule::schedule(plan, &parameters, &job.adjustments, &reductions),
        );
        if !is_watched && !job.is_probe {
            samples::forget_after(&job.folder, start.epochs_done)?;
        }
        let epochs = Epochs {
            trace: trace.map(Mutex::new),
            reductions,
            ..self.epochs(start, watch)
        };
        let (sums, result) = (epochs.sums.clone(), epochs.result.clone());
        let cursor = epochs.cursor.clone();
        let train_loader = splits.train.clone().shuffled(plan.seed, cursor.clone());
        let [model, optimizer, scheduler] = checkpoints.parts();
        let [train_tap, valid_tap] = Tap::pair(&sums, plan, &interrupter);
        let training = SupervisedTraining::new(
            &job.folder.0,
            Arc::new(train_loader),
            Arc::new(splits.valid.clone().following(cursor)),
        )
        .metric_train(train_tap)
        .metric_valid(valid_tap)
        .with_metric_logger(Nothing)
        .with_application_logger(None)
        .renderer(Box::new(Nothing))
        .with_interrupter(interrupter)
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
            // Burn's loop does not treat a stop for the limit as an error; a real one may coincide with it.
            return Err(job
                .meter
                .outcome()
                .unwrap_or_else(|| training_failure(&error)));
        }
        let progressed = result
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(failure) = progressed.failure {
            return Err(failure);
        }
        if !is_watched {
            self.judge(&progressed, &sums, trained.interrupted.is_some())?;
        }
        Ok((trained.model, progressed))
    }

    /// The training loop from a state, without a trace; with a watch it sends no events and injects no faults.
    fn epochs(&self, start: State, watch: Option<Watch>) -> Epochs {
        let Self { job, splits, .. } = self;
        let is_watched = watch.is_some();
        Epochs {
            plan: job.plan.clone(),
            sizes: splits.sizes.clone(),
            device: self.device.clone(),
            start,
            started: job.started,
            cursor: Arc::default(),
            items: splits.train.clone(),
            probe: Probe::of(&job.plan, &splits.device),
            sums: SharedSums::default(),
            scores: splits.scores.clone(),
            checkpoints: self.checkpoints.clone(),
            trace: None,
            samples: {
                let is_drawn = !job.is_probe && !is_watched;
                let is_drawn = is_drawn && samples::are_drawn(&job.plan, splits.train.split());
                is_drawn.then(|| job.folder.clone())
            },
            watch,
            last_step: job.last_step,
            pause: job.pause,
            last_epoch_after: job.is_probe.then_some(PROBE_TIME),
            emit: if is_watched {
                Arc::new(|_| {})
            } else {
                job.emit.clone()
            },
            meter: job.meter.clone(),
            has_stopped: job.has_stopped.clone(),
            fault: job.fault.clone().filter(|_| !is_watched),
            result: Arc::default(),
            reductions: Reductions::default(),
        }
    }

    /// Whether a training that ended without an error reached its end; the error is its outcome otherwise.
    fn judge(
        &self,
        progressed: &Progressed,
        sums: &SharedSums,
        is_interrupted: bool,
    ) -> Result<(), Outcome> {
        let Self { job, .. } = self;
        let plan = &job.plan;
        let epoch = progressed.state.epochs_done + 1;
        let not_finite = sums.lock().not_finite;
        if let Some(not_finite) = not_finite {
            return Err(self.not_finite(not_finite, epoch));
        }
        if let Some(outcome) = job.meter.outcome() {
            return Err(outcome);
        }
        let is_stopped_early = progressed.state.is_stopped_early(plan);
        let is_last_step = job
            .last_step
            .is_some_and(|last| progressed.state.step(plan) >= last);
        let is_done =
            progressed.state.epochs_done >= plan.train.epochs || is_stopped_early || is_last_step;
        let pause = job.pause.filter(|_| !is_done);
        let pause = pause.filter(|pause| progressed.state.epochs_done >= pause.epoch);
        if let Some(pause) = pause {
            return Err(pause.outcome());
        }
        if is_interrupted && !is_done {
            // A stop after everything was trained leaves little to do.
            return Err(Outcome::Interrupted);
        }
        if let (Some(stopping), true) = (&plan.train.early_stopping, is_stopped_early) {
            let metric = plan.watched().unwrap_or(plan.objective).name();
            (job.emit)(Event::StoppedEarly {
                epoch: progressed.state.epochs_done,
                reason: format!("no better {metric} for {} epochs", stopping.patience),
            });
        }
        Ok(())
    }

    /// The failure of a training with a NaN, and its origin: found by repeating the last updates.
    fn not_finite(&self, wrong: NotFinite, epoch: usize) -> Outcome {
        let NotFinite { what, step } = wrong;
        let plan = &self.job.plan;
        let mut message = format!("the {what} became infinite or NaN in epoch {epoch}");
        let step = step.map(|step| (epoch - 1) * plan.steps_per_epoch + step);
        if let Some(step) = step {
            message += &format!(", step {step}");
            let watch = Watch {
                step,
                paths: Paths::new(plan),
                interrupter: Interrupter::new(),
                found: Arc::default(),
            };
            let (from_step, start) = self.checkpoints.newest().state.unzip();
            let from = (from_step, start.unwrap_or_default());
            let network = first_network(self.job, plan, from_step.is_some(), &self.device);
            let again =
                network.and_then(|network| self.train(network, from, None, Some(watch.clone())));
            let first = match again {
                Ok(_) => watch.found(),
                Err(_) => None,
            };
            if let Some(first) = first {
                message += &format!(": first {first}");
            }
            // A copy begins there, or not at all.
            let is_first = |before: usize| plan.fork.is_some() && before == plan.first_step();
            let useless = from_step.filter(|before| before + 1 == step && !is_first(*before));
            if let Some(before) = useless {
                // Its loss depends only on those weights: no learning rate can help it.
                self.checkpoints.remove(before);
                let newest = self.checkpoints.newest().state;
                let newest = newest.map_or(0, |(step, _)| step);
                (self.job.emit)(Event::CheckpointDropped {
                    step: before,
                    newest,
                });
            }
        }
        message += how_to_stay_finite(step);
        Outcome::failed(FailureClass::NotFinite, message)
    }

    /// Saves the weights and evaluates the best ones on the test split.
    pub fn finish(
        &self,
        model: SharedNetwork,
        progressed: &Progressed,
    ) -> Result<Executed, Outcome> {
        let Self {
            job,
            splits,
            checkpoints,
            ..
        } = self;
        let folder = &job.folder;
        let weights_digest = weights_digest(&model.network());
        let plan = &job.plan;
        save((folder, plan), model.network(), "final")?;
        for average in model.averages() {
            save((folder, plan), average.network, average.name)?;
        }
        self.trace_optimizer(progressed.state.step(&job.plan))?;
        Fault::reach(job.fault.as_ref(), Phase::Evaluating);
        if let Some(epoch) = progressed.state.best {
            let record = checkpoints
                .weights(epoch.step)
                .map_err(|e| unsaved(folder, &e))?;
            let best = model
                .try_load_record(record)
                .map_err(|e| unsaved(folder, &e))?
                .at_step(epoch.step);
            let averages = best.averages();
            let chosen = copies::of_objective(job.plan.objective, &averages);
            let chosen = chosen.unwrap_or_else(|| best.network());
            save((folder, plan), chosen.clone(), "best")?;
            let averages = averages.into_iter();
            let averages = averages.map(|average| (average.test, average.network));
            for (name, network) in [("test", best.network())].into_iter().chain(averages) {
                if let Some(test) = &splits.test {
                    (job.emit)(Event::SplitEvaluated {
                        split: name.into(),
                        epoch: epoch.epoch,
                        metrics: evaluate(&network, test, &splits.scores, name, &job.plan)?,
                    });
                }
            }
            if !job.is_probe {
                self.write_evaluation(&chosen, epoch.epoch)?;
                self.write_predictions(&chosen)?;
            }
        } else if !job.is_probe {
            self.write_predictions(&model.network())?;
        }
        if !job.is_probe {
            self.write_weights()?;
        }
        Ok(Executed {
            outcome: Outcome::Completed,
            weights_digest,
        })
    }

    /// Writes how the saved weights are distributed.
    fn write_weights(&self) -> Result<(), Outcome> {
        let Job { folder, plan, .. } = self.job;
        let found = weights::distributions(folder, plan)
            .map_err(|reason| Outcome::failed(FailureClass::Disk, reason))?;
        let written = folder.write_weights(&found);
        written.map_err(|e| Outcome::failed(FailureClass::Disk, e.to_string()))
    }

    /// Writes the errors of the best weights. All metrics of the run were reported before.
    fn write_evaluation(&self, network: &Network, epoch: usize) -> Result<(), Outcome> {
        let Self { job, splits, .. } = self;
        let valid = &splits.valid;
        let Some(mut errors) = Errors::new(&job.plan, valid.split(), &splits.scores) else {
            return Ok(());
        };
        let unread = |e: TensorReadError| Outcome::failed(FailureClass::DeviceLost, e.to_string());
        if errors.needs_items() {
            for batch in valid.iter() {
                let batch =
                    batch.map_err(|e| Outcome::failed(FailureClass::Data, e.to_string()))?;
                errors.add(network.output(batch)).map_err(unread)?;
            }
            WrongCount::check(valid.name(), errors.num_items(), valid.num_items())
                .map_err(wrong_count)?;
        }
        let evaluation = errors.finish(network, &splits.device, epoch);
        let mut evaluation = evaluation.map_err(unread)?;
        if let Evaluated::Generation { by_epoch, .. } = &mut evaluation.found {
            *by_epoch = samples::of_epochs(&job.folder)?;
        }
        let written = job.folder.write_evaluation(&evaluation);
        written.map_err(|e| Outcome::failed(FailureClass::Disk, e.to_string()))
    }

    /// Writes the predictions that the plan asks for, in the batches of validation.
    fn write_predictions(&self, network: &Network) -> Result<(), Outcome> {
        let Self { job, splits, .. } = self;
        let spec = &job.plan.predictions;
        let train = Arc::new(splits.train.split().clone());
        let train = Loader::in_order("train", train, &job.plan, &splits.device);
        let train = train.in_pieces(splits.sizes.clone());
        let asked = spec.splits.iter().filter_map(|split| {
            let loader = match split {
                PredictedSplit::Train => Some(&train),
                PredictedSplit::Valid => Some(&splits.valid),
                PredictedSplit::Test => splits.test.as_ref(),
            };
            Some((loader?, spec.file_name(*split)))
        });
        let transforms = Transforms::of(train.split().set());
        predictions::write(job, network, &transforms, &asked.collect::<Vec<_>>())
    }

    /// Adds the digests of the optimizer's state, from the last checkpoint, to the trace.
    fn trace_optimizer(&self, step: usize) -> Result<(), Outcome> {
        Trace::rename(&self.job.folder).map_err(trace_failure)?;
        let path = self.job.folder.checkpoint_part("optimizer", step);
        if !path.exists() {
            return Ok(());
        }
        let paths = Paths::new(&self.job.plan);
        let saved =
            saved::read(&path).map_err(|reason| Outcome::failed(FailureClass::Disk, reason))?;
        let parameters = saved.optimizer_digests(&paths);
        let digests = Digests { step, parameters };
        // Existing digests of this step stay, except for those that an earlier attempt added after it.
        TraceWriter::open(&self.job.folder, step, step, None)
            .and_then(|mut trace| trace.add_digests(&digests))
            .map_err(trace_failure)
    }
}

fn training_failure(error: &TrainingError) -> Outcome {
    let class = match error {
        TrainingError::Checkpoint(_) => FailureClass::Disk,
        TrainingError::Dataset(_) => FailureClass::Data,
        other if is_out_of_memory(&other.to_string()) => FailureClass::OutOfMemory,
        other if other.is_device_poisoned() => FailureClass::DeviceLost,
        _ => FailureClass::Internal,
    };
    let message = match class {
        FailureClass::Disk => format!(
            "a checkpoint cannot be saved or read: {error}; free some space or make its folder writable, and run the command again: it resumes from the last good one"
        ),
        _ => error.to_string(),
    };
    Outcome::failed(class, message)
}

/// The failure of a trace that cannot be written.
pub fn trace_failure(error: std::io::Error) -> Outcome {
    Outcome::failed(
        FailureClass::Disk,
        format!("the trace cannot be written: {error}"),
    )
}

/// Saves weights under a name; weights under adapters are only in the initial ones.
pub fn save(
    (folder, plan): (&RunFolder, &RunPlan),
    network: Network,
    name: &str,
) -> Result<(), Outcome> {
    let path = folder.model(name);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|e| unsaved(folder, &e))?;
    }
    let record = if name == INITIAL {
        network.into_record()
    } else {
        lora::record(plan, network)
    };
    let saved = record.save(&path);
    saved.map_err(|e| unsaved(folder, &e))
}

fn unsaved(folder: &RunFolder, error: &dyn std::fmt::Display) -> Outcome {
    let place = folder.0.display();
    let message = format!("the weights cannot be saved in {place}: {error}");
    Outcome::failed(FailureClass::Disk, message)
}
