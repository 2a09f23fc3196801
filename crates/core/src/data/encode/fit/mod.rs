//! Encoders from the settings of the file, the content of the columns, and measurements on the train split.

mod features;
mod target;

use super::statistics::moments;
use super::tokenizer::Tokenizer;
use super::{Encoder, InputEncoder, Scaling, array};
use crate::data::DataError;
use crate::data::records::{Column, ColumnKind, Records};
use crate::data::uses::Uses;
use crate::spec::data::{ColumnType, Missing, RolesSpec, Scale, TokensSpec};

/// The inputs of fitting an encoder.
pub struct Fitting<'a> {
    /// The items.
    pub records: &'a Records,
    /// The roles of columns.
    pub uses: &'a Uses,
    /// The settings of columns.
    pub roles: &'a RolesSpec,
    /// How numbers are scaled in columns that do not set it.
    pub scale: Scale,
    /// How texts become tokens.
    pub tokens: &'a TokensSpec,
    /// The records of the train split.
    pub train: &'a [u32],
    /// The texts of the train split, where items are pieces of running text.
    pub running_text: Option<&'a [&'a str]>,
    /// Whether numbers are measured, or only shapes are needed.
    pub measure: bool,
}

/// The value of an unscaled byte.
const BYTE: f64 = 1.0 / 255.0;

/// Fits an encoder for the user's files.
pub fn fit(fitting: &Fitting<'_>) -> Result<Encoder, DataError> {
    Ok(Encoder {
        input: fitting.input()?,
        target: fitting.target()?,
    })
}

impl Fitting<'_> {
    fn column(&self, at: usize) -> &Column {
        &self.records.columns()[at]
    }

    fn input(&self) -> Result<InputEncoder, DataError> {
        if let Some(texts) = self.running_text {
            return Ok(InputEncoder::Stream {
                column: self.uses.features[0],
                tokenizer: Tokenizer::build(self.tokens, texts.iter().copied()),
                length: self.tokens.length,
                stride: self.tokens.stride.unwrap_or(self.tokens.length),
            });
        }
        let features = &self.uses.features;
        let single = match features[..] {
            [at] => Some((at, self.column(at))),
            _ => None,
        };
        match single {
            Some((at, column)) if column.kind == ColumnKind::Text => Ok(self.text(at)),
            Some((at, column)) if self.is_tokens(column) => self.tokens(at),
            Some((at, column)) if column.shape.len() > 1 => self.array(at),
            _ => self.features(),
        }
    }

    /// Integers that the file calls categories are tokens.
    fn is_tokens(&self, column: &Column) -> bool {
        let asked = self.roles.of(&column.name).and_then(|said| said.kind);
        column.kind == ColumnKind::Whole
            && !column.shape.is_empty()
            && asked == Some(ColumnType::Category)
    }

    fn text(&self, column: usize) -> InputEncoder {
        let texts = self.train.iter();
        let texts = texts.filter_map(|row| self.records.text(*row as usize, column));
        InputEncoder::Text {
            column,
            tokenizer: Tokenizer::build(self.tokens, texts),
            length: self.tokens.length,
        }
    }

    fn tokens(&self, column: usize) -> Result<InputEncoder, DataError> {
        let extent = self.records.header.extents[column];
        let (min, max) = (extent.min.unwrap_or(0.0), extent.max.unwrap_or(0.0));
        if min < -1.0 {
            let name = &self.column(column).name;
            return Err(DataError::new(format!(
                "column `{name}` contains the token {min}, but tokens are numbered from 0"
            ))
            .help("use -1 for padding, and 0 or more for other tokens"));
        }
        // Padding becomes token 0, and all others move up.
        let shift = i32::from(min < 0.0);
        Ok(InputEncoder::Tokens {
            column,
            shape: self.column(column).shape.clone(),
            vocabulary: (max as i32 + 1 + shift) as usize,
            shift,
        })
    }

    fn array(&self, at: usize) -> Result<InputEncoder, DataError> {
        let column = self.column(at);
        let said = self.roles.of(&column.name);
        let scale = said.and_then(|said| said.scale).unwrap_or(self.scale);
        let policy = self.roles.missing_of(&column.name);
        if self.records.header.extents[at].missing > 0
            && matches!(
                policy,
                Missing::Mean | Missing::Median | Missing::MostCommon
            )
        {
            return Err(DataError::new(format!(
                "the arrays of `{}` have missing numbers, which cannot be imputed with a typical value of a column",
                column.name
            ))
            .key("data.missing")
            .help("set `missing = \"zero\"` or `missing = \"drop\"`"));
        }
        let unit = match column.kind {
            ColumnKind::Bytes => BYTE,
            _ => 1.0,
        };
        let scaling = if self.measure && needs_moments(scale) {
            let found = moments(self.train, 1, |row, out| {
                self.records.numbers(row, at, |value| out.push(value));
            });
            found[0].scaling(scale, unit)
        } else {
            Scaling {
                shift: 0.0,
                factor: unit,
            }
        };
        Ok(InputEncoder::Array {
            column: at,
            shape: column.shape.clone(),
            scaling: vec![scaling],
            unit: unit as f32,
            normalize: scale == Scale::Normalize,
        })
    }
}

fn needs_moments(scale: Scale) -> bool {
    matches!(scale, Scale::Standardize | Scale::MinMax)
}

/// The scaling of an embedded or generated array: `unit` is the value of one step.
pub fn array_scaling(
    records: &Records,
    column: usize,
    train: &[u32],
    scale: Scale,
    unit: f32,
) -> Vec<Scaling> {
    let shape = &records.columns()[column].shape;
    // Rows are measured by column, arrays of several dimensions as a whole.
    let width = match shape.len() {
        1 => shape[0],
        _ => 1,
    };
    if !needs_moments(scale) {
        return vec![Scaling {
            shift: 0.0,
            factor: f64::from(unit),
        }];
    }
    let found = moments(train, width, |row, out| {
        let mut values = Vec::new();
        array(records, row, column, &[Scaling::NONE], &mut values);
        out.extend(values.into_iter().map(f64::from));
    });
    found
        .iter()
        .map(|found| found.scaling(scale, f64::from(unit)))
        .collect()
}
