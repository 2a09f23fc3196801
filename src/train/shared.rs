//! The network under training, as Burn's learner wants it.
//!
//! The learner clones its model for each update and drops the old one after it, so that the optimizer
//! finds every weight in use and must write a second copy of them. Clones of a [`SharedNetwork`] are
//! handles to one network: the optimizer has the weights to itself and updates them in place.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::module::{Module, ModuleMapper, ModuleVisitor};
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::Device;
use burn::train::{InferenceStep, TrainOutput, TrainStep};

use super::loader::Batch;
use super::network::{Network, Outputs};

/// A handle to a network. An update through one clone is seen by all.
#[derive(Clone, Debug)]
pub struct SharedNetwork(Arc<Mutex<Option<Network>>>);

impl SharedNetwork {
    /// Shares a network.
    pub fn new(network: Network) -> Self {
        Self(Arc::new(Mutex::new(Some(network))))
    }

    /// A network of its own with the weights of this moment.
    pub fn network(&self) -> Network {
        self.with(Network::clone)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Network>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, read: impl FnOnce(&Network) -> T) -> T {
        read(
            self.lock()
                .as_ref()
                .expect("the network is only away during an update"),
        )
    }

    fn update(self, change: impl FnOnce(Network) -> Network) -> Self {
        let mut slot = self.lock();
        let network = slot
            .take()
            .expect("the network is only away during an update");
        *slot = Some(change(network));
        drop(slot);
        self
    }
}

impl TrainStep for SharedNetwork {
    type Input = Batch;
    type Output = Outputs;

    fn step(&self, batch: Batch) -> TrainOutput<Outputs> {
        self.with(|network| TrainStep::step(network, batch))
    }

    fn optimize(
        self,
        optimizer: &mut ModuleOptimizer,
        rate: ModuleLearningRate,
        gradients: GradientsParams,
    ) -> Self {
        self.update(|network| optimizer.step(rate, network, gradients))
    }
}

impl InferenceStep for SharedNetwork {
    type Input = Batch;
    type Output = Outputs;

    fn step(&self, batch: Batch) -> Outputs {
        self.with(|network| InferenceStep::step(network, batch))
    }
}

impl Module for SharedNetwork {
    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        self.with(|network| network.collect_devices(devices))
    }

    fn fork(self, device: &Device) -> Self {
        self.update(|network| network.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        self.update(|network| network.to_device(device))
    }

    fn train(self) -> Self {
        self.update(Module::train)
    }

    fn valid(&self) -> Self {
        Self::new(self.with(Module::valid))
    }

    fn materialize(self) -> Self {
        self.update(Module::materialize)
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.with(|network| network.visit(visitor));
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        self.update(|network| network.map(mapper))
    }
}

impl fmt::Display for SharedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|network| network.fmt(f))
    }
}
