//! How often each label is predicted and present.

use crate::scores::{numbers, whole_numbers};
use crate::targets::Targets;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Bool, Tensor, TensorReadError};
use runner_core::data::Split;
use runner_core::predict::Separating;
use runner_core::record::evaluation::{Evaluated, LabelCounts};
use runner_core::spec::loss::LossSpec;
use runner_core::spec::task::TaskSpec;

/// Counts of labels.
pub struct Labels {
    num_items: u64,
    /// For each label: predicted and present, predicted, present.
    counts: Vec<[u64; 3]>,
    separating: Option<Separating>,
}

impl Labels {
    /// Counts nothing yet.
    pub fn new(task: &TaskSpec, num_labels: usize, loss: &LossSpec) -> Self {
        Self {
            separating: Separating::new(task, &loss.function, num_labels),
            num_items: 0,
            counts: vec![[0; 3]; num_labels],
        }
    }

    /// Adds the next items, \[batch, labels\] each.
    pub fn add(&mut self, outputs: Tensor<2>, targets: Targets) -> Result<(), TensorReadError> {
        let Targets::Values(labels) = targets else {
            return Ok(());
        };
        self.num_items += labels.dims()[0] as u64;
        if let Some(separating) = &mut self.separating {
            let singles = |of: Tensor<2>| -> Result<Vec<f32>, TensorReadError> {
                let all = numbers::<1>(of.flatten(0, 1))?;
                Ok(all.into_iter().map(|number| number as f32).collect())
            };
            separating.add_labels(
                &singles(sigmoid(outputs.clone()))?,
                &singles(labels.clone())?,
            );
        }
        let given = outputs.greater_scalar(0.0);
        let held = labels.greater_scalar(0.5);
        let total = |of: Tensor<2, Bool>| whole_numbers(of.int().sum_dim(0).flatten(0, 1));
        let both = total(given.clone().bool_and(held.clone()))?;
        for (at, part) in [both, total(given)?, total(held)?].into_iter().enumerate() {
            for (counts, num) in self.counts.iter_mut().zip(part) {
                counts[at] += num as u64;
            }
        }
        Ok(())
    }

    /// The result.
    pub fn finish(self, split: &Split) -> Evaluated {
        let names = split.set().target_names();
        let separating = self.separating;
        let separations = separating.map_or_else(Vec::new, |of| of.finish(&names));
        let labels = names.into_iter().zip(self.counts);
        Evaluated::MultiLabel {
            num_items: self.num_items,
            labels: labels
                .map(|(label, [both, given, held])| LabelCounts {
                    label,
                    true_positives: both,
                    false_positives: given - both,
                    true_negatives: self.num_items + both - given - held,
                    false_negatives: held - both,
                })
                .collect(),
            separations,
        }
    }
}
