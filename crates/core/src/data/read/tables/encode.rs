//! Rows into records, once it is known what the columns are.

use std::collections::BTreeMap;

use super::cell::{Cell, Cells, List};
use super::infer::{Decided, Names};
use crate::data::records::{Column, ColumnKind, NO_NUMBER, NO_TEXT};

/// What stands behind the end of a list of whole numbers that is shorter than others.
const PADDING: i32 = -1;

/// Makes records of rows.
#[derive(Debug)]
pub struct Encoder {
    names: Names,
    columns: Vec<Encoded>,
    /// A record in which everything is missing.
    empty: Vec<u8>,
}

#[derive(Debug)]
struct Encoded {
    column: Column,
    /// Where its value stands in a record.
    start: usize,
    is_padded: bool,
    /// What is not used need not be readable.
    is_ignored: bool,
    codes: BTreeMap<String, i32>,
}

/// Records of some rows.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The records, with the places of texts to be filled in.
    pub records: Vec<u8>,
    /// Texts, and where their places belong.
    pub texts: Vec<(usize, String)>,
    /// Rows that have no record: the bytes of records before them, their places, and why.
    pub bad: Vec<(usize, String, String)>,
}

impl Encoder {
    /// For some columns, of which some are not used.
    pub fn new(columns: Vec<Decided>, ignore: &[String]) -> Self {
        let mut names = Names::default();
        let mut empty = Vec::new();
        let columns = columns
            .into_iter()
            .map(|Decided { column, is_padded }| {
                names.push(&column.name);
                let start = empty.len();
                for _ in 0..column.len() {
                    match &column.kind {
                        ColumnKind::Bytes => empty.push(0),
                        ColumnKind::Numbers => empty.extend(f32::NAN.to_le_bytes()),
                        ColumnKind::Doubles => empty.extend(f64::NAN.to_le_bytes()),
                        ColumnKind::Whole => empty.extend(NO_NUMBER.to_le_bytes()),
                        ColumnKind::Categories { .. } => empty.extend((-1_i32).to_le_bytes()),
                        ColumnKind::Text => empty.extend(NO_TEXT),
                    }
                }
                let codes = match &column.kind {
                    ColumnKind::Categories { names } => names.iter().cloned().zip(0..).collect(),
                    _ => BTreeMap::new(),
                };
                Encoded {
                    is_ignored: ignore.contains(&column.name),
                    column,
                    start,
                    is_padded,
                    codes,
                }
            })
            .collect();
        Self {
            names,
            columns,
            empty,
        }
    }

    /// The columns.
    pub fn columns(&self) -> Vec<Column> {
        let columns = self.columns.iter();
        columns.map(|encoded| encoded.column.clone()).collect()
    }

    /// Bytes of a record.
    pub fn record_size(&self) -> usize {
        self.empty.len()
    }

    /// Adds the record of a row, or nothing when it says what is wrong.
    pub fn encode(&self, cells: Cells<'_>, chunk: &mut Chunk) -> Result<(), String> {
        let (start, num_texts) = (chunk.records.len(), chunk.texts.len());
        chunk.records.extend_from_slice(&self.empty);
        let result = cells
            .into_iter()
            .enumerate()
            .try_for_each(|(guess, (name, cell))| {
                let Some(at) = self.names.place(&name, guess) else {
                    return Ok(());
                };
                let column = &self.columns[at];
                let result = column.encode(cell, start, chunk);
                if column.is_ignored {
                    return Ok(());
                }
                result.map_err(|reason| format!("column `{}`: {reason}", column.column.name))
            });
        if result.is_err() {
            chunk.records.truncate(start);
            chunk.texts.truncate(num_texts);
        }
        result
    }
}

impl Encoded {
    fn encode(&self, cell: Cell<'_>, record: usize, chunk: &mut Chunk) -> Result<(), String> {
        let start = record + self.start;
        let size = self.column.len() * self.column.kind.size();
        match (&self.column.kind, cell) {
            (_, Cell::Missing) => {}
            (_, Cell::Wrong(reason)) => return Err(reason),
            (ColumnKind::Numbers | ColumnKind::Whole, Cell::List(list)) => {
                let out = &mut chunk.records[start..start + size];
                self.encode_list(&list, out)?;
            }
            (_, Cell::List(_)) => return Err("a list, where others hold single values".into()),
            (ColumnKind::Categories { .. }, cell) => {
                let text = cell.text().unwrap_or_default();
                let Some(code) = self.codes.get(text.as_ref()) else {
                    return Err(format!("`{}` came while the file was read", shorten(&text)));
                };
                chunk.records[start..start + 4].copy_from_slice(&code.to_le_bytes());
            }
            (ColumnKind::Text, cell) => {
                let text = cell.text().unwrap_or_default().into_owned();
                chunk.texts.push((start, text));
            }
            (ColumnKind::Doubles, cell) => {
                let number = number(&cell)?;
                chunk.records[start..start + 8].copy_from_slice(&number.to_le_bytes());
            }
            _ => return Err("a single value, where others hold lists".into()),
        }
        Ok(())
    }

    fn encode_list(&self, list: &List, out: &mut [u8]) -> Result<(), String> {
        let shape = &self.column.shape;
        let is_shorter =
            self.is_padded && list.shape.len() == 1 && list.values.len() <= out.len() / 4;
        if list.shape != *shape && !is_shorter {
            return Err(format!(
                "a list of shape {:?}, where most have {shape:?}",
                list.shape
            ));
        }
        let is_whole = self.column.kind == ColumnKind::Whole;
        let (values, rest) = out.split_at_mut(4 * list.values.len());
        for (out, value) in values.chunks_exact_mut(4).zip(&list.values) {
            let bytes = match is_whole {
                true if value.is_nan() => NO_NUMBER.to_le_bytes(),
                true => (*value as i32).to_le_bytes(),
                false => (*value as f32).to_le_bytes(),
            };
            out.copy_from_slice(&bytes);
        }
        if !is_whole
            && let Some(large) = list
                .values
                .iter()
                .find(|value| (**value as f32).is_infinite())
        {
            return Err(format!("{large:e} is too large for a number of 32 bits"));
        }
        // Numbers that are missing are NaN already.
        if is_whole {
            for out in rest.chunks_exact_mut(4) {
                out.copy_from_slice(&PADDING.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// The number that a cell stands for; NaN, which is a missing one, where it says so.
fn number(cell: &Cell<'_>) -> Result<f64, String> {
    let value = match cell {
        Cell::Missing | Cell::List(_) | Cell::Wrong(_) => f64::NAN,
        Cell::Whole(value) => *value as f64,
        Cell::Float(value) => *value,
        Cell::Bool(value) => f64::from(*value),
        Cell::Plain(text) | Cell::Text(text) => match text.trim() {
            "true" | "True" | "TRUE" => 1.0,
            "false" | "False" | "FALSE" => 0.0,
            text => text.parse().map_err(|_| {
                let shown = format!("`{}` is not a number", shorten(text));
                match text.replacen(',', ".", 1).parse::<f64>() {
                    Ok(_) => {
                        format!("{shown}; for decimals behind a comma write `decimal = \",\"`")
                    }
                    Err(_) => shown,
                }
            })?,
        },
    };
    let shown = || shorten(&cell.text().unwrap_or_default());
    match value {
        _ if value.is_infinite() => Err(format!("`{}` is not a finite number", shown())),
        // Networks compute with 32 bits.
        _ if value.abs() > f64::from(f32::MAX) => Err(format!(
            "`{}` is too large for a number of 32 bits, which reach 3.4e38",
            shown()
        )),
        _ => Ok(value),
    }
}

/// The beginning of a text.
pub fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
