//! From records to inputs and targets: fitted only on the train split, saved with the run.

pub mod augment;
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
pub mod tokenizer;

pub use fit::{Fitting, array_scaling, fit, scale_axis};
pub use inputs::{EncodedInput, Indexed};
pub use nonlinear::{END_AGAIN, Nonlinear, Unit};
pub use number::Number;
pub use pixels::Pixels;
pub use scaling::{ArrayScaling, Groups, Scaling, broadcast, of};
pub(in crate::data) use statistics::moments;

use serde::{Deserialize, Serialize};

use super::records::{Column, ColumnKind, Records};
use super::{InputPlan, TargetPlan, TargetValues};
use crate::spec::data::WindowSpec;
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

/// How records become targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TargetEncoder {
    /// There are none: the items are their own targets.
    None,
    /// The class in a column.
    Class {
        /// The column.
        column: usize,
        /// Number of classes.
        num_classes: usize,
    },
    /// A class for each position of a column.
    Classes {
        /// The column.
        column: usize,
        /// The positions.
        shape: Vec<usize>,
        /// Number of classes.
        num_classes: usize,
    },
    /// Labels that are 0 or 1, in one or more columns.
    Labels {
        /// The columns.
        columns: Vec<usize>,
        /// Number of labels.
        num_labels: usize,
    },
    /// Numbers of one or more columns.
    Values {
        /// The columns, each with one scaling for all its values or one each.
        columns: Vec<(usize, Vec<Scaling>)>,
        /// The shape of a target.
        shape: Vec<usize>,
        /// The transform of each number, applied before it is scaled; none if the numbers are only scaled.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        nonlinear: Vec<Nonlinear>,
    },
    /// The token after each token of a piece of text.
    NextTokens,
    /// The tokens of the item that are hidden from the network.
    HiddenTokens {
        /// Their fraction.
        share: f64,
    },
}

impl TargetEncoder {
    /// The target columns.
    pub fn columns(&self) -> Vec<usize> {
        match self {
            TargetEncoder::None
            | TargetEncoder::NextTokens
            | TargetEncoder::HiddenTokens { .. } => Vec::new(),
            TargetEncoder::Class { column, .. } | TargetEncoder::Classes { column, .. } => {
                vec![*column]
            }
            TargetEncoder::Labels { columns, .. } => columns.clone(),
            TargetEncoder::Values { columns, .. } => columns.iter().map(|(at, _)| *at).collect(),
        }
    }
}

/// A column as numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// The column.
    pub column: usize,
    /// Its name.
    pub name: String,
    /// How its values become numbers.
    pub form: Form,
}

/// How a column's values become numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum Form {
    /// They are numbers.
    Numbers {
        /// Imputed values, for each position.
        fill: Vec<f64>,
        /// The clipping range.
        clip: Option<[f64; 2]>,
        /// The scaling of each.
        scaling: Vec<Scaling>,
    },
    /// One number per category: one-hot.
    OneHot {
        /// The position of each category of the column; `None` for one that is not in the train split.
        places: Vec<Option<usize>>,
        /// Number of positions.
        width: usize,
        /// The position of missing values.
        fill: Option<usize>,
    },
    /// One number for all categories: ordinal.
    Ordinal {
        /// The number of each category of the column.
        numbers: Vec<f64>,
        /// The number of missing values.
        fill: f64,
        /// Its scaling.
        scaling: Scaling,
    },
}

impl Feature {
    /// How many numbers it becomes.
    pub fn width(&self) -> usize {
        match &self.form {
            Form::Numbers { fill, .. } => fill.len(),
            Form::OneHot { width, .. } => *width,
            Form::Ordinal { .. } => 1,
        }
    }

    /// The scaling of each number that it becomes.
    fn scalings(&self) -> Vec<Scaling> {
        match &self.form {
            Form::Numbers { fill, scaling, .. } => {
                let each = 0..fill.len();
                each.map(|at| of(scaling, at)).collect()
            }
            Form::OneHot { width, .. } => vec![Scaling::NONE; *width],
            Form::Ordinal { scaling, .. } => vec![*scaling],
        }
    }

    /// Whether it was fitted to such a column.
    pub fn fits(&self, column: &Column) -> bool {
        let names = match &column.kind {
            ColumnKind::Categories { names } => Some(names.len()),
            _ => None,
        };
        match (&self.form, names) {
            (Form::Numbers { fill, scaling, .. }, None) => {
                fill.len() == column.len() && (scaling.len() == 1 || scaling.len() == fill.len())
            }
            (
                Form::OneHot {
                    places,
                    width,
                    fill,
                },
                Some(num),
            ) => places.len() == num && places.iter().chain([fill]).flatten().all(|at| at < width),
            (Form::Ordinal { numbers, .. }, Some(num)) => numbers.len() == num,
            _ => false,
        }
    }

    fn encode<N: Number>(&self, records: &Records, item: usize, out: &mut Vec<N>) {
        match &self.form {
            Form::Numbers {
                fill,
                clip,
                scaling,
            } => {
                let mut at = 0;
                records.numbers(item, self.column, |value| {
                    let mut value = if value.is_nan() { fill[at] } else { value };
                    if let Some([low, high]) = clip {
                        value = value.clamp(*low, *high);
                    }
                    out.push(of(scaling, at).apply(value));
                    at += 1;
                });
            }
            Form::OneHot {
                places,
                width,
                fill,
            } => {
                let place = match records.category(item, self.column) {
                    Some(code) => places[code],
                    None => *fill,
                };
                let start = out.len();
                out.resize(start + width, N::default());
                if let Some(place) = place {
                    out[start + place] = N::of(1.0);
                }
            }
            Form::Ordinal {
                numbers,
                fill,
                scaling,
            } => {
                let number = records.category(item, self.column);
                out.push(scaling.apply(number.map_or(*fill, |code| numbers[code])));
            }
        }
    }
}

/// Normalizes values to unit length, unless all are 0.
fn to_unit_length<N: Number>(values: &mut [N]) {
    let wide = |value: N| -> f64 { value.into() };
    let squares: f64 = values.iter().map(|v| wide(*v) * wide(*v)).sum();
    if squares > 0.0 {
        let factor = 1.0 / squares.sqrt();
        for value in values {
            *value = N::of(wide(*value) * factor);
        }
    }
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

impl TargetEncoder {
    /// The kind of a target; `input` is the kind of an item.
    pub fn plan(&self, input: &InputPlan) -> TargetPlan {
        match self {
            TargetEncoder::None => TargetPlan::None,
            TargetEncoder::Class { num_classes, .. } => TargetPlan::Class {
                num_classes: *num_classes,
            },
            TargetEncoder::Classes {
                shape, num_classes, ..
            } => TargetPlan::Classes {
                shape: shape.clone(),
                num_classes: *num_classes,
            },
            TargetEncoder::Labels { num_labels, .. } => TargetPlan::Labels {
                num_labels: *num_labels,
            },
            TargetEncoder::Values { shape, .. } => TargetPlan::Values {
                shape: shape.clone(),
            },
            TargetEncoder::NextTokens | TargetEncoder::HiddenTokens { .. } => TargetPlan::Classes {
                shape: input.shape.clone(),
                num_classes: input.vocabulary.unwrap_or(0),
            },
        }
    }

    /// The values of no items.
    pub fn no_values<N: Number>(&self) -> TargetValues {
        if self.is_classes() {
            TargetValues::Classes(Vec::new())
        } else {
            N::targets(Vec::new())
        }
    }

    /// Whether each item has one class.
    pub fn is_class(&self) -> bool {
        matches!(self, TargetEncoder::Class { .. })
    }

    /// Whether targets are classes rather than numbers.
    pub fn is_classes(&self) -> bool {
        !matches!(
            self,
            TargetEncoder::Labels { .. } | TargetEncoder::Values { .. }
        )
    }

    /// Adds the classes of one record.
    pub fn classes(&self, records: &Records, item: usize, out: &mut Vec<i32>) {
        match self {
            TargetEncoder::Class { column, .. } => {
                out.push(records.number(item, *column, 0) as i32);
            }
            TargetEncoder::Classes { column, .. } => {
                records.numbers(item, *column, |value| out.push(value as i32));
            }
            _ => {}
        }
    }

    /// A number of one record whose transform has no value, with its column and that transform.
    pub(in crate::data) fn refused(
        &self,
        records: &Records,
        item: usize,
    ) -> Option<(usize, f64, &Nonlinear)> {
        let TargetEncoder::Values {
            columns, nonlinear, ..
        } = self
        else {
            return None;
        };
        let (mut transforms, mut wrong) = (nonlinear.iter(), None);
        for (column, _) in columns {
            records.numbers(item, *column, |value| {
                let transform = transforms.next();
                let refused = transform.filter(|of| of.refusal(value).is_some());
                wrong = wrong.or(refused.map(|of| (*column, value, of)));
            });
        }
        wrong
    }

    /// Adds the numbers of one record.
    pub fn numbers<N: Number>(&self, records: &Records, item: usize, out: &mut Vec<N>) {
        match self {
            TargetEncoder::Labels { columns, .. } => {
                for column in columns {
                    records.numbers(item, *column, |value| out.push(N::of(value)));
                }
            }
            TargetEncoder::Values {
                columns, nonlinear, ..
            } => {
                let mut transforms = nonlinear.iter();
                for (column, scaling) in columns {
                    let mut at = 0;
                    records.numbers(item, *column, |value| {
                        let transform = transforms.next();
                        let value = transform.map_or(value, |of| of.apply(value));
                        out.push(of(scaling, at).apply(value));
                        at += 1;
                    });
                }
            }
            _ => {}
        }
    }
}
