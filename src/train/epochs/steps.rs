//! The updates of an epoch.

use burn::data::dataloader::DataLoaderIterator;
use burn::optim::GradientsParams;
use burn::train::{
    EventProcessorTraining, Interrupter, Learner, LearnerEvent, TrainLoader, TrainingItem,
};

use super::{Components, Epochs};
use crate::train::fault::Phase;
use crate::train::pulse::Pulse;
use crate::train::shared::SharedNetwork;
use runner_core::data::order::stream_seed;
use runner_core::event::{Event, Progress};
use runner_network::batch::Batch;
use runner_network::gradients;
use runner_network::network::Network;
use runner_network::norms::NormLog;
use runner_network::scores::Measured;
use runner_network::state::State;
use runner_network::sums::Sums;
use runner_network::trained::Trained;

impl Epochs {
    pub(super) fn train(
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
        let mut staged = Vec::new();
        let mut num_staged = 0;
        let mut batches = loader.iter();
        while state.steps_in_epoch < self.plan.steps_per_epoch && !self.is_last_step(state) {
            let step = state.step(&self.plan);
            self.reach(Phase::Training(step + 1));
            self.seed(step, learner);
            let Some(mut pieces) = self.step(step, learner, &mut *batches, &interrupter, &norms)
            else {
                break;
            };
            state.steps_in_epoch += 1;
            state.learning_rate = learner.lr_current().base();
            staged.append(&mut pieces);
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
    pub(super) fn hand_over(
        &self,
        staged: &mut Vec<Measured>,
        batches: &dyn DataLoaderIterator<Batch>,
        state: &State,
        parts: &mut Components,
    ) {
        if staged.is_empty() {
            return;
        }
        let outputs = std::mem::take(staged).into();
        let (progress, step) = (batches.progress(), state.steps_in_epoch);
        let item = TrainingItem::new(outputs, progress, Some(step), None);
        let processed = LearnerEvent::ProcessedItem(item);
        let processed = parts.event_processor.process_train(processed);
        parts.interrupter.fail_on_error(processed);
    }

    /// Saves a checkpoint in the middle of an epoch, once all of its updates so far are included in the sums.
    pub(super) fn save_within_epoch(
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

    /// A step with its update, predicted or not; returns its measurements, or `None` if a batch is not available.
    fn step(
        &self,
        step: usize,
        learner: &mut Learner<SharedNetwork>,
        batches: &mut dyn DataLoaderIterator<Batch>,
        interrupter: &Interrupter,
        norms: &NormLog,
    ) -> Option<Vec<Measured>> {
        let mut next = || self.next_batch(batches, interrupter);
        let is_predicting = learner.model().hold(Trained::is_predicting);
        if !is_predicting {
            let measured = self.real_step(step, learner, &mut next, norms)?;
            return self.observe(learner, measured);
        }
        let mut pieces = Vec::new();
        for _ in self.pieces(step) {
            pieces.push(next()?);
        }
        let predicted = self.predicted_step(learner, &pieces)?;
        if let Some(measured) = predicted {
            learner.lr_step();
            return Some(measured);
        }
        let mut pieces = pieces.into_iter();
        let measured = self.real_step(step, learner, &mut || pieces.next(), norms)?;
        self.observe(learner, measured)
    }

    /// A step whose update the optimizer makes.
    fn real_step(
        &self,
        step: usize,
        learner: &mut Learner<SharedNetwork>,
        next: &mut dyn FnMut() -> Option<Batch>,
        norms: &NormLog,
    ) -> Option<Vec<Measured>> {
        let mut kept = Vec::new();
        let takes_turns = learner.model().hold(Trained::takes_turns);
        let mut next = || {
            let batch = next()?;
            if takes_turns {
                kept.push(batch.clone());
            }
            Some(batch)
        };
        let (gradients, mut pieces) = self.backward(step, learner, &mut next)?;
        if let Some(watch) = &self.watch {
            let look = |network: &Network| watch.look_at_gradients(step + 1, network, &gradients);
            learner.model().look(look);
        }
        let gradients = learner
            .model()
            .look(|network| norms.measure_and_clip(network, gradients, pieces.last_mut()));
        learner.lr_step();
        learner.optimizer_step(gradients);
        if learner.model().hold(Trained::is_between_turns) {
            self.generator_turn(step, learner, kept, norms, &mut pieces)?;
        }
        Some(pieces)
    }

    /// The generator's update of an adversarial training, with the noise of the pieces of the discriminator's.
    fn generator_turn(
        &self,
        step: usize,
        learner: &mut Learner<SharedNetwork>,
        batches: Vec<Batch>,
        norms: &NormLog,
        to: &mut [Measured],
    ) -> Option<()> {
        self.seed(step, learner);
        let mut batches = batches.into_iter();
        let (gradients, mut pieces) = self.backward(step, learner, &mut || batches.next())?;
        if let Some(watch) = &self.watch {
            let look = |network: &Network| watch.look_at_gradients(step + 1, network, &gradients);
            learner.model().look(look);
        }
        let gradients = learner
            .model()
            .look(|network| norms.measure_and_clip(network, gradients, pieces.last_mut()));
        learner.optimizer_step(gradients);
        let both = to.iter_mut().zip(pieces);
        both.for_each(|(measured, more)| measured.add_generator(more));
        Some(())
    }

    /// Starts the random numbers of an update.
    fn seed(&self, step: usize, learner: &Learner<SharedNetwork>) {
        let purpose = learner.model().hold(Trained::purpose);
        self.device
            .seed(stream_seed(self.plan.seed, purpose, step as u64));
    }

    /// The sizes of the pieces of a step.
    pub(super) fn pieces(&self, step: usize) -> Vec<usize> {
        let in_epoch = step % self.plan.steps_per_epoch;
        self.plan.pieces(in_epoch, self.sizes.at(step)).collect()
    }

    /// The gradients of a step and its measurements, piece by piece; `None` if a batch is not available.
    pub(super) fn backward(
        &self,
        step: usize,
        learner: &Learner<SharedNetwork>,
        next: &mut dyn FnMut() -> Option<Batch>,
    ) -> Option<(GradientsParams, Vec<Measured>)> {
        let pieces = self.pieces(step);
        let num_items: usize = pieces.iter().sum();
        let mut sum = None;
        let mut measured: Vec<Measured> = Vec::new();
        for piece in pieces {
            let batch = next()?;
            if let Some(watch) = &self.watch {
                let look = |held: &Trained| watch.look_at_outputs(step + 1, held, &batch);
                learner.model().hold(look);
                // The random numbers that the layers just used are repeated.
                self.seed(step, learner);
                learner.model().hold(Trained::draw_again);
            }
            let output = learner.train_step(batch);
            let weight = piece as f64 / num_items as f64;
            let add = |network: &Network| gradients::add(network, sum.take(), output.grads, weight);
            sum = Some(learner.model().look(add));
            if let Some(before) = measured.last_mut() {
                before.goes_on = true;
            }
            measured.extend(output.item.into_measured());
        }
        Some((sum?, measured))
    }
}
