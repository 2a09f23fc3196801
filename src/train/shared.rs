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

use super::copies::{Average, Copy};
use super::metrics::Outputs;
use runner_core::plan::RunPlan;
use runner_network::batch::Batch;
use runner_network::network::Network;
use runner_network::scores::Scores;

/// A handle to a network, with the copies of its weights if any. An update through one clone is visible in all.
#[derive(Clone, Debug)]
pub struct SharedNetwork(Arc<Mutex<Option<Held>>>);

#[derive(Clone, Debug)]
struct Held {
    network: Network,
    scores: Arc<Scores>,
    copies: Vec<Copy>,
    /// Optimizer updates so far.
    num_updates: usize,
}

impl SharedNetwork {
    /// Shares a network that has had `num_updates` updates, and is to be trained by a plan.
    pub fn new(plan: &RunPlan, network: Network, num_updates: usize, scores: Arc<Scores>) -> Self {
        let copies = Copy::of(plan, &network);
        Self::of(Held {
            network,
            scores,
            copies,
            num_updates,
        })
    }

    fn of(held: Held) -> Self {
        Self(Arc::new(Mutex::new(Some(held))))
    }

    /// A separate network with the weights that the run is judged by: the current ones, or the slow ones of Lookahead.
    pub fn network(&self) -> Network {
        self.with(|held| held.judged().unwrap_or_else(|| held.network.clone()))
    }

    /// The current averages.
    pub fn averages(&self) -> Vec<Average> {
        self.with(|held| {
            let averages = held.copies.iter();
            let averages = averages.map(|copy| copy.average(&held.network, held.num_updates));
            averages.flatten().collect()
        })
    }

    /// All copies of the weights with their names.
    pub fn copies(&self) -> Vec<(&'static str, Network)> {
        self.with(|held| {
            let copies = held.copies.iter();
            let read = |copy: &Copy| (copy.name(), copy.read(&held.network, held.num_updates));
            copies.map(read).collect()
        })
    }

    /// The same, loaded with the weights of another step.
    pub fn at_step(self, num_updates: usize) -> Self {
        self.update(|held| Held {
            num_updates,
            ..held
        })
    }

    /// Includes the newest statistics of batch norms in what is saved: Burn delays those of the last step until they
    /// are requested.
    pub fn settle(&self) {
        self.with(|held| drop(held.network.valid()));
    }

    /// Accesses the network without a copy.
    pub fn look<T>(&self, look: impl FnOnce(&Network) -> T) -> T {
        self.with(|held| look(&held.network))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, read: impl FnOnce(&Held) -> T) -> T {
        read(
            self.lock()
                .as_ref()
                .expect("the network is only absent during an update"),
        )
    }

    fn update(self, change: impl FnOnce(Held) -> Held) -> Self {
        let mut slot = self.lock();
        let held = slot
            .take()
            .expect("the network is only absent during an update");
        *slot = Some(change(held));
        drop(slot);
        self
    }

    /// The copies stay on their device: they are not trained.
    fn update_network(self, change: impl FnOnce(Network) -> Network) -> Self {
        self.update(|held| Held {
            network: change(held.network),
            ..held
        })
    }
}

impl TrainStep for SharedNetwork {
    type Input = Batch;
    type Output = Outputs;

    fn step(&self, batch: Batch) -> TrainOutput<Outputs> {
        self.with(|held| {
            let output = held.network.output(batch);
            let gradients = output.losses.clone().mean().backward();
            // Detached from the graph, which ends here.
            let measured = held.scores.measure(output.without_autodiff(), false);
            TrainOutput::new(&held.network, gradients, Outputs(vec![measured]))
        })
    }

    fn optimize(
        self,
        optimizer: &mut ModuleOptimizer,
        rate: ModuleLearningRate,
        gradients: GradientsParams,
    ) -> Self {
        self.update(|held| {
            let num_updates = held.num_updates + 1;
            let mut network = optimizer.step(rate, held.network, gradients);
            let mut copies = Vec::with_capacity(held.copies.len());
            // The slow weights, which change the network, are first.
            for copy in held.copies {
                let (after, copy) = copy.follow(network, num_updates);
                network = after;
                copies.push(copy);
            }
            Held {
                network,
                copies,
                num_updates,
                ..held
            }
        })
    }
}

impl InferenceStep for SharedNetwork {
    type Input = Batch;
    type Output = Outputs;

    fn step(&self, batch: Batch) -> Outputs {
        self.with(|held| {
            let output = held.network.output(batch);
            Outputs(vec![held.scores.measure(output, true)])
        })
    }
}

impl Module for SharedNetwork {
    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        self.look(|network| network.collect_devices(devices))
    }

    fn fork(self, device: &Device) -> Self {
        self.update_network(|network| network.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        self.update_network(|network| network.to_device(device))
    }

    fn train(self) -> Self {
        self.update_network(Module::train)
    }

    fn valid(&self) -> Self {
        self.with(|held| {
            Self::of(Held {
                network: held.judged().unwrap_or_else(|| held.network.valid()),
                scores: held.scores.clone(),
                copies: held.copies.clone(),
                num_updates: held.num_updates,
            })
        })
    }

    fn materialize(self) -> Self {
        self.update_network(Module::materialize)
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.with(|held| {
            if held.copies.is_empty() {
                held.network.visit(visitor);
                return;
            }
            let copies = held.copies.iter().map(|copy| (copy.name(), &copy.network));
            for (name, network) in [(NETWORK, &held.network)].into_iter().chain(copies) {
                visitor.enter_module(name, CONTAINER);
                network.visit(visitor);
                visitor.exit_module(name, CONTAINER);
            }
        });
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        let mut map = |name: Option<&str>, network: Network| {
            name.into_iter()
                .for_each(|name| mapper.enter_module(name, CONTAINER));
            let network = network.map(mapper);
            name.into_iter()
                .for_each(|name| mapper.exit_module(name, CONTAINER));
            network
        };
        self.update(|held| {
            let name = (!held.copies.is_empty()).then_some(NETWORK);
            let network = map(name, held.network);
            let copies = held.copies.into_iter().map(|copy| {
                let name = copy.name();
                copy.map_network(|network| map(Some(name), network))
            });
            Held {
                network,
                copies: copies.collect(),
                ..held
            }
        })
    }
}

impl Held {
    /// The weights that the run is judged by, if they are not the trained ones.
    fn judged(&self) -> Option<Network> {
        let mut copies = self.copies.iter();
        copies.find_map(|copy| copy.judged(&self.network, self.num_updates))
    }
}

/// The name of the trained network in checkpoints that have copies too.
const NETWORK: &str = "network";
const CONTAINER: &str = "SharedNetwork";

impl fmt::Display for SharedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look(|network| network.fmt(f))
    }
}
