//! The entries of a capsule's archive: only what its manifest lists.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::name::{shown, wrong};
use super::manifest::{DAMAGED, FileSum, HOSTILE, Manifest};
use super::{CapsuleError, MANIFEST, MAX_MANIFEST};
use crate::hash::hex;
use crate::show::{plain_io_error, show_bytes};

/// The maximum length in bytes of a name that does not fit its header.
const MAX_LONG_NAME: u64 = 4096;
/// The maximum number of bytes after the last file: tar pads its output.
const MAX_TAIL: u64 = 1 << 20;
/// The magic number of zstd files.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Adds a file without any metadata that differs between machines and times.
pub(super) fn append(
    archive: &mut tar::Builder<impl Write>,
    path: &str,
    bytes: u64,
    reader: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    archive.append_data(&mut header, path, reader)
}

/// Reads every file of an archive. `check` receives their bytes before the first one, and `put` each of them, which it
/// must read as far as its sum says.
pub(super) fn entries(
    archive: &mut tar::Archive<impl Read>,
    check: &dyn Fn(u64) -> Result<(), CapsuleError>,
    put: &mut dyn FnMut(&FileSum, &mut dyn Read) -> Result<(), CapsuleError>,
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
        put(sum, &mut next.entry)?;
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

/// Reads the content of an entry in pieces, exactly as many bytes as announced, which must have the announced sum.
pub(super) fn content(
    entry: &mut dyn Read,
    sum: &FileSum,
    put: &mut dyn FnMut(&[u8]) -> Result<(), CapsuleError>,
) -> Result<(), CapsuleError> {
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
        put(&buffer[..num])?;
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

/// An archive that ends too early.
pub(super) fn truncated(name: &str) -> CapsuleError {
    CapsuleError::new(format!("it ends within entry {}", shown(name)), DAMAGED)
}

/// An archive that cannot be read.
pub(super) fn damaged(error: &io::Error) -> CapsuleError {
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

/// Refuses a file that does not begin as a compressed one does.
pub(super) fn check_zstd(start: &[u8]) -> Result<(), CapsuleError> {
    if start.starts_with(&ZSTD_MAGIC) {
        return Ok(());
    }
    Err(CapsuleError::new(
        "it is not a capsule: it is not compressed with zstd",
        "use a file that `runner bundle` created",
    ))
}

/// Refuses anything but the zeros of tar after the last file.
pub(super) fn check_tail(archive: &mut impl Read) -> Result<(), CapsuleError> {
    let mut tail = Vec::new();
    let read = archive.take(MAX_TAIL + 1).read_to_end(&mut tail);
    read.map_err(|e| damaged(&e))?;
    let is_filled_up = tail.len() as u64 <= MAX_TAIL && tail.iter().all(|byte| *byte == 0);
    if is_filled_up { Ok(()) } else { Err(more()) }
}

/// A file that goes on after its archive.
pub(super) fn more() -> CapsuleError {
    CapsuleError::new("there is data after its last file", HOSTILE)
}

/// A valid name of a capsule as a path below a folder.
pub(super) fn below(folder: &Path, name: &str) -> PathBuf {
    name.split('/')
        .fold(folder.to_owned(), |path, part| path.join(part))
}
