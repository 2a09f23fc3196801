//! The quality of predictions: the result of `runner evaluate`.

use serde::Serialize;

use crate::record::evaluation::{ClassSeparation, Confusion};

/// The quality of a run's network on some data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assessment {
    /// The run.
    pub run: String,
    /// Which of its weights.
    pub weights: String,
    /// The name of the data.
    pub data: String,
    /// Items that were evaluated.
    pub num_items: u64,
    /// Skipped items.
    pub num_skipped: u64,
    /// The confidence of the intervals.
    pub level: f64,
    /// The number of resamples for the intervals; 0 if there are too many items to keep.
    pub num_resamples: usize,
    /// The loss and every metric of the task.
    pub metrics: Vec<Measure>,
    /// The confusion matrix of classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confusion: Option<Confusion>,
    /// How the probabilities of classes or labels separate their items from others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub separations: Vec<ClassSeparation>,
    /// The errors of each target, in its units.
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
    /// The bootstrap interval over items, if it could be computed.
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
    /// The root-mean-square error.
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
    /// For classes: the items that only one of the two predicts correctly.
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
    /// The paired bootstrap interval of the difference, first minus other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
}

/// Items by which of two runs predicts them correctly, and McNemar's test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OnlyRight {
    /// Items that both predict correctly.
    pub both: u64,
    /// Items that only the first predict correctly.
    pub first: u64,
    /// Items that only the other predict correctly.
    pub other: u64,
    /// Items that neither predict correctly.
    pub neither: u64,
    /// The exact two-sided p-value.
    pub p: f64,
}
