//! Apache Parquet.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, List as Values};

use super::cell::{Cell, Cells, List};
use super::{Rows, Table};
use crate::data::DataError;
use crate::data::read::unreadable;
use crate::diagnostic::Reason;
use crate::spec::data::{FilesSpec, date_of};
use crate::spec::plain_file;

/// Columnar files. Dates and times become texts that sort by time, lists of numbers columns of several values.
pub struct Parquet<'a> {
    /// Columns that may contain anything.
    pub ignore: &'a [String],
}

impl<'a> Parquet<'a> {
    /// As set in the experiment.
    pub fn of(files: &'a FilesSpec) -> Self {
        Self {
            ignore: &files.roles.ignore,
        }
    }
}

impl Table for Parquet<'_> {
    type Row = Vec<(String, Field)>;

    fn open(&self, path: &Path, seen: &Arc<AtomicU64>) -> Result<Rows<Self::Row>, DataError> {
        let file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
        let metadata = file.metadata().map_err(|e| unreadable(path, &e))?;
        if metadata.is_dir() {
            let error = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            return Err(unreadable(path, &error));
        }
        let shown = path.display();
        if metadata.len() == 0 {
            return Err(DataError::new(format!("`{shown}` is empty")));
        }
        let broken = {
            let shown = format!("`{shown}`");
            move |error: ParquetError| {
                let reason = error.to_string();
                let reason = reason.trim_start_matches("Parquet error: ");
                DataError::new(format!("{shown} is damaged: {reason}"))
                    .help("create or copy the file again")
            }
        };
        let reader = guard(|| SerializedFileReader::new(file)).map_err(&broken)?;
        check_places(reader.metadata(), metadata.len()).map_err(&broken)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let mut names = BTreeSet::new();
        for field in schema.root_schema().get_fields() {
            if !names.insert(field.name().to_owned()) {
                return Err(DataError::new(format!(
                    "`{shown}` has two columns named `{}`",
                    field.name()
                ))
                .help("give each column a different name"));
            }
        }
        let num = u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
        let share = metadata.len() / num.max(1);
        let seen = Arc::clone(seen);
        let mut rows = reader.into_iter();
        let mut number = 0;
        let mut is_broken = false;
        Ok(Box::new(std::iter::from_fn(move || {
            if is_broken {
                return None;
            }
            number += 1;
            seen.fetch_add(share, Ordering::Relaxed);
            let row = guard(|| rows.next().transpose()).transpose()?;
            is_broken = row.is_err();
            Some(row.map(|row| (number, row.into_columns())).map_err(&broken))
        })))
    }

    fn cells<'r>(&self, row: &'r Vec<(String, Field)>) -> Result<Cells<'r>, Reason> {
        row.iter()
            .map(|(name, field)| {
                let cell = match cell(field) {
                    Ok(cell) => cell,
                    Err(_) if self.ignore.contains(name) => Cell::Missing,
                    Err(reason) => return Err(Reason(format!("column `{name}`: {reason}"))),
                };
                Ok((Cow::Borrowed(name.as_str()), cell))
            })
            .collect()
    }

    fn size(row: &Vec<(String, Field)>) -> usize {
        let sizes = row.iter().map(|(name, field)| {
            let value = match field {
                Field::Str(text) => text.len(),
                Field::Bytes(bytes) => bytes.len(),
                Field::ListInternal(list) => 64 * list.len(),
                _ => 0,
            };
            64 + name.len() + value
        });
        sizes.sum()
    }

    fn place(path: &Path, number: u64) -> String {
        format!("`{}`, row {number}", path.display())
    }
}

/// The crate panics on some damaged files.
fn guard<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(ParquetError::General(
            text.unwrap_or("its metadata contradicts itself").to_owned(),
        ))
    })
}

/// Refuses columns that claim to lie outside the file.
fn check_places(metadata: &ParquetMetaData, len: u64) -> Result<(), ParquetError> {
    let columns = metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns());
    for column in columns {
        let start = column
            .dictionary_page_offset()
            .unwrap_or(column.data_page_offset());
        let end = start.checked_add(column.compressed_size());
        let is_inside =
            start >= 0 && column.compressed_size() >= 0 && end.is_some_and(|end| end as u64 <= len);
        if !is_inside {
            let reason = format!("the column {} lies outside the file", column.column_path());
            return Err(ParquetError::General(reason));
        }
    }
    Ok(())
}

fn cell(field: &Field) -> Result<Cell<'_>, Reason> {
    let text = |text: String| Cell::Text(Cow::Owned(text));
    Ok(match field {
        Field::Null => Cell::Missing,
        Field::Bool(value) => Cell::Bool(*value),
        Field::Byte(value) => Cell::Whole(i128::from(*value)),
        Field::Short(value) => Cell::Whole(i128::from(*value)),
        Field::Int(value) => Cell::Whole(i128::from(*value)),
        Field::Long(value) => Cell::Whole(i128::from(*value)),
        Field::UByte(value) => Cell::Whole(i128::from(*value)),
        Field::UShort(value) => Cell::Whole(i128::from(*value)),
        Field::UInt(value) => Cell::Whole(i128::from(*value)),
        Field::ULong(value) => Cell::Whole(i128::from(*value)),
        Field::Float16(value) => Cell::Float(f64::from(*value)),
        Field::Float(value) => Cell::Float(f64::from(*value)),
        Field::Double(value) => Cell::Float(*value),
        // Its own text form is exact.
        Field::Decimal(_) => Cell::Plain(Cow::Owned(field.to_string())),
        Field::Str(value) => Cell::Text(Cow::Borrowed(value)),
        Field::Bytes(value) => match std::str::from_utf8(value.data()) {
            Ok(value) => Cell::Text(Cow::Borrowed(value)),
            Err(_) => return Err("it is not UTF-8 text".into()),
        },
        Field::Date(days) => text(date_of(i64::from(*days))),
        Field::TimeMillis(millis) => text(time(i64::from(*millis) * 1000)),
        Field::TimeMicros(micros) => text(time(*micros)),
        Field::TimestampMillis(millis) => text(timestamp(i128::from(*millis) * 1000)),
        Field::TimestampMicros(micros) => text(timestamp(i128::from(*micros))),
        Field::ListInternal(values) => Cell::List(list(values)?),
        Field::Group(_) | Field::MapInternal(_) => {
            return Err(
                "nested columns; flatten them into separate columns, or list it in `ignore`".into(),
            );
        }
    })
}

fn list(values: &Values) -> Result<List, Reason> {
    let mut list = List::new();
    let is_nested = matches!(values.elements().first(), Some(Field::ListInternal(_)));
    for value in values.elements() {
        match value {
            Field::ListInternal(inner) if is_nested => {
                if !list.nest(self::list(inner)?) {
                    return Err("its inner lists have different lengths".into());
                }
            }
            _ if is_nested => return Err("a list that mixes lists and single values".into()),
            value => match cell(value)? {
                Cell::Missing => list.push(None),
                Cell::Bool(value) => list.push(Some(f64::from(value))),
                Cell::Whole(value) => list.push(Some(value as f64)),
                Cell::Float(value) => list.push(Some(value)),
                _ => return Err("a list that contains something other than numbers".into()),
            },
        }
    }
    Ok(list)
}

const DAY: i128 = 86_400_000_000;

/// `12:30:05`, with a fraction if there is one, from microseconds since midnight.
fn time(micros: i64) -> String {
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let whole = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
    match fraction {
        0 => whole,
        _ => format!("{whole}.{fraction:06}"),
    }
}

/// `2024-01-31T12:30:05`, from microseconds since 1970.
fn timestamp(micros: i128) -> String {
    let days = i64::try_from(micros.div_euclid(DAY)).unwrap_or(0);
    let rest = i64::try_from(micros.rem_euclid(DAY)).unwrap_or(0);
    format!("{}T{}", date_of(days), time(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_753, "2024-01-31"),
            (-25_509, "1900-02-28"),
            (-25_508, "1900-03-01"),
        ];
        for (days, text) in cases {
            assert_eq!(date_of(days), text);
        }
        assert_eq!(timestamp(-1_000_000), "1969-12-31T23:59:59");
        assert_eq!(
            timestamp(1_706_704_205_000_001),
            "2024-01-31T12:30:05.000001"
        );
    }
}
