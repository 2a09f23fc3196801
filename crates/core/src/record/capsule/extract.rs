//! Reading the archive of a capsule: only what its manifest lists.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use super::super::name::shown;
use super::CapsuleError;
use super::archive::{below, check_tail, check_zstd, content, damaged, entries, more};
use super::manifest::{FileSum, Manifest};
use super::room;
use crate::show::plain_io_error;
use crate::spec::plain_file;

/// Writes every file of an archive below a folder.
pub(super) fn extract(
    archive: &Path,
    into: &Path,
    max_bytes: Option<u64>,
) -> Result<Manifest, CapsuleError> {
    let unreadable = |e: io::Error| {
        CapsuleError::new(
            format!("it cannot be read: {}", plain_io_error(&e)),
            "check that the file exists and that you have permission to read it",
        )
    };
    let file = plain_file::open(archive).map_err(unreadable)?;
    let packed = file.metadata().map_or(0, |there| there.len());
    let mut file = BufReader::with_capacity(1 << 17, file);
    check_zstd(file.fill_buf().map_err(unreadable)?)?;
    let decoder = zstd::Decoder::with_buffer(file).map_err(|e| damaged(&e))?;
    let mut archive = tar::Archive::new(decoder.single_frame());
    let check = |total| room::check(total, packed, max_bytes, into);
    let manifest = entries(&mut archive, &check, &mut |sum, entry| {
        write_file(entry, sum, &below(into, &sum.path))
    })?;
    let mut decoder = archive.into_inner();
    let is_filled_up = check_tail(&mut decoder);
    let is_at_end = decoder.finish().fill_buf().is_ok_and(<[u8]>::is_empty);
    is_filled_up.and_then(|()| if is_at_end { Ok(manifest) } else { Err(more()) })
}

/// Writes the content of an entry, exactly as many bytes as announced.
fn write_file(entry: &mut dyn Read, sum: &FileSum, path: &Path) -> Result<(), CapsuleError> {
    let unwritable = |e: io::Error| {
        CapsuleError::new(
            format!(
                "entry {} cannot be written: {}",
                shown(&sum.path),
                plain_io_error(&e)
            ),
            "check that there is enough space and that you have permission to write there",
        )
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(unwritable)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = options.open(path).map_err(unwritable)?;
    content(entry, sum, &mut |piece| {
        file.write_all(piece).map_err(unwritable)
    })
}
