//! The precision in which items are served.

use std::ops::{Add, Mul, Sub};

use crate::data::{TargetValues, Values};

/// A number that a network is given: of 64 bits if its precision is `f64`, otherwise of 32.
pub trait Number:
    Copy
    + Default
    + From<f32>
    + Into<f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
{
    /// The nearest one.
    fn of(value: f64) -> Self;

    /// Items of such numbers.
    fn values(all: Vec<Self>) -> Values;

    /// The numbers of items, if they are such numbers.
    fn of_values(values: &mut Values) -> Option<&mut Vec<Self>>;

    /// Targets of such numbers.
    fn targets(all: Vec<Self>) -> TargetValues;

    /// The numbers of targets, if they are such numbers.
    fn of_targets(targets: &mut TargetValues) -> Option<&mut Vec<Self>>;

    /// Changes numbers by a function of 32 bits.
    fn in_singles(all: &mut [Self], change: impl FnOnce(&mut [f32]));
}

impl Number for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }

    fn values(all: Vec<Self>) -> Values {
        Values::Floats(all)
    }

    fn of_values(values: &mut Values) -> Option<&mut Vec<Self>> {
        match values {
            Values::Floats(all) => Some(all),
            _ => None,
        }
    }

    fn targets(all: Vec<Self>) -> TargetValues {
        TargetValues::Floats(all)
    }

    fn of_targets(targets: &mut TargetValues) -> Option<&mut Vec<Self>> {
        match targets {
            TargetValues::Floats(all) => Some(all),
            TargetValues::Doubles(_) | TargetValues::Classes(_) => None,
        }
    }

    fn in_singles(all: &mut [Self], change: impl FnOnce(&mut [f32])) {
        change(all);
    }
}

impl Number for f64 {
    fn of(value: f64) -> Self {
        value
    }

    fn values(all: Vec<Self>) -> Values {
        Values::Doubles(all)
    }

    fn of_values(values: &mut Values) -> Option<&mut Vec<Self>> {
        match values {
            Values::Doubles(all) => Some(all),
            _ => None,
        }
    }

    fn targets(all: Vec<Self>) -> TargetValues {
        TargetValues::Doubles(all)
    }

    fn of_targets(targets: &mut TargetValues) -> Option<&mut Vec<Self>> {
        match targets {
            TargetValues::Doubles(all) => Some(all),
            TargetValues::Floats(_) | TargetValues::Classes(_) => None,
        }
    }

    fn in_singles(all: &mut [Self], change: impl FnOnce(&mut [f32])) {
        let mut singles: Vec<f32> = all.iter().map(|value| *value as f32).collect();
        change(&mut singles);
        for (value, single) in all.iter_mut().zip(singles) {
            *value = f64::from(single);
        }
    }
}
