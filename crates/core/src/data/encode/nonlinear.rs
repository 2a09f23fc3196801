//! Nonlinear transforms of numeric targets, which are applied before they are scaled, and their inverses.
//!
//! All functions are those of `libm`, so that targets are the same on every processor.

use std::f64::consts::{PI, SQRT_2};

use serde::{Deserialize, Serialize};

use super::Scaling;
use crate::spec::data::TargetTransform;

/// The most quantiles that are measured for a target, as in scikit-learn.
const MOST_QUANTILES: usize = 1000;
/// Shares of the train split closer to 0 or 1 than this are the ends of the distribution, as in scikit-learn.
const END: f64 = 1e-7;
/// The same for shares of numbers that 32 bits rounded, so that the ends are undone to themselves.
pub const END_AGAIN: f64 = END * (1.0 + 1e-5);
/// The least share whose quantile of the normal distribution is used, as in scikit-learn.
const LEAST: f64 = END - f64::EPSILON;

/// How far 32 bits round the ends of the transformed numbers at most.
const ROUNDING: f64 = 1e-6;

/// The transform of one number of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Nonlinear {
    /// ln(x).
    Log,
    /// ln(1 + x).
    Log1p,
    /// The number of the standard normal distribution below which the same share of numbers lies as below x in the
    /// train split.
    Quantile {
        /// The quantiles of the train split at evenly spaced shares from 0 to 1, in ascending order.
        quantiles: Vec<f64>,
    },
}

impl Nonlinear {
    /// The transform that a file asks for, fitted to the values of the train split; `None` if it asks for none.
    pub fn fit(asked: TargetTransform, values: impl FnOnce() -> Vec<f64>) -> Option<Self> {
        match asked {
            TargetTransform::None => None,
            TargetTransform::Log => Some(Self::Log),
            TargetTransform::Log1p => Some(Self::Log1p),
            TargetTransform::Quantile => Some(Self::Quantile {
                quantiles: quantiles(values()),
            }),
        }
    }

    /// The transformed number.
    pub fn apply(&self, value: f64) -> f64 {
        match self {
            Self::Log => libm::log(value),
            Self::Log1p => libm::log1p(value),
            Self::Quantile { quantiles } => {
                let share = share_below(quantiles, value).clamp(LEAST, 1.0 - LEAST);
                normal_quantile(share) + beyond(quantiles, value)
            }
        }
    }

    /// The number of which this is the transformed one.
    pub fn undo(&self, value: f64) -> f64 {
        match self {
            Self::Log => libm::exp(value),
            Self::Log1p => libm::expm1(value),
            Self::Quantile { quantiles } => quantile_at(quantiles, normal_share(value)),
        }
    }

    /// The same for a target, which may lie beyond the train split. Predictions do not: beyond it, nothing was learned.
    pub fn undo_target(&self, value: f64) -> f64 {
        let Self::Quantile { quantiles } = self else {
            return self.undo(value);
        };
        let (first, last) = (quantiles[0], quantiles[quantiles.len() - 1]);
        let end = normal_quantile(LEAST);
        // 32 bits round the ends themselves.
        if value < end - ROUNDING {
            first + (value - end) * width(quantiles)
        } else if value > ROUNDING - end {
            last + (value + end) * width(quantiles)
        } else {
            self.undo(value)
        }
    }

    /// Why a number has no transformed one, if so.
    pub fn refusal(&self, value: f64) -> Option<&'static str> {
        match self {
            Self::Log if value <= 0.0 => Some("has no logarithm: `log` needs numbers above 0"),
            Self::Log1p if value <= -1.0 => {
                Some("has no logarithm: `log1p` needs numbers above -1")
            }
            _ => None,
        }
    }

    /// The number of quantiles, if it has any.
    pub fn num_quantiles(&self) -> usize {
        match self {
            Self::Log | Self::Log1p => 0,
            Self::Quantile { quantiles } => quantiles.len(),
        }
    }

    /// Whether its numbers can be used: the file may come from anyone.
    pub(in crate::data) fn is_valid(&self) -> bool {
        match self {
            Self::Log | Self::Log1p => true,
            Self::Quantile { quantiles } => {
                quantiles.len() > 1
                    && quantiles.iter().all(|value| value.is_finite())
                    && quantiles.is_sorted()
            }
        }
    }
}

/// What brings a number of a target back to the units of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// Undone first.
    pub scaling: Scaling,
    /// Undone last.
    pub nonlinear: Option<Nonlinear>,
}

impl Unit {
    /// For numbers that are in the units of the data.
    pub const NONE: Self = Self {
        scaling: Scaling::NONE,
        nonlinear: None,
    };

    /// The number in the units of the data.
    pub fn undo(&self, value: f64) -> f64 {
        let value = self.scaling.undo(value);
        let nonlinear = self.nonlinear.as_ref();
        nonlinear.map_or(value, |nonlinear| nonlinear.undo(value))
    }

    /// A target in the units of the data.
    pub fn undo_target(&self, value: f64) -> f64 {
        let value = self.scaling.undo(value);
        let nonlinear = self.nonlinear.as_ref();
        nonlinear.map_or(value, |nonlinear| nonlinear.undo_target(value))
    }

    /// The factor that brings a number to the units of the data, and what is added then; `None` if its transform is
    /// not linear.
    pub fn linear(&self) -> Option<(f64, f64)> {
        let zero = self.scaling.undo(0.0);
        let is_linear = self.nonlinear.is_none();
        is_linear.then(|| (self.scaling.undo(1.0) - zero, zero))
    }
}

/// The quantiles of values at evenly spaced shares, interpolated linearly (type 7 of Hyndman and Fan, 1996).
fn quantiles(mut values: Vec<f64>) -> Vec<f64> {
    values.retain(|value| !value.is_nan());
    values.sort_by(f64::total_cmp);
    let (Some(&last), num) = (values.last(), values.len().clamp(2, MOST_QUANTILES)) else {
        return vec![0.0, 1.0];
    };
    let step = (values.len() - 1) as f64 / (num - 1) as f64;
    let mut most = f64::NEG_INFINITY;
    let quantile = |at: usize| {
        let place = at as f64 * step;
        let below = (place.floor() as usize).min(values.len() - 1);
        let [a, b] = [below, below + 1].map(|at| values.get(at).copied().unwrap_or(last));
        // Rounding must not change their order.
        most = most.max(a + (b - a) * (place - below as f64));
        most
    };
    (0..num).map(quantile).collect()
}

/// The range of the train split; 1 if all its values are equal.
fn width(quantiles: &[f64]) -> f64 {
    let width = quantiles[quantiles.len() - 1] - quantiles[0];
    if width > 0.0 { width } else { 1.0 }
}

/// How far a value is outside of the train split, in ranges of it, so that targets there keep their order and size.
fn beyond(quantiles: &[f64], value: f64) -> f64 {
    let (first, last) = (quantiles[0], quantiles[quantiles.len() - 1]);
    if value < first {
        (value - first) / width(quantiles)
    } else if value > last {
        (value - last) / width(quantiles)
    } else {
        0.0
    }
}

/// The share of the train split below a value; of a value that several quantiles have, the middle of theirs.
fn share_below(quantiles: &[f64], value: f64) -> f64 {
    let last = quantiles.len() - 1;
    let first_not_below = quantiles.partition_point(|quantile| *quantile < value);
    let first_above = quantiles.partition_point(|quantile| *quantile <= value);
    if value <= quantiles[0] {
        0.0
    } else if value >= quantiles[last] {
        1.0
    } else if first_not_below < first_above {
        0.5 * (first_not_below + first_above - 1) as f64 / last as f64
    } else {
        let (below, above) = (quantiles[first_above - 1], quantiles[first_above]);
        let part = (value - below) / (above - below);
        ((first_above - 1) as f64 + part) / last as f64
    }
}

/// The value below which a share of the train split lies.
fn quantile_at(quantiles: &[f64], share: f64) -> f64 {
    let last = quantiles.len() - 1;
    if share.is_nan() {
        f64::NAN
    } else if share < END_AGAIN {
        quantiles[0]
    } else if share > 1.0 - END_AGAIN {
        quantiles[last]
    } else {
        let place = share * last as f64;
        let below = (place.floor() as usize).min(last - 1);
        let (a, b) = (quantiles[below], quantiles[below + 1]);
        a + (b - a) * (place - below as f64)
    }
}

/// The share of the standard normal distribution below a number.
fn normal_share(z: f64) -> f64 {
    0.5 * libm::erfc(-z / SQRT_2)
}

/// The number below which a share of the standard normal distribution lies; the share is between [`LEAST`] and 1 minus
/// that.
fn normal_quantile(share: f64) -> f64 {
    if share > 0.5 {
        return -normal_quantile(1.0 - share);
    }
    // A first guess (Hastings, 1955), which Halley's steps make exact.
    let t = (-2.0 * libm::log(share)).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let mut z = above / below - t;
    for _ in 0..3 {
        let error = normal_share(z) - share;
        let step = error * (2.0 * PI).sqrt() * libm::exp(0.5 * z * z);
        z -= step / (1.0 + 0.5 * z * step);
    }
    z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal_distribution_are_those_of_tables() {
        for (share, z) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.841_344_746_068_542_9, 1.0),
            (1e-7, -5.199_337_582_192_817),
            (0.001, -3.090_232_306_167_813),
        ] {
            assert!((normal_quantile(share) - z).abs() < 1e-12, "{share}");
            assert!((normal_share(z) - share).abs() < 1e-15, "{share}");
        }
    }

    #[test]
    fn transforms_are_undone() {
        let values: Vec<f64> = (0..2500).map(|at| libm::exp(at as f64 / 300.0)).collect();
        for asked in [
            TargetTransform::Log,
            TargetTransform::Log1p,
            TargetTransform::Quantile,
        ] {
            let nonlinear = Nonlinear::fit(asked, || values.clone()).unwrap();
            assert!(nonlinear.is_valid());
            for value in &values {
                let back = nonlinear.undo(nonlinear.apply(*value));
                assert!(
                    (back - value).abs() < 1e-8 * value,
                    "{asked:?} {value} {back}"
                );
            }
        }
        assert_eq!(Nonlinear::fit(TargetTransform::None, Vec::new), None);
    }

    #[test]
    fn targets_beyond_the_train_split_keep_their_size_and_predictions_end_there() {
        let fitted =
            Nonlinear::fit(TargetTransform::Quantile, || vec![3.0, 1.0, 2.0, 2.0]).unwrap();
        let ends = [1.0, 3.0].map(|value| fitted.apply(value));
        assert!((ends[0] + 5.199_337_582_605_575).abs() < 1e-9, "{ends:?}");
        assert!((ends[0] + ends[1]).abs() < 1e-9, "{ends:?}");
        for value in [-40.0, 0.5, 1.0, 1.3, 2.0, 3.0, 3.001, 7.0, 1e4] {
            let transformed = f64::from(fitted.apply(value) as f32);
            let back = fitted.undo_target(transformed);
            let error = (back - value).abs() / f64::max(1.0, value.abs());
            assert!(error < 2e-6, "{value} {back}");
            assert!((1.0..=3.0).contains(&fitted.undo(transformed)), "{value}");
        }
        // Equal values have the middle of their shares.
        assert!(fitted.apply(2.0).abs() < 1e-12);
        // The ends survive 32 bits.
        let back = [1.0, 3.0].map(|end| fitted.undo(f64::from(fitted.apply(end) as f32)));
        assert_eq!(back, [1.0, 3.0]);
        assert_eq!((fitted.undo(-9.0), fitted.undo(9.0)), (1.0, 3.0));
        // One value, or none, has two quantiles.
        assert!(
            Nonlinear::fit(TargetTransform::Quantile, || vec![4.0])
                .unwrap()
                .is_valid()
        );
        assert!(
            Nonlinear::fit(TargetTransform::Quantile, Vec::new)
                .unwrap()
                .is_valid()
        );
    }
}
