//! The verdict on a reproduction.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Comparison, Spread};
use crate::diagnostic::Reason;

/// Up to this distance, numbers count as equal except for the summation order.
const MAX_ULPS: f64 = 1024.0;

/// How well a run was reproduced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "grade", rename_all = "snake_case")]
pub enum Grade {
    /// All losses, digests, weights and recorded metrics exist and are equal.
    Bitwise,
    /// All losses, metrics and weights are this close.
    Within {
        /// The largest distance, in units in the last place of 32-bit floats.
        ulps: f64,
        /// Where that is.
        place: String,
    },
    /// The objective is within the range of another seed of the original experiment.
    Equivalent {
        /// The original objective.
        then: f64,
        /// The reproduced objective.
        now: f64,
        /// The spread of the original's seeds.
        spread: Spread,
    },
    /// What was compared deserves a grade, but some expected part was not compared.
    Partial {
        /// The grade of the compared part.
        at_best: Box<Grade>,
        /// Whether it includes the objective.
        has_objective: bool,
        /// What was not compared.
        not_compared: Vec<String>,
    },
    /// The original's record was changed after it was written, so it cannot be compared with.
    Edited {
        /// What was changed, and the evidence.
        edited: Vec<String>,
    },
    /// None of these.
    Diverged {
        /// The first update that differs, from 1.
        step: usize,
        /// What differs there: a parameter, or a metric with its epoch.
        parameter: Option<String>,
    },
}

/// The requested grade.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AtLeast {
    /// `bitwise`
    Bitwise,
    /// `ulp:N`
    Ulps(f64),
    /// `equivalent`
    Equivalent,
}

impl Grade {
    /// Grades a comparison. `spread` is that of the original's seeds, if there are enough.
    pub fn of(comparison: &Comparison, spread: Option<Spread>, at_least: AtLeast) -> Self {
        if !comparison.edited.is_empty() {
            return Grade::Edited {
                edited: comparison.edited.clone(),
            };
        }
        let grade = Self::of_compared(comparison, spread, at_least);
        let is_whole = comparison.not_compared.is_empty();
        match grade {
            Grade::Bitwise | Grade::Within { .. } if !is_whole => Grade::Partial {
                at_best: Box::new(grade),
                has_objective: comparison.objective.is_some(),
                not_compared: comparison.not_compared.clone(),
            },
            grade => grade,
        }
    }

    /// The grade of the compared part.
    fn of_compared(comparison: &Comparison, spread: Option<Spread>, at_least: AtLeast) -> Self {
        if comparison.is_bitwise() {
            return Grade::Bitwise;
        }
        let max_ulps = match at_least {
            AtLeast::Ulps(ulps) => ulps.max(MAX_ULPS),
            _ => MAX_ULPS,
        };
        let distance = comparison.distance();
        // A run of the first steps has no final weights to compare.
        let is_measured = if comparison.is_partial {
            comparison.first_parameters.is_none()
        } else {
            comparison.weight_distance.is_some()
        };
        if is_measured && distance.ulps <= max_ulps && comparison.begins_alike() {
            return Grade::Within {
                ulps: distance.ulps,
                place: distance.place.clone(),
            };
        }
        if let (Some((then, now)), Some(spread), true) =
            (comparison.objective, spread, comparison.begins_alike())
        {
            let [low, high] = spread.interval;
            if (low..=high).contains(&now) {
                return Grade::Equivalent { then, now, spread };
            }
        }
        let of_loss = comparison.first_loss.map(|(step, ..)| step);
        let of_parameters = comparison.first_parameters.as_ref();
        let of_parameters = of_parameters.map(|(step, paths)| ((*step).max(1), paths));
        let of_numbers = comparison.first_numbers.as_ref();
        let steps = [
            of_loss,
            of_parameters.map(|(step, _)| step),
            of_numbers.map(|first| first.step),
        ];
        let parameter = of_parameters.and_then(|(_, paths)| paths.first().cloned());
        let number = || {
            let first = of_numbers.filter(|_| of_loss.is_none())?;
            Some(format!("{} of {}", first.names.first()?, first.place))
        };
        Grade::Diverged {
            step: steps.into_iter().flatten().min().unwrap_or(1),
            parameter: parameter.or_else(number),
        }
    }

    /// Whether it is at least as good.
    pub fn is(&self, at_least: AtLeast) -> bool {
        match (self, at_least) {
            (Grade::Bitwise, _) => true,
            (Grade::Within { ulps, .. }, AtLeast::Ulps(max)) => *ulps <= max,
            (Grade::Within { .. } | Grade::Equivalent { .. }, AtLeast::Equivalent) => true,
            (Grade::Partial { has_objective, .. }, AtLeast::Equivalent) => *has_objective,
            _ => false,
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grade::Bitwise => write!(f, "bitwise"),
            Grade::Within { ulps, place } => {
                write!(f, "within {} ulp (most in {place})", ulps.ceil())
            }
            Grade::Equivalent { then, now, spread } => write!(
                f,
                "equivalent (the objective is {now}, was {then}; another seed would fall between {:.4} and {:.4}, from {} seeds)",
                spread.interval[0],
                spread.interval[1],
                spread.values.len()
            ),
            Grade::Partial {
                at_best,
                not_compared,
                ..
            } => write!(
                f,
                "partial: {at_best} as far as compared, excluding {}",
                not_compared.join("; ")
            ),
            Grade::Edited { edited } => write!(f, "edited record: {}", edited.join("; ")),
            Grade::Diverged { step, parameter } => {
                write!(f, "diverged at step {step}")?;
                match parameter {
                    Some(parameter) => write!(f, " in {parameter}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl FromStr for AtLeast {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        match text {
            "bitwise" => Ok(AtLeast::Bitwise),
            "equivalent" => Ok(AtLeast::Equivalent),
            _ => text
                .strip_prefix("ulp:")
                .and_then(|number| number.parse().ok())
                .filter(|number: &f64| *number >= 0.0)
                .map(AtLeast::Ulps)
                .ok_or_else(|| "use `bitwise`, `ulp:N` such as `ulp:16`, or `equivalent`".into()),
        }
    }
}
