//! A network in training, with the copies of its weights: averages, and slow weights.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, ModuleVisitor};
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLearningRate;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, TensorReadError};

use crate::adversarial::Turns;
use crate::batch::Batch;
use crate::blocks::Blocks;
use crate::copies::{Average, Copy};
use crate::finite::is_finite;
use crate::hybrid::{Counters, Hybrid, Machine, Probed, Seen};
use crate::lora::{self, Without};
use crate::network::Network;
use crate::own::Followed;
use crate::scores::{Measured, Scores};
use crate::teacher::Teacher;
use runner_core::data::order::Purpose;
use runner_core::plan::RunPlan;

/// A network in training, with the copies of its weights if any.
#[derive(Clone, Debug)]
pub struct Trained {
    network: Network,
    copies: Vec<Copy>,
    /// Updates so far, real or predicted.
    num_updates: usize,
    /// Of a training that predicts updates.
    hybrid: Option<Hybrid>,
    /// Of a training with a strategy of the program's own.
    own: Option<Followed>,
    /// Of a training with a teacher.
    teacher: Option<Arc<Teacher>>,
    /// Of an adversarial training.
    turns: Option<Turns>,
    /// Of a training that recomputes blocks.
    blocks: Option<Arc<Blocks>>,
    /// Burn's paths of the weights under adapters, which are in no saved state.
    fixed: Arc<BTreeSet<String>>,
}

impl Trained {
    /// A network that has had `num_updates` updates, and is to be trained by a plan.
    pub fn new(plan: &RunPlan, network: Network, num_updates: usize) -> Self {
        let fixed = lora::fixed(plan, &network);
        Self {
            copies: Copy::of(plan, &network, &fixed),
            hybrid: Hybrid::of(plan, &network),
            own: Followed::of(plan, &network),
            blocks: Blocks::of(plan, &network).map(Arc::new),
            network,
            num_updates,
            teacher: None,
            turns: Turns::of(plan),
            fixed: Arc::new(fixed),
        }
    }

    /// The same with a teacher, in a training that has one.
    pub fn taught_by(self, teacher: Option<Arc<Teacher>>) -> Self {
        Self { teacher, ..self }
    }

    /// The same with the decisions about predictions of a checkpoint.
    pub fn deciding(self, machine: Option<Machine>) -> Self {
        Self {
            hybrid: self.hybrid.map(|hybrid| hybrid.at(machine)),
            ..self
        }
    }

    /// What decides about predictions, in a training that predicts updates.
    pub fn machine(&self) -> Option<&Machine> {
        self.hybrid.as_ref().map(Hybrid::machine)
    }

    /// What was computed so far, in a training that predicts updates.
    pub fn counters(&self) -> Option<Counters> {
        Some(self.machine()?.counters)
    }

    /// Whether the update of the next step is predicted.
    pub fn is_predicting(&self) -> bool {
        self.hybrid.as_ref().is_some_and(Hybrid::is_predicting)
    }

    /// Whether two networks train in turn, each with its own update from the items of a step.
    pub fn takes_turns(&self) -> bool {
        self.turns.is_some()
    }

    /// Whether the step needs another update, that of the generator.
    pub fn is_between_turns(&self) -> bool {
        self.turns.as_ref().is_some_and(Turns::is_generators)
    }

    /// What random numbers of layers are drawn for in the next update.
    pub fn purpose(&self) -> Purpose {
        let turns = self.turns.as_ref();
        turns.map_or(Purpose::Step, Turns::purpose)
    }

    /// The network with its current weights.
    pub fn current(&self) -> &Network {
        &self.network
    }

    /// A separate network with the weights that the run is judged by: the current ones, or the slow ones of Lookahead.
    pub fn network(&self) -> Network {
        self.judged().unwrap_or_else(|| self.network.clone())
    }

    /// The weights that the run is judged by, if they are not the trained ones.
    fn judged(&self) -> Option<Network> {
        let mut copies = self.copies.iter();
        copies.find_map(|copy| copy.judged(&self.network, self.num_updates))
    }

    /// The current averages.
    pub fn averages(&self) -> Vec<Average> {
        let averages = self.copies.iter();
        let averages = averages.map(|copy| copy.average(&self.network, self.num_updates));
        averages.flatten().collect()
    }

    /// All copies of the weights with their names.
    pub fn copies(&self) -> Vec<(&'static str, Network)> {
        let copies = self.copies.iter();
        let read = |copy: &Copy| (copy.name(), copy.read(&self.network, self.num_updates));
        copies.map(read).collect()
    }

    /// A copy that shares nothing with this one. Clones share what Burn keeps as running states, the statistics of norms
    /// and the vectors of spectral norms, which training and loading change in place.
    pub fn separate(&self) -> Self {
        let separate = |network: Network| network.valid().train();
        let this = self.clone();
        let copies = this.copies.into_iter();
        Self {
            network: separate(this.network),
            copies: copies.map(|copy| copy.map_network(separate)).collect(),
            hybrid: this
                .hybrid
                .map(|hybrid| hybrid.map_kept(|_, network| separate(network))),
            own: this
                .own
                .map(|own| own.map_kept(|_, network| separate(network))),
            ..this
        }
    }

    /// The same, loaded with the weights of another step.
    pub fn at_step(self, num_updates: usize) -> Self {
        Self {
            num_updates,
            ..self
        }
    }

    /// Includes the newest statistics of batch norms in what is saved: Burn delays those of the last step until they
    /// are requested.
    pub fn settle(&self) {
        drop(self.network.valid());
    }

    /// The gradients of the mean loss of a batch, and its measurements, detached from the graph, which ends here.
    pub fn backward(&self, batch: Batch, scores: &Scores) -> (GradientsParams, Measured) {
        if let Some(turns) = &self.turns {
            return turns.backward(&self.network, batch, scores);
        }
        if let Some(blocks) = &self.blocks {
            // Before the layers here keep anything.
            let lesson = self.teacher.as_ref().map(|teacher| teacher.lesson(&batch));
            let mut tape = blocks.tape(&self.network, self.num_updates);
            let compute = |items, layers: &[usize]| tape.forward(items, layers);
            let output = self.network.output_by(batch, lesson.as_ref(), compute);
            let gradients = output.losses.clone().mean().backward();
            let measured = scores.measure(output.without_autodiff(), false);
            return (tape.backward(gradients), measured);
        }
        let output = match &self.teacher {
            Some(teacher) => self.network.taught(batch, teacher),
            None => self.network.output(batch),
        };
        let gradients = output.losses.clone().mean().backward();
        let measured = scores.measure(output.without_autodiff(), false);
        let gradients = GradientsParams::from_grads(gradients, &self.network);
        (gradients, measured)
    }

    /// The random numbers of the next piece of a step are those of its first piece again.
    pub fn draw_again(&self) {
        if let Some(blocks) = &self.blocks {
            blocks.draw_again();
        }
    }

    /// A description of where a batch first results in infinity or NaN.
    pub fn first_not_finite(&self, batch: &Batch) -> Option<String> {
        let of_network = self.network.first_not_finite(batch);
        of_network.or_else(|| {
            let outputs = self.teacher.as_ref()?.lesson(batch).outputs;
            (!is_finite(outputs)).then(|| "the output of the teacher".into())
        })
    }

    /// The measurements of a batch without a backward pass, as in validation.
    pub fn forward(&self, batch: Batch, scores: &Scores) -> Measured {
        let output = self.network.valid().output(batch.without_autodiff());
        scores.measure(output, false)
    }

    /// The same for the pieces of a step, one after the other.
    pub fn forward_pieces(
        &self,
        pieces: impl Iterator<Item = Batch>,
        scores: &Scores,
    ) -> Vec<Measured> {
        let mut all: Vec<Measured> = pieces.map(|batch| self.forward(batch, scores)).collect();
        let num = all.len();
        for measured in all.iter_mut().take(num.saturating_sub(1)) {
            measured.goes_on = true;
        }
        all
    }

    /// Ends a step after its update, with its loss and the norm of its gradients. May jump.
    ///
    /// # Errors
    /// The device's, if the loss on the probe cannot be read.
    pub fn after_update(&mut self, seen: Seen, probed: Probed<'_>) -> Result<(), TensorReadError> {
        if let Some(hybrid) = &mut self.hybrid {
            let network = self.network.clone();
            self.network = hybrid.after_update(network, seen, probed)?;
        }
        Ok(())
    }

    /// Makes the predicted update of a step whose batch had this loss. Returns whether the step is over: if the loss is
    /// too high, the prediction is rolled back instead, and the step has to be repeated as a real one.
    ///
    /// # Errors
    /// The device's, if the loss on the probe cannot be read.
    pub fn predict(&mut self, loss: f64, probed: Probed<'_>) -> Result<bool, TensorReadError> {
        let Some(hybrid) = &mut self.hybrid else {
            return Ok(false);
        };
        let network = self.network.clone();
        let (network, is_over) = hybrid.predict(network, loss, probed)?;
        self.network = network;
        self.num_updates += is_over as usize;
        Ok(is_over)
    }

    /// Updates the weights, and then their copies: after the last update of a step, if it has several.
    pub fn update(
        mut self,
        optimizer: &mut ModuleOptimizer,
        rate: ModuleLearningRate,
        gradients: GradientsParams,
    ) -> Self {
        let num_updates = self.num_updates + 1;
        let at = (num_updates, rate.base());
        let mut network = optimizer.step(rate, self.network, gradients);
        if let Some(turns) = &mut self.turns {
            let (after, is_over) = turns.after_update(network, num_updates);
            network = after;
            if !is_over {
                return Self { network, ..self };
            }
        }
        let (mut network, own) = match self.own {
            Some(own) => {
                let (network, own) = own.after_update(network, &self.fixed, at);
                (network, Some(own))
            }
            None => (network, None),
        };
        let mut copies = Vec::with_capacity(self.copies.len());
        // The slow weights, which change the network, are first.
        for copy in self.copies {
            let (after, copy) = copy.follow(network, num_updates);
            network = after;
            copies.push(copy);
        }
        Self {
            network,
            copies,
            num_updates,
            hybrid: self.hybrid,
            own,
            teacher: self.teacher,
            turns: self.turns,
            blocks: self.blocks,
            fixed: self.fixed,
        }
    }

    /// Whether a checkpoint has other networks than the trained one.
    fn has_more(&self) -> bool {
        !self.copies.is_empty() || self.hybrid.is_some() || self.own.is_some()
    }

    /// The copies stay on their device: they are not trained.
    fn map_network(self, change: impl FnOnce(Network) -> Network) -> Self {
        Self {
            network: change(self.network),
            ..self
        }
    }
}

impl Module for Trained {
    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        self.network.collect_devices(devices)
    }

    fn fork(self, device: &Device) -> Self {
        self.map_network(|network| network.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        self.map_network(|network| network.to_device(device))
    }

    fn train(self) -> Self {
        self.map_network(Module::train)
    }

    fn valid(&self) -> Self {
        Self {
            network: self.judged().unwrap_or_else(|| self.network.valid()),
            copies: self.copies.clone(),
            num_updates: self.num_updates,
            hybrid: self.hybrid.clone(),
            own: self.own.clone(),
            teacher: self.teacher.clone(),
            turns: self.turns.clone(),
            blocks: self.blocks.clone(),
            fixed: self.fixed.clone(),
        }
    }

    fn materialize(self) -> Self {
        self.map_network(Module::materialize)
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        let visit = |network: &Network, visitor: &mut V| {
            if self.fixed.is_empty() {
                network.visit(visitor);
            } else {
                network.visit(&mut Without::new(visitor, &self.fixed));
            }
        };
        if !self.has_more() {
            visit(&self.network, visitor);
            return;
        }
        let copies = self.copies.iter();
        let copies = copies.map(|copy| (copy.name().to_owned(), &copy.network));
        let kept = self.hybrid.iter().flat_map(Hybrid::kept);
        let all = [(NETWORK.to_owned(), &self.network)].into_iter();
        let own = self.own.iter().flat_map(Followed::kept);
        for (name, network) in all.chain(copies).chain(kept).chain(own) {
            visitor.enter_module(&name, CONTAINER);
            visit(network, visitor);
            visitor.exit_module(&name, CONTAINER);
        }
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        let name = self.has_more().then_some(NETWORK);
        let fixed = self.fixed;
        let mut map = |name: Option<&str>, network: Network| {
            name.into_iter()
                .for_each(|name| mapper.enter_module(name, CONTAINER));
            let network = if fixed.is_empty() {
                network.map(mapper)
            } else {
                network.map(&mut Without::new(mapper, &fixed))
            };
            name.into_iter()
                .for_each(|name| mapper.exit_module(name, CONTAINER));
            network
        };
        let network = map(name, self.network);
        let copies = self.copies.into_iter().map(|copy| {
            let name = copy.name();
            copy.map_network(|network| map(Some(name), network))
        });
        let copies = copies.collect();
        let hybrid = self.hybrid;
        let hybrid = hybrid.map(|hybrid| hybrid.map_kept(|name, network| map(Some(name), network)));
        let own = self.own;
        let own = own.map(|own| own.map_kept(|name, network| map(Some(name), network)));
        Self {
            network,
            copies,
            num_updates: self.num_updates,
            hybrid,
            own,
            teacher: self.teacher,
            turns: self.turns,
            blocks: self.blocks,
            fixed,
        }
    }
}

impl fmt::Display for Trained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.network.fmt(f)
    }
}

/// The name of the trained network in checkpoints that have copies too.
const NETWORK: &str = "network";
const CONTAINER: &str = "SharedNetwork";
