//! Encoders out of what the file asks for, what the columns hold, and what is measured on the train split.

use std::collections::BTreeSet;

use super::statistics::{Moments, median, moments, most_common};
use super::tokenizer::Tokenizer;
use super::{Encoder, Feature, Form, InputEncoder, Scaling, TargetEncoder, array};
use crate::data::DataError;
use crate::data::records::{Column, ColumnKind, Records};
use crate::data::uses::Uses;
use crate::spec::data::{ColumnSpec, ColumnType, Encode, Missing, RolesSpec, Scale, TokensSpec};

/// What an encoder is fitted to.
pub struct Fitting<'a> {
    /// The items.
    pub records: &'a Records,
    /// What columns are for.
    pub uses: &'a Uses,
    /// What the file says of columns.
    pub roles: &'a RolesSpec,
    /// How numbers are scaled where a column does not say.
    pub scale: Scale,
    /// How texts become tokens.
    pub tokens: &'a TokensSpec,
    /// The records of the train split.
    pub train: &'a [u32],
    /// The texts of the train split, where items are pieces of running text.
    pub running_text: Option<&'a [&'a str]>,
    /// Whether numbers are measured, or shapes alone asked for.
    pub measure: bool,
}

/// What a byte is worth where it is not scaled.
const BYTE: f64 = 1.0 / 255.0;

/// Fits an encoder for files of the user.
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

    /// Whole numbers that the file calls categories are tokens.
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
                "column `{name}` holds the token {min}, and tokens count from 0"
            ))
            .help("-1 stands for padding; write other tokens from 0 on"));
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
                "the arrays of `{}` have missing numbers, which cannot be filled by what is usual in a column",
                column.name
            ))
            .key("data.missing")
            .help("write `missing = \"zero\"` or `missing = \"drop\"`"));
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

    fn features(&self) -> Result<InputEncoder, DataError> {
        let mut features = Vec::new();
        for at in &self.uses.features {
            features.push(self.feature(*at)?);
        }
        let width: usize = features.iter().map(Feature::width).sum();
        if width == 0 {
            return Err(DataError::new("the features come to no numbers at all")
                .key("data.features")
                .help("name columns that have values in the train split"));
        }
        Ok(InputEncoder::Features {
            features,
            normalize: self.scale == Scale::Normalize,
            window: self.roles.window.clone(),
        })
    }

    fn feature(&self, at: usize) -> Result<Feature, DataError> {
        let column = self.column(at);
        let place = self
            .roles
            .columns
            .iter()
            .position(|said| said.name == column.name);
        let said = place.map(|place| &self.roles.columns[place]);
        let scale = said.and_then(|said| said.scale).unwrap_or(self.scale);
        let missing = self.roles.missing_of(&column.name);
        if let (Some(said), Some(place)) = (said, place) {
            refuse_unfit(column, said).map_err(|(key, message, help)| {
                DataError::new(message)
                    .key(format!("data.columns[{place}].{key}"))
                    .help(help)
            })?;
        }
        let form = match &column.kind {
            ColumnKind::Categories { names } => {
                let counts = self.counts(at, names.len());
                let encode = said.map(|said| said.encode).unwrap_or_default();
                self.categories(&counts, encode, missing, scale)
            }
            _ => self.numbers(at, said.and_then(|said| said.clip), missing, scale),
        };
        Ok(Feature {
            column: at,
            name: column.name.clone(),
            form,
        })
    }

    /// How often each category stands in the train split.
    fn counts(&self, column: usize, num: usize) -> Vec<u64> {
        let mut counts = vec![0; num];
        for row in self.train {
            if let Some(code) = self.records.category(*row as usize, column) {
                counts[code] += 1;
            }
        }
        counts
    }

    fn categories(&self, counts: &[u64], encode: Encode, missing: Missing, scale: Scale) -> Form {
        let mut width = 0;
        let place = |count: &u64| {
            (*count > 0).then(|| {
                width += 1;
                width - 1
            })
        };
        let places: Vec<Option<usize>> = counts.iter().map(place).collect();
        let largest = counts.iter().max().copied().unwrap_or(0);
        let most_common = counts.iter().position(|count| *count == largest);
        let fill = match missing {
            Missing::Zero => None,
            _ => most_common.and_then(|code| places[code]),
        };
        if encode == Encode::OneHot {
            return Form::OneHot {
                places,
                width,
                fill,
            };
        }
        let number = |place: Option<usize>| place.map_or(-1.0, |place| place as f64);
        let numbers: Vec<f64> = places.iter().map(|place| number(*place)).collect();
        let mut sums = (0.0, 0.0, 0.0);
        for (value, count) in numbers.iter().zip(counts) {
            let count = *count as f64;
            sums = (
                sums.0 + count,
                sums.1 + count * value,
                sums.2 + count * value * value,
            );
        }
        let (num, mean) = (sums.0, sums.1 / f64::max(sums.0, 1.0));
        let found = Moments {
            count: num as u64,
            mean,
            deviation: (sums.2 / num.max(1.0) - mean * mean).max(0.0).sqrt(),
            min: 0.0,
            max: width.saturating_sub(1) as f64,
        };
        Form::Ordinal {
            numbers,
            fill: number(fill),
            scaling: found.scaling(scale, 1.0),
        }
    }

    fn numbers(&self, at: usize, clip: Option<[f64; 2]>, missing: Missing, scale: Scale) -> Form {
        let column = self.column(at);
        let width = column.len();
        let unit = match column.kind {
            ColumnKind::Bytes => BYTE,
            _ => 1.0,
        };
        let plain = Scaling {
            shift: 0.0,
            factor: unit,
        };
        let mut fill = vec![0.0; width];
        if self.measure && self.records.header.extents[at].missing > 0 {
            // Of values as they will be used: clipped.
            let number = |row: usize, value: usize| {
                let number = self.records.number(row, at, value);
                clip.map_or(number, |[low, high]| number.clamp(low, high))
            };
            let all = |value: usize| {
                let rows = self.train.iter();
                rows.map(|row| number(*row as usize, value)).collect()
            };
            for (value, fill) in fill.iter_mut().enumerate() {
                let found = match missing {
                    Missing::Mean => moments(self.train, 1, |row, out| {
                        out.push(number(row, value));
                    })
                    .first()
                    .map(|found| found.mean),
                    Missing::Median => median(all(value)),
                    Missing::MostCommon => most_common(all(value)),
                    _ => None,
                };
                *fill = found.unwrap_or(0.0);
            }
        }
        if !self.measure || !needs_moments(scale) {
            return Form::Numbers {
                fill,
                clip,
                scaling: vec![plain; width],
            };
        }
        // Measured as it will be used: filled and clipped.
        let found = moments(self.train, width, |row, out| {
            let mut value = 0;
            self.records.numbers(row, at, |number| {
                let filled = if number.is_nan() { fill[value] } else { number };
                out.push(clip.map_or(filled, |[low, high]| filled.clamp(low, high)));
                value += 1;
            });
        });
        Form::Numbers {
            scaling: found
                .iter()
                .map(|found| found.scaling(scale, unit))
                .collect(),
            fill,
            clip,
        }
    }

    /// Refuses numbers as classes that are mostly no class of any item: they are names or amounts.
    fn refuse_holes(&self, column: usize, num_classes: usize) -> Result<(), DataError> {
        /// So few classes may have any holes.
        const FEW: usize = 20;
        /// Classes for each that occurs.
        const MOST: usize = 10;
        if num_classes <= FEW {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        for row in 0..self.records.len() {
            let class = self.records.number(row, column, 0);
            if !class.is_nan() && seen.insert(class as i64) && seen.len() * MOST >= num_classes {
                return Ok(());
            }
        }
        let shown: Vec<_> = seen.iter().take(5).map(ToString::to_string).collect();
        let more = if seen.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        let name = &self.column(column).name;
        let error = DataError::new(format!(
            "the target `{name}` would have {num_classes} classes, of which {} occur: {}{more}",
            seen.len(),
            shown.join(", ")
        ))
        .note("whole numbers are classes, which count from 0")
        .key(if self.roles.target.is_empty() {
            "data.target_path"
        } else {
            "data.target"
        });
        Err(error.help(
            "number the classes 0, 1, 2, …, or save amounts as numbers with a point, such as with `y.astype(np.float32)`",
        ))
    }

    fn target(&self) -> Result<TargetEncoder, DataError> {
        if self.running_text.is_some() {
            return Ok(TargetEncoder::NextTokens);
        }
        let targets = &self.uses.targets;
        let Some(first) = targets.first() else {
            return Ok(TargetEncoder::None);
        };
        if let [column] = targets[..] {
            let (spec, extent) = (self.column(column), self.records.header.extents[column]);
            let said = self.roles.of(&spec.name).and_then(|said| said.kind);
            let (min, max) = (extent.min.unwrap_or(0.0), extent.max.unwrap_or(0.0));
            let is_number = said == Some(ColumnType::Number);
            match (&spec.kind, spec.shape.len()) {
                (ColumnKind::Categories { names }, _) => {
                    return Ok(TargetEncoder::Class {
                        column,
                        num_classes: names.len(),
                    });
                }
                (ColumnKind::Bytes | ColumnKind::Whole, 0 | 1)
                    if !is_number && spec.len() == 1 && min >= 0.0 =>
                {
                    self.refuse_holes(column, max as usize + 1)?;
                    return Ok(TargetEncoder::Class {
                        column,
                        num_classes: max as usize + 1,
                    });
                }
                (ColumnKind::Bytes | ColumnKind::Whole, 2..) if !is_number && min >= -1.0 => {
                    return Ok(TargetEncoder::Classes {
                        column,
                        shape: spec.shape.clone(),
                        num_classes: max as usize + 1,
                    });
                }
                _ => {}
            }
        }
        let are_labels = targets.iter().all(|at| {
            let column = self.column(*at);
            let extent = self.records.header.extents[*at];
            let said = self.roles.of(&column.name).and_then(|said| said.kind);
            let is_whole = matches!(column.kind, ColumnKind::Bytes | ColumnKind::Whole);
            is_whole
                && column.shape.len() < 2
                && said != Some(ColumnType::Number)
                && extent.min >= Some(0.0)
                && extent.max <= Some(1.0)
        });
        let num: usize = targets.iter().map(|at| self.column(*at).len()).sum();
        if are_labels && num > 1 {
            return Ok(TargetEncoder::Labels {
                columns: targets.clone(),
                num_labels: num,
            });
        }
        for at in targets {
            let column = self.column(*at);
            if matches!(
                column.kind,
                ColumnKind::Categories { .. } | ColumnKind::Text
            ) {
                return Err(DataError::new(format!(
                    "the target `{}` holds {}, and several targets must be numbers",
                    column.name,
                    column.kind.show()
                ))
                .key("data.target")
                .help("name one column of classes, or columns of numbers"));
            }
        }
        let mut columns = Vec::new();
        for at in targets {
            let width = self.column(*at).len();
            let scaling = if !(self.measure && needs_moments(self.roles.target_scale)) {
                vec![Scaling::NONE]
            } else {
                moments(self.train, width, |row, out| {
                    self.records.numbers(row, *at, |value| out.push(value));
                })
                .iter()
                .map(|found| found.scaling(self.roles.target_scale, 1.0))
                .collect()
            };
            columns.push((*at, scaling));
        }
        Ok(TargetEncoder::Values {
            columns,
            shape: match targets.len() {
                1 if !self.column(*first).shape.is_empty() => self.column(*first).shape.clone(),
                _ => vec![num],
            },
        })
    }
}

/// Refuses what is said of a column that its values have no use for.
///
/// Returns the key, what is wrong, and what to do.
fn refuse_unfit(
    column: &Column,
    said: &ColumnSpec,
) -> Result<(), (&'static str, String, &'static str)> {
    let is_category = matches!(column.kind, ColumnKind::Categories { .. });
    let name = &column.name;
    let wrong = match (is_category, said) {
        (true, ColumnSpec { clip: Some(_), .. }) => (
            "clip",
            format!("`clip` is written for `{name}`, which holds categories"),
            "remove `clip`",
        ),
        (
            true,
            ColumnSpec {
                scale: Some(_),
                encode: Encode::OneHot,
                ..
            },
        ) => (
            "scale",
            format!("`scale` is written for `{name}`, which becomes a 0 or 1 for each category"),
            "remove `scale`, or write `encode = \"ordinal\"`",
        ),
        (
            false,
            ColumnSpec {
                encode: Encode::Ordinal,
                ..
            },
        ) => (
            "encode",
            format!(
                "`encode` is written for `{name}`, which holds {}",
                column.kind.show()
            ),
            "remove `encode`, or write `type = \"category\"`",
        ),
        (
            _,
            ColumnSpec {
                scale: Some(Scale::Normalize),
                ..
            },
        ) => (
            "scale",
            format!("`{name}` cannot be brought to length 1 by itself"),
            "write `scale = \"normalize\"` under `[data]` for whole items",
        ),
        (
            _,
            ColumnSpec {
                clip: Some([low, high]),
                ..
            },
        ) if low >= high => (
            "clip",
            format!("`clip` of `{name}` is from {low} to {high}"),
            "write the smaller number first",
        ),
        _ => return Ok(()),
    };
    Err(wrong)
}

fn needs_moments(scale: Scale) -> bool {
    matches!(scale, Scale::Standardize | Scale::MinMax)
}

/// The scaling of an array that is inside the binary or made up: `unit` is what a value is worth.
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
