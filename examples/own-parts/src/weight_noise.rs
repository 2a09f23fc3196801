//! A strategy: noise on the weights after each update.

use burn::tensor::{Distribution, Tensor};
use burn_runner::parts::{Kind, Section, StrategyPart, Update};
use serde::{Deserialize, Serialize};

/// Adds normal noise to each weight, whose standard deviation falls to 0 over the training.
///
/// The device's random numbers are seeded for each step, so a resumed run draws the same noise.
pub struct WeightNoise;

/// The keys of the strategy in an experiment file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    std: f64,
}

impl StrategyPart for WeightNoise {
    const NAME: &'static str = "weight_noise";
    const DOC: &'static str = "Adds noise to the weights after each update, which falls to 0.";
    type Settings = Settings;

    fn settings(section: &mut Section<'_>) -> Settings {
        let doc = "Standard deviation of the noise of the first update.";
        Settings {
            std: section.field("std", Kind::positive(), doc).required(),
        }
    }

    fn after_update<const D: usize>(
        settings: &Settings,
        update: &Update<'_>,
        weights: Tensor<D>,
        _: &mut [Tensor<D>],
    ) -> Tensor<D> {
        let left = 1.0 - (update.step - 1) as f64 / update.num_steps as f64;
        let normal = Distribution::Normal(0.0, settings.std * left);
        let noise = Tensor::random(weights.shape(), normal, &weights.device());
        weights + noise
    }
}
