//! Decisions by a threshold: how the scores of items separate those of a class from all others, and whether scores that
//! are probabilities are calibrated.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Maximum number of kept scores over all classes: 8 MiB.
const MOST_KEPT: usize = 1 << 20;
/// Maximum number of thresholds in a [`Separation`].
const MOST_THRESHOLDS: usize = 100;
/// The thresholds whose decisions are always exact.
pub const STEPS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// The number of bins of a reliability diagram (Guo et al., 2017, use 15; scikit-learn 5).
const NUM_BINS: usize = 10;

/// The scores of items for classes, and which of the classes they have.
///
/// Memory is bounded: beyond 2^20 scores, every second item is dropped, again and again, so that the kept ones are
/// spread evenly over all.
#[derive(Clone, Debug)]
pub struct Scored {
    /// For each class: score, and whether the item has the class.
    classes: Vec<Vec<(f32, bool)>>,
    num_seen: usize,
    stride: usize,
}

/// How the scores of a class separate its items from all others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Separation {
    /// Items of the class.
    pub positives: u64,
    /// Other items.
    pub negatives: u64,
    /// The area under the receiver operating characteristic (Fawcett, 2006); none if one of the two has no items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auroc: Option<f64>,
    /// The sum of precisions, weighted by the recall that each adds; none if the class has no items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auc_pr: Option<f64>,
    /// Some thresholds, descending.
    pub thresholds: Vec<Threshold>,
    /// Bins of equal width from 0 to 1, without empty ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<Bin>,
}

/// The items with at least some score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// The score.
    pub at: f64,
    /// Those of the class.
    pub true_positives: u64,
    /// Others.
    pub false_positives: u64,
}

/// Items whose scores are close.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// The number of items.
    pub num: u64,
    /// Those of the class.
    pub positives: u64,
    /// The mean score.
    pub mean: f64,
}

impl Scored {
    /// No items yet.
    pub fn new(num_classes: usize) -> Self {
        Self {
            classes: vec![Vec::new(); num_classes],
            num_seen: 0,
            stride: 1,
        }
    }

    /// Adds an item: for each class, its score and whether it has the class. An item with a score that is not finite is
    /// not kept.
    pub fn add(&mut self, item: impl Iterator<Item = (f32, bool)> + Clone) {
        let is_kept = self.num_seen.is_multiple_of(self.stride);
        self.num_seen += 1;
        if !is_kept || item.clone().any(|(score, _)| !score.is_finite()) {
            return;
        }
        for (class, scored) in self.classes.iter_mut().zip(item) {
            class.push(scored);
        }
        let num_kept = self.classes.first().map_or(0, Vec::len);
        if num_kept * self.classes.len() > MOST_KEPT {
            self.stride *= 2;
            for class in &mut self.classes {
                let mut at = 0;
                class.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
            }
        }
    }

    /// The separation by each class; nothing without items.
    pub fn separations(self) -> Vec<Separation> {
        let classes = self.classes.into_iter();
        classes
            .filter(|class| !class.is_empty())
            .map(Separation::of)
            .collect()
    }
}

impl Separation {
    /// Of scores, and whether their items have the class.
    fn of(mut scored: Vec<(f32, bool)>) -> Self {
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        // 0 and -0 are one score.
        let all: Vec<Threshold> = scored
            .chunk_by(|a, b| a.0 == b.0)
            .scan((0, 0), |(hits, misses), equal| {
                let positives = equal.iter().filter(|(_, is_of_class)| *is_of_class).count();
                *hits += positives as u64;
                *misses += (equal.len() - positives) as u64;
                Some(Threshold {
                    at: f64::from(equal[0].0),
                    true_positives: *hits,
                    false_positives: *misses,
                })
            })
            .collect();
        let last = all.last();
        let (positives, negatives) =
            last.map_or((0, 0), |last| (last.true_positives, last.false_positives));
        Self {
            positives,
            negatives,
            auroc: area(&all, positives, negatives),
            auc_pr: average_precision(&all, positives),
            bins: bins(&scored),
            thresholds: all,
        }
        .thinned()
    }

    /// With few thresholds, at the shortest digits of their scores.
    fn thinned(mut self) -> Self {
        let best = self.best_f1();
        self.thresholds = thinned(&self.thresholds, best);
        for threshold in &mut self.thresholds {
            threshold.at = shortest(threshold.at as f32);
        }
        self
    }

    /// The scores of the class by a threshold: precision, recall and F1; precision is 1 without predictions, as in the
    /// curves of scikit-learn.
    pub fn scores(&self, threshold: &Threshold) -> [f64; 3] {
        let hits = threshold.true_positives as f64;
        let found = hits + threshold.false_positives as f64;
        let of_class = self.positives as f64;
        let share =
            |part: f64, whole: f64, none: f64| if whole > 0.0 { part / whole } else { none };
        [
            share(hits, found, 1.0),
            share(hits, of_class, 0.0),
            share(2.0 * hits, found + of_class, 0.0),
        ]
    }

    /// The decisions by one of [`STEPS`]; by another threshold, those of the lowest written one that is not below it.
    pub fn at(&self, threshold: f64) -> Threshold {
        let found = self.thresholds.iter().rev().find(|t| t.at >= threshold);
        let (true_positives, false_positives) = found.map_or((0, 0), |found| {
            (found.true_positives, found.false_positives)
        });
        Threshold {
            at: threshold,
            true_positives,
            false_positives,
        }
    }

    /// The threshold with the largest F1, the highest of equal ones.
    pub fn best_f1(&self) -> Option<Threshold> {
        let all = self.thresholds.iter().rev();
        all.max_by(|a, b| self.scores(a)[2].total_cmp(&self.scores(b)[2]))
            .copied()
    }

    /// The mean difference between the score and the fraction of the class, over bins by their items: the expected
    /// calibration error (Naeini et al., 2015).
    pub fn calibration_error(&self) -> Option<f64> {
        let num: u64 = self.bins.iter().map(|bin| bin.num).sum();
        let errors = self.bins.iter().filter(|bin| bin.num > 0).map(|bin| {
            let share = bin.positives as f64 / bin.num as f64;
            (share - bin.mean).abs() * bin.num as f64
        });
        (num > 0).then(|| errors.sum::<f64>() / num as f64)
    }
}

/// A score with its shortest digits.
fn shortest(score: f32) -> f64 {
    score
        .to_string()
        .parse()
        .unwrap_or_else(|_| f64::from(score))
}

/// The probability that an item of the class has a higher score than another; equal scores count half.
fn area(all: &[Threshold], positives: u64, negatives: u64) -> Option<f64> {
    let mut before = (0.0, 0.0);
    let mut area = 0.0;
    for threshold in all {
        let (hits, misses) = (
            threshold.true_positives as f64,
            threshold.false_positives as f64,
        );
        area += (misses - before.1) * 0.5 * (hits + before.0);
        before = (hits, misses);
    }
    let total = positives as f64 * negatives as f64;
    (total > 0.0).then(|| area / total)
}

fn average_precision(all: &[Threshold], positives: u64) -> Option<f64> {
    let mut before = 0.0;
    let mut sum = 0.0;
    for threshold in all {
        let hits = threshold.true_positives as f64;
        sum += (hits - before) * hits / (hits + threshold.false_positives as f64);
        before = hits;
    }
    (positives > 0).then(|| sum / positives as f64)
}

/// None if a score is no probability.
fn bins(scored: &[(f32, bool)]) -> Vec<Bin> {
    let mut bins = vec![(0, 0, 0.0); NUM_BINS];
    for (score, is_of_class) in scored {
        if !(0.0..=1.0).contains(score) {
            return Vec::new();
        }
        // In single precision, where 0.9 is in the bin that begins there.
        let at = (*score * NUM_BINS as f32) as usize;
        let (num, positives, sum) = &mut bins[at.min(NUM_BINS - 1)];
        *num += 1;
        *positives += u64::from(*is_of_class);
        *sum += f64::from(*score);
    }
    let bins = bins.into_iter().filter(|(num, ..)| *num > 0);
    bins.map(|(num, positives, sum)| Bin {
        num,
        positives,
        mean: sum / num as f64,
    })
    .collect()
}

/// Those at corners of the ROC curve, if there are many some that are spread evenly over the items; and those that
/// decide at a step of [`STEPS`] or have the largest F1, so that these are exact.
fn thinned(all: &[Threshold], best: Option<Threshold>) -> Vec<Threshold> {
    let Some(last) = all.len().checked_sub(1) else {
        return Vec::new();
    };
    // In single precision, where 0.9 is not below the score that has these digits.
    let decisive = STEPS
        .iter()
        .filter_map(|step| all.iter().rposition(|t| t.at as f32 >= *step as f32));
    let best = best.and_then(|best| all.iter().position(|t| *t == best));
    let named: Vec<usize> = [0, last].into_iter().chain(decisive).chain(best).collect();
    let step = |from: &Threshold, to: &Threshold| {
        let hits = u128::from(to.true_positives - from.true_positives);
        (hits, u128::from(to.false_positives - from.false_positives))
    };
    let is_corner = |at: &usize| {
        let Some([before, this, after]) = all.get(at.wrapping_sub(1)..=at + 1) else {
            return true;
        };
        let ((x, y), (u, v)) = (step(before, this), step(this, after));
        x * v != y * u
    };
    let corners: Vec<usize> = (0..all.len()).filter(is_corner).collect();
    let num_items = |of: &Threshold| of.true_positives + of.false_positives;
    let total = u128::from(num_items(&all[last]));
    let most = (MOST_THRESHOLDS - named.len()) as u128;
    let is_all = corners.len() as u128 <= most;
    let mut next = 0;
    let spread = corners.into_iter().filter(|corner| {
        let place = u128::from(num_items(&all[*corner])) * most;
        let is_due = is_all || place >= next * total;
        if is_due {
            next = place / total + 1;
        }
        is_due
    });
    let kept: BTreeSet<usize> = named.into_iter().chain(spread).collect();
    kept.into_iter().map(|at| all[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separation(scored: &[(f32, bool)]) -> Separation {
        let mut all = Scored::new(1);
        for item in scored {
            all.add(std::iter::once(*item));
        }
        all.separations().remove(0)
    }

    #[test]
    fn areas_are_those_of_scikit_learn() {
        // roc_auc_score, average_precision_score and roc_curve(drop_intermediate=False) of the same.
        let found = separation(&[
            (0.9, true),
            (0.8, false),
            (0.8, true),
            (0.6, true),
            (0.3, false),
            (0.1, false),
        ]);
        assert!((found.auroc.unwrap() - 15.0 / 18.0).abs() < 1e-12);
        let precision = (1.0 + 2.0 / 3.0 + 0.75) / 3.0;
        assert!((found.auc_pr.unwrap() - precision).abs() < 1e-12);
        let counts = found
            .thresholds
            .iter()
            .map(|t| (t.true_positives, t.false_positives));
        assert_eq!(
            counts.collect::<Vec<_>>(),
            [(1, 0), (2, 1), (3, 1), (3, 2), (3, 3)]
        );
        let best = found.best_f1().unwrap();
        assert_eq!((best.true_positives, best.false_positives), (3, 1));
        assert_eq!(found.scores(&found.at(0.7)), [2.0 / 3.0; 3]);
        assert_eq!(found.scores(&found.at(1.0)), [1.0, 0.0, 0.0]);
        // Bins at 0.9, 0.8, 0.6, 0.3 and 0.1.
        let error = (0.1 + 2.0 * 0.3 + 0.4 + 0.3 + 0.1) / 6.0;
        assert!((found.calibration_error().unwrap() - error).abs() < 1e-6);
    }

    #[test]
    fn degenerate_scores_have_no_area() {
        let one_class = separation(&[(0.5, true), (0.5, true)]);
        assert_eq!((one_class.auroc, one_class.auc_pr), (None, Some(1.0)));
        let constant = separation(&[(0.5, true), (0.5, false)]);
        assert_eq!(constant.auroc, Some(0.5));
        assert!(Scored::new(3).separations().is_empty());
        let logits = separation(&[(-3.0, false), (7.0, true), (f32::NAN, true)]);
        assert!(logits.bins.is_empty() && logits.calibration_error().is_none());
        assert_eq!((logits.positives, logits.negatives), (1, 1));
    }

    #[test]
    fn many_items_are_thinned_to_both_ends() {
        let mut scored = Scored::new(2);
        for at in 0..3_000_000_u32 {
            // In an order that has nothing to do with the score.
            let score = (at.wrapping_mul(2_654_435_761) >> 8) as f32 / 16_777_216.0;
            let is_of_class = at % 7 < 3;
            scored.add([(score, is_of_class), (1.0 - score, !is_of_class)].into_iter());
        }
        let both = scored.separations();
        for found in &both {
            assert!(found.thresholds.len() <= MOST_THRESHOLDS);
            assert!((found.auroc.unwrap() - 0.5).abs() < 0.01);
            let at_half = found.at(0.5);
            let share = (at_half.true_positives + at_half.false_positives) as f64;
            let num = (found.positives + found.negatives) as f64;
            assert!((share / num - 0.5).abs() < 1e-3, "{}", share / num);
            assert!((found.thresholds[1].at - found.at(0.9).at).abs() < 0.11);
            let last = found.thresholds.last().unwrap();
            assert_eq!(
                (last.true_positives, last.false_positives),
                (found.positives, found.negatives)
            );
            let num = found.positives + found.negatives;
            assert!((1 << 17..=1 << 19).contains(&num), "{num}");
        }
    }
}
