//! From records to inputs and targets: fitted only on the train split, saved with the run.

pub mod augment;
mod feature;
mod fit;
mod inputs;
pub mod jitter;
pub mod mix;
mod nonlinear;
mod number;
mod pixels;
pub mod resized;
mod scaling;
mod statistics;
mod target;
pub mod tokenizer;

pub use feature::{Feature, Form};
pub use fit::{Fitting, array_scaling, fit, scale_axis};
pub use inputs::{EncodedInput, Indexed};
pub use nonlinear::{END_AGAIN, Nonlinear, Unit};
pub use number::Number;
pub use pixels::Pixels;
pub use scaling::{ArrayScaling, Groups, Scaling, broadcast, of};
pub(in crate::data) use statistics::moments;
pub use target::TargetEncoder;

use serde::{Deserialize, Serialize};

use super::records::Records;
use super::{InputPlan, TargetPlan};
use crate::spec::data::WindowSpec;
use feature::to_unit_length;
use scaling::array;
use tokenizer::Tokenizer;

/// How records become items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoder {
    /// The input encoder.
    pub input: InputEncoder,
    /// The target encoder.
    pub target: TargetEncoder,
    /// Those of the targets of `[[losses]]` that are other columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_targets: Vec<TargetEncoder>,
}

impl Encoder {
    /// The columns of all targets.
    pub fn target_columns(&self) -> Vec<usize> {
        let more = self.more_targets.iter();
        let more = more.flat_map(TargetEncoder::columns);
        self.target.columns().into_iter().chain(more).collect()
    }

    /// The kinds of further targets.
    pub fn more_plans(&self, input: &InputPlan) -> Vec<TargetPlan> {
        let more = self.more_targets.iter();
        more.map(|target| target.plan(input)).collect()
    }
}

/// How records are converted to inputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InputEncoder {
    /// Numbers of several columns, one after the other.
    Features {
        /// The columns.
        features: Vec<Feature>,
        /// Whether each item is then normalized to unit length.
        normalize: bool,
        /// The window, if an item is a window of rows.
        window: Option<WindowSpec>,
    },
    /// The array of one column.
    Array {
        /// The column.
        column: usize,
        /// Its shape.
        shape: Vec<usize>,
        /// Its scaling: one for all values, one for each position along `axis`, or one for each value.
        scaling: Vec<Scaling>,
        /// The axis whose positions are scaled separately, if any is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        axis: Option<usize>,
        /// The value of an unscaled byte.
        unit: f32,
        /// The least and the largest number, if they go beyond 0 to 1 and are not bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        range: Option<[f64; 2]>,
        /// Whether each item is then normalized to unit length.
        normalize: bool,
    },
    /// Tokens as in the column.
    Tokens {
        /// The column.
        column: usize,
        /// Its shape.
        shape: Vec<usize>,
        /// The size of the vocabulary.
        vocabulary: usize,
        /// Added to each token: 1 if -1 means padding.
        shift: i32,
    },
    /// A text, truncated or padded to a length.
    Text {
        /// The column.
        column: usize,
        /// The tokenizer.
        tokenizer: Tokenizer,
        /// Tokens per item.
        length: usize,
    },
    /// An index for each of several columns of categories.
    Indices {
        /// The columns.
        columns: Vec<Indexed>,
    },
    /// Several named inputs, one after the other: their indices are numbers too.
    Inputs {
        /// The inputs, in order.
        inputs: Vec<EncodedInput>,
    },
    /// A piece of running text.
    Stream {
        /// The text column; its texts are concatenated.
        column: usize,
        /// The tokenizer.
        tokenizer: Tokenizer,
        /// Tokens per item.
        length: usize,
        /// Tokens between the starts of consecutive items.
        stride: usize,
    },
}

impl InputEncoder {
    /// The kind of an item.
    pub fn plan(&self) -> InputPlan {
        let (shape, vocabulary) = match self {
            InputEncoder::Features {
                features, window, ..
            } => {
                let width = features.iter().map(Feature::width).sum();
                (
                    window
                        .iter()
                        .map(|window| window.length)
                        .chain([width])
                        .collect(),
                    None,
                )
            }
            InputEncoder::Array { shape, .. } => (shape.clone(), None),
            InputEncoder::Indices { columns } => {
                let num = columns.iter().map(|of| of.num).sum();
                (vec![columns.len()], Some(num))
            }
            InputEncoder::Inputs { inputs } => {
                return InputPlan::of_parts(inputs.iter().map(EncodedInput::part).collect());
            }
            InputEncoder::Tokens {
                shape, vocabulary, ..
            } => (shape.clone(), Some(*vocabulary)),
            InputEncoder::Text {
                tokenizer, length, ..
            }
            | InputEncoder::Stream {
                tokenizer, length, ..
            } => (vec![*length], Some(tokenizer.vocabulary())),
        };
        InputPlan::single(shape, vocabulary)
    }

    /// For each input, the token that short items are padded with, if any are.
    pub fn padding(&self) -> Vec<Option<u32>> {
        match self {
            InputEncoder::Inputs { inputs } => {
                let each = inputs.iter().map(|input| input.encoder.padding());
                each.flatten().collect()
            }
            InputEncoder::Text { tokenizer, .. } => vec![tokenizer.padding().try_into().ok()],
            InputEncoder::Tokens { shift: 1, .. } => vec![Some(0)],
            _ => vec![None],
        }
    }

    /// What makes tokens of texts, if items are texts.
    pub fn tokenizer(&self) -> Option<&Tokenizer> {
        match self {
            InputEncoder::Text { tokenizer, .. } | InputEncoder::Stream { tokenizer, .. } => {
                Some(tokenizer)
            }
            _ => None,
        }
    }

    /// The token that ends a document, if documents in an item are kept apart.
    pub fn document_end(&self) -> Option<i32> {
        match self {
            InputEncoder::Stream { tokenizer, .. } => tokenizer.document_end(),
            _ => None,
        }
    }

    /// The axis of arrays whose positions are scaled separately, if any is.
    pub fn scale_axis(&self) -> Option<usize> {
        match self {
            InputEncoder::Array { axis, .. } => *axis,
            InputEncoder::Inputs { inputs } => {
                inputs.iter().find_map(|input| input.encoder.scale_axis())
            }
            _ => None,
        }
    }

    /// The window of rows that an item is, if it is one.
    pub fn window(&self) -> Option<&WindowSpec> {
        match self {
            InputEncoder::Features { window, .. } => window.as_ref(),
            _ => None,
        }
    }

    /// The scaling of arrays.
    pub fn array_scaling(&self) -> Option<ArrayScaling<'_>> {
        match self {
            InputEncoder::Array {
                shape,
                scaling,
                axis,
                ..
            } => Some(ArrayScaling::new(scaling, shape, *axis)),
            _ => None,
        }
    }

    /// The scaling of each of the `num` numbers of an item: categories that are one-hot have none, and those of a number
    /// its. None if the numbers of the data cannot be restored: of items of unit length, and of named inputs.
    pub fn scalings(&self, num: usize) -> Option<Vec<Scaling>> {
        let of_row: Vec<Scaling> = match self {
            InputEncoder::Features {
                features,
                normalize: false,
                ..
            } => features.iter().flat_map(Feature::scalings).collect(),
            _ => {
                let scaling = self.array_scaling()?;
                return Some((0..num).map(|at| scaling.at(at)).collect());
            }
        };
        // A window has one row after the other.
        let is_whole = !of_row.is_empty() && num.is_multiple_of(of_row.len());
        is_whole.then(|| of_row.into_iter().cycle().take(num).collect())
    }

    /// Whether items are tokens rather than numbers.
    pub fn is_tokens(&self) -> bool {
        !matches!(
            self,
            InputEncoder::Features { .. }
                | InputEncoder::Array { .. }
                | InputEncoder::Inputs { .. }
        )
    }

    /// Adds the numbers of one record.
    ///
    /// # Panics If items are tokens.
    pub fn numbers<N: Number>(&self, records: &Records, item: usize, out: &mut Vec<N>) {
        let start = out.len();
        let normalize = match self {
            InputEncoder::Features {
                features,
                normalize,
                ..
            } => {
                for feature in features {
                    feature.encode(records, item, out);
                }
                normalize
            }
            InputEncoder::Array {
                column,
                shape,
                scaling,
                axis,
                normalize,
                ..
            } => {
                let scaling = ArrayScaling::new(scaling, shape, *axis);
                array(records, item, *column, scaling, out);
                normalize
            }
            InputEncoder::Inputs { inputs } => {
                for input in inputs {
                    input.numbers(records, item, out);
                }
                return;
            }
            _ => unreachable!("tokens are not numbers"),
        };
        if *normalize {
            to_unit_length(&mut out[start..]);
        }
    }
}
