//! How good predictions are: what `runner evaluate` finds.

use serde::Serialize;

use crate::record::evaluation::Confusion;

/// What a run's network is worth on some data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assessment {
    /// The run.
    pub run: String,
    /// Which of its weights.
    pub weights: String,
    /// The data, as it was named.
    pub data: String,
    /// Items that were evaluated.
    pub num_items: u64,
    /// Items that were left out.
    pub num_skipped: u64,
    /// The confidence of the intervals.
    pub level: f64,
    /// Resamples that the intervals are of; 0 where there are too many items to be kept.
    pub num_resamples: usize,
    /// The loss and every metric of the task.
    pub metrics: Vec<Measure>,
    /// How often which class was taken for which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confusion: Option<Confusion>,
    /// What was predicted less what was to be, for each target in its units.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub residuals: Vec<Residual>,
    /// Another run on the same items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
}

/// A metric over all items.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// Its value, as training computes it.
    pub value: f64,
    /// The interval of the bootstrap over items, where it could be computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// The errors of a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Residual {
    /// The target.
    pub target: String,
    /// The mean error.
    pub mean: f64,
    /// The mean absolute error.
    pub mean_absolute: f64,
    /// The root of the mean squared error.
    pub root_mean_square: f64,
    /// The smallest error, its quantiles 0.05, 0.5 and 0.95, and the largest.
    pub quantiles: [f64; 5],
}

/// A comparison with another run, item by item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// The other run.
    pub run: String,
    /// Each metric of both.
    pub metrics: Vec<Difference>,
    /// Of classes: on which items one of the two is right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<OnlyRight>,
}

/// A metric of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// Of the first run.
    pub value: f64,
    /// Of the other run.
    pub other: f64,
    /// The interval of the paired bootstrap for the first less the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// Items that one of two runs predicts rightly, and the test of McNemar.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OnlyRight {
    /// Items that both predict rightly.
    pub both: u64,
    /// Items that only the first predicts rightly.
    pub first: u64,
    /// Items that only the other predicts rightly.
    pub other: u64,
    /// Items that neither predicts rightly.
    pub neither: u64,
    /// The exact two-sided p-value.
    pub p: f64,
}
