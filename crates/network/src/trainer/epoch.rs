//! The end of an epoch, and the metrics of a network over a split.

use std::sync::atomic::Ordering;

use burn::module::Module;

use super::{Advance, Finished, Trainer, unread};
use crate::batch::Batch;
use crate::copies;
use crate::evaluation::Errors;
use crate::failure::{WrongCount, all_deciding, all_finite, how_to_stay_finite, wrong_count};
use crate::hybrid::Counters;
use crate::network::Network;
use crate::scores::read;
use crate::serve::{Order, Serve};
use crate::sums::{EpochSums, NotFinite};
use runner_core::event::{Epoch, FailureClass, Metrics, Outcome};
use runner_core::record::evaluation::Evaluation;

impl Trainer {
    /// Continues with the next epoch when this one has no more updates, without validating it: for trainings whose
    /// metrics do not matter.
    pub fn skip_validation(&mut self) {
        if self.state.steps_in_epoch < self.plan.steps_per_epoch {
            return;
        }
        self.state.epochs_done += 1;
        self.state.steps_in_epoch = 0;
        self.sums = EpochSums::default();
        let next = self.state.epochs_done + 1;
        self.order = Order::of(&self.plan, self.splits.train.split(), next);
    }

    pub(super) fn check_finite(&self) -> Result<(), Outcome> {
        let Some(NotFinite { what, step }) = self.sums.not_finite else {
            return Ok(());
        };
        let epoch = self.state.epochs_done + 1;
        let mut message = format!("the {what} became infinite or NaN in epoch {epoch}");
        let step = step.map(|step| (epoch - 1) * self.plan.steps_per_epoch + step);
        if let Some(step) = step {
            message += &format!(", step {step}");
        }
        message += how_to_stay_finite(step);
        Err(Outcome::failed(FailureClass::NotFinite, message))
    }

    pub(super) fn finish_epoch(&mut self, started: f64) -> Result<Advance, Outcome> {
        let valid = self.held().valid();
        let mut sums = std::mem::take(&mut self.sums);
        self.add_items(&mut sums, valid.current(), &self.splits.valid)?;
        self.sums = sums;
        self.check_finite()?;
        let plan = &self.plan;
        let num_train = (plan.steps_per_epoch * plan.train.batch_size).min(plan.data.num_train);
        let num_valid = self.splits.valid.split().num_items();
        WrongCount::check("train", self.sums.train.num_items(), num_train)
            .and_then(|()| WrongCount::check("valid", self.sums.valid.num_items(), num_valid))
            .map_err(wrong_count)?;
        let mut averaged = Vec::new();
        for average in self.held().averages() {
            let metrics = self.evaluate(&average.network, &self.splits.valid, average.valid)?;
            averaged.push((average.valid, metrics));
        }
        let digests = self.digests()?;
        let mut metrics = self.sums.metrics(&self.scores, averaged);
        metrics.insert("learning_rate".into(), self.state.learning_rate);
        let counters = self.held().counters();
        metrics.extend(counters.iter().flat_map(Counters::metrics));
        all_finite(&metrics, "")?;
        all_deciding(&metrics, plan)?;
        let epoch = Epoch {
            epoch: self.state.epochs_done + 1,
            step: digests.step,
            metrics,
            train_secs: std::mem::take(&mut self.train_secs),
            valid_secs: (self.clock)() - started,
            memory_bytes: 0,
            pool: None,
        };
        let is_best = self.state.finish_epoch(epoch.clone(), &self.plan);
        if is_best {
            self.held().settle();
            self.best = Some(self.held().separate());
        }
        self.sums = EpochSums::default();
        let reductions = self.state.num_reductions(&self.plan);
        self.reductions.store(reductions, Ordering::Relaxed);
        let next = self.state.epochs_done + 1;
        self.order = Order::of(&self.plan, self.splits.train.split(), next);
        Ok(Advance::EpochFinished {
            epoch: Box::new(epoch),
            digests,
            is_best,
        })
    }

    /// Adds the outputs of a network for the items of a split.
    fn add_items(&self, to: &mut EpochSums, network: &Network, of: &Serve) -> Result<(), Outcome> {
        for batch in of.in_order(self.sizes.at(self.step().saturating_sub(1))) {
            self.add_batch(to, network, batch)?;
        }
        Ok(())
    }

    fn add_batch(
        &self,
        to: &mut EpochSums,
        network: &Network,
        batch: Batch,
    ) -> Result<(), Outcome> {
        let measured = self.scores.measure(network.output(batch), true);
        for batch in read(vec![measured]).map_err(unread)? {
            to.add_valid(batch).map_err(unread)?;
        }
        Ok(())
    }

    /// The metrics of the current weights on a batch of the valid split, from 0; `None` after the last one.
    ///
    /// # Errors
    /// A failure, if a metric is infinite or NaN.
    pub fn evaluate_batch(&self, at: usize) -> Result<Option<Metrics>, Outcome> {
        let Some(batch) = self.splits.valid.batch_at(at) else {
            return Ok(None);
        };
        let mut sums = EpochSums::default();
        self.add_batch(&mut sums, self.held().valid().current(), batch)?;
        self.metrics(&sums, "valid").map(Some)
    }

    /// The metrics of a network over a whole split.
    fn evaluate(&self, network: &Network, split: &Serve, name: &str) -> Result<Metrics, Outcome> {
        let mut sums = EpochSums::default();
        self.add_items(&mut sums, network, split)?;
        self.metrics(&sums, name)
    }

    fn metrics(&self, sums: &EpochSums, name: &str) -> Result<Metrics, Outcome> {
        if sums.not_finite.is_some() {
            let message =
                format!("the {name} loss is infinite or NaN; lower `optimizer.learning_rate`");
            return Err(Outcome::failed(FailureClass::NotFinite, message));
        }
        let metrics = sums.valid.metrics(&self.scores, Some(&sums.ranked));
        all_finite(&metrics, &format!("{name}/"))?;
        Ok(metrics)
    }

    /// Evaluates the best weights.
    ///
    /// # Errors
    /// A failure, if a metric is infinite or NaN.
    pub fn finish(&self) -> Result<Finished, Outcome> {
        let held = self.held();
        let averages = held.averages().into_iter();
        let averages = averages.map(|average| (average.name, average.network));
        let weights = [("final", held.network())].into_iter().chain(averages);
        let best = self.best.as_ref().unwrap_or(held);
        let averages = best.averages();
        let chosen = copies::of_objective(self.plan.objective, &averages);
        let chosen = chosen.unwrap_or_else(|| best.network());
        let mut tests = Vec::new();
        let averages = averages.iter();
        let averages = averages.map(|average| (average.test, average.network.clone()));
        for (name, network) in [("test", best.network())].into_iter().chain(averages) {
            if let Some(test) = &self.splits.test {
                tests.push((name, self.evaluate(&network.valid(), test, name)?));
            }
        }
        let best = chosen.valid();
        let epoch = self
            .state
            .best
            .map_or(self.state.epochs_done, |best| best.epoch);
        Ok(Finished {
            weights: weights.collect(),
            evaluation: self.errors(&best, epoch)?,
            best,
            epoch,
            tests,
        })
    }

    /// The errors of weights on the valid split; `None` if there is nothing to report about single items.
    ///
    /// # Errors
    /// The device's, if its numbers cannot be read.
    pub fn errors(&self, network: &Network, epoch: usize) -> Result<Option<Evaluation>, Outcome> {
        let valid = &self.splits.valid;
        let Some(mut errors) = Errors::new(&self.plan, valid.split(), &self.scores) else {
            return Ok(None);
        };
        if errors.needs_items() {
            for batch in valid.in_order(self.sizes.at(usize::MAX)) {
                errors.add(network.output(batch)).map_err(unread)?;
            }
        }
        let found = errors.finish(network, valid.device(), epoch);
        found.map(Some).map_err(unread)
    }
}
