//! A training one update at a time, where there are no threads and no files, such as in a browser. Its numbers are those
//! of the program, which drives the same parts through Burn's learner.

mod epoch;
mod files;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use burn::module::Module;
use burn::optim::lr_scheduler::LrSchedulerRecord;
use burn::optim::lr_scheduler::module_lr_scheduler::{ModuleLearningRate, ModuleLrScheduler};
use burn::optim::{ModuleOptimizer, OptimizerRecord};
use burn::store::ModuleRecord;
use burn::tensor::{Bytes, Device};
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::digest::parameter_digests;
use crate::failure::weights_not_finite;
use crate::hybrid::Probe;
use crate::network::Network;
use crate::norms::NormLog;
use crate::paths::Paths;
use crate::schedule::Reductions;
use crate::scores::{Measured, Scores, read, step_loss};
use crate::serve::{Order, Serve};
use crate::state::State;
use crate::sums::EpochSums;
use crate::teacher::Teacher;
use crate::trained::Trained;
use crate::{gradients, optimizer, schedule};
use runner_core::data::Loaded;
use runner_core::data::order::{Purpose, stream_seed};
use runner_core::event::{Epoch, FailureClass, Metrics, Outcome};
use runner_core::plan::{PieceSizes, RunPlan};
use runner_core::record::Digests;
use runner_core::record::evaluation::Evaluation;
use runner_core::spec::train::Recomputed;

/// The seconds since any moment. This crate has no clock of its own.
pub type Clock = fn() -> f64;

/// A run in training.
pub struct Trainer {
    plan: RunPlan,
    device: Device,
    splits: Splits,
    sizes: PieceSizes,
    scores: Scores,
    norms: NormLog,
    /// The items that decide about predictions.
    probe: Option<Probe>,
    paths: Paths,
    /// Only absent during an update.
    trained: Option<Trained>,
    optimizer: ModuleOptimizer,
    schedule: ModuleLrScheduler,
    /// What the schedule knows of the history.
    reductions: Reductions,
    order: Order,
    sums: EpochSums,
    state: State,
    /// The weights of the best epoch, with their copies.
    best: Option<Trained>,
    clock: Clock,
    /// Seconds of training in the epoch.
    train_secs: f64,
}

struct Splits {
    train: Serve,
    valid: Serve,
    test: Option<Serve>,
}

/// What a call of [`Trainer::advance`] did.
#[derive(Debug)]
pub enum Advance {
    /// An update.
    Updated {
        /// Its loss.
        loss: f64,
    },
    /// The validation after the last update of an epoch.
    EpochFinished {
        /// The epoch.
        epoch: Box<Epoch>,
        /// The digests of all parameters.
        digests: Digests,
        /// Whether it is the best so far.
        is_best: bool,
    },
}

/// The state of a training as bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    /// The weights, as Burn writes them.
    pub model: Vec<u8>,
    /// The state of the optimizer.
    pub optimizer: Vec<u8>,
    /// The position in the schedule.
    pub scheduler: Vec<u8>,
    /// The weights of the best epoch.
    pub best: Option<Vec<u8>>,
    /// Everything else.
    pub state: State,
}

/// The result of a training.
#[derive(Debug)]
pub struct Finished {
    /// The weights after the last update, and averages of them by name.
    pub weights: Vec<(&'static str, Network)>,
    /// The weights of the best epoch, which predict.
    pub best: Network,
    /// That epoch; the last one if none was finished.
    pub epoch: usize,
    /// The metrics of the test split, and of the averages on it, by split.
    pub tests: Vec<(&'static str, Metrics)>,
    /// The errors of the best weights on the valid split.
    pub evaluation: Option<Evaluation>,
}

/// The device with autodiff, as planned.
pub fn training_device(plan: &RunPlan, device: &Device) -> Device {
    let device = device.clone().autodiff();
    if plan.train.gradient_checkpointing == Recomputed::Operations {
        device.gradient_checkpointing()
    } else {
        device
    }
}

impl Trainer {
    /// A training from its start, on a device without autodiff. `weights` are those that it starts with; by default they
    /// are drawn from the seed.
    pub fn new(
        plan: &RunPlan,
        loaded: Loaded,
        device: &Device,
        weights: Option<Network>,
        clock: Clock,
    ) -> Self {
        let host = device;
        let device = training_device(plan, host);
        let network = weights.unwrap_or_else(|| Network::drawn(plan, &device));
        let paths = Paths::new(plan);
        let parameters = paths.parameters(&network);
        let network = optimizer::freeze(plan, &parameters, network);
        let reductions = Reductions::default();
        let kept = plan.kept_on_device();
        let order = Order::of(plan, &loaded.train, 1);
        let set = loaded.train.set();
        let units = (set.target_units(), set.more_units());
        let scores = Scores::new(plan, loaded.pixels, (&units.0, &units.1));
        Self {
            splits: Splits {
                train: Serve::new(plan, loaded.train, &device, kept.contains_key("train")),
                valid: Serve::new(plan, loaded.valid, host, kept.contains_key("valid")),
                test: loaded.test.map(|test| Serve::new(plan, test, host, false)),
            },
            sizes: PieceSizes::new(plan, &[]),
            norms: NormLog::new(plan),
            probe: Probe::of(plan, host),
            trained: Some(Trained::new(plan, network, 0)),
            optimizer: optimizer::optimizer(plan, &parameters),
            schedule: schedule::schedule(plan, &parameters, &[], &reductions),
            reductions,
            order,
            sums: EpochSums::default(),
            state: State::default(),
            best: None,
            plan: plan.clone(),
            train_secs: 0.0,
            device,
            scores,
            paths,
            clock,
        }
    }

    /// The same with a teacher.
    pub fn taught_by(self, teacher: Option<Arc<Teacher>>) -> Self {
        Self {
            trained: self.trained.map(|trained| trained.taught_by(teacher)),
            ..self
        }
    }

    /// The same from a saved state.
    ///
    /// # Errors
    /// Why the state cannot be that of this run.
    pub fn resume(self, saved: Saved) -> Result<Self, String> {
        let wrong = |e: &dyn std::fmt::Display| format!("the saved state cannot be used: {e}");
        let state = saved.state;
        let step = state.step(&self.plan);
        let is_possible = state.epochs_done <= self.plan.train.epochs
            && state.steps_in_epoch <= self.plan.steps_per_epoch
            && state.history.len() == state.epochs_done;
        if !is_possible {
            return Err(wrong(&"it is of another run"));
        }
        let weights = |bytes: Vec<u8>| {
            ModuleRecord::from_bytes(Bytes::from_bytes_vec(bytes)).map_err(|e| wrong(&e))
        };
        let fresh = self.trained.ok_or_else(|| wrong(&"it is in use"))?;
        let best = match (saved.best, state.best) {
            (Some(bytes), Some(best)) => {
                let loaded = fresh.separate().try_load_record(weights(bytes)?);
                Some(loaded.map_err(|e| wrong(&e))?.at_step(best.step))
            }
            (None, None) => None,
            _ => return Err(wrong(&"the weights of its best epoch are missing")),
        };
        let trained = fresh.try_load_record(weights(saved.model)?);
        let reductions = state.num_reductions(&self.plan);
        self.reductions.store(reductions, Ordering::Relaxed);
        let optimizer = OptimizerRecord::from_bytes(Bytes::from_bytes_vec(saved.optimizer));
        let schedule = LrSchedulerRecord::from_bytes(Bytes::from_bytes_vec(saved.scheduler));
        Ok(Self {
            trained: Some({
                let trained = trained.map_err(|e| wrong(&e))?.at_step(step);
                trained.deciding(state.machine.clone())
            }),
            optimizer: self
                .optimizer
                .load_record(optimizer.map_err(|e| wrong(&e))?),
            schedule: self.schedule.load_record(schedule.map_err(|e| wrong(&e))?),
            order: Order::of(&self.plan, self.splits.train.split(), state.epochs_done + 1),
            sums: EpochSums {
                train: state.train_sums.clone(),
                steps: state.steps_in_epoch,
                ..EpochSums::default()
            },
            best,
            state,
            ..self
        })
    }

    /// The run.
    pub fn plan(&self) -> &RunPlan {
        &self.plan
    }

    /// Where the training is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Updates so far.
    pub fn step(&self) -> usize {
        self.state.step(&self.plan)
    }

    /// Whether all epochs are finished, or the training stopped early.
    pub fn is_done(&self) -> bool {
        self.state.epochs_done >= self.plan.train.epochs || self.state.is_stopped_early(&self.plan)
    }

    /// The network with its current weights, without autodiff.
    pub fn network(&self) -> Network {
        self.held().valid().network()
    }

    fn held(&self) -> &Trained {
        self.trained
            .as_ref()
            .expect("the network is only absent during an update")
    }

    /// The digests of the current parameters.
    ///
    /// # Errors
    /// A failure, if one of them is infinite or NaN.
    pub fn digests(&self) -> Result<Digests, Outcome> {
        let step = self.step();
        let parameters = parameter_digests(self.held(), &self.paths)
            .map_err(|path| weights_not_finite(&path, step))?;
        Ok(Digests { step, parameters })
    }

    /// The next update, or the validation after the last update of an epoch. The training must not be done.
    ///
    /// # Errors
    /// A failure that ends the run.
    pub fn advance(&mut self) -> Result<Advance, Outcome> {
        let started = (self.clock)();
        if self.state.steps_in_epoch < self.plan.steps_per_epoch {
            let loss = self.update()?;
            self.train_secs += (self.clock)() - started;
            Ok(Advance::Updated { loss })
        } else {
            self.finish_epoch(started)
        }
    }

    fn update(&mut self) -> Result<f64, Outcome> {
        let step = self.step();
        self.seed(step, Purpose::Step);
        let rate = self.schedule.step();
        self.state.learning_rate = rate.base();
        let measured = match self.predicted(step)? {
            Some(measured) => measured,
            None => self.real(step, rate)?,
        };
        self.state.steps_in_epoch += 1;
        let clip = self.plan.optimizer.clip.as_ref();
        let max_norm = clip.and_then(|clip| clip.global_norm);
        self.sums
            .add_step(&read(measured).map_err(unread)?, max_norm);
        self.check_finite()?;
        Ok(self.sums.losses.pop().unwrap_or(f64::NAN))
    }

    /// Starts the random numbers of an update.
    fn seed(&self, step: usize, purpose: Purpose) {
        let seed = stream_seed(self.plan.seed, purpose, step as u64);
        self.device.seed(seed);
    }

    /// The pieces of a step with their numbers of items, each gathered when it is computed.
    fn pieces(&self, step: usize) -> impl Iterator<Item = (usize, Batch)> {
        let in_epoch = step % self.plan.steps_per_epoch;
        let mut from = in_epoch * self.plan.train.batch_size;
        let pieces = self.plan.pieces(in_epoch, self.sizes.at(step));
        pieces.map(move |piece| {
            let batch = self.order.batch(&self.splits.train, from, piece);
            from += piece;
            (piece, batch)
        })
    }

    /// The measurements of a step whose update is predicted; none if the update has to be a real one.
    fn predicted(&mut self, step: usize) -> Result<Option<Vec<Measured>>, Outcome> {
        if !self.held().is_predicting() {
            return Ok(None);
        }
        let pieces = self.pieces(step).map(|(_, batch)| batch);
        let measured = self.held().forward_pieces(pieces, &self.scores);
        let (loss, _) = step_loss(&measured).map_err(unread)?;
        let mut trained = self.take();
        let is_over = trained.predict(loss, &|network| self.probed(network));
        self.trained = Some(trained);
        Ok(is_over.map_err(unread)?.then_some(measured))
    }

    /// The measurements of a step with a backward pass, after its update.
    fn real(&mut self, step: usize, rate: ModuleLearningRate) -> Result<Vec<Measured>, Outcome> {
        let mut trained = self.take();
        let (gradients, mut measured) = self.backward(step, &trained);
        let network = trained.current();
        let gradients = self
            .norms
            .measure_and_clip(network, gradients, measured.last_mut());
        trained = trained.update(&mut self.optimizer, rate.clone(), gradients);
        if trained.is_between_turns() {
            self.seed(step, trained.purpose());
            let (gradients, mut more) = self.backward(step, &trained);
            let network = trained.current();
            let gradients = self
                .norms
                .measure_and_clip(network, gradients, more.last_mut());
            trained = trained.update(&mut self.optimizer, rate, gradients);
            let both = measured.iter_mut().zip(more);
            both.for_each(|(measured, more)| measured.add_generator(more));
        }
        let mut after = Ok(());
        if self.probe.is_some() {
            let seen = step_loss(&measured);
            let probed = |network: &Network| self.probed(network);
            after = seen.and_then(|seen| trained.after_update(seen, &probed));
        }
        self.trained = Some(trained);
        after.map_err(unread)?;
        Ok(measured)
    }

    fn take(&mut self) -> Trained {
        self.trained
            .take()
            .expect("the network is only absent during an update")
    }

    /// The loss of a network on the probe.
    fn probed(&self, network: &Network) -> Result<f64, burn::tensor::TensorReadError> {
        let Some(probe) = &self.probe else {
            return Ok(f64::NAN);
        };
        probe.loss(&self.plan, self.splits.train.split(), network)
    }

    /// The gradients of a step and its measurements, piece by piece.
    fn backward(
        &self,
        step: usize,
        trained: &Trained,
    ) -> (burn::optim::GradientsParams, Vec<Measured>) {
        let in_epoch = step % self.plan.steps_per_epoch;
        let num_items: usize = self.plan.pieces(in_epoch, self.sizes.at(step)).sum();
        let (mut sum, mut measured) = (None, Vec::<Measured>::new());
        for (piece, batch) in self.pieces(step) {
            let (gradients, of_piece) = trained.backward(batch, &self.scores);
            let weight = piece as f64 / num_items as f64;
            let network = trained.current();
            sum = Some(gradients::add(network, sum, gradients, weight));
            if let Some(before) = measured.last_mut() {
                before.goes_on = true;
            }
            measured.push(of_piece);
        }
        (sum.unwrap_or_default(), measured)
    }

    /// The state of the training, from which it resumes to the bit.
    ///
    /// # Errors
    /// Burn's, if its records cannot be written.
    pub fn save(&self) -> Result<Saved, String> {
        let bytes = |of: Trained| {
            let bytes = of.into_record().into_bytes().map_err(|e| e.to_string())?;
            Ok::<_, String>(bytes.to_vec())
        };
        self.held().settle();
        let optimizer = self.optimizer.to_record().into_bytes();
        let scheduler = self.schedule.to_record().into_bytes();
        Ok(Saved {
            model: bytes(self.held().clone())?,
            optimizer: optimizer.map_err(|e| e.to_string())?.to_vec(),
            scheduler: scheduler.map_err(|e| e.to_string())?.to_vec(),
            best: self.best.clone().map(bytes).transpose()?,
            state: State {
                train_sums: self.sums.train.clone(),
                machine: self.held().machine().cloned(),
                ..self.state.clone()
            },
        })
    }
}

fn unread(error: burn::tensor::TensorReadError) -> Outcome {
    Outcome::failed(FailureClass::DeviceLost, error.to_string())
}
