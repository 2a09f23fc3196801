//! Changes to a run that are not in its file, such as those after a failure.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::backend::DeviceName;
use crate::diagnostic::Reason;

/// A change to a run that is not in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adjustment {
    /// Optimizer updates before it.
    pub from_step: usize,
    /// The change for the following updates.
    #[serde(flatten)]
    pub change: Change,
}

/// The change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A factor of the learning rate.
    LearningRateFactor(f64),
    /// The micro-batch size: an update uses the same items as before.
    MicroBatchSize(usize),
    /// The backward pass recomputes cheap outputs.
    GradientCheckpointing(bool),
    /// Another device.
    Device(DeviceName),
}

impl Adjustment {
    /// The reason.
    pub fn reason(&self) -> &'static str {
        match self.change {
            Change::LearningRateFactor(_) => "after a failure",
            Change::MicroBatchSize(_) | Change::GradientCheckpointing(_) | Change::Device(_) => {
                "so that it fits into memory"
            }
        }
    }

    /// A description.
    pub fn in_words(&self) -> String {
        let what = match self.change {
            Change::LearningRateFactor(factor) if factor < 1e-4 => {
                format!("the learning rate times {factor:e}")
            }
            Change::LearningRateFactor(factor) => format!("the learning rate times {factor}"),
            Change::MicroBatchSize(size) => format!("`train.micro_batch_size = {size}`"),
            Change::GradientCheckpointing(is_on) => {
                format!("`train.gradient_checkpointing = {is_on}`")
            }
            Change::Device(device) => format!("`backend.device = \"{device}\"`"),
        };
        match self.from_step {
            0 => format!("{what} from the start"),
            step => format!("{what} from step {step}"),
        }
    }
}

/// Those in effect: of changes at the same step, the last of each kind. All factors are in effect.
pub fn lasting(adjustments: &[Adjustment]) -> impl Iterator<Item = &Adjustment> {
    let is_replaced = |at: usize, before: &Adjustment| {
        let mut later = adjustments[at + 1..].iter();
        later.any(|later| {
            later.from_step <= before.from_step
                && !matches!(before.change, Change::LearningRateFactor(_))
                && std::mem::discriminant(&later.change) == std::mem::discriminant(&before.change)
        })
    };
    let each = adjustments.iter().enumerate();
    each.filter(move |(at, adjustment)| !is_replaced(*at, adjustment))
        .map(|(_, adjustment)| adjustment)
}

/// The factor of the learning rate for the update after `step` updates.
pub fn learning_rate_factor(adjustments: &[Adjustment], step: usize) -> f64 {
    let made = adjustments.iter().filter(|a| a.from_step <= step);
    made.filter_map(|a| match a.change {
        Change::LearningRateFactor(factor) => Some(factor),
        _ => None,
    })
    .product()
}

/// In the form of a worker's command line: `STEP:KEY=VALUE`.
impl fmt::Display for Adjustment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.from_step)?;
        match self.change {
            Change::LearningRateFactor(factor) => write!(f, "learning_rate_factor={factor}"),
            Change::MicroBatchSize(size) => write!(f, "micro_batch_size={size}"),
            Change::GradientCheckpointing(is_on) => write!(f, "gradient_checkpointing={is_on}"),
            Change::Device(device) => write!(f, "device={device}"),
        }
    }
}

impl FromStr for Adjustment {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        let read = || {
            let (step, change) = text.split_once(':')?;
            let (key, value) = change.split_once('=')?;
            let change = match key {
                "learning_rate_factor" => {
                    let factor: f64 = value.parse().ok()?;
                    let is_usable = factor > 0.0 && factor.is_finite();
                    is_usable.then_some(Change::LearningRateFactor(factor))?
                }
                "micro_batch_size" => {
                    let size = value.parse().ok().filter(|size| *size > 0);
                    Change::MicroBatchSize(size?)
                }
                "gradient_checkpointing" => Change::GradientCheckpointing(value.parse().ok()?),
                "device" => Change::Device(value.parse().ok()?),
                _ => return None,
            };
            Some(Self {
                from_step: step.parse().ok()?,
                change,
            })
        };
        read().ok_or_else(|| Reason(format!("`{text}` must have the form STEP:KEY=VALUE")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjustments_multiply_from_their_step_on() {
        let first: Adjustment = "6:learning_rate_factor=0.5".parse().unwrap();
        let second: Adjustment = "8:learning_rate_factor=1e-31".parse().unwrap();
        let other: Adjustment = "0:micro_batch_size=8".parse().unwrap();
        let factor = |step| learning_rate_factor(&[other, first, second], step);
        assert_eq!([5, 6, 7, 8].map(factor), [1.0, 0.5, 0.5, 0.5e-31]);
    }

    #[test]
    fn the_last_change_of_a_kind_from_a_step_is_what_holds() {
        let all = [
            "0:micro_batch_size=8",
            "0:gradient_checkpointing=true",
            "0:micro_batch_size=4",
            "6:learning_rate_factor=0.5",
            "6:learning_rate_factor=0.5",
            "6:micro_batch_size=2",
            "6:micro_batch_size=1",
        ];
        let all = all.map(|text| text.parse::<Adjustment>().unwrap());
        let held: Vec<String> = lasting(&all).map(ToString::to_string).collect();
        let expected = [1, 2, 3, 4, 6].map(|at| all[at].to_string());
        assert_eq!(held, expected);
    }

    #[test]
    fn adjustments_are_read_as_they_are_written() {
        for text in [
            "6:learning_rate_factor=0.5",
            "0:micro_batch_size=16",
            "12:gradient_checkpointing=true",
            "0:device=wgpu:1",
        ] {
            let read: Adjustment = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
            let json = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<Adjustment>(&json).unwrap(), read);
        }
        for wrong in [
            "6",
            "6:",
            "6:0.5",
            "6:learning_rate_factor=0",
            "6:learning_rate_factor=inf",
            "x:micro_batch_size=1",
            "0:micro_batch_size=0",
            "0:device=gpu",
        ] {
            assert!(wrong.parse::<Adjustment>().is_err(), "{wrong}");
        }
    }
}
