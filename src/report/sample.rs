//! A metric over the seeds of a trial.

use serde::{Deserialize, Serialize};

use crate::spec::metric::Metric;
use crate::spec::section::by_name;
use crate::statistics::{Description, Direction, Interval};

/// The level of confidence of every interval in a report.
pub const CONFIDENCE: f64 = 0.95;

/// The level of significance of every verdict in a report, for all of its comparisons together.
pub const ALPHA: f64 = 0.05;

/// What runs cost, by the names under which trials are compared by it. Less is better.
pub const COSTS: [&str; 3] = ["epoch_secs", "wall_secs", "memory_bytes"];

/// A metric over seeds, in its own unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// n, mean, standard deviation, median, and the extremes.
    #[serde(flatten)]
    pub description: Description,
    /// The best value, where the metric has a direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<f64>,
    /// The worst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<f64>,
    /// Student's interval for the mean; none for a single value, and where all are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student: Option<Interval>,
    /// The bootstrap's (BCa); of the objective and of test alone, as it takes its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bca: Option<Interval>,
    /// The value of each seed.
    pub by_seed: Vec<(u64, f64)>,
}

impl Sample {
    /// Describes the values of a metric; none where there are none, or where they are too large to add up.
    pub fn of(name: &str, by_seed: Vec<(u64, f64)>) -> Option<Self> {
        let values: Vec<f64> = by_seed.iter().map(|(_, value)| *value).collect();
        let description = Description::of(&values).ok()?;
        let (low, high) = (description.minimum, description.maximum);
        let (best, worst) = match direction(name) {
            Some(Direction::HigherIsBetter) => (Some(high), Some(low)),
            Some(Direction::LowerIsBetter) => (Some(low), Some(high)),
            None => (None, None),
        };
        Some(Self {
            description,
            best,
            worst,
            student: Interval::student(&values, CONFIDENCE).ok(),
            bca: None,
            by_seed,
        })
    }

    /// The same with the interval of the bootstrap.
    pub fn with_bootstrap(mut self) -> Self {
        let values: Vec<f64> = self.by_seed.iter().map(|(_, value)| *value).collect();
        self.bca = Interval::bca(&values, CONFIDENCE).ok();
        self
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.description.mean
    }
}

/// The least and the largest that a metric can be, by its name.
pub fn bounds(name: &str) -> (f64, f64) {
    let metric = name.rsplit('/').next().and_then(by_name::<Metric>);
    metric.map_or((f64::NEG_INFINITY, f64::INFINITY), Metric::bounds)
}

/// Whether an interval goes beyond what its metric can be.
pub fn is_beyond(name: &str, interval: &Interval) -> bool {
    let (low, high) = bounds(name);
    interval.low < low || interval.high > high
}

/// Which values of a metric or a cost are better, by its name; none for what is neither, such as a norm of gradients.
pub fn direction(name: &str) -> Option<Direction> {
    if COSTS.contains(&name) {
        return Some(Direction::LowerIsBetter);
    }
    let metric = by_name::<Metric>(name.rsplit('/').next()?)?;
    Some(match metric.higher_is_better() {
        true => Direction::HigherIsBetter,
        false => Direction::LowerIsBetter,
    })
}
