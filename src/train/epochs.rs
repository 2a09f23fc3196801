//! The training loop, as a strategy of Burn's `SupervisedTraining`.
//!
//! It differs from Burn's own where exactness requires it: the device's generator is seeded for each step, the order of
//! items is set for each epoch, a stop saves a checkpoint in the middle of an epoch, and training resumes from there.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use burn::data::dataloader::DataLoaderIterator;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::Device;
use burn::train::checkpoint::CheckpointerError;
use burn::train::{
    EventProcessorTraining, InferenceStep, Interrupter, Learner, LearnerEvent,
    SupervisedLearningStrategy, SupervisedTrainingEventProcessor, TrainLoader, TrainingComponents,
    TrainingItem, ValidLoader,
};

use super::checkpoint::{Best, Checkpoints, State};
use super::diagnose::Watch;
use super::digest::parameter_digests;
use super::fault::{Fault, Phase};
use super::loader::{Cursor, WrongCount};
use super::memory::Meter;
use super::metrics::{EpochSums, Outputs, SharedSums, Sums};
use super::pulse::Pulse;
use super::shared::SharedNetwork;
use runner_network::batch::Batch;
use runner_network::gradients;

use super::{Emit, all_finite, evaluate, wrong_count};
use runner_core::data::order::{Purpose, stream_seed};
use runner_core::event::{Epoch, Event, FailureClass, MemoryGrowth, Metrics, Outcome, Progress};
use runner_core::plan::{PieceSizes, RunPlan};
use runner_core::record::{Digests, TraceWriter};
use runner_network::network::Network;
use runner_network::norms::NormLog;
use runner_network::paths::Paths;
use runner_network::scores::{Measured, Scores};

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
    /// Looks for the origin of a non-finite number.
    pub watch: Option<Watch>,
    /// Updates after which the training ends, in the middle of an epoch or not.
    pub last_step: Option<usize>,
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
        while state.epochs_done < self.plan.train.epochs
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
            self.reach(Phase::Epoch(epoch));
            let train_started = Instant::now();
            self.train(epoch, &mut state, &mut parts, &mut learner, &train);
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
                self.meter.acknowledge();
                self.has_stopped.store(true, Ordering::Release);
                let sums = self.sums.lock();
                let is_good = parts.interrupter.error().is_none() && !self.is_failed();
                if is_good && sums.not_finite.is_none() {
                    state.train_sums = sums.train.clone();
                    drop(sums);
                    self.save(&state, &mut parts, &learner);
                }
                break;
            }
            if let Err(wrong) = self.check_counts(&valid) {
                self.fail(wrong_count(wrong));
                break;
            }
            let Ok(averaged) = self.validate_average(&learner, &valid) else {
                break;
            };
            let Ok(digests) = self.digests(epoch * self.plan.steps_per_epoch, &learner) else {
                break;
            };
            let valid_secs = valid_started.elapsed().as_secs_f64();
            let metrics = self.metrics(averaged, &state);
            if let Err(outcome) = all_finite(&metrics, "") {
                self.fail(outcome);
                break;
            }
            let improved = self.finish_epoch(&mut state, metrics, train_secs, valid_secs);
            self.trace(|trace| trace.add_digests(&digests));
            let spec = &self.plan.checkpoint;
            let due = epoch.is_multiple_of(spec.every_epochs) || spec.every_steps.is_some();
            let is_last = epoch == self.plan.train.epochs || state.is_stopped_early(&self.plan);
            if improved || due || is_last {
                self.save(&state, &mut parts, &learner);
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
    fn train(
        &self,
        epoch: usize,
        state: &mut State,
        parts: &mut Components,
        learner: &mut Learner<SharedNetwork>,
        loader: &TrainLoader<SharedNetwork>,
    ) {
        let interrupter = parts.interrupter.clone();
        let start = parts
            .event_processor
            .process_train(LearnerEvent::StartSplit {
                epoch_number: epoch,
                total_items: loader.num_items(),
            });
        interrupter.fail_on_error(start);
        self.cursor.set(epoch, state.steps_in_epoch);
        let mut pulse = Pulse::new(state.step(&self.plan));
        let log_every = match self.watch {
            None => self.plan.train.log_every,
            Some(_) => 1,
        };
        let every_steps = self.plan.checkpoint.every_steps;
        let norms = NormLog::new(&self.plan);
        let mut staged = Outputs::default();
        let mut num_staged = 0;
        let mut batches = loader.iter();
        while state.steps_in_epoch < self.plan.steps_per_epoch && !self.is_last_step(state) {
            let step = state.step(&self.plan);
            self.reach(Phase::Training(step + 1));
            self.device
                .seed(stream_seed(self.plan.seed, Purpose::Step, step as u64));
            let Some((gradients, mut pieces)) =
                self.backward(step, learner, &mut *batches, &interrupter)
            else {
                break;
            };
            if let Some(watch) = &self.watch {
                let look =
                    |network: &Network| watch.look_at_gradients(step + 1, network, &gradients);
                learner.model().look(look);
            }
            let gradients = learner
                .model()
                .look(|network| norms.measure_and_clip(network, gradients, pieces.0.last_mut()));
            learner.lr_step();
            learner.optimizer_step(gradients);
            state.steps_in_epoch += 1;
            state.learning_rate = learner.lr_current().base();
            staged.0.append(&mut pieces.0);
            num_staged += 1;
            if num_staged == log_every {
                self.hand_over(&mut staged, &*batches, state, parts);
                num_staged = 0;
            }
            if let Some(steps_per_sec) = pulse.beat(step + 1) {
                (self.emit)(Event::Progressed(Progress {
                    epoch,
                    step: step + 1,
                    num_steps: self.plan.num_steps(),
                    steps_per_sec,
                }));
            }
            if interrupter.should_stop() {
                break;
            }
            let is_over =
                state.steps_in_epoch == self.plan.steps_per_epoch || self.is_last_step(state);
            if !is_over && every_steps.is_some_and(|every| (step + 1).is_multiple_of(every)) {
                self.hand_over(&mut staged, &*batches, state, parts);
                num_staged = 0;
                self.save_within_epoch(state, parts, learner);
            }
        }
        self.hand_over(&mut staged, &*batches, state, parts);
        let processor = &mut parts.event_processor;
        interrupter.fail_on_error(processor.process_train(LearnerEvent::EndSplit(epoch)));
        interrupter.fail_on_error(processor.flush());
    }

    /// Passes the measurements of steps so far to the metrics. The sums do not depend on when this happens.
    fn hand_over(
        &self,
        staged: &mut Outputs,
        batches: &dyn DataLoaderIterator<Batch>,
        state: &State,
        parts: &mut Components,
    ) {
        let outputs = std::mem::take(staged);
        if outputs.0.is_empty() {
            return;
        }
        let (progress, step) = (batches.progress(), state.steps_in_epoch);
        let item = TrainingItem::new(outputs, progress, Some(step), None);
        let processed = LearnerEvent::ProcessedItem(item);
        let processed = parts.event_processor.process_train(processed);
        parts.interrupter.fail_on_error(processed);
    }

    /// Saves a checkpoint in the middle of an epoch, once all of its updates so far are included in the sums.
    fn save_within_epoch(
        &self,
        state: &mut State,
        parts: &mut Components,
        learner: &Learner<SharedNetwork>,
    ) {
        let flushed = parts.event_processor.flush();
        parts.interrupter.fail_on_error(flushed);
        self.trace_losses();
        if !parts.interrupter.should_stop() {
            state.train_sums = self.sums.lock().train.clone();
            self.save(state, parts, learner);
            state.train_sums = Sums::default();
        }
    }

    /// The gradients of a step and its measurements, piece by piece; `None` if a batch is not available.
    fn backward(
        &self,
        step: usize,
        learner: &Learner<SharedNetwork>,
        batches: &mut dyn DataLoaderIterator<Batch>,
        interrupter: &Interrupter,
    ) -> Option<(GradientsParams, Outputs)> {
        let in_epoch = step % self.plan.steps_per_epoch;
        let pieces = self.plan.pieces(in_epoch, self.sizes.at(step));
        let pieces: Vec<_> = pieces.collect();
        let num_items: usize = pieces.iter().sum();
        let mut sum = None;
        let mut measured: Vec<Measured> = Vec::new();
        for piece in pieces {
            let batch = next_batch(batches, interrupter)?;
            if let Some(watch) = &self.watch {
                let look = |network: &Network| watch.look_at_outputs(step + 1, network, &batch);
                learner.model().look(look);
                // The random numbers that the layers just used are repeated.
                let seed = stream_seed(self.plan.seed, Purpose::Step, step as u64);
                self.device.seed(seed);
            }
            let output = learner.train_step(batch);
            let weight = piece as f64 / num_items as f64;
            let add = |network: &Network| gradients::add(network, sum.take(), output.grads, weight);
            sum = Some(learner.model().look(add));
            if let Some(before) = measured.last_mut() {
                before.goes_on = true;
            }
            measured.extend(output.item.0);
        }
        Some((sum?, Outputs(measured)))
    }

    /// Metrics of the moving average of the weights, if any; a failure is recorded.
    fn validate_average(
        &self,
        learner: &Learner<SharedNetwork>,
        loader: &ValidLoader<SharedNetwork>,
    ) -> Result<Metrics, ()> {
        let Some(average) = learner.model().average() else {
            return Ok(Metrics::new());
        };
        evaluate(&average, &**loader, &self.scores, "valid_ema", &self.plan)
            .map_err(|outcome| self.fail(outcome))
    }

    fn validate(
        &self,
        epoch: usize,
        parts: &mut Components,
        learner: &Learner<SharedNetwork>,
        loader: &ValidLoader<SharedNetwork>,
    ) {
        let Components {
            event_processor: processor,
            interrupter,
            ..
        } = parts;
        interrupter.fail_on_error(processor.process_valid(LearnerEvent::StartSplit {
            epoch_number: epoch,
            total_items: loader.num_items(),
        }));
        let model = learner.model().valid();
        let mut batches = loader.iter();
        let mut num_batches = 0;
        let mut staged = Outputs::default();
        while let Some(batch) = next_batch(&mut *batches, interrupter) {
            num_batches += 1;
            staged.0.extend(InferenceStep::step(&model, batch).0);
            self.reach(Phase::Validating(epoch));
            let is_last = batches.progress().is_completed();
            if staged.0.len() == self.plan.train.log_every || is_last {
                let outputs = std::mem::take(&mut staged);
                let item = TrainingItem::new(outputs, batches.progress(), Some(num_batches), None);
                let processed = processor.process_valid(LearnerEvent::ProcessedItem(item));
                interrupter.fail_on_error(processed);
            }
            if interrupter.should_stop() {
                break;
            }
        }
        interrupter.fail_on_error(processor.process_valid(LearnerEvent::EndSplit(epoch)));
        interrupter.fail_on_error(processor.process_train(LearnerEvent::EndEpoch(epoch)));
        interrupter.fail_on_error(processor.flush());
    }

    /// The epoch's metrics by name.
    fn metrics(&self, averaged: Metrics, state: &State) -> Metrics {
        let sums = self.sums.lock();
        let splits = [
            ("train", sums.train.metrics(&self.scores, None)),
            (
                "valid",
                sums.valid.metrics(&self.scores, Some(&sums.ranked)),
            ),
            ("valid_ema", averaged),
        ];
        let mut metrics = Metrics::new();
        for (split, values) in splits {
            let named = values.into_iter();
            metrics.extend(named.map(|(name, value)| (format!("{split}/{name}"), value)));
        }
        metrics.insert("learning_rate".into(), state.learning_rate);
        metrics
    }

    /// Adds the epoch's metrics to the state and sends them; returns whether it is the best so far.
    fn finish_epoch(
        &self,
        state: &mut State,
        metrics: Metrics,
        train_secs: f64,
        valid_secs: f64,
    ) -> bool {
        state.epochs_done += 1;
        state.steps_in_epoch = 0;
        let objective = self.plan.objective;
        let value = metrics.get(&objective.name()).copied().unwrap_or(f64::NAN);
        let improved = state
            .best_epoch()
            .is_none_or(|best| self.plan.prefers_later(&metrics, &best.metrics));
        if improved {
            state.best = Some(Best {
                epoch: state.epochs_done,
                step: state.step(&self.plan),
                value,
            });
        }
        let held = self.meter.look(true);
        let epoch = Epoch {
            epoch: state.epochs_done,
            step: state.step(&self.plan),
            metrics,
            train_secs,
            valid_secs,
            memory_bytes: held.process_bytes,
            pool: held.pool,
        };
        (self.emit)(Event::EpochFinished(epoch.clone()));
        state.history.push(epoch);
        self.tell_growth(state);
        improved
    }

    /// Reports once that memory grows from epoch to epoch of this attempt, when it is beyond doubt.
    fn tell_growth(&self, state: &State) {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        if result.has_grown {
            return;
        }
        let epochs = state.history.iter().skip(self.start.epochs_done);
        let held: Vec<_> = epochs
            .map(|epoch| match epoch.pool {
                Some(pool) => (pool.in_use_bytes, Some(pool)),
                None => (epoch.memory_bytes, None),
            })
            .collect();
        if let Some(growth) = MemoryGrowth::fit(&held, self.plan.steps_per_epoch) {
            result.has_grown = true;
            (self.emit)(Event::MemoryGrew(growth));
        }
    }

    fn save(&self, state: &State, parts: &mut Components, learner: &Learner<SharedNetwork>) {
        if self.watch.is_some() {
            return;
        }
        if let Some(checkpointer) = &mut parts.checkpointer {
            let step = state.step(&self.plan);
            let mut state = State {
                wall_secs: self.start.wall_secs + self.started.elapsed().as_secs_f64(),
                trace: None,
                ..state.clone()
            };
            self.trace(|trace| {
                state.trace = trace.sums(step);
                Ok(())
            });
            // Resumed here and not trained since: the weights on disk are these. They are not rewritten, so that a kill
            // cannot damage them.
            if step > 0 && step == self.start.step(&self.plan) {
                let restated = self.checkpoints.restate(step, state);
                let restated = restated.map_err(|e| CheckpointerError::Unknown(e.to_string()));
                parts.interrupter.fail_on_error(restated);
                return;
            }
            learner.model().settle();
            self.checkpoints.expect(step, state);
            checkpointer.checkpoint(learner, step, &parts.event_store);
        }
    }

    fn reach(&self, phase: Phase) {
        Fault::reach(self.fault.as_ref(), phase);
    }

    fn is_last_step(&self, state: &State) -> bool {
        self.last_step
            .is_some_and(|last| state.step(&self.plan) >= last)
    }

    /// Adds the observed losses to the trace, before a checkpoint claims that they exist.
    fn trace_losses(&self) {
        let losses = std::mem::take(&mut self.sums.lock().losses);
        self.trace(|trace| trace.add_losses(&losses));
    }

    /// The digests of the parameters for the trace, none for a training without one; a non-finite parameter is a
    /// failure, which is recorded.
    fn digests(&self, step: usize, learner: &Learner<SharedNetwork>) -> Result<Digests, ()> {
        let mut digests = Digests {
            step,
            parameters: Vec::new(),
        };
        if self.trace.is_none() {
            return Ok(digests);
        }
        digests.parameters = parameter_digests(&learner.model(), &Paths::new(&self.plan))
            .map_err(|path| {
                let message = format!(
                    "the weights of `{path}` are infinite or NaN after step {step}; lower `optimizer.learning_rate`, or set `optimizer.clip`"
                );
                self.fail(Outcome::failed(FailureClass::NotFinite, message));
            })?;
        Ok(digests)
    }

    /// Whether the epoch's metrics cover all items of both splits. A split that ends early looks complete, and
    /// measurements go through a thread of Burn's: so items are counted where they are accumulated.
    fn check_counts(&self, valid: &ValidLoader<SharedNetwork>) -> Result<(), WrongCount> {
        let plan = &self.plan;
        let num_train = (plan.steps_per_epoch * plan.train.batch_size).min(plan.data.num_train);
        let sums = self.sums.lock();
        WrongCount::check("train", sums.train.num_items(), num_train)?;
        WrongCount::check("valid", sums.valid.num_items(), valid.num_items())
    }

    /// Writes to the trace; a failing disk ends the run.
    fn trace(&self, write: impl FnOnce(&mut TraceWriter) -> io::Result<()>) {
        let Some(trace) = &self.trace else { return };
        let mut trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = write(&mut trace) {
            let message = format!("the trace cannot be written: {error}");
            self.fail(Outcome::failed(FailureClass::Disk, message));
        }
    }

    fn fail(&self, outcome: Outcome) {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.failure = Some(outcome);
    }

    fn is_failed(&self) -> bool {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.failure.is_some()
    }
}

/// The next batch; a missing one ends the training with its error.
fn next_batch(
    batches: &mut dyn DataLoaderIterator<Batch>,
    interrupter: &Interrupter,
) -> Option<Batch> {
    match batches.next()? {
        Ok(batch) => Some(batch),
        Err(error) => {
            interrupter.fail(error);
            None
        }
    }
}
