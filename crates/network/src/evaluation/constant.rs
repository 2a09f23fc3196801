//! The best prediction that is the same for every item of the split: the least that has to be beaten before anything
//! was learned. It is chosen knowing the targets of the split, so that no network can be as good by ignoring its inputs.

use std::collections::BTreeMap;

use burn::tensor::TensorReadError;

use crate::scores::{Scores, numbers, whole_numbers};
use crate::targets::Targets;
use runner_core::plan::RunPlan;
use runner_core::spec::loss::{LossFunction, Reduction};

/// What is counted about targets.
pub struct Constant {
    counted: Counted,
    /// Whether the loss of an item is the mean of what this knows.
    is_plain: bool,
}

enum Counted {
    /// How often each class occurs, and whether positions are ignored.
    Classes { counts: Vec<u64>, ignores: bool },
    /// How often each label is present, of so many items.
    Labels { counts: Vec<f64>, num: f64 },
    /// The mean of each value and the sum of its squared differences from it (Welford, 1962), of so many items.
    Values { moments: Vec<[f64; 2]>, num: f64 },
}

impl Constant {
    /// Counts nothing yet.
    pub fn new(plan: &RunPlan, scores: &Scores, num_values: usize) -> Self {
        let is_of_task = plan.losses.is_empty();
        let is_unweighted = plan.data.weight().is_none() && plan.loss.reduction == Reduction::Mean;
        let is_of_outputs = plan.strategy.adversarial().is_none();
        let counted = if scores.is_of_labels {
            Counted::Labels {
                counts: vec![0.0; scores.num_classes],
                num: 0.0,
            }
        } else if scores.num_classes > 0 {
            Counted::Classes {
                counts: vec![0; scores.num_classes],
                ignores: false,
            }
        } else {
            Counted::Values {
                moments: vec![[0.0; 2]; num_values],
                num: 0.0,
            }
        };
        Self {
            counted,
            is_plain: is_of_task && is_unweighted && is_of_outputs,
        }
    }

    /// Adds the targets of the next items.
    pub fn add(&mut self, targets: &Targets) -> Result<(), TensorReadError> {
        match (&mut self.counted, targets) {
            (Counted::Classes { counts, ignores }, Targets::Classes(classes)) => {
                for class in whole_numbers(classes.clone().flatten(0, 1))? {
                    match usize::try_from(class)
                        .ok()
                        .and_then(|at| counts.get_mut(at))
                    {
                        Some(count) => *count += 1,
                        None => *ignores = true,
                    }
                }
            }
            (Counted::Labels { counts, num }, Targets::Values(labels)) => {
                let labels = numbers(labels.clone())?;
                for item in labels.chunks_exact(counts.len().max(1)) {
                    counts
                        .iter_mut()
                        .zip(item)
                        .for_each(|(count, x)| *count += x);
                    *num += 1.0;
                }
            }
            (Counted::Values { moments, num }, Targets::Values(values)) => {
                let values = numbers(values.clone())?;
                for item in values.chunks_exact(moments.len().max(1)) {
                    *num += 1.0;
                    for ([mean, squares], value) in moments.iter_mut().zip(item) {
                        let before = value - *mean;
                        *mean += before / *num;
                        *squares += before * (value - *mean);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The metrics that it has, by name.
    pub fn metrics(&self, plan: &RunPlan) -> BTreeMap<String, f64> {
        let mut metrics = match &self.counted {
            Counted::Classes { counts, .. } => of_classes(counts),
            Counted::Labels { .. } => Vec::new(),
            Counted::Values { moments, num } => of_values(moments, *num),
        };
        metrics.extend(self.loss(&plan.loss.function).map(|loss| ("loss", loss)));
        let finite = metrics.into_iter().filter(|(_, value)| value.is_finite());
        finite
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// The loss, if it is one whose best constant is known.
    fn loss(&self, function: &LossFunction) -> Option<f64> {
        if !self.is_plain {
            return None;
        }
        match (function, &self.counted) {
            (
                LossFunction::CrossEntropy {
                    label_smoothing: 0.0,
                    class_weights,
                    focal_gamma: 0.0,
                    ..
                },
                // Without ignored positions, all items have as many.
                Counted::Classes {
                    counts,
                    ignores: false,
                },
            ) if class_weights.is_empty() => Some(entropy(counts)),
            (
                LossFunction::BinaryCrossEntropy {
                    label_smoothing: 0.0,
                    label_weights,
                    focal_gamma: 0.0,
                },
                Counted::Labels { counts, num },
            ) if label_weights.is_empty() => {
                let each = counts.iter().map(|count| of_label(count / num));
                Some(each.sum::<f64>() / counts.len() as f64)
            }
            (LossFunction::Mse, Counted::Values { moments, num }) => {
                Some(mean_square(moments, *num))
            }
            _ => None,
        }
    }
}

fn of_classes(counts: &[u64]) -> Vec<(&'static str, f64)> {
    let num = counts.iter().sum::<u64>() as f64;
    let most = counts.iter().max().copied().unwrap_or_default() as f64;
    let occurring = counts.iter().filter(|count| **count > 0).count() as f64;
    let entropy = entropy(counts);
    vec![
        ("accuracy", most / num),
        ("balanced_accuracy", 1.0 / occurring),
        ("mcc", 0.0),
        ("cohen_kappa", 0.0),
        ("log_loss", entropy),
        ("perplexity", entropy.exp()),
    ]
}

fn of_values(moments: &[[f64; 2]], num: f64) -> Vec<(&'static str, f64)> {
    let square = mean_square(moments, num);
    vec![("mse", square), ("rmse", square.sqrt()), ("r2", 0.0)]
}

/// The mean variance of values.
fn mean_square(moments: &[[f64; 2]], num: f64) -> f64 {
    let each = moments.iter().map(|[_, squares]| squares / num);
    each.sum::<f64>() / moments.len() as f64
}

/// The entropy of classes with these counts, in nats.
fn entropy(counts: &[u64]) -> f64 {
    let num = counts.iter().sum::<u64>() as f64;
    of_shares(counts.iter().map(|count| *count as f64 / num))
}

/// The entropy of a label that is present in a share of the items.
fn of_label(share: f64) -> f64 {
    of_shares([share, 1.0 - share].into_iter())
}

/// The entropy of what has these shares.
fn of_shares(shares: impl Iterator<Item = f64>) -> f64 {
    let shares = shares.filter(|share| *share > 0.0);
    shares.map(|share| -share * share.ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_constant_is_known() {
        let metrics: BTreeMap<_, _> = of_classes(&[6, 2, 0]).into_iter().collect();
        let entropy = -(0.75_f64.ln() * 0.75 + 0.25_f64.ln() * 0.25);
        assert_eq!(metrics["accuracy"], 0.75);
        assert_eq!(metrics["balanced_accuracy"], 0.5);
        assert!((metrics["log_loss"] - entropy).abs() < 1e-12);
        assert!((metrics["perplexity"] - entropy.exp()).abs() < 1e-12);
        assert_eq!(of_label(0.0), 0.0);
        assert!((of_label(0.25) - entropy).abs() < 1e-12);
        // Of 1, 2, 3 and of 5, 5, 5.
        let values = of_values(&[[2.0, 2.0], [5.0, 0.0]], 3.0);
        assert_eq!(values[0], ("mse", 1.0 / 3.0));
    }
}
