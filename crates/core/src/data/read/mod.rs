//! From files to records, one module for each family of formats.
//!
//! Readers know columns and records, but neither splits nor the roles of columns, except for the types set in the file
//! and for the target, which decides between a number and a category.

pub mod arrays;
pub mod bounded;
pub mod images;
pub mod magic;
pub mod tables;
pub mod text;
pub mod walk;

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::DataError;
use super::records::{Part, Skipped, Writer};
use crate::diagnostic::counted;
use crate::disk;
use crate::show::plain_io_error;
use crate::spec::data::{FilesSpec, Format, Missing, OnBadItem};
use crate::spec::plain_file;
use bounded::Bounded;

/// Receives the progress of reading: items or bytes done, and in total; called from any thread.
pub type Watch<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Reads files, whose paths are absolute and without patterns, into a new writer.
pub fn read(files: &FilesSpec, writer: &mut Writer, watch: Watch<'_>) -> Result<(), DataError> {
    if !matches!(files.format, Format::ImageFolder { .. }) {
        for (part, path) in
            parts(files).flat_map(|(part, paths)| paths.iter().map(move |p| (part, p)))
        {
            magic::check(Path::new(path), files.kind())
                .map_err(|error| error.or_key(part.key()))?;
        }
    }
    match &files.format {
        Format::Csv { .. } | Format::JsonLines | Format::Parquet => {
            tables::read(files, writer, watch)
        }
        Format::Npy { .. } | Format::Npz | Format::Safetensors | Format::Idx { .. } => {
            arrays::read(files, writer, watch)
        }
        Format::ImageFolder { .. } => images::read(files, writer, watch),
        Format::Text => text::read(files, writer, watch),
    }
}

/// The files of each nonempty part.
pub fn parts(files: &FilesSpec) -> impl Iterator<Item = (Part, &[String])> {
    let parts = [
        (Part::Train, files.path.as_slice()),
        (Part::Valid, files.valid_path.as_slice()),
        (Part::Test, files.test_path.as_slice()),
    ];
    parts.into_iter().filter(|(_, paths)| !paths.is_empty())
}

/// Whether an array item with a missing number counts as undecodable: if such items are skipped, and missing values are
/// not handled otherwise.
pub fn missing_is_bad(files: &FilesSpec) -> bool {
    let are_arrays = matches!(
        files.format,
        Format::Npy { .. } | Format::Npz | Format::Safetensors | Format::Idx { .. }
    );
    let mut said = files
        .roles
        .columns
        .iter()
        .filter_map(|column| column.missing);
    are_arrays
        && files.on_bad_item == OnBadItem::Skip
        && files.roles.missing == Missing::Refuse
        && said.all(|missing| missing == Missing::Refuse)
}

/// Refuses an undecodable item, or reports it as skipped, as the file says. `place` is the file, with the line or
/// record if there is one.
pub fn bad_item(
    files: &FilesSpec,
    writer: &mut Writer,
    place: String,
    reason: String,
) -> Result<(), DataError> {
    let bad = Skipped { place, reason };
    if files.on_bad_item == OnBadItem::Skip {
        writer.skip(bad);
        return Ok(());
    }
    Err(DataError::new(bad.show())
        .help("fix it, or set `on_bad_item = \"skip\"` under `[data]` to skip such items"))
}

/// A file that cannot be read.
pub fn unreadable(path: &Path, error: &io::Error) -> DataError {
    let reason = plain_io_error(error);
    DataError::new(format!("cannot read `{}`: {reason}", path.display()))
        .help("check that the file exists and that you have permission to read it")
}

/// A file that cannot be read to its end.
pub fn broken(path: &Path, error: &io::Error) -> DataError {
    let reason = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends prematurely".to_owned(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => error.to_string(),
        _ => return unreadable(path, error),
    };
    let is_packed = path.extension().is_some_and(|e| e == "gz");
    let test = if is_packed {
        "; `gzip -t` tests it"
    } else {
        ""
    };
    DataError::new(format!("`{}` is damaged: {reason}", path.display()))
        .help(format!("create or copy the file again{test}"))
}

/// An error while writing to the cache.
pub fn unwritable(error: &io::Error) -> DataError {
    let reason = plain_io_error(error);
    DataError::new(format!("the data cannot be written to the cache: {reason}"))
        .help("free some space, or set the environment variable XDG_CACHE_HOME to another folder")
}

/// A file read from its start, decompressed if its name ends in `.gz`.
pub fn open(path: &Path) -> Result<Box<dyn Read>, DataError> {
    let file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
    let reader = BufReader::with_capacity(1 << 18, file);
    if path.extension().is_some_and(|e| e == "gz") {
        Ok(Box::new(BufReader::with_capacity(
            1 << 18,
            Bounded::new(flate2::bufread::MultiGzDecoder::new(reader), path),
        )))
    } else {
        Ok(Box::new(reader))
    }
}

/// All files below a folder, sorted by path; links are followed, and hidden files are skipped.
pub fn files_of(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    Ok(files_and_lost(folder)?.0)
}

/// The same, and the links to nothing, which readers do not take for items without a word.
pub fn files_and_lost(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), DataError> {
    let (mut files, mut lost) = (Vec::new(), Vec::new());
    walk::walk(folder, &[], &mut |path| {
        if disk::is_file(&path) {
            files.push(path);
        } else if disk::metadata(&path).is_err() {
            lost.push(path);
        }
    })?;
    files.sort();
    lost.sort();
    Ok((files, lost))
}
