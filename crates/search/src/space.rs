//! What can be searched.

/// Positions on the axes, as quantiles from 0 to below 1; none where the condition of the axis is false.
pub type Point = Vec<Option<f64>>;

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// Any number of a range.
    Real,
    /// Ordered values, each from the end of the one before it, or 0, to its own end. The last ends at 1.
    Levels(Vec<f64>),
    /// Values without an order, each with its part of the whole, given like the ends of levels.
    Choice(Vec<f64>),
}

/// The axes of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Space {
    /// In the order of the file.
    pub axes: Vec<Axis>,
}

impl Axis {
    /// Levels or choices with these weights.
    fn ends(weights: &[f64]) -> Vec<f64> {
        let sum: f64 = weights.iter().sum();
        let mut end = 0.0;
        let mut ends: Vec<f64> = weights
            .iter()
            .map(|weight| {
                end += weight / sum;
                end
            })
            .collect();
        if let Some(last) = ends.last_mut() {
            *last = 1.0;
        }
        ends
    }

    /// An axis of values without an order, which are sampled in proportion to their weights.
    pub fn choice(weights: &[f64]) -> Self {
        Self::Choice(Self::ends(weights))
    }

    /// An axis of ordered values, which are sampled in proportion to their weights.
    pub fn levels(weights: &[f64]) -> Self {
        Self::Levels(Self::ends(weights))
    }

    /// The index of the value at a position; none on an axis of real numbers.
    pub fn index(&self, position: f64) -> Option<usize> {
        match self {
            Self::Real => None,
            Self::Levels(ends) | Self::Choice(ends) => Some(
                ends.partition_point(|end| *end <= position)
                    .min(ends.len() - 1),
            ),
        }
    }

    /// The middle of a value's part of the axis.
    pub fn middle(&self, index: usize) -> f64 {
        match self {
            Self::Real => 0.5,
            Self::Levels(ends) | Self::Choice(ends) => {
                let start = index.checked_sub(1).map_or(0.0, |before| ends[before]);
                (start + ends[index]) / 2.0
            }
        }
    }

    /// The part of an axis that a value has.
    pub fn width(&self, index: usize) -> f64 {
        match self {
            Self::Real => 1.0,
            Self::Levels(ends) | Self::Choice(ends) => {
                let start = index.checked_sub(1).map_or(0.0, |before| ends[before]);
                ends[index] - start
            }
        }
    }

    /// The same value, in the middle of its part of the axis.
    pub fn snapped(&self, position: f64) -> f64 {
        match self.index(position) {
            Some(index) => self.middle(index),
            None => position,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_belong_to_values_in_proportion_to_weights() {
        let axis = Axis::choice(&[1.0, 3.0]);
        let at = |position| axis.index(position);
        assert_eq!(
            [at(0.0), at(0.2499), at(0.25), at(0.9999), at(1.0)],
            [Some(0), Some(0), Some(1), Some(1), Some(1)]
        );
        assert_eq!((axis.middle(0), axis.middle(1)), (0.125, 0.625));
        assert_eq!((axis.width(0), axis.width(1)), (0.25, 0.75));
        assert_eq!(axis.snapped(0.9), 0.625);
        assert_eq!(Axis::Real.snapped(0.9), 0.9);
    }
}
