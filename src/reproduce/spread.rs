//! How far the objective is spread over seeds.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// What the seeds of a trial came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The objective of each seed.
    pub values: Vec<f64>,
    /// Between which a further seed falls 95 times of 100, if they are normally distributed.
    pub interval: [f64; 2],
}

/// The 95 % prediction interval for one more value of a normal distribution, from at least two: mean ± t s
/// sqrt(1 + 1/n), with t the quantile of Student's distribution with n - 1 degrees of freedom (Hahn and
/// Meeker, Statistical Intervals, 1991, section 4.7).
pub fn prediction_interval(values: &[f64]) -> Option<Spread> {
    let n = values.len() as f64;
    if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (n - 1.0)).sqrt();
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(0.975);
    let half = t * deviation * (1.0 + 1.0 / n).sqrt();
    Some(Spread {
        values: values.to_vec(),
        interval: [mean - half, mean + half],
    })
}
