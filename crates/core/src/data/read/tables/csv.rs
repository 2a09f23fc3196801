//! Delimiter-separated values.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use super::cell::{Cell, Cells};
use super::head::{Head, above, is_data};
use super::source::{self, Limited};
use super::{Rows, Table};
use crate::data::DataError;
use crate::data::read::broken;
use crate::diagnostic::Reason;
use crate::spec::data::{FilesSpec, Format, RowsSpec};

/// The format of the files. Whitespace around values is ignored; with a space as the delimiter, several count as one,
/// and tabs are spaces.
pub struct Csv<'a> {
    /// The delimiter.
    pub delimiter: char,
    /// Whether the first row contains the column names.
    pub header: bool,
    /// Lines that are not rows.
    pub rows: &'a RowsSpec,
    /// Columns that the experiment uses.
    pub named: Vec<&'a str>,
}

impl<'a> Csv<'a> {
    /// As set in the experiment; `None` for another format.
    pub fn of(files: &'a FilesSpec) -> Option<Self> {
        let Format::Csv {
            delimiter,
            header,
            rows,
            ..
        } = &files.format
        else {
            return None;
        };
        let roles = &files.roles;
        let features = roles.features.iter().flatten();
        let columns = roles.columns.iter().map(|column| &column.name);
        let inputs = roles
            .inputs
            .iter()
            .flat_map(|input| input.columns.iter().flatten());
        let named = features.chain(inputs).chain(roles.targets());
        let named = named.chain(columns).chain(&roles.weight);
        Some(Self {
            delimiter: *delimiter,
            header: *header,
            rows,
            named: named.map(String::as_str).collect(),
        })
    }
}

/// A row.
pub struct Row {
    /// The columns of its file.
    names: Arc<[String]>,
    values: ByteRecord,
    /// Whether each row of the file ends in a delimiter.
    has_trailing: bool,
}

impl Table for Csv<'_> {
    type Row = Row;

    fn open(&self, path: &Path, seen: &Arc<AtomicU64>) -> Result<Rows<Row>, DataError> {
        let mut limited = source::open(path, seen)?;
        limited.tabs_are_blanks = self.delimiter == ' ';
        let skipped = limited
            .skip_lines(self.rows.skip_rows)
            .map_err(|e| broken(path, &e))?;
        let (taken, quotes) = (Arc::clone(&limited.taken), Arc::clone(&limited.quotes));
        let mut lines = Lines {
            path: path.to_owned(),
            taken,
            quotes,
            end: Arc::clone(&limited.end),
            above: skipped,
            last: None,
            record: ByteRecord::new(),
            reader: ReaderBuilder::new()
                .delimiter(self.delimiter as u8)
                .comment(self.rows.comment.map(|sign| sign as u8))
                .has_headers(false)
                .flexible(true)
                .buffer_capacity(1 << 16)
                .from_reader(limited),
        };
        let shown = path.display();
        let Some((line, first)) = lines.next_record()? else {
            let error = match self.rows.skip_rows {
                0 => DataError::new(format!("`{shown}` is empty")),
                num => DataError::new(format!(
                    "`{shown}` has nothing after the {} that `skip_rows` skips",
                    super::counted(num, "line")
                ))
                .key("data.skip_rows"),
            };
            return Err(error.help("use a file with column names first, then one row per item"));
        };
        let head = Head::read(path)?.without(self.rows.skip_rows, self.rows.comment);
        let rows = head.fields(self.delimiter);
        let names = self.names(path, &first)?;
        self.check_delimiter(path, &names, &first, &head)?;
        let has_trailing = has_trailing(&names, &rows);
        if !has_trailing {
            self.check_above(path, &names, &rows)?;
        }
        self.check_header(path, &names, &rows)?;
        let first = (!self.header).then_some((line, first));
        let rows = first.map(Ok).into_iter().chain(lines);
        let rows = rows.skip(self.rows.skip_rows_after_header);
        let rows = WithoutLast::new(rows, self.rows.skip_footer);
        Ok(Box::new(rows.map(move |row| {
            let (line, values) = row?;
            let row = Row {
                names: Arc::clone(&names),
                values,
                has_trailing,
            };
            Ok((line, row))
        })))
    }

    fn cells<'r>(&self, row: &'r Row) -> Result<Cells<'r>, Reason> {
        let mut num = self.fields(&row.values).count();
        let ends_empty = || row.values.iter().next_back().is_some_and(<[u8]>::is_empty);
        if row.has_trailing && num == row.names.len() + 1 && ends_empty() {
            num -= 1;
        }
        if num != row.names.len() {
            let rest = if num > row.names.len() {
                "; a value that contains the delimiter must be quoted"
            } else if num == 1 {
                "; skip notes below the table with `skip_footer`, and comments with `comment`"
            } else {
                ""
            };
            let values = super::counted(num, "value");
            return Err(Reason(format!(
                "it has {values}, but there {} {}{rest}",
                if row.names.len() == 1 { "is" } else { "are" },
                super::counted(row.names.len(), "column")
            )));
        }
        if self.header && num > 1 && self.is_header(row) {
            return Err("it repeats the column names, as in concatenated files; remove it".into());
        }
        let fields = self.fields(&row.values).zip(row.names.iter());
        fields
            .map(|(field, name)| {
                let text = std::str::from_utf8(field).map_err(|_| {
                    let shown = super::encode::shorten(&String::from_utf8_lossy(field));
                    format!("column `{name}`: `{shown}` is not UTF-8 text; a file in Latin-1 becomes UTF-8 with `iconv -f latin1 -t utf-8`")
                })?;
                Ok((Cow::Borrowed(name.as_str()), Cell::Plain(Cow::Borrowed(text.trim()))))
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

    /// Whether a row repeats the header.
    fn is_header(&self, row: &Row) -> bool {
        let mut pairs = self.fields(&row.values).zip(row.names.iter());
        pairs.all(|(field, name)| field.trim_ascii() == name.as_bytes())
    }

    /// Refuses a file whose first line has fewer values than all others: it is not the header.
    fn check_above(
        &self,
        path: &Path,
        names: &[String],
        rows: &[(usize, Vec<String>)],
    ) -> Result<(), DataError> {
        let Some((above @ 1.., num)) = above(rows) else {
            return Ok(());
        };
        let (line, row) = &rows[above];
        let shown = path.display();
        let first_line = rows[0].0;
        let message = format!(
            "line {first_line} of `{shown}` has {}, but those from line {line} on have {num} each",
            super::counted(names.len(), "value")
        );
        let error = DataError::new(message).key("data.path");
        let below: Vec<Vec<String>> = rows[above + 1..]
            .iter()
            .map(|(_, row)| row.clone())
            .collect();
        let sign = rows[0].1.first().and_then(|text| text.chars().next());
        let sign = sign.filter(|sign| ['#', '%', '!', ';', '*'].contains(sign));
        if let Some(sign) = sign.filter(|_| self.rows.comment.is_none()) {
            return Err(error.help(format!(
                "set `comment = \"{sign}\"` under `[data]` to skip lines that begin with it"
            )));
        }
        if above == 1 && num == names.len() + 1 && is_data(row, &below) {
            return Err(error
                .note("R writes such files: the column of row names has no name")
                .help("write the file with `row.names = FALSE`, or add a name and a delimiter at the start of its first line"));
        }
        let skip_rows = line - 1;
        Err(error
            .note("a line with fewer values than all others is probably not the header")
            .help(format!(
                "set `skip_rows = {skip_rows}` under `[data]` if the table begins on line {line}"
            )))
    }

    /// Refuses a first row that looks like data, unless the experiment uses its values as names.
    fn check_header(
        &self,
        path: &Path,
        names: &[String],
        rows: &[(usize, Vec<String>)],
    ) -> Result<(), DataError> {
        let is_named = self
            .named
            .iter()
            .any(|name| names.iter().any(|other| other == name));
        let Some(((_, first), rest)) = rows.split_first().filter(|_| self.header && !is_named)
        else {
            return Ok(());
        };
        let rest: Vec<Vec<String>> = rest.iter().map(|(_, row)| row.clone()).collect();
        if !is_data(first, &rest) {
            return Ok(());
        }
        let shown: Vec<_> = names
            .iter()
            .take(5)
            .map(|name| format!("`{name}`"))
            .collect();
        let more = if names.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        Err(DataError::new(format!(
            "the first row of `{}` contains values instead of column names: {}{more}",
            path.display(),
            shown.join(", ")
        ))
        .help("set `header = false`: the columns are then `column_1`, `column_2`, …"))
    }

    /// The column names, from the first row or by number.
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
            // The column of row numbers that pandas writes has no name.
            let name = match name.trim() {
                name if self.header && !name.is_empty() => name.to_owned(),
                _ => format!("column_{}", at + 1),
            };
            if !seen.insert(name.clone()) {
                let help = "set `header = false` if the first row is data; otherwise give each column a different name";
                return Err(
                    DataError::new(format!("`{shown}` has two columns named `{name}`")).help(help),
                );
            }
            names.push(name);
        }
        Ok(names.into())
    }

    /// Refuses a file with one column whose rows contain another delimiter.
    fn check_delimiter(
        &self,
        path: &Path,
        names: &[String],
        first: &ByteRecord,
        head: &Head,
    ) -> Result<(), DataError> {
        let others = [
            (',', ","),
            (';', ";"),
            ('\t', "\\t"),
            ('|', "|"),
            (' ', " "),
        ];
        let line = first.as_slice();
        let dialect = head.dialect();
        let found = dialect.delimiter;
        let is_below = dialect.skip_rows > 0;
        let is_other = |other: char| match other {
            _ if other == self.delimiter => false,
            ' ' => found == ' ',
            _ => line.contains(&(other as u8)) || is_below && other == found,
        };
        // A delimiter that makes a table of all rows takes precedence over one that only occurs in the first.
        let best = others
            .into_iter()
            .find(|(other, _)| *other == found && is_other(*other));
        let other = best.or_else(|| others.into_iter().find(|(other, _)| is_other(*other)));
        match other {
            Some((' ', shown)) if names.len() == 1 => Err(DataError::new(format!(
                "`{}` has one column, whose values are separated by spaces",
                path.display()
            ))
            .help(format!(
                "set `delimiter = \"{shown}\"` under `[data]`; several spaces then count as one"
            ))),
            Some((other, shown)) if names.len() == 1 && !line.contains(&(other as u8)) => {
                let lines = self.rows.skip_rows.max(dialect.skip_rows);
                Err(DataError::new(format!(
                    "`{}` has one column, and its lines from {} on contain `{shown}`",
                    path.display(),
                    lines + 1
                ))
                .help(format!(
                    "set `delimiter = \"{shown}\"` and `skip_rows = {lines}` under `[data]` if the table begins there"
                )))
            }
            Some((_, shown)) if names.len() == 1 => Err(DataError::new(format!(
                "`{}` has one column, whose first row contains `{shown}`",
                path.display()
            ))
            .help(format!(
                "set `delimiter = \"{shown}\"` if it separates values"
            ))),
            _ => Ok(()),
        }
    }
}

/// Whether rows end in a delimiter that the header does not have: their last value is empty.
fn has_trailing(names: &[String], rows: &[(usize, Vec<String>)]) -> bool {
    let mut below = rows.iter().skip(1).map(|(_, row)| row).peekable();
    let is_longer = |row: &Vec<String>| {
        row.len() == names.len() + 1 && row.last().is_some_and(String::is_empty)
    };
    below.peek().is_some() && below.all(is_longer)
}

/// Items except the last ones. Errors are passed on at once.
struct WithoutLast<I, T> {
    inner: I,
    num: usize,
    held: VecDeque<T>,
}

impl<T, E, I: Iterator<Item = Result<T, E>>> WithoutLast<I, T> {
    fn new(inner: I, num: usize) -> Self {
        let held = VecDeque::new();
        Self { inner, num, held }
    }
}

impl<T, E, I: Iterator<Item = Result<T, E>>> Iterator for WithoutLast<I, T> {
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.held.len() <= self.num {
            match self.inner.next()? {
                Ok(item) => self.held.push_back(item),
                Err(error) => return Some(Err(error)),
            }
        }
        self.held.pop_front().map(Ok)
    }
}

/// The rows of a file as bytes.
struct Lines {
    path: PathBuf,
    taken: Arc<AtomicU64>,
    quotes: Arc<AtomicU64>,
    end: Arc<AtomicU8>,
    /// Skipped lines above the table.
    above: u64,
    /// The line and the last value of the previous row, if that value spans several lines.
    last: Option<(u64, Vec<u8>)>,
    /// Buffers one row after the other; a copy is exactly as large as the row.
    record: ByteRecord,
    reader: Reader<Limited>,
}

impl Lines {
    /// The next row, with the line that it begins in.
    fn next_record(&mut self) -> Result<Option<(u64, ByteRecord)>, DataError> {
        self.taken.store(0, Ordering::Relaxed);
        let line = self.above + self.reader.position().line();
        let error = match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {
                let line = self.above + self.first_line();
                let record = &self.record;
                let last = record.len().checked_sub(1).and_then(|at| record.get(at));
                let last = last.unwrap_or_default();
                self.last = last.contains(&b'\n').then(|| (line, last.to_vec()));
                return Ok(Some((line, record.clone())));
            }
            Ok(false) => return self.check_quotes().map(|()| None),
            Err(error) => error,
        };
        let error = match error.into_kind() {
            ErrorKind::Io(error) => error,
            other => std::io::Error::other(format!("{other:?}")),
        };
        let shown = self.path.display();
        Err(if self.taken.load(Ordering::Relaxed) > source::MAX_ROW {
            DataError::new(format!("`{shown}:{line}`: {error} begins here"))
                .help("close the quotes: an open quote swallows all rows after it")
        } else {
            broken(&self.path, &error)
        })
    }
}

impl Lines {
    /// The line that the row begins in which was read at last. The reader's own position is before the blank lines and
    /// comments above it and, after `\r\n`, before the `\n`.
    fn first_line(&self) -> u64 {
        let place = self.reader.position();
        let end = place.byte().checked_sub(1);
        let bytes = self.reader.get_ref();
        // The last row may end with the file, within an open quote.
        let ends_line = !bytes.is_ended && end.and_then(|at| bytes.byte(at)) == Some(b'\n');
        let within = self.record.as_slice().iter().filter(|byte| **byte == b'\n');
        let after = within.count() as u64 + u64::from(ends_line);
        place.line().saturating_sub(after)
    }

    /// Refuses a file whose last value swallows all rows after an open quote.
    fn check_quotes(&self) -> Result<(), DataError> {
        let is_odd = self.quotes.load(Ordering::Relaxed) % 2 == 1;
        // Quotes also occur within unquoted values; then the value ends before the file does.
        let ends = [b'\n', b'\r', b'"'].contains(&self.end.load(Ordering::Relaxed));
        match &self.last {
            Some((line, value)) if is_odd && (value.ends_with(b"\n") || !ends) => {
                Err(DataError::new(format!(
                    "`{}:{line}`: a quote that opens in this row is never closed",
                    self.path.display()
                ))
                .help("close it; a quote within a quoted value must be doubled"))
            }
            _ => Ok(()),
        }
    }
}

impl Iterator for Lines {
    /// A row with the number of its line.
    type Item = Result<(u64, ByteRecord), DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}
