//! The distance of the saved values of a parameter.

use serde::{Deserialize, Serialize};

use super::ulp;

/// The distance of a parameter's values in two files of weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WeightDistance {
    /// The parameter's path in the experiment file.
    pub parameter: String,
    /// Its shape in each; none if a file lacks it.
    pub shapes: [Option<Vec<usize>>; 2],
    /// The Euclidean norm of the difference, relative to that of the first; `None` if shapes differ.
    pub relative_norm: Option<f64>,
    /// The largest difference of two values; `None` if shapes differ.
    pub largest: Option<f64>,
    /// The same in units in the last place of the first's largest value, as 32-bit floats: another summation order
    /// differs by a few of those. Infinite if shapes differ.
    pub ulps: f64,
}

impl WeightDistance {
    /// Of values of one shape.
    pub fn of(parameter: String, shape: &[usize], pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mut squares, mut squares_of_first) = (0.0, 0.0);
        let (mut largest, mut largest_of_first) = (0.0f64, 0.0f64);
        for (a, b) in pairs {
            largest_of_first = largest_of_first.max(a.abs());
            squares_of_first += a * a;
            let is_same = a == b || a.is_nan() && b.is_nan();
            let far = if is_same { 0.0 } else { (a - b).abs() };
            // `max` would ignore NaN.
            let far = if far.is_nan() { f64::INFINITY } else { far };
            largest = largest.max(far);
            squares += far * far;
        }
        let relative: f64 = match squares {
            0.0 => 0.0,
            squares => (squares / squares_of_first).sqrt(),
        };
        Self {
            parameter,
            shapes: [Some(shape.to_vec()), Some(shape.to_vec())],
            relative_norm: Some(relative),
            largest: Some(largest),
            ulps: largest / ulp(largest_of_first),
        }
    }

    /// For values that cannot be compared.
    pub fn apart(parameter: String, shapes: [Option<Vec<usize>>; 2]) -> Self {
        Self {
            parameter,
            shapes,
            relative_norm: None,
            largest: None,
            ulps: f64::INFINITY,
        }
    }
}
