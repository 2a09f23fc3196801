//! Streams arrays in parallel, item by item, into records: a piece at a time.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use rayon::prelude::*;

use super::{Array, Open, damaged, wrong_length};
use crate::data::DataError;
use crate::data::read::{Watch, bad_item, missing_is_bad, unwritable};
use crate::data::records::{self, Column, ColumnKind, NO_NUMBER, Writer};
use crate::show::plain_io_error;
use crate::spec::data::FilesSpec;

/// The number of bytes that are read at once.
const PIECE: usize = 4 << 20;

/// Progress over all files.
pub struct Progress<'a> {
    watch: Watch<'a>,
    done: usize,
    total: usize,
}

impl<'a> Progress<'a> {
    /// Total number of items.
    pub fn new(watch: Watch<'a>, total: usize) -> Self {
        Self {
            watch,
            done: 0,
            total,
        }
    }

    fn advance(&mut self, items: usize) {
        self.done += items;
        (self.watch)(self.done as u64, self.total as u64);
    }
}

/// The values of a column: an array, and those of the following files.
pub struct Stream<'a> {
    array: Array<'a>,
    is_target: bool,
    /// Bytes of an item.
    size: usize,
    /// Items of the array read so far.
    done: usize,
    /// The last piece that was read.
    raw: Vec<u8>,
    later: VecDeque<PathBuf>,
    open: Option<Open>,
}

impl<'a> Stream<'a> {
    /// One array, whose sizes were checked.
    pub fn new(array: Array<'a>, is_target: bool) -> Self {
        Self {
            size: array.item_size().unwrap_or(0),
            array,
            is_target,
            done: 0,
            raw: Vec::new(),
            later: VecDeque::new(),
            open: None,
        }
    }

    /// Arrays of files, whose sizes were checked.
    pub fn of_files(
        mut paths: VecDeque<PathBuf>,
        is_target: bool,
        open: Open,
    ) -> Result<Self, DataError> {
        let first = paths.pop_front().unwrap_or_default();
        let mut stream = Stream::new(open(&first, is_target)?, is_target);
        stream.later = paths;
        stream.open = Some(open);
        Ok(stream)
    }

    fn left(&self) -> usize {
        self.array.shape.first().map_or(0, |num| num - self.done)
    }

    /// Reads some items of the array.
    fn take(&mut self, num: usize) -> Result<(), DataError> {
        let expected = num * self.size;
        self.raw.clear();
        let result = (&mut self.array.data)
            .take(expected as u64)
            .read_to_end(&mut self.raw);
        let place = &self.array.place;
        match result {
            Err(e) if e.kind() != ErrorKind::UnexpectedEof => {
                return Err(damaged(place, plain_io_error(&e)));
            }
            _ if self.raw.len() < expected => {
                let found = (self.done * self.size + self.raw.len()) as u64;
                return Err(wrong_length(place, self.array.size(), Some(found)));
            }
            _ => self.done += num,
        }
        Ok(())
    }

    /// Checks that an array that was read ends, and continues with the next one.
    fn advance(&mut self) -> Result<(), DataError> {
        if self.left() > 0 {
            return Ok(());
        }
        let place = &self.array.place;
        match self.array.data.read(&mut [0]) {
            Ok(0) => {}
            Ok(_) => return Err(wrong_length(place, self.array.size(), None)),
            Err(e) => return Err(damaged(place, plain_io_error(&e))),
        }
        if let (Some(path), Some(open)) = (self.later.pop_front(), self.open) {
            let array = open(&path, self.is_target)?;
            if array.item_size() != Some(self.size)
                && array.shape.get(1..) != self.array.shape.get(1..)
            {
                return Err(damaged(&array.place, "it changed while it was being read"));
            }
            self.size = array.item_size().unwrap_or(0);
            self.array = array;
            self.done = 0;
        }
        Ok(())
    }
}

/// Numbers that mean missing, by column.
pub(super) struct Marks(Vec<(ColumnKind, Vec<f64>)>);

impl Marks {
    pub(super) fn of(files: &FilesSpec, columns: &[Column]) -> Self {
        let of = |column: &Column| (column.kind.clone(), files.missing_numbers_of(&column.name));
        Self(columns.iter().map(of).collect())
    }

    /// Replaces each of these with the missing value.
    pub(super) fn take_out(&self, column: usize, record: &mut [u8]) {
        let (kind, marks) = &self.0[column];
        if marks.is_empty() {
            return;
        }
        for value in record.chunks_exact_mut(kind.size()) {
            let number = records::number(kind, value);
            // A value such as -99.9 is a different number in 32 bits than in 64.
            let is_it = |mark: &f64| match kind {
                ColumnKind::Numbers => number == f64::from(*mark as f32),
                _ => number == *mark,
            };
            if !marks.iter().any(is_it) {
                continue;
            }
            match kind {
                ColumnKind::Numbers => value.copy_from_slice(&f32::NAN.to_le_bytes()),
                ColumnKind::Doubles => value.copy_from_slice(&f64::NAN.to_le_bytes()),
                ColumnKind::Whole => value.copy_from_slice(&NO_NUMBER.to_le_bytes()),
                ColumnKind::Bytes | ColumnKind::Categories { .. } | ColumnKind::Text => {}
            }
        }
    }

    /// Refuses missing-value marks for bytes, which cannot be missing.
    fn check(&self, columns: &[Column]) -> Result<(), DataError> {
        let mut wrong = columns.iter().zip(&self.0);
        let wrong =
            wrong.find(|(_, (kind, marks))| *kind == ColumnKind::Bytes && !marks.is_empty());
        wrong.map_or(Ok(()), |(column, _)| {
            Err(DataError::new(format!(
                "`missing_values` is set, but `{}` contains bytes, which cannot be missing",
                column.name
            ))
            .key("data.missing_values")
            .help("save the array as numbers, for example with `x.astype(np.float32)`, or remove `missing_values`"))
        })
    }
}

/// Reads all items of a part into records.
pub fn pump(
    files: &FilesSpec,
    writer: &mut Writer,
    mut streams: Vec<Stream<'_>>,
    num: usize,
    progress: &mut Progress<'_>,
) -> Result<(), DataError> {
    let sizes: Vec<_> = writer
        .columns()
        .iter()
        .map(|column| column.len() * column.kind.size())
        .collect();
    let record_size: usize = sizes.iter().sum();
    let missing_is_bad = missing_is_bad(files);
    let marks = Marks::of(files, writer.columns());
    marks.check(writer.columns())?;
    let mut done = 0;
    while done < num {
        let raw_size: usize = streams.iter().map(|stream| stream.size).sum();
        let left = streams.iter().map(Stream::left).min().unwrap_or(0);
        let piece = (PIECE / raw_size.max(1)).max(1).min(left).min(num - done);
        if piece == 0 {
            return Err(damaged(
                &streams[0].array.place,
                "it changed while it was being read",
            ));
        }
        for stream in &mut streams {
            stream.take(piece)?;
        }
        // Without the readers, which are not thread-safe.
        let views: Vec<_> = streams
            .iter()
            .map(|stream| {
                (
                    stream.raw.as_slice(),
                    stream.size,
                    stream.array.layout,
                    stream.is_target,
                )
            })
            .collect();
        let mut records = vec![0; piece * record_size];
        let wrong: Vec<_> = records
            .par_chunks_exact_mut(record_size)
            .enumerate()
            .filter_map(|(item, mut record)| {
                for (column, (raw, raw_size, layout, is_target)) in views.iter().enumerate() {
                    let (out, rest) = record.split_at_mut(sizes[column]);
                    let raw = &raw[item * raw_size..(item + 1) * raw_size];
                    if let Err(reason) = layout.convert(raw, *is_target, missing_is_bad, out) {
                        return Some((item, column, reason));
                    }
                    marks.take_out(column, out);
                    record = rest;
                }
                None
            })
            .collect();
        let mut start = 0;
        for (item, column, reason) in wrong {
            let stream = &streams[column];
            let number = stream.done - piece + item;
            let place = format!("{}, item {number}", stream.array.place);
            let good = &records[start * record_size..item * record_size];
            writer.push(good).map_err(|e| unwritable(&e))?;
            bad_item(files, writer, place, reason.into())?;
            start = item + 1;
        }
        writer
            .push(&records[start * record_size..])
            .map_err(|e| unwritable(&e))?;
        for stream in &mut streams {
            stream.advance()?;
        }
        done += piece;
        progress.advance(piece);
    }
    Ok(())
}
