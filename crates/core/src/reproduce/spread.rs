//! The spread of the objective over seeds.

use serde::{Deserialize, Serialize};

use runner_statistics::Interval;

/// The results of a trial's seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The objective of each seed.
    pub values: Vec<f64>,
    /// The range that contains another seed 95 times out of 100, if they are normally distributed.
    pub interval: [f64; 2],
}

/// The 95 % prediction interval for one more seed, from at least two.
pub fn prediction_interval(values: &[f64]) -> Option<Spread> {
    let interval = Interval::prediction(values, 0.95).ok()?;
    Some(Spread {
        values: values.to_vec(),
        interval: [interval.low, interval.high],
    })
}
