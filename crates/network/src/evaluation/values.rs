//! The errors of predicted numbers.

use std::collections::BTreeMap;

use burn::tensor::{Tensor, TensorReadError};

use super::worst::Worst;
use super::{NUM_WORST, plain};
use crate::scores::{Scores, numbers};
use crate::targets::Targets;
use runner_core::data::encode::Unit;
use runner_core::data::{Places, Split};
use runner_core::record::evaluation::{Evaluated, Point, Residuals};

/// Maximum number of analyzed targets.
const MOST_TARGETS: usize = 16;
/// Maximum number of written points.
const NUM_POINTS: usize = 500;
/// Maximum number of items behind points and quantiles: with 16 targets some 20 MB.
const NUM_KEPT: usize = 1 << 16;
/// Written quantiles, in addition to the minimum and the maximum.
const FRACTIONS: [(&str, f64); 5] = [
    ("0.05", 0.05),
    ("0.25", 0.25),
    ("0.5", 0.5),
    ("0.75", 0.75),
    ("0.95", 0.95),
];

/// The targets of an item and their predictions, in the units of the data.
type Pair = (Vec<f64>, Vec<f64>);

/// Counts of numbers.
pub struct Values {
    split: Split,
    num_values: usize,
    num_items: usize,
    /// One item out of this many is kept.
    stride: usize,
    kept: Vec<(usize, Pair)>,
    worst: Worst<Pair>,
    moments: Vec<Moments>,
    /// Whether the loss leaves out positions.
    has_mask: bool,
}

/// Sums over residuals that do not lose precision (Welford, 1962).
#[derive(Clone, Debug)]
struct Moments {
    num: f64,
    mean: f64,
    /// Sum of squared differences from the mean.
    squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    const NONE: Self = Self {
        num: 0.0,
        mean: 0.0,
        squares: 0.0,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
    };

    fn add(&mut self, value: f64) {
        self.num += 1.0;
        let before = value - self.mean;
        self.mean += before / self.num;
        self.squares += before * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }
}

impl Values {
    /// Counts nothing yet.
    pub fn new(split: &Split, num_values: usize, has_mask: bool) -> Self {
        let num_moments = if num_values > MOST_TARGETS || has_mask {
            0
        } else {
            num_values
        };
        Self {
            split: split.clone(),
            num_values,
            num_items: 0,
            stride: split.num_items().div_ceil(NUM_KEPT).max(1),
            kept: Vec::new(),
            worst: Worst::new(NUM_WORST),
            moments: vec![Moments::NONE; num_moments],
            has_mask,
        }
    }

    /// Adds the next items: their losses, the outputs of the network, and \[batch, values\].
    pub fn add(
        &mut self,
        losses: &[f64],
        outputs: Tensor<2>,
        targets: Targets,
        scores: &Scores,
    ) -> Result<(), TensorReadError> {
        let (Targets::Values(targets), false) = (targets, self.moments.is_empty()) else {
            self.num_items += losses.len();
            return Ok(());
        };
        let predicted = numbers(scores.predicted(outputs, self.num_values))?;
        let targets = numbers(targets)?;
        let items = targets
            .chunks_exact(self.num_values)
            .zip(predicted.chunks_exact(self.num_values));
        for ((target, predicted), loss) in items.zip(losses) {
            let in_units = |values: &[f64], undo: fn(&Unit, f64) -> f64| -> Vec<f64> {
                let values = values.iter().zip(scores.units.iter());
                values
                    .map(|(value, unit)| undo(unit, f64::from(*value as f32)))
                    .collect()
            };
            let target = in_units(target, Unit::undo_target);
            let predicted = in_units(predicted, Unit::undo);
            let errors = predicted.iter().zip(&target).map(|(a, b)| a - b);
            for (moments, error) in self.moments.iter_mut().zip(errors) {
                moments.add(error);
            }
            let pair = || (target.clone(), predicted.clone());
            self.worst.add(self.num_items, *loss, pair);
            if self.num_items.is_multiple_of(self.stride) {
                self.kept.push((self.num_items, pair()));
            }
            self.num_items += 1;
        }
        Ok(())
    }

    /// The result.
    pub fn finish(self, places: &Places<'_>) -> Evaluated {
        let num_items = self.num_items as u64;
        if self.moments.is_empty() {
            return Evaluated::Regression {
                num_items,
                targets: Vec::new(),
                points: Vec::new(),
                residuals: Vec::new(),
                left_out: Some(if self.has_mask {
                    "`loss.mask` leaves out positions".to_owned()
                } else {
                    format!(
                        "a target has {} numbers, but at most {MOST_TARGETS} are analyzed",
                        self.num_values
                    )
                }),
            };
        }
        Evaluated::Regression {
            num_items,
            targets: self.split.set().target_names(),
            residuals: (0..self.num_values).map(|at| self.residuals(at)).collect(),
            points: self.points(places),
            left_out: None,
        }
    }

    fn residuals(&self, at: usize) -> Residuals {
        let Moments {
            num,
            mean,
            squares,
            min,
            max,
        } = self.moments[at];
        let errors = self.kept.iter();
        let mut errors: Vec<f64> = errors
            .map(|(_, (target, predicted))| predicted[at] - target[at])
            .collect();
        errors.sort_by(f64::total_cmp);
        let inner = FRACTIONS.map(|(name, fraction)| (name, quantile(&errors, fraction)));
        let quantiles = [("0", min), ("1", max)].into_iter().chain(inner);
        Residuals {
            mean,
            sd: (squares / (num - 1.0).max(1.0)).sqrt(),
            rmse: (squares / num + mean * mean).sqrt(),
            quantiles: quantiles
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            quantiles_of: (self.stride > 1).then_some(self.kept.len() as u64),
        }
    }

    /// Some items, evenly by the rank of their first target, and the worst.
    fn points(mut self, places: &Places<'_>) -> Vec<Point> {
        let worst = self.worst.into_kept().into_iter();
        let mut points: BTreeMap<usize, Pair> = worst.map(|kept| (kept.item, kept.known)).collect();
        let num = NUM_POINTS - points.len();
        // The sort is stable: equal targets keep the order of the items.
        self.kept
            .sort_by(|(_, (a, _)), (_, (b, _))| a[0].total_cmp(&b[0]));
        let last = self.kept.len().saturating_sub(1);
        let picked: Vec<usize> = if self.kept.len() <= num {
            (0..self.kept.len()).collect()
        } else {
            (0..num).map(|at| at * last / (num - 1)).collect()
        };
        for at in picked {
            let (item, pair) = &self.kept[at];
            points.entry(*item).or_insert_with(|| pair.clone());
        }
        let short = |values: Vec<f64>| values.into_iter().map(plain).collect();
        points
            .into_iter()
            .map(|(item, (target, predicted))| Point {
                item,
                target: short(target),
                predicted: short(predicted),
                place: places.of(item),
            })
            .collect()
    }
}

/// Interpolated linearly, as most programs do (type 7 of Hyndman and Fan, 1996).
fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let at = fraction * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (at.floor() as usize, at.ceil() as usize);
    match (sorted.get(below), sorted.get(above)) {
        (Some(a), Some(b)) => a + (b - a) * at.fract(),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_the_values_around_them() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        assert_eq!(quantile(&sorted, 0.5), 3.0);
        assert_eq!(quantile(&sorted, 0.25), 1.75);
        assert_eq!(quantile(&[5.0], 0.95), 5.0);
    }

    #[test]
    fn moments_are_those_of_the_definition() {
        let mut moments = Moments::NONE;
        for value in [1e9 + 1.0, 1e9 + 2.0, 1e9 + 6.0] {
            moments.add(value);
        }
        assert_eq!(moments.mean, 1e9 + 3.0);
        assert_eq!(moments.squares, 14.0);
        assert_eq!((moments.min, moments.max), (1e9 + 1.0, 1e9 + 6.0));
    }
}
