//! Reconstructions of items that are images.

use burn::tensor::{Tensor, TensorReadError};

use super::SIDE;
use super::samples::{Drawn, Samples};
use crate::scores::{Scores, numbers};
use crate::targets::Targets;
use runner_core::data::{Pictures, Places, Split};
use runner_core::record::evaluation::Evaluated;

/// Some items with their reconstructions.
pub struct Items {
    num_items: usize,
    samples: Samples<Vec<f32>>,
}

impl Items {
    /// Keeps nothing yet; `None` if items are not images.
    pub fn new(split: &Split) -> Option<Self> {
        Pictures::of(split.set())?;
        Some(Self {
            num_items: 0,
            samples: Samples::new(split.num_items()),
        })
    }

    /// Adds the next items: their losses, the outputs of the network, and \[batch, values\].
    pub fn add(
        &mut self,
        losses: &[f64],
        outputs: Tensor<2>,
        targets: Targets,
        scores: &Scores,
    ) -> Result<(), TensorReadError> {
        let Targets::Values(targets) = targets else {
            return Ok(());
        };
        let [_, num_values] = targets.dims();
        let predicted = numbers(scores.predicted(outputs, num_values))?;
        for (values, loss) in predicted.chunks_exact(num_values).zip(losses) {
            let known = || values.iter().map(|value| *value as f32).collect();
            self.samples.add(self.num_items, *loss, known);
            self.num_items += 1;
        }
        Ok(())
    }

    /// The result.
    pub fn finish(self, split: &Split, places: &Places<'_>) -> Evaluated {
        let samples = self.samples.into_shown(split, places, |pictures, values| {
            Some(Drawn {
                target: None,
                predicted: pictures?.of_encoded(&values, SIDE)?,
            })
        });
        Evaluated::Autoencoding {
            num_items: self.num_items as u64,
            samples,
        }
    }
}
