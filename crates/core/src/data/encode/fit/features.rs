//! Columns of rows as features: what stands for missing values, how categories and numbers are given.

use super::{BYTE, Fitting};
use crate::data::DataError;
use crate::data::encode::statistics::{Moments, median, moments, most_common};
use crate::data::encode::{Feature, Form, Groups, InputEncoder, Scaling};
use crate::data::records::{Column, ColumnKind};
use crate::spec::data::{ColumnSpec, ColumnType, Encode, Missing, Scale};

impl Fitting<'_> {
    pub(super) fn features(&self, columns: &[usize]) -> Result<InputEncoder, DataError> {
        let mut features = Vec::new();
        for at in columns {
            features.push(self.feature(*at)?);
        }
        let width: usize = features.iter().map(Feature::width).sum();
        if width == 0 {
            let key = if self.uses.inputs.is_empty() {
                "data.features"
            } else {
                "data.inputs"
            };
            return Err(DataError::new("the features do not result in any numbers")
                .key(key)
                .help("use columns that have values in the train split"));
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

    /// The count of each category in the train split.
    pub(super) fn counts(&self, column: usize, num: usize) -> Vec<u64> {
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
        let is_measured = matches!(
            missing,
            Missing::Mean | Missing::Median | Missing::MostCommon
        );
        // Even if no value of these files is missing: one of new items may be.
        if self.measure && is_measured {
            // Of the values as used: clipped.
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
                    Missing::Mean => moments(self.train, Groups::each(1), |row, out| {
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
        if !self.measure || !scale.is_measured() {
            return Form::Numbers {
                fill,
                clip,
                scaling: vec![plain; width],
            };
        }
        // Measured as used: imputed and clipped.
        let found = moments(self.train, Groups::each(width), |row, out| {
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
}

/// Refuses settings of a column that do not apply to its values.
///
/// Returns the key, the problem and the remedy.
fn refuse_unfit(
    column: &Column,
    said: &ColumnSpec,
) -> Result<(), (&'static str, String, &'static str)> {
    let is_category = matches!(column.kind, ColumnKind::Categories { .. });
    let name = &column.name;
    let wrong = match (is_category, said) {
        (
            false,
            ColumnSpec {
                kind: Some(ColumnType::Category),
                ..
            },
        ) => (
            "type",
            format!(
                "`type = \"category\"` has no effect on `{name}`, which contains {}",
                column.kind.show()
            ),
            "remove `type`; arrays of classes can be one-hot encoded before they are saved, and an array of tokens can be the only input or one in `[[data.inputs]]`",
        ),
        (true, ColumnSpec { clip: Some(_), .. }) => (
            "clip",
            format!("`clip` needs a numeric column; `{name}` is categorical"),
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
            format!("`scale` has no effect on `{name}`, which is one-hot encoded"),
            "remove `scale`, or set `encode = \"ordinal\"`",
        ),
        (
            false,
            ColumnSpec {
                says_encode: true, ..
            },
        ) => (
            "encode",
            format!(
                "`encode` needs a categorical column; `{name}` contains {}",
                column.kind.show()
            ),
            "remove `encode`, or set `type = \"category\"`",
        ),
        (
            _,
            ColumnSpec {
                scale: Some(Scale::Normalize),
                ..
            },
        ) => (
            "scale",
            format!("`{name}` cannot be normalized to unit length as a single column"),
            "set `scale = \"normalize\"` under `[data]` for whole items",
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
            "put the smaller number first",
        ),
        _ => return Ok(()),
    };
    Err(wrong)
}
