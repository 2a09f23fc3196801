//! The network during training, in the form that Burn's learner needs.
//!
//! The learner clones its model for each update and drops the old one after it, so that the optimizer finds every
//! weight shared and must write a second copy. Clones of a [`SharedNetwork`] are handles to one network: the optimizer
//! owns the weights and updates them in place.
//!
//! The copies of its weights (averages, slow weights) live here too, so that they are in the same checkpoint.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::module::{Module, ModuleMapper, ModuleVisitor};
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::Device;
use burn::train::{InferenceStep, TrainOutput, TrainStep};

use super::metrics::Outputs;
use runner_core::plan::RunPlan;
use runner_network::batch::Batch;
use runner_network::copies::Average;
use runner_network::hybrid::Machine;
use runner_network::network::Network;
use runner_network::scores::Scores;
use runner_network::teacher::Teacher;
use runner_network::trained::Trained;

/// A handle to a network, with the copies of its weights if any. An update through one clone is visible in all.
#[derive(Clone, Debug)]
pub struct SharedNetwork {
    held: Arc<Mutex<Option<Trained>>>,
    scores: Arc<Scores>,
}

impl SharedNetwork {
    /// Shares a network that has had `num_updates` updates, and is to be trained by a plan.
    pub fn new(plan: &RunPlan, network: Network, num_updates: usize, scores: Arc<Scores>) -> Self {
        Self::of(Trained::new(plan, network, num_updates), scores)
    }

    fn of(held: Trained, scores: Arc<Scores>) -> Self {
        Self {
            held: Arc::new(Mutex::new(Some(held))),
            scores,
        }
    }

    /// A separate network with the weights that the run is judged by.
    pub fn network(&self) -> Network {
        self.hold(Trained::network)
    }

    /// The current averages.
    pub fn averages(&self) -> Vec<Average> {
        self.hold(Trained::averages)
    }

    /// The same, loaded with the weights of another step.
    pub fn at_step(self, num_updates: usize) -> Self {
        self.update(|held| held.at_step(num_updates))
    }

    /// Includes the newest statistics of batch norms in what is saved.
    pub fn settle(&self) {
        self.hold(Trained::settle);
    }

    /// Accesses the network without a copy.
    pub fn look<T>(&self, look: impl FnOnce(&Network) -> T) -> T {
        self.hold(|held| look(held.current()))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Trained>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accesses the network and its copies.
    pub fn hold<T>(&self, read: impl FnOnce(&Trained) -> T) -> T {
        read(
            self.lock()
                .as_ref()
                .expect("the network is only absent during an update"),
        )
    }

    /// Changes the network without the optimizer.
    pub fn change<T>(&self, change: impl FnOnce(&mut Trained) -> T) -> T {
        change(
            self.lock()
                .as_mut()
                .expect("the network is only absent during an update"),
        )
    }

    /// The same with the decisions about predictions of a checkpoint.
    pub fn deciding(self, machine: Option<Machine>) -> Self {
        self.update(|held| held.deciding(machine))
    }

    /// The same with a teacher, in a training that has one.
    pub fn taught_by(self, teacher: Option<Arc<Teacher>>) -> Self {
        self.update(|held| held.taught_by(teacher))
    }

    fn update(self, change: impl FnOnce(Trained) -> Trained) -> Self {
        let mut slot = self.lock();
        let held = slot
            .take()
            .expect("the network is only absent during an update");
        *slot = Some(change(held));
        drop(slot);
        self
    }
}

impl TrainStep for SharedNetwork {
    type Input = Batch;
    type Output = Outputs;

    fn step(&self, batch: Batch) -> TrainOutput<Outputs> {
        let (grads, measured) = self.hold(|held| held.backward(batch, &self.scores));
        TrainOutput {
            grads,
            item: vec![measured].into(),
        }
    }

    fn optimize(
        self,
        optimizer: &mut ModuleOptimizer,
        rate: ModuleLearningRate,
        gradients: GradientsParams,
    ) -> Self {
        self.update(|held| held.update(optimizer, rate, gradients))
    }
}

impl InferenceStep for SharedNetwork {
    type Input = Batch;
    type Output = Outputs;

    fn step(&self, batch: Batch) -> Outputs {
        let output = self.look(|network| network.output(batch));
        vec![self.scores.measure(output, true)].into()
    }
}

impl Module for SharedNetwork {
    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        self.hold(|held| held.collect_devices(devices))
    }

    fn fork(self, device: &Device) -> Self {
        self.update(|held| held.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        self.update(|held| held.to_device(device))
    }

    fn train(self) -> Self {
        self.update(Module::train)
    }

    fn valid(&self) -> Self {
        Self::of(self.hold(Module::valid), self.scores.clone())
    }

    fn materialize(self) -> Self {
        self.update(Module::materialize)
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.hold(|held| held.visit(visitor));
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        self.update(|held| held.map(mapper))
    }
}

impl fmt::Display for SharedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look(|network| network.fmt(f))
    }
}
