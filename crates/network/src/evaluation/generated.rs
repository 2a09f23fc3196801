//! Generated items that are images.

use burn::tensor::{Tensor, TensorReadError};

use super::SIDE;
use crate::scores::numbers;
use runner_core::data::{Pictures, Split, TargetPlan};
use runner_core::plan::RunPlan;
use runner_core::record::evaluation::Evaluated;

/// Items that are shown.
const NUM_SHOWN: usize = 20;

/// The first items that a network generates for a split.
pub struct Generated {
    /// Whether the classes of the split are what items are generated for.
    is_of_classes: bool,
    num_items: usize,
    shown: Vec<Vec<f32>>,
}

impl Generated {
    /// Keeps nothing yet; `None` if items are not images.
    pub fn new(plan: &RunPlan, split: &Split) -> Option<Self> {
        Pictures::of(split.set())?;
        let pair = plan.strategy.adversarial()?;
        let has_classes = matches!(plan.data.target, TargetPlan::Class { .. });
        Some(Self {
            is_of_classes: pair.conditional && has_classes,
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
        let pictures: Vec<String> = drawn.collect();
        let classes = if self.is_of_classes {
            let places: Vec<u32> = (0..pictures.len() as u32).collect();
            let names = split.set().target_names();
            let name = |class: i32| names.get(class as usize).cloned().unwrap_or_default();
            split.classes(&places).into_iter().map(name).collect()
        } else {
            Vec::new()
        };
        Evaluated::Generation {
            num_items: self.num_items as u64,
            pictures,
            classes,
            by_epoch: Vec::new(),
        }
    }
}
