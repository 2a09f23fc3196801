//! `[strategy] type = "distill"`: training that also imitates the outputs of a teacher.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::section::Section;

/// The temperature of a classification when the file sets none.
const TEMPERATURE: f64 = 2.0;

/// The settings of `[strategy] type = "distill"` (Hinton et al., 2015).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistillSpec {
    /// The run whose network is the teacher. Empty in a plan, which has the teacher itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub teacher: String,
    /// The share of the teacher in the loss.
    pub weight: f64,
    /// What outputs are divided by before they become probabilities. In a plan set exactly if they become some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

impl DistillSpec {
    /// The same for a plan, in which outputs are probabilities or values.
    pub fn planned(&self, has_probabilities: bool) -> Self {
        let temperature = self.temperature.unwrap_or(TEMPERATURE);
        Self {
            teacher: String::new(),
            weight: self.weight,
            temperature: has_probabilities.then_some(temperature),
        }
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            teacher: s
                .field(
                    "teacher",
                    Kind::Path,
                    "The run whose network is the teacher: its folder, or a capsule. Its weights of the best epoch are used.",
                )
                .required(),
            weight: s
                .field(
                    "weight",
                    Kind::Float {
                        min: 0.0,
                        open_min: true,
                        max: 1.0,
                        open_max: false,
                    },
                    "The share of the teacher in the loss: the loss of the task is multiplied by 1 - `weight`.",
                )
                .or(0.5),
            temperature: s
                .field(
                    "temperature",
                    Kind::positive(),
                    "What the outputs of both networks are divided by before they become probabilities; not for values. 2 when not set.",
                )
                .optional(),
        }
    }
}
