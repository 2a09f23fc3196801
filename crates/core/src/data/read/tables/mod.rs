//! Tables: CSV, JSON lines, Parquet. Each row is an item, and every key or column a column.
//!
//! Files are read twice: first to infer the kind of each column, over all rows of all files, then into records. A
//! column whose values are all numbers is numeric. Others are categorical if there are few distinct texts (at most 20,
//! or at most 1,000 and half as many as rows) and all of them are short, and otherwise text; dates and times that begin
//! with year and month are always categories, so that they can be ordered. A target is also categorical if it contains
//! at most 20 distinct integers, or at most 1,000 short texts. Settings in the experiment override all of that. Names
//! of categories are sorted, as numbers if all of them are numbers.
//!
//! Rows are parsed and encoded by all threads and written in order. Memory holds some MiB of rows and the names of
//! categories, whatever the size of the files.

mod cell;
mod csv;
mod encode;
mod ends;
pub mod head;
pub(in crate::data) mod image;
pub mod incoming;
mod infer;
mod json_lines;
mod number;
mod odd;
#[cfg(feature = "parquet")]
mod parquet;
mod source;
#[cfg(test)]
mod tests;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::{Watch, bad_item, counted, parts, unreadable, unwritable};
use crate::data::DataError;
use crate::data::oddity::Oddity;
use crate::data::records::Writer;
use crate::diagnostic::Reason;
use crate::disk;
use crate::spec::data::{FilesSpec, Format, ImageSpec, OnBadItem};
use cell::{Cell, Cells};
use encode::Encoder;
use ends::Ends;
use infer::Columns;
pub use source::MAX_ROW;
use writing::Writing;

/// Rows that are read before they are parsed together.
const BATCH_ROWS: usize = 1 << 14;
/// Bytes of rows that are read before they are parsed.
const BATCH_BYTES: usize = 8 << 20;
/// Rows that one thread processes at a time.
const CHUNK: usize = 512;

/// A format of tables.
trait Table: Sync {
    /// An unparsed row, to be parsed by any thread.
    type Row: Send + Sync;

    /// The rows of a file; `seen` counts the bytes read.
    fn open(&self, path: &Path, seen: &Arc<AtomicU64>) -> Result<Rows<Self::Row>, DataError>;

    /// The cells of a row, or why there are none.
    fn cells<'r>(&self, row: &'r Self::Row) -> Result<Cells<'r>, Reason>;

    /// Approximate memory of a row in bytes.
    fn size(row: &Self::Row) -> usize;

    /// A row as text; `number` is its line, or its row from 1.
    fn place(path: &Path, number: u64) -> String {
        format!("`{}:{number}`", path.display())
    }
}

/// Rows with the number that identifies their place.
type Rows<R> = Box<dyn Iterator<Item = Result<(u64, R), DataError>>>;

/// Reads the files into the writer.
pub fn read(files: &FilesSpec, writer: &mut Writer, watch: Watch<'_>) -> Result<(), DataError> {
    if let Some(table) = csv::Csv::of(files) {
        return read_table(&table, files, writer, watch);
    }
    match &files.format {
        #[cfg(feature = "parquet")]
        Format::Parquet => read_table(&parquet::Parquet::of(files), files, writer, watch),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(without_parquet()),
        _ => read_table(&json_lines::JsonLines::of(files), files, writer, watch),
    }
}

#[cfg(not(feature = "parquet"))]
fn without_parquet() -> DataError {
    DataError::new("this build of runner does not read Parquet")
        .help("build it with `--features parquet`, or save the table as CSV")
}

fn read_table<T: Table>(
    table: &T,
    files: &FilesSpec,
    writer: &mut Writer,
    watch: Watch<'_>,
) -> Result<(), DataError> {
    let mut total = 0;
    for path in parts(files).flat_map(|(_, paths)| paths) {
        let metadata =
            disk::metadata(Path::new(path)).map_err(|e| unreadable(Path::new(path), &e))?;
        // Each file is read twice.
        total += 2 * metadata.len();
    }
    let seen = Arc::new(AtomicU64::new(0));
    let progress = || watch(seen.load(Ordering::Relaxed).min(total), total);
    let writing = Writing::of(files);
    let (columns, mut oddities) = look(table, files, &writing, writer, &seen, &progress)?;
    // An invalid value must not hide a wrong name.
    let wrong_name = columns.check_names(files).err();
    let both = |error: DataError| match &wrong_name {
        Some(wrong) => error.and(wrong.clone()),
        None => error,
    };
    let has_types = !matches!(files.format, Format::Csv { .. });
    // If a single row explains the problem, only that row is reported.
    let rows: Vec<String> = oddities
        .iter()
        .flat_map(|odd| odd.columns.clone())
        .collect();
    let mut of_columns = columns.oddities(&files.roles, has_types);
    of_columns.retain(|odd| !odd.columns.iter().any(|name| rows.contains(name)));
    oddities.extend(of_columns);
    let mut nearly = columns.nearly_numbers(&files.roles);
    // One explanation is enough.
    nearly.retain(|nearly| {
        !oddities
            .iter()
            .any(|odd| odd.columns.contains(&nearly.column))
    });
    writer.note_nearly_numbers(nearly);
    writer.note_oddities(oddities);
    let decided = columns.decide(&files.roles).map_err(both)?;
    let folder = |image: &ImageSpec| image.folder.first().map(PathBuf::from);
    let ignore = &files.roles.ignore;
    let encoder = Encoder::new(decided, ignore).with_images(&files.roles, folder);
    writer.begin(encoder.columns());
    for (part, paths) in parts(files) {
        writer.part(part);
        for path in paths.iter().map(Path::new) {
            writer.begin_file();
            batches(table, path, &seen, |rows| {
                encode_rows((table, &writing), files, &encoder, writer, path, rows)?;
                progress();
                Ok(())
            })
            .map_err(|error| both(error.or_key(part.key())))?;
        }
    }
    watch(total, total);
    wrong_name.map_or(Ok(()), Err)
}

/// The place of the first row with a given value of a column; `None` means a missing one. Reads the files again, only
/// for messages.
pub fn first_place(
    files: &FilesSpec,
    column: &str,
    is_asked: &dyn Fn(Option<&str>) -> bool,
) -> Option<String> {
    match &files.format {
        Format::Csv { .. } => find(&csv::Csv::of(files)?, files, column, is_asked),
        Format::JsonLines => find(&json_lines::JsonLines::of(files), files, column, is_asked),
        #[cfg(feature = "parquet")]
        Format::Parquet => find(&parquet::Parquet::of(files), files, column, is_asked),
        _ => None,
    }
}

fn find<T: Table>(
    table: &T,
    files: &FilesSpec,
    column: &str,
    is_asked: &dyn Fn(Option<&str>) -> bool,
) -> Option<String> {
    let seen = Arc::new(AtomicU64::new(0));
    let writing = Writing::of(files);
    for path in parts(files).flat_map(|(_, paths)| paths).map(Path::new) {
        for row in table.open(path, &seen).ok()? {
            let (number, row) = row.ok()?;
            let Ok(cells) = table.cells(&row) else {
                continue;
            };
            let cells = writing.read(cells);
            let cell = cells.iter().find(|(name, _)| name == column);
            let holds = match cell.map(|(_, cell)| cell) {
                // Missing numbers inside a list.
                Some(Cell::List(list)) => {
                    list.values.iter().any(|value| value.is_nan()) && is_asked(None)
                }
                cell => is_asked(cell.and_then(Cell::text).as_deref()),
            };
            if holds {
                return Some(T::place(path, number));
            }
        }
    }
    None
}

/// The columns of some rows, in chunks, each with its first row that cannot be decoded.
fn see<T: Table>(
    table: &T,
    (files, writing): (&FilesSpec, &Writing<'_>),
    known: &Columns,
    rows: &[(u64, T::Row)],
) -> Vec<(Columns, Option<(u64, String)>)> {
    let chunks = rows.par_chunks(CHUNK).map(|rows| {
        let mut columns = known.follow();
        let mut wrong = None;
        for (number, row) in rows {
            match table.cells(row) {
                Ok(cells) => {
                    if !files.roles.values.strip.is_empty() {
                        columns.see_marks(&cells);
                    }
                    columns.see(&files.roles, writing.read(cells), *number);
                }
                Err(Reason(reason)) => wrong = wrong.or(Some((*number, reason))),
            }
        }
        (columns, wrong)
    });
    chunks.collect()
}

/// Refuses a file without rows or values.
fn check_content(path: &Path, own: &Columns, any_wrong: bool) -> Result<(), DataError> {
    if own.rows == 0 {
        let rows = if any_wrong {
            "no row that can be decoded"
        } else {
            "no rows"
        };
        return Err(DataError::new(format!("`{}` has {rows}", path.display()))
            .help("use a file with one row per item"));
    }
    if own.names().next().is_none() {
        return Err(
            DataError::new(format!("`{}` has rows without values", path.display()))
                .help("use a file whose rows contain a value in each column"),
        );
    }
    Ok(())
}

/// Infers the columns of all files.
fn look<T: Table>(
    table: &T,
    files: &FilesSpec,
    writing: &Writing<'_>,
    writer: &mut Writer,
    seen: &Arc<AtomicU64>,
    progress: &dyn Fn(),
) -> Result<(Columns, Vec<Oddity>), DataError> {
    let mut all = Columns::default();
    let mut oddities = Vec::new();
    let mut first: Option<(&Path, Vec<String>)> = None;
    for (part, path) in parts(files).flat_map(|(part, paths)| paths.iter().map(move |p| (part, p)))
    {
        let path = Path::new(path);
        let mut own = Columns::default();
        let mut any_wrong = false;
        let mut ends = Ends::default();
        batches(table, path, seen, |rows| {
            ends.see(table, &rows);
            for (columns, wrong) in see(table, (files, writing), &own, &rows) {
                any_wrong |= wrong.is_some();
                // Skipped rows are reported when the others are encoded.
                if let Some((number, reason)) =
                    wrong.filter(|_| files.on_bad_item == OnBadItem::Refuse)
                {
                    bad_item(files, writer, T::place(path, number), reason)?;
                }
                own.merge(columns, &files.roles);
            }
            own.check_number(path)?;
            progress();
            Ok(())
        })
        .map_err(|error| error.or_key(part.key()))?;
        oddities.extend(ends.oddities::<T>(path, files, &own));
        own.place(|number| T::place(path, number));
        own.check_lists(|number| T::place(path, number))
            .map_err(|error| error.or_key(part.key()))?;
        check_content(path, &own, any_wrong).map_err(|error| error.key(part.key()))?;
        let mut names: Vec<_> = own.names().map(str::to_owned).collect();
        names.retain(|name| !files.roles.ignore.contains(name));
        match &first {
            None => first = Some((path, names)),
            Some((other, others)) => {
                agree((path, &names), (other, others)).map_err(|error| error.or_key(part.key()))?
            }
        }
        all.merge(own, &files.roles);
    }
    Ok((all, oddities))
}

/// Refuses files with different columns.
fn agree(
    (path, names): (&Path, &[String]),
    (first, first_names): (&Path, &[String]),
) -> Result<(), DataError> {
    let lacking = |of: &[String], among: &[String]| {
        let names = of.iter().filter(|name| !among.contains(name));
        names.cloned().collect::<Vec<_>>()
    };
    let (missing, more) = (lacking(first_names, names), lacking(names, first_names));
    let (has, lacks, names) = match (missing.is_empty(), more.is_empty()) {
        (true, true) => return Ok(()),
        (false, _) => (first, path, missing),
        (true, false) => (path, first, more),
    };
    let quoted: Vec<_> = names
        .iter()
        .take(8)
        .map(|name| format!("`{name}`"))
        .collect();
    Err(DataError::new(format!(
        "`{}` lacks {} of `{}`: {}{}",
        lacks.display(),
        counted(names.len(), "column"),
        has.display(),
        quoted.join(", "),
        if names.len() > quoted.len() {
            ", …"
        } else {
            ""
        }
    ))
    .help("all files of a data set must have the same columns; list unused ones in `ignore`"))
}

/// Passes on the rows of a file, some at a time.
fn batches<T: Table>(
    table: &T,
    path: &Path,
    seen: &Arc<AtomicU64>,
    mut show: impl FnMut(Vec<(u64, T::Row)>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    for row in table.open(path, seen)? {
        let row = row?;
        bytes += T::size(&row.1);
        batch.push(row);
        if batch.len() == BATCH_ROWS || bytes >= BATCH_BYTES {
            show(std::mem::take(&mut batch))?;
            bytes = 0;
        }
    }
    if batch.is_empty() {
        Ok(())
    } else {
        show(batch)
    }
}

fn encode_rows<T: Table>(
    (table, writing): (&T, &Writing<'_>),
    files: &FilesSpec,
    encoder: &Encoder,
    writer: &mut Writer,
    path: &Path,
    rows: Vec<(u64, T::Row)>,
) -> Result<(), DataError> {
    // Records can be much larger than rows, if lists are padded.
    let at_once = (4 * BATCH_BYTES / encoder.record_size().max(1)).max(1);
    for rows in rows.chunks(at_once) {
        let chunks: Vec<_> = rows
            .par_chunks(encoder.rows_of_a_thread())
            .map(|rows| {
                let mut chunk = encode::Chunk::default();
                for (number, row) in rows {
                    let result = table
                        .cells(row)
                        .and_then(|cells| encoder.encode(writing.read(cells), &mut chunk));
                    if let Err(Reason(reason)) = result {
                        let before = chunk.records.len();
                        chunk.bad.push((before, T::place(path, *number), reason));
                    }
                }
                chunk
            })
            .collect();
        for chunk in chunks {
            let encode::Chunk {
                mut records,
                texts,
                bad,
            } = chunk;
            for (at, text) in texts {
                let place = writer.text(&text).map_err(|e| unwritable(&e))?;
                records[at..at + place.len()].copy_from_slice(&place);
            }
            let mut start = 0;
            for (before, place, reason) in bad {
                writer
                    .push(&records[start..before])
                    .map_err(|e| unwritable(&e))?;
                bad_item(files, writer, place, reason)?;
                start = before;
            }
            writer.push(&records[start..]).map_err(|e| unwritable(&e))?;
        }
    }
    Ok(())
}
