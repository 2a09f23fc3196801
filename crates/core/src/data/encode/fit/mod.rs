//! Encoders from the settings of the file, the content of the columns, and measurements on the train split.

mod features;
mod inputs;
mod target;

use super::statistics::{Moments, moments, moments_of_bytes};
use super::tokenizer::Tokenizer;
use super::{ArrayScaling, Encoder, Groups, InputEncoder, Scaling, array};
use crate::data::records::{Column, ColumnKind, Extent, Records};
use crate::data::uses::Uses;
use crate::data::{DataError, MAX_DIMS};
use crate::spec::data::{ColumnType, Missing, RolesSpec, Scale, ScaleAxis, TokensSpec};

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
    /// Which values of an array are scaled together.
    pub scale_axis: ScaleAxis,
    /// How texts become tokens.
    pub tokens: &'a TokensSpec,
    /// The records of the train split.
    pub train: &'a [u32],
    /// The texts of the train split, where items are pieces of running text.
    pub running_text: Option<&'a [&'a str]>,
    /// The tokenizer of running text, if it was fitted before.
    pub tokenizer: Option<&'a Tokenizer>,
    /// Whether numbers are measured, or only shapes are needed.
    pub measure: bool,
}

/// The value of an unscaled byte.
const BYTE: f64 = 1.0 / 255.0;

/// Fits an encoder for the user's files.
pub fn fit(fitting: &Fitting<'_>) -> Result<Encoder, DataError> {
    let input = fitting.input()?;
    Ok(Encoder {
        target: fitting.target(&input)?,
        input,
        more_targets: fitting.more_targets()?,
    })
}

impl Fitting<'_> {
    fn column(&self, at: usize) -> &Column {
        &self.records.columns()[at]
    }

    /// The encoder of the inputs.
    pub fn input(&self) -> Result<InputEncoder, DataError> {
        if let Some(texts) = self.running_text {
            return Ok(InputEncoder::Stream {
                column: self.uses.features[0],
                tokenizer: match self.tokenizer {
                    Some(tokenizer) => tokenizer.clone(),
                    None => Tokenizer::build(self.tokens, texts.iter().copied())?,
                },
                length: self.tokens.length,
                stride: self.tokens.stride.unwrap_or(self.tokens.length),
            });
        }
        if self.uses.inputs.is_empty() {
            self.of_columns(&self.uses.features)
        } else {
            self.inputs()
        }
    }

    /// Numbers of columns, or a single column of texts, tokens or arrays.
    fn of_columns(&self, columns: &[usize]) -> Result<InputEncoder, DataError> {
        let single = match columns[..] {
            [at] => Some((at, self.column(at))),
            _ => None,
        };
        match single {
            Some((at, column)) if column.kind == ColumnKind::Text => self.text(at),
            Some((at, column)) if self.is_tokens(column) => self.tokens(at),
            Some((at, column)) if column.shape.len() > 1 => self.array(at),
            _ => self.features(columns),
        }
    }

    /// Integers that the file calls categories are tokens.
    fn is_tokens(&self, column: &Column) -> bool {
        let asked = self.roles.of(&column.name).and_then(|said| said.kind);
        column.kind == ColumnKind::Whole
            && !column.shape.is_empty()
            && asked == Some(ColumnType::Category)
    }

    fn text(&self, column: usize) -> Result<InputEncoder, DataError> {
        let texts = self.train.iter();
        let texts = texts.filter_map(|row| self.records.text(*row as usize, column));
        Ok(InputEncoder::Text {
            column,
            tokenizer: Tokenizer::build_for_items(self.tokens, texts)?,
            length: self.tokens.length,
        })
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
        let shape = &column.shape;
        if shape.len() > MAX_DIMS {
            return Err(DataError::new(format!(
                "the items of `{}` have the shape {shape:?}, but networks take at most {MAX_DIMS} dimensions",
                column.name
            ))
            .key("data.path")
            .help("reshape the array, so that items have fewer dimensions"));
        }
        let is_bytes = column.kind == ColumnKind::Bytes;
        let axis = scale_axis(self.scale_axis, scale, shape, is_bytes)?;
        let groups = Groups::along(shape, axis);
        let scaling = if self.measure && scale.is_measured() {
            let found = array_moments((self.records, at), self.train, groups, |row, out| {
                self.records.numbers(row, at, |value| out.push(value));
            });
            found
                .iter()
                .map(|found| found.scaling(scale, unit))
                .collect()
        } else {
            vec![
                Scaling {
                    shift: 0.0,
                    factor: unit
                };
                groups.num
            ]
        };
        Ok(InputEncoder::Array {
            column: at,
            shape: shape.clone(),
            scaling,
            axis,
            unit: unit as f32,
            range: range(&self.records.header.extents[at], is_bytes),
            normalize: scale == Scale::Normalize,
        })
    }
}

/// The axis whose positions are scaled separately, if any is.
pub fn scale_axis(
    asked: ScaleAxis,
    scale: Scale,
    shape: &[usize],
    is_bytes: bool,
) -> Result<Option<usize>, DataError> {
    let axis = asked.resolve(shape, is_bytes).map_err(|axis| {
        let message = format!("`scale_axis` is {axis}, but the shape of an item is {shape:?}");
        DataError::new(message).key("data.scale_axis").help(format!(
            "use an axis from 0 to {}, or \"all\"",
            shape.len().saturating_sub(1)
        ))
    })?;
    Ok(axis.filter(|_| scale.is_measured()))
}

/// The range of numbers that are not bytes, if it goes beyond 0 to 1.
fn range(extent: &Extent, is_bytes: bool) -> Option<[f64; 2]> {
    let (low, high) = (extent.min?, extent.max?);
    let goes_beyond = (low < 0.0 || high > 1.0) && high > low;
    (goes_beyond && !is_bytes).then_some([low, high])
}

/// The moments of groups of an array's values, which `read` yields; bytes of one group are counted instead.
fn array_moments(
    (records, column): (&Records, usize),
    train: &[u32],
    groups: Groups,
    read: impl Fn(usize, &mut Vec<f64>) + Sync,
) -> Vec<Moments> {
    if groups.num == 1 && records.columns()[column].kind == ColumnKind::Bytes {
        return vec![moments_of_bytes(train, |row| records.bytes(row, column))];
    }
    moments(train, groups, read)
}

/// The scaling of an embedded or generated array, of its positions along an axis if there is one: `unit` is the value
/// of one step.
pub fn array_scaling(
    records: &Records,
    column: usize,
    train: &[u32],
    (scale, axis): (Scale, Option<usize>),
    unit: f32,
) -> Vec<Scaling> {
    let shape = &records.columns()[column].shape;
    // Rows are measured by column.
    let groups = match shape.len() {
        1 => Groups::each(shape[0]),
        _ => Groups::along(shape, axis),
    };
    if !scale.is_measured() {
        return vec![Scaling {
            shift: 0.0,
            factor: f64::from(unit),
        }];
    }
    let found = array_moments((records, column), train, groups, |row, out| {
        let mut values: Vec<f32> = Vec::new();
        let plain = ArrayScaling::new(&[Scaling::NONE], shape, None);
        array(records, row, column, plain, &mut values);
        out.extend(values.into_iter().map(f64::from));
    });
    found
        .iter()
        .map(|found| found.scaling(scale, f64::from(unit)))
        .collect()
}
