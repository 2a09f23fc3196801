//! Reading the archive of a capsule: only what its manifest lists.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::name::{shown, wrong};
use super::manifest::{DAMAGED, FileSum, HOSTILE, Manifest};
use super::room;
use super::{CapsuleError, MANIFEST, MAX_MANIFEST};
use crate::hash::hex;
use crate::show::plain_io_error;
use crate::show::show_bytes;
use crate::spec::plain_file;

/// The maximum number of bytes after the last file: tar pads its output.
const MAX_TAIL: u64 = 1 << 20;
/// The maximum length in bytes of a name that does not fit its header.
const MAX_LONG_NAME: u64 = 4096;
/// The magic number of zstd files.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

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
    if !file
        .fill_buf()
        .map_err(unreadable)?
        .starts_with(&ZSTD_MAGIC)
    {
        return Err(CapsuleError::new(
            "it is not a capsule: it is not compressed with zstd",
            "use a file that `runner bundle` created",
        ));
    }
    let decoder = zstd::Decoder::with_buffer(file).map_err(|e| damaged(&e))?;
    let mut archive = tar::Archive::new(decoder.single_frame());
    let manifest = entries(&mut archive, into, &|total| {
        room::check(total, packed, max_bytes, into)
    })?;
    let mut decoder = archive.into_inner();
    let mut tail = Vec::new();
    let read = decoder.by_ref().take(MAX_TAIL + 1).read_to_end(&mut tail);
    read.map_err(|e| damaged(&e))?;
    let is_filled_up = tail.len() as u64 <= MAX_TAIL && tail.iter().all(|byte| *byte == 0);
    let is_at_end = decoder.finish().fill_buf().is_ok_and(<[u8]>::is_empty);
    if is_filled_up && is_at_end {
        Ok(manifest)
    } else {
        Err(CapsuleError::new(
            "there is data after its last file",
            HOSTILE,
        ))
    }
}

fn entries(
    archive: &mut tar::Archive<impl Read>,
    into: &Path,
    check: &dyn Fn(u64) -> Result<(), CapsuleError>,
) -> Result<Manifest, CapsuleError> {
    // Raw: the reader must not combine names and sizes from unchecked entries.
    let mut entries = archive.entries().map_err(|e| damaged(&e))?.raw(true);
    let Some(mut first) = Named::next(&mut entries)? else {
        return Err(CapsuleError::new("it is empty", DAMAGED));
    };
    if first.name != MANIFEST {
        let message = format!(
            "its first entry is {}, not `{MANIFEST}`",
            shown(&first.name)
        );
        return Err(CapsuleError::new(
            message,
            "use a file that `runner bundle` created",
        ));
    }
    if first.bytes > MAX_MANIFEST {
        let message = format!(
            "`{MANIFEST}` is {}; the limit is {}",
            show_bytes(first.bytes),
            show_bytes(MAX_MANIFEST)
        );
        return Err(CapsuleError::new(message, HOSTILE));
    }
    let mut text = Vec::new();
    first
        .entry
        .read_to_end(&mut text)
        .map_err(|e| damaged(&e))?;
    if text.len() as u64 != first.bytes {
        return Err(truncated(MANIFEST));
    }
    let manifest = Manifest::parse(&text)?;
    check(manifest.unpacked_bytes())?;
    // The remaining files.
    let listed = manifest.files.iter();
    let mut expected: BTreeMap<&str, (&FileSum, bool)> = listed
        .map(|file| (file.path.as_str(), (file, false)))
        .collect();
    while let Some(mut next) = Named::next(&mut entries)? {
        let name = shown(&next.name);
        let refuse = |why: String| Err(CapsuleError::new(format!("entry {name} {why}"), HOSTILE));
        if next.name == MANIFEST {
            return refuse("occurs twice".into());
        }
        let Some((sum, is_there)) = expected.get_mut(next.name.as_str()) else {
            return refuse(format!("is not listed in `{MANIFEST}`"));
        };
        if *is_there {
            return refuse("occurs twice".into());
        }
        *is_there = true;
        if next.bytes != sum.bytes {
            return refuse(format!(
                "has {} bytes, but {} according to `{MANIFEST}`",
                next.bytes, sum.bytes
            ));
        }
        write_file(&mut next.entry, sum, &below(into, &sum.path))?;
    }
    let missing = expected.values().find(|(_, is_there)| !is_there);
    if let Some((missing, _)) = missing {
        let message = format!("entry {} is missing", shown(&missing.path));
        return Err(CapsuleError::new(message, DAMAGED));
    }
    Ok(manifest)
}

/// An entry that is a regular file with a valid name.
struct Named<'a, R: Read> {
    name: String,
    bytes: u64,
    entry: tar::Entry<'a, R>,
}

impl<'a, R: Read> Named<'a, R> {
    fn next(entries: &mut tar::Entries<'a, R>) -> Result<Option<Self>, CapsuleError> {
        let mut long_name: Option<String> = None;
        loop {
            let Some(entry) = entries.next() else {
                return match long_name {
                    None => Ok(None),
                    Some(name) => Err(truncated(&name)),
                };
            };
            let mut entry = entry.map_err(|e| damaged(&e))?;
            let bytes = entry.size();
            let kind = entry.header().entry_type();
            if kind.is_gnu_longname() && long_name.is_none() {
                long_name = Some(read_long_name(&mut entry, bytes)?);
                continue;
            }
            let name = match long_name.take() {
                Some(name) => name,
                None => text_of(&entry.path_bytes())?,
            };
            if let Some(what) = unusual(kind) {
                let message = format!("entry {} is {what}", shown(&name));
                return Err(CapsuleError::new(message, HOSTILE));
            }
            if let Some(why) = wrong(&name) {
                let message = format!("entry {} {why}", shown(&name));
                return Err(CapsuleError::new(message, HOSTILE));
            }
            return Ok(Some(Self { name, bytes, entry }));
        }
    }
}

/// A name that was too long for a header.
fn read_long_name(entry: &mut impl Read, bytes: u64) -> Result<String, CapsuleError> {
    if bytes > MAX_LONG_NAME {
        let message = format!("an entry has a name of {bytes} bytes");
        return Err(CapsuleError::new(message, HOSTILE));
    }
    let mut name = Vec::new();
    entry.read_to_end(&mut name).map_err(|e| damaged(&e))?;
    if name.last() == Some(&0) {
        name.pop();
    }
    text_of(&name)
}

fn text_of(name: &[u8]) -> Result<String, CapsuleError> {
    match std::str::from_utf8(name) {
        Ok(name) => Ok(name.to_owned()),
        Err(_) => {
            let name = shown(&String::from_utf8_lossy(name));
            let message = format!("the name of entry {name} is not UTF-8");
            Err(CapsuleError::new(message, HOSTILE))
        }
    }
}

/// The kind of an entry that is not a regular file.
fn unusual(kind: tar::EntryType) -> Option<&'static str> {
    use tar::EntryType;
    Some(match kind {
        EntryType::Regular => return None,
        EntryType::Link => "a hard link",
        EntryType::Symlink => "a symbolic link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Directory => "a folder",
        EntryType::Fifo => "a pipe",
        EntryType::GNUSparse => "a sparse file",
        EntryType::XHeader | EntryType::XGlobalHeader => "a header of extensions",
        _ => "not a regular file",
    })
}

/// Writes the content of an entry, exactly as many bytes as announced.
fn write_file(entry: &mut impl Read, sum: &FileSum, path: &Path) -> Result<(), CapsuleError> {
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
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut left = sum.bytes;
    while left > 0 {
        let most = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let num = match entry.read(&mut buffer[..most]) {
            Ok(0) => return Err(truncated(&sum.path)),
            Ok(num) => num,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(damaged(&e)),
        };
        hasher.update(&buffer[..num]);
        file.write_all(&buffer[..num]).map_err(unwritable)?;
        left -= num as u64;
    }
    if hex(&hasher.finalize()) == sum.sha256 {
        return Ok(());
    }
    let message = format!(
        "entry {} does not match `{MANIFEST}`: its sha256 differs",
        shown(&sum.path)
    );
    Err(CapsuleError::new(message, DAMAGED))
}

/// A valid name of a capsule as a path below a folder.
pub(super) fn below(folder: &Path, name: &str) -> PathBuf {
    name.split('/')
        .fold(folder.to_owned(), |path, part| path.join(part))
}

fn truncated(name: &str) -> CapsuleError {
    CapsuleError::new(format!("it ends within entry {}", shown(name)), DAMAGED)
}

fn damaged(error: &io::Error) -> CapsuleError {
    let reason = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends prematurely".to_owned(),
        // The part after the colon quotes the content.
        _ => match plain_io_error(error).split_once(':') {
            Some((reason, _)) => reason.to_owned(),
            None => plain_io_error(error),
        },
    };
    CapsuleError::new(format!("it is damaged: {reason}"), DAMAGED)
}
