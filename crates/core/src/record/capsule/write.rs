//! Writing the archive of a capsule: under a temporary name first, with the same bytes for the same files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::unfinished::temporary_prefix;
use super::super::write::readable_file;
use super::archive::append;
use super::manifest::FileSum;
use super::{CapsuleError, MANIFEST};
use crate::hash::hex;
use crate::show::plain_io_error;
use crate::spec::plain_file;

/// The compression level of zstd, which affects the bytes.
const LEVEL: i32 = 9;

/// The sources of a capsule's files.
pub(super) enum Source {
    File(PathBuf),
    Bytes(Vec<u8>),
}

/// Writes the archive under a temporary name first.
pub(super) fn write(
    out: &Path,
    force: bool,
    head: &[u8],
    sources: &BTreeMap<String, (Source, FileSum)>,
    watch: &dyn Fn(u64, u64),
) -> Result<u64, CapsuleError> {
    let unwritable = |e: &io::Error| unwritable(out, e);
    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = readable_file(&temporary_prefix(), folder).map_err(|e| unwritable(&e))?;
    let encoder = zstd::Encoder::new(file.as_file_mut(), LEVEL);
    let mut encoder = encoder.map_err(|e| unwritable(&e))?;
    let checked = encoder.include_checksum(true);
    checked.map_err(|e| unwritable(&e))?;
    let mut archive = tar::Builder::new(encoder);
    append(&mut archive, MANIFEST, head.len() as u64, head).map_err(|e| unwritable(&e))?;
    let total = sources.len() as u64;
    for ((path, (source, sum)), at) in sources.iter().zip(1..) {
        match source {
            Source::Bytes(bytes) => {
                append(&mut archive, path, sum.bytes, bytes.as_slice())
                    .map_err(|e| unwritable(&e))?;
            }
            Source::File(source) => {
                let mut reader = Summed::open(source, sum.bytes)?;
                let appended = append(&mut archive, path, sum.bytes, &mut reader);
                if let Some(e) = reader.failure.take() {
                    return Err(unreadable(source, &e));
                }
                appended.map_err(|e| unwritable(&e))?;
                if !reader.is(sum) {
                    let message =
                        format!("`{}` changed while it was being packed", source.display());
                    return Err(CapsuleError::new(
                        message,
                        "wait until nothing writes to it",
                    ));
                }
            }
        }
        watch(at, total);
    }
    let finish = || archive.into_inner()?.finish()?.flush();
    finish().map_err(|e| unwritable(&e))?;
    let bytes = file.as_file().metadata().map_err(|e| unwritable(&e))?.len();
    let persisted = if force {
        file.persist(out)
    } else {
        file.persist_noclobber(out)
    };
    persisted.map_err(|e| unwritable(&e.error))?;
    Ok(bytes)
}

/// A file that is hashed while it is read, up to the packed size.
struct Summed {
    file: io::Take<File>,
    bytes: u64,
    hasher: Sha256,
    failure: Option<io::Error>,
}

impl Summed {
    fn open(path: &Path, bytes: u64) -> Result<Self, CapsuleError> {
        let file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
        Ok(Self {
            file: file.take(bytes),
            bytes: 0,
            hasher: Sha256::new(),
            failure: None,
        })
    }

    fn is(mut self, sum: &FileSum) -> bool {
        // A file that has grown would still have the same sum.
        let is_at_end = matches!(self.file.get_mut().read(&mut [0]), Ok(0));
        is_at_end && self.bytes == sum.bytes && hex(&self.hasher.finalize()) == sum.sha256
    }
}

impl Read for Summed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.file.read(buffer) {
            Ok(num) => {
                self.hasher.update(&buffer[..num]);
                self.bytes += num as u64;
                Ok(num)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Err(e),
            Err(e) => {
                let kind = e.kind();
                self.failure = Some(e);
                Err(kind.into())
            }
        }
    }
}

/// Bytes and sha256 of a file.
pub(super) fn measure(path: &Path) -> Result<(u64, String), CapsuleError> {
    let mut reader = Summed::open(path, u64::MAX)?;
    io::copy(&mut reader, &mut io::sink()).map_err(|e| unreadable(path, &e))?;
    Ok((reader.bytes, hex(&reader.hasher.finalize())))
}

/// A file that cannot be read.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> CapsuleError {
    let reason = plain_io_error(error);
    CapsuleError::new(
        format!("cannot read `{}`: {reason}", path.display()),
        "check that the file exists and that you have permission to read it",
    )
}

fn unwritable(out: &Path, error: &io::Error) -> CapsuleError {
    let shown = out.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => CapsuleError::new(
            format!("`{shown}` already exists"),
            "use another file with `--out`, or overwrite it with `--force`",
        ),
        _ => CapsuleError::new(
            format!("cannot write `{shown}`: {}", plain_io_error(error)),
            "use a file in a folder that you can write to with `--out`, and check that there is enough space",
        ),
    }
}
