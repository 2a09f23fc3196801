//! Metrics that depend on the order of all scores of a split.

use burn::tensor::{Int, Tensor, TensorReadError};

use super::{numbers, whole_numbers};
use crate::sliced;
use crate::targets::Targets;
use runner_core::spec::metric::Metric;
use runner_core::spec::task::{Average, MetricSettings};

/// The scores of a whole split, for metrics that depend on their order.
#[derive(Clone, Debug, Default)]
pub struct Ranked {
    num_classes: usize,
    /// \[items, classes\]
    scores: Vec<f64>,
    /// 1 where the item has the class, or what the scores are compared with.
    truths: Vec<f64>,
}

impl Ranked {
    /// Keeps the scores of a batch, as they were read.
    pub fn add(&mut self, scores: Tensor<2>, targets: &Targets) -> Result<(), TensorReadError> {
        let [_, num_classes] = scores.dims();
        self.num_classes = num_classes;
        self.scores.extend(numbers(scores)?);
        match targets {
            Targets::Classes(classes) => {
                let classes: Tensor<1, Int> = classes.clone().flatten(0, 1);
                for class in whole_numbers(classes)? {
                    self.truths
                        .extend((0..num_classes).map(|at| f64::from(at as i64 == class)));
                }
            }
            Targets::Values(labels) => {
                self.truths.extend(numbers(labels.clone())?);
            }
        }
        Ok(())
    }

    /// The same with each item as often as it is counted.
    pub fn resampled(&self, counts: &[u32]) -> Self {
        let num = self.num_classes;
        let mut resampled = Self {
            num_classes: num,
            ..Self::default()
        };
        for (item, count) in counts.iter().enumerate() {
            let range = item * num..(item + 1) * num;
            for _ in 0..*count {
                resampled.scores.extend(&self.scores[range.clone()]);
                resampled.truths.extend(&self.truths[range.clone()]);
            }
        }
        resampled
    }

    /// The value of a metric: each class against the rest, averaged over the classes with both, or only the positive one.
    /// None if no class has both, so that it is not defined.
    pub fn value(&self, metric: Metric, settings: &MetricSettings) -> Option<f64> {
        if metric == Metric::SlicedWasserstein {
            return Some(sliced::distance(&self.scores, &self.truths));
        }
        let classes = match (settings.average, settings.positive) {
            (Average::Binary, Some(at)) => at..at + 1,
            _ => 0..self.num_classes,
        };
        let values = classes.filter_map(|class| {
            let of_class = (class..self.scores.len()).step_by(self.num_classes);
            let mut pairs: Vec<(f64, bool)> = of_class
                .map(|at| (self.scores[at], self.truths[at] > 0.5))
                .collect();
            pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
            let value = match metric {
                Metric::Auroc => auroc(&pairs),
                _ => average_precision(&pairs),
            };
            let weight = match settings.average {
                Average::Weighted => pairs.iter().filter(|(_, truth)| *truth).count() as f64,
                _ => 1.0,
            };
            Some((value?, weight))
        });
        let (mut sum, mut weights) = (0.0, 0.0);
        for (value, weight) in values {
            sum += weight * value;
            weights += weight;
        }
        (weights > 0.0).then(|| sum / weights)
    }
}

/// Groups of equal scores, highest first: how many have the class, and how many do not.
fn groups(pairs: &[(f64, bool)]) -> impl Iterator<Item = (f64, f64)> {
    pairs.chunk_by(|a, b| a.0 == b.0).map(|group| {
        let positive = group.iter().filter(|(_, truth)| *truth).count();
        (positive as f64, (group.len() - positive) as f64)
    })
}

/// The fraction of pairs of an item of the class and another in which the first scores higher, counting ties half (Mann
/// and Whitney, 1947).
fn auroc(pairs: &[(f64, bool)]) -> Option<f64> {
    let (mut positives, mut negatives, mut won) = (0.0, 0.0, 0.0);
    for (positive, negative) in groups(pairs) {
        won += negative * (positives + positive / 2.0);
        positives += positive;
        negatives += negative;
    }
    (positives > 0.0 && negatives > 0.0).then(|| won / (positives * negatives))
}

/// The sum of precisions, each weighted by the recall that its threshold adds.
fn average_precision(pairs: &[(f64, bool)]) -> Option<f64> {
    let total = pairs.iter().filter(|(_, truth)| *truth).count() as f64;
    let (mut positives, mut seen, mut sum) = (0.0, 0.0, 0.0);
    for (positive, negative) in groups(pairs) {
        positives += positive;
        seen += positive + negative;
        sum += positive * positives / seen;
    }
    (total > 0.0).then(|| sum / total)
}
