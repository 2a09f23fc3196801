//! The network during training, in the form that Burn's learner needs.
//!
//! The learner clones its model for each update and drops the old one after it, so that the optimizer finds every
//! weight shared and must write a second copy. Clones of a [`SharedNetwork`] are handles to one network: the optimizer
//! owns the weights and updates them in place.
//!
//! The moving average of the weights lives here too, so that it is in the same checkpoint.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Tensor};
use burn::train::{InferenceStep, TrainOutput, TrainStep};

use super::metrics::Outputs;
use runner_core::spec::train::EmaSpec;
use runner_network::batch::Batch;
use runner_network::network::Network;
use runner_network::scores::Scores;

/// A handle to a network, with the moving average of its weights if any. An update through one clone is visible in all.
#[derive(Clone, Debug)]
pub struct SharedNetwork(Arc<Mutex<Option<Held>>>);

#[derive(Clone, Debug)]
struct Held {
    network: Network,
    scores: Arc<Scores>,
    average: Option<Average>,
}

#[derive(Clone, Debug)]
struct Average {
    network: Network,
    /// The weight of the newest weights at each step.
    share: f64,
}

impl SharedNetwork {
    /// Shares a network. An average starts as the current network.
    pub fn new(network: Network, ema: Option<&EmaSpec>, scores: Arc<Scores>) -> Self {
        let average = ema.map(|ema| Average {
            network: network.valid(),
            share: 1.0 - ema.decay,
        });
        Self::of(Held {
            network,
            scores,
            average,
        })
    }

    fn of(held: Held) -> Self {
        Self(Arc::new(Mutex::new(Some(held))))
    }

    /// A separate network with the current weights.
    pub fn network(&self) -> Network {
        self.with(|held| held.network.clone())
    }

    /// The current average, if any.
    pub fn average(&self) -> Option<Network> {
        self.with(|held| Some(held.average.as_ref()?.network.clone()))
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

    /// The average stays on its device: it is not trained.
    fn update_network(self, change: impl FnOnce(Network) -> Network) -> Self {
        self.update(|held| Held {
            network: change(held.network),
            ..held
        })
    }
}

impl Average {
    fn follow(self, network: &Network) -> Self {
        let mut weights = Weights(GradientsParams::new());
        network.visit(&mut weights);
        let mut mover = Mover {
            weights: weights.0,
            share: self.share,
        };
        Self {
            network: self.network.map(&mut mover),
            ..self
        }
    }
}

/// Collects weights by parameter; Burn has a container of tensors of any rank only for gradients.
struct Weights(GradientsParams);

impl ModuleVisitor for Weights {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.register(param.id, param.val().without_autodiff());
    }
}

struct Mover {
    weights: GradientsParams,
    share: f64,
}

impl ModuleMapper for Mover {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(weight) = self.weights.remove::<D>(param.id) else {
            return param;
        };
        // In this form, unchanged weights stay bitwise equal.
        param.map(|average| (weight - average.clone()).mul_scalar(self.share) + average)
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
            let network = optimizer.step(rate, held.network, gradients);
            let average = held.average.map(|average| average.follow(&network));
            Held {
                network,
                average,
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
                network: held.network.valid(),
                scores: held.scores.clone(),
                average: held.average.clone(),
            })
        })
    }

    fn materialize(self) -> Self {
        self.update_network(Module::materialize)
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.with(|held| match &held.average {
            None => held.network.visit(visitor),
            Some(average) => {
                for (name, network) in [(NETWORK, &held.network), (AVERAGE, &average.network)] {
                    visitor.enter_module(name, CONTAINER);
                    network.visit(visitor);
                    visitor.exit_module(name, CONTAINER);
                }
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
        self.update(|held| Held {
            network: map(held.average.as_ref().map(|_| NETWORK), held.network),
            average: held.average.map(|average| Average {
                network: map(Some(AVERAGE), average.network),
                ..average
            }),
            ..held
        })
    }
}

/// The names of the two in checkpoints.
const NETWORK: &str = "network";
const AVERAGE: &str = "ema";
const CONTAINER: &str = "SharedNetwork";

impl fmt::Display for SharedNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look(|network| network.fmt(f))
    }
}
