//! Training that predicts some of its updates: `strategy.type = "hybrid"`.
//!
//! [`Machine`] decides about phases by numbers, [`predictor`] what a predicted update is made of, and [`Hybrid`] applies
//! both to weights. What a prediction leaves alone: the state of the optimizer, which is that of the last real update;
//! the running statistics of batch norms, which only real steps change, since the forward pass of a predicted step is
//! that of validation; frozen parameters. The schedule counts steps, predicted or not; a jump is not a step.

pub mod divergence;
mod dmd;
pub mod machine;
pub mod predictor;
mod probe;
mod rssm;
mod snapshots;
#[cfg(all(test, feature = "flex"))]
mod tests;

use burn::module::Module;
use burn::tensor::TensorReadError;

use crate::network::Network;
pub use machine::{Counters, Machine, Phase, Verdict};
pub use probe::Probe;
use rssm::Rssm;
use runner_core::plan::RunPlan;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::hybrid::{HybridSpec, Mode, Predictor};
use snapshots::{moved, products, restored};

/// The loss of a step, and the norm of its gradients before clipping if it is known.
pub type Seen = (f64, Option<f64>);

/// The loss of a network on the probe.
pub type Probed<'a> = &'a dyn Fn(&Network) -> Result<f64, TensorReadError>;

/// What a training that predicts updates keeps besides its weights.
#[derive(Clone, Debug)]
pub struct Hybrid {
    spec: HybridSpec,
    machine: Machine,
    /// The weights after the last updates, the oldest ones first.
    snapshots: Vec<Network>,
    /// The weights that a rollback restores.
    anchor: Network,
    /// The inner products of the differences between the snapshots, once the predictor needs them.
    products: Option<Vec<f64>>,
    /// The predicted updates of a predictor that learns, once one is needed.
    imagined: Vec<Vec<f64>>,
    arithmetic: Arithmetic,
}

impl Hybrid {
    /// The start of a training; none of a plan that predicts nothing.
    pub fn of(plan: &RunPlan, network: &Network) -> Option<Self> {
        let spec = *plan.strategy.hybrid()?;
        let mut machine = Machine::new(&spec);
        if spec.predictor == Predictor::Rssm {
            let rssm = Rssm::new(spec.snapshots - 2, plan.seed);
            machine.learned = Some(Box::new(rssm));
        }
        Some(Self {
            machine,
            snapshots: vec![network.valid(); spec.snapshots],
            anchor: network.valid(),
            products: None,
            imagined: Vec::new(),
            arithmetic: plan.arithmetic,
            spec,
        })
    }

    /// The same with the decisions of a checkpoint.
    pub fn at(self, machine: Option<Machine>) -> Self {
        Self {
            machine: machine.unwrap_or(self.machine),
            ..self
        }
    }

    /// What it decides by.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Whether the update of the next step is predicted.
    pub fn is_predicting(&self) -> bool {
        self.machine.phase() == Phase::Predict
    }

    /// Ends a step with a real update, and with this loss and norm of its gradients. Changes the network only by
    /// a jump.
    ///
    /// # Errors
    /// The device's, if the loss on the probe cannot be read.
    pub fn after_update(
        &mut self,
        network: Network,
        seen: Seen,
        probed: Probed<'_>,
    ) -> Result<Network, TensorReadError> {
        if self.machine.wants_snapshot(&self.spec) {
            self.keep(&network);
            self.learn(seen)?;
        }
        let Some(length) = self.machine.add_real_step(&self.spec, seen) else {
            return Ok(network);
        };
        self.anchor = network.valid();
        self.machine
            .predict(&self.spec, length, probed(&self.anchor)?);
        if self.spec.mode == Mode::Steps {
            return Ok(network);
        }
        let jumped = self.add(network, 0, length)?;
        self.machine.add_predicted(&self.spec, length);
        self.decide(jumped, probed)
    }

    /// Makes the update of a predicted step, whose batch had this loss. Returns whether the step is over: if the loss is
    /// too high, the prediction is rolled back instead, and the step is repeated as a real one.
    ///
    /// # Errors
    /// The device's, if the loss on the probe cannot be read.
    pub fn predict(
        &mut self,
        network: Network,
        loss: f64,
        probed: Probed<'_>,
    ) -> Result<(Network, bool), TensorReadError> {
        if self.machine.add_forward(&self.spec, loss) == Some(Verdict::Rejected) {
            let network = restored(network, &self.anchor);
            self.start_anew(&network);
            return Ok((network, false));
        }
        let at = self.machine.done();
        let moved = self.add(network, at, at + 1)?;
        if self.machine.add_predicted(&self.spec, 1) {
            return Ok((self.decide(moved, probed)?, true));
        }
        Ok((moved, true))
    }

    fn add(
        &mut self,
        network: Network,
        from: usize,
        to: usize,
    ) -> Result<Network, TensorReadError> {
        self.know_products()?;
        if let Some(rssm) = &self.machine.learned
            && self.imagined.is_empty()
        {
            self.imagined = rssm.imagine(self.spec.max_predict_steps);
        }
        let products = self.products.as_deref().unwrap_or_default();
        let known = (products, self.imagined.as_slice());
        Ok(match predictor::factors(&self.spec, known, from, to) {
            Some(factors) => moved(network, &self.snapshots, &factors),
            None => network,
        })
    }

    fn know_products(&mut self) -> Result<(), TensorReadError> {
        if self.products.is_none() && predictor::needs_products(&self.spec) {
            self.products = Some(products(&self.snapshots, self.arithmetic)?);
        }
        Ok(())
    }

    /// Tells a predictor that learns of the last update, if all snapshots are consecutive.
    fn learn(&mut self, seen: Seen) -> Result<(), TensorReadError> {
        if self.machine.learned.is_none() || self.machine.known() < self.spec.snapshots {
            return Ok(());
        }
        self.know_products()?;
        if let (Some(rssm), Some(products)) = (&mut self.machine.learned, &self.products) {
            rssm.observe(products, seen);
            self.imagined.clear();
        }
        Ok(())
    }

    fn decide(&mut self, network: Network, probed: Probed<'_>) -> Result<Network, TensorReadError> {
        let valid = network.valid();
        let network = match self.machine.check(&self.spec, probed(&valid)?) {
            Verdict::Accepted => {
                self.anchor = valid;
                network
            }
            Verdict::Rejected => restored(network, &self.anchor),
        };
        if !self.is_predicting() {
            self.start_anew(&network);
        }
        Ok(network)
    }

    /// The weights after a prediction are the first of the next snapshots.
    fn start_anew(&mut self, network: &Network) {
        if self.machine.wants_first_snapshot(&self.spec) {
            self.keep(network);
        }
    }

    fn keep(&mut self, network: &Network) {
        if !self.snapshots.is_empty() {
            self.products = None;
            self.snapshots.remove(0);
            self.snapshots.push(network.valid());
        }
        self.machine.add_snapshot();
    }

    /// The names in checkpoints and the weights that it keeps.
    pub fn kept(&self) -> impl Iterator<Item = (String, &Network)> {
        let names = (0..self.snapshots.len()).map(|at| format!("snapshot_{at}"));
        let snapshots = names.zip(&self.snapshots);
        snapshots.chain([(ANCHOR.to_owned(), &self.anchor)])
    }

    /// The same with each of these networks changed.
    pub fn map_kept(self, mut map: impl FnMut(&str, Network) -> Network) -> Self {
        let snapshots = self.snapshots.into_iter().enumerate();
        let snapshots = snapshots.map(|(at, network)| map(&format!("snapshot_{at}"), network));
        Self {
            snapshots: snapshots.collect(),
            anchor: map(ANCHOR, self.anchor),
            ..self
        }
    }
}

/// The name in checkpoints of the weights that a rollback restores.
const ANCHOR: &str = "anchor";
