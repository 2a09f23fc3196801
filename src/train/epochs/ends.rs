//! The end of an epoch: validation and metrics.

use std::sync::PoisonError;

use burn::module::Module;
use burn::train::{
    EventProcessorTraining, InferenceStep, Learner, LearnerEvent, TrainingItem, ValidLoader,
};

use super::{Components, Epochs};
use crate::train::evaluate;
use crate::train::fault::Phase;
use crate::train::samples;
use crate::train::shared::SharedNetwork;
use runner_core::event::{Epoch, Event, MemoryGrowth, Metrics};
use runner_network::failure::WrongCount;
use runner_network::hybrid::Counters;
use runner_network::state::State;
use runner_network::trained::Trained;

impl Epochs {
    /// Metrics of the averages of the weights, if any, each with its split; a failure is recorded.
    pub(super) fn validate_averages(
        &self,
        learner: &Learner<SharedNetwork>,
        loader: &ValidLoader<SharedNetwork>,
    ) -> Result<Vec<(&'static str, Metrics)>, ()> {
        let averages = learner.model().averages().into_iter();
        let measured = averages.map(|average| {
            let (network, split) = (&average.network, average.valid);
            let metrics = evaluate(network, &**loader, &self.scores, split, &self.plan);
            metrics
                .map(|metrics| (split, metrics))
                .map_err(|outcome| self.fail(outcome))
        });
        measured.collect()
    }

    pub(super) fn validate(
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
        let mut staged = Vec::new();
        while let Some(batch) = self.next_batch(&mut *batches, interrupter) {
            num_batches += 1;
            staged.extend(InferenceStep::step(&model, batch).into_measured());
            self.reach(Phase::Validating(epoch));
            let is_last = batches.progress().is_completed();
            if staged.len() == self.plan.train.log_every || is_last {
                let outputs = std::mem::take(&mut staged);
                let item =
                    TrainingItem::new(outputs.into(), batches.progress(), Some(num_batches), None);
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

    /// Draws what the network generates now, if that can be drawn; a failure is recorded.
    pub(super) fn draw_samples(
        &self,
        epoch: usize,
        learner: &Learner<SharedNetwork>,
        valid: &ValidLoader<SharedNetwork>,
    ) -> Result<(), ()> {
        let Some(folder) = &self.samples else {
            return Ok(());
        };
        let items = (self.items.split(), &**valid);
        let model = learner.model().valid();
        let drawn = model.look(|network| samples::write(folder, network, items, epoch));
        drawn.map_err(|outcome| self.fail(outcome))
    }

    /// The epoch's metrics by name.
    pub(super) fn metrics(
        &self,
        averaged: Vec<(&'static str, Metrics)>,
        state: &State,
        learner: &Learner<SharedNetwork>,
    ) -> Metrics {
        let mut metrics = self.sums.lock().metrics(&self.scores, averaged);
        metrics.insert("learning_rate".into(), state.learning_rate);
        let counters = learner.model().hold(Trained::counters);
        metrics.extend(counters.iter().flat_map(Counters::metrics));
        metrics
    }

    /// Adds the epoch's metrics to the state and sends them; returns whether it is the best so far.
    pub(super) fn finish_epoch(
        &self,
        state: &mut State,
        metrics: Metrics,
        train_secs: f64,
        valid_secs: f64,
    ) -> bool {
        let held = self.meter.look(true);
        let epoch = Epoch {
            epoch: state.epochs_done + 1,
            step: (state.epochs_done + 1) * self.plan.steps_per_epoch,
            metrics,
            train_secs,
            valid_secs,
            memory_bytes: held.process_bytes,
            pool: held.pool,
        };
        (self.emit)(Event::EpochFinished(epoch.clone()));
        let improved = state.finish_epoch(epoch, &self.plan);
        self.tell_growth(state);
        improved
    }

    /// Reports once that memory grows from epoch to epoch of this attempt, when it is beyond doubt.
    pub(super) fn tell_growth(&self, state: &State) {
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

    /// Whether the epoch's metrics cover all items of both splits. A split that ends early looks complete, and
    /// measurements go through a thread of Burn's: so items are counted where they are accumulated.
    pub(super) fn check_counts(
        &self,
        valid: &ValidLoader<SharedNetwork>,
    ) -> Result<(), WrongCount> {
        let plan = &self.plan;
        let num_train = (plan.steps_per_epoch * plan.train.batch_size).min(plan.data.num_train);
        let sums = self.sums.lock();
        WrongCount::check("train", sums.train.num_items(), num_train)?;
        WrongCount::check("valid", sums.valid.num_items(), valid.num_items())
    }
}
