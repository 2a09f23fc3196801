//! Metrics of decisions, from how often each class or label was right, predicted and there.

use runner_core::spec::metric::Metric;
use runner_core::spec::task::{Average, ZeroDivision};

use super::Scores;

/// Decisions about one class or label.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub both: f64,
    pub chosen: f64,
    pub wanted: f64,
}

impl Count {
    fn occurs(&self) -> bool {
        self.chosen + self.wanted > 0.0
    }
}

/// The decisions about each of `num` classes.
pub(super) fn all(sum: &dyn Fn(&str) -> Option<f64>, num: usize) -> Vec<Count> {
    let count = |class: usize| {
        let of = |what: &str| sum(&format!("{what} {class}")).unwrap_or(0.0);
        Count {
            both: of("both"),
            chosen: of("chosen"),
            wanted: of("wanted"),
        }
    };
    (0..num).map(count).collect()
}

pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The mean over the classes that occur in the data or in the predictions.
pub(super) fn macro_mean(
    sum: &dyn Fn(&str) -> Option<f64>,
    num: usize,
    value: impl Fn(&Count) -> f64,
) -> f64 {
    let counts = all(sum, num);
    mean(counts.iter().filter(|count| count.occurs()).map(value))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    // From 0.0: the sum of no values would be -0.0.
    let (sum, num) = values.fold((0.0, 0_u32), |(sum, num), value| (sum + value, num + 1));
    sum / f64::from(num.max(1))
}

impl Scores {
    /// A metric of each class, averaged as set.
    pub(super) fn averaged(&self, metric: Metric, sum: &dyn Fn(&str) -> Option<f64>) -> f64 {
        let counts = all(sum, self.num_classes);
        let is_of_labels = self.is_of_labels;
        // Of classes, an item has one; a label is decided for every item.
        let decided = sum("counted").unwrap_or(0.0);
        let decided = if is_of_labels {
            decided / self.num_classes.max(1) as f64
        } else {
            decided
        };
        let value = |count: &Count, decided: f64| self.of_count(metric, count, decided);
        match self.settings.average {
            Average::Binary => {
                let positive = self.settings.positive.and_then(|at| counts.get(at));
                positive
                    .and_then(|count| value(count, decided))
                    .unwrap_or(0.0)
            }
            Average::Micro => {
                let pooled = counts.iter().fold(Count::default(), |sum, count| Count {
                    both: sum.both + count.both,
                    chosen: sum.chosen + count.chosen,
                    wanted: sum.wanted + count.wanted,
                });
                let decided = decided * self.num_classes as f64;
                value(&pooled, decided).unwrap_or(0.0)
            }
            average => {
                // As in scikit-learn, labels are known, and classes are those that occur.
                let counts_all = is_of_labels && self.settings.zero_division.is_some();
                let each: Vec<(f64, f64)> = counts
                    .iter()
                    .filter(|count| counts_all || count.occurs())
                    .filter_map(|count| Some((value(count, decided)?, count.wanted)))
                    .collect();
                let total: f64 = each.iter().map(|(_, weight)| weight).sum();
                if average == Average::Weighted && total > 0.0 {
                    each.iter()
                        .map(|(value, weight)| value * weight)
                        .sum::<f64>()
                        / total
                } else {
                    mean(each.into_iter().map(|(value, _)| value))
                }
            }
        }
    }

    /// The metric of one class among so many decisions; `None` if it is 0 of 0 and such are skipped.
    fn of_count(&self, metric: Metric, count: &Count, decided: f64) -> Option<f64> {
        let Count {
            both,
            chosen,
            wanted,
        } = *count;
        let (part, whole) = match metric {
            Metric::Precision => (both, chosen),
            Metric::Recall => (both, wanted),
            Metric::Specificity => (decided - wanted - chosen + both, decided - wanted),
            Metric::Jaccard => (both, chosen + wanted - both),
            _ => {
                let square = self.settings.beta.powi(2);
                ((1.0 + square) * both, square * wanted + chosen)
            }
        };
        if whole > 0.0 {
            return Some(part / whole);
        }
        match self.settings.zero_division {
            None | Some(ZeroDivision::Zero) => Some(0.0),
            Some(ZeroDivision::One) => Some(1.0),
            Some(ZeroDivision::Skip) => None,
        }
    }
}

/// The mean recall of the classes that occur.
pub(super) fn balanced_accuracy(counts: &[Count]) -> f64 {
    let there = counts.iter().filter(|count| count.wanted > 0.0);
    mean(there.map(|count| count.both / count.wanted))
}

/// How many of `num` items are right, and how many would be by chance, as products of counts.
fn agreement(counts: &[Count]) -> (f64, f64) {
    let right = counts.iter().map(|count| count.both).sum();
    let chance = counts.iter().map(|count| count.chosen * count.wanted).sum();
    (right, chance)
}

/// The Matthews correlation coefficient of several classes (Gorodkin, 2004); 0 if all items have one class, or one is
/// predicted for all.
pub(super) fn matthews(counts: &[Count], num: f64) -> f64 {
    let (right, chance) = agreement(counts);
    let squares = |of: fn(&Count) -> f64| counts.iter().map(|count| of(count).powi(2)).sum::<f64>();
    let variance = |squares: f64| num * num - squares;
    let product = variance(squares(|c| c.chosen)) * variance(squares(|c| c.wanted));
    ratio(right * num - chance, product.max(0.0).sqrt())
}

/// Agreement beyond chance (Cohen, 1960); 0 if only one class occurs and is predicted.
pub(super) fn cohen_kappa(counts: &[Count], num: f64) -> f64 {
    let (right, chance) = agreement(counts);
    ratio(right * num - chance, num * num - chance)
}
