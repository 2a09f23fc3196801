//! Generated items that are images.

use burn::tensor::{Tensor, TensorReadError};

use super::SIDE;
use crate::scores::numbers;
use runner_core::data::{Pictures, Split};
use runner_core::record::evaluation::Evaluated;

/// Items that are shown.
const NUM_SHOWN: usize = 20;

/// The first items that a network generates for a split.
pub struct Generated {
    num_items: usize,
    shown: Vec<Vec<f32>>,
}

impl Generated {
    /// Keeps nothing yet; `None` if items are not images.
    pub fn new(split: &Split) -> Option<Self> {
        Pictures::of(split.set())?;
        Some(Self {
            num_items: 0,
            shown: Vec::new(),
        })
    }

    /// Adds the next generated items, \[batch, values\].
    pub fn add(&mut self, outputs: Tensor<2>) -> Result<(), TensorReadError> {
        let [num, width] = outputs.dims();
        self.num_items += num;
        let missing = NUM_SHOWN - self.shown.len();
        if missing == 0 {
            return Ok(());
        }
        let values = numbers(outputs.narrow(0, 0, missing.min(num)))?;
        let items = values.chunks_exact(width);
        let items = items.map(|item| item.iter().map(|value| *value as f32).collect());
        self.shown.extend(items);
        Ok(())
    }

    /// The result.
    pub fn finish(self, split: &Split) -> Evaluated {
        let pictures = Pictures::of(split.set());
        let shown = self.shown.iter();
        let drawn = shown.filter_map(|values| pictures.as_ref()?.of_encoded(values, SIDE));
        Evaluated::Generation {
            num_items: self.num_items as u64,
            pictures: drawn.collect(),
        }
    }
}
