//! Rows into records, once the kinds of the columns are known.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::CHUNK;
use super::cell::{Cell, Cells, List};
use super::image::Images;
use super::infer::{Decided, Names};
use crate::data::records::{Column, ColumnKind, NO_NUMBER, NO_TEXT};
use crate::diagnostic::Reason;
use crate::spec::data::{ImageSpec, RolesSpec};

/// Padding of a list of integers that is shorter than others.
const PADDING: i32 = -1;
/// Rows with images that one thread decodes at a time.
const IMAGE_CHUNK: usize = 4;

/// Turns rows into records.
#[derive(Debug)]
pub struct Encoder {
    names: Names,
    columns: Vec<Encoded>,
    /// A record in which every value is missing.
    empty: Vec<u8>,
    /// The columns that must have a value: no byte means missing, and a black image is an item like others.
    needed: Vec<usize>,
}

#[derive(Debug)]
struct Encoded {
    column: Column,
    /// The position of its value in a record.
    start: usize,
    is_padded: bool,
    /// Unused columns need not be readable.
    is_ignored: bool,
    /// Whether the names of categories are those that a run was trained on, instead of those of the file that is read.
    is_known: bool,
    codes: BTreeMap<String, i32>,
    /// The images that its values name, if they do.
    images: Option<Images>,
}

/// Records of some rows.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The records, with the positions of texts to be filled in.
    pub records: Vec<u8>,
    /// Texts, and the positions that refer to them.
    pub texts: Vec<(usize, String)>,
    /// Rows without a record: the bytes of the records before them, their places, and the reasons.
    pub bad: Vec<(usize, String, String)>,
}

impl Encoder {
    /// For some columns, not all of which are used.
    pub fn new(columns: Vec<Decided>, ignore: &[String]) -> Self {
        let mut names = Names::default();
        let mut empty = Vec::new();
        let columns: Vec<Encoded> = columns
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
                    is_known: false,
                    column,
                    start,
                    is_padded,
                    codes,
                    images: None,
                }
            })
            .collect();
        let is_needed = |at: &usize| {
            let of: &Encoded = &columns[*at];
            of.column.kind == ColumnKind::Bytes && !of.is_ignored
        };
        Self {
            needed: (0..columns.len()).filter(is_needed).collect(),
            names,
            columns,
            empty,
        }
    }

    /// For the columns that a run was trained on: a category that is not among theirs is unknown.
    pub fn of_known(columns: Vec<Decided>, ignore: &[String]) -> Self {
        let mut encoder = Self::new(columns, ignore);
        for column in &mut encoder.columns {
            column.is_known = true;
        }
        encoder
    }

    /// The same with the images that used columns name; `folder` is where those of a column are.
    pub fn with_images(
        mut self,
        roles: &RolesSpec,
        folder: impl Fn(&ImageSpec) -> Option<PathBuf>,
    ) -> Self {
        for column in self.columns.iter_mut().filter(|column| !column.is_ignored) {
            let image = roles.image_of(&column.column.name);
            column.images = image.map(|image| Images::new(image, folder(image)));
        }
        self
    }

    /// Refuses paths of images: rows that do not come from files here must not name any.
    pub fn refuse_paths(&mut self) {
        for images in self.columns.iter_mut().filter_map(|of| of.images.as_mut()) {
            images.forget_folder();
        }
    }

    /// Rows that one thread processes at a time.
    pub fn rows_of_a_thread(&self) -> usize {
        if self.columns.iter().any(|column| column.images.is_some()) {
            IMAGE_CHUNK
        } else {
            CHUNK
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

    /// Adds the record of a row, or nothing and returns the error.
    pub fn encode(&self, cells: Cells<'_>, chunk: &mut Chunk) -> Result<(), Reason> {
        let (start, num_texts) = (chunk.records.len(), chunk.texts.len());
        chunk.records.extend_from_slice(&self.empty);
        let mut unseen = self.needed.clone();
        let result = cells
            .into_iter()
            .enumerate()
            .try_for_each(|(guess, (name, cell))| {
                let Some(at) = self.names.place(&name, guess) else {
                    return Ok(());
                };
                let column = &self.columns[at];
                unseen.retain(|other| *other != at);
                let result = column.encode(cell, start, chunk);
                if column.is_ignored {
                    return Ok(());
                }
                result
                    .map_err(|reason| Reason(format!("column `{}`: {reason}", column.column.name)))
            });
        let result = result.and_then(|()| match unseen.first() {
            None => Ok(()),
            Some(at) => {
                let column = &self.columns[*at];
                let (name, reason) = (&column.column.name, column.lack());
                Err(Reason(format!("column `{name}`: {reason}")))
            }
        });
        if result.is_err() {
            chunk.records.truncate(start);
            chunk.texts.truncate(num_texts);
        }
        result
    }
}

impl Encoded {
    /// The reason for which a row without a value is refused.
    fn lack(&self) -> &'static str {
        match self.images {
            Some(_) => "there is no image",
            None => "there is no value",
        }
    }

    fn encode(&self, cell: Cell<'_>, record: usize, chunk: &mut Chunk) -> Result<(), Reason> {
        let start = record + self.start;
        let size = self.column.len() * self.column.kind.size();
        if let Some(images) = &self.images {
            let out = &mut chunk.records[start..start + size];
            return match cell {
                Cell::Missing => Err(self.lack().into()),
                Cell::Wrong(reason) => Err(reason),
                Cell::List(list) => self.encode_list(&list, out),
                cell => images.read(&cell.text().unwrap_or_default(), out),
            };
        }
        match (&self.column.kind, cell) {
            (ColumnKind::Bytes, Cell::Missing) => return Err(self.lack().into()),
            (_, Cell::Missing) => {}
            (_, Cell::Wrong(reason)) => return Err(reason),
            (
                ColumnKind::Numbers | ColumnKind::Whole | ColumnKind::Bytes | ColumnKind::Doubles,
                Cell::List(list),
            ) if !self.column.shape.is_empty() => {
                let out = &mut chunk.records[start..start + size];
                self.encode_list(&list, out)?;
            }
            (_, Cell::List(_)) => return Err("a list, where others contain single values".into()),
            (ColumnKind::Categories { .. }, cell) => {
                let text = cell.text().unwrap_or_default();
                let Some(code) = self.code(&text) else {
                    if self.is_known {
                        return Err(Reason(unknown(&text, self.codes.keys())));
                    }
                    return Err(Reason(format!(
                        "`{}` appeared while the file was being read",
                        shorten(&text)
                    )));
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
            // Columns of arrays may have single values of these kinds, too.
            (ColumnKind::Whole | ColumnKind::Numbers | ColumnKind::Bytes, cell)
                if self.column.shape.is_empty() =>
            {
                let number = number(&cell)?;
                self.encode_value(number, &mut chunk.records[start..start + size])?;
            }
            _ => return Err("a single value, where others contain lists".into()),
        }
        Ok(())
    }

    /// The code of a category. One of new data may be written otherwise than in training: programs write integers next
    /// to missing values as `1.0`, and truth as `true`, `True` or `TRUE`.
    fn code(&self, text: &str) -> Option<i32> {
        if let Some(code) = self.codes.get(text) {
            return Some(*code);
        }
        let meant = plain(text);
        let mut same = self.codes.iter().filter(|(name, _)| plain(name) == meant);
        match (same.next(), same.next()) {
            (Some((_, code)), None) if self.is_known => Some(*code),
            _ => None,
        }
    }

    fn encode_list(&self, list: &List, out: &mut [u8]) -> Result<(), Reason> {
        let shape = &self.column.shape;
        let size = self.column.kind.size();
        let is_shorter =
            self.is_padded && list.shape.len() == 1 && list.values.len() <= out.len() / size;
        if list.shape != *shape && !is_shorter {
            let others = if self.is_known {
                "the run was trained on"
            } else {
                "most have"
            };
            return Err(Reason(format!(
                "a list of shape {:?}, where {others} {shape:?}",
                list.shape
            )));
        }
        let (values, rest) = out.split_at_mut(size * list.values.len());
        for (out, value) in values.chunks_exact_mut(size).zip(&list.values) {
            self.encode_value(*value, out)?;
        }
        // Numbers that are missing are NaN already.
        if self.column.kind == ColumnKind::Whole {
            for out in rest.chunks_exact_mut(4) {
                out.copy_from_slice(&PADDING.to_le_bytes());
            }
        }
        Ok(())
    }

    /// One number of a list.
    fn encode_value(&self, value: f64, out: &mut [u8]) -> Result<(), Reason> {
        match &self.column.kind {
            ColumnKind::Bytes if value.fract() == 0.0 && (0.0..=255.0).contains(&value) => {
                out[0] = value as u8;
            }
            ColumnKind::Bytes => {
                return Err(Reason(format!("{value} is not a byte from 0 to 255")));
            }
            ColumnKind::Whole if value.is_nan() => out.copy_from_slice(&NO_NUMBER.to_le_bytes()),
            ColumnKind::Whole if self.is_known && value.fract() != 0.0 => {
                return Err(Reason(format!("{value} is not an integer")));
            }
            ColumnKind::Whole => out.copy_from_slice(&(value as i32).to_le_bytes()),
            _ if value.is_infinite() || value.abs() > f64::from(f32::MAX) => {
                return Err(Reason(format!(
                    "{value:e} is too large for a 32-bit number"
                )));
            }
            ColumnKind::Doubles => out.copy_from_slice(&value.to_le_bytes()),
            _ => out.copy_from_slice(&(value as f32).to_le_bytes()),
        }
        Ok(())
    }
}

/// An integer without decimals that are zero, truth in lower case, and any other text as it is.
fn plain(text: &str) -> &str {
    if let Some((whole, decimals)) = text.split_once('.')
        && !decimals.is_empty()
        && decimals.bytes().all(|digit| digit == b'0')
        && whole.parse::<i64>().is_ok()
    {
        return whole;
    }
    let truth = ["true", "false"];
    let truth = truth
        .into_iter()
        .find(|word| text.eq_ignore_ascii_case(word));
    truth.unwrap_or(text)
}

/// Reports that a category is not one of those that a run was trained on.
fn unknown<'a>(text: &str, known: impl Iterator<Item = &'a String> + Clone) -> String {
    const SHOWN: usize = 8;
    let num = known.clone().count();
    let names: Vec<String> = known
        .clone()
        .take(SHOWN)
        .map(|name| format!("`{}`", shorten(name)))
        .collect();
    let more = match num.saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names: String = names.join(", ");
    let meant = crate::diagnostic::nearest(text, known.map(String::as_str));
    let meant = meant.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
    format!(
        "`{}` is not a category that the run was trained on: {names}{more}{meant}",
        shorten(text)
    )
}

/// The number in a cell; NaN for a missing value.
pub fn number(cell: &Cell<'_>) -> Result<f64, Reason> {
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
                        format!("{shown}; for decimal commas, set `decimal = \",\"`")
                    }
                    Err(_) => shown,
                }
            })?,
        },
    };
    let shown = || shorten(&cell.text().unwrap_or_default());
    match value {
        _ if value.is_infinite() => Err(Reason(format!("`{}` is not a finite number", shown()))),
        // Networks compute with 32 bits.
        _ if value.abs() > f64::from(f32::MAX) => Err(Reason(format!(
            "`{}` is too large for a 32-bit float, whose maximum is 3.4e38",
            shown()
        ))),
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
