//! An optimizer: the sign of a running mean of gradients (Bernstein et al., 2018).

use burn::optim::{Optimizer, RecordState};
use burn::tensor::{Device, Tensor};
use burn_runner::parts::{Kind, OptimizerPart, Section};
use serde::{Deserialize, Serialize};

/// `w - rate (sign(m) + decay w)`, where m is the running mean.
#[derive(Clone, Debug)]
pub struct Signum {
    momentum: f64,
    weight_decay: f64,
}

/// The running mean, which checkpoints contain.
#[derive(RecordState, Clone, Debug)]
pub struct Mean<const D: usize> {
    mean: Tensor<D>,
}

/// The keys of the optimizer in an experiment file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    momentum: f64,
    weight_decay: f64,
}

impl Optimizer for Signum {
    type State<const D: usize> = Mean<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<Mean<D>>,
    ) -> (Tensor<D>, Option<Mean<D>>) {
        let mean = match state {
            Some(state) => state.mean.mul_scalar(self.momentum),
            None => gradient.zeros_like(),
        };
        let mean = mean + gradient.mul_scalar(1.0 - self.momentum);
        let update = mean.clone().sign() + weights.clone().mul_scalar(self.weight_decay);
        let weights = weights - update.mul_scalar(rate);
        (weights, Some(Mean { mean }))
    }

    fn to_device<const D: usize>(state: Mean<D>, device: &Device) -> Mean<D> {
        Mean {
            mean: state.mean.to_device(device),
        }
    }
}

impl OptimizerPart for Signum {
    const NAME: &'static str = "signum";
    const DOC: &'static str = "The sign of a running mean of gradients (Bernstein et al., 2018).";
    type Settings = Settings;

    fn settings(section: &mut Section<'_>) -> Settings {
        Settings {
            momentum: section
                .field("momentum", Kind::fraction(), "Decay of the running mean.")
                .or(0.9),
            weight_decay: section
                .field(
                    "weight_decay",
                    Kind::non_negative(),
                    "Decoupled weight decay.",
                )
                .or(0.0),
        }
    }

    fn weight_decay(settings: &Settings) -> Option<f64> {
        Some(settings.weight_decay)
    }

    fn num_states(_: &Settings) -> u64 {
        1
    }

    fn new(settings: &Settings, weight_decay: f64) -> Self {
        Self {
            momentum: settings.momentum,
            weight_decay,
        }
    }
}
