//! Named inputs one after the other, and categories as indices.

use serde::{Deserialize, Serialize};

use super::{InputEncoder, Number};
use crate::data::InputPart;
use crate::data::records::{Column, ColumnKind, Records};

/// A named input with its encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncodedInput {
    /// Its name.
    pub name: String,
    /// How its columns are converted.
    pub encoder: InputEncoder,
}

/// A column as an index: 0 for what is not known, and then the categories of the train split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Indexed {
    /// The column.
    pub column: usize,
    /// Its name.
    pub name: String,
    /// The index of each category of the column; empty if its values are integers, which number the categories.
    pub indices: Vec<usize>,
    /// The number of indices, and the number of the first: those of the columns follow each other.
    pub num: usize,
    /// The first of them.
    pub first: usize,
    /// The index of a missing value, without `first`.
    pub fill: usize,
}

impl Indexed {
    /// Whether it was fitted to such a column.
    pub fn fits(&self, column: &Column) -> bool {
        let fits = match &column.kind {
            ColumnKind::Categories { names } => self.indices.len() == names.len(),
            ColumnKind::Whole | ColumnKind::Bytes => self.indices.is_empty() && column.len() == 1,
            _ => false,
        };
        let mut all = self.indices.iter().chain([&self.fill]);
        fits && all.all(|index| *index < self.num) && self.first.checked_add(self.num).is_some()
    }

    fn index(&self, records: &Records, item: usize) -> usize {
        let own = if self.indices.is_empty() {
            let number = records.number(item, self.column, 0);
            if number.is_nan() {
                self.fill
            } else {
                number as usize + 1
            }
        } else {
            let code = records.category(item, self.column);
            code.map_or(self.fill, |code| self.indices[code])
        };
        self.first + own.min(self.num - 1)
    }
}

impl InputEncoder {
    /// The encoders of the named inputs, or the only one.
    pub fn branches(&self) -> Vec<&InputEncoder> {
        match self {
            InputEncoder::Inputs { inputs } => inputs.iter().map(|input| &input.encoder).collect(),
            single => vec![single],
        }
    }

    /// The columns that are read.
    pub fn columns(&self) -> Vec<usize> {
        match self {
            InputEncoder::Features { features, .. } => {
                features.iter().map(|feature| feature.column).collect()
            }
            InputEncoder::Array { column, .. }
            | InputEncoder::Tokens { column, .. }
            | InputEncoder::Text { column, .. }
            | InputEncoder::Stream { column, .. } => vec![*column],
            InputEncoder::Indices { columns } => columns.iter().map(|of| of.column).collect(),
            InputEncoder::Inputs { inputs } => inputs
                .iter()
                .flat_map(|input| input.encoder.columns())
                .collect(),
        }
    }

    /// Adds the tokens or indices of one record.
    ///
    /// # Panics
    /// If items are numbers.
    pub fn tokens(&self, records: &Records, item: usize, out: &mut Vec<i32>) {
        match self {
            InputEncoder::Tokens { column, shift, .. } => {
                records.numbers(item, *column, |token| out.push(token as i32 + shift));
            }
            InputEncoder::Text {
                column,
                tokenizer,
                length,
            } => {
                let text = records.text(item, *column).unwrap_or("");
                out.extend(tokenizer.encode_item(text, *length));
            }
            InputEncoder::Indices { columns } => {
                out.extend(columns.iter().map(|of| of.index(records, item) as i32));
            }
            _ => unreachable!("numbers are not tokens"),
        }
    }

    /// Why a text has no hidden token to predict, if so.
    pub fn without_mask(&self, records: &Records, item: usize) -> Option<String> {
        let (InputEncoder::Text {
            column, tokenizer, ..
        }
        | InputEncoder::Stream {
            column, tokenizer, ..
        }) = self
        else {
            return None;
        };
        let mask = tokenizer.mask()?;
        let text = records.text(item, *column).unwrap_or_default();
        let (tokens, within) = match self {
            InputEncoder::Text { length, .. } => {
                let within = format!(" among the first {length} tokens");
                (tokenizer.encode_item(text, *length), within)
            }
            _ => (tokenizer.encode(text).unwrap_or_default(), String::new()),
        };
        let name = tokenizer.name(mask);
        (!tokens.contains(&mask)).then(|| {
            format!("the text has no `{name}`{within}, which stands for the token to predict")
        })
    }

    /// Why the values of a record are none that the run was trained on, if so.
    pub fn unknown(&self, records: &Records, item: usize) -> Option<String> {
        let (column, low, num) = match self {
            InputEncoder::Tokens {
                column,
                vocabulary,
                shift,
                ..
            } => (*column, f64::from(-shift), *vocabulary),
            InputEncoder::Indices { columns } => {
                // Missing ones have an index.
                let is_there = |of: &&Indexed| !records.number(item, of.column, 0).is_nan();
                let whole = columns.iter().filter(|of| of.indices.is_empty());
                return whole
                    .filter(is_there)
                    .find_map(|of| unknown_token(records, item, of.column, 0.0, of.num - 1));
            }
            InputEncoder::Inputs { inputs } => {
                let mut inputs = inputs.iter();
                return inputs.find_map(|input| input.encoder.unknown(records, item));
            }
            _ => return None,
        };
        unknown_token(records, item, column, low, num)
    }
}

impl EncodedInput {
    /// Its kind.
    pub fn part(&self) -> InputPart {
        let plan = self.encoder.plan();
        InputPart {
            name: self.name.clone(),
            shape: plan.shape,
            vocabulary: plan.vocabulary,
        }
    }

    /// Adds its values of one record as numbers.
    pub(super) fn numbers<N: Number>(&self, records: &Records, item: usize, out: &mut Vec<N>) {
        if self.encoder.is_tokens() {
            let mut tokens = Vec::new();
            self.encoder.tokens(records, item, &mut tokens);
            // Exact, since vocabularies are small enough.
            out.extend(tokens.into_iter().map(|token| N::from(token as f32)));
        } else {
            self.encoder.numbers(records, item, out);
        }
    }
}

/// Why one of the integers of a column is not one of `num` from `low` on, if so.
fn unknown_token(
    records: &Records,
    item: usize,
    column: usize,
    low: f64,
    num: usize,
) -> Option<String> {
    let high = num as f64 + low;
    let mut wrong = None;
    records.numbers(item, column, |token| {
        // A missing one that is not refused for that is 0, as in the training.
        if !token.is_nan() && !(low..high).contains(&token) {
            wrong = wrong.or(Some(token));
        }
    });
    let token = wrong?;
    let last = high - 1.0;
    Some(format!(
        "the token {token} is unknown: the run was trained on tokens {low} to {last}"
    ))
}
