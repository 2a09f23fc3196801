//! The training loop, as a strategy of Burn's `SupervisedTraining`.
//!
//! It differs from Burn's own where exactness requires it: the device's generator is seeded for each step, the order of
//! items is set for each epoch, a stop saves a checkpoint in the middle of an epoch, and training resumes from there.

mod ends;
mod kept;
mod predicted;
mod steps;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use burn::data::dataloader::DataLoaderIterator;
use burn::tensor::Device;
use burn::train::{
    Interrupter, Learner, SupervisedLearningStrategy, SupervisedTrainingEventProcessor,
    TrainLoader, TrainingComponents, ValidLoader,
};

use super::Emit;
use super::checkpoint::Checkpoints;
use super::diagnose::Watch;
use super::fault::{Fault, Phase};
use super::loader::{Cursor, Loader};
use super::memory::Meter;
use super::metrics::SharedSums;
use super::pause::Pause;
use super::shared::SharedNetwork;
use runner_core::event::Outcome;
use runner_core::plan::{PieceSizes, RunPlan};
use runner_core::record::{RunFolder, TraceWriter};
#[cfg(feature = "flex")]
use runner_core::spec::backend::Backend;
use runner_network::batch::Batch;
use runner_network::failure::{all_deciding, all_finite, wrong_count};
use runner_network::hybrid::Probe;
use runner_network::schedule::Reductions;
use runner_network::scores::Scores;
use runner_network::state::State;
use runner_network::sums::EpochSums;

/// Trains epoch after epoch.
pub struct Epochs {
    /// The run.
    pub plan: RunPlan,
    /// The micro-batch sizes.
    pub sizes: Arc<PieceSizes>,
    /// The device, with autodiff.
    pub device: Device,
    /// The starting state.
    pub start: State,
    /// When this attempt started.
    pub started: Instant,
    /// What the schedule knows of the history.
    pub reductions: Reductions,
    /// The train split.
    pub items: Loader,
    /// The items that decide about predictions.
    pub probe: Option<Probe>,
    /// The position of the train loader.
    pub cursor: Arc<Cursor>,
    /// The sums of Burn's metrics.
    pub sums: SharedSums,
    /// The metrics.
    pub scores: Arc<Scores>,
    /// The checkpoints.
    pub checkpoints: Arc<Checkpoints>,
    /// The trace, which is not extended when the training is only repeated.
    pub trace: Option<Mutex<TraceWriter>>,
    /// Where pictures of generated items are written, if there are any.
    pub samples: Option<RunFolder>,
    /// Looks for the origin of a non-finite number.
    pub watch: Option<Watch>,
    /// Updates after which the training ends, in the middle of an epoch or not.
    pub last_step: Option<usize>,
    /// The epoch after which a search ends it.
    pub pause: Option<Pause>,
    /// How long it starts new epochs.
    pub last_epoch_after: Option<Duration>,
    /// Takes events.
    pub emit: Emit,
    /// Measures memory.
    pub meter: Arc<Meter>,
    /// Set when the training has stopped on request.
    pub has_stopped: Arc<AtomicBool>,
    /// A fault to inject, for tests.
    pub fault: Option<Fault>,
    /// Its result, read after the training.
    pub result: Arc<Mutex<Progressed>>,
}

/// The result of a training.
#[derive(Clone, Debug, Default)]
pub struct Progressed {
    /// Its final state.
    pub state: State,
    /// Whether growing memory was reported.
    pub has_grown: bool,
    /// The error that ended it, other than a stop.
    pub failure: Option<Outcome>,
}

type Processor = SupervisedTrainingEventProcessor<SharedNetwork>;
type Components = TrainingComponents<SharedNetwork>;

impl SupervisedLearningStrategy<SharedNetwork> for Epochs {
    fn fit(
        &self,
        mut parts: Components,
        mut learner: Learner<SharedNetwork>,
        train: TrainLoader<SharedNetwork>,
        valid: ValidLoader<SharedNetwork>,
        _starting_epoch: usize,
    ) -> (SharedNetwork, Processor) {
        let mut state = self.start.clone();
        if state.step(&self.plan) == 0
            && let Ok(digests) = self.digests(0, &learner)
        {
            self.trace(|trace| trace.add_digests(&digests));
        }
        let started = Instant::now();
        let is_late = || {
            self.last_epoch_after
                .is_some_and(|time| started.elapsed() > time)
        };
        while state.epochs_done < self.last_epoch()
            && !state.is_stopped_early(&self.plan)
            && !is_late()
            && !self.is_failed()
        {
            let epoch = state.epochs_done + 1;
            *self.sums.lock() = EpochSums {
                train: std::mem::take(&mut state.train_sums),
                steps: state.steps_in_epoch,
                ..EpochSums::default()
            };
            self.reductions
                .store(state.num_reductions(&self.plan), Ordering::Relaxed);
            self.reach(Phase::Epoch(epoch));
            let train_started = Instant::now();
            self.train(epoch, &mut state, &mut parts, &mut learner, &train);
            if self.is_failed() {
                break;
            }
            self.trace_losses();
            let train_secs = train_started.elapsed().as_secs_f64();
            if self.is_last_step(&state) {
                if let Ok(digests) = self.digests(state.step(&self.plan), &learner) {
                    self.trace(|trace| trace.add_digests(&digests));
                }
                break;
            }
            let valid_started = Instant::now();
            if !parts.interrupter.should_stop() {
                self.validate(epoch, &mut parts, &learner, &valid);
            }
            if parts.interrupter.should_stop() {
                self.stop(&mut state, &mut parts, &learner);
                break;
            }
            let secs = (train_secs, valid_started);
            if self
                .complete(&mut state, &mut parts, &learner, &valid, secs)
                .is_err()
            {
                break;
            }
        }
        self.result
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .state = state;
        (learner.model(), parts.event_processor)
    }
}

impl Epochs {
    /// Saves a checkpoint when a stop was requested, unless something failed.
    fn stop(&self, state: &mut State, parts: &mut Components, learner: &Learner<SharedNetwork>) {
        self.meter.acknowledge();
        self.has_stopped.store(true, Ordering::Release);
        let sums = self.sums.lock();
        let is_good = parts.interrupter.error().is_none() && !self.is_failed();
        if is_good && sums.not_finite.is_none() {
            state.train_sums = sums.train.clone();
            drop(sums);
            self.save(state, parts, learner);
        }
    }

    /// Records a validated epoch, and saves a checkpoint if one is due; a failure is recorded instead. Takes the seconds
    /// of its training and the start of its validation.
    fn complete(
        &self,
        state: &mut State,
        parts: &mut Components,
        learner: &Learner<SharedNetwork>,
        valid: &ValidLoader<SharedNetwork>,
        (train_secs, valid_started): (f64, Instant),
    ) -> Result<(), ()> {
        let epoch = state.epochs_done + 1;
        self.check_counts(valid)
            .map_err(|wrong| self.fail(wrong_count(wrong)))?;
        let averaged = self.validate_averages(learner, valid)?;
        let digests = self.digests(epoch * self.plan.steps_per_epoch, learner)?;
        let valid_secs = valid_started.elapsed().as_secs_f64();
        let metrics = self.metrics(averaged, state, learner);
        all_finite(&metrics, "")
            .and_then(|()| match self.last_epoch_after {
                // A memory probe validates a few batches.
                Some(_) => Ok(()),
                None => all_deciding(&metrics, &self.plan),
            })
            .map_err(|outcome| self.fail(outcome))?;
        self.draw_samples(epoch, learner, valid)?;
        let improved = self.finish_epoch(state, metrics, train_secs, valid_secs);
        self.trace(|trace| trace.add_digests(&digests));
        let spec = &self.plan.checkpoint;
        let due = epoch.is_multiple_of(spec.every_epochs) || spec.every_steps.is_some();
        let is_last = epoch == self.last_epoch() || state.is_stopped_early(&self.plan);
        if improved || due || is_last {
            self.save(state, parts, learner);
        }
        Ok(())
    }

    fn reach(&self, phase: Phase) {
        Fault::reach(self.fault.as_ref(), phase);
    }

    /// The epoch with which it ends.
    fn last_epoch(&self) -> usize {
        let planned = self.plan.train.epochs;
        self.pause.map_or(planned, |pause| pause.epoch.min(planned))
    }

    fn is_last_step(&self, state: &State) -> bool {
        self.last_step
            .is_some_and(|last| state.step(&self.plan) >= last)
    }

    fn fail(&self, outcome: Outcome) {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.failure = Some(outcome);
    }

    fn is_failed(&self) -> bool {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.failure.is_some()
    }

    /// The next batch, whose operations are about to start; a missing one ends the training with its error.
    fn next_batch(
        &self,
        batches: &mut dyn DataLoaderIterator<Batch>,
        interrupter: &Interrupter,
    ) -> Option<Batch> {
        #[cfg(feature = "flex")]
        if self.plan.device.backend == Backend::Flex {
            runner_network::stay_awake();
        }
        match batches.next()? {
            Ok(batch) => Some(batch),
            Err(error) => {
                interrupter.fail(error);
                None
            }
        }
    }
}
