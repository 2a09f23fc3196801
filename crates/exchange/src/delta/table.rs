//! How much each parameter changes.

use super::Delta;
use crate::tensors::Tensors;

/// How much a parameter changes, or all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its path; empty for all.
    pub name: String,
    /// Its sizes; empty for all.
    pub shape: Vec<usize>,
    /// Its values.
    pub num_values: usize,
    /// Values that are not the same.
    pub num_changed: usize,
    /// The Euclidean norm of the differences.
    pub norm: f64,
    /// That divided by the norm of the weights; none if that is 0.
    pub relative: Option<f64>,
    /// The largest absolute difference.
    pub largest: f64,
}

/// How much each parameter changes, and all of them together.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Of each parameter.
    pub parameters: Vec<Change>,
    /// Of all parameters.
    pub all: Change,
}

/// What a delta does to the weights that it starts from.
pub fn changes(delta: &Delta, base: &Tensors) -> Changes {
    let mut parameters = Vec::new();
    let (mut norms, mut base_norms) = (Vec::new(), Vec::new());
    for parameter in &delta.parameters {
        let values = base.get(parameter.name()).map(|tensor| tensor.to_f64s());
        let base_norm = norm(&values.unwrap_or_default());
        let own = norm(parameter.differences());
        norms.push(own);
        base_norms.push(base_norm);
        // A kept value differs from the sum, so also where the difference is 0, as between the two zeros.
        let kept = parameter
            .at
            .iter()
            .filter(|at| parameter.differences[**at as usize] == 0.0);
        let changed = parameter
            .differences()
            .iter()
            .filter(|value| **value != 0.0);
        parameters.push(Change {
            name: parameter.name().to_owned(),
            shape: parameter.shape().to_vec(),
            num_values: parameter.differences().len(),
            num_changed: changed.count() + kept.count(),
            norm: own,
            relative: relative(own, base_norm),
            largest: largest(parameter.differences()),
        });
    }
    let all_norm = norm(&norms);
    let each: Vec<f64> = parameters.iter().map(|it| it.largest).collect();
    let all = Change {
        name: String::new(),
        shape: Vec::new(),
        num_values: parameters.iter().map(|it| it.num_values).sum(),
        num_changed: parameters.iter().map(|it| it.num_changed).sum(),
        norm: all_norm,
        relative: relative(all_norm, norm(&base_norms)),
        largest: largest(&each),
    };
    Changes { parameters, all }
}

fn relative(norm: f64, of: f64) -> Option<f64> {
    (of != 0.0).then(|| norm / of)
}

/// The largest absolute value; NaN if there is one.
fn largest(values: &[f64]) -> f64 {
    let larger = |most: f64, value: &f64| match value.abs() {
        value if value.is_nan() || most.is_nan() => f64::NAN,
        value => most.max(value),
    };
    values.iter().fold(0.0, larger)
}

/// The Euclidean norm, without overflow of the squares.
fn norm(values: &[f64]) -> f64 {
    let unit = largest(values);
    if unit == 0.0 || !unit.is_finite() {
        return unit;
    }
    let squares = values.iter().map(|value| (value / unit) * (value / unit));
    unit * squares.sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_neither_overflow_nor_vanish() {
        for unit in [1.0, 1e200, 1e-200, f64::MAX / 8.0] {
            let relative = norm(&[3.0 * unit, -4.0 * unit]) / (5.0 * unit);
            assert!((relative - 1.0).abs() < 1e-15, "{unit} {relative}");
        }
        assert_eq!(norm(&[]), 0.0);
        assert!(norm(&[1.0, f64::NAN]).is_nan());
        assert_eq!(norm(&[1.0, f64::NEG_INFINITY]), f64::INFINITY);
    }
}
