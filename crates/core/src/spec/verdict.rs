//! `[verdict]`: which differences matter, and the expected noise.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::section::Section;

/// More looks leave nothing for each.
const MAX_LOOKS: i64 = 1000;

/// More seeds of a trial than anyone trains.
const MAX_SEEDS: i64 = 100_000;

/// The `[verdict]` table. No number of a run depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VerdictSpec {
    /// The smallest difference of the objective that matters, in its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_difference: Option<f64>,
    /// The expected standard deviation of the objective over seeds, before any measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_sd: Option<f64>,
    /// How often verdicts may be looked at while seeds are added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<usize>,
    /// The number of seeds up to which `runner run --until-decided` adds seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seeds: Option<usize>,
}

impl VerdictSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            smallest_difference: s
                .field(
                    "smallest_difference",
                    Kind::positive(),
                    "The smallest difference of the objective that matters, in its unit: trials that differ by less can be called equal, and `runner check` says how many seeds are needed to detect it.",
                )
                .optional(),
            expected_sd: s
                .field(
                    "expected_sd",
                    Kind::positive(),
                    "The expected standard deviation of the objective over seeds, from which `runner check` computes the number of seeds.",
                )
                .optional(),
            looks: s
                .field(
                    "looks",
                    Kind::Int(2, MAX_LOOKS),
                    "How often verdicts may be looked at while seeds are added: the probability of a wrong claim holds for all looks together, each of which has an equal part of it.",
                )
                .optional(),
            max_seeds: s
                .field(
                    "max_seeds",
                    Kind::Int(2, MAX_SEEDS),
                    "The number of seeds up to which `runner run --until-decided` adds seeds, in as many steps as there are `looks`.",
                )
                .optional(),
        }
    }

    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
