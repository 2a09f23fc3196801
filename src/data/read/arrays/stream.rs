//! Arrays side by side, item by item, into records: a piece at a time.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;

use rayon::prelude::*;

use super::{Array, Open, damaged, wrong_length};
use crate::data::DataError;
use crate::data::read::{Watch, bad_item, missing_is_bad, unwritable};
use crate::data::records::Writer;
use crate::spec::data::FilesSpec;
use crate::spec::document::plain_io_error;

/// Bytes of values that are read at once.
const PIECE: usize = 4 << 20;

/// How far all files are.
pub struct Progress<'a> {
    watch: Watch<'a>,
    done: usize,
    total: usize,
}

impl<'a> Progress<'a> {
    /// Of this many items.
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

/// The values of a column: an array, and those of files that follow it.
pub struct Stream<'a> {
    array: Array<'a>,
    is_target: bool,
    /// Bytes of an item.
    size: usize,
    /// Items of the array that were read.
    done: usize,
    /// The piece that was read last.
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

    /// Sees that an array that was read ends, and goes on to the next one.
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
                return Err(damaged(&array.place, "it changed while it was read"));
            }
            self.size = array.item_size().unwrap_or(0);
            self.array = array;
            self.done = 0;
        }
        Ok(())
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
    let mut done = 0;
    while done < num {
        let raw_size: usize = streams.iter().map(|stream| stream.size).sum();
        let left = streams.iter().map(Stream::left).min().unwrap_or(0);
        let piece = (PIECE / raw_size.max(1)).max(1).min(left).min(num - done);
        if piece == 0 {
            return Err(damaged(
                &streams[0].array.place,
                "it changed while it was read",
            ));
        }
        for stream in &mut streams {
            stream.take(piece)?;
        }
        // Without the readers, which are for one thread.
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
            bad_item(files, writer, place, reason)?;
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
