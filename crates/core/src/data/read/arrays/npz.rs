//! NumPy's `.npz`: a zip archive of `.npy` files, stored or deflated.

use std::io::BufReader;
use std::path::Path;

use zip::ZipArchive;
use zip::result::ZipError;

use super::named::{Found, Visit};
use super::{Array, damaged, npy, open_plain, show};
use crate::data::DataError;
use crate::data::read::bounded;
use crate::disk::File;

/// Passes on the arrays of an archive, in archive order.
pub fn visit(path: &Path, visit: Visit<'_>) -> Result<(), DataError> {
    let place = show(path);
    let names = names(path, &place)?;
    // An archive serves one file at a time, so each array gets its own handle.
    let mut archives = names
        .iter()
        .map(|_| open(path, &place))
        .collect::<Result<Vec<_>, _>>()?;
    let mut found = Vec::new();
    for (archive, (name, at)) in archives.iter_mut().zip(names) {
        let place = format!("{place}, array `{name}`");
        let array = archive
            .by_index(at)
            .map_err(|e| damaged(&place, e.to_string().to_lowercase()))
            .and_then(|mut entry| {
                let packed = entry.compressed_size();
                let header = npy::header(&mut entry, &place)?;
                let array = Array {
                    place,
                    layout: header.layout,
                    shape: header.shape,
                    data: Box::new(entry),
                };
                match bounded::refusal(array.size().unwrap_or(u64::MAX), packed) {
                    Some(reason) if array.size().is_some() => Err(damaged(&array.place, reason)),
                    _ => Ok(array),
                }
            });
        found.push(Found { name, array });
    }
    visit(found)
}

fn open(path: &Path, place: &str) -> Result<ZipArchive<BufReader<File>>, DataError> {
    let (file, len) = open_plain(path)?;
    if len == 0 {
        return Err(
            DataError::new(format!("{place} is empty")).help("create or copy the file again")
        );
    }
    ZipArchive::new(BufReader::with_capacity(1 << 16, file)).map_err(|e| {
        let reason = e.to_string();
        let reason = reason
            .trim_start_matches("invalid Zip archive: ")
            .to_lowercase();
        damaged(place, format!("it is not an archive of arrays ({reason})"))
    })
}

/// The names of the arrays, with their indices in the archive.
fn names(path: &Path, place: &str) -> Result<Vec<(String, usize)>, DataError> {
    let mut zip = open(path, place)?;
    let wrong = |e: ZipError| damaged(place, e.to_string().to_lowercase());
    let mut names: Vec<(String, usize)> = Vec::new();
    for at in 0..zip.len() {
        let entry = zip.by_index_raw(at).map_err(wrong)?;
        if let Some(name) = entry.name().map_err(wrong)?.strip_suffix(".npy") {
            names.push((name.to_owned(), at));
        }
    }
    Ok(names)
}
