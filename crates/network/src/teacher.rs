//! The teacher of a training with `strategy.type = "distill"`: a network whose outputs are imitated.
//!
//! It is on the device without autodiff, so it computes as in validation: it has no gradients, draws no random numbers,
//! and its statistics stay as they are. It is not part of what is trained, saved in checkpoints or digested.

use burn::tensor::Tensor;

use crate::batch::Batch;
use crate::network::Network;
use runner_core::plan::RunPlan;

/// A network with how much it counts.
#[derive(Clone, Debug)]
pub struct Teacher {
    network: Network,
    /// Its share in the loss.
    pub weight: f64,
    /// What outputs are divided by before they become probabilities; none for values.
    pub temperature: Option<f64>,
}

/// The outputs of a teacher for a batch, and how much they count.
#[derive(Clone, Debug)]
pub struct Lesson {
    /// In the form that losses take, without autodiff.
    pub outputs: Tensor<2>,
    /// As [`Teacher::weight`].
    pub weight: f64,
    /// As [`Teacher::temperature`].
    pub temperature: Option<f64>,
}

impl Teacher {
    /// The teacher of a plan with its network, which is on the device without autodiff; none of a plan without one.
    pub fn new(plan: &RunPlan, network: Network) -> Option<Self> {
        let spec = plan.strategy.distill()?;
        Some(Self {
            network,
            weight: spec.weight,
            temperature: spec.temperature,
        })
    }

    /// Its network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What it says about a batch.
    pub fn lesson(&self, batch: &Batch) -> Lesson {
        let inputs = batch.inputs.clone().without_autodiff();
        Lesson {
            outputs: self.network.outputs(inputs),
            weight: self.weight,
            temperature: self.temperature,
        }
    }
}

impl Lesson {
    /// Its outputs for a comparison with outputs of a network in training.
    pub fn beside(&self, outputs: &Tensor<2>) -> Tensor<2> {
        let constant = self.outputs.clone().autodiff();
        match outputs.gradient_checkpointing_strategy() {
            Some(strategy) => constant.with_gradient_checkpointing_strategy(strategy),
            None => self.outputs.clone(),
        }
    }
}
