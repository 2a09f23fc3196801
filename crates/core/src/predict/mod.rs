//! Predictions: the meaning of a network's outputs, and the files that they are written to. The input is numbers on the
//! host, the output text and bytes; no tensors.

mod assessment;
mod meaning;
#[cfg(feature = "parquet")]
mod parquet;
mod questions;
mod sample;
mod separating;
mod table;
mod write;

pub use assessment::{Against, Assessment, Difference, Measure, OnlyRight, Residual};
pub use meaning::Meaning;
pub use questions::{Context, Question, QuestionKind, TextColumn, read as questions};
pub use sample::{Sampler, Sampling};
pub use separating::Separating;
pub use write::{Layout, OutputFormat, Writer, pictures_of};

use serde::Serialize;

/// The prediction for one item.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Prediction {
    /// A class.
    Class {
        /// Its name.
        class: String,
        /// Its number.
        index: usize,
        /// Its probability; `None` if the loss does not turn outputs into probabilities.
        #[serde(skip_serializing_if = "Option::is_none")]
        probability: Option<f32>,
        /// The probability of each class, or its score.
        probabilities: Vec<f32>,
    },
    /// Several labels per item.
    Labels {
        /// The names of the predicted labels.
        labels: Vec<String>,
        /// The probability of each label.
        probabilities: Vec<f32>,
    },
    /// Numbers in the units of the target.
    Values {
        /// The numbers.
        values: Vec<f64>,
        /// Their standard deviations, if the network predicts them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        deviations: Vec<f64>,
    },
    /// A class for each pixel or position.
    Classes {
        /// Height and width, or the number of positions.
        shape: Vec<usize>,
        /// The indices of the classes.
        classes: Vec<u32>,
    },
    /// The reconstructed item, in the units of the data.
    Item {
        /// Its shape.
        shape: Vec<usize>,
        /// Its values.
        values: Vec<f32>,
    },
    /// The token after a text.
    NextToken {
        /// The token as text.
        token: String,
        /// Its number.
        id: u32,
        /// Its probability.
        probability: f32,
        /// The most probable tokens with their probabilities, starting with this one.
        alternatives: Vec<(String, f32)>,
    },
}

impl Prediction {
    /// Whether all of its numbers are finite: others come from weights or values that are too large.
    pub fn is_finite(&self) -> bool {
        let all = |values: &[f32]| values.iter().all(|value| value.is_finite());
        match self {
            Prediction::Class { probabilities, .. } | Prediction::Labels { probabilities, .. } => {
                all(probabilities)
            }
            Prediction::Values { values, deviations } => {
                let mut each = values.iter().chain(deviations);
                each.all(|value| value.is_finite())
            }
            Prediction::Item { values, .. } => all(values),
            Prediction::NextToken { probability, .. } => probability.is_finite(),
            Prediction::Classes { .. } => true,
        }
    }
}
