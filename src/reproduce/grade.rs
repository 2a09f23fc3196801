//! The verdict on a reproduction.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Comparison, Spread};

/// Up to this distance, numbers count as those of another order of sums.
const MAX_ULPS: f64 = 1024.0;

/// How well a run was reproduced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "grade", rename_all = "snake_case")]
pub enum Grade {
    /// All losses and digests are equal.
    Bitwise,
    /// All losses and final weights are this close.
    Within {
        /// The largest distance, in units in the last place of 32-bit floats.
        ulps: f64,
        /// Where that is.
        place: String,
    },
    /// The objective is where a further seed of the original experiment would fall.
    Equivalent {
        /// The objective then.
        then: f64,
        /// The objective now.
        now: f64,
        /// What the seeds of the original came to.
        spread: Spread,
    },
    /// None of these.
    Diverged {
        /// The first update that differs, from 1.
        step: usize,
        /// A parameter that differs first, where that is known.
        parameter: Option<String>,
    },
}

/// The grade that is asked for.
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
        if comparison.is_bitwise() {
            return Grade::Bitwise;
        }
        let max_ulps = match at_least {
            AtLeast::Ulps(ulps) => ulps.max(MAX_ULPS),
            _ => MAX_ULPS,
        };
        let distance = comparison.distance();
        // Of first steps no weights are there to be measured.
        let is_measured = match comparison.is_partial {
            true => comparison.first_parameters.is_none(),
            false => comparison.weight_distance.is_some(),
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
        Grade::Diverged {
            step: match (of_loss, &of_parameters) {
                (Some(loss), Some((step, _))) => loss.min(*step),
                (Some(loss), None) => loss,
                (None, Some((step, _))) => *step,
                (None, None) => 1,
            },
            parameter: of_parameters.and_then(|(_, paths)| paths.first().cloned()),
        }
    }

    /// Whether it is good enough.
    pub fn is(&self, at_least: AtLeast) -> bool {
        match (self, at_least) {
            (Grade::Bitwise, _) => true,
            (Grade::Within { ulps, .. }, AtLeast::Ulps(max)) => *ulps <= max,
            (Grade::Within { .. } | Grade::Equivalent { .. }, AtLeast::Equivalent) => true,
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "bitwise" => Ok(AtLeast::Bitwise),
            "equivalent" => Ok(AtLeast::Equivalent),
            _ => text
                .strip_prefix("ulp:")
                .and_then(|number| number.parse().ok())
                .filter(|number: &f64| *number >= 0.0)
                .map(AtLeast::Ulps)
                .ok_or_else(|| "write `bitwise`, `ulp:N` such as `ulp:16`, or `equivalent`".into()),
        }
    }
}
