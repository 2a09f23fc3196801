//! `[verdict]`: which differences matter, and the expected noise.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::section::Section;

/// The `[verdict]` table. No number of a run depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VerdictSpec {
    /// The smallest difference of the objective that matters, in its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_difference: Option<f64>,
    /// The expected standard deviation of the objective over seeds, before any measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_sd: Option<f64>,
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
        }
    }

    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
