//! The layer type `moving_average`: its keys, shape, cost and parameters.

use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::Tensor;
use burn::tensor::activation::sigmoid;
use burn_runner::parts::{Device, Dims, DynTensor, Kind, LayerExample, LayerPart, Section, Unfit};
use serde::{Deserialize, Serialize};

use crate::average::average;

/// An exponential moving average along a sequence, with a trained decay for each channel.
#[derive(Module, Debug)]
pub struct MovingAverage {
    /// The decays before a sigmoid, so that they stay between 0 and 1.
    logits: Param<Tensor<1>>,
}

/// The keys of the layer in an experiment file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    decay: f64,
}

impl LayerPart for MovingAverage {
    const NAME: &'static str = "moving_average";
    const DOC: &'static str =
        "An exponential moving average along a sequence, with a trained decay for each channel.";
    const EXAMPLES: &'static [LayerExample] = &[(&[7, 5], "{ type = 'moving_average' }")];
    type Settings = Settings;

    fn settings(section: &mut Section<'_>) -> Settings {
        Settings {
            decay: section
                .field("decay", Kind::fraction(), "Decay of each channel at first.")
                .or(0.5),
        }
    }

    fn output_shape(settings: &Settings, inputs: &[Dims]) -> Result<Dims, Unfit> {
        if settings.decay == 0.0 {
            return Err(Unfit::new(
                "decay",
                "has a decay of 0, which no training would change",
                "set `decay` to a positive number, such as 0.5",
            ));
        }
        if inputs[0].len() != 2 {
            return Err(Unfit::new(
                "type",
                format!("needs sequences [length, channels], found {:?}", inputs[0]),
                "put a `reshape` before it",
            ));
        }
        Ok(inputs[0].clone())
    }

    fn new(settings: &Settings, inputs: &[Dims], device: &Device) -> Self {
        let value = (settings.decay / (1.0 - settings.decay)).ln();
        Self {
            logits: Initializer::Constant { value }.init([inputs[0][1]], device),
        }
    }

    fn forward(&self, mut inputs: Vec<DynTensor>) -> DynTensor {
        let decays = sigmoid(self.logits.val());
        DynTensor::R3(average(inputs.remove(0).r3(), decays))
    }

    fn multiply_adds(_: &Settings, inputs: &[Dims]) -> u64 {
        inputs[0].iter().product::<usize>() as u64
    }

    /// The averages, and what Burn's operations make on the way to them; the kernels need less.
    fn kept_values(_: &Settings, _: &[Dims], output: &Dims) -> u64 {
        4 * output.iter().product::<usize>() as u64
    }
}
