//! Rows of values with a separator.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use super::cell::{Cell, Cells};
use super::source::{self, Limited, broken};
use super::{Rows, Table};
use crate::data::DataError;

/// How the files are written. Blanks around values do not count; with a blank as the separator,
/// several are one.
pub struct Csv<'a> {
    /// What stands between two values.
    pub delimiter: char,
    /// Whether the first row names the columns.
    pub header: bool,
    /// What stands for a missing value.
    pub missing_values: &'a [String],
}

/// A row.
pub struct Row {
    /// The columns of its file.
    names: Arc<[String]>,
    values: ByteRecord,
}

impl Table for Csv<'_> {
    type Row = Row;

    fn open(&self, path: &Path, seen: &Arc<AtomicU64>) -> Result<Rows<Row>, DataError> {
        let limited = source::open(path, seen)?;
        let (taken, quotes) = (Arc::clone(&limited.taken), Arc::clone(&limited.quotes));
        let mut lines = Lines {
            path: path.to_owned(),
            taken,
            quotes,
            end: Arc::clone(&limited.end),
            last: None,
            record: ByteRecord::new(),
            reader: ReaderBuilder::new()
                .delimiter(self.delimiter as u8)
                .has_headers(false)
                .flexible(true)
                .buffer_capacity(1 << 16)
                .from_reader(limited),
        };
        let shown = path.display();
        let Some(first) = lines.next_record()? else {
            return Err(DataError::new(format!("`{shown}` is empty"))
                .help("give a file with a row for each item, the columns' names first"));
        };
        if first.as_slice().starts_with(&[0xff, 0xfe])
            || first.as_slice().starts_with(&[0xfe, 0xff])
        {
            return Err(DataError::new(format!("`{shown}` is UTF-16 text"))
                .help("save it as UTF-8, such as with `iconv -f utf-16 -t utf-8`"));
        }
        let names = self.names(path, &first)?;
        self.check_delimiter(path, &names, &first)?;
        let first = (!self.header).then_some(first);
        let rows = first.map(Ok).into_iter().chain(lines);
        Ok(Box::new(rows.map(move |values| {
            let values = values?;
            let line = values.position().map_or(0, |place| place.line());
            let row = Row {
                names: Arc::clone(&names),
                values,
            };
            Ok((line, row))
        })))
    }

    fn cells<'r>(&self, row: &'r Row) -> Result<Cells<'r>, String> {
        let num = self.fields(&row.values).count();
        if num != row.names.len() {
            let rest = match num > row.names.len() {
                true => "; a value that holds the delimiter stands in quotes",
                false => "",
            };
            let values = super::counted(num, "value");
            return Err(format!(
                "it has {values}, and there {} {}{rest}",
                if row.names.len() == 1 { "is" } else { "are" },
                super::counted(row.names.len(), "column")
            ));
        }
        let fields = self.fields(&row.values).zip(row.names.iter());
        fields
            .map(|(field, name)| {
                let text = std::str::from_utf8(field)
                    .map_err(|_| format!("column `{name}`: it is not UTF-8 text"))?
                    .trim();
                let is_missing = self.missing_values.iter().any(|missing| missing == text);
                let cell = match is_missing {
                    true => Cell::Missing,
                    false => Cell::Plain(Cow::Borrowed(text)),
                };
                Ok((Cow::Borrowed(name.as_str()), cell))
            })
            .collect()
    }

    fn size(row: &Row) -> usize {
        row.values.as_slice().len() + 8 * row.values.len() + 64
    }
}

impl Csv<'_> {
    fn fields<'r>(&self, values: &'r ByteRecord) -> impl Iterator<Item = &'r [u8]> + use<'r> {
        let is_blank = self.delimiter == ' ';
        values
            .iter()
            .filter(move |field| !is_blank || !field.is_empty())
    }

    /// The columns' names, by the first row or by number.
    fn names(&self, path: &Path, first: &ByteRecord) -> Result<Arc<[String]>, DataError> {
        let shown = path.display();
        let mut names = Vec::new();
        let mut seen = BTreeSet::new();
        for (at, field) in self.fields(first).enumerate() {
            let Ok(name) = std::str::from_utf8(field) else {
                return Err(DataError::new(format!(
                    "the first row of `{shown}` is not UTF-8 text"
                ))
                .help("save the file as UTF-8"));
            };
            // Row numbers that pandas writes have no name.
            let name = match name.trim() {
                name if self.header && !name.is_empty() => name.to_owned(),
                _ => format!("column_{}", at + 1),
            };
            if !seen.insert(name.clone()) {
                let help = match is_numbers(first) {
                    true => "write `header = false` if the first row is data",
                    false => "give each column a name of its own",
                };
                return Err(
                    DataError::new(format!("`{shown}` has two columns `{name}`")).help(help),
                );
            }
            names.push(name);
        }
        if self.header && is_numbers(first) && names.iter().any(|name| name.contains('.')) {
            return Err(DataError::new(format!(
                "the first row of `{shown}` holds numbers and no names of columns"
            ))
            .help("write `header = false`: the columns are then `column_1`, `column_2`, …"));
        }
        Ok(names.into())
    }

    /// Refuses a file with one column whose rows hold another delimiter.
    fn check_delimiter(
        &self,
        path: &Path,
        names: &[String],
        first: &ByteRecord,
    ) -> Result<(), DataError> {
        let others = [(',', ","), (';', ";"), ('\t', "\\t"), ('|', "|")];
        let line = first.as_slice();
        let other = others
            .into_iter()
            .find(|(other, _)| *other != self.delimiter && line.contains(&(*other as u8)));
        match other {
            Some((_, shown)) if names.len() == 1 => Err(DataError::new(format!(
                "`{}` has one column, whose first row holds `{shown}`",
                path.display()
            ))
            .help(format!(
                "write `delimiter = \"{shown}\"` if that stands between values"
            ))),
            _ => Ok(()),
        }
    }
}

/// Whether all values of a row are numbers.
fn is_numbers(row: &ByteRecord) -> bool {
    row.iter().all(|field| {
        let text = std::str::from_utf8(field).unwrap_or_default().trim();
        text.parse::<f64>().is_ok()
    })
}

/// The rows of a file as bytes.
struct Lines {
    path: PathBuf,
    taken: Arc<AtomicU64>,
    quotes: Arc<AtomicU64>,
    end: Arc<AtomicU8>,
    /// The line of the row that was read last and its last value, if that goes over several lines.
    last: Option<(u64, Vec<u8>)>,
    /// Takes in one row after the other; a copy of it is just as large as the row.
    record: ByteRecord,
    reader: Reader<Limited>,
}

impl Lines {
    fn next_record(&mut self) -> Result<Option<ByteRecord>, DataError> {
        self.taken.store(0, Ordering::Relaxed);
        let line = self.reader.position().line();
        let error = match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {
                let record = &self.record;
                let last = record.len().checked_sub(1).and_then(|at| record.get(at));
                let last = last.unwrap_or_default();
                self.last = last.contains(&b'\n').then(|| (line, last.to_vec()));
                return Ok(Some(record.clone()));
            }
            Ok(false) => return self.check_quotes().map(|()| None),
            Err(error) => error,
        };
        let error = match error.into_kind() {
            ErrorKind::Io(error) => error,
            other => std::io::Error::other(format!("{other:?}")),
        };
        let shown = self.path.display();
        Err(match self.taken.load(Ordering::Relaxed) > source::MAX_ROW {
            true => DataError::new(format!("`{shown}:{line}`: {error} begins here"))
                .help("close the quotes: a quote that is left open takes in all rows behind it"),
            false => broken(&self.path, &error),
        })
    }
}

impl Lines {
    /// Refuses a file whose last value takes in all rows behind a quote that was left open.
    fn check_quotes(&self) -> Result<(), DataError> {
        let is_odd = self.quotes.load(Ordering::Relaxed) % 2 == 1;
        // Quotes also stand within values without quotes around them; then the value ends before the file does.
        let ends = [b'\n', b'\r', b'"'].contains(&self.end.load(Ordering::Relaxed));
        match &self.last {
            Some((line, value)) if is_odd && (value.ends_with(b"\n") || !ends) => {
                Err(DataError::new(format!(
                    "`{}:{line}`: a quote that opens in this row is not closed",
                    self.path.display()
                ))
                .help("close it; a quote within a value that stands in quotes is written twice"))
            }
            _ => Ok(()),
        }
    }
}

impl Iterator for Lines {
    type Item = Result<ByteRecord, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}
