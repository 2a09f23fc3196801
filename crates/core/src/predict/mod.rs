//! Predictions: what the numbers that a network gives stand for, and the files that they are written to. Numbers of the
//! host in, text and bytes out; no tensors.

mod meaning;
mod write;

pub use meaning::Meaning;
pub use write::{Layout, OutputFormat, Writer};

use serde::Serialize;

/// What is predicted of one item.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Prediction {
    /// A class.
    Class {
        /// Its name.
        class: String,
        /// Its number.
        index: usize,
        /// How probable it is; `None` where the loss does not make probabilities of outputs.
        #[serde(skip_serializing_if = "Option::is_none")]
        probability: Option<f32>,
        /// The probability of each class, or its score.
        probabilities: Vec<f32>,
    },
    /// Any of several labels.
    Labels {
        /// The names of those that hold.
        labels: Vec<String>,
        /// The probability of each label.
        probabilities: Vec<f32>,
    },
    /// Numbers in the units of the target.
    Values {
        /// The numbers.
        values: Vec<f64>,
        /// Their standard deviations, where the network predicts these too.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        deviations: Vec<f64>,
    },
    /// A class for each pixel or position.
    Classes {
        /// Height and width, or the number of positions.
        shape: Vec<usize>,
        /// The numbers of the classes.
        classes: Vec<u32>,
    },
    /// The item as the network gives it back, in the units of the data.
    Item {
        /// Its shape.
        shape: Vec<usize>,
        /// Its values.
        values: Vec<f32>,
    },
    /// The token that follows a text.
    NextToken {
        /// The token as text.
        token: String,
        /// Its number.
        id: u32,
        /// How probable it is.
        probability: f32,
        /// The most probable tokens with their probabilities, the first of which is this one.
        alternatives: Vec<(String, f32)>,
    },
}
