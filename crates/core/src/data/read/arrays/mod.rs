//! Arrays: npy, npz, safetensors, idx. The first dimension indexes the items.
//!
//! Bytes stay bytes, other integers and booleans become 32-bit integers, f16, bf16 and f32 become 32-bit floats, and
//! f64 stays. Byte targets become integers, because they are classes. Columns are in the order of `features` and
//! `target`, or otherwise of the file.
//!
//! Headers are read and compared first. The values are then streamed in pieces of some MiB, whatever the size of the
//! files, and no size in a header is trusted before as many bytes have arrived.

pub mod element;
mod idx;
pub mod incoming;
pub mod named;
pub mod npy;
pub mod npz;
pub mod safetensors;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Watch, unreadable};
use crate::data::DataError;
use crate::data::records::{Column, Part, Writer};
use crate::disk::File;
use crate::show::plain_io_error;
use crate::spec::data::{FilesSpec, Format, Targets};
use crate::spec::plain_file;
use element::Layout;
use stream::{Progress, Stream};

/// An array whose header was read.
pub struct Array<'a> {
    /// The file, and the array where it has several.
    pub place: String,
    /// How its values are stored.
    pub layout: Layout,
    /// Its sizes; the first is the number of items.
    pub shape: Vec<usize>,
    /// Its values, item by item.
    pub data: Box<dyn Read + 'a>,
}

/// Opens the file of an array; `is_target` says whether it contains targets.
type Open = fn(&Path, bool) -> Result<Array<'static>, DataError>;

/// Reads the files into the writer.
pub fn read(files: &FilesSpec, writer: &mut Writer, watch: Watch<'_>) -> Result<(), DataError> {
    match &files.format {
        Format::Npy { targets } => read_pairs(files, targets, npy::open, writer, watch),
        Format::Idx { targets } => read_pairs(files, targets, idx::open, writer, watch),
        Format::Safetensors => named::read(files, safetensors::visit, writer, watch),
        _ => named::read(files, npz::visit, writer, watch),
    }
}

/// Files of one array each: inputs become the column `input`, targets `target`.
fn read_pairs(
    files: &FilesSpec,
    targets: &Targets,
    open: Open,
    writer: &mut Writer,
    watch: Watch<'_>,
) -> Result<(), DataError> {
    let mut columns = Columns::default();
    let mut parts = Vec::new();
    for (part, inputs) in super::parts(files) {
        let (key, targets) = match part {
            Part::Train => ("target_path", &targets.path),
            Part::Valid => ("valid_target_path", &targets.valid_path),
            Part::Test => ("test_target_path", &targets.test_path),
        };
        let mut streams = Vec::new();
        let mut nums = Vec::new();
        for (at, paths) in [inputs, targets.as_slice()].into_iter().enumerate() {
            let paths: VecDeque<_> = paths.iter().map(PathBuf::from).collect();
            let mut num: usize = 0;
            for path in &paths {
                let of_key = |error: DataError| match at {
                    0 => error.or_key(part.key()),
                    _ => error.or_key(part.target_key()),
                };
                let array = open(path, at == 1).map_err(of_key)?;
                columns
                    .agree(at, ["input", "target"][at], at == 1, &array)
                    .map_err(of_key)?;
                num = num.saturating_add(array.shape[0]);
            }
            if !paths.is_empty() {
                streams.push((paths, at == 1));
                nums.push(num);
            }
        }
        let expected = parts
            .first()
            .map_or(streams.len(), |(_, _, streams): &(_, _, Vec<_>)| {
                streams.len()
            });
        check_pairs((part, inputs, key, targets), &nums, expected)?;
        parts.push((part, nums[0], streams));
    }
    let columns = columns.columns;
    let total = parts.iter().map(|(_, num, _)| *num).sum();
    let mut progress = Progress::new(watch, total);
    writer.begin(columns);
    for (part, num, streams) in parts {
        writer.part(part);
        let streams = streams
            .into_iter()
            .map(|(paths, is_target)| Stream::of_files(paths, is_target, open))
            .collect::<Result<_, _>>()?;
        stream::pump(files, writer, streams, num, &mut progress)
            .map_err(|error| error.or_key(part.key()))?;
    }
    Ok(())
}

/// Refuses inputs without targets where others have some, or with another number of them.
fn check_pairs(
    (part, inputs, key, targets): (Part, &[String], &str, &[String]),
    nums: &[usize],
    expected: usize,
) -> Result<(), DataError> {
    if nums.len() != expected {
        let (has, lacks) = match nums.len() {
            1 => (
                "the other files have targets",
                format!("`{}` has no targets", inputs[0]),
            ),
            _ => (
                "the other files have none",
                format!("`{}` has targets", inputs[0]),
            ),
        };
        return Err(DataError::new(format!("{lacks}, but {has}"))
            .help(format!("set `{key}` for all splits or for none")));
    }
    if let [inputs_num, targets_num] = *nums
        && inputs_num != targets_num
    {
        return Err(DataError::new(format!(
            "there are {} and {}",
            super::counted(inputs_num, "input"),
            super::counted(targets_num, "target"),
        ))
        .key(part.target_key())
        .note(format!("inputs: {}", show_paths(inputs)))
        .note(format!("targets: {}", show_paths(targets)))
        .help("use files whose arrays have the same first dimension"));
    }
    Ok(())
}

/// Columns that all files must agree in.
#[derive(Default)]
struct Columns {
    columns: Vec<Column>,
    /// The array in which each was first seen.
    places: Vec<String>,
}

impl Columns {
    /// Adds the next column, or compares it with the existing one.
    fn agree(
        &mut self,
        at: usize,
        name: &str,
        is_target: bool,
        array: &Array<'_>,
    ) -> Result<(), DataError> {
        let place = &array.place;
        let Some((num, shape)) = array.shape.split_first() else {
            return Err(single_value(place).help("save it with the items as the first dimension"));
        };
        if *num == 0 {
            return Err(DataError::new(format!("{place} contains no items"))
                .note(format!("its shape is {:?}", array.shape))
                .help("save an array whose first dimension is the items"));
        }
        if array.item_size().is_none_or(|size| size == 0) {
            return Err(DataError::new(format!("{place} has items without values"))
                .note(format!("its shape is {:?}", array.shape))
                .help("save an array without dimensions of size 0"));
        }
        let column = Column {
            name: name.to_owned(),
            kind: array.layout.element.kind(is_target),
            shape: shape.to_vec(),
        };
        let Some(first) = self.columns.get(at) else {
            self.columns.push(column);
            self.places.push(place.clone());
            return Ok(());
        };
        if *first == column {
            return Ok(());
        }
        let show = |column: &Column| format!("{} of shape {:?}", column.kind.show(), column.shape);
        let message = match (
            first.shape != column.shape,
            first.kind.show() != column.kind.show(),
        ) {
            (false, false) => {
                let bits = |column: &Column| format!("{}-bit numbers", 8 * column.kind.size());
                format!(
                    "{place} has {}, but {} has {}",
                    bits(&column),
                    self.places[at],
                    bits(first)
                )
            }
            _ => format!(
                "{place} has items that are {}, but those of {} are {}",
                show(&column),
                self.places[at],
                show(first)
            ),
        };
        Err(DataError::new(message)
            .help("all files of a data set must have items of one shape and type"))
    }
}

impl Array<'_> {
    /// Bytes of an item; `None` on overflow.
    fn item_size(&self) -> Option<usize> {
        let sizes = self.shape.iter().skip(1);
        sizes
            .copied()
            .try_fold(self.layout.element.size(), usize::checked_mul)
    }

    /// Bytes of all items; `None` on overflow.
    fn size(&self) -> Option<u64> {
        let num = self.shape.first().copied().unwrap_or(1);
        u64::try_from(self.item_size()?.checked_mul(num)?).ok()
    }

    /// All values as the file holds them, the lowest byte of each first.
    pub fn into_bytes(self) -> Result<Vec<u8>, DataError> {
        let Some(size) = self.size() else {
            return Err(wrong_length(&self.place, None, None));
        };
        let mut bytes = Vec::new();
        let read = self
            .data
            .take(size.saturating_add(1))
            .read_to_end(&mut bytes);
        read.map_err(|e| damaged(&self.place, plain_io_error(&e)))?;
        let found = bytes.len() as u64;
        if found != size {
            return Err(wrong_length(&self.place, Some(size), Some(found)));
        }
        if self.layout.big_endian {
            let values = bytes.chunks_exact_mut(self.layout.element.size());
            values.for_each(<[u8]>::reverse);
        }
        Ok(bytes)
    }

    /// Compares the number of bytes after the header with the number it announces.
    fn check_length(&self, found: u64) -> Result<(), DataError> {
        match self.size() {
            Some(expected) if expected == found => Ok(()),
            expected => Err(wrong_length(&self.place, expected, Some(found))),
        }
    }
}

/// An array with a different number of bytes than its header says; `found` is `None` if there are more, uncounted.
fn wrong_length(place: &str, expected: Option<u64>, found: Option<u64>) -> DataError {
    let message = match (expected, found) {
        (None, _) => {
            format!("{place} is damaged: the number of values in its header overflows")
        }
        (Some(expected), Some(found)) if found < expected => {
            format!(
                "{place} is truncated: its header declares {expected} bytes of values, found {found}"
            )
        }
        (Some(expected), _) => {
            format!(
                "{place} is longer than the {expected} bytes of values that its header declares"
            )
        }
    };
    DataError::new(message).help("create or copy the file again")
}

/// An array without dimensions.
fn single_value(place: &str) -> DataError {
    DataError::new(format!(
        "{place} is a single value instead of a list of items"
    ))
}

/// A file that is damaged, in words.
fn damaged(place: &str, reason: impl std::fmt::Display) -> DataError {
    DataError::new(format!("{place} is damaged: {reason}")).help("create or copy the file again")
}

/// Opens a file, refusing a folder, with its length.
fn open_plain(path: &Path) -> Result<(File, u64), DataError> {
    let file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
    let metadata = file.metadata().map_err(|e| unreadable(path, &e))?;
    if metadata.is_dir() {
        let error = std::io::Error::from(std::io::ErrorKind::IsADirectory);
        return Err(unreadable(path, &error));
    }
    Ok((file, metadata.len()))
}

/// A path in messages.
fn show(path: &Path) -> String {
    format!("`{}`", path.display())
}

fn show_paths(paths: &[String]) -> String {
    let shown: Vec<_> = paths
        .iter()
        .take(3)
        .map(|path| format!("`{path}`"))
        .collect();
    match paths.len().saturating_sub(3) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
