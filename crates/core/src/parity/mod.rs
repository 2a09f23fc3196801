//! Comparison of two devices: how far numbers differ, the effect of a reordered sum, and the verdict. Knows only
//! numbers; `train/parity` computes them.
//!
//! A tensor's error on a device is its largest distance from the reference, in units in the last place (ulp) of the
//! reference's largest value. The noise floor is the error of the same tensor when the reference recomputes it with the
//! rounding of another summation order, the largest of [`NUM_NOISES`] times. A tensor is beyond tolerance if its error
//! exceeds the [`tolerance`] of that floor.

mod finite;
mod layers;
mod text;
mod verdict;

use serde::{Deserialize, Serialize};

pub use layers::{Example, KindRow, Outcome, by_kind};
pub use text::{Style, layer_table, show_untold, show_verdict, step_table, tensor_table};
pub use verdict::{Beyond, Verdict};

use crate::reproduce::ulp;
use crate::spec::backend::Precision;

/// How often the reference recomputes for the noise floor.
pub const NUM_NOISES: u64 = 4;
/// How many noise floors are within tolerance: the floor is the largest of few samples, and another device may sum less
/// exactly than the reference.
pub const FLOORS: f64 = 4.0;
/// The minimum tolerance, in ulp: functions such as `exp` may differ by a few ulp between any two libraries.
pub const LEAST_ULPS: f64 = 8.0;

/// From this tolerance on, in ulp, comparing a tensor in `f32` says little: it is a sixteenth of its largest value.
pub const LITTLE_ULPS: f64 = (1 << 19) as f64;

/// The tolerance, in ulp, for a noise floor in ulp.
pub fn tolerance(floor: f64) -> f64 {
    (FLOORS * floor).max(LEAST_ULPS)
}

/// The distance of a tensor from the reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// The largest distance of two values.
    #[serde(with = "finite")]
    pub maximum: f64,
    /// The Euclidean norm of all distances, relative to that of the reference.
    #[serde(with = "finite")]
    pub relative: f64,
    /// The largest distance in units in the last place of the reference's largest value.
    #[serde(with = "finite")]
    pub ulps: f64,
}

impl Error {
    /// The error of pairs of reference and other value. NaN on both sides is equal; on one side it is infinitely far.
    pub fn of(pairs: impl Iterator<Item = (f64, f64)>, precision: Precision) -> Self {
        let (mut maximum, mut largest) = (0.0_f64, 0.0_f64);
        let (mut distances, mut squares) = (0.0, 0.0);
        for (a, b) in pairs {
            let distance = if a == b || (a.is_nan() && b.is_nan()) {
                0.0
            } else {
                (a - b).abs()
            };
            let distance = if distance.is_nan() {
                f64::INFINITY
            } else {
                distance
            };
            maximum = maximum.max(distance);
            distances += distance * distance;
            if a.is_finite() {
                largest = largest.max(a.abs());
                squares += a * a;
            }
        }
        if maximum == 0.0 {
            return Self::default();
        }
        let coarser = f64::powi(
            2.0,
            Precision::F32.mantissa_bits() - precision.mantissa_bits(),
        );
        Self {
            maximum,
            relative: (distances / squares).sqrt(),
            ulps: maximum / (ulp(largest) * coarser),
        }
    }
}

/// The compared parts of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// Its output; of the loss the mean, and in isolation the value of each item.
    Output,
    /// The gradient of the loss with respect to the output.
    OutputGradient,
    /// The gradient with respect to an input, for an isolated layer.
    InputGradient,
    /// The gradient with respect to a parameter.
    ParameterGradient,
    /// A parameter after the update.
    Weights,
}

/// One tensor compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The layer's name; `loss` for the loss.
    pub layer: String,
    /// The layer's type; `loss` for the loss.
    pub kind: String,
    /// The compared part.
    pub of: Of,
    /// The parameter's path in the layer, or the input's number, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Whether the layer was isolated: computed with the reference's inputs, weights and output gradient, so that no
    /// other layer contributes to the error.
    pub by_itself: bool,
    /// Its distance from the reference.
    pub error: Error,
    /// The noise floor, in ulp.
    #[serde(with = "finite")]
    pub floor: f64,
}

impl Compared {
    /// Whether it is beyond tolerance.
    pub fn is_beyond(&self) -> bool {
        self.error.ulps > tolerance(self.floor)
    }

    /// Whether it differs where the reference is NaN, or is finite only in one summation order: then nothing can be
    /// concluded.
    pub fn is_lost(&self) -> bool {
        self.floor.is_infinite() && self.error.ulps > 0.0
    }

    /// How much of the tolerance is used: more than 1 is beyond it.
    pub fn used(&self) -> f64 {
        if self.is_lost() {
            f64::INFINITY
        } else {
            self.error.ulps / tolerance(self.floor)
        }
    }

    /// As text: `gradient of weight`.
    pub fn what(&self) -> String {
        let part = self.part.as_deref().unwrap_or("");
        match self.of {
            Of::Output => "output".into(),
            Of::OutputGradient => "gradient of the output".into(),
            Of::InputGradient => format!("gradient of input {part}"),
            Of::ParameterGradient => format!("gradient of `{part}`"),
            Of::Weights => format!("`{part}` after the update"),
        }
    }
}

/// One step of both devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its number, from 1.
    pub step: usize,
    /// The loss on the reference.
    #[serde(with = "finite")]
    pub reference_loss: f64,
    /// The loss on the device.
    #[serde(with = "finite")]
    pub loss: f64,
    /// All tensors in the order of computation, those of isolated layers last.
    pub compared: Vec<Compared>,
}

/// The messages of a worker, one JSON object per line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "said", rename_all = "snake_case")]
pub enum Said {
    /// Both devices are open; their own names.
    Opened {
        /// Of the reference.
        reference: String,
        /// Of the other.
        device: String,
    },
    /// A step or an example begins.
    Began {
        /// Its number, from 1.
        number: usize,
        /// What is computed, as a phrase.
        what: String,
    },
    /// A step is done.
    Stepped(Step),
    /// An example is done.
    Tried(Example),
    /// A device cannot be opened.
    Refused {
        /// Why, as a phrase with a remedy.
        reason: String,
    },
    /// It cannot go on.
    Failed {
        /// Why, as a phrase.
        reason: String,
    },
}

#[cfg(test)]
mod tests;
