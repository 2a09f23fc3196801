//! Columns of tables as numbers.

use serde::{Deserialize, Serialize};

use super::number::Number;
use super::scaling::{Scaling, of};
use crate::data::records::{Column, ColumnKind, Records};

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
    pub(super) fn scalings(&self) -> Vec<Scaling> {
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

    /// Adds the numbers of an item.
    pub(super) fn encode<N: Number>(&self, records: &Records, item: usize, out: &mut Vec<N>) {
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
pub(super) fn to_unit_length<N: Number>(values: &mut [N]) {
    let wide = |value: N| -> f64 { value.into() };
    let squares: f64 = values.iter().map(|v| wide(*v) * wide(*v)).sum();
    if squares > 0.0 {
        let factor = 1.0 / squares.sqrt();
        for value in values {
            *value = N::of(wide(*value) * factor);
        }
    }
}
